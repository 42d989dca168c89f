//! The state of a fleet's nodes, as a table.

use super::style::{paragraph, shorten, table};
use super::{Palette, visible};
use pinwise_record::{FleetStatus, NodeStatus};

/// The most columns of a node's name.
const MAX_NAME_WIDTH: usize = 36;
/// The most nodes that are listed.
const MAX_SHOWN: usize = 1000;

/// A fleet's status for people.
#[must_use]
pub fn render_fleet_status(status: &FleetStatus, palette: Palette) -> String {
    let counts = [
        (status.done, "done"),
        (status.running, "running"),
        (status.queued, "queued"),
        (status.failed, "failed"),
        (status.missing, "missing"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let mut text = format!(
        "Fleet {}: {} of {} asked.\n\n",
        palette.strong(&visible(&status.fleet)),
        counts.join(", "),
        status.asked
    );
    text.push_str(&format_nodes_table(status));
    if status.nodes.len() > MAX_SHOWN {
        let more = status.nodes.len() - MAX_SHOWN;
        text.push_str(&format!("… and {more} more (--format json has all)\n"));
    }
    for note in &status.notes {
        text.push('\n');
        text.push_str(&paragraph("", "", note));
        text.push('\n');
    }
    text
}

/// A row for each node, with its step and reason below it.
fn format_nodes_table(status: &FleetStatus) -> String {
    let shown = || status.nodes.iter().take(MAX_SHOWN);
    if status.nodes.is_empty() {
        return String::new();
    }
    let row = |node: &NodeStatus| {
        let since = node.since.as_deref().map(visible).unwrap_or_default();
        vec![
            shorten(&visible(&node.node), MAX_NAME_WIDTH),
            node.state.name().to_owned(),
            format!("{}/{}", node.done, status.steps),
            shorten(&since, MAX_NAME_WIDTH),
        ]
    };
    let header = ["Node", "State", "Steps", "Since"];
    let lines = table(&header, shown().map(row).collect());
    let mut lines = lines.lines();
    let mut text = lines.next().map(|l| format!("{l}\n")).unwrap_or_default();
    for (line, node) in lines.zip(shown()) {
        text.push_str(line);
        text.push('\n');
        let reason = format_step_and_reason(node);
        if !reason.is_empty() {
            text.push_str(&paragraph("      ", "      ", &reason));
            text.push('\n');
        }
    }
    text
}

fn format_step_and_reason(node: &NodeStatus) -> String {
    let words = [node.step.as_deref(), node.why.as_deref()];
    let words: Vec<String> = words.into_iter().flatten().map(visible).collect();
    words.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::NodeState;

    #[test]
    fn hostile_words_are_made_visible_and_lines_are_short() {
        let node = NodeStatus {
            node: "n1".to_owned(),
            state: NodeState::Failed,
            done: 1,
            step: Some("wiring".to_owned()),
            since: Some("2026-01-01T00:00:00Z".to_owned()),
            why: Some(format!("\u{1b}[2J{}", "no space left ".repeat(9))),
            job: None,
            attempts: 2,
            clock_ahead_s: Some(3600.0),
        };
        let status = FleetStatus {
            fleet: "f".to_owned(),
            at: String::new(),
            asked: 2,
            steps: 3,
            done: 0,
            running: 0,
            queued: 0,
            failed: 1,
            missing: 1,
            nodes: vec![node],
            notes: vec!["a note\u{1b}[1m".to_owned()],
        };
        let text = render_fleet_status(&status, Palette::new(false));
        assert!(!text.contains('\u{1b}'), "{text}");
        assert!(
            text.starts_with("Fleet f: 1 failed, 1 missing of 2 asked.\n"),
            "{text}"
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
}
