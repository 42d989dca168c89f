//! Gates: false alarms and found slow-downs, replayed and on the live machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::Setting;
use super::process::{BUSY, Group, median};
use crate::programs::{find_or_install, root};

/// Gates per cell of the first table.
const REPLAYS: u64 = 100;
/// Gates per cell of the second.
const LIVE: u64 = 8;
/// Recorded noise, and what it is called.
const NOISES: [(&str, &str); 4] = [
    ("light_cpu", "light"),
    ("medium_mem", "medium"),
    ("aa_cpu1", "heavy"),
    ("aa_bg", "bursts"),
];
/// Benchmarks of a suite.
const BENCHMARKS: [&str; 6] = ["planted", "b", "c", "d", "e", "f"];
/// What is planted, as a share.
const PLANTED_PERCENT: usize = 3;

/// What is planted where pairs are counted, as a share.
const SMALL_PERCENT: usize = 2;
/// Most pairs of such a gate, replayed and live, and live gates per cell.
const MOST_PAIRS: usize = 400;
const MOST_LIVE_PAIRS: usize = 80;
const LIVE_POWER: u64 = 20;
/// Steps of the shell's loop that runs there, some 50 ms.
const STEPS: usize = 30_000;

pub(super) fn run(setting: &Setting) -> Result<String> {
    let power = power(setting)?;
    let mut replayed = String::new();
    for (series, name) in NOISES {
        for planted in [false, true] {
            let mut cell = Cell::default();
            for seed in 0..REPLAYS {
                let record = replay(setting, series, planted, seed)?;
                cell.add(&record, |name| planted && name == "planted");
            }
            replayed.push_str(&cell.row(&format!("{name} (`{series}`)"), planted));
        }
    }
    let mut live = String::new();
    for planted in [false, true] {
        let mut cell = Cell::default();
        for seed in 0..LIVE {
            let record = on_this_machine(setting, planted, seed)?;
            cell.add(&record, |name| planted && name == "planted");
        }
        live.push_str(&cell.row("this machine", planted));
    }
    Ok(section(&replayed, &live, &power))
}

fn section(replayed: &str, live: &str, power: &str) -> String {
    format!(
        "## Gates

`pinwise gate` over six benchmarks with a smallest effect of 1 %, {REPLAYS} gates per row, on
simulated machines that replay recorded noise (as in the first section): runs of 0.2 s,
`--budget 10m`. *Planted*: one of the six is {PLANTED_PERCENT} % slower. *False alarm*: a gate that failed
for a benchmark that is not slower (limit 5 %). *Found*: the planted one was called slower.
*Missed*: the gate passed. *Minutes*: median time of runs.

{HEADER}{replayed}
The same live, {LIVE} gates per row, `--budget 60s`: gzip, xz, sort, sha256sum, python3 and awk
on files of the build; the file of one is {PLANTED_PERCENT} % longer where a slow-down is planted.

{HEADER}{live}
One benchmark that is {SMALL_PERCENT} % slower, with its CPU time judged beside its wall-clock time, as
without a named metric, and by wall-clock time alone (`metric = \"wall\"`). *Pairs*: so many
found it in 80 % of the gates (the value of rank 80 % of all; more than the most where fewer
found it); *found*: of all gates, with at most {MOST_PAIRS} pairs, {REPLAYS} gates per row, or
{MOST_LIVE_PAIRS} live, {LIVE_POWER} gates per row of a shell's loop. *False alarm*: gates of equal builds that
failed, CPU time judged.

| noise | pairs | found | pairs, wall alone | found, wall alone | ratio | false alarm |
|---|---|---|---|---|---|---|
{power}"
    )
}

/// Pairs that find a small slow-down, by CPU and wall-clock time and by the latter alone.
fn power(setting: &Setting) -> Result<String> {
    let mut rows = String::new();
    for (series, name) in NOISES {
        let cell = |is_planted: bool, metric: &str| -> Result<Power> {
            let gates = (0..REPLAYS).map(|seed| {
                let percent = if is_planted { SMALL_PERCENT } else { 0 };
                replayed_pairs(setting, series, percent, metric, seed)
            });
            Ok(Power(gates.collect::<Result<_>>()?))
        };
        let name = format!("{name} (`{series}`)");
        rows.push_str(&power_row(&name, MOST_PAIRS, cell)?);
    }
    for (busy, name) in ["nothing else", "one busy process", "two busy processes"]
        .into_iter()
        .enumerate()
    {
        let cell = |is_planted: bool, metric: &str| -> Result<Power> {
            let gates = (0..LIVE_POWER).map(|seed| {
                let start = |_| Group::start(Command::new("sh").args(["-c", BUSY]));
                let others: Vec<Group> = (0..busy).map(start).collect::<Result<_>>()?;
                let percent = if is_planted { SMALL_PERCENT } else { 0 };
                let pairs = live_pairs(setting, percent, metric, seed);
                drop(others);
                pairs
            });
            Ok(Power(gates.collect::<Result<_>>()?))
        };
        let name = format!("this machine, {name}");
        rows.push_str(&power_row(&name, MOST_LIVE_PAIRS, cell)?);
    }
    Ok(rows)
}

