//! Ends pinwise at a chosen moment, so that tests can show that everything is restored. Builds
//! without debug assertions do not contain it.

use std::path::Path;
use std::str::FromStr;

/// Points in the work of a ledger at which a fault can be injected.
pub const POINTS: [&str; 13] = [
    "opened",
    "before-write",
    "after-write",
    "after-change",
    "after-offline",
    "after-interrupt",
    "between-changes",
    "running",
    "before-restore",
    "after-value",
    "between-restores",
    "before-removal",
    "after-removal",
];

/// What happens at the point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FaultKind {
    Signal(libc::c_int),
    Panic,
    /// The journal cannot grow any more.
    JournalFull,
    /// The journal's folder is removed.
    FolderRemoved,
    /// The journal's folder is removed, and the process gets SIGKILL.
    FolderRemovedAndKilled,
}

/// A fault to inject, as text `POINT:KIND[:N]`. When the ledger reaches the point for the N-th
/// time, the process gets a signal (`int`, `term`, `kill`), panics (`panic`), cannot write any more
/// (`full`), or the journal's folder is removed (`vanish`; `bereft`: and the process gets SIGKILL).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    point: String,
    kind: FaultKind,
    /// Number of times that the point must still be reached.
    countdown: u32,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let (point, word) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        if !POINTS.contains(&point) {
            return Err(format!("'{point}' is none of {}", POINTS.join(", ")));
        }
        let kind = match word {
            "int" => FaultKind::Signal(libc::SIGINT),
            "term" => FaultKind::Signal(libc::SIGTERM),
            "kill" => FaultKind::Signal(libc::SIGKILL),
            "panic" => FaultKind::Panic,
            "full" => FaultKind::JournalFull,
            "vanish" => FaultKind::FolderRemoved,
            "bereft" => FaultKind::FolderRemovedAndKilled,
            _ => {
                return Err(format!(
                    "'{word}' is none of int, term, kill, panic, full, vanish, bereft"
                ));
            }
        };
        let count = parts.next().unwrap_or("1").parse();
        Ok(Self {
            point: point.to_owned(),
            kind,
            countdown: count.map_err(|_| "how often is a number".to_owned())?,
        })
    }
}

/// Triggers the fault if it is due.
#[cfg(debug_assertions)]
#[expect(clippy::panic, reason = "what is tested is that a panic undoes all")]
pub(super) fn trigger(fault: &mut Option<Fault>, point: &str, journal: &Path) {
    let Some(planned) = fault.as_mut().filter(|fault| fault.point == point) else {
        return;
    };
    planned.countdown = planned.countdown.saturating_sub(1);
    if planned.countdown > 0 {
        return;
    }
    let kind = planned.kind;
    *fault = None;
    match kind {
        FaultKind::Signal(signal) => end_by(signal),
        FaultKind::Panic => panic!("a panic for a test, {point}"),
        FaultKind::JournalFull => crate::linux::file_limit::forbid_files_to_grow(),
        FaultKind::FolderRemoved => remove_folder_of(journal),
        FaultKind::FolderRemovedAndKilled => {
            remove_folder_of(journal);
            end_by(libc::SIGKILL);
        }
    }
}

#[cfg(debug_assertions)]
fn end_by(signal: libc::c_int) {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    crate::linux::sys::kill(own, signal);
}

#[cfg(debug_assertions)]
fn remove_folder_of(journal: &Path) {
    if let Some(folder) = journal.parent() {
        let _ = std::fs::remove_dir_all(folder);
    }
}

#[cfg(not(debug_assertions))]
pub(super) fn trigger(_fault: &mut Option<Fault>, _point: &str, _journal: &Path) {}
