//! A benchmark's trend over the gates of many commits, as text.

use super::style::{Palette, columns, paragraph, shorten, table, visible};
use pinwise_format::count;
use pinwise_record::{GateHistory, HistoryChange};

/// The number of digits of a commit that are shown.
const COMMIT_DIGITS: usize = 10;

/// The whole history for a terminal.
#[must_use]
pub fn render_gate_history(history: &GateHistory, palette: Palette) -> String {
    let title = format!(
        "{}: {} ({})",
        history.benchmark,
        history.metric.short_name(),
        count(history.steps.len(), "step")
    );
    let mut text = format!(
        "{}\n{}\n\n{}\n",
        palette.strong(&shorten(&title, columns())),
        shorten(&format!("suite {}", history.suite), columns()),
        list_changes(history, palette)
    );
    let header = ["commits", "change", "interval", "since the first", "gates"];
    let rows = history.steps.iter().map(|step| {
        vec![
            format_range(&step.base, &step.head),
            step.effect.text.clone(),
            step.effect.interval.clone(),
            step.since_first.describe_with_interval(),
            step.records.len().to_string(),
        ]
    });
    text.push_str(&format!("\n{}", table(&header, rows.collect())));
    text.push_str(&format!(
        "\n{}\n",
        palette.faint(&paragraph("", "", &history.method))
    ));
    text
}

fn list_changes(history: &GateHistory, palette: Palette) -> String {
    if history.changes.is_empty() {
        return history.sentence.clone();
    }
    let line = |change: &HistoryChange| {
        let sentence = visible(&change.sentence);
        let sentence = match change.is_worse {
            true => palette.bad(&sentence),
            false => palette.good(&sentence),
        };
        format!("{}  {sentence}", format_range(&change.base, &change.head))
    };
    let lines: Vec<String> = history.changes.iter().map(line).collect();
    lines.join("\n")
}

fn format_range(base: &str, head: &str) -> String {
    let short = |commit: &str| -> String { visible(commit).chars().take(COMMIT_DIGITS).collect() };
    format!("{}..{}", short(base), short(head))
}
