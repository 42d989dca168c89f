//! Gaps in the time of the real CPUs. Their number is asserted only if a program of the test makes
//! them.

use std::path::Path;

use serde_json::Value;

use super::trial::{Trial, finish, signal};
use crate::support::{has_program, run, skipped, texts};

/// The record of a run; `None`, with the reason, if another pinwise keeps measuring on the machine.
fn measured(arguments: &[&str]) -> Option<Value> {
    let output = run(&[&["--format", "json", "bench", "jitter"], arguments].concat());
    let (out, err) = texts(&output);
    if err.contains("another pinwise") {
        skipped(err.trim());
        return None;
    }
    assert!(output.status.success(), "{arguments:?}: {err}");
    Some(serde_json::from_str(&out).unwrap())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn sum(list: &[Value], field: &str) -> f64 {
    list.iter().map(|of| of[field].as_f64().unwrap()).sum()
}

/// Gaps of all of these together.
fn gaps(list: &[Value]) -> u64 {
    list.iter().map(|of| of["gaps"].as_u64().unwrap()).sum()
}

/// Why gaps have no causes here.
fn refusal(record: &Value) -> Option<&str> {
    record["causes_unavailable"].as_str()
}

#[test]
fn causes_add_up_to_the_gaps_of_every_cpu() {
    let Some(record) = measured(&["--for", "500ms"]) else {
        return;
    };
    let cpus = list(&record["cpus"]);
    assert_eq!(
        cpus.len() as u64,
        record["host"]["counts"]["cpus"].as_u64().unwrap()
    );
    assert_eq!(gaps(cpus), record["gaps"].as_u64().unwrap());
    for cpu in cpus {
        let resolution_ns = cpu["resolution_ns"].as_f64().unwrap();
        assert!((1.0..100_000.0).contains(&resolution_ns), "{cpu}");
        assert_eq!(gaps(list(&cpu["causes"])), cpu["gaps"].as_u64().unwrap());
        let lost_ms =
            cpu["lost_share"].as_f64().unwrap() * cpu["watched_s"].as_f64().unwrap() * 1e3;
        let by_cause_ms = sum(list(&cpu["causes"]), "lost_ms");
        assert!(
            (lost_ms - by_cause_ms).abs() < 0.01 * lost_ms + 0.01,
            "{cpu}"
        );
    }
    for gap in list(&record["longest"]) {
        let (length_us, parts_us) = (
            gap["length_us"].as_f64().unwrap(),
            sum(list(&gap["parts"]), "us"),
        );
        assert!((length_us - parts_us).abs() < 0.01, "{gap}");
        assert!(length_us > 5.0, "{gap}");
    }
    let named = record["named_share"].as_f64();
    match refusal(&record) {
        Some(reason) => {
            assert!(named.is_none_or(|share| share == 0.0), "{record}");
            skipped(reason);
        }
        None => assert!(named.is_none_or(|share| share > 0.95), "{record}"),
    }
}

/// A program that wants the CPU all the time, bound to it, is named, with only the CPU that it
/// took.
#[test]
fn a_program_that_takes_a_cpu_is_named() {
    if !has_program("taskset") {
        return skipped("no taskset");
    }
    let trial = Trial::new();
    let cpu = trial.shell("taskset -pc $$ | sed 's/.*: //; s/[-,].*//'");
    let cpu = cpu.trim();
    // Its name is its own: nothing else on this machine is called so.
    trial.shell("cp /bin/sh busy-for-jitter");
    let mut busy = std::process::Command::new("taskset");
    busy.args(["-c", cpu]).arg(trial.path("busy-for-jitter"));
    let mut busy = busy.args(["-c", "while :; do :; done"]).spawn().unwrap();
    let record = measured(&["--cpus", cpu, "--for", "1s"]);
    busy.kill().unwrap();
    busy.wait().unwrap();
    let Some(record) = record else { return };
    let only = &list(&record["cpus"])[0];
    if let Some(reason) = refusal(&record) {
        // It is unknown what had the CPU, but not that something had it.
        assert!(
            only["queued_ms"].as_f64().is_none_or(|ms| ms > 0.0),
            "{only}"
        );
        return skipped(reason);
    }
    let named = |cause: &&Value| cause["kind"] == "thread" && cause["name"] == "busy-for-jitter";
    let cause = list(&record["causes"]).iter().find(named);
    let cause = cause.unwrap_or_else(|| panic!("{record}"));
    assert_eq!(cause["cpus"], cpu);
    assert!(cause["lost_ms"].as_f64().unwrap() > 1.0, "{cause}");
}

/// Does a thread of this process read the clock by now?
fn is_watching(pid: u32) -> bool {
    let Ok(threads) = Path::new(&format!("/proc/{pid}/task")).read_dir() else {
        return false;
    };
    let names = threads.flatten();
    let mut names =
        names.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|name| name.starts_with("jitter-"))
}

#[test]
fn a_signal_ends_it_with_what_it_has() {
    let trial = Trial::new();
    let mut child = trial
        .pinwise(&["bench", "jitter", "--for", "10m", "--format", "json"])
        .spawn()
        .unwrap();
    while !is_watching(child.id()) {
        if child.try_wait().unwrap().is_some() {
            let ended = finish(child);
            assert!(ended.err.contains("another pinwise"), "{}", ended.err);
            return skipped(ended.err.trim());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    signal(&child, "INT");
    let ended = finish(child);
    assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
    let record: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(record["interrupted"], true);
    assert!(list(&record["cpus"])[0]["watched_s"].as_f64().unwrap() < 600.0);
    let history = trial.run(&["record", "history"]);
    assert!(history.out.contains("jitter of"), "{}", history.out);
    trial.leaves_no_process();
}

#[test]
fn without_the_right_to_trace_gaps_have_figures() {
    if !has_program("setpriv") {
        return skipped("no setpriv");
    }
    let trial = Trial::new();
    // A folder that a user without rights may read and execute from.
    let folder = trial.shell("mktemp -d /tmp/pinwise-jitter-XXXXXX");
    let folder = folder.trim();
    let binary = env!("CARGO_BIN_EXE_pinwise");
    trial.shell(&format!("cp {binary} {folder}/pinwise; chmod 755 {folder}"));
    let drop = format!(
        "cd {folder}; setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
         ./pinwise --store none --format json bench jitter --for 200ms 2>&1 || true"
    );
    let out = trial.shell(&drop);
    trial.shell(&format!("rm -r {folder}"));
    if out.contains("setpriv") || out.contains("another pinwise") {
        return skipped(out.trim());
    }
    let record: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert!(
        refusal(&record).is_some_and(|reason| !reason.is_empty()),
        "{out}"
    );
    for cpu in list(&record["cpus"]) {
        let kinds: Vec<&str> = list(&cpu["causes"])
            .iter()
            .map(|c| c["kind"].as_str().unwrap())
            .collect();
        assert!(kinds.is_empty() || kinds == ["unknown"], "{cpu}");
        assert!(!list(&cpu["interrupts"]).is_empty(), "{cpu}");
    }
}
