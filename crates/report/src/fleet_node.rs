//! The plan of a fleet, and the results of one of its nodes, as text.

use std::collections::BTreeMap;

use super::Palette;
use super::comparison::render_answer;
use super::style::{paragraph, quantity, table};
use pinwise_format::{count, grouped, seconds};
use pinwise_record::{CLOCK_TOLERANCE_S, FleetNode, FleetRecord, NodeStep, StepChange, StepState};

/// The most names in one line.
const MAX_NAMES: usize = 8;

/// The plan of a fleet.
#[must_use]
pub fn render_fleet_plan(record: &FleetRecord, palette: Palette) -> String {
    let request = format!(
        "Fleet {}: {} requested via {}",
        record.id,
        count(record.asked, "node"),
        record.launcher
    );
    let mut out = palette.strong(&paragraph("", "  ", &request)) + "\n";
    let from = format!(
        "Submitted {} from {}, pinwise {}.",
        record.started, record.host, record.pinwise_version
    );
    out += &format_line("  ", &from);
    if let Some(folder) = &record.folder {
        out += &format_line("  ", &format!("Folder: {folder}"));
    }
    if !record.jobs.is_empty() {
        let jobs: Vec<&str> = record.jobs.iter().map(|job| job.id.as_str()).collect();
        out += &format_line("  ", &format!("Jobs: {}", join_names(&jobs)));
    }
    if !record.nodes.is_empty() {
        let names: Vec<&str> = record.nodes.iter().map(String::as_str).collect();
        out += &format_line("  ", &format!("Nodes: {}", join_names(&names)));
    }
    for why in &record.left_out {
        out += &format_line("  ", &format!("Not included: {why}"));
    }
    out += "\nEvery node runs:\n";
    for step in &record.steps {
        let words = step.arguments.join(" ");
        let limit = step
            .timeout_s
            .map_or(String::new(), |s| format!(" (at most {})", seconds(s)));
        out += &format_line("  ", &format!("{}: pinwise {words}{limit}", step.name));
    }
    out + &describe_planted(record)
}

/// Lists the planted faults of a simulated fleet by kind.
fn describe_planted(record: &FleetRecord) -> String {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for fault in &record.planted {
        kinds.entry(&fault.fault).or_default().push(&fault.node);
    }
    if kinds.is_empty() {
        return String::new();
    }
    let mut out = "\nPlanted faults of this simulated fleet:\n".to_owned();
    for (fault, nodes) in kinds {
        let shown = format!(
            "{fault}: {} ({})",
            count(nodes.len(), "node"),
            join_names(&nodes)
        );
        out += &format_line("  ", &shown);
    }
    out
}

/// What a node of a fleet did, and the findings on it.
#[must_use]
pub fn render_fleet_node(record: &FleetNode, palette: Palette) -> String {
    let title = format!("Node {} of fleet {}", record.node, record.fleet);
    let mut out = palette.strong(&paragraph("", "  ", &title)) + "\n";
    if let Some(host) = &record.host {
        let model = host.machine.cpu_model.as_deref().unwrap_or("unknown CPU");
        out += &format_line("  ", &format!("{model}, {} CPUs", host.counts.cpus));
    }
    let attempts = match record.attempts {
        1 => String::new(),
        many => format!(", {many} attempts"),
    };
    let began = format!("Started {} by its own clock{attempts}.", record.started);
    out += &format_line("  ", &began);
    if let Some(ahead) = record
        .clock_ahead_s
        .filter(|s| s.abs() >= CLOCK_TOLERANCE_S)
    {
        let way = if ahead > 0.0 { "ahead" } else { "behind" };
        out += &format_line(
            "  ",
            &format!("Its clock is {} {way}.", seconds(ahead.abs())),
        );
    }
    if !record.steps.is_empty() {
        out += "\nSteps\n";
        out += &table(
            &["step", "state", "took", "record or reason"],
            format_step_rows(&record.steps),
        );
    }
    let changes: Vec<_> = record.steps.iter().flat_map(list_changes).collect();
    if !changes.is_empty() {
        out += "\nChanges\n";
        out += &table(&["step", "change of", "change", "interval", ""], changes);
    }
    if !record.figures.is_empty() {
        out += "\nFigures\n";
        out += &table(
            &["step", "figure", "value", "interval"],
            format_figure_rows(record),
        );
    }
    if !record.settings.is_empty() {
        out += "\nSettings\n";
        for (name, value) in &record.settings {
            out += &format_line("  ", &format!("{name}: {value}"));
        }
    }
    out + &render_answer(&record.answer, palette)
}

/// What a step compared, a row each.
fn list_changes(step: &NodeStep) -> impl Iterator<Item = Vec<String>> {
    step.changes.iter().map(|change| {
        let StepChange {
            of,
            change,
            interval,
            standing,
        } = change.clone();
        vec![step.name.clone(), of, change, interval, standing]
    })
}

