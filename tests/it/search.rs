//! The commands `search` and `predict`: refusals, stored records, text, exports, and resuming.

mod simulated;
mod stored;

use std::path::Path;
use std::process::Output;

use tempfile::TempDir;

use crate::support::{decode_output, pinwise};

/// A machine that needs no file.
const MACHINE: &str = "sim:package:1 l3:2 core:2 pu:2";

/// A folder with a store, in which pinwise runs.
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

    /// Standard output of a line that must succeed.
    #[track_caller]
    fn run_for_text(&self, line: &str) -> String {
        let output = self.run(line);
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{line}: {err}");
        out
    }

    #[track_caller]
    fn run_for_json(&self, line: &str) -> serde_json::Value {
        let out = self.run_for_text(&format!("--format json {line}"));
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{line}: {error}: {out}"))
    }

    /// Checks that a line is refused with one error that contains these words.
    #[track_caller]
    fn check_refusal(&self, line: &str, words: &[&str]) {
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
    Stage::new().check_refusal(line, &["--threads 2", "only 1 CPU is allowed"]);
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
        let is_option = name.starts_with("--") && name != "--";
        let word = if is_option { name } else { "a command" };
        let line = format!("search --resume last {option}");
        stage.check_refusal(&line, &["--resume", word]);
    }
    stage.check_refusal("search --resume last", &["the store is empty"]);
    stage.check_refusal("search --resume last --store none", &["--store none"]);
}

#[test]
fn a_failed_search_reports_its_error() {
    let stage = Stage::new();
    // The first arm fails, which has all CPUs: without it nothing can be compared.
    let script = "! grep -q allowed_list:.*[-,] /proc/self/status || \
        { echo >> runs; test $(wc -l < runs) -lt 4 || exit 3; }; sleep 0.01";
    let line = format!("search --threads 1 --budget 20s -- sh -c '{script}'");
    stage.check_refusal(&line, &["failed with exit status 3"]);
    let list = stage.run_for_text("record list");
    assert!(list.contains("Ended with an error: os-default: "), "{list}");
    assert!(!list.contains("cut off"), "{list}");
}
