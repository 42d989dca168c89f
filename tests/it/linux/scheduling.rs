//! Scheduling policies and niceness as arms.

use super::trial::{Trial, find_two_cpus};
use crate::support::{report_skip, split_words};

#[test]
fn a_command_has_the_policy_and_niceness_of_its_arm() {
    let trial = Trial::new();
    if trial
        .run_shell("chrt --batch 0 true >/dev/null 2>&1 && echo yes || true")
        .trim()
        != "yes"
    {
        return report_skip("no chrt");
    }
    // Niceness and policy: fields 19 and 41 of proc_pid_stat(5), two of which sed removes.
    let look = "sed 's/.*) //' /proc/self/stat | awk '{print $17, $39}' >> seen";
    let options = "compare --shell=sh --max-runs 6 --policy batch --policy idle --nice 7 --";
    let arguments = [&split_words(options)[..], &[look]].concat();
    trial.run(&arguments).check_success();
    let seen = std::fs::read_to_string(trial.path("seen")).unwrap();
    let own = trial.run_shell("sed 's/.*) //' /proc/self/stat | awk '{print $17}'");
    let own = own.trim();
    let count = |line: String| seen.lines().filter(|other| **other == line).count();
    let runs = count(format!("{own} 0"));
    assert!(runs >= 6, "{seen}");
    for line in [format!("{own} 3"), format!("{own} 5"), "7 0".to_owned()] {
        assert_eq!(count(line.clone()), runs, "{line}: {seen}");
    }
    let record = trial.read_record();
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
fn a_command_has_the_time_slice_of_its_policy() {
    let own = std::fs::read_to_string("/proc/self/sched").unwrap_or_default();
    if !own.contains("se.slice") {
        return report_skip("this kernel shows no slices");
    }
    let trial = Trial::new();
    let look = "grep se.slice /proc/self/sched >> seen";
    let options = split_words("compare --shell=sh --max-runs 3 --policy other:7ms --");
    let ended = trial.run(&[&options[..], &[look]].concat());
    if ended.err.contains("slices need Linux 6.12") {
        return report_skip("this kernel is older than 6.12");
    }
    ended.check_success();
    let seen = std::fs::read_to_string(trial.path("seen")).unwrap();
    let count = seen
        .lines()
        .filter(|line| line.ends_with(" 7000000"))
        .count();
    assert_eq!(2 * count, seen.lines().count(), "{seen}");
    assert_eq!(
        trial.read_record()["arms"][1]["setting"]["policy"],
        "other:7ms"
    );
}

#[test]
fn impossible_policies_are_refused() {
    let trial = Trial::new();
    let check = |arguments: &[&str], words: &str| trial.check_refusal(arguments, words);
    check(
        &["--policy", "fast"],
        "write other, other:SLICE, batch, idle, fifo:N, rr:N",
    );
    check(
        &["--policy", "fifo:0"],
        "a real-time priority lies between 1 and 99",
    );
    check(&["--policy", "other:1s"], "a time between 100us and 100ms");
    check(&["--nice", "40"], "40 is not in -20..=19");
    // The kernel grants a deadline only to threads that may use all CPUs.
    if let Some([first, _]) = find_two_cpus() {
        let place = format!("cpu:{first}");
        let policy = "deadline:1ms/20ms/20ms";
        let words = format!("the kernel refuses the scheduling policy {policy}");
        check(&["--place", &place, "--policy", policy], &words);
    }
    // The case in which the kernel grants it is tested in `limits_vm`.
    let smt = std::fs::read_to_string("/sys/devices/system/cpu/smt/active");
    if smt.is_ok_and(|text| text.trim() == "0") {
        check(&["--core-scheduling"], "the kernel refuses core scheduling");
    }
    let machine = ["--machine", "sim:package:1 core:4 pu:1"];
    let simulated = [&machine[..], &["--policy", "batch"]].concat();
    check(&simulated, "omit them with --machine sim:");
}
