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
use super::{daemon, sys};

/// Name of the environment variable that marks a command's processes.
pub(super) const MARK: &str = "PINWISE_RUN";
/// Names of processes that clean up after a pinwise.
const GUARDIANS: [&[u8]; 2] = [b"pinwise-guard", b"pinwise-ledger"];
/// How many sweeps for marked processes are made until none is left.
const SWEEPS: usize = 50;

/// Longest inherited mark: that of a few nested runs.
const LONGEST_MARK: usize = 120;

/// pinwise's handle of the guardian.
pub(super) struct Guardian {
    slot: *const AtomicI32,
    /// Closing this end, by any means, wakes the guardian.
    death_pipe: Option<OwnedFd>,
}

impl Guardian {
    /// Starts the guardian. Call before this process becomes a subreaper, so
    /// that it is not taken for one of its children.
    pub(super) fn start(mark: &str) -> io::Result<Self> {
        let slot = shared_slot()?;
        let mark = format!("{MARK}={mark}");
        let death_pipe = daemon::start(daemon::GUARD, None, || {
            // SAFETY: the mapping is shared with the child and holds an
            // AtomicI32 that was zeroed, a valid value.
            guard(unsafe { &*slot }, &mark);
        })?;
        Ok(Self {
            slot,
            death_pipe: Some(death_pipe),
        })
    }

    /// Holds the process group of the running command; 0 for none.
    pub(super) const fn slot(&self) -> &AtomicI32 {
        // SAFETY: the mapping lives until this process ends and holds an
        // AtomicI32 that was zeroed, a valid value.
        unsafe { &*self.slot }
    }

    /// The command has ended: nothing is left to kill.
    pub(super) fn note_command_end(&self) {
        self.slot().store(0, Ordering::SeqCst);
    }
}

impl Drop for Guardian {
    /// Everything is done: the guardian ends without a check.
    fn drop(&mut self) {
        self.slot().store(-1, Ordering::SeqCst);
        self.death_pipe = None;
    }
}

/// The mark of this machine's commands. If pinwise itself runs under another one, as on a node of a
/// fleet, that one's mark applies to its commands, too.
pub(super) fn own_mark() -> String {
    let own = format!("{:016x}", sys::random_u64());
    let outer = super::whole_environment().find(|(name, _)| name == MARK);
    let outer = outer.and_then(|(_, entry)| entry.into_string().ok());
    let outer = outer.and_then(|entry| Some(entry.split_once('=')?.1.to_owned()));
    let is_mark = |text: &String| {
        let is_plain = |c: char| c.is_ascii_hexdigit() || c == '.';
        (1..LONGEST_MARK).contains(&text.len()) && text.chars().all(is_plain)
    };
    match outer.filter(is_mark) {
        Some(outer) => format!("{outer}.{own}"),
        None => own,
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
    daemon::sleep();
    let group = slot.load(Ordering::SeqCst);
    if group >= 0 {
        if group > 0 {
            sys::kill(-group, libc::SIGKILL);
            sys::kill(group, libc::SIGKILL);
        }
        end_marked(mark);
    }
}

/// Kills every process that carries the mark, until a sweep finds none.
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
            .any(|entry| is_marked(entry, mark))
    };
    // Guardians of an inner pinwise must end what it started and restore what it changed; they then
    // end themselves.
    let is_guardian = |pid: &libc::pid_t| {
        let name = read_file(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default();
        GUARDIANS.contains(&name.trim_ascii())
    };
    names(Path::new("/proc"))
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter(|pid| *pid > 1)
        .filter(|pid| has_mark(pid) && !is_guardian(pid))
        .collect()
}

/// Is this environment entry the mark, or that of a pinwise inside the run?
fn is_marked(entry: &[u8], mark: &str) -> bool {
    let rest = entry.strip_prefix(mark.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
}

#[cfg(test)]
mod tests {
    use super::is_marked;

    #[test]
    fn runs_within_a_run_carry_its_mark() {
        let check = |entry: &str| is_marked(entry.as_bytes(), "PINWISE_RUN=a1");
        assert!(check("PINWISE_RUN=a1") && check("PINWISE_RUN=a1.b2"));
        assert!(!check("PINWISE_RUN=a12") && !check("PINWISE_RUN=b2.a1") && !check("X=a1"));
    }
}
