//! Figures of traces of twelve programs beside what the kernel says of them,
//! over all tiers.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Setting;
use crate::process::{compile, copy_programs};
use crate::rounds::median;
use crate::table::Table;
use xtask::programs::find_or_install;

const TIERS: [&str; 5] = ["proc", "switch", "cpu-wide", "tracepoint", "bpf"];
const ROUNDS: usize = 3;
/// A user of every Debian whom nothing runs as.
const USER: &str = "games";
/// Figures may differ by this much, or are marked as bounds.
const ALLOWED: f64 = 0.03;
/// What is less is not judged, s and switches: two clocks cannot agree on it.
const LEAST_S: f64 = 0.05;
const LEAST_SWITCHES: f64 = 100.0;

/// Programs: a name, what it needs, and its command line in a folder of its own.
const PROGRAMS: [(&str, &str, &str); 12] = [
    ("hackbench", "hackbench", "hackbench -g 4 -l 400"),
    ("Java", "java", "java -cp . Pool"),
    ("Go", "go", "./pool"),
    ("Python pool", "python3", "python3 pool.py"),
    ("make -j2", "make", "make -s clean && make -s -j2"),
    (
        "fork storm",
        "sh",
        "i=0; while [ $i -lt 1500 ]; do /bin/true; i=$((i+1)); done",
    ),
    (
        "stress-ng cpu",
        "stress-ng",
        "stress-ng --cpu 4 -t 2 --temp-path .",
    ),
    (
        "stress-ng switch",
        "stress-ng",
        "stress-ng --switch 2 -t 1 --temp-path .",
    ),
    ("500 threads", "cc", "./threads 500"),
    ("2,000 threads", "cc", "./threads 2000"),
    ("PostgreSQL", "postgres pgbench", "./postgres.sh"),
    ("nginx", "nginx ab", "./nginx.sh"),
];

/// Debian's packages, where it is not called like the program.
const PACKAGES: [(&str, &str); 7] = [
    ("ab", "apache2-utils"),
    ("hackbench", "rt-tests"),
    ("java", "default-jdk-headless"),
    ("go", "golang-go"),
    ("cc", "gcc"),
    ("postgres", "postgresql"),
    ("pgbench", "postgresql-contrib"),
];

/// What two of them say of one figure.
#[derive(Debug, Clone, Default)]
struct Figure {
    kernel: Vec<f64>,
    ratio: Vec<f64>,
    is_at_least: bool,
    is_at_most: bool,
    /// Less than this is not judged.
    least: f64,
}

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let folder = prepare_programs()?;
    let script = folder.join("figures.py");
    let mut table = Table::new(
        "trace-figures",
        "program | tier | CPU time | queued | switches | threads",
    );
    let mut beyond = 0;
    for (name, needed, line) in PROGRAMS {
        for needed in needed.split(' ') {
            find_or_install(needed, package(needed))?;
        }
        for tier in TIERS {
            let figures = measure_run(setting, &folder, &script, tier, line)?;
            let cells: Vec<String> = figures.iter().map(|f| cell(f, &mut beyond)).collect();
            table.row(format!("{name} | {tier} | {}", cells.join(" | ")));
        }
    }
    std::fs::remove_dir_all(&folder)?;
    table.publish()?;
    println!(
        "\n{beyond} of {} figures are further than {} % away and not marked.",
        PROGRAMS.len() * TIERS.len() * 4,
        ALLOWED * 100.0,
    );
    Ok(())
}

fn package(program: &str) -> &str {
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    known.map_or(program, |(_, package)| package)
}

/// A folder of that user with all programs in it.
fn prepare_programs() -> Result<std::path::PathBuf> {
    // Below `target` it could not be entered by another user.
    let folder = std::env::temp_dir().join(format!("pinwise-figures-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    copy_programs("figures", &folder)?;
    std::fs::create_dir_all(folder.join("t"))?;
    let options = ["-O1", "-pthread"];
    compile(&folder, "figures/threads.c", "threads", &options)?;
    compile(&folder, "figures/exits.c", "exits", &["-O1"])?;
    for line in ["javac Pool.java", "go build -o pool pool.go"] {
        let mut words = line.split(' ');
        let program = words.next().context("a command")?;
        find_or_install(program, package(program))?;
        let made = Command::new(program)
            .args(words)
            .current_dir(&folder)
            .status()?;
        ensure!(made.success(), "{line} failed");
    }
    std::fs::copy(std::env::current_exe()?, folder.join("lab"))?;
    let owner = format!("{USER}:");
    let owned = Command::new("chown")
        .arg("-R")
        .arg(owner)
        .arg(&folder)
        .status()?;
    ensure!(owned.success(), "the folder cannot be given to {USER}");
    Ok(folder)
}

/// CPU time, queued, switches, threads.
fn measure_run(
    setting: &Setting,
    folder: &Path,
    script: &Path,
    tier: &str,
    line: &str,
) -> Result<[Figure; 4]> {
    let mut figures: [Figure; 4] = Default::default();
    for _ in 0..ROUNDS {
        let output = Command::new("python3")
            .arg(script)
            .arg(&setting.pinwise)
            .arg(folder.join("lab"))
            .arg(folder.join("exits"))
            .args([USER, tier, "sh", "-c", line])
            .current_dir(folder)
            .stderr(Stdio::inherit())
            .output()?;
        ensure!(
            output.status.success(),
            "{tier}: {line} could not be traced"
        );
        let output_text: Value = serde_json::from_slice(&output.stdout)?;
        let at_least = output_text["at_least"].to_string();
        let at_most = output_text["at_most"].to_string();
        let keys = [
            ("cpu_s", "cpu_time", LEAST_S),
            ("wait_s", "queued", LEAST_S),
            ("switches", "switches", LEAST_SWITCHES),
            ("threads", "threads", 0.0),
        ];
        let ends = output_text["trace"]["threads"].as_f64().unwrap_or(0.0);
        for (figure, (key, bound, least)) in figures.iter_mut().zip(keys) {
            let kernel = output_text["kernel"][key].as_f64().unwrap_or(f64::NAN);
            let mut trace = output_text["trace"][key].as_f64().unwrap_or(f64::NAN);
            if key == "switches" && ends > ALLOWED * trace {
                trace = f64::NAN;
            }
            figure.kernel.push(kernel);
            figure.ratio.push(trace / kernel);
            figure.least = least;
            figure.is_at_least |= at_least.contains(bound);
            figure.is_at_most |= at_most.contains(bound);
        }
    }
    Ok(figures)
}

fn cell(figure: &Figure, beyond: &mut usize) -> String {
    let kernel = median(&figure.kernel);
    let ratio = median(&figure.ratio);
    if !ratio.is_finite() || kernel < figure.least {
        return "–".to_owned();
    }
    // The truth may lie this far below and above what is printed.
    let (mark, below, above) = match (figure.is_at_least, figure.is_at_most) {
        (false, false) => ("", ALLOWED, ALLOWED),
        (true, false) => ("≥ ", ALLOWED, f64::INFINITY),
        (false, true) => ("≤ ", f64::INFINITY, ALLOWED),
        (true, true) => ("≈ ", f64::INFINITY, f64::INFINITY),
    };
    let text = format!("{mark}{ratio:.3}");
    if (-above..=below).contains(&(ratio - 1.0)) {
        return text;
    }
    *beyond += 1;
    format!("**{text}**")
}