fn format_step_rows(steps: &[NodeStep]) -> Vec<Vec<String>> {
    let row = |step: &NodeStep| {
        let state = match step.state {
            StepState::Done => "done",
            StepState::Failed => "failed",
            StepState::Missing => "missing",
        };
        let shown = step.why.as_ref().or(step.record.as_ref());
        vec![
            step.name.clone(),
            state.to_owned(),
            step.elapsed_s.map_or("–".to_owned(), seconds),
            shown.cloned().unwrap_or_default(),
        ]
    };
    steps.iter().map(row).collect()
}

fn format_figure_rows(record: &FleetNode) -> Vec<Vec<String>> {
    let figures = record.figures.iter().map(|figure| {
        let shown = |value: f64| quantity(value, &figure.unit);
        let interval = figure
            .low
            .zip(figure.high)
            .map_or("–".to_owned(), |(low, high)| {
                format!("{} to {}", shown(low), shown(high))
            });
        vec![
            figure.step.clone(),
            figure.name.clone(),
            shown(figure.value),
            interval,
        ]
    });
    figures.collect()
}

fn format_line(indent: &str, text: &str) -> String {
    paragraph(indent, "    ", text) + "\n"
}

/// Joins the first names, and says how many more there are.
fn join_names(names: &[&str]) -> String {
    let first = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => first,
        more => format!("{first} and {} more", grouped(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::{Answer, FleetJob, FleetStep, Header, NodeFigure, PlantedFault};

    const HOSTILE: &str = "n1\u{1b}[2J\u{7}";

    fn plan() -> FleetRecord {
        let planted = |node: &str| PlantedFault {
            node: node.to_owned(),
            fault: "smt-off".to_owned(),
        };
        FleetRecord {
            header: Header {
                pinwise_version: "1.0".to_owned(),
                ..Header::new("f", "2026-11-22T10:00:00Z", Vec::new())
            },
            host: "head".to_owned(),
            user: None,
            launcher: "slurm".to_owned(),
            steps: vec![FleetStep {
                name: "wiring".to_owned(),
                arguments: vec!["topology".to_owned(), "--measure".to_owned()],
                timeout_s: Some(600.0),
            }],
            nodes: (1..=12).map(|n| format!("n{n}")).collect(),
            asked: 12_000,
            folder: Some("/shared/f".to_owned()),
            jobs: vec![FleetJob {
                id: "17".to_owned(),
                node: None,
                submitted: String::new(),
            }],
            left_out: vec!["n13: drained".to_owned()],
            planted: vec![planted("n3"), planted("n4")],
        }
    }

    fn node() -> FleetNode {
        let step = |name: &str, state, why: Option<&str>| NodeStep {
            name: name.to_owned(),
            state,
            record: why.is_none().then(|| format!("f.n1.{name}")),
            attempt: 1,
            verdict: None,
            changes: Vec::new(),
            why: why.map(str::to_owned),
            elapsed_s: Some(12.0),
        };
        FleetNode {
            header: Header::new("f.n1", "2026-11-22T10:00:00Z", Vec::new()),
            fleet: "f".to_owned(),
            node: HOSTILE.to_owned(),
            ended: None,
            attempts: 2,
            host: None,
            settings: BTreeMap::from([("smt".to_owned(), HOSTILE.to_owned())]),
            steps: vec![
                step("wiring", StepState::Done, None),
                step("kernels", StepState::Failed, Some(HOSTILE)),
            ],
            figures: vec![NodeFigure {
                step: "wiring".to_owned(),
                name: HOSTILE.to_owned(),
                unit: HOSTILE.to_owned(),
                value: 90.0,
                low: Some(88.0),
                high: Some(91.0),
            }],
            clock_ahead_s: Some(-4.0),
            answer: Answer::default(),
        }
    }

    #[test]
    fn a_plan_lists_nodes_jobs_steps_and_faults() {
        let text = render_fleet_plan(&plan(), Palette::default());
        for words in [
            "Fleet f: 12,000 nodes requested via slurm",
            "Nodes: n1, n2, n3, n4, n5, n6, n7, n8 and 4 more",
            "Not included: n13: drained",
            "wiring: pinwise topology --measure (at most 600 s)",
            "smt-off: 2 nodes (n3, n4)",
            "Jobs: 17",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn a_node_shows_its_steps_and_no_control_characters() {
        let mut node = node();
        node.conclude();
        let text = render_fleet_node(&node, Palette::default());
        for words in [
            "of fleet f",
            "1 of 2 steps done; failed: kernels.\n→ Submit what is missing: pinwise fleet resume f",
            "2 attempts",
            "Its clock is 4.00 s behind.",
            "f.n1.wiring",
            "failed",
            "88.0",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text}");
    }
}
