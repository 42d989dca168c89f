//! Processes beside pinwise that clean up when it has ended, however it ended.
//!
//! Such a process sleeps on a pipe that only pinwise holds open: SIGKILL closes
//! it, too. It is nobody's child, so that it outlives pinwise and is not taken
//! for a process of a command; it ignores the signals by which terminals and
//! users end programs, and holds nothing of pinwise's open.

#![expect(unsafe_code, reason = "fork has no safe form")]

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::capture::read_file;
use super::sys;

/// What they are called.
pub(super) const GUARD: &CStr = c"pinwise-guard";
pub(super) const LEDGER: &CStr = c"pinwise-ledger";
pub(super) const DRAIN: &CStr = c"pinwise-drain";

/// Is a process one of these? One that is started late is given to pinwise, as orphans of
/// a command are.
pub(super) fn is_one(pid: libc::pid_t) -> bool {
    let name = read_file(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default();
    let name = name.trim_ascii_end();
    [GUARD, LEDGER, DRAIN]
        .iter()
        .any(|one| one.to_bytes() == name)
}

/// Starts such a process: `life` is what it does, and standard input its end of
/// the pipe. Closing what is returned, by any means, ends that input. `held`: a
/// file whose lock it keeps as long as it lives.
///
/// Call while this process has a single thread, and before it becomes the
/// parent of orphans.
///
/// # Errors
/// Where the system has no pipe or process for it.
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
            // Before the other is there: it never has another name.
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

/// Holds nothing of pinwise's but the pipe, as standard input, and what is to be
/// held: a reader of pinwise's output must not wait for this process.
fn stand_aside(death_pipe: &OwnedFd, held: Option<&File>) {
    // SAFETY: plain integers, and a name that is NUL-terminated; descriptors
    // closed here are copies that only this process holds.
    unsafe {
        libc::setsid();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let held = held.map_or(death_pipe.as_raw_fd(), AsRawFd::as_raw_fd);
        // Out of the way of the numbers that they get.
        let death_pipe = libc::fcntl(death_pipe.as_raw_fd(), libc::F_DUPFD, 3);
        let held = libc::fcntl(held, libc::F_DUPFD, 3);
        libc::dup2(death_pipe, 0);
        libc::dup2(held, 1);
        libc::syscall(libc::SYS_close_range, 2, libc::c_uint::MAX, 0);
    }
}

/// Reads what is held to its end, and throws it away.
pub(super) fn empty_held() {
    let mut bytes = [0u8; 4096];
    loop {
        let mut wanted = libc::pollfd {
            fd: 1,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, and a buffer as long as said.
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

/// Sleeps until the pipe closes; what was written into it.
pub(super) fn sleep() -> Vec<u8> {
    let mut received = Vec::new();
    let mut bytes = [0u8; 64];
    loop {
        // SAFETY: the buffer is as long as said.
        let read = unsafe { libc::read(0, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(read) {
            Ok(0) => return received,
            Ok(read) => received.extend_from_slice(&bytes[..read]),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return received,
        }
    }
}

/// Sleeps until the pipe closes, and hands on each whole line that is written
/// into it. One that was cut off is none.
pub(super) fn listen(mut take: impl FnMut(&str)) {
    // SAFETY: standard input is the pipe, and nobody else here reads or closes it.
    let mut pipe = BufReader::new(unsafe { File::from_raw_fd(0) });
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if let Some(whole) = line.strip_suffix(b"\n") {
            take(&String::from_utf8_lossy(whole));
        }
        line.clear();
    }
}
