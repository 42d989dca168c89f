//! Changes of the system that are undone, however pinwise ends.
//!
//! Before a value is changed, its old value is written to a journal and sent to a second process,
//! the guardian. When pinwise ends, even by SIGKILL, the guardian undoes the changes in force. If
//! it fails, `pinwise apply restore` can finish: the journal stays until everything is restored. A
//! value that someone else has changed since is left alone. Nothing is changed if the journal
//! cannot be written or the guardian has ended; a journal whose folder was removed is written
//! again.

mod act;
mod entry;
mod fault;
mod file;
mod folder;
mod groups;
mod guardian;
mod host;
mod interrupts;
mod journal;
mod leftover;
mod memory;
mod own_group;
mod queue;
mod rules;
#[cfg(test)]
pub(super) mod tests;
mod words;
mod writer;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

pub use act::UndoOutcome;
pub use entry::{Change, Entry};
pub use fault::{Fault, POINTS as FAULT_POINTS};
pub use folder::journal_folders;
pub(super) use host::check_undone;
pub use journal::ChangeJournal;
pub use leftover::{Leftover, LeftoverState, find_leftovers};
pub use memory::{MovedMemory, PageRange};
pub(super) use own_group::JoinedGroup;
pub use own_group::cpusets_exclude_others;
pub use queue::SetQueue;
pub use rules::RulesJournal;

use super::boot_id;
use act::System;
use entry::JournalLine;
use file::JournalPath;
use pinwise_topology::CpuSet;
use writer::JournalWriter;

/// Why something was not changed.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// No folder is available for a journal.
    #[error("{}: cannot keep a journal there ({reason}): nothing is changed", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// The guardian cannot be started.
    #[error("the guardian that restores everything cannot be started ({0}): nothing is changed")]
    Guardian(io::Error),
    /// The guardian has ended.
    #[error("the guardian that undoes changes is gone ({0}): nothing is changed")]
    Unguarded(io::Error),
    /// The old value cannot be recorded.
    #[error("{}: the journal cannot be written ({reason}): nothing is changed", .path.display())]
    Unwritten {
        /// The journal.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Another pinwise changes the whole host.
    #[error(
        "another pinwise is changing this host (it holds {}): wait until it has ended",
        .0.display()
    )]
    Busy(PathBuf),
    /// The lock against concurrent host changes is lost.
    #[error("{}: the lock of changes of the whole host is gone: nothing is changed", .0.display())]
    Unlocked(PathBuf),
    /// The ledger was not opened for changes of the whole host.
    #[error("the host is only changed by a ledger that has its lock")]
    NotForHost,
    /// The thread ended.
    #[error("thread {0} no longer exists")]
    Gone(i32),
    /// The thread belongs to someone else.
    #[error(
        "thread {0} belongs to another user: nothing is changed (CAP_SYS_NICE would permit it)"
    )]
    Foreign(i32),
    /// The kernel does not allow the mask.
    #[error("the kernel forbids CPUs {1} to thread {0} (its cpuset, or a thread of the kernel's)")]
    Forbidden(i32, CpuSet),
    /// Memory that this user may not move.
    #[error(
        "process {0} belongs to another user: its memory is not moved (CAP_SYS_PTRACE and CAP_SYS_NICE would permit it)"
    )]
    ForeignMemory(i32),
    /// Nodes whose memory the process may not use.
    #[error("the cpuset of process {0} allows no memory of node {1} (only of {2})")]
    Nodes(i32, CpuSet, CpuSet),
    /// A CPU that cannot be switched.
    #[error("CPU {0} cannot be switched off: the kernel has no switch for it")]
    Fixed(usize),
    /// Something is in a state that does not allow the change.
    #[error("{0}: {1}")]
    Value(String, String),
    /// Other tasks need the CPUs.
    #[error("{0}")]
    Needed(String),
    /// No cgroup can be made.
    #[error(
        "no cgroup with the controllers {0} can be made here (it needs root, or a delegated cgroup: systemd-run --user --scope -p Delegate=yes pinwise …)"
    )]
    NoGroup(String),
    /// The cpusets here cannot isolate.
    #[error("isolated CPUs need cgroup v2: cpusets are of version 1 here")]
    NoIsolation,
    /// The file is not a journal of rules.
    #[error(
        "{}: this is not a journal of rules: name another with --state, or remove it", .0.display()
    )]
    NotOfRules(PathBuf),
    /// Another process writes the journal of rules.
    #[error("{}: another pinwise apply rules uses it; end that, or name another with --state", .0.display())]
    RulesInUse(PathBuf),
    /// The system refused.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

