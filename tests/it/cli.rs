//! The program as its users meet it: whole outputs as snapshots (standard
//! output, standard error and exit status together) of runs on simulated
//! machines, which come out the same everywhere.
//!
//! Nothing here runs a command for real; `linux.rs` does.

use std::process::Output;

use regex_lite::Regex;
use tempfile::TempDir;

use crate::support::{self, texts};

mod bench;
mod compare;
mod compare_trace;
mod exports;
mod help;
mod history;
mod recipes;
mod refusals;
mod report;
mod reproduce;
mod spin_tables;
mod stored;
mod streams;
mod topology;
mod verdicts;

/// Machines by the name of their file.
const MACHINES: [(&str, &str); 7] = [
    (
        // Two last-level caches; the two threads want to share one.
        "share.toml",
        r#"topology = "package:1 l3:2 core:2 pu:2"
[workload.default]
base_s = 0.5
threads = 2
[effects]
"one-llc" = 0.90
"one-core" = 1.5
[noise]
sd = 0.01
"#,
    ),
    (
        // No placement matters.
        "same.toml",
        r#"topology = "package:1 core:2 pu:1"
[workload.default]
base_s = 0.5
[noise]
sd = 0.005
"#,
    ),
    (
        // The first CPU is slow.
        "slow.toml",
        r#"topology = "package:1 core:2 pu:1"
[workload.default]
base_s = 0.5
[effects]
"cpu:0" = 1.10
[noise]
sd = 0.01
"#,
    ),
    (
        // Far too noisy for what there is to see.
        "noisy.toml",
        r#"topology = "package:1 core:2 pu:1"
[workload.default]
base_s = 0.5
[effects]
"cpu:0" = 0.98
[noise]
sd = 0.10
"#,
    ),
    (
        // Two threads on one core are out of the question; two packages are not.
        "hopeless.toml",
        r#"topology = "package:2 core:4 pu:2"
[workload.default]
base_s = 0.5
threads = 2
[effects]
"one-core" = 1.9
"one-package" = 0.99
[noise]
sd = 0.03
"#,
    ),
    (
        // Twenty CPUs, one of which is better.
        "twenty.toml",
        r#"topology = "package:2 l3:2 core:5 pu:1"
[workload.default]
base_s = 0.2
[workload.picky]
base_s = 0.2
effects = { "cpu:7" = 0.9 }
[noise]
sd = 0.02
"#,
    ),
    (
        // Programs that differ, and programs that fail.
        "programs.toml",
        r#"topology = "package:1 core:4 pu:1"
[workload.old]
base_s = 0.100
max_rss_bytes = 100000000
[workload.new]
base_s = 0.104
threads = 4
max_rss_bytes = 150000000
[workload.flaky]
base_s = 0.1
exit = 3
fail_probability = 0.1
[workload.broken]
base_s = 0.1
exit = 3
[noise]
sd = 0.01
"#,
    ),
];

/// Widest line that text for people may have.
const WIDTH: usize = 80;

/// A folder with the machines' files and a store of its own.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for (name, text) in MACHINES {
            stage.write(name, text);
        }
        stage
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    #[track_caller]
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// The command of a line such as `compare --seed 1 -- prog`, quoted as for
    /// a shell.
    fn command(&self, line: &str) -> std::process::Command {
        let mut command = support::pinwise(&self.folder.path().join("store.db"));
        command
            .args(shell_words::split(line).unwrap())
            .current_dir(self.folder.path())
            .env_remove("COLUMNS");
        command
    }

    /// Runs pinwise with a line of arguments.
    fn run(&self, line: &str) -> Ran {
        let output = self.command(line).output().unwrap();
        Ran::new(line, &output, self.folder.path().to_str().unwrap())
    }

    /// Runs what must succeed.
    #[track_caller]
    fn succeed(&self, line: &str) -> Ran {
        let ran = self.run(line);
        assert_eq!(ran.status, 0, "{ran}");
        ran
    }

    /// Runs what prints JSON: one line, with ids as they are.
    #[track_caller]
    fn json(&self, line: &str) -> serde_json::Value {
        let line = format!("--format json {line}");
        let output = self.command(&line).output().unwrap();
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{line}: {err}");
        assert_eq!(out.lines().count(), 1, "{line}: {out}");
        serde_json::from_str(&out).unwrap()
    }

    /// Runs a line, checks what holds for any output and compares the whole of
    /// it with the snapshot.
    #[track_caller]
    fn snapshot(&self, name: &str, line: &str) -> Ran {
        let ran = self.run(line);
        ran.check_form();
        check(name, &ran.to_string());
        ran
    }
}

/// What a run of pinwise gave. Record ids are made alike, at their length.
struct Ran {
    line: String,
    out: String,
    err: String,
    status: i32,
}

impl Ran {
    fn new(line: &str, output: &Output, folder: &str) -> Self {
        let id = Regex::new(r"\d{8}-\d{6}-[0-9a-f]{8}").unwrap();
        let (out, err) = texts(output);
        let alike = |text: String| {
            let text = text.replace(folder, "FOLDER");
            id.replace_all(&text, "YYYYMMDD-HHMMSS-xxxxxxxx")
                .into_owned()
        };
        Self {
            line: line.to_owned(),
            out: alike(out),
            err: alike(err),
            status: output.status.code().unwrap_or(-1),
        }
    }

    /// Text fits the width, and nothing is coloured.
    #[track_caller]
    fn check_form(&self) {
        assert!(!self.out.contains('\u{1b}'), "{self}");
        assert!(!self.err.contains('\u{1b}'), "{self}");
        for line in self.out.lines().filter(|line| !is_to_be_copied(line)) {
            assert!(line.chars().count() <= WIDTH, "too wide: {line}\n{self}");
            assert!(line.trim_end() == line || line.trim().is_empty(), "{line}|");
        }
    }
}

/// Commands, masks and records are for machines and stay on their line.
fn is_to_be_copied(line: &str) -> bool {
    let starts = [
        "{",
        "→ Run: ",
        "CPUs ",
        "taskset ",
        "numactl ",
        "hwloc-bind ",
        "omp ",
        "slurm ",
    ];
    starts.iter().any(|start| line.starts_with(start))
}

impl std::fmt::Display for Ran {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "$ pinwise {}", self.line)?;
        out.write_str(&self.out)?;
        if !self.err.is_empty() {
            write!(out, "-- standard error --\n{}", self.err)?;
        }
        writeln!(out, "-- exit status {} --", self.status)
    }
}

/// Compares a text with its snapshot in `tests/it/snapshots`.
#[track_caller]
fn check(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("cli-{name}"), text));
}
