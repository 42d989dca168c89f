//! The differences between two machines, as text.

use super::comparison::next_step;
use super::style::{Palette, paragraph, visible};
use pinwise_format::count;
use pinwise_record::TopologyDiff;

/// The differences for a terminal, the most important first.
#[must_use]
pub fn render_topology_diff(record: &TopologyDiff, palette: Palette) -> String {
    let mut text = String::new();
    let sides = record.between.iter().zip(&record.hosts);
    for (side, (name, host)) in ["A", "B"].into_iter().zip(sides) {
        let host = host.iter().map(|host| format!("{host}, "));
        let named = host.collect::<String>() + name;
        let line = paragraph(&format!("{side}: "), "   ", &named);
        text.push_str(&format!("{}\n", palette.faint(&line)));
    }
    text.push('\n');
    if record.differences.is_empty() {
        text.push_str("No difference.\n");
    } else {
        text.push_str(&format!(
            "{}\n",
            count(record.differences.len(), "difference")
        ));
    }
    for difference in &record.differences {
        let line = paragraph("  • ", "    ", &difference.sentence);
        text.push_str(&format!("{line}\n"));
    }
    for sentence in &record.not_compared {
        let line = paragraph("  ! ", "    ", sentence);
        text.push_str(&format!("{}\n", palette.warn(&line)));
    }
    let sentence = palette.strong(&paragraph("", "", &visible(&record.sentence)));
    let next = next_step(&visible(&record.advice), &[]);
    format!("{text}\n{sentence}\n{next}")
}
