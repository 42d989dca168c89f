//! Files that are written: none that is needed is lost, whatever is asked for.

use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::{pinwise, recorded_trace, texts};

const KEPT: &str = "what stood there before";

struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new() -> Self {
        let stage = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(stage.path("keep"), KEPT).unwrap();
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, line: &str) -> Output {
        pinwise(&self.path("store.db"))
            .args(line.split_whitespace())
            .current_dir(self.folder.path())
            .output()
            .unwrap()
    }

    /// Refused in one line that says this.
    #[track_caller]
    fn refused(&self, line: &str, words: &str) {
        let output = self.run(line);
        let (_, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {err}");
        assert!(err.contains(words), "{line}: {err}");
        assert_eq!(err.lines().count(), 1, "{line}: {err}");
        let kept = std::fs::read_to_string(self.path("keep")).unwrap();
        assert_eq!(kept, KEPT, "{line}");
    }
}

#[test]
fn what_is_read_is_not_written() {
    let stage = Stage::new();
    let recorded = recorded_trace("all.data");
    std::fs::write(stage.path("perf.data"), &recorded).unwrap();
    std::os::unix::fs::symlink("perf.data", stage.path("link")).unwrap();
    for output in [
        "--export csv:perf.data",
        "--export perfetto:./link",
        "--export-json perf.data",
    ] {
        let line = format!("trace import {output} perf.data");
        stage.refused(&line, "the import reads that file");
    }
    assert_eq!(std::fs::read(stage.path("perf.data")).unwrap(), recorded);
    let all = "trace --no-cost --input keep --export csv:keep -- cat";
    stage.refused(all, "--input reads that file");
    let line = "compare --input keep --export-csv ./keep --place os-default -- cat";
    stage.refused(line, "--input reads that file");
}

#[test]
fn the_store_is_no_file_for_results() {
    let stage = Stage::new();
    assert!(stage.run("spin pause").status.success());
    for line in [
        "trace --no-cost --export csv:store.db -- true",
        "trace --no-cost --export-json ./store.db-wal -- true",
        "profile --folded store.db -- true",
        "spin attach --export-json store.db -- true",
        "search --export-json store.db -- true",
    ] {
        stage.refused(line, "that is the store");
    }
    let output = stage.run("record history");
    assert!(output.status.success(), "{}", texts(&output).1);
}

#[test]
fn one_file_holds_one_result() {
    let stage = Stage::new();
    let both = "trace --no-cost --export csv:both --export-json ./both -- true";
    stage.refused(both, "--export writes that file");
    let both = "trace --no-cost --export csv:keep --export perfetto:keep -- true";
    stage.refused(both, "--export writes that file");
    let both = "profile --report keep --folded keep -- true";
    stage.refused(both, "--report writes that file");
    assert!(!stage.path("both").exists());
}

#[test]
fn what_stands_in_a_file_is_kept_until_there_is_a_result() {
    let stage = Stage::new();
    let missing = "no such file or directory";
    for (line, words) in [
        (
            "trace --no-cost --export csv:keep -- ./nonexist",
            "./nonexist",
        ),
        (
            "trace --no-cost --export csv:keep --place cpu:4000 -- true",
            "--place",
        ),
        (
            "trace --no-cost --export perfetto:keep --pid 2147483647",
            "no such process",
        ),
        (
            "trace --no-cost --export csv:keep --export-json no/file -- true",
            "--export-json no/file",
        ),
    ] {
        stage.refused(line, words);
    }
    let output = stage.run("trace --no-cost --export csv:keep --input missing -- true");
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.to_lowercase().contains(missing), "{err}");
    let kept = std::fs::read_to_string(stage.path("keep")).unwrap();
    assert_eq!(kept, KEPT);
}

#[test]
fn named_pipes_are_refused_and_not_waited_for() {
    let stage = Stage::new();
    let made = Command::new("mkfifo").arg(stage.path("pipe")).status();
    assert!(made.unwrap().success());
    for line in [
        "trace --no-cost --input pipe -- true",
        "trace --no-cost --export csv:pipe -- true",
        "trace --no-cost --export-json pipe -- true",
        "profile --input pipe -- true",
        "profile --folded pipe -- true",
        "profile --report pipe -- true",
        "spin attach --input pipe -- true",
        "compare --input pipe --place os-default -- true",
        "compare --export-csv pipe --place os-default -- true",
        "search --export-json pipe -- true",
    ] {
        stage.refused(line, "named pipe");
    }
}
