//! Gaps that a thread sees: pinwise and oslat on the same CPU in turns, and how many of them have a
//! cause.
//!
//! Few kernels have the osnoise tracer, and its threads cannot run where pinwise's do; oslat also
//! reads the clock in a loop, as an ordinary thread.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Setting;
use crate::process::read_record;
use crate::rounds::{format_quartiles, median, ratios, take_random_turns};
use crate::table::Table;
use xtask::programs::{find, find_or_install};

const ROUNDS: usize = 15;
const SECONDS: &str = "2";
const SEED: u64 = 27;
/// Gaps above this many µs are counted.
const THRESHOLDS: [u32; 3] = [5, 20, 100];

/// The program that counts in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Counter {
    Oslat,
    /// pinwise with a threshold, µs.
    Pinwise(u32),
    /// pinwise without the right to trace, which reads the clock alone.
    Untraced,
}

/// Gaps of a second, turn by turn.
type Rates = BTreeMap<Counter, Vec<BTreeMap<u32, f64>>>;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    find_or_install("oslat", "rt-tests")?;
    let cpu = std::thread::available_parallelism()?.get() - 1;
    let mut turns = vec![Counter::Oslat];
    turns.extend(THRESHOLDS.map(Counter::Pinwise));
    let binary = copy_readable_binary(setting)?;
    if find("setpriv").is_some() {
        turns.push(Counter::Untraced);
    }
    let mut causes = Causes::default();
    let taken = take_random_turns(ROUNDS, turns.len(), SEED, |at| match turns[at] {
        Counter::Oslat => run_oslat(setting.folder.path(), cpu),
        Counter::Pinwise(threshold) => {
            let record = run_pinwise(&mut Command::new(&binary), cpu, threshold)?;
            causes.add(&record);
            Ok(BTreeMap::from([(threshold, read_rate(&record)?)]))
        }
        Counter::Untraced => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            let threshold = THRESHOLDS[0];
            let record = run_pinwise(command.arg(&binary), cpu, threshold)?;
            Ok(BTreeMap::from([(threshold, read_rate(&record)?)]))
        }
    })?;
    let rates = turns.into_iter().zip(taken).collect();
    publish(&rates)?;
    println!("\n{} {}", causes.describe(), describe_osnoise());
    Ok(())
}

/// The causes of gaps.
#[derive(Default)]
struct Causes {
    gaps: u64,
    unknown: u64,
    /// By the hypervisor or the hardware.
    beneath: u64,
    /// Share of a turn's gaps whose cause is known.
    named: Vec<f64>,
    /// The way into the kernel and out of it, µs.
    entries: Vec<f64>,
}

impl Causes {
    fn add(&mut self, record: &Value) {
        self.named.extend(record["named_share"].as_f64());
        self.entries.extend(record["cpus"][0]["entry_us"].as_f64());
        for cause in record["causes"].as_array().into_iter().flatten() {
            let gaps = cause["gaps"].as_u64().unwrap_or(0);
            self.gaps += gaps;
            match cause["kind"].as_str() {
                Some("unknown") => self.unknown += gaps,
                Some("hypervisor" | "hardware") => self.beneath += gaps,
                _ => {}
            }
        }
    }

    fn describe(&self) -> String {
        let percent = |gaps: u64| 100.0 * gaps as f64 / self.gaps.max(1) as f64;
        let least = self.named.iter().copied().fold(1.0, f64::min);
        format!(
            "Of {} gaps {:.1} % were put down to something that the kernel reported, {:.1} % to \
             what is beneath it (hypervisor, firmware), {:.1} % to nothing; in the worst turn a \
             cause was named for {:.1} %. The way into the kernel and out of it took {:.1} µs \
             (median).",
            self.gaps,
            percent(self.gaps - self.unknown - self.beneath),
            percent(self.beneath),
            percent(self.unknown),
            100.0 * least,
            median(&self.entries),
        )
    }
}

fn publish(rates: &Rates) -> Result<()> {
    let lengths = |counter: Counter, threshold: u32| -> Vec<f64> {
        let turns = rates.get(&counter).into_iter().flatten();
        turns
            .filter_map(|turn| turn.get(&threshold).copied())
            .collect()
    };
    let mut table = Table::new(
        "jitter",
        "gaps above | oslat | pinwise | of the sums | of the rounds | untraced | of the sums | \
         of the rounds",
    );
    for threshold in THRESHOLDS {
        let peer = lengths(Counter::Oslat, threshold);
        let mut row = format!("{threshold} µs | {}", format_quartiles(&peer, 1));
        for counter in [Counter::Pinwise(threshold), Counter::Untraced] {
            let own = lengths(counter, threshold);
            if own.is_empty() {
                row += " | – | – | –";
                continue;
            }
            let sums = own.iter().sum::<f64>() / peer.iter().sum::<f64>();
            let rounds = median(&ratios(&own, &peer));
            row += &format!(" | {} | {sums:.3} | {rounds:.3}", format_quartiles(&own, 1));
        }
        table.add_row(row);
    }
    table.publish()
}

/// Copies the binary to a place that an unprivileged user may read.
fn copy_readable_binary(setting: &Setting) -> Result<std::path::PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("pinwise-bench-{}", std::process::id()));
    std::fs::copy(&setting.pinwise, &path)?;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755))?;
    Ok(path)
}

fn run_pinwise(command: &mut Command, cpu: usize, threshold: u32) -> Result<Value> {
    command.args(["--store", "none", "--format", "json", "bench", "jitter"]);
    command.args(["--cpus", &cpu.to_string(), "--for", &format!("{SECONDS}s")]);
    command.args(["--threshold", &format!("{threshold}us")]);
    read_record(command)
}

fn read_rate(record: &Value) -> Result<f64> {
    let cpu = &record["cpus"][0];
    let figures = cpu["gaps"].as_f64().zip(cpu["watched_s"].as_f64());
    let (gaps, seconds) = figures.context("no gaps in the record")?;
    Ok(gaps / seconds)
}

/// Gaps per second above each threshold. A bucket is named by the µs that it ends with.
fn run_oslat(folder: &Path, cpu: usize) -> Result<BTreeMap<u32, f64>> {
    let file = folder.join("oslat.json");
    let mut command = Command::new("oslat");
    command.args(["-c", &cpu.to_string(), "-C", "0", "-D", SECONDS, "-q"]);
    command.args(["-b", &(THRESHOLDS[2] + 1).to_string()]);
    let output = command.arg(format!("--json={}", file.display())).output()?;
    if !output.status.success() {
        bail!("oslat: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let record: Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let thread = &record["thread"]["0"];
    let seconds = thread["duration"].as_f64().context("no duration")?;
    let buckets = thread["histogram"].as_object().context("no histogram")?;
    let from = |threshold: u32| {
        let longer = buckets.iter().filter_map(|(name, count)| {
            let end: u32 = name.parse().ok()?;
            (end > threshold).then_some(count.as_f64()?)
        });
        longer.sum::<f64>() / seconds
    };
    Ok(THRESHOLDS.into_iter().map(|at| (at, from(at))).collect())
}

fn describe_osnoise() -> &'static str {
    let tracers = std::fs::read_to_string("/sys/kernel/tracing/available_tracers");
    match tracers.is_ok_and(|all| all.split_whitespace().any(|tracer| tracer == "osnoise")) {
        true => "The kernel has the osnoise tracer, which was not run.",
        false => "The kernel has no osnoise tracer.",
    }
}
