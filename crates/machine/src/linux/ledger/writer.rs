//! Writes a journal: every line goes to the file, then to the guardian.

use std::fs::File;
use std::io::Write;

use super::act::System;
use super::entry::JournalLine;
use super::file::{JournalFile, JournalPath};
use super::journal::ChangeJournal;
use super::{LedgerError, guardian};

/// A journal with more lines than this is written anew if few of them are in force.
pub(super) const LONG: usize = 4096;
/// Few are in force if it is less than one line in this many.
const DENSITY: usize = 8;

/// A journal in force, with its file and its guardian.
#[derive(Debug)]
pub(super) struct JournalWriter {
    pub(super) file: JournalFile,
    /// Lines written here reach the guardian, which wakes when the pipe is closed.
    pub(super) death_pipe: File,
    pub(super) journal: ChangeJournal,
}

impl JournalWriter {
    /// Writes the journal and starts its guardian, which holds `lock`.
    pub(super) fn start(
        journal_path: JournalPath,
        journal: ChangeJournal,
        system: &System,
        lock: Option<&File>,
    ) -> Result<Self, LedgerError> {
        let path = journal_path.path.clone();
        let file = JournalFile::create(journal_path, &journal.to_text())
            .map_err(|reason| LedgerError::Unwritten { path, reason })?;
        match guardian::start(&file.path, &journal, system, lock) {
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

    /// Makes a writer without a guardian.
    #[cfg(test)]
    pub(super) fn without_guardian(path: JournalPath, journal: ChangeJournal) -> Self {
        Self {
            file: JournalFile::create(path, &journal.to_text()).unwrap(),
            death_pipe: tempfile::tempfile().unwrap(),
            journal,
        }
    }

    /// Writes a line, sends it to the guardian, and applies it.
    pub(super) fn commit(&mut self, line: JournalLine) -> Result<(), LedgerError> {
        // These must be on disk: a crash would otherwise leave a change that nobody can undo.
        let must_last = matches!(line, JournalLine::Made(..) | JournalLine::Kept(_));
        let is_long =
            self.file.lines > LONG && self.journal.entries.len() * DENSITY < self.file.lines;
        let is_lost = must_last && !self.file.is_linked();
        let text = line.to_line();
        let written = match is_long || is_lost {
            true => self.file.rewrite(&self.journal.to_text()),
            false => Ok(()),
        };
        let written = written.and_then(|()| self.file.append(&text));
        written.map_err(|reason| LedgerError::Unwritten {
            path: self.file.path.path.clone(),
            reason,
        })?;
        // This fails if the guardian has ended; a running one empties the pipe.
        if let Err(error) = self.death_pipe.write_all(text.as_bytes()) {
            self.file.remove_last_line(&text);
            return Err(LedgerError::Unguarded(error));
        }
        self.journal.apply(line);
        Ok(())
    }

    /// Drops a change from the list.
    pub(super) fn forget(&mut self, id: u64) {
        let line = JournalLine::Gone(id);
        if self.commit(line.clone()).is_err() {
            // A stale entry in the file does no harm: values are compared before they are restored.
            self.send_to_guardian(&line.to_line());
            self.journal.apply(line);
        }
    }

    /// Sends a line to the guardian only.
    pub(super) fn send_to_guardian(&mut self, line: &str) {
        let _ = self.death_pipe.write_all(line.as_bytes());
    }
}
