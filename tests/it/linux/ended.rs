//! `run` ends as its command does and passes its streams on; and signals end an experiment.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::support::{report_skip, send_signal};

use super::trial::{Ended, SHORT, Trial, finish, list_runs};

#[test]
fn run_passes_the_exit_status_on() {
    let trial = Trial::new();
    for status in [0, 1, 7, 255] {
        let ended = trial.run(&["run", "--", "sh", "-c", &format!("exit {status}")]);
        assert_eq!(ended.status.code(), Some(status));
        assert_eq!((ended.out, ended.err), (String::new(), String::new()));
    }
}

#[test]
fn run_dies_of_the_signal_that_the_command_died_of() {
    let trial = Trial::new();
    for (name, number) in [("TERM", 15), ("KILL", 9), ("PIPE", 13)] {
        let line = format!("kill -{name} $$");
        let ended = trial.run(&["run", "--", "sh", "-c", &line]);
        assert_eq!(ended.status.signal(), Some(number), "{name}");
    }
}

#[test]
fn run_passes_the_streams_on() {
    let trial = Trial::new();
    let mut child = trial
        .pinwise(&["run", "--", "sh", "-c", "cat; echo beside >&2"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let sent = "first\nsecond\0third";
    let mut input = child.stdin.take().unwrap();
    input.write_all(sent.as_bytes()).unwrap();
    drop(input);
    let ended = finish(child);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), (sent, "beside\n"));
}

/// As under `nohup`.
#[test]
fn signals_ignored_by_the_parent_stay_ignored() {
    let trial = Trial::new();
    let commands = ["0.05", "0.06"].map(|s| format!("echo run >> runs; sleep {s}"));
    let options = ["compare", "--max-runs", "8", "--shell=sh"];
    let inner = [&options[..], &commands.each_ref().map(String::as_str)].concat();
    let outer = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"];
    let mut child = trial.pinwise_within(&outer, &inner).spawn().unwrap();
    trial.wait_for_lines("runs", 2, &mut child);
    send_signal(child.id(), "HUP");
    let ended = finish(child);
    assert!(ended.status.success(), "{}{}", ended.out, ended.err);
    assert_eq!(trial.count_lines("runs"), 18, "8 blocks and a warm-up");
}

/// The command takes pinwise's place, so that pinwise's parent can signal it.
#[test]
fn run_is_replaced_by_the_command() {
    let trial = Trial::new();
    let mut child = trial
        .pinwise(&["run", "--", "sh", "-c", "echo $$ > pid; exec sleep 1000"])
        .spawn()
        .unwrap();
    trial.wait_for_lines("pid", 1, &mut child);
    let pid = std::fs::read_to_string(trial.path("pid")).unwrap();
    assert_eq!(pid.trim(), child.id().to_string());
    send_signal(child.id(), "HUP");
    assert_eq!(finish(child).status.signal(), Some(1));
    trial.check_no_process_left();
}

/// The program that executed pinwise may have left it children, which belong to no run.
#[test]
fn earlier_children_of_the_process_are_left_alone() {
    let trial = Trial::new();
    let script = "sleep 1000 > /dev/null 2>&1 & echo $! > before; exec \"$@\"";
    let outer = ["sh", "-c", script, "sh"];
    let arguments = [&SHORT[..], &["--max-runs", "2", "--", "true"]].concat();
    let ended = finish(trial.pinwise_within(&outer, &arguments).spawn().unwrap());
    ended.check_success();
    let before = std::fs::read_to_string(trial.path("before")).unwrap();
    send_signal(before.trim().parse().unwrap(), "TERM");
    trial.check_no_process_left();
}

/// As in a container: all orphans become children of process 1, even the guardian of pinwise.
#[test]
fn pinwise_measures_as_process_1() {
    let trial = Trial::new();
    let outer = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let probe = Command::new(outer[0])
        .args(&outer[1..])
        .arg("true")
        .output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return report_skip("namespaces of processes cannot be made here");
    }
    let arguments = [&SHORT[..], &["--max-runs", "2", "--", "true"]].concat();
    let ended = finish(trial.pinwise_within(&outer, &arguments).spawn().unwrap());
    ended.check_success();
    trial.check_no_process_left();
}

