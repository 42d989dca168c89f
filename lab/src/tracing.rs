//! The cost of tracing for the traced program: pinwise's tiers beside `perf sched record` and `perf
//! record --switch-events`, and whether every switch is recorded.
//!
//! A wrapper (`lab used FILE COMMAND…`) runs the command under each tracer and notes its resource
//! use by the kernel, which does not contain the tracer's own time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Setting;
use crate::rounds::{format_quartiles, median, take_random_turns};
use crate::table::Table;
use xtask::programs::find_or_install;

const PIPE_ROUNDS: usize = 21;
const HACKBENCH_ROUNDS: usize = 11;
const MANY_ROUNDS: usize = 3;
/// Round trips of the pipe, each two switches.
const PIPE_TRIPS: usize = 50_000;
/// Round trips of each of the pairs that run at once.
const MANY_TRIPS: usize = 200_000;
/// Pairs at once, one per CPU.
const MAX_PAIRS: usize = 8;
const SEED: u64 = 5;

/// The tracers, with the target of their ratio in the pipe test.
const TRACERS: [(Tracer, &str); 9] = [
    (Tracer::None, "–"),
    (Tracer::NoneAgain, "1"),
    (Tracer::Pinwise("proc"), "≤ 1.35"),
    (Tracer::Pinwise("switch"), "≤ 1.35"),
    (Tracer::Pinwise("cpu-wide"), "≤ 1.35"),
    (Tracer::Pinwise("tracepoint"), "≤ 1.35"),
    (Tracer::Pinwise("bpf"), "≤ 1.12"),
    (Tracer::PerfSched, "–"),
    (Tracer::PerfSwitches, "–"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tracer {
    None,
    NoneAgain,
    Pinwise(&'static str),
    PerfSched,
    PerfSwitches,
}

/// A run of the traced command.
#[derive(Debug, Clone, Copy)]
struct TracedRun {
    cpu_s: f64,
    /// As the kernel counts them.
    switches: f64,
    reported: Option<Reported>,
}

/// The report of pinwise's trace of it.
#[derive(Debug, Clone, Copy)]
struct Reported {
    switches: Option<f64>,
    all_switches: Option<f64>,
    elapsed_s: f64,
    lost: f64,
    own_cpu_s: Option<f64>,
}

pub(crate) fn run(setting: &Setting) -> Result<()> {
    find_or_install("perf", "linux-perf")?;
    find_or_install("hackbench", "rt-tests")?;
    let pipe: Vec<String> = pipe_command(0, PIPE_TRIPS);
    let hackbench: Vec<String> = ["hackbench", "-g4", "-l300"].map(str::to_owned).to_vec();
    let table = Table::new("tracing-pipe", HEAD);
    publish_tracers(setting, table, &pipe, PIPE_ROUNDS, |target| target)?;
    let table = Table::new("tracing-hackbench", HEAD);
    publish_tracers(
        setting,
        table,
        &hackbench,
        HACKBENCH_ROUNDS,
        |target| match target {
            "1" | "–" => target,
            _ => "≤ 1.01",
        },
    )?;
    publish_many(setting)
}

const HEAD: &str = "tracer | ratio | asked | µs per switch | own | lost | counted";

fn pipe_command(cpu: usize, trips: usize) -> Vec<String> {
    let words = format!("taskset -c {cpu} perf bench sched pipe -l {trips}");
    words.split(' ').map(str::to_owned).collect()
}

/// Runs one command under all tracers.
fn publish_tracers(
    setting: &Setting,
    mut table: Table,
    command: &[String],
    rounds: usize,
    adapt_target: impl Fn(&'static str) -> &'static str,
) -> Result<()> {
    let runs = take_random_turns(rounds, TRACERS.len(), SEED, |tracer| {
        TRACERS[tracer].0.run(setting, command)
    })?;
    for ((tracer, target), own) in TRACERS.iter().zip(&runs).skip(1) {
        let pairs = || own.iter().zip(&runs[0]);
        let ratios: Vec<f64> = pairs().map(|(run, base)| run.cpu_s / base.cpu_s).collect();
        let us: Vec<f64> = pairs()
            .map(|(run, base)| 1e6 * (run.cpu_s - base.cpu_s) / base.switches)
            .collect();
        let reported: Vec<(Reported, TracedRun)> = own
            .iter()
            .filter_map(|run| Some((run.reported?, *run)))
            .collect();
        table.add_row(format!(
            "{} | {} | {} | {:+.2} | {}",
            tracer.name(),
            format_quartiles(&ratios, 2),
            adapt_target(target),
            median(&us),
            format_own_columns(&reported),
        ));
    }
    table.publish()
}

/// The columns that only pinwise's trace has: own time, lost, counted.
fn format_own_columns(reported: &[(Reported, TracedRun)]) -> String {
    if reported.is_empty() {
        return "– | – | –".to_owned();
    }
    let own: Option<Vec<f64>> = reported
        .iter()
        .map(|(reported, used)| Some(reported.own_cpu_s? / used.cpu_s))
        .collect();
    let own = own.map_or("–".to_owned(), |own| {
        format!("{:.1} %", 100.0 * median(&own))
    });
    format!(
        "{own} | {} | {}",
        describe_lost(reported),
        worst_switch_deviation(reported)
    )
}

fn describe_lost(reported: &[(Reported, TracedRun)]) -> String {
    let lost: f64 = reported.iter().map(|(reported, _)| reported.lost).sum();
    format!("{lost}")
}

/// The largest deviation of all runs.
fn worst_switch_deviation(reported: &[(Reported, TracedRun)]) -> String {
    let deviations: Option<Vec<f64>> = reported
        .iter()
        .map(|(reported, used)| Some(reported.switches? / used.switches - 1.0))
        .collect();
    let worst = deviations
        .into_iter()
        .flatten()
        .max_by(|one, other| one.abs().total_cmp(&other.abs()));
    worst.map_or("–".to_owned(), |worst| format!("{:+.3} %", 100.0 * worst))
}

/// Records lost while every CPU is busy with switching.
fn publish_many(setting: &Setting) -> Result<()> {
    let cpus = std::thread::available_parallelism()?.get().min(MAX_PAIRS);
    let pairs: Vec<String> = (0..cpus)
        .map(|cpu| pipe_command(cpu, MANY_TRIPS).join(" "))
        .collect();
    let script = format!("{} & wait", pairs.join(" & "));
    let command = ["sh", "-c", &script].map(str::to_owned);
    let mut table = Table::new("tracing-many", "tracer | switches/s | lost | counted");
    for tier in ["switch", "cpu-wide", "tracepoint", "bpf"] {
        let mut reported = Vec::new();
        for _ in 0..MANY_ROUNDS {
            let used = Tracer::Pinwise(tier).run(setting, &command)?;
            reported.push((used.reported.context("no trace")?, used));
        }
        let rates: Vec<f64> = reported
            .iter()
            .map(|(reported, used)| {
                reported.all_switches.unwrap_or(used.switches) / reported.elapsed_s
            })
            .collect();
        table.add_row(format!(
            "pinwise, {tier} | {:.0} | {} | {}",
            median(&rates),
            describe_lost(&reported),
            worst_switch_deviation(&reported)
        ));
    }
    table.publish()
}

impl Tracer {
    fn name(self) -> String {
        match self {
            Self::None => "untraced".to_owned(),
            Self::NoneAgain => "untraced, again".to_owned(),
            Self::Pinwise(tier) => format!("pinwise, {tier}"),
            Self::PerfSched => "perf sched record".to_owned(),
            Self::PerfSwitches => "perf record -e dummy:u --switch-events".to_owned(),
        }
    }

    fn run(self, setting: &Setting, command: &[String]) -> Result<TracedRun> {
        let folder = setting.folder.path();
        let note = folder.join("used.json");
        let file = folder.join("perf.data");
        let wrapper = std::env::current_exe()?;
        let mut tracer = match self {
            Self::None | Self::NoneAgain => Command::new(&wrapper),
            Self::Pinwise(tier) => {
                let mut tracer = Command::new(&setting.pinwise);
                tracer.args(["--store", "none", "--format", "json"]);
                tracer.args(["trace", "--tier", tier, "--"]);
                wrap_tracer(tracer, &wrapper)
            }
            Self::PerfSched => {
                let mut tracer = Command::new("perf");
                tracer.args(["sched", "record", "-o"]).arg(&file);
                wrap_tracer(tracer, &wrapper)
            }
            Self::PerfSwitches => {
                let mut tracer = Command::new("perf");
                tracer.args(["record", "-e", "dummy:u", "--switch-events", "-o"]);
                tracer.arg(&file).arg("--");
                wrap_tracer(tracer, &wrapper)
            }
        };
        tracer.arg("used").arg(&note).args(command);
        let output = tracer
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            bail!("{} failed: {}", self.name(), errors.trim());
        }
        let reported = matches!(self, Self::Pinwise(_)).then(|| Reported::read(&output.stdout));
        TracedRun::read(&note, reported.transpose()?)
    }
}

fn wrap_tracer(mut tracer: Command, wrapper: &Path) -> Command {
    tracer.arg(wrapper);
    tracer
}

impl Reported {
    fn read(record: &[u8]) -> Result<Self> {
        let record: Value = serde_json::from_slice(record)?;
        let totals = &record["totals"];
        Ok(Self {
            switches: totals["switches"].as_f64(),
            all_switches: totals["all_switches"].as_f64(),
            elapsed_s: record["elapsed_s"].as_f64().context("no elapsed_s")?,
            lost: record["lost"]["records"]
                .as_f64()
                .context("no lost.records")?,
            own_cpu_s: record["cost"]["own_cpu_s"].as_f64(),
        })
    }
}

impl TracedRun {
    fn read(note: &PathBuf, reported: Option<Reported>) -> Result<Self> {
        let note: Value = serde_json::from_slice(&std::fs::read(note)?)?;
        let figure = |key: &str| note[key].as_f64().with_context(|| format!("no {key}"));
        Ok(Self {
            cpu_s: figure("cpu_s")?,
            switches: figure("switches")?,
            reported,
        })
    }
}

/// The wrapper: runs a command and notes its resource use.
pub(crate) fn note_usage(note: &str, command: &[String]) -> Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let status = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .with_context(|| format!("{program} cannot be started"))?;
    if !status.success() {
        bail!("{program} failed ({status})");
    }
    // SAFETY: rusage is plain integers, for which zeros are valid, and the
    // pointer is valid for the call.
    #[expect(unsafe_code, reason = "std does not report the usage of children")]
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + 1e-6 * time.tv_usec as f64;
    let usage = serde_json::json!({
        "cpu_s": seconds(usage.ru_utime) + seconds(usage.ru_stime),
        "switches": usage.ru_nvcsw + usage.ru_nivcsw,
    });
    std::fs::write(note, usage.to_string())?;
    Ok(())
}
