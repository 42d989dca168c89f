//! Ends pinwise at a chosen moment, so that tests can show that everything is restored. Builds
//! without debug assertions do not contain it.

use std::path::Path;
use std::str::FromStr;

/// Moments in the life of a ledger.
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

/// What happens at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Blow {
    Signal(libc::c_int),
    Panic,
    /// The journal cannot grow any more.
    Full,
    /// The journal's folder is removed.
    Vanish,
    /// The same, and the process gets SIGKILL.
    Bereft,
}

/// `POINT:KIND[:N]`: the N-th time that the ledger reaches the point, the process gets a signal
/// (`int`, `term`, `kill`), panics, cannot write any longer (`full`), or the journal's folder is removed
/// (`vanish`; with SIGKILL: `bereft`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    point: String,
    blow: Blow,
    left: u32,
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let (point, kind) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        if !POINTS.contains(&point) {
            return Err(format!("'{point}' is none of {}", POINTS.join(", ")));
        }
        let blow = match kind {
            "int" => Blow::Signal(libc::SIGINT),
            "term" => Blow::Signal(libc::SIGTERM),
            "kill" => Blow::Signal(libc::SIGKILL),
            "panic" => Blow::Panic,
            "full" => Blow::Full,
            "vanish" => Blow::Vanish,
            "bereft" => Blow::Bereft,
            _ => {
                return Err(format!(
                    "'{kind}' is none of int, term, kill, panic, full, vanish, bereft"
                ));
            }
        };
        let left = parts.next().unwrap_or("1").parse();
        Ok(Self {
            point: point.to_owned(),
            blow,
            left: left.map_err(|_| "how often is a number".to_owned())?,
        })
    }
}

/// Triggers the fault if it is due.
#[cfg(debug_assertions)]
#[expect(clippy::panic, reason = "what is tested is that a panic undoes all")]
pub(super) fn pass(fault: &mut Option<Fault>, point: &str, journal: &Path) {
    let Some(planned) = fault.as_mut().filter(|fault| fault.point == point) else {
        return;
    };
    planned.left = planned.left.saturating_sub(1);
    if planned.left > 0 {
        return;
    }
    let blow = planned.blow;
    *fault = None;
    match blow {
        Blow::Signal(signal) => end_by(signal),
        Blow::Panic => panic!("a panic for a test, {point}"),
        Blow::Full => crate::linux::file_limit::forbid_files_to_grow(),
        Blow::Vanish => remove_folder_of(journal),
        Blow::Bereft => {
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
pub(super) fn pass(_fault: &mut Option<Fault>, _point: &str, _journal: &Path) {}
