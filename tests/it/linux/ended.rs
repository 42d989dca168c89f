//! `run` is the command: its end, its streams; and signals to an experiment.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use crate::support::{has_program, skipped};

use super::trial::{Ended, SHORT, Trial, finish, runs_of, signal};

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
fn run_hands_the_streams_over() {
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

/// As under `nohup`: it goes on, and ends well.
#[test]
fn signals_ignored_by_the_parent_stay_ignored() {
    let trial = Trial::new();
    let both = ["0.05", "0.06"].map(|length| format!("echo run >> runs; sleep {length}"));
    let inner = [
        "compare",
        "--max-runs",
        "8",
        "--shell=sh",
        &both[0],
        &both[1],
    ];
    let outer = ["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"];
    let mut child = trial.pinwise_within(&outer, &inner).spawn().unwrap();
    trial.wait_for_lines("runs", 2, &mut child);
    signal(&child, "HUP");
    let ended = finish(child);
    assert!(ended.status.success(), "{}{}", ended.out, ended.err);
    assert_eq!(trial.lines("runs"), 18, "8 blocks and a warm-up");
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
    signal(&child, "HUP");
    assert_eq!(finish(child).status.signal(), Some(1));
    trial.leaves_no_process();
}

/// The program that started pinwise may have left it children: they belong to no run, and live on.
#[test]
fn children_from_before_are_left_alone() {
    let trial = Trial::new();
    let script = "sleep 1000 > /dev/null 2>&1 & echo $! > before; exec \"$@\"";
    let outer = ["sh", "-c", script, "sh"];
    let arguments = [&SHORT[..], &["--max-runs", "2", "--", "true"]].concat();
    let ended = finish(trial.pinwise_within(&outer, &arguments).spawn().unwrap());
    ended.succeeded();
    let before = std::fs::read_to_string(trial.path("before")).unwrap();
    let end = Command::new("kill").arg(before.trim()).status().unwrap();
    assert!(end.success(), "the child from before was ended");
    trial.leaves_no_process();
}

/// In a container pinwise may be process 1, whose children all orphans become,
/// its own guardian among them.
#[test]
fn first_process_of_a_container_measures() {
    let trial = Trial::new();
    let outer = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    let probe = Command::new(outer[0])
        .args(&outer[1..])
        .arg("true")
        .output();
    if !has_program("unshare") || !probe.is_ok_and(|output| output.status.success()) {
        let why = "namespaces of processes cannot be made here";
        return skipped(why);
    }
    let arguments = [&SHORT[..], &["--max-runs", "2", "--", "true"]].concat();
    let ended = finish(trial.pinwise_within(&outer, &arguments).spawn().unwrap());
    ended.succeeded();
    trial.leaves_no_process();
}

/// A signal to an experiment that has run a while, in the middle of a run.
fn interrupt_run(trial: &Trial, name: &str) -> Ended {
    let mut child = trial
        .pinwise(&[&SHORT[..], &["--shell=sh", "--", RUNS_THEN_HANGS]].concat())
        .spawn()
        .unwrap();
    trial.wait_for_lines("hanging", 1, &mut child);
    trial.is_seen();
    signal(&child, name);
    let ended = finish(child);
    trial.leaves_no_process();
    ended
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

        let record = trial.stored();
        assert_eq!(record["stopped"], "interrupted", "{name}");
        assert_eq!(record["blocks"], 4, "{name}");
        // The ninth run has no partner: kept, but beside the others.
        assert_eq!(runs_of(&record).len(), 9, "{name}");
        let history = trial.run(&["record", "history"]);
        assert!(!history.out.contains("cut off"), "{}", history.out);
        assert_eq!(trial.files(), ["hanging", "started"], "{name}");
    }
}

/// As `perf record` does.
#[test]
fn a_signal_ends_a_trace_or_profile_of_a_command_with_what_it_has() {
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
            let mut child = trial.pinwise(&arguments).spawn().unwrap();
            trial.wait_for_lines("busy", 1, &mut child);
            signal(&child, name);
            let ended = finish(child);
            let seen = format!("{watch:?} {name}: {}{}", ended.out, ended.err);
            assert_eq!(ended.status.code(), Some(130), "{seen}");
            let record = trial.stored();
            let notes = record["notes"].to_string();
            assert!(notes.contains("because it was interrupted"), "{seen}");
            assert_eq!(record["exit"], 130, "{seen}");
            trial.leaves_no_process();
        }
    }
}

#[test]
fn a_signal_before_the_first_run_is_over_leaves_nothing() {
    let trial = Trial::new();
    // No --place: the first run counts threads, outside the experiment.
    let line = "setsid sleep 1000 & echo >> hanging; sleep 1000";
    let mut child = trial
        .pinwise(&["compare", "--shell=sh", "--", line])
        .spawn()
        .unwrap();
    trial.wait_for_lines("hanging", 1, &mut child);
    signal(&child, "INT");
    let ended = finish(child);
    assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
    trial.leaves_no_process();
}

#[test]
fn a_signal_while_preparing_leaves_nothing() {
    for option in ["--prepare", "--conclude"] {
        let trial = Trial::new();
        let line = "setsid sleep 1000 & echo >> hanging; sleep 1000";
        let mut child = trial
            .pinwise(&[
                "compare",
                "--placebo",
                "--place",
                "os-default",
                option,
                line,
            ])
            .args(["--shell=sh", "--", "true"])
            .spawn()
            .unwrap();
        trial.wait_for_lines("hanging", 1, &mut child);
        signal(&child, "INT");
        let ended = finish(child);
        assert_eq!(ended.status.code(), Some(130), "{option}: {}", ended.err);
        trial.leaves_no_process();
    }
}

/// What a preparation starts on purpose lives as long as the experiment.
#[test]
fn a_server_started_by_prepare_is_spared_and_then_ended() {
    let trial = Trial::new();
    let ended = trial.compare(&[
        "--shell=sh",
        "--prepare",
        "[ -e server ] || { setsid sleep 1000 & echo $! > server; }",
        "--",
        "kill -0 $(cat server)",
    ]);
    ended.succeeded();
    assert_eq!(trial.lines("server"), 1);
    trial.leaves_no_process();
}
