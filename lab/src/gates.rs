//! False alarms of gates and found slow-downs, with recorded noise and on this machine.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::Setting;
use crate::rounds::median;
use crate::table::Table;
use xtask::programs::{find_or_install, root};

/// Gates per cell of the first table.
const REPLAYS: u64 = 100;
/// Gates per cell of the second.
const LIVE: u64 = 8;
/// Recorded noise and its name.
pub(crate) const NOISES: [(&str, &str); 4] = [
    ("light_cpu", "light"),
    ("medium_mem", "medium"),
    ("aa_cpu1", "heavy"),
    ("aa_bg", "bursts"),
];
/// Benchmarks of a suite.
const BENCHMARKS: [&str; 6] = ["planted", "b", "c", "d", "e", "f"];
/// The planted slow-down.
const PLANTED_PERCENT: usize = 3;

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let mut table = Table::new("gates", HEAD);
    for (series, name) in NOISES {
        for planted in [false, true] {
            let mut cell = Cell::default();
            for seed in 0..REPLAYS {
                let record = gate_replayed(setting, series, planted, seed)?;
                cell.add(&record, |name| planted && name == "planted");
            }
            table.add_row(cell.format_row(&format!("{name} (`{series}`)"), planted));
        }
    }
    table.publish()?;
    let mut table = Table::new("gates-live", HEAD);
    for planted in [false, true] {
        let mut cell = Cell::default();
        for seed in 0..LIVE {
            let record = gate_live(setting, planted, seed)?;
            cell.add(&record, |name| planted && name == "planted");
        }
        table.add_row(cell.format_row("this machine", planted));
    }
    table.publish()
}

const HEAD: &str = "noise | planted | false alarm | found | missed | undecided | minutes | pairs";

/// The outcomes of gates.
#[derive(Default)]
pub(crate) struct Cell {
    pub(crate) gates: usize,
    /// Failed for a benchmark without a planted slow-down.
    pub(crate) alarms: usize,
    pub(crate) found: usize,
    /// Passed.
    pub(crate) missed: usize,
    pub(crate) undecided: usize,
    pub(crate) minutes: Vec<f64>,
    pairs: Vec<f64>,
}

impl Cell {
    pub(crate) fn add(&mut self, record: &Value, is_planted: impl Fn(&str) -> bool) {
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

    fn format_row(self, name: &str, planted: bool) -> String {
        let share = |count: usize| format!("{:.0} %", 100.0 * count as f64 / self.gates as f64);
        let alarms = share(self.alarms);
        let (found, missed, word) = match planted {
            true => (share(self.found), share(self.missed), "+3 %"),
            false => ("–".to_owned(), "–".to_owned(), "no"),
        };
        let undecided = share(self.undecided);
        format!(
            "{name} | {word} | {alarms} | {found} | {missed} | {undecided} | {:.1} | {:.0}",
            median(&self.minutes),
            median(&self.pairs)
        )
    }
}

/// Writes a machine that replays recorded noise, on which `planted` is slower in the head.
pub(crate) fn write_simulated(setting: &Setting, series: &str, percent: usize) -> Result<String> {
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

fn gate_replayed(setting: &Setting, series: &str, planted: bool, seed: u64) -> Result<Value> {
    let folder = setting.folder.path();
    let percent = if planted { PLANTED_PERCENT } else { 0 };
    let machine = write_simulated(setting, series, percent)?;
    let suite =
        BENCHMARKS.map(|name| format!("[[benchmark]]\nname = \"{name}\"\nrun = \"{name}\"\n"));
    std::fs::write(folder.join("gate.suite.toml"), suite.concat())?;
    let arguments = ["--machine", &machine, "--budget", "10m"];
    run_gate(setting, folder, "head", &arguments, seed)
}

/// Bytes of the files that the live benchmarks read.
const BYTES: usize = 1 << 20;

/// Runs six programs on files of each build; gzip's file is longer if a slow-down is planted.
fn gate_live(setting: &Setting, planted: bool, seed: u64) -> Result<Value> {
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
    run_gate(setting, folder, "head", &["--budget", "60s"], seed)
}

/// Runs a gate of `base` in this folder and reads its record.
pub(crate) fn run_gate(
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
