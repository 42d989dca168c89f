//! `search` and `predict` as their users meet them: what is refused, what is
//! stored, shown, exported and gone on with.

mod simulated;
mod stored;

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::support::{pinwise, texts};

/// A machine without a file.
const MACHINE: &str = "sim:package:1 l3:2 core:2 pu:2";

/// A folder with a store of its own.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn command(&self, line: &str) -> std::process::Command {
        let mut command = pinwise(&self.path().join("store.db"));
        command
            .args(shell_words::split(line).unwrap())
            .current_dir(self.path());
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// What a line that must succeed prints.
    #[track_caller]
    fn print(&self, line: &str) -> String {
        let output = self.run(line);
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{line}: {err}");
        out
    }

    #[track_caller]
    fn json(&self, line: &str) -> serde_json::Value {
        let out = self.print(&format!("--format json {line}"));
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}"))
    }

    /// Runs a line that must be refused in one line that holds these words.
    #[track_caller]
    fn refuse(&self, line: &str, words: &[&str]) {
        let output = self.run(line);
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {out}{err}");
        assert_eq!(out, "", "{line}");
        let errors: Vec<&str> = err.lines().filter(|l| l.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{line}: {err}");
        assert!(err.lines().last().unwrap().starts_with("error: "), "{err}");
        for word in words {
            assert!(errors[0].contains(word), "{line}: '{word}' not in {err}");
        }
    }
}

#[test]
fn arguments_that_make_no_sense_are_refused_by_name() {
    let stage = Stage::new();
    let refused: [(&str, &[&str]); 23] = [
        ("--threads 0 -- prog", &["--threads '0'", "from 1"]),
        ("--threads 9 -- prog", &["--threads 9", "8 CPUs"]),
        ("--threads 4,9 -- prog", &["--threads 4,9", "8 CPUs"]),
        ("--threads 1..9 -- prog", &["--threads 1..9", "8 CPUs"]),
        ("--threads 4..2 -- prog", &["--threads '4..2'", "before"]),
        ("--threads 0..2 -- prog", &["--threads '0..2'"]),
        ("--threads x -- prog", &["--threads 'x'"]),
        ("--threads '' -- prog", &["--threads ''"]),
        ("-- prog -t {threads}", &["--threads", "{threads}"]),
        ("--threads 2 --threads-env 2 -- prog", &["--threads-env"]),
        ("--budget 0 -- prog", &["--budget", "at least 1"]),
        ("--budget soon -- prog", &["--budget", "90s", "40"]),
        (
            "--budget 40 --max-runs 30 -- prog",
            &["--budget", "--max-runs"],
        ),
        ("--max-runs 0 -- prog", &["--max-runs"]),
        ("--confirm=-1 -- prog", &["--confirm", "not below 0"]),
        ("--within 0% -- prog", &["--within"]),
        ("--within 100% -- prog", &["--within"]),
        ("--least-within x -- prog", &["--least-within"]),
        ("--metric fast -- prog", &["--metric", "fast"]),
        (
            "--metric 'regex:x' -- prog",
            &["--metric", "higher or lower"],
        ),
        ("--seed x -- prog", &["--seed"]),
        ("--threads 2", &["there is no command"]),
        (
            "--report nowhere/x.html -- prog",
            &["--report nowhere/x.html"],
        ),
    ];
    for (arguments, words) in refused {
        stage.refuse(&format!("search --machine '{MACHINE}' {arguments}"), words);
    }
    let listed = stage.json("record history");
    assert_eq!(listed["records"], serde_json::json!([]));
}

#[test]
fn a_search_of_one_cpu_allows_one_thread() {
    let line = "search --machine 'sim:core:1 pu:1' --threads 2 -- prog";
    Stage::new().refuse(line, &["--threads 2", "only 1 CPU is allowed"]);
}

#[test]
fn a_search_that_goes_on_takes_its_options_from_the_record() {
    let stage = Stage::new();
    for option in [
        "--threads 2",
        "--metric cpu",
        "--within 2%",
        "--least-within 9%",
        "--seed 1",
        "--input x",
        "--output inherit",
        "--prepare x",
        "--cleanup x",
        "--timeout 1s",
        "--ignore-failure",
        "--shell",
        "--env A=1",
        "--threads-env 2",
        "--tag x",
        "-- prog",
        "prog",
    ] {
        let name = option.split(' ').next().unwrap();
        let word = if name.starts_with("--") && name != "--" {
            name
        } else {
            "COMMAND"
        };
        stage.refuse(
            &format!("search --resume last {option}"),
            &["--resume", word],
        );
    }
    stage.refuse("search --resume last", &["the store is empty"]);
    stage.refuse("search --resume last --store none", &["--store none"]);
}

#[test]
fn predict_needs_a_search() {
    let stage = Stage::new();
    stage.refuse(
        "search predict",
        &["there is no search yet", "pinwise search"],
    );
    stage.refuse("search predict last", &["the store is empty"]);
    stage.refuse("search predict 2026", &["no record has the id '2026'"]);
    stage.refuse("search predict --threads 0", &["--threads"]);
    stage.print("compare --machine 'sim:core:2 pu:1' --seed 1 --max-runs 6 --place os-default --place cpu:0 -- prog");
    stage.refuse("search predict", &["there is no search yet"]);
    stage.refuse("search predict last", &["is a comparison, not a search"]);
    stage.refuse("search --resume last", &["not a search"]);
}
