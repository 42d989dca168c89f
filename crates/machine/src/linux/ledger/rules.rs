//! The rules journal, which a later process may continue.
//!
//! Settings of rules can stay when their process ends, and whoever applies rules next finds them
//! here. A lock beside the file, which the guardian holds as well, excludes a second writer;
//! entries are identified by process number.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::act::System;
use super::entry::{Entry, Word};
use super::file::Place;
use super::journal::ChangeJournal;
use super::writer::JournalWriter;
use super::{LedgerError, folder, guardian, leftover};
use crate::linux::boot_id;
use crate::processes::{self, RuledProcess};

/// Time for a predecessor's guardian to restore things.
const PATIENCE: Duration = Duration::from_secs(3);

/// The journal, with its guardian.
#[derive(Debug)]
pub struct RulesJournal {
    writer: JournalWriter,
    /// Held while the journal is in use.
    lock: (Place, File),
}

impl RulesJournal {
    /// Opens or makes the journal and starts its guardian; also returns what an earlier process
    /// left in force. Call while this process has a single thread.
    ///
    /// # Errors
    /// [`LedgerError`] if the file is another one or in use, or the guardian cannot be started.
    pub fn open(path: &Path) -> Result<(Self, Vec<RuledProcess>), LedgerError> {
        let path = path.to_owned();
        let at = |reason| LedgerError::System(path.display().to_string(), reason);
        let place = place_of(path.clone());
        place.make_folder().map_err(at)?;
        let lock = lock_of(&path);
        let held = folder::lock(&lock.path, PATIENCE).map_err(at)?;
        let held = held.ok_or_else(|| LedgerError::RulesInUse(path.clone()))?;
        let boot = boot_id().unwrap_or_else(|| "unknown".to_owned());
        let pid = i32::try_from(std::process::id()).unwrap_or(0);
        let mut journal = ChangeJournal::new(boot, pid);
        let before = read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => LedgerError::NotOfRules(path.clone()),
            _ => at(error),
        })?;
        if let Some(before) = before.filter(|before| before.boot == journal.boot) {
            journal.entries = before.entries;
        }
        let before = journal.held().cloned().collect();
        let system = System::at(Path::new("/"));
        let writer = JournalWriter::start(place, journal, &system, Some(&held))?;
        let lock = (lock, held);
        Ok((Self { writer, lock }, before))
    }

    /// Ends the guardian: everything was restored, or should stay.
    pub fn close(mut self) {
        self.writer.send_to_guardian(guardian::CLOSED);
        if self.writer.journal.entries.is_empty() {
            self.writer.file.remove();
        }
    }

    /// A lock file without its name excludes nobody: it is created and locked again.
    fn keep_lock(&mut self) -> io::Result<()> {
        let (place, lock) = &mut self.lock;
        if !place.leads_to(lock) {
            place.make_folder()?;
            let again = folder::lock(&place.path, Duration::ZERO)?;
            *lock = again.ok_or_else(|| {
                io::Error::other("its lock was removed, and another pinwise apply rules has begun")
            })?;
        }
        Ok(())
    }
}

impl processes::HeldJournal for RulesJournal {
    fn note(&mut self, held: &RuledProcess) -> io::Result<()> {
        self.keep_lock()?;
        let word = Word::Made(number(held.process), Entry::Held(held.clone()));
        self.writer.commit(word).map_err(|error| match error {
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

fn number(process: i32) -> u64 {
    u64::from(process.unsigned_abs())
}

const fn place_of(path: PathBuf) -> Place {
    let is_named = true;
    Place { path, is_named }
}

fn lock_of(path: &Path) -> Place {
    place_of(folder::rules_lock(path))
}

/// Reads a rules journal; `None` if there is none yet.
fn read(path: &Path) -> io::Result<Option<ChangeJournal>> {
    let mut file = match folder::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    match leftover::read(&mut file) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData && file.metadata()?.len() == 0 => {
            Ok(None)
        }
        Ok(other) if other.held().count() < other.entries.len() => {
            Err(io::ErrorKind::InvalidData.into())
        }
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{LeftoverState, leftovers};
    use super::*;
    use crate::processes::HeldJournal;
    use pinwise_topology::CpuSet;

    /// With a guardian that never reads: unit tests have many threads, and such a process must not
    /// fork.
    fn journal_without_guardian(path: PathBuf) -> RulesJournal {
        let journal = ChangeJournal::new(boot_id().unwrap(), 1);
        RulesJournal {
            lock: (
                lock_of(&path),
                leftover::lock_of_rules(&path).unwrap().unwrap(),
            ),
            writer: JournalWriter::unguarded(place_of(path), journal),
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
            let journal = read(&path).unwrap().unwrap();
            journal.held().cloned().collect::<Vec<_>>()
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
        assert_eq!(read(&path).unwrap(), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(read(&path).unwrap(), None);
        for text in ["notes\n", "pinwise journal 1 b 5\nmade 1 smt-off\n"] {
            std::fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text}");
        }
    }

    #[test]
    fn a_journal_in_use_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let states = |undo: bool| {
            let found = leftovers(&[], Some(&path), undo).into_iter();
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
