//! `search` and `predict` as their users meet them: what is refused, what is
//! stored, shown, exported and gone on with.

mod simulated;
mod stored;

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::support::{decode_output, pinwise};

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
        let (out, err) = decode_output(&output);
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
        let (out, err) = decode_output(&output);
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
fn a_search_of_one_cpu_allows_one_thread() {
    let line = "search --machine 'sim:core:1 pu:1' --threads 2 -- prog";
    Stage::new().refuse(line, &["--threads 2", "only 1 CPU is allowed"]);
}

#[test]
fn a_resumed_search_takes_its_options_from_the_record() {
    let stage = Stage::new();
    for option in [
        "--threads 2",
        "--metric cpu",
        "--min-effect 2%",
        "--max-slowdown 9%",
        "--seed 1",
        "--input x",
        "--output inherit",
        "--prepare x",
        "--conclude x",
        "--timeout 1s",
        "--ignore-failure",
        "--shell=sh",
        "--env A=1",
        "--threads-env 2",
        "--tag x",
        "-- prog",
        "prog",
    ] {
        let name = option.split([' ', '=']).next().unwrap();
        let word = if name.starts_with("--") && name != "--" {
            name
        } else {
            "a command"
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
fn a_failed_search_reports_its_error() {
    let stage = Stage::new();
    // The first arm fails, which has all CPUs: without it there is nothing to compare with.
    let script = "! grep -q allowed_list:.*[-,] /proc/self/status || \
        { echo >> runs; test $(wc -l < runs) -lt 4 || exit 3; }; sleep 0.01";
    let line = format!("search --threads 1 --budget 20s -- sh -c '{script}'");
    stage.refuse(&line, &["failed with exit status 3"]);
    let list = stage.print("record list");
    assert!(list.contains("Ended with an error: os-default: "), "{list}");
    assert!(!list.contains("cut off"), "{list}");
}
