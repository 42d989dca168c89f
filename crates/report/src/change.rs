//! The differences between two records, as text.

use super::style::{Palette, paragraph, quantity, shorten, table};
use pinwise_record::{ChangeVerdict, ComparedRecord, DiffRecord, FigureChange};

/// The most columns of a figure's name in the table.
const WIDEST_NAME: usize = 18;

/// The differences for a terminal: machines first, then figures, then caveats.
#[must_use]
pub fn render_record_diff(record: &DiffRecord, palette: Palette) -> String {
    let mut text = format!(
        "{}{}\n",
        describe_side("A", &record.a, palette),
        describe_side("B", &record.b, palette)
    );
    for change in &record.machine_changes {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let line = format!(
            "{}: {} in A, {} in B",
            change.what,
            value(&change.a),
            value(&change.b)
        );
        text.push_str(&format!(
            "{}\n",
            palette.warn(&paragraph("  ! ", "    ", &line))
        ));
    }
    if !record.machine_changes.is_empty() {
        text.push('\n');
    }
    text.push_str(&format!(
        "{}\n\n",
        palette.strong(&paragraph("", "", &record.sentence))
    ));
    text.push_str(&format_figures_table(&record.figures));
    text.push('\n');
    if record.figures.len() > 1 {
        for figure in &record.figures {
            text.push_str(&format!("{}\n", paint_sentence(figure, palette)));
        }
    }
    for caveat in &record.caveats {
        text.push_str(&format!(
            "{}\n",
            palette.faint(&paragraph("  note: ", "        ", caveat))
        ));
    }
    text
}

fn describe_side(letter: &str, side: &ComparedRecord, palette: Palette) -> String {
    let line = format!("{}  {}  {}", side.id, side.host, side.title);
    format!(
        "{}\n",
        palette.faint(&paragraph(&format!("{letter}: "), "   ", &line))
    )
}

fn format_figures_table(figures: &[FigureChange]) -> String {
    let rows = figures.iter().map(|figure| {
        let ratio =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |v| format!("{v:.4}"));
        let value = |value: Option<f64>| match (&figure.over, value) {
            (None, Some(value)) => quantity(value, &figure.unit),
            _ => ratio(value),
        };
        let interval = match (figure.low, figure.high) {
            (Some(low), Some(high)) => format!("{low:.4}–{high:.4}"),
            _ => "–".to_owned(),
        };
        vec![
            shorten(&figure.name, WIDEST_NAME),
            value(figure.a),
            value(figure.b),
            ratio(figure.ratio),
            interval,
            name_verdict(figure.verdict).to_owned(),
        ]
    });
    table(&["", "A", "B", "B/A", "interval", "B is"], rows.collect())
}

const fn name_verdict(verdict: ChangeVerdict) -> &'static str {
    match verdict {
        ChangeVerdict::Lower => "lower",
        ChangeVerdict::Higher => "higher",
        ChangeVerdict::Same => "the same",
        ChangeVerdict::CannotTell => "inconclusive",
    }
}

/// Highlights a figure that changed. Not green or red: whether a change is good depends on
/// the metric.
fn paint_sentence(figure: &FigureChange, palette: Palette) -> String {
    let line = paragraph("  • ", "    ", &figure.sentence);
    match figure.verdict {
        ChangeVerdict::Lower | ChangeVerdict::Higher => palette.strong(&line),
        ChangeVerdict::Same => line,
        ChangeVerdict::CannotTell => palette.faint(&line),
    }
}
