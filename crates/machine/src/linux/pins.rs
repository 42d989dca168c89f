//! Threads of others, pinned for as long as pinwise watches them.
//!
//! What is pinned is undone in the end, however pinwise ends: pins are changes
//! of a [`Ledger`]. A thread is only touched if it still is the one that was
//! pinned (its number may have come again) and still has the mask that it was
//! given: who changed it since then meant it. Nothing is pinned while nobody
//! is there to undo it.

use std::io;

use super::ledger::{Change, Entry, Id, Ledger, LedgerError, LedgerOptions, UndoOutcome};
use super::sys;
use crate::HostSetting;
use pinwise_topology::CpuSet;

/// Why a thread could not be pinned.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// It ended.
    #[error("thread {0} is no longer there")]
    Gone(i32),
    /// It belongs to someone else.
    #[error(
        "thread {0} belongs to another user: nothing is changed (CAP_SYS_NICE would permit it)"
    )]
    Foreign(i32),
    /// The kernel does not allow it: a thread of its own, or no CPU of the
    /// mask is in the thread's cpuset.
    #[error("the kernel forbids CPUs {1} to thread {0} (its cpuset, or a thread of the kernel's)")]
    Forbidden(i32, CpuSet),
    /// Nobody would undo it.
    #[error("the guardian that undoes pins is gone ({0}): nothing is changed")]
    Unguarded(io::Error),
    /// Something else, such as a journal that cannot be written.
    #[error(transparent)]
    Ledger(LedgerError),
}

impl From<LedgerError> for PinError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Gone(thread) => Self::Gone(thread),
            LedgerError::Foreign(thread) => Self::Foreign(thread),
            LedgerError::Forbidden(thread, cpus) => Self::Forbidden(thread, cpus),
            LedgerError::Unguarded(error) => Self::Unguarded(error),
            other => Self::Ledger(other),
        }
    }
}

/// Pins that were made, oldest first. They are undone when it is dropped.
#[derive(Debug)]
pub struct Pins {
    ledger: Ledger,
    made: Vec<(i32, Id)>,
    moved: Vec<Id>,
    /// What is set of the host.
    set: Vec<Id>,
}

impl Pins {
    /// Begins a journal and starts its guardian. Call while this process has a
    /// single thread, and before it becomes the parent of orphans.
    ///
    /// # Errors
    /// Where there is no place for a journal, or the system has no pipe or
    /// process for the guardian.
    pub fn start() -> io::Result<Self> {
        let ledger = Ledger::open(LedgerOptions::default());
        Ok(Self::on(ledger.map_err(io::Error::other)?))
    }

    /// Pins in a ledger that is open.
    #[must_use]
    pub const fn on(ledger: Ledger) -> Self {
        Self {
            ledger,
            made: Vec::new(),
            moved: Vec::new(),
            set: Vec::new(),
        }
    }

    /// How many pins are in force.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.made.len()
    }

    /// Pins a thread; returns the CPUs that it was granted.
    ///
    /// # Errors
    /// [`PinError`]; then the thread is as it was.
    pub fn pin(&mut self, thread: i32, cpus: &CpuSet) -> Result<CpuSet, PinError> {
        let change = Change::Mask {
            thread,
            cpus: cpus.clone(),
        };
        let id = self.ledger.change(&change)?;
        self.made.push((thread, id));
        let granted = match self.ledger.entry(id) {
            Some(Entry::Mask { granted, .. }) => granted.clone(),
            _ => None,
        };
        Ok(granted.unwrap_or_else(|| cpus.clone()))
    }

    /// Undoes the last pin; returns its thread and whether the thread has its
    /// old mask again, which it has not where it ended or where someone else
    /// changed the mask since. `None`: there is none.
    pub fn undo(&mut self) -> Option<(i32, bool)> {
        let (thread, id) = self.made.pop()?;
        let outcome = self.ledger.undo(id);
        let is_undone = matches!(outcome, Some(UndoOutcome::Restored | UndoOutcome::AsBefore));
        Some((thread, is_undone))
    }

    /// Moves the pages that a process has to NUMA nodes.
    ///
    /// # Errors
    /// [`LedgerError`]; then they are where they were.
    pub(super) fn move_memory(&mut self, process: i32, nodes: &CpuSet) -> Result<(), LedgerError> {
        let nodes = nodes.clone();
        let change = Change::Memory { process, nodes };
        self.moved.push(self.ledger.change(&change)?);
        Ok(())
    }

    /// Moves pages back; what came of it for each process, the last one first.
    pub(super) fn move_back(&mut self) -> Vec<UndoOutcome> {
        let moved = std::mem::take(&mut self.moved).into_iter().rev();
        moved.filter_map(|id| self.ledger.undo(id)).collect()
    }

    /// Sets the host.
    ///
    /// # Errors
    /// [`LedgerError`]; then the host is as it was.
    pub(super) fn set_host(&mut self, setting: &HostSetting) -> Result<(), LedgerError> {
        self.set.extend(self.ledger.set(setting)?);
        self.ledger.running();
        Ok(())
    }

    /// What is set of the host.
    pub(super) fn host_changes(&self) -> impl Iterator<Item = &Entry> {
        self.set.iter().filter_map(|id| self.ledger.entry(*id))
    }

    /// Undoes what was set of the host; what came of each change.
    pub(super) fn unset_host(&mut self) -> Vec<(Entry, UndoOutcome)> {
        let set = std::mem::take(&mut self.set);
        self.ledger.undo_these(&set)
    }

    /// Sends the guardian something that concerns no pin.
    pub(super) fn send_to_guardian(&mut self, line: &str) {
        self.ledger.send_to_guardian(line);
    }

    /// Do pins stay when pinwise leaves?
    #[must_use]
    pub const fn are_kept(&self) -> bool {
        self.ledger.are_kept()
    }

    /// Should pins stay when pinwise leaves? Where that cannot be written down
    /// they are undone, as [`Self::are_kept`] then says.
    pub fn keep(&mut self, are_kept: bool) {
        let _ = self.ledger.keep(are_kept);
    }
}

/// The CPUs that a thread may use, and the word for its scheduling policy;
/// `None` where it ended.
#[must_use]
pub fn thread_settings(thread: i32) -> Option<(CpuSet, &'static str)> {
    if thread <= 0 {
        return None;
    }
    let cpus = sys::affinity_of(thread).ok()?;
    let policy = sys::policy_of(thread).ok()?;
    // The highest bit says only that children get the normal one.
    let word = match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_OTHER => "other",
        libc::SCHED_FIFO => "fifo",
        libc::SCHED_RR => "rr",
        libc::SCHED_BATCH => "batch",
        libc::SCHED_IDLE => "idle",
        libc::SCHED_DEADLINE => "deadline",
        7 => "ext",
        _ => "?",
    };
    Some((cpus, word))
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