/// Sends a signal to an experiment in the middle of its tenth run.
fn interrupt_run(trial: &Trial, name: &str) -> Ended {
    let arguments = [&SHORT[..], &["--shell=sh", "--", RUNS_THEN_HANGS]].concat();
    let ended = interrupt_when(trial, "hanging", &arguments, name);
    trial.check_no_process_left();
    ended
}

/// Sends a signal to pinwise once the command has written a line to this file.
fn interrupt_when(trial: &Trial, file: &str, arguments: &[&str], signal: &str) -> Ended {
    let mut child = trial.pinwise(arguments).spawn().unwrap();
    trial.wait_for_lines(file, 1, &mut child);
    trial.check_mark_visible();
    send_signal(child.id(), signal);
    finish(child)
}

/// Nine runs, then one that hangs with a process in a session of its own.
const RUNS_THEN_HANGS: &str = "echo >> started; [ $(wc -l < started) -lt 10 ] || \
    { setsid sleep 1000 & echo >> hanging; sleep 1000; }";

#[test]
fn a_signal_ends_an_experiment_and_keeps_its_runs() {
    for name in ["INT", "TERM", "HUP"] {
        let trial = Trial::new();
        let ended = interrupt_run(&trial, name);
        assert_eq!(ended.status.code(), Some(130), "{name}: {}", ended.err);
        assert!(ended.out.contains("Undecided"), "{name}: {}", ended.out);
        assert_eq!(ended.err.matches("error").count(), 0, "{}", ended.err);

        let record = trial.read_record();
        assert_eq!(record["stopped"], "interrupted", "{name}");
        assert_eq!(record["blocks"], 4, "{name}");
        // The ninth run has no partner: it is kept, but does not count.
        assert_eq!(list_runs(&record).len(), 9, "{name}");
        let history = trial.run(&["record", "history"]);
        assert!(!history.out.contains("cut off"), "{}", history.out);
        assert_eq!(trial.files(), ["hanging", "started"], "{name}");
    }
}

/// As `perf record` keeps its samples.
#[test]
fn an_interrupted_trace_or_profile_keeps_its_events() {
    let line = "setsid sleep 1000 & i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; \
        echo >> busy; while :; do :; done";
    for watch in [
        &["trace", "--no-cost"][..],
        &["profile"],
        &["spin", "attach"],
    ] {
        for name in ["INT", "TERM"] {
            let trial = Trial::new();
            let arguments = [watch, &["--", "sh", "-c", line]].concat();
            let ended = interrupt_when(&trial, "busy", &arguments, name);
            let seen = format!("{watch:?} {name}: {}{}", ended.out, ended.err);
            assert_eq!(ended.status.code(), Some(130), "{seen}");
            let record = trial.read_record();
            let notes = record["notes"].to_string();
            assert!(notes.contains("because it was interrupted"), "{seen}");
            assert_eq!(record["exit"], 130, "{seen}");
            trial.check_no_process_left();
        }
    }
}

#[test]
fn a_signal_before_the_first_run_is_over_leaves_nothing() {
    let trial = Trial::new();
    // Without --place, a first run before the experiment counts threads.
    let line = "setsid sleep 1000 & echo >> hanging; sleep 1000";
    let arguments = ["compare", "--shell=sh", "--", line];
    let ended = interrupt_when(&trial, "hanging", &arguments, "INT");
    assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
    trial.check_no_process_left();
}

#[test]
fn a_signal_while_preparing_leaves_nothing() {
    for option in ["--prepare", "--conclude"] {
        let trial = Trial::new();
        let line = "setsid sleep 1000 & echo >> hanging; sleep 1000";
        let arguments = [&SHORT[..], &[option, line, "--shell=sh", "--", "true"]].concat();
        let ended = interrupt_when(&trial, "hanging", &arguments, "INT");
        assert_eq!(ended.status.code(), Some(130), "{option}: {}", ended.err);
        trial.check_no_process_left();
    }
}

#[test]
fn a_server_started_by_prepare_lives_until_the_experiment_ends() {
    let trial = Trial::new();
    let ended = trial.compare(&[
        "--shell=sh",
        "--prepare",
        "[ -e server ] || { setsid sleep 1000 & echo $! > server; }",
        "--",
        "kill -0 $(cat server)",
    ]);
    ended.check_success();
    assert_eq!(trial.count_lines("server"), 1);
    trial.check_no_process_left();
}
