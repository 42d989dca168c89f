//! The differences between two machines, as text.

use super::style::{Palette, paragraph};
use pinwise_format::count;
use pinwise_record::TopologyDiff;

/// The differences for a terminal, the most important first.
#[must_use]
pub fn render_topology_diff(record: &TopologyDiff, palette: Palette) -> String {
    let mut text = String::new();
    for (side, name) in ["A", "B"].into_iter().zip(&record.between) {
        let line = paragraph(&format!("{side}: "), "   ", name);
        text.push_str(&format!("{}\n", palette.faint(&line)));
    }
    text.push('\n');
    if record.differences.is_empty() {
        text.push_str(&palette.good("No difference."));
    } else {
        let heading = count(record.differences.len(), "difference");
        text.push_str(&palette.strong(&heading));
    }
    text.push('\n');
    for difference in &record.differences {
        let line = paragraph("  • ", "    ", &difference.sentence);
        text.push_str(&format!("{line}\n"));
    }
    for sentence in &record.not_compared {
        let line = paragraph("  ! ", "    ", sentence);
        text.push_str(&format!("{}\n", palette.warn(&line)));
    }
    text
}
