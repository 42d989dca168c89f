//! A second process that cleans up if pinwise is killed outright.
//!
//! It sleeps on a pipe that only pinwise holds open. When pinwise ends for
//! whatever reason, SIGKILL included, the pipe closes, and the guardian ends
//! the command's process group and every process that carries this run's mark
//! in its environment. It uses no CPU time while a command runs.

#![expect(unsafe_code, reason = "fork and shared memory have no safe form")]

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use super::capture::{names, read_file};
use super::{orphan, sys};

/// Name of the environment variable that marks a command's processes.
pub(super) const MARK: &str = "PINWISE_RUN";
/// How often the marked processes are looked for until none is left.
const SWEEPS: usize = 50;

/// The guardian as pinwise sees it.
pub(super) struct Guardian {
    slot: *const AtomicI32,
    /// Closing this end, by any means, wakes the guardian.
    lifeline: Option<OwnedFd>,
}

impl Guardian {
    /// Starts the guardian. Call before this process becomes a subreaper, so
    /// that it is not taken for one of its children.
    pub(super) fn start(mark: &str) -> io::Result<Self> {
        let slot = shared_slot()?;
        let mark = format!("{MARK}={mark}");
        let lifeline = orphan::start(c"pinwise-guard", None, || {
            // SAFETY: the mapping is shared with the child and holds an
            // AtomicI32 that was zeroed, a valid value.
            guard(unsafe { &*slot }, &mark);
        })?;
        Ok(Self {
            slot,
            lifeline: Some(lifeline),
        })
    }

    /// Where the process group of the running command stands; 0 for none.
    pub(super) const fn slot(&self) -> &AtomicI32 {
        // SAFETY: the mapping lives until this process ends and holds an
        // AtomicI32 that was zeroed, a valid value.
        unsafe { &*self.slot }
    }

    /// There is nobody to end any more.
    pub(super) fn command_ended(&self) {
        self.slot().store(0, Ordering::SeqCst);
    }
}

impl Drop for Guardian {
    /// All is well: the guardian may go without looking.
    fn drop(&mut self) {
        self.slot().store(-1, Ordering::SeqCst);
        self.lifeline = None;
    }
}

fn shared_slot() -> io::Result<*const AtomicI32> {
    // SAFETY: an anonymous mapping shared with children; the result is
    // checked.
    let slot = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size_of::<AtomicI32>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if slot == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(slot.cast())
}

/// The guardian's life.
fn guard(slot: &AtomicI32, mark: &str) {
    orphan::sleep();
    let group = slot.load(Ordering::SeqCst);
    if group >= 0 {
        if group > 0 {
            sys::kill(-group, libc::SIGKILL);
            sys::kill(group, libc::SIGKILL);
        }
        end_marked(mark);
    }
}

/// Ends every process that carries the mark, until a sweep finds none.
pub(super) fn end_marked(mark: &str) {
    for _ in 0..SWEEPS {
        let marked = marked_processes(mark);
        if marked.is_empty() {
            return;
        }
        for pid in marked {
            sys::kill(pid, libc::SIGKILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn marked_processes(mark: &str) -> Vec<libc::pid_t> {
    let has_mark = |pid: &libc::pid_t| {
        let environment = read_file(Path::new(&format!("/proc/{pid}/environ"))).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|entry| entry == mark.as_bytes())
    };
    names(Path::new("/proc"))
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter(|pid| *pid > 1)
        .filter(has_mark)
        .collect()
}
