//! `restore`: restores what could not be restored before.

use std::path::PathBuf;

use super::Exit;
use super::args::RestoreArgs;
use super::terminal::Terminal;
use pinwise_format::count;
use pinwise_machine::linux::{
    Leftover, LeftoverState, UndoOutcome, find_leftovers, journal_folders, own_user_is_root,
};

pub(super) fn restore(args: &RestoreArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let folders = journal_folders();
    let of_rules = default_rules_state();
    let found = find_leftovers(&folders, of_rules.as_deref(), !args.dry_run);
    let mut text = String::new();
    for left in &found {
        text.push_str(&message(left, args.dry_run));
    }
    if found.is_empty() {
        let places = folders.iter().chain(&of_rules);
        let places: Vec<String> = places.map(|place| place.display().to_string()).collect();
        text = format!("Nothing to restore: no journal in {}\n", places.join(", "));
    }
    terminal.print(&text)?;
    for left in &found {
        if let LeftoverState::Unreadable(reason) = &left.state {
            terminal.error(&format!("{}: {reason}", left.path.display()));
        }
    }
    Ok(match found.iter().any(is_open) {
        true => Exit::Error,
        false => Exit::Done,
    })
}

/// Was something not restored that should have been?
fn is_open(left: &Leftover) -> bool {
    let has_failed = |outcome: &UndoOutcome| matches!(outcome, UndoOutcome::Failed(_));
    match &left.state {
        LeftoverState::Unreadable(_) => true,
        LeftoverState::Left(all) => all.iter().any(|(_, outcome)| has_failed(outcome)),
        _ => false,
    }
}

/// A line for the journal, and one for each change.
fn message(left: &Leftover, is_dry: bool) -> String {
    let path = left.path.display();
    let changes = match &left.state {
        LeftoverState::Left(changes) => changes,
        LeftoverState::InUse => return format!("{path}: in use by a running pinwise\n"),
        LeftoverState::EarlierBoot => {
            let removed = if is_dry { "" } else { "; removed" };
            return format!(
                "{path}: from before the last boot, which undid its changes{removed}\n"
            );
        }
        LeftoverState::Kept => {
            let removed = if is_dry { "" } else { "; removed" };
            return format!("{path}: its changes were meant to stay{removed}\n");
        }
        LeftoverState::Unreadable(_) => return String::new(),
    };
    let mut text = format!("{path}: {}\n", count(changes.len(), "change"));
    for (entry, outcome) in changes {
        let words = match outcome {
            UndoOutcome::Restored if is_dry => "would be restored".to_owned(),
            other => other.to_string(),
        };
        text.push_str(&format!("  {entry} ({words})\n"));
    }
    text
}

/// Reports what an earlier pinwise left, before anything is changed again.
pub(super) fn offer(terminal: &Terminal) {
    let found = find_leftovers(&journal_folders(), None, false);
    let is_left =
        |left: &&Leftover| matches!(&left.state, LeftoverState::Left(all) if !all.is_empty());
    let left = found.iter().filter(is_left).count();
    if left > 0 {
        terminal.note(&format!(
            "{} left by a pinwise that was killed: run pinwise apply restore (--dry-run shows what it would restore)",
            count(left, "journal")
        ));
    }
}

/// The default file in which rules record their changes; `None` if there is none.
pub(super) fn default_rules_state() -> Option<PathBuf> {
    if own_user_is_root() {
        return Some("/run/pinwise-rules/rules".into());
    }
    #[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    Some(PathBuf::from(folder?).join("pinwise/rules"))
}
