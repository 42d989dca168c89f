//! False alarms on this machine: pinwise and hyperfine alternately compare a command with itself.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use pinwise_stats::{describe, welch};
use serde_json::Value;
use xtask::programs::find_or_install;

use crate::Setting;
use crate::process::measure;
use crate::table::Table;

/// Comparisons at each run count.
const COMPARISONS: usize = 100;
/// Runs per arm.
const RUN_COUNTS: [usize; 2] = [10, 20];
/// Level of Welch's test.
pub(crate) const LEVEL: f64 = 0.05;

#[derive(Default)]
struct Alarms {
    ours: usize,
    welch: usize,
    printed: usize,
}

pub(crate) fn run(setting: &Setting) -> Result<()> {
    find_or_install("hyperfine", "hyperfine")?;
    let gzip = find_or_install("gzip", "gzip")?;
    let input = setting.folder.path().join("input");
    let bytes: Vec<u8> = std::fs::read(&setting.pinwise)?;
    std::fs::write(&input, &bytes[..bytes.len().min(600_000)])?;
    let command = format!("{} -6 -c {}", gzip.display(), input.display());
    let mut table = Table::new(
        "false-alarms-live",
        "runs per arm | comparisons | pinwise claims | hyperfine, Welch | \
         hyperfine, printed interval",
    );
    for runs in RUN_COUNTS {
        let mut alarms = Alarms::default();
        for comparison in 0..COMPARISONS {
            // Each runs first in half of the comparisons.
            if comparison % 2 == 0 {
                run_pinwise(setting, &command, runs, &mut alarms)?;
                run_peer(setting, &command, runs, &mut alarms)?;
            } else {
                run_peer(setting, &command, runs, &mut alarms)?;
                run_pinwise(setting, &command, runs, &mut alarms)?;
            }
        }
        let percent = |count: usize| format!("{:.0} %", 100.0 * count as f64 / COMPARISONS as f64);
        table.add_row(format!(
            "{runs} | {COMPARISONS} | {} | {} | {}",
            percent(alarms.ours),
            percent(alarms.welch),
            percent(alarms.printed)
        ));
    }
    table.publish()
}

fn run_pinwise(setting: &Setting, command: &str, runs: usize, alarms: &mut Alarms) -> Result<()> {
    let file = setting.folder.path().join("aa.json");
    let runs = runs.to_string();
    measure(
        Command::new(&setting.pinwise)
            .args(["--store", "none", "compare", "--self", "--max-runs", &runs])
            .arg("--export-json")
            .arg(&file)
            .arg(command),
    )?;
    let record = read_json(&file)?;
    let contrasts = record["contrasts"].as_array().context("no contrasts")?;
    let is_claim = |c: &Value| c["verdict"] == "faster" || c["verdict"] == "slower";
    alarms.ours += usize::from(contrasts.iter().any(is_claim));
    Ok(())
}

fn run_peer(setting: &Setting, command: &str, runs: usize, alarms: &mut Alarms) -> Result<()> {
    let file = setting.folder.path().join("hyperfine.json");
    let runs = runs.to_string();
    measure(
        Command::new("hyperfine")
            .args(["-N", "-w", "1", "-r", &runs, "--export-json"])
            .arg(&file)
            .args([command, command]),
    )?;
    let [a, b] = read_times(&file)?;
    alarms.welch += usize::from(welch::two_sided_p(&a, &b) < LEVEL);
    alarms.printed += usize::from(prints_a_difference(&a, &b));
    Ok(())
}

/// The times of the first two commands in a file that hyperfine exported.
pub(crate) fn read_times(file: &Path) -> Result<[Vec<f64>; 2]> {
    let results = read_json(file)?;
    Ok([0, 1].map(|index| {
        let times = results["results"][index]["times"].as_array();
        let times = times.into_iter().flatten().filter_map(Value::as_f64);
        times.collect()
    }))
}

fn read_json(file: &Path) -> Result<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

/// hyperfine prints the slower over the faster as `r ± r·√(cv₁² + cv₂²)`.
fn prints_a_difference(a: &[f64], b: &[f64]) -> bool {
    let (mean_a, mean_b) = (describe::mean(a), describe::mean(b));
    let ratio = (mean_a / mean_b).max(mean_b / mean_a);
    let cv_a = describe::sd(a) / mean_a;
    let cv_b = describe::sd(b) / mean_b;
    ratio - ratio * cv_a.hypot(cv_b) > 1.0
}
