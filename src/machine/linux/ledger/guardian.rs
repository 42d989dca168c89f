//! A second process that puts everything back if pinwise is killed outright.
//!
//! It sleeps on a pipe that only pinwise holds open. When pinwise ends for
//! whatever reason, the pipe closes, and the guardian undoes what the journal
//! says is in force. It ignores the signals by which terminals and users end
//! programs.

#![expect(unsafe_code, reason = "fork has no safe form")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use super::act::System;
use super::leftover;
use crate::machine::linux::sys;

/// Starts the guardian of a journal; it holds `host_lock` as long as it lives.
/// Returns the pipe. Call while this process has a single thread, and before it
/// becomes the parent of orphans.
pub(super) fn start(journal: &Path, system: &System, host_lock: Option<&File>) -> io::Result<File> {
    let (read, write) = sys::pipe(0)?;
    // SAFETY: this process has a single thread, so the child may run ordinary
    // code; both children leave by _exit.
    unsafe {
        let middle = sys::check(libc::fork())?;
        if middle == 0 {
            match libc::fork() {
                0 => {
                    drop(write);
                    guard(&read, journal, system, host_lock);
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
    Ok(File::from(write))
}

/// The guardian's life.
fn guard(lifeline: &OwnedFd, journal: &Path, system: &System, host_lock: Option<&File>) -> ! {
    // SAFETY: plain integers; descriptors closed here are copies that only
    // this process holds.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"pinwise-ledger".as_ptr(), 0, 0, 0);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_IGN);
        }
        let lock = host_lock.map_or(lifeline.as_raw_fd(), AsRawFd::as_raw_fd);
        // Out of the way of the numbers that they get.
        let lifeline = libc::fcntl(lifeline.as_raw_fd(), libc::F_DUPFD, 3);
        let lock = libc::fcntl(lock, libc::F_DUPFD, 3);
        libc::dup2(lifeline, 0);
        libc::dup2(lock, 1);
        libc::syscall(libc::SYS_close_range, 2, libc::c_uint::MAX, 0);
        let mut bytes = [0u8; 64];
        loop {
            let read = libc::read(0, bytes.as_mut_ptr().cast(), bytes.len());
            if read == 0 || (read < 0 && *libc::__errno_location() != libc::EINTR) {
                break;
            }
        }
    }
    let undone = std::panic::catch_unwind(|| leftover::finish(journal, system));
    // SAFETY: ends the guardian.
    unsafe { libc::_exit(i32::from(undone.is_err())) }
}
