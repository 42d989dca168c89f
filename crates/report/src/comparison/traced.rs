//! What the scheduler did with each arm in a traced run, as text and Markdown.

use super::super::style::{
    Palette, format_markdown_cell as cell, paragraph, shorten, table, visible,
};
use pinwise_format::seconds;
use pinwise_record::{Arm, ArmTrace, Comparison, LowerBound, MigrationCounts};

/// The most columns of an arm's name in the table.
const NAME_WIDTH: usize = 22;

/// Columns of the table, for terminals and for Markdown.
const HEADER: [&str; 7] = [
    "arm",
    "CPU time",
    "switches",
    "moves",
    "of these",
    "queued",
    "SMT, core idle",
];

/// A table and a sentence for each arm; empty without traces.
pub(super) fn describe_traces(record: &Comparison, palette: Palette) -> String {
    let arms = list_traced_arms(record);
    if arms.is_empty() {
        return String::new();
    }
    let rows = arms
        .iter()
        .map(|(arm, trace)| {
            let mut row = vec![shorten(&arm.name, NAME_WIDTH)];
            row.extend(format_trace_cells(trace));
            row
        })
        .collect();
    let title = palette.strong("What the scheduler did (one traced run each)");
    let mut text = format!("\n{title}\n{}", table(&HEADER, rows));
    for (_, trace) in arms {
        let sentences = std::iter::once(&trace.sentence).chain(&trace.notes);
        for line in sentences {
            text.push_str(&paragraph("  ", "    ", &visible(line)));
            text.push('\n');
        }
    }
    text
}

/// A Markdown table with sentences below it; empty without traces.
pub(crate) fn format_traced_arms(record: &Comparison) -> String {
    let arms = list_traced_arms(record);
    if arms.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\nWhat the scheduler did (one traced run each):\n\n| {} |\n|:---|---:|---:|---:|:---|---:|---:|\n",
        HEADER.join(" | ")
    );
    for (arm, trace) in &arms {
        let cells: Vec<String> = format_trace_cells(trace)
            .iter()
            .map(|text| cell(text))
            .collect();
        text.push_str(&format!(
            "| {} | {} |\n",
            cell(&arm.name),
            cells.join(" | ")
        ));
    }
    text.push('\n');
    for (_, trace) in arms {
        text.push_str(&format!("- {}\n", visible(&trace.sentence)));
    }
    text
}

fn list_traced_arms(record: &Comparison) -> Vec<(&Arm, &ArmTrace)> {
    let arms = record.arms.iter();
    arms.filter_map(|arm| Some((arm, arm.trace.as_ref()?)))
        .collect()
}

fn format_trace_cells(trace: &ArmTrace) -> Vec<String> {
    let (totals, sharing) = (&trace.figures.totals, &trace.figures.avoidable_smt_sharing);
    let bounded = |figure, text: String| format!("{}{text}", trace.figures.bound(figure).sign());
    vec![
        bounded(LowerBound::CpuTime, seconds(totals.cpu_s)),
        or_dash_with(totals.switches, |switches| {
            bounded(LowerBound::Switches, switches.to_string())
        }),
        bounded(
            LowerBound::Migrations,
            totals.migrations.total().to_string(),
        ),
        list_far_moves(&totals.migrations),
        or_dash_with(trace.figures.waits.total_s, |total| {
            bounded(LowerBound::Queued, seconds(total))
        }),
        or_dash_with(sharing.percent, |share| format!("{share:.1} %")),
    ]
}

fn or_dash_with<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

/// Lists moves beyond an LLC by distance, such as `LLC 20, package 3`.
fn list_far_moves(moves: &MigrationCounts) -> String {
    let far = [
        ("LLC", moves.llc),
        ("node", moves.numa),
        ("package", moves.package),
    ];
    let shown: Vec<String> = far
        .iter()
        .filter(|(_, times)| *times > 0)
        .map(|(level, times)| format!("{level} {times}"))
        .collect();
    shown.join(", ")
}
