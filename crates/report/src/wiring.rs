//! Levels found by measuring, as text. Groups are folded where there are many;
//! nothing is said here that is not in the record.

use super::style::{Palette, paragraph};
use pinwise_record::{LevelName, MeasuredLevel, ReplayRecord};

/// More groups than this are folded: the first ones, and the last.
const SHOWN_GROUPS: usize = 8;

/// What the inference says of a matrix, for a terminal.
#[must_use]
pub fn replay(record: &ReplayRecord, palette: Palette) -> String {
    let heading = format!("Wiring of {} CPUs, from latency alone", record.cpus);
    let mut text = format!("{}\n", palette.strong(&heading));
    for level in &record.levels {
        text.push('\n');
        text.push_str(&wiring_level(level, palette));
    }
    if record.flat {
        text.push_str("\nFlat: no level divides the CPUs.\n");
    }
    if let Some(reason) = &record.cannot_tell {
        let line = paragraph("", "  ", &format!("Inconclusive: {reason}"));
        text.push_str(&format!("\n{}\n", palette.warn(&line)));
    }
    if !record.notes.is_empty() {
        text.push('\n');
    }
    for note in &record.notes {
        text.push_str(&format!("{}\n", paragraph("! ", "  ", note)));
    }
    text
}

/// A level with its groups and what speaks for it.
fn wiring_level(level: &MeasuredLevel, palette: Palette) -> String {
    let what = match level.kind {
        LevelName::Smt => "SMT siblings",
        LevelName::Llc => "Last-level caches or clusters",
        LevelName::Package => "Packages or dies",
        _ => "Groups of another kind",
    };
    let heading = format!("{what} (confidence {:.2})", level.confidence);
    format!(
        "{}\n{}\n{}\n",
        palette.strong(&heading),
        paragraph("  ", "  ", &folded(&level.groups)),
        paragraph("  ", "  ", &level.evidence)
    )
}

fn folded(groups: &[String]) -> String {
    if groups.len() <= SHOWN_GROUPS {
        return groups.join("  ");
    }
    let first = groups[..SHOWN_GROUPS - 1].join("  ");
    let last = &groups[groups.len() - 1];
    format!("{first}  …  {last}  ({} in all)", groups.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(groups: usize, expected: &str) {
        let groups: Vec<String> = (0..groups).map(|g| g.to_string()).collect();
        assert_eq!(folded(&groups), expected);
    }

    #[test]
    fn many_groups_are_folded() {
        check(2, "0  1");
        check(8, "0  1  2  3  4  5  6  7");
        check(9, "0  1  2  3  4  5  6  …  8  (9 in all)");
    }
}
