//! Levels inferred from a recorded matrix, as text.

use super::measured::{Levels, list_levels};
use super::style::Palette;
use pinwise_format::count;
use pinwise_record::ReplayRecord;

/// The levels inferred from a matrix, for a terminal.
#[must_use]
pub fn render_replay(record: &ReplayRecord, palette: Palette) -> String {
    let cpus = count(record.cpus, "CPU");
    let heading = palette.strong(&format!("Wiring of {cpus}, from latency alone"));
    let found = Levels {
        levels: &record.levels,
        flat: record.flat,
        cannot_tell: record.cannot_tell.as_deref(),
        notes: &record.notes,
    };
    format!("{heading}\n{}", list_levels(&found, palette))
}
