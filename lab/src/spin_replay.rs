//! The error of predicted lateness against replays on a machine where other programs run, by
//! algorithm and latency of PAUSE.

use std::process::Command;

use anyhow::Result;
use serde_json::Value;

use crate::Setting;
use crate::process::read_record;
use crate::rounds::median;
use crate::table::Table;

/// Algorithms that spin for milliseconds, with the number of CPUs that they assume.
const ALGORITHMS: [(&str, &str); 3] = [
    ("netfx_awarelock", "8"),
    ("netfx_awarelock", "24"),
    ("netfx_awarelock", "64"),
];
/// Latencies of a hint, ns; the first is the processor's own.
const LATENCIES: [Option<&str>; 4] = [None, Some("3.86"), Some("43"), Some("50")];
/// Replays of each cell.
const ROUNDS: usize = 3;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let mut table = Table::new(
        "spin-replay",
        "algorithm | own PAUSE | 3.86 ns | 43 ns | 50 ns",
    );
    for (algorithm, cpus) in ALGORITHMS {
        let mut row = format!("{algorithm}, {cpus} CPUs");
        for latency in LATENCIES {
            let mut found = Errors::default();
            for _ in 0..ROUNDS {
                replay(setting, algorithm, cpus, latency, &mut found)?;
            }
            row += &format!(" | {}", found.format_cell());
        }
        table.add_row(row);
    }
    table.publish()
}

/// Sizes of errors, per cent.
#[derive(Default)]
struct Errors {
    wanted: Vec<f64>,
    achieved: Vec<f64>,
}

impl Errors {
    fn format_cell(&self) -> String {
        if self.wanted.is_empty() {
            return "–".to_owned();
        }
        let mut sorted = self.wanted.clone();
        sorted.sort_by(f64::total_cmp);
        let p90 = sorted[(sorted.len() * 9 / 10).min(sorted.len() - 1)];
        format!(
            "{:.2} %, p90 {p90:.1} % ({:.2} %), {} delays",
            median(&self.wanted),
            median(&self.achieved),
            sorted.len()
        )
    }
}

fn replay(
    setting: &Setting,
    algorithm: &str,
    cpus: &str,
    latency: Option<&str>,
    found: &mut Errors,
) -> Result<()> {
    let mut command = Command::new(&setting.pinwise);
    command.args(["--store", "none", "--format", "json", "spin", "replay"]);
    command.args(["--algorithm", algorithm, "--cpu-count", cpus]);
    command.args(["--realtime", "--items", "10", "--repeat", "2"]);
    if let Some(ns) = latency {
        command.args(["--pause-ns", ns]);
    }
    let record = read_record(&mut command)?;
    let cells = record["algorithms"][0]["cells"].as_array();
    for cell in cells.into_iter().flatten() {
        let is_counted = cell["unstable"] == false && cell["predicted"]["seen"] == "spinning";
        if !is_counted {
            continue;
        }
        let late = |of: &Value| of["lateness_us"].as_f64();
        let achieved = late(&cell["measured"]).zip(late(&cell["predicted_as_achieved"]));
        if let Some((error, (measured, predicted))) = cell["error_percent"].as_f64().zip(achieved) {
            found.wanted.push(error.abs());
            found
                .achieved
                .push((100.0 * (measured / predicted - 1.0)).abs());
        }
    }
    Ok(())
}
