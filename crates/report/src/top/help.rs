//! The help page: keys and column headings.

use super::{Piece, Row, Size, Tone};

const KEYS: [(&str, &str); 14] = [
    ("q Esc Ctrl-C", "quit; pins are undone"),
    ("arrows PgUp PgDn", "move (Home, End: first, last)"),
    ("Tab", "arrows move the CPUs, or the threads again"),
    ("s, < >", "sort by cpu, migrations, wait, place, name"),
    (
        "f, /",
        "only threads whose name contains a text; Esc clears",
    ),
    ("p", "pin the selected thread: CPUs (0-3,8) or a placement"),
    ("u", "undo the last pin"),
    ("P", "keep pins on quit, or undo them"),
    ("space", "pause and resume"),
    ("+ -", "longer and shorter interval"),
    ("?", "this page, and back"),
    ("", ""),
    ("CPUs", ". idle  1-9 tenths busy  # full  ? unknown"),
    ("", "siblings are adjacent, [ ] where both are busy"),
];

const WORDS: [(&str, &str); 5] = [
    (
        "ON",
        "R runs, r runs or is queued, Q queued, S sleeps, X ended",
    ),
    ("WAIT%", "queued; without wake-ups only after a preemption"),
    ("USED", "CPUs used: 1-9 tenths, # always, - forbidden"),
    (
        "shared",
        "cores with two or more busy CPUs, while others idle",
    ),
    (
        "mean",
        "the same over the interval; avoidable: both at once",
    ),
];

pub(super) fn make_help_rows(size: Size) -> Vec<Row> {
    let first = if size.width < 50 { 6 } else { 18 };
    let row = |(key, words): (&str, &str)| {
        vec![
            Piece::new(super::cut::pad_left_aligned(key, first), Tone::Strong),
            Piece::plain(format!(" {words}")),
        ]
    };
    let mut rows = vec![vec![Piece::new("keys of pinwise top", Tone::Strong)]];
    rows.extend(KEYS.into_iter().map(row));
    rows.extend(WORDS.into_iter().map(row));
    rows
}
