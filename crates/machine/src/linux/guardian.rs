//! A second process that cleans up if pinwise is killed outright.
//!
//! It sleeps on a pipe that only pinwise holds open. When pinwise ends for whatever reason, SIGKILL
//! included, the pipe closes, and the guardian kills the command's process group and every process
//! that carries pinwise's mark in its environment. It uses no CPU time while a command runs.

#![expect(unsafe_code, reason = "fork and shared memory have no safe form")]

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use super::capture::{list_names, read_file};
use super::{daemon, sys};

/// Name of the environment variable that marks a command's processes.
pub(super) const MARK: &str = "PINWISE_RUN";
/// Most sweeps for marked processes, which may start further ones meanwhile.
const SWEEPS: usize = 50;

/// Longest inherited mark: a mark grows with each nested pinwise.
const MAX_MARK_LENGTH: usize = 120;

/// pinwise's handle of the guardian.
pub(super) struct Guardian {
    /// Shared with the guardian: the process group to kill, 0 for none, -1 if nothing needs cleaning
    /// up.
    slot: *const AtomicI32,
    /// Closing this end, by any means, wakes the guardian.
    death_pipe: Option<OwnedFd>,
}

impl Guardian {
    /// Starts the guardian. Call before this process becomes a subreaper, so
    /// that it is not taken for one of its children.
    pub(super) fn start(mark: &str) -> io::Result<Self> {
        let slot = map_shared_slot()?;
        let mark = format!("{MARK}={mark}");
        let death_pipe = daemon::start(daemon::GUARD, None, || {
            // SAFETY: the mapping is shared with the child and holds an
            // AtomicI32 that was zeroed, a valid value.
            run_guardian(unsafe { &*slot }, &mark);
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

    /// Notes that the command has ended: its process group need not be killed.
    pub(super) fn note_command_end(&self) {
        self.slot().store(0, Ordering::SeqCst);
    }
}

impl Drop for Guardian {
    /// Lets the guardian end without cleaning up.
    fn drop(&mut self) {
        self.slot().store(-1, Ordering::SeqCst);
        self.death_pipe = None;
    }
}

/// Makes the mark for commands of this process. If pinwise itself runs as a command of another
/// pinwise, as on a node of a fleet, the mark begins with the outer one, so that the outer guardian
/// ends these commands, too.
pub(super) fn make_mark() -> String {
    let own = format!("{:016x}", sys::random_u64());
    let outer = super::whole_environment().find(|(name, _)| name == MARK);
    let outer = outer.and_then(|(_, entry)| entry.into_string().ok());
    let outer = outer.and_then(|entry| Some(entry.split_once('=')?.1.to_owned()));
    let is_mark = |text: &String| {
        let is_plain = |c: char| c.is_ascii_hexdigit() || c == '.';
        (1..MAX_MARK_LENGTH).contains(&text.len()) && text.chars().all(is_plain)
    };
    match outer.filter(is_mark) {
        Some(outer) => format!("{outer}.{own}"),
        None => own,
    }
}

fn map_shared_slot() -> io::Result<*const AtomicI32> {
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

/// The guardian's main function.
fn run_guardian(slot: &AtomicI32, mark: &str) {
    daemon::sleep_until_closed();
    let group = slot.load(Ordering::SeqCst);
    if group >= 0 {
        if group > 0 {
            sys::kill(-group, libc::SIGKILL);
            sys::kill(group, libc::SIGKILL);
        }
        kill_marked(mark);
    }
}

/// Kills every process that carries the mark, until a sweep finds none.
pub(super) fn kill_marked(mark: &str) {
    for _ in 0..SWEEPS {
        let marked = find_marked_processes(mark);
        if marked.is_empty() {
            return;
        }
        for pid in marked {
            sys::kill(pid, libc::SIGKILL);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

fn find_marked_processes(mark: &str) -> Vec<libc::pid_t> {
    let has_mark = |pid: &libc::pid_t| {
        let environment = read_file(Path::new(&format!("/proc/{pid}/environ"))).unwrap_or_default();
        environment
            .split(|&byte| byte == 0)
            .any(|entry| is_marked(entry, mark))
    };
    // Daemons of an inner pinwise are spared: they must end what it started and restore what it
    // changed, and then end themselves.
    let is_guardian = |pid: &libc::pid_t| {
        let name = read_file(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default();
        let daemons = [daemon::GUARD, daemon::LEDGER];
        daemons
            .iter()
            .any(|daemon| daemon.to_bytes() == name.trim_ascii())
    };
    list_names(Path::new("/proc"))
        .iter()
        .filter_map(|name| name.parse().ok())
        .filter(|pid| *pid > 1)
        .filter(|pid| has_mark(pid) && !is_guardian(pid))
        .collect()
}

/// Is this environment entry the mark, or the mark of a pinwise inside the run?
fn is_marked(entry: &[u8], mark: &str) -> bool {
    let rest = entry.strip_prefix(mark.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'.')
}

#[cfg(test)]
mod tests {
    use super::is_marked;

    #[test]
    fn nested_runs_inherit_the_mark() {
        let check = |entry: &str| is_marked(entry.as_bytes(), "PINWISE_RUN=a1");
        assert!(check("PINWISE_RUN=a1") && check("PINWISE_RUN=a1.b2"));
        assert!(!check("PINWISE_RUN=a12") && !check("PINWISE_RUN=b2.a1") && !check("X=a1"));
    }
}
