//! Finds and undoes changes that are still in force although their ledger's process has ended.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::act::{System, UndoOutcome};
use super::entry::Entry;
use super::file::JournalPath;
use super::journal::ChangeJournal;
use super::{file, folder};
use crate::linux::processes::LinuxProcesses;
use crate::linux::{boot_id, sys};
use crate::processes::{RuledProcess, restore_processes};

/// Longest journal that is read.
const MAX_JOURNAL_BYTES: u64 = 64 << 20;

/// Time for a writer that is just ending to release its lock.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// A journal that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The journal.
    pub path: PathBuf,
    /// Its state.
    pub state: LeftoverState,
}

/// The state of a found journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftoverState {
    /// Its writer or guardian still runs.
    InUse,
    /// From an earlier boot, which ended all its changes.
    EarlierBoot,
    /// Its changes should stay: nothing to undo.
    Kept,
    /// Its changes with the outcome of undoing each, or the predicted outcome.
    Left(Vec<(Entry, UndoOutcome)>),
    /// It cannot be read, and is left in place.
    Unreadable(String),
}

/// Examines the journals in these folders, and the journal of rules. With `undo`, it also undoes
/// their changes and removes the journals; a journal stays if something in it could not be
/// restored.
#[must_use]
pub fn find_leftovers(
    folders: &[PathBuf],
    rules_journal: Option<&Path>,
    undo: bool,
) -> Vec<Leftover> {
    let system = System::at(Path::new("/"));
    let boot = boot_id().unwrap_or_else(|| "unknown".to_owned());
    let paths = folder::list_journals(folders).into_iter();
    let own = paths.map(|path| Leftover {
        state: inspect_journal(&path, &boot, &system, undo),
        path,
    });
    let rules_journal = rules_journal.filter(|path| path.exists());
    let of_rules = rules_journal.map(|path| Leftover {
        state: match lock_rules_journal(path) {
            Ok(Some(_lock)) => inspect_journal(path, &boot, &system, undo),
            Ok(None) => LeftoverState::InUse,
            Err(error) => LeftoverState::Unreadable(error.to_string()),
        },
        path: path.to_owned(),
    });
    own.chain(of_rules).collect()
}

/// Locks a leftover rules journal; `None` if its pinwise or guardian still runs.
pub(super) fn lock_rules_journal(path: &Path) -> io::Result<Option<File>> {
    folder::lock_file(&folder::rules_lock_path(path), LOCK_TIMEOUT)
}

fn inspect_journal(path: &Path, boot: &str, system: &System, undo: bool) -> LeftoverState {
    let mut file = match folder::open_abandoned(path) {
        Ok(Some(file)) => file,
        Ok(None) => return LeftoverState::InUse,
        Err(error) => return LeftoverState::Unreadable(error.to_string()),
    };
    let journal = match read_journal(&mut file) {
        Ok(journal) => journal,
        Err(error) => return LeftoverState::Unreadable(error.to_string()),
    };
    let (state, is_done) = if journal.boot != boot {
        (LeftoverState::EarlierBoot, true)
    } else if journal.are_kept {
        (LeftoverState::Kept, true)
    } else if undo {
        let outcomes = undo_all(&journal, system);
        let is_done = is_finished(&outcomes);
        (LeftoverState::Left(outcomes), is_done)
    } else {
        (LeftoverState::Left(predict_all(&journal, system)), false)
    };
    if undo && is_done {
        folder::remove_file(path);
    }
    state
}

fn predict_all(journal: &ChangeJournal, system: &System) -> Vec<(Entry, UndoOutcome)> {
    let ids = journal.undo_order().into_iter();
    ids.filter_map(|id| journal.entries.get(&id))
        .map(|entry| (entry.clone(), system.predict_restore(entry)))
        .collect()
}

fn undo_all(journal: &ChangeJournal, system: &System) -> Vec<(Entry, UndoOutcome)> {
    let mut all = predict_all(journal, system);
    // All at once, so that inheritors are found before any process is changed.
    let ruled: Vec<RuledProcess> = journal.ruled_processes().cloned().collect();
    if !ruled.is_empty() {
        restore_processes(&mut LinuxProcesses::open(), &ruled);
    }
    for (entry, outcome) in &mut all {
        *outcome = match system.restore(entry) {
            UndoOutcome::AsBefore if *outcome == UndoOutcome::Restored => UndoOutcome::Restored,
            restored => restored,
        };
    }
    all
}

fn is_finished(outcomes: &[(Entry, UndoOutcome)]) -> bool {
    let has_failed =
        |(_, outcome): &(Entry, UndoOutcome)| matches!(outcome, UndoOutcome::Failed(_));
    !outcomes.iter().any(has_failed)
}

/// Undoes the changes of a journal and removes its file, as the guardian does. It does not matter
/// whether the file still exists. If something could not be restored, the file stays or is written
/// again, for another try.
pub(super) fn undo_and_remove(path: &JournalPath, journal: &ChangeJournal, system: &System) {
    let file = file::open_locked(path);
    let is_done = journal.are_kept || is_finished(&undo_all(journal, system));
    match (is_done, file) {
        (true, Ok(_)) => folder::remove_file(&path.path),
        (false, Err(_)) => file::recreate(path, &journal.to_text()),
        _ => {}
    }
}

/// Reads a journal, which must belong to this user: others may be able to write to its folder.
pub(super) fn read_journal(file: &mut File) -> io::Result<ChangeJournal> {
    if file.metadata()?.uid() != sys::effective_user() {
        let reason = "it belongs to another user";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, reason));
    }
    let mut bytes = Vec::new();
    Read::by_ref(file)
        .take(MAX_JOURNAL_BYTES)
        .read_to_end(&mut bytes)?;
    let journal = ChangeJournal::parse(&String::from_utf8_lossy(&bytes));
    journal.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "this is not a journal"))
}
