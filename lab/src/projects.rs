//! Gates over the benchmarks of six open-source projects, and the verdicts of the projects' own tools
//! on the same builds.
//!
//! Each script of `projects/` creates a suite of a few benchmarks and two builds from the published
//! source of a project: `base`, and `head` with a planted slow-down of one benchmark. A third build,
//! `same`, is a copy of `base`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use pinwise_stats::{describe, welch};

use crate::Setting;
use crate::aa::{LEVEL, read_times};
use crate::gates::{Cell, run_gate};
use crate::rounds::{median, take_turns};
use crate::table::Table;
use xtask::programs::{find_or_install, read_output};

/// Gates of each kind and project.
const GATES: u64 = 1;
/// Series of each build, alternating, to measure the planted effect.
const SERIES: usize = 9;
/// The smallest effect of interest: smaller ones need not be found.
const MIN_EFFECT: f64 = 0.01;
const BUDGET: &str = "10m";
const SOURCES: &str = include_str!("../projects/sources.sh");

struct Project {
    name: &'static str,
    benchmarks: &'static str,
    script: &'static str,
    /// Part of the name of the benchmark that is slower in `head`.
    planted: &'static str,
    /// Programs and their Debian packages.
    needs: &'static [(&'static str, &'static str)],
    /// A tool that compares two builds. `peer.sh BASE HEAD` prints the benchmarks that it calls
    /// slower; with hyperfine it writes files of times instead.
    peer: Option<&'static str>,
}

const PROJECTS: [Project; 6] = [
    Project {
        name: "fancy-regex 0.14.0",
        benchmarks: "Rust, criterion",
        script: include_str!("../projects/rust.sh"),
        planted: "run_tricky",
        needs: &[("python3", "python3")],
        peer: Some("criterion"),
    },
    Project {
        name: "snappy 1.1.9",
        benchmarks: "C++, Google Benchmark",
        script: include_str!("../projects/cpp.sh"),
        planted: "BM_ZFlat",
        needs: &[
            ("g++", "g++"),
            ("/usr/include/benchmark/benchmark.h", "libbenchmark-dev"),
            ("cmake", "cmake"),
            ("python3", "python3"),
        ],
        peer: None,
    },
    Project {
        name: "regexp2 1.11.5",
        benchmarks: "Go",
        script: include_str!("../projects/go.sh"),
        planted: "MatchHard",
        needs: &[("go", "golang-go"), ("python3", "python3")],
        peer: Some("benchstat"),
    },
    Project {
        name: "commons-csv 1.10.0",
        benchmarks: "Java, JMH",
        script: include_str!("../projects/java.sh"),
        planted: "parseCommonsCSV",
        needs: &[
            ("javac", "default-jdk-headless"),
            ("mvn", "maven"),
            ("unzip", "unzip"),
            ("python3", "python3"),
        ],
        peer: None,
    },
    Project {
        name: "fastjsonschema 2.22.3",
        benchmarks: "Python, pytest-benchmark",
        script: include_str!("../projects/python.sh"),
        planted: "ok_values",
        needs: &[("python3", "python3 python3-venv")],
        peer: None,
    },
    Project {
        name: "lz4 1.9.4",
        benchmarks: "C, the tool itself",
        script: include_str!("../projects/tool.sh"),
        planted: "slow",
        needs: &[
            ("make", "make"),
            ("cc", "gcc"),
            ("python3", "python3"),
            ("hyperfine", "hyperfine"),
        ],
        peer: Some("hyperfine"),
    },
];

pub(crate) fn run(setting: &Setting) -> Result<()> {
    let mut table = Table::new(
        "projects",
        "project | benchmarks | planted | alarm: same | alarm: planted | found | missed | \
         undecided: same, planted | minutes | beside: alarms | beside: found",
    );
    let (mut unchanged, mut planted) = (Cell::default(), Cell::default());
    for project in &PROJECTS {
        let result = prepare_builds(setting, project).and_then(|folder| {
            measure_row(setting, project, &folder, &mut unchanged, &mut planted)
        });
        match result {
            Ok(row) => table.add_row(row),
            Err(why) => println!("SKIPPED {}: {why:#}", project.name),
        }
    }
    table.publish()?;
    println!(
        "\nIn all: {} false alarms in {} gates; {} of {} planted slow-downs found, {} missed.",
        unchanged.alarms + planted.alarms,
        unchanged.gates + planted.gates,
        planted.found,
        planted.gates,
        planted.missed,
    );
    Ok(())
}

