//! Changes left in force by a ledger whose owner has ended.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::act::{System, UndoOutcome};
use super::entry::Entry;
use super::file::Place;
use super::journal::ChangeJournal;
use super::{file, folder};
use crate::linux::processes::LinuxProcesses;
use crate::linux::{boot_id, sys};
use crate::processes::{RuledProcess, restore_processes};

/// Longest journal that is read.
const MAX_JOURNAL_BYTES: u64 = 64 << 20;

/// Time for an idle writer to end.
const MOMENT: Duration = Duration::from_millis(500);

/// A journal that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The journal.
    pub path: PathBuf,
    /// What it is.
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
    /// What has to be undone, or was, and the outcomes.
    Left(Vec<(Entry, UndoOutcome)>),
    /// It cannot be read, and is left in place.
    Unreadable(String),
}

/// Examines the journals in these folders, and one of rules; `undo`: also restores what is in force
/// and removes them. A journal stays if something in it could not be restored.
#[must_use]
pub fn leftovers(folders: &[PathBuf], of_rules: Option<&Path>, undo: bool) -> Vec<Leftover> {
    let system = System::at(Path::new("/"));
    let boot = boot_id().unwrap_or_else(|| "unknown".to_owned());
    let paths = folder::list_journals(folders).into_iter();
    let own = paths.map(|path| Leftover {
        state: inspect_journal(&path, &boot, &system, undo),
        path,
    });
    let of_rules = of_rules.filter(|path| path.exists());
    let of_rules = of_rules.map(|path| Leftover {
        state: match lock_of_rules(path) {
            Ok(Some(_lock)) => inspect_journal(path, &boot, &system, undo),
            Ok(None) => LeftoverState::InUse,
            Err(error) => LeftoverState::Unreadable(error.to_string()),
        },
        path: path.to_owned(),
    });
    own.chain(of_rules).collect()
}

/// The lock of a leftover rules journal; `None` if its pinwise or guardian still runs.
pub(super) fn lock_of_rules(path: &Path) -> io::Result<Option<File>> {
    folder::lock(&folder::rules_lock(path), MOMENT)
}

fn inspect_journal(path: &Path, boot: &str, system: &System, undo: bool) -> LeftoverState {
    let mut file = match folder::open_abandoned(path) {
        Ok(Some(file)) => file,
        Ok(None) => return LeftoverState::InUse,
        Err(error) => return LeftoverState::Unreadable(error.to_string()),
    };
    let journal = match read(&mut file) {
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
        folder::remove(path);
    }
    state
}

fn predict_all(journal: &ChangeJournal, system: &System) -> Vec<(Entry, UndoOutcome)> {
    let ids = journal.undoing().into_iter();
    ids.filter_map(|id| journal.entries.get(&id))
        .map(|entry| (entry.clone(), system.predict_restore(entry)))
        .collect()
}

fn undo_all(journal: &ChangeJournal, system: &System) -> Vec<(Entry, UndoOutcome)> {
    let mut all = predict_all(journal, system);
    // Find inheritors before any process is changed.
    let held: Vec<RuledProcess> = journal.held().cloned().collect();
    if !held.is_empty() {
        give_back(&mut LinuxProcesses::open(), &held);
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

/// The guardian's work: undoes what is in force. A missing file means nothing; a journal with
/// something that could not be restored stays or is rewritten, for another try.
pub(super) fn finish(place: &Place, journal: &ChangeJournal, system: &System) {
    let file = file::open_locked(place);
    let is_done = journal.are_kept || is_finished(&undo_all(journal, system));
    match (is_done, file) {
        (true, Ok(_)) => folder::remove(&place.path),
        (false, Err(_)) => file::write_again(place, &journal.to_text()),
        _ => {}
    }
}

/// Reads a journal, which must be this user's: others may be able to write to its folder.
pub(super) fn read(file: &mut File) -> io::Result<ChangeJournal> {
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
