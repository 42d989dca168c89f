//! Processes that outlive pinwise and clean up, however it ended.
//!
//! Such a process sleeps on a pipe that only pinwise holds open: SIGKILL closes it, too. It has no
//! living parent, so it outlives pinwise and is not mistaken for a process of a command. It ignores
//! the signals by which terminals and users end programs, and keeps none of pinwise's files open.

#![expect(unsafe_code, reason = "fork has no safe form")]

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::capture::read_file;
use super::sys;

/// Their names.
pub(super) const GUARD: &CStr = c"pinwise-guard";
pub(super) const LEDGER: &CStr = c"pinwise-ledger";
pub(super) const DRAIN: &CStr = c"pinwise-drain";

/// Is a process one of these? One that starts late becomes pinwise's child, like orphans of a
/// command.
pub(super) fn is_one(pid: libc::pid_t) -> bool {
    let name = read_file(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default();
    is_name(name.trim_ascii_end())
}

/// Is this the name of one of these?
pub(super) fn is_name(name: &[u8]) -> bool {
    [GUARD, LEDGER, DRAIN]
        .iter()
        .any(|one| one.to_bytes() == name)
}

/// Starts such a process: it runs `life`, with the read end of the pipe as standard input. Closing
/// the returned end, by any means, ends that input. `held`: a file whose lock it keeps while it
/// lives.
///
/// Call while this process has a single thread, and before it becomes the parent of orphans.
///
/// # Errors
/// If the system has no pipe or process for it.
pub(super) fn start(
    name: &'static CStr,
    held: Option<&File>,
    life: impl FnOnce(),
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
                    stand_aside(&read, held);
                    let ended = catch_unwind(AssertUnwindSafe(life));
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

/// Keeps only the pipe, as standard input, and the held file: a reader of pinwise's output must not
/// wait for this process.
fn stand_aside(death_pipe: &OwnedFd, held: Option<&File>) {
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
        let goes_on =
            read < 0 && matches!(kind, io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock);
        if read == 0 || (read < 0 && !goes_on) {
            return;
        }
    }
}

/// Sleeps until the pipe closes; returns what was written to it.
pub(super) fn sleep() -> Vec<u8> {
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

/// Passes on each whole line written to the pipe until it closes. An incomplete last line is
/// dropped.
pub(super) fn listen(mut take: impl FnMut(&str)) {
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
