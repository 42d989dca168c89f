//! Processes that outlive pinwise and clean up, however it ended.
//!
//! Such a daemon sleeps on a pipe whose other end only pinwise holds open, so even SIGKILL of
//! pinwise wakes it. Its parent has ended, so it outlives pinwise and is not mistaken for a process
//! of a command. It ignores the signals by which terminals and users end programs, and keeps none
//! of pinwise's files open.

#![expect(unsafe_code, reason = "fork has no safe form")]

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::capture::read_file;
use super::sys;

/// Name of the daemon that ends the command.
pub(super) const GUARD: &CStr = c"pinwise-guard";
/// Name of the daemon that undoes changes of the system.
pub(super) const LEDGER: &CStr = c"pinwise-ledger";
/// Name of the daemon that empties a pipe.
pub(super) const DRAIN: &CStr = c"pinwise-drain";

/// Is a process a daemon of pinwise? A daemon that is started after pinwise became a subreaper
/// becomes its child, like orphans of a command.
pub(super) fn is_daemon(pid: libc::pid_t) -> bool {
    let name = read_file(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default();
    is_daemon_name(name.trim_ascii_end())
}

/// Is this the name of a daemon of pinwise?
pub(super) fn is_daemon_name(name: &[u8]) -> bool {
    [GUARD, LEDGER, DRAIN]
        .iter()
        .any(|one| one.to_bytes() == name)
}

/// Starts a daemon that executes `run` with the read end of a pipe as its standard input. That
/// input ends when the returned write end is closed, by any means. `held`: a file that the daemon
/// keeps open as descriptor 1, for example to keep its lock.
///
/// Call while this process has a single thread, and before it becomes the parent of orphans.
///
/// # Errors
/// If the system cannot provide a pipe or a process.
pub(super) fn start(
    name: &'static CStr,
    held: Option<&File>,
    run: impl FnOnce(),
) -> io::Result<OwnedFd> {
    let (read, write) = sys::pipe(0)?;
    // SAFETY: this process has a single thread, so the child may run ordinary
    // code; both children leave by _exit.
    unsafe {
        let middle = sys::check(libc::fork())?;
        if middle == 0 {
            // Set before the fork, so that the daemon never has another name.
            libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0, 0, 0);
            match libc::fork() {
                0 => {
                    drop(write);
                    detach(&read, held);
                    let ended = catch_unwind(AssertUnwindSafe(run));
                    libc::_exit(i32::from(ended.is_err()));
                }
                child => libc::_exit(i32::from(child < 0)),
            }
        }
        let mut status = 0;
        let ended = libc::waitpid(middle, &raw mut status, 0);
        if ended == middle && status != 0 {
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
    }
    Ok(write)
}

/// Leaves the session and closes all descriptors except the pipe and the held file: otherwise a
/// reader of pinwise's output would wait for the daemon.
fn detach(death_pipe: &OwnedFd, held: Option<&File>) {
    // SAFETY: plain integers, and a name that is NUL-terminated; descriptors
    // closed here are copies that only this process holds.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let held = held.map_or(death_pipe.as_raw_fd(), AsRawFd::as_raw_fd);
        // Moves it out of the range of standard descriptors.
        let death_pipe = libc::fcntl(death_pipe.as_raw_fd(), libc::F_DUPFD, 3);
        let held = libc::fcntl(held, libc::F_DUPFD, 3);
        libc::dup2(death_pipe, 0);
        libc::dup2(held, 1);
        libc::syscall(libc::SYS_close_range, 2, libc::c_uint::MAX, 0);
    }
}

/// Reads the held file to its end and discards it.
pub(super) fn drain_held_file() {
    let mut bytes = [0u8; 4096];
    loop {
        let mut wanted = libc::pollfd {
            fd: 1,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, and a buffer of the length passed.
        let read = unsafe {
            libc::poll(&raw mut wanted, 1, -1);
            libc::read(1, bytes.as_mut_ptr().cast(), bytes.len())
        };
        let kind = io::Error::last_os_error().kind();
        let is_retried =
            read < 0 && matches!(kind, io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock);
        if read == 0 || (read < 0 && !is_retried) {
            return;
        }
    }
}

/// Sleeps until the pipe closes; returns what was written to it.
pub(super) fn sleep_until_closed() -> Vec<u8> {
    let mut received = Vec::new();
    let mut bytes = [0u8; 64];
    loop {
        // SAFETY: the buffer has the length passed.
        let read = unsafe { libc::read(0, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(read) {
            Ok(0) => return received,
            Ok(read) => received.extend_from_slice(&bytes[..read]),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return received,
        }
    }
}

/// Hands each complete line written to the pipe to `take`, until the pipe closes. An incomplete
/// last line is dropped.
pub(super) fn read_lines(mut take: impl FnMut(&str)) {
    // SAFETY: standard input is the pipe, and nothing else here reads or closes it.
    let mut pipe = BufReader::new(unsafe { File::from_raw_fd(0) });
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if let Some(whole) = line.strip_suffix(b"\n") {
            take(&String::from_utf8_lossy(whole));
        }
        line.clear();
    }
}
