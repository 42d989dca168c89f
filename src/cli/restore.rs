//! `apply restore`: undoes changes that a killed pinwise left.

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
    let rules_journal = default_rules_state();
    let found = find_leftovers(&folders, rules_journal.as_deref(), !args.dry_run);
    let mut text = String::new();
    for left in &found {
        text.push_str(&describe_leftover(left, args.dry_run));
    }
    if found.is_empty() {
        let places = folders.iter().chain(&rules_journal);
        let places: Vec<String> = places.map(|place| place.display().to_string()).collect();
        text = format!("Nothing to restore: no journal in {}\n", places.join(", "));
    }
    terminal.print(&text)?;
    for left in &found {
        if let LeftoverState::Unreadable(reason) = &left.state {
            terminal.error(&format!("{}: {reason}", left.path.display()));
        }
    }
    Ok(match found.iter().any(needs_attention) {
        true => Exit::Error,
        false => Exit::Done,
    })
}

/// Did restoring fail?
fn needs_attention(left: &Leftover) -> bool {
    let has_failed = |outcome: &UndoOutcome| matches!(outcome, UndoOutcome::Failed(_));
    match &left.state {
        LeftoverState::Unreadable(_) => true,
        LeftoverState::Left(all) => all.iter().any(|(_, outcome)| has_failed(outcome)),
        _ => false,
    }
}

/// Describes a journal in a line, and each of its changes in another.
fn describe_leftover(left: &Leftover, is_dry: bool) -> String {
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

/// Notes what a killed pinwise left, before this one changes anything.
pub(super) fn note_leftovers(terminal: &Terminal) {
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

/// The default journal of rules; `None` without `XDG_RUNTIME_DIR`.
pub(super) fn default_rules_state() -> Option<PathBuf> {
    if own_user_is_root() {
        return Some("/run/pinwise-rules/rules".into());
    }
    #[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
    let folder = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    Some(PathBuf::from(folder?).join("pinwise/rules"))
}
