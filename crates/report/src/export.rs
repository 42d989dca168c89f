//! A comparison for other programs.

use serde_json::json;

use super::comparison::{effect, interval_heading, or_dash, traced_markdown};
use super::style::{markdown_cell as cell, quantity, visible};
use super::table::{Cell, Holds, Table};
use pinwise_record::{Comparison, RunRecord};

/// The columns of [`run_cells`].
pub(super) const RUN_COLUMNS: [(&str, Holds); 21] = [
    ("phase", Holds::Text),
    ("block", Holds::Whole),
    ("order", Holds::Whole),
    ("at_s", Holds::Number),
    ("value", Holds::Number),
    ("cost", Holds::Number),
    ("wall_s", Holds::Number),
    ("user_s", Holds::Number),
    ("sys_s", Holds::Number),
    ("max_rss_bytes", Holds::Whole),
    ("exit", Holds::Whole),
    ("threads", Holds::Whole),
    ("migrations", Holds::Whole),
    ("context_switches", Holds::Whole),
    ("minor_faults", Holds::Whole),
    ("major_faults", Holds::Whole),
    ("cycles", Holds::Whole),
    ("instructions", Holds::Whole),
    ("granted_cpus", Holds::Text),
    ("foreign_cpu_s", Holds::Number),
    ("steal_s", Holds::Number),
];

/// One row per counted run.
#[must_use]
pub fn run_rows(record: &Comparison) -> Table {
    let own = [("arm", Holds::Text), ("cpus", Holds::Text)];
    let mut table = Table::new(own.into_iter().chain(RUN_COLUMNS));
    for arm in &record.arms {
        for run in &arm.runs {
            let own = [Cell::text(&arm.name), Cell::text(&arm.cpus)];
            table.push(own.into_iter().chain(run_cells(run)));
        }
    }
    table
}

/// A run as a row.
pub(super) fn run_cells(run: &RunRecord) -> [Cell; 21] {
    [
        Cell::text(format!("{:?}", run.phase).to_lowercase()),
        Cell::whole(run.block),
        Cell::whole(run.order),
        Cell::number(run.at_s),
        Cell::number(run.metric.value),
        Cell::number(run.metric.cost),
        Cell::number(run.wall_s),
        Cell::number(run.user_s),
        Cell::number(run.sys_s),
        Cell::count(run.max_rss_bytes),
        Cell::count(run.exit),
        Cell::count(run.threads),
        Cell::count(run.migrations),
        Cell::count(run.context_switches),
        Cell::count(run.minor_faults),
        Cell::count(run.major_faults),
        Cell::count(run.cycles),
        Cell::count(run.instructions),
        Cell::text(&run.granted_cpus),
        Cell::number(run.foreign_cpu_s),
        Cell::number(run.steal_s),
    ]
}

/// A Markdown table of the arms and the verdict below it.
#[must_use]
pub fn markdown(record: &Comparison) -> String {
    let mut text = format!(
        "| arm | CPUs | typical {} | against {} | {} | verdict |\n|:---|:---|---:|---:|:---|:---|\n",
        cell(&record.metric.name),
        cell(&record.baseline),
        interval_heading(record),
    );
    for arm in &record.arms {
        let typical = arm.estimate.map_or_else(
            || "–".to_owned(),
            |e| quantity(e.value, &record.metric.unit),
        );
        let [change, interval] = effect(record, arm);
        text.push_str(&format!(
            "| {} | {} | {} | {change} | {interval} | {} |\n",
            cell(&arm.name),
            cell(&arm.cpus),
            cell(&typical),
            cell(or_dash(&arm.standing))
        ));
    }
    text.push_str(&format!("\n{}\n", visible(&record.verdict.sentence)));
    if let Some(beside) = &record.verdict.beside {
        text.push_str(&format!("\n{}\n", visible(beside)));
    }
    text.push_str(&traced_markdown(record));
    text
}

/// The layout of hyperfine's `--export-json`, so that scripts made for it
/// work. It has no place for contrasts: those are in pinwise's own JSON.
#[must_use]
pub fn hyperfine(record: &Comparison) -> serde_json::Value {
    let results: Vec<serde_json::Value> = record
        .arms
        .iter()
        .filter(|arm| !arm.runs.is_empty())
        .map(|arm| {
            let times: Vec<f64> = arm.runs.iter().map(|run| run.wall_s).collect();
            let described = pinwise_stats::describe::describe(&times);
            let mean_of = |read: fn(&RunRecord) -> Option<f64>| -> f64 {
                let values: Vec<f64> = arm.runs.iter().filter_map(read).collect();
                if values.is_empty() {
                    0.0
                } else {
                    pinwise_stats::describe::mean(&values)
                }
            };
            json!({
                "command": arm.name,
                "mean": described.map(|d| d.mean),
                "stddev": described.map(|d| d.sd),
                "median": described.map(|d| d.median),
                "user": mean_of(|run| run.user_s),
                "system": mean_of(|run| run.sys_s),
                "min": described.map(|d| d.min),
                "max": described.map(|d| d.max),
                "times": times,
                "exit_codes": arm.runs.iter().map(|run| run.exit).collect::<Vec<_>>(),
                "parameters": { "placement": arm.placement.name },
            })
        })
        .collect();
    json!({ "results": results })
}
