//! The journal of rules, which a later process may continue.
//!
//! What rules gave to processes can stay when pinwise ends; the next pinwise that applies rules
//! finds it here. A lock file beside the journal, whose lock the guardian holds as well, excludes a
//! second writer. The number of an entry is the id of its process.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::act::System;
use super::entry::{Entry, JournalLine};
use super::file::JournalPath;
use super::journal::ChangeJournal;
use super::writer::JournalWriter;
use super::{LedgerError, folder, guardian, leftover};
use crate::linux::boot_id;
use crate::processes::{self, RuledProcess};

/// Longest wait until an earlier guardian has restored everything.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);

/// The journal, with its guardian.
#[derive(Debug)]
pub struct RulesJournal {
    writer: JournalWriter,
    /// Held while the journal is in use.
    lock: (JournalPath, File),
}

impl RulesJournal {
    /// Opens or creates the journal and starts its guardian; also returns the entries that an
    /// earlier process left. Call while this process has a single thread.
    ///
    /// # Errors
    /// [`LedgerError`] if the file is another one or in use, or the guardian cannot be started.
    pub fn open(path: &Path) -> Result<(Self, Vec<RuledProcess>), LedgerError> {
        let path = path.to_owned();
        let at = |reason| LedgerError::System(path.display().to_string(), reason);
        let journal_path = named_path(path.clone());
        journal_path.make_folder().map_err(at)?;
        let lock = named_path(folder::rules_lock_path(&path));
        let held = folder::lock_file(&lock.path, LOCK_TIMEOUT).map_err(at)?;
        let held = held.ok_or_else(|| LedgerError::RulesInUse(path.clone()))?;
        let boot = boot_id().unwrap_or_else(|| "unknown".to_owned());
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        let mut journal = ChangeJournal::new(boot, pid);
        let before = read_rules_journal(&path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => LedgerError::NotOfRules(path.clone()),
            _ => at(error),
        })?;
        if let Some(before) = before.filter(|before| before.boot == journal.boot) {
            journal.entries = before.entries;
        }
        let before = journal.ruled_processes().cloned().collect();
        let system = System::at(Path::new("/"));
        let writer = JournalWriter::start(journal_path, journal, &system, Some(&held))?;
        let lock = (lock, held);
        Ok((Self { writer, lock }, before))
    }

    /// Ends the guardian without restoring anything: everything was restored, or should stay.
    pub fn close(mut self) {
        self.writer.send_to_guardian(guardian::CLOSED);
        if self.writer.journal.entries.is_empty() {
            self.writer.file.remove();
        }
    }

    /// Makes sure that the lock excludes others: a lock file that was unlinked does not, so it is
    /// created and locked again.
    fn keep_lock(&mut self) -> io::Result<()> {
        let (path, lock) = &mut self.lock;
        if !path.leads_to(lock) {
            path.make_folder()?;
            let new_lock = folder::lock_file(&path.path, Duration::ZERO)?;
            *lock = new_lock.ok_or_else(|| {
                io::Error::other("its lock was removed, and another pinwise apply rules has begun")
            })?;
        }
        Ok(())
    }
}

impl processes::HeldJournal for RulesJournal {
    fn note(&mut self, held: &RuledProcess) -> io::Result<()> {
        self.keep_lock()?;
        let line = JournalLine::Made(number(held.process), Entry::Held(held.clone()));
        self.writer.commit(line).map_err(|error| match error {
            LedgerError::Unwritten { reason, .. } | LedgerError::Unguarded(reason) => reason,
            other => io::Error::other(other),
        })
    }

    fn forget(&mut self, process: i32, start: u64) -> io::Result<()> {
        let entry = self.writer.journal.entries.get(&number(process));
        if matches!(entry, Some(Entry::Held(held)) if held.start == start) {
            self.writer.forget(number(process));
        }
        Ok(())
    }
}

/// The number of a process's entry.
fn number(process: i32) -> u64 {
    u64::from(process.unsigned_abs())
}

const fn named_path(path: PathBuf) -> JournalPath {
    let is_named = true;
    JournalPath { path, is_named }
}

/// Reads a rules journal; `None` if it does not exist yet.
fn read_rules_journal(path: &Path) -> io::Result<Option<ChangeJournal>> {
    let mut file = match folder::open_journal(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match leftover::read_journal(&mut file) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData && file.metadata()?.len() == 0 => {
            Ok(None)
        }
        Ok(other) if other.ruled_processes().count() < other.entries.len() => {
            Err(io::ErrorKind::InvalidData.into())
        }
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LeftoverState, find_leftovers};
    use super::*;
    use crate::processes::HeldJournal;
    use pinwise_topology::CpuSet;

    /// With a guardian that never reads: unit tests have many threads, and such a process must not
    /// fork.
    fn journal_without_guardian(path: PathBuf) -> RulesJournal {
        let journal = ChangeJournal::new(boot_id().unwrap(), 1);
        RulesJournal {
            lock: (
                named_path(folder::rules_lock_path(&path)),
                leftover::lock_rules_journal(&path).unwrap().unwrap(),
            ),
            writer: JournalWriter::without_guardian(named_path(path), journal),
        }
    }

    fn held_mask(process: i32, start: u64, mask: usize) -> RuledProcess {
        RuledProcess {
            masks: vec![CpuSet::single(mask)],
            nices: vec![10, -5],
            ..RuledProcess::new(process, start)
        }
    }

    #[test]
    fn the_next_process_finds_the_rules_in_force() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut journal = journal_without_guardian(path.clone());
        let found = || {
            let journal = read_rules_journal(&path).unwrap().unwrap();
            journal.ruled_processes().cloned().collect::<Vec<_>>()
        };
        journal.note(&held_mask(6, 1, 0)).unwrap();
        journal.note(&held_mask(5, 17, 1)).unwrap();
        // Another process with this id.
        journal.forget(5, 16).unwrap();
        assert_eq!(found(), [held_mask(5, 17, 1), held_mask(6, 1, 0)]);
        journal.note(&held_mask(5, 18, 2)).unwrap();
        journal.forget(6, 1).unwrap();
        assert_eq!(found(), [held_mask(5, 18, 2)]);
        journal.close();
        assert_eq!(found(), [held_mask(5, 18, 2)]);
        let mut journal = journal_without_guardian(path.clone());
        journal.note(&held_mask(7, 1, 0)).unwrap();
        journal.forget(7, 1).unwrap();
        journal.close();
        assert!(!path.exists());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests arrange files")]
    fn other_files_are_not_journals_of_rules() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        assert_eq!(read_rules_journal(&path).unwrap(), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(read_rules_journal(&path).unwrap(), None);
        for text in ["notes\n", "pinwise journal 1 b 5\nmade 1 smt-off\n"] {
            std::fs::write(&path, text).unwrap();
            let error = read_rules_journal(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }

    #[test]
    fn a_journal_in_use_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let states = |undo: bool| {
            let found = find_leftovers(&[], Some(&path), undo).into_iter();
            found.map(|left| left.state).collect::<Vec<_>>()
        };
        assert_eq!(states(true), []);
        let journal = journal_without_guardian(path.clone());
        assert_eq!(states(true), [LeftoverState::InUse]);
        drop(journal);
        assert_eq!(states(false), [LeftoverState::Left(Vec::new())]);
        assert!(path.exists());
        assert_eq!(states(true), [LeftoverState::Left(Vec::new())]);
        assert!(!path.exists());
    }
}
