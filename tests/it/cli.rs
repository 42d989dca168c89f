//! Whole outputs of the program (standard output, standard error and exit status) as snapshots, on
//! simulated machines, which are the same everywhere.
//!
//! Real commands are run in `linux.rs`.

use std::path::{Path, PathBuf};
use std::process::Output;

use regex_lite::Regex;
use tempfile::TempDir;

use crate::support::{self, decode_output};

mod bench;
mod compare;
mod compare_trace;
mod exports;
mod help;
mod history;
mod hyperfine;
mod recipes;
mod refusals;
mod report;
mod reproduce;
mod spin_tables;
mod stored;
mod streams;
mod timed_out;
mod topology;
mod whole;

/// Widest line that text for people may have.
const WIDTH: usize = 80;

/// Files of a folder of the project.
fn list_files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(support::root().join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// A folder with a store and the files of simulated and captured machines, in which pinwise runs.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let [own, report] = ["tests/data/stage", "crates/study/field-reports"].map(list_files);
        let captured = list_files("tests/data/machines").into_iter();
        let captured = captured.filter(|file| file.extension().is_some_and(|e| e == "capture"));
        for file in own.into_iter().chain(report).chain(captured) {
            let name = file.file_name().unwrap();
            std::fs::copy(&file, stage.folder.path().join(name)).unwrap();
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
    fn run(&self, line: &str) -> FinishedRun {
        let output = self.command(line).output().unwrap();
        FinishedRun::new(line, &output, self.folder.path().to_str().unwrap())
    }

    /// Runs a line that must succeed.
    #[track_caller]
    fn run_ok(&self, line: &str) -> FinishedRun {
        let ran = self.run(line);
        assert_eq!(ran.status, 0, "{ran}");
        ran
    }

    /// Runs a line that must print one line of JSON, and parses that with its ids.
    #[track_caller]
    fn run_for_json(&self, line: &str) -> serde_json::Value {
        let line = format!("--format json {line}");
        let output = self.command(&line).output().unwrap();
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{line}: {err}");
        assert_eq!(out.lines().count(), 1, "{line}: {out}");
        serde_json::from_str(&out).unwrap()
    }

    /// Runs a line, checks what holds for any output and compares the whole of
    /// it with the snapshot.
    #[track_caller]
    fn check_snapshot(&self, name: &str, line: &str) -> FinishedRun {
        let ran = self.run(line);
        ran.check_form();
        check_text(name, &ran.to_string());
        ran
    }

    /// The same for several lines, in one snapshot.
    #[track_caller]
    fn check_transcript(&self, name: &str, lines: &[&str]) {
        let run = |line: &&str| {
            let ran = self.run(line);
            ran.check_form();
            ran.to_string()
        };
        check_text(name, &lines.iter().map(run).collect::<String>());
    }
}

/// Output and exit status of pinwise. Ids of records are replaced by text of the same length.
struct FinishedRun {
    line: String,
    out: String,
    err: String,
    status: i32,
}

impl FinishedRun {
    fn new(line: &str, output: &Output, folder: &str) -> Self {
        let id = Regex::new(r"\d{8}-\d{6}-[0-9a-f]{8}").unwrap();
        let (out, err) = decode_output(output);
        let replace_ids = |text: String| {
            let text = text.replace(folder, "FOLDER");
            id.replace_all(&text, "YYYYMMDD-HHMMSS-xxxxxxxx")
                .into_owned()
        };
        Self {
            line: line.to_owned(),
            out: replace_ids(out),
            err: replace_ids(err),
            status: output.status.code().unwrap_or(-1),
        }
    }

    /// Checks that the text fits the width, and has no colours.
    #[track_caller]
    fn check_form(&self) {
        assert!(!self.out.contains('\u{1b}'), "{self}");
        assert!(!self.err.contains('\u{1b}'), "{self}");
        for line in self.out.lines().filter(|line| !is_for_machines(line)) {
            assert!(line.chars().count() <= WIDTH, "too wide: {line}\n{self}");
            assert!(line.trim_end() == line || line.trim().is_empty(), "{line}|");
        }
    }
}

/// Whether a line is for machines, such as a command, a mask or a record. It may be wider.
fn is_for_machines(line: &str) -> bool {
    let starts = [
        "{",
        "→ Run: ",
        "CPUs ",
        "taskset ",
        "numactl ",
        "hwloc-bind ",
        "omp ",
        "slurm ",
        "# verify: ",
    ];
    let is_next_step = line.starts_with("→ To ") && line.contains(", run: ");
    is_next_step || starts.iter().any(|start| line.starts_with(start))
}

impl std::fmt::Display for FinishedRun {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "$ pinwise {}", self.line)?;
        out.write_str(&self.out)?;
        if !self.err.is_empty() {
            write!(out, "-- standard error --\n{}", self.err)?;
        }
        writeln!(out, "-- exit status {} --", self.status)
    }
}

/// Compares a text with the contents of its file, or writes it there with `INSTA_UPDATE=always`.
#[track_caller]
fn check_file(file: &Path, expected: &str, found: &str) {
    if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        std::fs::write(file, found).unwrap();
        return;
    }
    let lines = expected.lines().zip(found.lines());
    let different: Vec<_> = lines.filter(|(then, now)| then != now).collect();
    let is_same = different.is_empty() && expected == found;
    assert!(is_same, "{}: {different:#?}", file.display());
}

/// Compares a text with its snapshot in `tests/it/snapshots`.
#[track_caller]
fn check_text(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(format!("cli-{name}"), text));
}
