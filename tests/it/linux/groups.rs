//! Cgroups that pinwise makes for a command: limits on CPU time and cpusets as arms.

use std::os::unix::process::ExitStatusExt;

use serde_json::Value;

use super::limited::Group;
use super::trial::{Trial, find_two_cpus, finish};
use crate::support::{decode_output, report_skip, split_words, test_name, wait_until};

/// Checks that it is in a cgroup of pinwise, and uses some CPU time.
const SPIN: &str = "grep -q /pinwise- /proc/self/cgroup || exit 9; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";

/// Folders of the cgroups that pinwise with this process id has made.
fn find_groups_of(process: u32) -> Vec<String> {
    let name = format!("pinwise-{process}-");
    let find = ["/sys/fs/cgroup", "-name", &format!("{name}*")];
    let found = std::process::Command::new("find").args(find).output();
    let (out, _) = decode_output(&found.unwrap());
    out.lines().map(str::to_owned).collect()
}

fn can_make_groups() -> bool {
    let is_possible = Group::limited_to(0.5, &test_name()).is_some();
    if !is_possible {
        report_skip("no cgroup can be made");
    }
    is_possible
}

fn find_arm<'a>(record: &'a Value, name: &str) -> &'a Value {
    let mut arms = record["arms"].as_array().unwrap().iter();
    arms.find(|arm| arm["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {record}"))
}

#[test]
fn only_the_arm_with_a_limit_is_throttled() {
    if !can_make_groups() {
        return;
    }
    let trial = Trial::new();
    let options = "compare --limit 0.1/50ms --fit-threads --max-runs 8 --shell=sh --";
    let arguments = [&split_words(options)[..], &[SPIN]].concat();
    let child = trial.pinwise(&arguments).spawn().unwrap();
    let process = child.id();
    let ended = finish(child);
    ended.check_success();
    assert_eq!(find_groups_of(process), [""; 0], "left behind");
    let record = trial.read_record();
    let limited = find_arm(&record, "limit=0.1/50ms");
    assert_eq!(limited["setting"]["limit"]["cpus"], 0.1);
    assert_eq!(limited["setting"]["limit"]["period_s"], 0.05);
    let throttled = |arm: &Value| -> u64 {
        let runs = arm["runs"].as_array().unwrap().iter();
        runs.map(|run| run["throttled"].as_u64().unwrap()).sum()
    };
    assert!(throttled(limited) > 0, "{limited}");
    assert_eq!(throttled(find_arm(&record, "os-default")), 0, "{record}");
    let fitting = find_arm(&record, "limit=0.1/50ms, 1 thread");
    let environment = fitting["workload"]["environment"].to_string();
    assert!(environment.contains("OMP_NUM_THREADS"), "{environment}");
    // Throttling by the limit of the arm is no disturbance.
    assert!(record["blocks"].as_u64().unwrap() >= 6, "{}", ended.out);
    let words = record["findings"].to_string();
    assert!(
        words.contains("limit=0.1/50ms throttled its threads in "),
        "{words}"
    );
    let period = "CPUQuota=10% CPUQuotaPeriodSec=50ms of systemd";
    assert!(words.contains(period), "{words}");
    assert!(
        words.contains("--cpu-period=50000 --cpu-quota=5000 of Docker"),
        "{words}"
    );
}

/// A limit and that of a group around it throttle the same threads, in the same periods.
#[test]
fn throttling_by_nested_limits_is_counted_once() {
    let Some(outer) = Group::limited_to(0.3, &test_name()) else {
        return report_skip("no cgroup can be made");
    };
    let trial = Trial::new();
    let spin = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let line = format!("for p in 1 2 3; do ({spin}) & done; wait");
    let options = split_words("compare --limit 0.3 --max-runs 8 --shell=sh --");
    outer
        .run(&trial, &[&options[..], &[&line]].concat())
        .check_success();
    let record = trial.read_record();
    let runs = find_arm(&record, "limit=0.3")["runs"].as_array().unwrap();
    let wall_s: f64 = runs.iter().map(|run| run["wall_s"].as_f64().unwrap()).sum();
    let times: u64 = runs
        .iter()
        .map(|run| run["throttled"].as_u64().unwrap())
        .sum();
    // Periods of 100 ms, one more if a run begins within one.
    let periods = wall_s / 0.1 + runs.len() as f64;
    assert!(
        times > 0 && times as f64 <= periods,
        "{times} of {periods}: {runs:?}"
    );
}