/// A change in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId(u64);

/// How to open a ledger.
#[derive(Debug, Clone, Default)]
pub struct LedgerOptions {
    /// Folders for journals, the preferred one first; empty: [`journal_folders`].
    pub folders: Vec<PathBuf>,
    /// Take the lock that host-wide changes require?
    pub is_for_host: bool,
    /// The root of the CPUs' files, `/` except in tests; empty: `/`.
    pub root: PathBuf,
    /// A fault to inject, for tests.
    pub fault: Option<Fault>,
}

/// Records changes in force, and undoes them on drop.
#[derive(Debug)]
pub struct Ledger {
    system: System,
    writer: JournalWriter,
    host_lock: Option<(JournalPath, File)>,
    /// The number of the next change.
    next: u64,
    fault: Option<Fault>,
}

/// Number of ledgers that this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

impl Ledger {
    /// Begins a journal and starts its guardian. Call while this process has a single thread, and
    /// before it becomes the parent of orphans.
    ///
    /// # Errors
    /// [`LedgerError`]; then neither exists.
    pub fn open(options: LedgerOptions) -> Result<Self, LedgerError> {
        let root = match options.root.as_os_str().is_empty() {
            true => PathBuf::from("/"),
            false => options.root,
        };
        let system = System::at(&root);
        let folder = folder::prepare_folder(&options.folders)?;
        let host_lock = match options.is_for_host {
            true => Some(file::lock_host(&folder)?),
            false => None,
        };
        let boot = boot_id().unwrap_or_else(|| "unknown".to_owned());
        let pid = std::process::id();
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let path = folder::journal_path(&folder, &boot, pid, number);
        let path = JournalPath {
            path,
            is_named: false,
        };
        let journal = ChangeJournal::new(boot, i32::try_from(pid).unwrap_or(0));
        let held = host_lock.as_ref().map(|(_, lock)| lock);
        let mut ledger = Self {
            writer: JournalWriter::start(path, journal, &system, held)?,
            system,
            host_lock,
            next: 1,
            fault: options.fault,
        };
        ledger.reach("opened");
        Ok(ledger)
    }

    /// Makes a change after recording its old value.
    ///
    /// # Errors
    /// [`LedgerError`]; everything is then unchanged.
    pub fn change(&mut self, change: &Change) -> Result<ChangeId, LedgerError> {
        let is_for_host = matches!(
            change,
            Change::Online { .. }
                | Change::SmtOff
                | Change::Interrupt { .. }
                | Change::Queue { .. }
        );
        if is_for_host {
            self.check_host_lock()?;
        }
        let entry = self.system.read_original(change)?;
        match change {
            // Kernels before 6.2 forget the masks of threads whose group changes.
            Change::Move { task, .. } => self.save_masks(host::list_threads(*task))?,
            Change::Cpuset { file, .. } => self.save_masks(host::list_group_threads(file))?,
            _ => {}
        }
        self.record_and_apply(self.widen_mask(entry))
    }

    /// Makes sure that a mask which only a cpuset of this ledger has narrowed is restored to the
    /// value before that.
    fn widen_mask(&self, mut entry: Entry) -> Entry {
        if let Entry::Mask {
            thread,
            start,
            before,
            ..
        } = &mut entry
        {
            let is_pinned = |other: &Entry| matches!(other, Entry::Mask { thread: pinned, .. } if pinned == thread);
            let saved = self
                .writer
                .journal
                .entries
                .values()
                .find_map(|other| match other {
                    Entry::Saved {
                        thread: same,
                        start: since,
                        before: mask,
                    } if (same, since) == (thread, start) => Some(mask.clone()),
                    _ => None,
                });
            if let Some(mask) = saved
                && before.is_subset(&mask)
                && !self.writer.journal.entries.values().any(is_pinned)
            {
                *before = mask;
            }
        }
        entry
    }

    fn save_masks(&mut self, threads: Vec<i32>) -> Result<(), LedgerError> {
        for thread in threads {
            if let Some(entry) = host::saved_mask_entry(thread) {
                self.save(entry)?;
            }
        }
        Ok(())
    }

