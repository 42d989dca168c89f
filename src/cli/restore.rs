//! `restore`: what could not be put back is put back.

use std::path::{Path, PathBuf};

use super::args::RestoreArgs;
use super::terminal::Terminal;
use super::{Exit, rules};
use crate::machine::linux::{
    Leftover, LeftoverState, Outcome, RulesJournal, RulesLeft, journal_folders, leftovers,
};
use crate::stats::verdict::count;

pub(super) fn restore(args: &RestoreArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let folders = journal_folders();
    let found = leftovers(&folders, !args.dry_run);
    let mut text = String::new();
    for left in &found {
        text.push_str(&told(left, args.dry_run));
    }
    let rules = rules::default_state().and_then(|path| {
        let left = RulesJournal::finish(&path, !args.dry_run)?;
        Some((path, left))
    });
    if let Some((path, left)) = &rules {
        text.push_str(&told_of_rules(path, *left, args.dry_run));
    }
    if found.is_empty() && rules.is_none() {
        let mut places: Vec<String> = folders.iter().map(|f| f.display().to_string()).collect();
        places.extend(rules::default_state().map(|path| path.display().to_string()));
        text = format!("Nothing to restore: no journal in {}\n", places.join(", "));
    }
    terminal.print(&text)?;
    for left in &found {
        if let LeftoverState::Unreadable(reason) = &left.state {
            terminal.error(&format!("{}: {reason}", left.path.display()));
        }
    }
    let is_held = |(_, left): &(PathBuf, RulesLeft)| {
        !args.dry_run && matches!(left, RulesLeft::Left { after: 1.., .. })
    };
    Ok(
        match found.iter().any(is_open) || rules.as_ref().is_some_and(is_held) {
            true => Exit::Error,
            false => Exit::Done,
        },
    )
}

/// A line for what rules left in force.
fn told_of_rules(path: &Path, left: RulesLeft, is_dry: bool) -> String {
    let path = path.display();
    let processes = |n: usize| match n {
        1 => "1 process".to_owned(),
        n => format!("{n} processes"),
    };
    let RulesLeft::Left { before, after } = left else {
        return format!("{path}: in use by a pinwise that runs\n");
    };
    if before == 0 {
        return format!("{path}: of rules, whose processes have ended\n");
    }
    if is_dry {
        let many = processes(before);
        return format!("{path}: {many} placed by rules (would be given back)\n");
    }
    let done = processes(before.saturating_sub(after));
    let open = match after {
        0 => String::new(),
        n => format!(", {} not", processes(n)),
    };
    format!("{path}: {done} placed by rules given back{open}\n")
}

/// Was something not put back that should have been?
fn is_open(left: &Leftover) -> bool {
    let has_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
    match &left.state {
        LeftoverState::Unreadable(_) => true,
        LeftoverState::Left(all) => all.iter().any(|(_, outcome)| has_failed(outcome)),
        _ => false,
    }
}

/// A line for the journal, and one for each change.
fn told(left: &Leftover, is_dry: bool) -> String {
    let path = left.path.display();
    let changes = match &left.state {
        LeftoverState::Left(changes) => changes,
        LeftoverState::InUse => return format!("{path}: in use by a pinwise that runs\n"),
        LeftoverState::EarlierBoot => {
            let removed = if is_dry { "" } else { "; removed" };
            return format!("{path}: of an earlier boot, which its changes ended with{removed}\n");
        }
        LeftoverState::Kept => {
            let removed = if is_dry { "" } else { "; removed" };
            return format!("{path}: what it tells of was to stay{removed}\n");
        }
        LeftoverState::Unreadable(_) => return String::new(),
    };
    let mut text = format!("{path}: {}\n", count(changes.len(), "change"));
    for (entry, outcome) in changes {
        let words = match outcome {
            Outcome::Restored if is_dry => "would be put back".to_owned(),
            other => other.to_string(),
        };
        text.push_str(&format!("  {entry} ({words})\n"));
    }
    text
}

/// Tells of what an earlier pinwise left, before something is changed anew.
pub(super) fn offer(terminal: &Terminal) {
    let found = leftovers(&journal_folders(), false);
    let is_left =
        |left: &&Leftover| matches!(&left.state, LeftoverState::Left(all) if !all.is_empty());
    let left = found.iter().filter(is_left).count();
    if left > 0 {
        terminal.note(&format!(
            "{} of a pinwise that was ended before it could put everything back: pinwise restore finishes it (--dry-run shows what)",
            count(left, "journal")
        ));
    }
}
