//! The cost of sampling for the sampled program, with `pinwise spin attach`, `profile` and
//! `perf record`, with callers by frame pointers and by unwind tables.
//!
//! The work is fixed and has one thread; its CPU time is the kernel's. One per cent is below the
//! noise of shared machines, so sampling twenty times as often is measured as well: a twentieth of
//! its cost is a better estimate.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Setting;
use crate::rounds::{median, quartiles, take_random_turns};
use crate::table::Table;
use xtask::programs::find_or_install;

const ROUNDS: usize = 31;
/// Half a second of one thread's work, which allocates nothing.
const WORK: [&str; 6] = ["bench", "kernel", "fibonacci", "--work", "50", "--quiet"];
/// Samples per second: the usual number, and enough for their cost to show.
const USUAL_HZ: u32 = 997;
const OFTEN_HZ: u32 = 19_997;
const SEED: u64 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sampler {
    None,
    NoneAgain,
    Pinwise(u32),
    Perf(u32),
    /// Callers are found by unwind tables: pinwise does it while sampling, perf
    /// afterwards.
    PinwiseTables(u32),
    PerfTables(u32),
}

const SAMPLERS: [Sampler; 10] = [
    Sampler::None,
    Sampler::NoneAgain,
    Sampler::Pinwise(USUAL_HZ),
    Sampler::Pinwise(OFTEN_HZ),
    Sampler::Perf(USUAL_HZ),
    Sampler::Perf(OFTEN_HZ),
    Sampler::PinwiseTables(USUAL_HZ),
    Sampler::PinwiseTables(OFTEN_HZ),
    Sampler::PerfTables(USUAL_HZ),
    Sampler::PerfTables(OFTEN_HZ),
];

/// CPU time of the command, and of pinwise and its samples if reported.
#[derive(Debug, Clone, Copy)]
struct SampledRun {
    cpu_s: f64,
    own_s: Option<f64>,
    samples: Option<f64>,
}

pub(crate) fn run(setting: &Setting) -> Result<()> {
    find_or_install("perf", "linux-perf")?;
    let runs = take_random_turns(ROUNDS, SAMPLERS.len(), SEED, |sampler| {
        SAMPLERS[sampler].run(setting)
    })?;
    let mut table = Table::new("sampling", "sampler | ratio | at 997 Hz | own | samples");
    for (sampler, used) in SAMPLERS.iter().zip(&runs).skip(1) {
        table.add_row(format_row(*sampler, used, &runs[0]));
    }
    table.publish()
}

fn format_row(sampler: Sampler, used: &[SampledRun], bare: &[SampledRun]) -> String {
    let ratios: Vec<f64> = used
        .iter()
        .zip(bare)
        .map(|(used, bare)| used.cpu_s / bare.cpu_s)
        .collect();
    let (low, high) = quartiles(&ratios);
    let ratio = median(&ratios);
    let scaled = sampler.hz().map_or("–".to_owned(), |hz| {
        let share = 100.0 * (ratio - 1.0) * f64::from(USUAL_HZ) / f64::from(hz);
        format!("{share:+.2} %")
    });
    let own: Option<Vec<f64>> = used.iter().map(|u| Some(u.own_s? / u.cpu_s)).collect();
    let own = own.map_or("–".to_owned(), |own| {
        format!("{:.1} %", 100.0 * median(&own))
    });
    let samples: Option<Vec<f64>> = used.iter().map(|used| used.samples).collect();
    let samples = samples.map_or("–".to_owned(), |samples| {
        format!("{:.0}", median(&samples))
    });
    format!(
        "{} | {ratio:.3} ({low:.3}–{high:.3}) | {scaled} | {own} | {samples}",
        sampler.name()
    )
}

impl Sampler {
    fn name(self) -> String {
        match self {
            Self::None => "not sampled".to_owned(),
            Self::NoneAgain => "not sampled, again".to_owned(),
            Self::Pinwise(hz) => format!("pinwise spin attach --hz {hz}"),
            Self::Perf(hz) => format!("perf record -e cpu-clock -g -F {hz}"),
            Self::PinwiseTables(hz) => format!("pinwise profile --stacks dwarf --hz {hz}"),
            Self::PerfTables(hz) => {
                format!("perf record -e cpu-clock --call-graph dwarf -F {hz}")
            }
        }
    }

    const fn hz(self) -> Option<u32> {
        match self {
            Self::None | Self::NoneAgain => None,
            Self::Pinwise(hz) | Self::Perf(hz) | Self::PinwiseTables(hz) | Self::PerfTables(hz) => {
                Some(hz)
            }
        }
    }

    fn run(self, setting: &Setting) -> Result<SampledRun> {
        let folder = setting.folder.path();
        let note = folder.join("sampled.json");
        let wrapper = std::env::current_exe()?;
        let hz = self.hz().unwrap_or_default().to_string();
        let mut command = match self {
            Self::None | Self::NoneAgain => Command::new(&wrapper),
            Self::Pinwise(_) | Self::PinwiseTables(_) => {
                let mut command = Command::new(&setting.pinwise);
                command.args(["--store", "none", "--format", "json"]);
                command.args(match self {
                    Self::Pinwise(_) => &["spin", "attach"][..],
                    _ => &["profile", "--stacks", "dwarf"],
                });
                command.args(["--event", "cpu-clock", "--hz", &hz, "--"]);
                command.arg(&wrapper);
                command
            }
            Self::Perf(_) | Self::PerfTables(_) => {
                let mut command = Command::new("perf");
                command.args(["record", "-q", "-e", "cpu-clock"]);
                command.args(match self {
                    Self::Perf(_) => &["-g"][..],
                    _ => &["--call-graph", "dwarf"],
                });
                command.args(["-F", &hz, "-o"]);
                command.arg(folder.join("perf.data")).arg("--");
                command.arg(&wrapper);
                command
            }
        };
        command
            .arg("used")
            .arg(&note)
            .arg(&setting.pinwise)
            .args(WORK);
        let output = command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{} failed: {}", self.name(), errors.trim());
        }
        let record = matches!(self, Self::Pinwise(_) | Self::PinwiseTables(_))
            .then(|| serde_json::from_slice(&output.stdout));
        let record: Option<Value> = record.transpose()?;
        let figure = |key: &str| record.as_ref().and_then(|record| record[key].as_f64());
        let note: Value = serde_json::from_slice(&std::fs::read(&note)?)?;
        Ok(SampledRun {
            cpu_s: note["cpu_s"].as_f64().context("no cpu_s")?,
            own_s: figure("own_cpu_s"),
            samples: figure("samples"),
        })
    }
}
