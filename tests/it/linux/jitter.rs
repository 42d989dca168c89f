//! Gaps in the time of the real CPUs. Their number is asserted only if a program of the test
//! causes them.

use std::path::Path;

use serde_json::Value;

use super::trial::{Trial, finish};
use crate::support::{Running, has_program, report_skip, run_for_json_unless_busy, send_signal};

fn run_jitter(arguments: &[&str]) -> Option<Value> {
    run_for_json_unless_busy(&[&["--format", "json", "bench", "jitter"], arguments].concat())
}

fn as_list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn sum_field(list: &[Value], field: &str) -> f64 {
    list.iter().map(|item| item[field].as_f64().unwrap()).sum()
}

fn count_gaps(list: &[Value]) -> u64 {
    list.iter().map(|item| item["gaps"].as_u64().unwrap()).sum()
}

/// Why gaps have no causes here, if so.
fn refusal_of_causes(record: &Value) -> Option<&str> {
    record["causes_unavailable"].as_str()
}

#[test]
fn causes_add_up_to_the_gaps_of_every_cpu() {
    let Some(record) = run_jitter(&["--for", "500ms"]) else {
        return;
    };
    let cpus = as_list(&record["cpus"]);
    assert_eq!(
        cpus.len() as u64,
        record["host"]["counts"]["cpus"].as_u64().unwrap()
    );
    assert_eq!(count_gaps(cpus), record["gaps"].as_u64().unwrap());
    for cpu in cpus {
        let resolution_ns = cpu["resolution_ns"].as_f64().unwrap();
        assert!((1.0..100_000.0).contains(&resolution_ns), "{cpu}");
        assert_eq!(
            count_gaps(as_list(&cpu["causes"])),
            cpu["gaps"].as_u64().unwrap()
        );
        let lost_ms =
            cpu["lost_share"].as_f64().unwrap() * cpu["watched_s"].as_f64().unwrap() * 1e3;
        let by_cause_ms = sum_field(as_list(&cpu["causes"]), "lost_ms");
        assert!(
            (lost_ms - by_cause_ms).abs() < 0.01 * lost_ms + 0.01,
            "{cpu}"
        );
    }
    for gap in as_list(&record["longest"]) {
        let length_us = gap["length_us"].as_f64().unwrap();
        let parts_us = sum_field(as_list(&gap["parts"]), "us");
        assert!((length_us - parts_us).abs() < 0.01, "{gap}");
        assert!(length_us > 5.0, "{gap}");
    }
    let named = record["named_share"].as_f64();
    match refusal_of_causes(&record) {
        Some(reason) => {
            assert!(named.is_none_or(|share| share == 0.0), "{record}");
            report_skip(reason);
        }
        None => assert!(named.is_none_or(|share| share > 0.95), "{record}"),
    }
}

#[test]
fn a_program_that_takes_a_cpu_is_named_with_that_cpu() {
    if !has_program("taskset") {
        return report_skip("no taskset");
    }
    let trial = Trial::new();
    let cpu = trial.run_shell("taskset -pc $$ | sed 's/.*: //; s/[-,].*//'");
    let cpu = cpu.trim();
    // No other program on this machine has this name.
    trial.run_shell("cp /bin/sh busy-for-jitter");
    let mut busy = std::process::Command::new("taskset");
    busy.args(["-c", cpu]).arg(trial.path("busy-for-jitter"));
    let busy = Running::start(busy.args(["-c", "while :; do :; done"]));
    let record = run_jitter(&["--cpus", cpu, "--for", "1s"]);
    drop(busy);
    let Some(record) = record else { return };
    let only = &as_list(&record["cpus"])[0];
    if let Some(reason) = refusal_of_causes(&record) {
        // Which program had the CPU is unknown, but the wait for it is known.
        assert!(
            only["queued_ms"].as_f64().is_none_or(|ms| ms > 0.0),
            "{only}"
        );
        return report_skip(reason);
    }
    let named = |cause: &&Value| cause["kind"] == "thread" && cause["name"] == "busy-for-jitter";
    let cause = as_list(&record["causes"]).iter().find(named);
    let cause = cause.unwrap_or_else(|| panic!("{record}"));
    assert_eq!(cause["cpus"], cpu);
    assert!(cause["lost_ms"].as_f64().unwrap() > 1.0, "{cause}");
}

/// Whether this process has started a thread that reads the clock.
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
fn an_interrupted_measurement_is_reported_and_stored() {
    let trial = Trial::new();
    let mut child = trial
        .pinwise(&["bench", "jitter", "--for", "10m", "--format", "json"])
        .spawn()
        .unwrap();
    while !is_watching(child.id()) {
        if child.try_wait().unwrap().is_some() {
            let ended = finish(child);
            assert!(ended.err.contains("another pinwise"), "{}", ended.err);
            return report_skip(ended.err.trim());
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    send_signal(child.id(), "INT");
    let ended = finish(child);
    assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
    let record: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(record["interrupted"], true);
    assert!(as_list(&record["cpus"])[0]["watched_s"].as_f64().unwrap() < 600.0);
    let history = trial.run(&["record", "history"]);
    assert!(history.out.contains("jitter of"), "{}", history.out);
    trial.check_no_process_left();
}

#[test]
fn without_the_right_to_trace_gaps_have_figures() {
    let trial = Trial::new();
    let Some(out) = trial.run_unprivileged("--format json bench jitter --for 200ms") else {
        return;
    };
    if out.contains("another pinwise") {
        return report_skip(out.trim());
    }
    let (json, _) = out.rsplit_once("status ").unwrap();
    let record: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {out}"));
    assert!(
        refusal_of_causes(&record).is_some_and(|reason| !reason.is_empty()),
        "{out}"
    );
    for cpu in as_list(&record["cpus"]) {
        let kinds: Vec<&str> = as_list(&cpu["causes"])
            .iter()
            .map(|c| c["kind"].as_str().unwrap())
            .collect();
        assert!(kinds.is_empty() || kinds == ["unknown"], "{cpu}");
        assert!(!as_list(&cpu["interrupts"]).is_empty(), "{cpu}");
    }
}