    /// Writes the entry to the journal and makes its change.
    fn record_and_apply(&mut self, entry: Entry) -> Result<ChangeId, LedgerError> {
        if !self.writer.journal.entries.is_empty() {
            self.reach("between-changes");
        }
        self.reach("before-write");
        let id = self.next;
        self.next += 1;
        self.writer.commit(JournalLine::Made(id, entry.clone()))?;
        self.reach("after-write");
        match self.system.apply(&entry) {
            Ok(granted) => {
                log::info!("changed; before it was {entry} ({})", self.path().display());
                self.reach("after-change");
                if let Some(granted) = granted {
                    // If this line cannot be written, every part of the requested mask counts as
                    // the one that pinwise set.
                    let _ = self.writer.commit(JournalLine::Granted(id, granted));
                }
                Ok(ChangeId(id))
            }
            Err(error) => {
                self.forget(ChangeId(id));
                Err(error)
            }
        }
    }

    /// Records a value that the kernel itself will change.
    fn save(&mut self, entry: Entry) -> Result<(), LedgerError> {
        let id = self.next;
        self.next += 1;
        self.writer.commit(JournalLine::Made(id, entry))
    }

    /// A change; `None` if it is not in force.
    #[must_use]
    pub fn entry(&self, id: ChangeId) -> Option<&Entry> {
        self.writer.journal.entries.get(&id.0)
    }

    /// The path of its journal.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.writer.file.path.path
    }

    /// Number of changes in force.
    #[cfg(test)]
    fn count(&self) -> usize {
        self.writer.journal.entries.len()
    }

    /// Undoes a change; `None` if it is not in force. A change that cannot be undone stays listed.
    pub fn undo(&mut self, id: ChangeId) -> Option<UndoOutcome> {
        let entry = self.writer.journal.entries.get(&id.0)?.clone();
        self.reach("before-restore");
        let outcome = self.system.restore(&entry);
        log::info!("put back {entry}: {outcome:?}");
        self.reach("after-value");
        if !matches!(outcome, UndoOutcome::Failed(_)) {
            self.forget(id);
        }
        self.reach("between-restores");
        Some(outcome)
    }

    /// Undoes all changes in the order of [`Entry::rank`], changes of equal rank with the latest
    /// first.
    pub fn undo_all(&mut self) -> Vec<(Entry, UndoOutcome)> {
        self.undo_where(|_| true)
    }

    /// Undoes these changes, in the order of [`Self::undo_all`].
    pub fn undo_these(&mut self, changes: &[ChangeId]) -> Vec<(Entry, UndoOutcome)> {
        self.undo_where(|id| changes.contains(&id))
    }

    fn undo_where(&mut self, is_selected: impl Fn(ChangeId) -> bool) -> Vec<(Entry, UndoOutcome)> {
        let mut outcomes = Vec::new();
        for id in self.writer.journal.undo_order() {
            if is_selected(ChangeId(id)) {
                let entry = self.writer.journal.entries.get(&id).cloned();
                outcomes.extend(entry.zip(self.undo(ChangeId(id))));
            }
        }
        outcomes
    }

    /// Drops a change from the list without restoring it.
    fn forget(&mut self, id: ChangeId) {
        self.writer.forget(id.0);
    }

    /// Sends the guardian a line that concerns no change.
    pub(super) fn send_to_guardian(&mut self, line: &str) {
        self.writer.send_to_guardian(line);
    }

    /// Should changes stay when pinwise ends?
    #[must_use]
    pub const fn are_kept(&self) -> bool {
        self.writer.journal.are_kept
    }

    /// Sets whether changes stay when pinwise ends.
    ///
    /// # Errors
    /// [`LedgerError`] if that cannot be recorded; the changes are then undone.
    pub fn keep(&mut self, are_kept: bool) -> Result<(), LedgerError> {
        self.writer.commit(JournalLine::Kept(are_kept))
    }

    /// Records that the measured or watched work begins.
    pub fn note_running(&mut self) {
        self.reach("running");
    }

    /// Checks that this ledger has the host's lock: a lock file that was unlinked does not exclude
    /// others.
    fn check_host_lock(&self) -> Result<(), LedgerError> {
        let (path, lock) = self.host_lock.as_ref().ok_or(LedgerError::NotForHost)?;
        match path.leads_to(lock) {
            true => Ok(()),
            false => Err(LedgerError::Unlocked(path.path.clone())),
        }
    }

    /// Notes that this point is reached: a test may inject a fault there.
    fn reach(&mut self, point: &str) {
        fault::trigger(&mut self.fault, point, &self.writer.file.path.path);
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        if !self.writer.journal.are_kept {
            self.undo_all();
        }
        if self.writer.journal.are_kept || self.writer.journal.entries.is_empty() {
            self.reach("before-removal");
            self.writer.file.remove();
            self.reach("after-removal");
        }
    }
}