#[test]
fn an_exclusive_arm_cannot_leave_its_cpus() {
    let Some([first, second]) = find_two_cpus() else {
        return;
    };
    if !can_make_groups() {
        return;
    }
    let trial = Trial::new();
    // A command can leave a mask, but not a cpuset. It notes its CPUs after the attempt.
    let leave =
        format!("taskset -c {first},{second} grep Cpus_allowed_list /proc/self/status >> seen");
    let exclusive = format!("cpu:{first}");
    let options = ["compare", "--exclusive", &exclusive, "--max-runs", "6"];
    trial
        .run(&[&options[..], &["--shell=sh", "--", &leave]].concat())
        .check_success();
    let seen = std::fs::read_to_string(trial.path("seen")).unwrap();
    let only = format!("Cpus_allowed_list:\t{first}");
    let alone = seen.lines().filter(|line| **line == only).count();
    assert_eq!(alone * 2, seen.lines().count(), "{seen}");
    let record = trial.read_record();
    let arm = find_arm(&record, &format!("exclusive {exclusive}"));
    assert_eq!(arm["setting"]["is_exclusive"], true, "{arm}");
}

#[test]
fn a_limit_beside_a_cpuset_is_the_baseline() {
    if !can_make_groups() {
        return;
    }
    let trial = Trial::new();
    let arguments = ["compare", "--limit", "0.5,0.4", "--exclusive", "one-core"];
    let arguments = [&arguments[..], &["--max-runs", "1", "--", "true"]].concat();
    assert!(trial.pinwise(&arguments).status().unwrap().success());
    let record = trial.read_record();
    assert_eq!(record["baseline"], "limit=0.5");
    let arms = record["arms"].as_array().unwrap().iter();
    let names: Vec<&str> = arms.map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["limit=0.5", "limit=0.4", "exclusive one-core"]);
}

#[test]
fn a_killed_pinwise_leaves_no_cgroup() {
    if !can_make_groups() {
        return;
    }
    for fault in [
        "after-change:kill:3",
        "running:kill:2",
        "before-restore:kill:3",
    ] {
        let trial = Trial::new();
        let options = split_words("compare --limit 0.5 --max-runs 8 --shell=sh --");
        let mut command = trial.pinwise(&[&options[..], &[SPIN]].concat());
        let mut child = command.env("PINWISE_FAULT", fault).spawn().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(9), "{fault}");
        wait_until(&format!("{fault}: no cgroup"), || {
            find_groups_of(child.id()).is_empty()
        });
    }
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let trial = Trial::new();
    let check = |arguments: &[&str], words: &str| trial.check_refusal(arguments, words);
    check(
        &["--limit", "none"],
        "write a number of CPUs above 0, such as 2 or 0.5",
    );
    check(
        &["--limit", "1/2s"],
        "the period must lie between 1ms and 1s",
    );
    check(&["--limit", "0.5/20"], "write a time with its unit");
    check(&["--limit", "99999"], "it would limit nothing");
    check(
        &["--limit", "0.5", "--limit", "0.50"],
        "is the same as limit=0.5 here",
    );
    check(&["--exclusive", "elsewhere"], "--exclusive elsewhere");
    let simulated = ["--machine", "sim:package:1 core:4 pu:1", "--limit", "0.5"];
    check(&simulated, "omit them with --machine sim:");
    check(
        &["--fit-threads", "--place", "os-default"],
        "no arm is limited or placed",
    );
}
