//! Writes a journal: every line goes to the file, then to the guardian.

use std::fs::File;
use std::io::Write;

use super::act::System;
use super::entry::Word;
use super::file::{JournalFile, Place};
use super::journal::ChangeJournal;
use super::{LedgerError, guardian};

/// A journal is rewritten when it has this many lines …
pub(super) const LONG: usize = 4096;
/// … of which at most one in this many is in force.
const DENSITY: usize = 8;

/// A journal in force, with its file and its guardian.
#[derive(Debug)]
pub(super) struct JournalWriter {
    pub(super) file: JournalFile,
    /// Writes to it reach the guardian.
    pub(super) death_pipe: File,
    pub(super) journal: ChangeJournal,
}

impl JournalWriter {
    /// Writes the journal and starts its guardian, which holds `lock`.
    pub(super) fn start(
        place: Place,
        journal: ChangeJournal,
        system: &System,
        lock: Option<&File>,
    ) -> Result<Self, LedgerError> {
        let path = place.path.clone();
        let file = JournalFile::create(place, &journal.to_text())
            .map_err(|reason| LedgerError::Unwritten { path, reason })?;
        match guardian::start(&file.place, &journal, system, lock) {
            Ok(death_pipe) => Ok(Self {
                file,
                death_pipe,
                journal,
            }),
            Err(error) => {
                if journal.entries.is_empty() {
                    file.remove();
                }
                Err(LedgerError::Guardian(error))
            }
        }
    }

    /// With a guardian that never reads.
    #[cfg(test)]
    pub(super) fn unguarded(place: Place, journal: ChangeJournal) -> Self {
        Self {
            file: JournalFile::create(place, &journal.to_text()).unwrap(),
            death_pipe: tempfile::tempfile().unwrap(),
            journal,
        }
    }

    /// Writes a line, sends it to the guardian, and applies it.
    pub(super) fn commit(&mut self, word: Word) -> Result<(), LedgerError> {
        let is_promise = matches!(word, Word::Made(..) | Word::Kept(_));
        let is_long =
            self.file.lines > LONG && self.journal.entries.len() * DENSITY < self.file.lines;
        let is_lost = is_promise && !self.file.is_linked();
        let line = word.to_line();
        let written = match is_long || is_lost {
            true => self.file.rewrite(&self.journal.to_text()),
            false => Ok(()),
        };
        let written = written.and_then(|()| self.file.append(&line));
        written.map_err(|reason| LedgerError::Unwritten {
            path: self.file.place.path.clone(),
            reason,
        })?;
        // A living guardian empties the pipe.
        if let Err(error) = self.death_pipe.write_all(line.as_bytes()) {
            self.file.take_back(&line);
            return Err(LedgerError::Unguarded(error));
        }
        self.journal.take(word);
        Ok(())
    }

    /// Drops a change from the list.
    pub(super) fn forget(&mut self, id: u64) {
        let word = Word::Gone(id);
        if self.commit(word.clone()).is_err() {
            // A stale entry is compared before it is undone.
            self.send_to_guardian(&word.to_line());
            self.journal.take(word);
        }
    }

    /// Sends it to the guardian only.
    pub(super) fn send_to_guardian(&mut self, line: &str) {
        let _ = self.death_pipe.write_all(line.as_bytes());
    }
}