/// Of each gate the pairs that found its benchmark slower; `None` where it did not.
struct Power(Vec<Option<usize>>);

impl Power {
    fn found(&self) -> f64 {
        let found = self.0.iter().flatten().count();
        100.0 * found as f64 / self.0.len() as f64
    }

    /// Pairs that are enough for 80 % of the gates.
    fn pairs(&self) -> Option<usize> {
        let mut sorted: Vec<usize> = self.0.iter().map(|p| p.unwrap_or(usize::MAX)).collect();
        sorted.sort_unstable();
        let enough = sorted[(sorted.len() * 4).div_ceil(5) - 1];
        (enough < usize::MAX).then_some(enough)
    }
}

fn power_row(
    name: &str,
    most: usize,
    cell: impl Fn(bool, &str) -> Result<Power>,
) -> Result<String> {
    let (both, wall) = (cell(true, "")?, cell(true, "metric = \"wall\"\n")?);
    let same = cell(false, "")?;
    let pairs = |power: &Power| match power.pairs() {
        Some(pairs) => pairs.to_string(),
        None => format!("> {most}"),
    };
    let ratio = match (both.pairs(), wall.pairs()) {
        (Some(both), Some(wall)) => format!("{:.2}", both as f64 / wall as f64),
        (Some(both), None) => format!("< {:.2}", both as f64 / most as f64),
        _ => "–".to_owned(),
    };
    let row = format!(
        "| {name} | {} | {:.0} % | {} | {:.0} % | {ratio} | {:.0} % |\n",
        pairs(&both),
        both.found(),
        pairs(&wall),
        wall.found(),
        same.found()
    );
    eprint!("xtask: {row}");
    Ok(row)
}

fn replayed_pairs(
    setting: &Setting,
    series: &str,
    percent: usize,
    metric: &str,
    seed: u64,
) -> Result<Option<usize>> {
    let machine = simulated(setting, series, percent)?;
    let suite = format!("[[benchmark]]\nname = \"planted\"\nrun = \"planted\"\n{metric}");
    let arguments = ["--machine", &machine];
    pairs_that_found(setting, &suite, &arguments, MOST_PAIRS, seed)
}

/// A loop of the shell, which the head goes round a little more often.
fn live_pairs(setting: &Setting, percent: usize, metric: &str, seed: u64) -> Result<Option<usize>> {
    for (build, percent) in [("base", 0), ("head", percent)] {
        let there = setting.folder.path().join(build);
        std::fs::create_dir_all(&there)?;
        let steps = STEPS + STEPS * percent / 100;
        let script = format!("i=0; while [ $i -lt {steps} ]; do i=$((i + 1)); done\n");
        std::fs::write(there.join("loop.sh"), script)?;
    }
    let suite = format!("[[benchmark]]\nname = \"loop\"\nrun = \"sh loop.sh\"\n{metric}");
    pairs_that_found(setting, &suite, &[], MOST_LIVE_PAIRS, seed)
}

fn pairs_that_found(
    setting: &Setting,
    suite: &str,
    arguments: &[&str],
    most: usize,
    seed: u64,
) -> Result<Option<usize>> {
    let folder = setting.folder.path();
    std::fs::write(folder.join("gate.suite.toml"), suite)?;
    let most = most.to_string();
    let arguments = [arguments, &["--max-pairs", &most]].concat();
    let record = gate(setting, folder, "head", &arguments, seed)?;
    let benchmark = &record["benchmarks"][0];
    let pairs = benchmark["pairs"].as_array().map_or(0, Vec::len);
    Ok((benchmark["outcome"] == "slower").then_some(pairs))
}

const HEADER: &str = "\
| noise | planted | false alarm | found | missed | undecided | minutes | pairs |
|---|---|---|---|---|---|---|---|
";

/// What became of gates.
#[derive(Default)]
pub(super) struct Cell {
    pub(super) gates: usize,
    /// Failed for a benchmark without a planted slow-down.
    pub(super) alarms: usize,
    pub(super) found: usize,
    /// Passed.
    pub(super) missed: usize,
    pub(super) undecided: usize,
    pub(super) minutes: Vec<f64>,
    pairs: Vec<f64>,
}

impl Cell {
    pub(super) fn add(&mut self, record: &Value, is_planted: impl Fn(&str) -> bool) {
        let benchmarks = record["benchmarks"].as_array();
        let slower = |planted: bool| {
            benchmarks.into_iter().flatten().any(|benchmark| {
                let name = benchmark["name"].as_str().unwrap_or_default();
                benchmark["outcome"] == "slower" && is_planted(name) == planted
            })
        };
        self.gates += 1;
        self.alarms += usize::from(slower(false));
        self.found += usize::from(slower(true));
        self.missed += usize::from(record["verdict"]["decision"] == "pass");
        self.undecided += usize::from(record["verdict"]["decision"] == "undecided");
        let pairs = benchmarks.into_iter().flatten();
        let pairs = pairs.map(|one| one["pairs"].as_array().map_or(0, Vec::len));
        self.pairs.push(pairs.sum::<usize>() as f64);
        self.minutes
            .push(record["elapsed_s"].as_f64().unwrap_or(0.0) / 60.0);
    }

