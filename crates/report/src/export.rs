//! A comparison as rows, Markdown, and hyperfine's JSON.

use serde_json::json;

use super::comparison::{
    REQUESTED_CHECKS, format_effect, format_traced_arms, format_typical, or_dash,
};
use super::style::{format_markdown_cell as cell, visible};
use super::table::{Cell, Table};
use pinwise_record::{Comparison, RunRecord};

/// A column of runs: its name and the cell of a run.
type RunColumn = (&'static str, fn(&RunRecord) -> Cell);

const RUN_COLUMNS: [RunColumn; 23] = [
    ("phase", |run| Cell::text(run.phase.name())),
    ("block", |run| Cell::whole(run.block)),
    ("order", |run| Cell::whole(run.order)),
    ("at_s", |run| Cell::number(run.at_s)),
    ("value", |run| Cell::number(run.metric.value)),
    ("cost", |run| Cell::number(run.metric.cost)),
    ("wall_s", |run| Cell::number(run.wall_s)),
    ("user_s", |run| Cell::number(run.user_s)),
    ("sys_s", |run| Cell::number(run.sys_s)),
    ("queued_s", |run| Cell::number(run.queued_s)),
    ("max_rss_bytes", |run| Cell::count(run.max_rss_bytes)),
    ("exit", |run| Cell::count(run.exit)),
    ("threads", |run| Cell::count(run.threads)),
    ("migrations", |run| Cell::count(run.migrations)),
    ("context_switches", |run| Cell::count(run.context_switches)),
    ("minor_faults", |run| Cell::count(run.minor_faults)),
    ("major_faults", |run| Cell::count(run.major_faults)),
    ("cycles", |run| Cell::count(run.cycles)),
    ("instructions", |run| Cell::count(run.instructions)),
    ("granted_cpus", |run| Cell::text(&run.granted_cpus)),
    ("foreign_cpu_s", |run| Cell::number(run.foreign_cpu_s)),
    ("steal_s", |run| Cell::number(run.steal_s)),
    ("companion_value", |run| {
        Cell::number(run.companion.and_then(|metric| metric.value))
    }),
];

/// The names of a run's columns.
pub(super) fn list_run_columns() -> impl Iterator<Item = &'static str> {
    RUN_COLUMNS.into_iter().map(|(name, _)| name)
}

/// One row per counted run.
#[must_use]
pub fn list_run_rows(record: &Comparison) -> Table {
    let own = ["arm", "cpus"];
    let mut table = Table::new(own.into_iter().chain(list_run_columns()));
    for arm in &record.arms {
        for run in &arm.runs {
            let own = [Cell::text(&arm.name), Cell::text(&arm.cpus)];
            table.push(own.into_iter().chain(make_run_cells(run)));
        }
    }
    table
}

/// The cells of a run.
pub(super) fn make_run_cells(run: &RunRecord) -> impl Iterator<Item = Cell> {
    RUN_COLUMNS.into_iter().map(|(_, cell)| cell(run))
}

/// A Markdown table of the arms and the verdict below it.
#[must_use]
pub fn render_markdown(record: &Comparison) -> String {
    let mut text = format!(
        "| arm | CPUs | typical {} | against {} | interval | verdict |\n|:---|:---|---:|---:|:---|:---|\n",
        cell(record.metric.short_name()),
        cell(&record.baseline),
    );
    for arm in &record.arms {
        let typical = format_typical(arm, &record.metric.unit);
        let [change, interval] = format_effect(record, arm);
        text.push_str(&format!(
            "| {} | {} | {} | {change} | {interval} | {} |\n",
            cell(&arm.name),
            cell(&arm.cpus),
            cell(&typical),
            cell(or_dash(&arm.standing))
        ));
    }
    text.push_str(&format!("\n{}\n", visible(&record.verdict.sentence)));
    if record.verdict.not_recommended.is_some() {
        text.push_str(&format!("\n{}\n", visible(&record.verdict.advice)));
    }
    if let Some(beside) = &record.verdict.beside {
        text.push_str(&format!("\n{}\n", visible(beside)));
    }
    let findings = record.findings.iter();
    for asked in findings.filter(|finding| REQUESTED_CHECKS.contains(&finding.check.as_str())) {
        text.push_str(&format!("\n{}\n", visible(&asked.sentence)));
    }
    text.push_str(&format_traced_arms(record));
    text
}

/// The layout of hyperfine's `--export-json`, so that scripts for it work. It has no place for
/// contrasts: pinwise's own JSON has them.
#[must_use]
pub fn render_hyperfine(record: &Comparison) -> serde_json::Value {
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
