//! Pins threads of other processes while pinwise watches them, and makes the other changes of the
//! system that go with that.
//!
//! Pins are changes of a [`Ledger`], so they are undone however pinwise ends. A thread is only
//! touched if it still is the one that was pinned (its id may have been reused) and still has the
//! mask that it was given: otherwise someone else changed it. Nothing is pinned without a guardian.

use std::io;

use super::ledger::{Change, ChangeId, Entry, Ledger, LedgerError, LedgerOptions, UndoOutcome};
use super::sys;
use crate::RunSetting;
use pinwise_topology::CpuSet;

/// Pins and further changes, each list oldest first; undone on drop.
#[derive(Debug)]
pub struct Pins {
    ledger: Ledger,
    /// Pinned threads.
    pins: Vec<(i32, ChangeId)>,
    /// Moved memory of processes.
    moves: Vec<ChangeId>,
    /// Changes of the host's settings.
    host: Vec<ChangeId>,
}

impl Pins {
    /// Begins a journal and starts its guardian. Call while this process has a
    /// single thread, and before it becomes the parent of orphans.
    ///
    /// # Errors
    /// If there is no folder for a journal, or no pipe or process for the guardian.
    pub fn start() -> io::Result<Self> {
        let ledger = Ledger::open(LedgerOptions::default());
        Ok(Self::new(ledger.map_err(io::Error::other)?))
    }

    /// Records pins in an open ledger.
    #[must_use]
    pub const fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            pins: Vec::new(),
            moves: Vec::new(),
            host: Vec::new(),
        }
    }

    /// Number of pins in force.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.pins.len()
    }

    /// Pins a thread; returns the granted CPUs.
    ///
    /// # Errors
    /// [`LedgerError`]; the thread is then unchanged.
    pub fn pin(&mut self, thread: i32, cpus: &CpuSet) -> Result<CpuSet, LedgerError> {
        let change = Change::Mask {
            thread,
            cpus: cpus.clone(),
        };
        let id = self.ledger.change(&change)?;
        self.pins.push((thread, id));
        let granted = match self.ledger.entry(id) {
            Some(Entry::Mask { granted, .. }) => granted.clone(),
            _ => None,
        };
        Ok(granted.unwrap_or_else(|| cpus.clone()))
    }

    /// Undoes the last pin; returns its thread and whether the old mask was restored, which fails
    /// if the thread ended or someone else changed its mask. `None` if there is no pin.
    pub fn undo(&mut self) -> Option<(i32, bool)> {
        let (thread, id) = self.pins.pop()?;
        let outcome = self.ledger.undo(id);
        let is_undone = matches!(outcome, Some(UndoOutcome::Restored | UndoOutcome::AsBefore));
        Some((thread, is_undone))
    }

    /// Moves a process's pages to NUMA nodes.
    ///
    /// # Errors
    /// [`LedgerError`]; the pages are then where they were.
    pub(super) fn move_memory(&mut self, process: i32, nodes: &CpuSet) -> Result<(), LedgerError> {
        let nodes = nodes.clone();
        let change = Change::Memory { process, nodes };
        self.moves.push(self.ledger.change(&change)?);
        Ok(())
    }

    /// Moves pages back; returns the outcome for each process, the last moved first.
    pub(super) fn move_memory_back(&mut self) -> Vec<UndoOutcome> {
        let moves = std::mem::take(&mut self.moves).into_iter().rev();
        moves.filter_map(|id| self.ledger.undo(id)).collect()
    }

    /// Changes settings of the host.
    ///
    /// # Errors
    /// [`LedgerError`]; the host is then unchanged.
    pub(super) fn set_host(&mut self, settings: &[RunSetting]) -> Result<(), LedgerError> {
        self.host.extend(self.ledger.apply_settings(settings)?);
        self.ledger.note_running();
        Ok(())
    }

    /// The host's changed settings.
    pub(super) fn host_changes(&self) -> impl Iterator<Item = &Entry> {
        self.host.iter().filter_map(|id| self.ledger.entry(*id))
    }

    /// Undoes the changes of the host's settings; returns the outcome of each.
    pub(super) fn restore_host(&mut self) -> Vec<(Entry, UndoOutcome)> {
        let changes = std::mem::take(&mut self.host);
        self.ledger.undo_these(&changes)
    }

    /// Sends the guardian a line that concerns no pin.
    pub(super) fn send_to_guardian(&mut self, line: &str) {
        self.ledger.send_to_guardian(line);
    }

    /// Should pins stay when pinwise quits?
    #[must_use]
    pub const fn are_kept(&self) -> bool {
        self.ledger.are_kept()
    }

    /// Sets whether pins stay when pinwise quits. If that cannot be recorded, they are undone, and
    /// [`Self::are_kept`] says so.
    pub fn keep(&mut self, are_kept: bool) {
        let _ = self.ledger.keep(are_kept);
    }
}

/// Reads the CPUs that a thread may use, and its scheduling policy; `None` if it ended.
#[must_use]
pub fn thread_settings(thread: i32) -> Option<(CpuSet, &'static str)> {
    if thread <= 0 {
        return None;
    }
    let cpus = sys::affinity_of(thread).ok()?;
    let policy = sys::policy_of(thread).ok()?;
    // This flag only says that children get the normal policy.
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
mod tests;