    fn row(self, name: &str, planted: bool) -> String {
        let share = |count: usize| format!("{:.0} %", 100.0 * count as f64 / self.gates as f64);
        let alarms = share(self.alarms);
        let (found, missed, word) = match planted {
            true => (share(self.found), share(self.missed), "+3 %"),
            false => ("–".to_owned(), "–".to_owned(), "no"),
        };
        let undecided = share(self.undecided);
        format!(
            "| {name} | {word} | {alarms} | {found} | {missed} | {undecided} | {:.1} | {:.0} |\n",
            median(self.minutes),
            median(self.pairs)
        )
    }
}

/// A machine that replays recorded noise, where `planted` is slower in the head.
fn simulated(setting: &Setting, series: &str, percent: usize) -> Result<String> {
    let series = root().join(format!("tests/data/series/{series}.csv.xz"));
    let machine = format!(
        "topology = \"package:1 core:2 pu:1\"\n[workload.default]\nbase_s = 0.2\n\
         [workload.\"head/planted\"]\nbase_s = {}\n[noise]\nkind = \"series\"\nseries = \"{}\"\n",
        0.2 * (1.0 + percent as f64 / 100.0),
        series.display()
    );
    let path = setting.folder.path().join("gate.machine.toml");
    std::fs::write(&path, machine)?;
    Ok(format!("sim:{}", path.display()))
}

fn replay(setting: &Setting, series: &str, planted: bool, seed: u64) -> Result<Value> {
    let folder = setting.folder.path();
    let percent = if planted { PLANTED_PERCENT } else { 0 };
    let machine = simulated(setting, series, percent)?;
    let suite =
        BENCHMARKS.map(|name| format!("[[benchmark]]\nname = \"{name}\"\nrun = \"{name}\"\n"));
    std::fs::write(folder.join("gate.suite.toml"), suite.concat())?;
    let arguments = ["--machine", &machine, "--budget", "10m"];
    gate(setting, folder, "head", &arguments, seed)
}

/// Bytes of the files that the live benchmarks read.
const BYTES: usize = 1 << 20;

/// Six programs on a file of each build; that of gzip is longer where a
/// slow-down is planted.
fn on_this_machine(setting: &Setting, planted: bool, seed: u64) -> Result<Value> {
    for program in ["gzip", "xz", "sort", "sha256sum", "python3", "awk"] {
        let package = match program {
            "xz" => "xz-utils",
            "sort" | "sha256sum" => "coreutils",
            other => other,
        };
        find_or_install(program, package)?;
    }
    let folder = setting.folder.path();
    let bytes = std::fs::read(&setting.pinwise)?;
    for build in ["base", "head"] {
        let there = folder.join(build);
        std::fs::create_dir_all(&there)?;
        let longer = planted && build == "head";
        let some = |percent: usize| &bytes[..(BYTES + BYTES / 100 * percent).min(bytes.len())];
        let percent = if longer { PLANTED_PERCENT } else { 0 };
        std::fs::write(there.join("planted.bin"), some(percent))?;
        std::fs::write(there.join("file.bin"), some(0))?;
        let lines: String = (0..40_000u64)
            .map(|n| format!("{}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20))
            .collect();
        std::fs::write(there.join("lines.txt"), lines)?;
    }
    let suite = [
        ("planted", "gzip -6 -c planted.bin"),
        ("xz", "xz -1 -c file.bin"),
        ("sort", "sort -n lines.txt"),
        ("sha256sum", "sha256sum file.bin file.bin file.bin file.bin"),
        (
            "python3",
            "python3 -S -c 'sum(i * i for i in range(300000))'",
        ),
        ("awk", "awk '{ sum += $1 % 7 } END { print sum }' lines.txt"),
    ];
    let suite =
        suite.map(|(name, run)| format!("[[benchmark]]\nname = \"{name}\"\nrun = '''{run}'''\n"));
    std::fs::write(folder.join("gate.suite.toml"), suite.concat())?;
    gate(setting, folder, "head", &["--budget", "60s"], seed)
}

/// The record of a gate of `base` in this folder.
pub(super) fn gate(
    setting: &Setting,
    folder: &Path,
    head: &str,
    arguments: &[&str],
    seed: u64,
) -> Result<Value> {
    let output = Command::new(&setting.pinwise)
        .current_dir(folder)
        .args(["--store", "none", "--quiet", "--format", "json"])
        .args(["gate", "base", head, "--suite", "gate.suite.toml"])
        .args(["--seed", &seed.to_string()])
        .args(arguments)
        .output()?;
    if output.stdout.is_empty() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("a gate's record")
}
