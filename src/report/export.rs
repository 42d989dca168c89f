//! A comparison for other programs.

use serde_json::json;

use super::comparison::{traced_markdown, verdict_word};
use super::style::{quantity, visible};
use crate::record::{Comparison, RunRecord};

/// What [`run_fields`] tells of a run.
pub(super) const RUN_FIELDS: [&str; 21] = [
    "phase",
    "block",
    "order",
    "at_s",
    "value",
    "cost",
    "wall_s",
    "user_s",
    "sys_s",
    "max_rss_bytes",
    "exit",
    "threads",
    "migrations",
    "context_switches",
    "minor_faults",
    "major_faults",
    "cycles",
    "instructions",
    "granted_cpus",
    "foreign_cpu_s",
    "steal_s",
];

/// One line per counted run.
///
/// # Errors
/// The CSV writer's words, in the unlikely case that it has any.
pub fn csv(record: &Comparison) -> Result<String, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = vec!["arm", "cpus"];
    header.extend(RUN_FIELDS);
    writer.write_record(header)?;
    for arm in &record.arms {
        for run in &arm.runs {
            let mut fields = vec![arm.name.clone(), arm.cpus.clone()];
            fields.extend(run_fields(run));
            writer.write_record(fields)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.into_error())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(super) fn run_fields(run: &RunRecord) -> Vec<String> {
    fn optional<T: ToString>(value: Option<T>) -> String {
        value.map(|v| v.to_string()).unwrap_or_default()
    }
    vec![
        format!("{:?}", run.phase).to_lowercase(),
        run.block.to_string(),
        run.order.to_string(),
        run.at_s.to_string(),
        optional(run.metric.value),
        optional(run.metric.cost),
        run.wall_s.to_string(),
        optional(run.user_s),
        optional(run.sys_s),
        optional(run.max_rss_bytes),
        optional(run.exit),
        optional(run.threads),
        optional(run.migrations),
        optional(run.context_switches),
        optional(run.minor_faults),
        optional(run.major_faults),
        optional(run.cycles),
        optional(run.instructions),
        run.granted_cpus.clone(),
        optional(run.foreign_cpu_s),
        optional(run.steal_s),
    ]
}

/// A Markdown table of the arms and the verdict below it.
#[must_use]
pub fn markdown(record: &Comparison) -> String {
    let cell = |text: &str| visible(text).replace('|', "\\|");
    let mut text = format!(
        "| arm | CPUs | typical {} | ratio to {} | interval | verdict |\n|:---|:---|---:|---:|:---|:---|\n",
        cell(&record.metric.name),
        cell(&record.baseline)
    );
    for arm in &record.arms {
        let contrast = record.contrasts.iter().find(|c| c.arm == arm.name);
        let typical = arm.estimate.map_or_else(
            || "–".to_owned(),
            |e| quantity(e.value, &record.metric.unit),
        );
        let (ratio, interval, verdict) = match contrast {
            Some(c) => (
                format!("{:.4}", c.ratio),
                match (c.low, c.high) {
                    (Some(low), Some(high)) => format!("{low:.4}–{high:.4}"),
                    _ => "–".to_owned(),
                },
                verdict_word(record, c).to_owned(),
            ),
            None if arm.name == record.baseline => {
                ("1".to_owned(), String::new(), "baseline".to_owned())
            }
            None if arm.eliminated => (
                "–".to_owned(),
                "–".to_owned(),
                "eliminated in screening".to_owned(),
            ),
            None => ("–".to_owned(), "–".to_owned(), "failed".to_owned()),
        };
        text.push_str(&format!(
            "| {} | {} | {} | {ratio} | {interval} | {} |\n",
            cell(&arm.name),
            cell(&arm.cpus),
            cell(&typical),
            cell(&verdict)
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
            let described = crate::stats::describe::describe(&times);
            let mean_of = |read: fn(&RunRecord) -> Option<f64>| -> f64 {
                let values: Vec<f64> = arm.runs.iter().filter_map(read).collect();
                if values.is_empty() {
                    0.0
                } else {
                    crate::stats::describe::mean(&values)
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