/// Creates a folder with the builds of a project, its suite, and the needs of its peer.
fn prepare_builds(setting: &Setting, project: &Project) -> Result<PathBuf> {
    for (program, package) in project.needs {
        find_or_install(program, package)?;
    }
    let word = project.name.split(' ').next().unwrap_or_default();
    let folder = setting.folder.path().join(word);
    std::fs::create_dir_all(&folder)?;
    let script = format!("{SOURCES}{}cp -a base same\n", project.script);
    std::fs::write(folder.join("make.sh"), script)?;
    eprintln!("lab: building {}", project.name);
    read_output(shell_command(&folder).arg("make.sh"))?;
    Ok(folder)
}

fn shell_command(folder: &Path) -> Command {
    let mut command = Command::new("sh");
    // The projects must not see Cargo's variables for this crate.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_") && text != "CARGO_HOME" {
            command.env_remove(&name);
        }
    }
    command.arg("-eu").current_dir(folder);
    command
}

fn measure_row(
    setting: &Setting,
    project: &Project,
    folder: &Path,
    all_unchanged: &mut Cell,
    all_planted: &mut Cell,
) -> Result<String> {
    let size = measure_planted_effect(folder)?;
    let is_effect_of_interest = size >= MIN_EFFECT;
    let (mut unchanged, mut planted) = (Cell::default(), Cell::default());
    let (mut alarms, mut found) = (0, 0);
    for seed in 0..GATES {
        for (head, cell) in [("same", &mut unchanged), ("head", &mut planted)] {
            let is_changed = head == "head";
            let is_slower = |name: &str| is_changed && name.contains(project.planted);
            let record = run_gate(setting, folder, head, &["--budget", BUDGET], seed)?;
            cell.add(&record, is_slower);
            match is_changed && is_effect_of_interest {
                true => all_planted.add(&record, is_slower),
                false => all_unchanged.add(&record, is_slower),
            }
            for slower in list_slower_by_peer(project, folder, head)? {
                match is_slower(&slower) {
                    true => found += 1,
                    false => alarms += 1,
                }
            }
            let decision = &record["verdict"]["sentence"];
            eprintln!("lab: {} {head} {seed}: {decision}", project.name);
        }
    }
    let of_gates = |count: usize| match is_effect_of_interest {
        true => format!("{count} of {GATES}"),
        false => "–".to_owned(),
    };
    let beside = project.peer.map_or_else(
        || "– | –".to_owned(),
        |name| format!("{name} {alarms} | {}", of_gates(found)),
    );
    Ok(format!(
        "{} | {} | {:+.1} % | {} of {GATES} | {} of {GATES} | {} | {} | {}, {} | {:.1} | {beside}",
        project.name,
        project.benchmarks,
        100.0 * size,
        unchanged.alarms,
        planted.alarms,
        of_gates(planted.found),
        of_gates(planted.missed),
        unchanged.undecided,
        planted.undecided,
        median(&[unchanged.minutes, planted.minutes].concat()),
    ))
}

/// The planted slow-down, as a share. `size.sh BUILD` prints the shortest time of a series, which
/// others disturb least.
fn measure_planted_effect(folder: &Path) -> Result<f64> {
    let builds = ["base", "head"];
    let times = take_turns(SERIES, builds.len(), |build| {
        let text = read_output(shell_command(folder).args(["size.sh", builds[build]]))?;
        text.trim().parse::<f64>().context("size.sh prints a time")
    })?;
    Ok(median(&times[1]) / median(&times[0]) - 1.0)
}

/// Benchmarks that the project's own tool calls slower.
fn list_slower_by_peer(project: &Project, folder: &Path, head: &str) -> Result<Vec<String>> {
    let Some(peer) = project.peer else {
        return Ok(Vec::new());
    };
    let text = read_output(shell_command(folder).args(["peer.sh", "base", head]))?;
    match peer {
        "hyperfine" => list_slower_by_hyperfine(folder),
        _ => Ok(text.lines().map(str::to_owned).collect()),
    }
}

/// Benchmarks that are slower by hyperfine's times; each file is one benchmark.
fn list_slower_by_hyperfine(folder: &Path) -> Result<Vec<String>> {
    let mut slower = Vec::new();
    for entry in std::fs::read_dir(folder.join("times"))? {
        let path = entry?.path();
        let [base, head] = read_times(&path)?;
        let is_longer = describe::mean(&head) > describe::mean(&base);
        if is_longer && welch::two_sided_p(&base, &head) < LEVEL {
            let name = path.file_stem().context("a name")?;
            slower.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(slower)
}
