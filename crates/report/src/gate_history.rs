//! A benchmark over the gates of many commits, as text.

use super::style::{Palette, columns, paragraph, shortened, table, visible};
use pinwise_format::{count, percent};
use pinwise_record::{GateHistory, HistoryChange};

/// Digits of a commit that are shown.
const COMMIT_DIGITS: usize = 10;

/// The whole history for a terminal.
#[must_use]
pub fn gate_history(history: &GateHistory, palette: Palette) -> String {
    let title = format!(
        "{}: {} ({})",
        history.benchmark,
        history.metric.name,
        count(history.steps.len(), "step")
    );
    let mut text = format!(
        "{}\n{}\n\n{}\n",
        palette.strong(&shortened(&title, columns())),
        shortened(&format!("suite {}", history.suite), columns()),
        found(history, palette)
    );
    let header = ["commits", "change", "interval", "since the first", "gates"];
    let rows = history.steps.iter().map(|step| {
        vec![
            range(&step.base, &step.head),
            step.effect.text.clone(),
            step.effect.interval.clone(),
            step.since_first.with_interval(),
            step.records.len().to_string(),
        ]
    });
    text.push_str(&format!("\n{}", table(&header, rows.collect())));
    text.push_str(&format!(
        "\n{}\n",
        palette.faint(&paragraph("", "", &method(history)))
    ));
    text
}

fn found(history: &GateHistory, palette: Palette) -> String {
    if history.changes.is_empty() {
        return "No change is sure.".to_owned();
    }
    let line = |change: &HistoryChange| {
        let steps = match change.steps {
            1 => String::new(),
            steps => format!(", over {steps} steps"),
        };
        let word = visible(&change.word);
        let word = match change.word == history.metric.worse_word {
            true => palette.bad(&word),
            false => palette.good(&word),
        };
        format!(
            "{}  {word} by {}{steps}",
            range(&change.base, &change.head),
            change.effect.with_interval()
        )
    };
    let lines: Vec<String> = history.changes.iter().map(line).collect();
    lines.join("\n")
}

fn range(base: &str, head: &str) -> String {
    let short = |commit: &str| -> String { visible(commit).chars().take(COMMIT_DIGITS).collect() };
    format!("{}..{}", short(base), short(head))
}

fn method(history: &GateHistory) -> String {
    let left_out = match history.left_out {
        0 => String::new(),
        left_out => format!(
            " Left out: {} that no chain of commits joins with the newest.",
            count(left_out, "gate")
        ),
    };
    format!(
        "Every ratio was measured side by side, so that no change of a machine is in it. Error at most {} over all changes; intervals of steps are at {} each.{left_out}",
        percent(history.alpha),
        percent(1.0 - history.alpha)
    )
}
