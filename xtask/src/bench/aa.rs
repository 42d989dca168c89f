//! False alarms on the live machine: a command compared with itself, by us and
//! by hyperfine, alternating.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::Setting;
use super::process::measure;
use crate::programs::find_or_install;

/// Comparisons at each run count.
const COMPARISONS: usize = 100;
/// Runs per arm.
const RUN_COUNTS: [usize; 2] = [10, 20];
/// Of Welch's test.
pub(super) const LEVEL: f64 = 0.05;

#[derive(Default)]
struct Alarms {
    ours: usize,
    welch: usize,
    printed: usize,
}

pub(super) fn run(setting: &Setting) -> Result<String> {
    find_or_install("hyperfine", "hyperfine")?;
    let gzip = find_or_install("gzip", "gzip")?;
    let input = setting.folder.path().join("input");
    let bytes: Vec<u8> = std::fs::read(&setting.pinwise)?;
    std::fs::write(&input, &bytes[..bytes.len().min(600_000)])?;
    let command = format!("{} -6 -c {}", gzip.display(), input.display());
    let mut rows = String::new();
    for runs in RUN_COUNTS {
        let mut alarms = Alarms::default();
        for comparison in 0..COMPARISONS {
            // Each goes first half of the time.
            if comparison % 2 == 0 {
                ours(setting, &command, runs, &mut alarms)?;
                theirs(setting, &command, runs, &mut alarms)?;
            } else {
                theirs(setting, &command, runs, &mut alarms)?;
                ours(setting, &command, runs, &mut alarms)?;
            }
        }
        let percent = |count: usize| format!("{:.0} %", 100.0 * count as f64 / COMPARISONS as f64);
        rows.push_str(&format!(
            "| {runs} | {COMPARISONS} | {} | {} | {} |\n",
            percent(alarms.ours),
            percent(alarms.welch),
            percent(alarms.printed)
        ));
    }
    Ok(format!(
        "## False alarms on the live machine

`gzip` on 600 kB, compared with itself. hyperfine's two ways of concluding:
Welch's test at 5 % on the times it exports, and its printed `± σ` of the ratio
not reaching 1.

| runs per arm | comparisons | pinwise claims | hyperfine, Welch | hyperfine, printed interval |
|---|---|---|---|---|
{rows}"
    ))
}

fn ours(setting: &Setting, command: &str, runs: usize, alarms: &mut Alarms) -> Result<()> {
    let file = setting.folder.path().join("aa.json");
    let runs = runs.to_string();
    measure(
        Command::new(&setting.pinwise)
            .args(["--store", "none", "compare", "--self", "--max-runs", &runs])
            .arg("--export-json")
            .arg(&file)
            .arg(command),
    )?;
    let record = read(&file)?;
    let contrasts = record["contrasts"].as_array().context("no contrasts")?;
    let is_claim = |c: &Value| c["verdict"] == "faster" || c["verdict"] == "slower";
    alarms.ours += usize::from(contrasts.iter().any(is_claim));
    Ok(())
}

fn theirs(setting: &Setting, command: &str, runs: usize, alarms: &mut Alarms) -> Result<()> {
    let file = setting.folder.path().join("hyperfine.json");
    let runs = runs.to_string();
    measure(
        Command::new("hyperfine")
            .args(["-N", "-w", "1", "-r", &runs, "--export-json"])
            .arg(&file)
            .args([command, command]),
    )?;
    let [a, b] = moments(&file)?;
    alarms.welch += usize::from(a.welch_p(b) < LEVEL);
    alarms.printed += usize::from(a.prints_a_difference(b));
    Ok(())
}

/// Of the first two commands in a file that hyperfine exported.
pub(super) fn moments(file: &Path) -> Result<[Moments; 2]> {
    let results = read(file)?;
    Ok([0, 1].map(|index| {
        let times = results["results"][index]["times"].as_array();
        let times = times.into_iter().flatten().filter_map(Value::as_f64);
        Moments::of(&times.collect::<Vec<f64>>())
    }))
}

fn read(file: &Path) -> Result<Value> {
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

#[derive(Clone, Copy)]
pub(super) struct Moments {
    pub(super) mean: f64,
    variance: f64,
    count: f64,
}

impl Moments {
    fn of(times: &[f64]) -> Self {
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let squares = times.iter().map(|t| (t - mean).powi(2)).sum::<f64>();
        Self {
            mean,
            variance: squares / (count - 1.0),
            count,
        }
    }

    /// Two-sided p-value of Welch's test (Welch 1947).
    pub(super) fn welch_p(self, other: Self) -> f64 {
        let (a, b) = (self.variance / self.count, other.variance / other.count);
        let t = (self.mean - other.mean).abs() / (a + b).sqrt();
        let freedom = (a + b).powi(2) / (a * a / (self.count - 1.0) + b * b / (other.count - 1.0));
        StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |law| 2.0 * law.cdf(-t))
    }

    /// hyperfine prints the slower over the faster as `r ± r·√(cv₁² + cv₂²)`.
    fn prints_a_difference(self, other: Self) -> bool {
        let ratio = (self.mean / other.mean).max(other.mean / self.mean);
        let cv2 = |m: Self| m.variance / (m.mean * m.mean);
        ratio - ratio * (cv2(self) + cv2(other)).sqrt() > 1.0
    }
}
