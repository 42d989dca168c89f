//! Scheduling policies and niceness as arms.

use super::trial::{Trial, two_cpus};
use crate::support::skipped;

#[test]
fn a_command_has_the_policy_and_niceness_of_its_arm() {
    let trial = Trial::new();
    if trial
        .shell("chrt --batch 0 true >/dev/null 2>&1 && echo yes || true")
        .trim()
        != "yes"
    {
        return skipped("no chrt");
    }
    // Fields 19 and 41 of proc_pid_stat(5), after the name and its bracket.
    let look = "sed 's/.*) //' /proc/self/stat | awk '{print $17, $39}' >> seen";
    let arguments = [
        "compare",
        "--shell=sh",
        "--max-runs",
        "6",
        "--policy",
        "batch",
    ];
    let arguments = [
        &arguments[..],
        &["--policy", "idle", "--nice", "7", "--", look],
    ]
    .concat();
    let output = trial.pinwise(&arguments).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let seen = std::fs::read_to_string(trial.path("seen")).unwrap();
    let own = trial.shell("sed 's/.*) //' /proc/self/stat | awk '{print $17}'");
    let own = own.trim();
    let count = |line: String| seen.lines().filter(|other| **other == line).count();
    let runs = count(format!("{own} 0"));
    assert!(runs >= 6, "{seen}");
    for line in [format!("{own} 3"), format!("{own} 5"), "7 0".to_owned()] {
        assert_eq!(count(line.clone()), runs, "{line}: {seen}");
    }
    let record = trial.stored();
    let names: Vec<&str> = record["arms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arm| arm["name"].as_str().unwrap())
        .collect();
    let expected = [
        "os-default",
        "os-default, batch",
        "os-default, idle",
        "os-default, nice 7",
    ];
    assert_eq!(names, expected);
    assert_eq!(record["arms"][1]["setting"]["policy"], "batch", "{record}");
    assert_eq!(record["arms"][3]["setting"]["nice"], 7, "{record}");
}

#[test]
fn time_slices_are_as_long_as_asked_for() {
    let own = std::fs::read_to_string("/proc/self/sched").unwrap_or_default();
    if !own.contains("se.slice") {
        return skipped("this kernel shows no slices");
    }
    let trial = Trial::new();
    let look = "grep se.slice /proc/self/sched >> seen";
    let arguments = [
        "compare",
        "--shell=sh",
        "--max-runs",
        "3",
        "--policy",
        "other:7ms",
    ];
    let output = trial
        .pinwise(&[&arguments[..], &["--", look]].concat())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    if err.contains("slices need Linux 6.12") {
        return skipped("this kernel is older than 6.12");
    }
    assert!(output.status.success(), "{err}");
    let seen = std::fs::read_to_string(trial.path("seen")).unwrap();
    let count = seen
        .lines()
        .filter(|line| line.ends_with(" 7000000"))
        .count();
    assert_eq!(2 * count, seen.lines().count(), "{seen}");
    assert_eq!(trial.stored()["arms"][1]["setting"]["policy"], "other:7ms");
}

#[test]
fn policies_that_cannot_be_are_refused() {
    let trial = Trial::new();
    let refused = |arguments: &[&str], words: &str| trial.check_refusal(arguments, words);
    refused(
        &["--policy", "fast"],
        "write other, other:SLICE, batch, idle, fifo:N, rr:N",
    );
    refused(
        &["--policy", "fifo:0"],
        "a real-time priority lies between 1 and 99",
    );
    refused(&["--policy", "other:1s"], "a time between 100us and 100ms");
    refused(&["--nice", "40"], "40 is not in -20..=19");
    // Deadlines are kept on all CPUs or not at all.
    if let Some([first, _]) = two_cpus() {
        let place = format!("cpu:{first}");
        let policy = "deadline:1ms/20ms/20ms";
        let words = format!("the kernel refuses the scheduling policy {policy}");
        refused(&["--place", &place, "--policy", policy], &words);
    }
    // With SMT and a kernel that has it, it is granted: `limits_vm` tries that.
    let smt = std::fs::read_to_string("/sys/devices/system/cpu/smt/active");
    if smt.is_ok_and(|text| text.trim() == "0") {
        refused(&["--core-scheduling"], "the kernel refuses core scheduling");
    }
    let simulated = [
        "--machine",
        "sim:package:1 core:4 pu:1",
        "--policy",
        "batch",
    ];
    refused(&simulated, "omit them with --machine sim:");
}
