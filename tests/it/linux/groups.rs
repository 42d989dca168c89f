//! Cgroups of a command's own: limits on CPU time and cpusets as arms.

use serde_json::Value;

use super::limited::Group;
use super::trial::{Trial, two_cpus};
use crate::support::{PATIENCE, skipped, test_name};

/// Uses some CPU time, after it was seen to be in a cgroup of its own.
const SPIN: &str = "grep -q /pinwise- /proc/self/cgroup || exit 9; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done";

/// Folders of cgroups that a pinwise with this id has made.
fn groups_of(process: u32) -> Vec<String> {
    let name = format!("pinwise-{process}-");
    let find = ["/sys/fs/cgroup", "-name", &format!("{name}*")];
    let found = std::process::Command::new("find")
        .args(find)
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&found.stdout);
    found.lines().map(str::to_owned).collect()
}

fn can_make_groups() -> bool {
    let is_possible = Group::limited_to(0.5, &test_name()).is_some();
    if !is_possible {
        skipped("no cgroup can be made");
    }
    is_possible
}

fn arm<'a>(record: &'a Value, name: &str) -> &'a Value {
    let mut arms = record["arms"].as_array().unwrap().iter();
    arms.find(|arm| arm["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {record}"))
}

#[test]
fn a_limit_is_an_arm_whose_throttled_time_is_its_own() {
    if !can_make_groups() {
        return;
    }
    let trial = Trial::new();
    let arguments = [
        "compare",
        "--limit",
        "0.1/50ms",
        "--fit-threads",
        "--max-runs",
        "8",
    ];
    let arguments = [&arguments[..], &["--shell=sh", "--", SPIN]].concat();
    let child = trial
        .pinwise(&arguments)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let process = child.id();
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{out}");
    assert_eq!(groups_of(process), [""; 0], "left behind");
    let record = trial.stored();
    let limited = arm(&record, "limit=0.1/50ms");
    assert_eq!(limited["setting"]["limit"]["cpus"], 0.1);
    assert_eq!(limited["setting"]["limit"]["period_s"], 0.05);
    let throttled = |arm: &Value| -> u64 {
        let runs = arm["runs"].as_array().unwrap().iter();
        runs.map(|run| run["throttled"].as_u64().unwrap()).sum()
    };
    assert!(throttled(limited) > 0, "{limited}");
    assert_eq!(throttled(arm(&record, "os-default")), 0, "{record}");
    let fitting = arm(&record, "limit=0.1/50ms, 1 thread");
    let environment = fitting["workload"]["environment"].to_string();
    assert!(environment.contains("OMP_NUM_THREADS"), "{environment}");
    // Stops of an arm's own are no disturbance.
    assert!(record["blocks"].as_u64().unwrap() >= 6, "{out}");
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

/// A limit and one around it stop the same threads, in the same periods.
#[test]
fn limits_within_each_other_are_counted_once() {
    let Some(outer) = Group::limited_to(0.3, &test_name()) else {
        return skipped("no cgroup can be made");
    };
    let trial = Trial::new();
    let spin = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let all = format!("for p in 1 2 3; do ({spin}) & done; wait");
    let enter = format!("echo $$ > {}/cgroup.procs; exec \"$@\"", outer.0.display());
    let outer = ["sh", "-c", &enter, "sh"];
    let arguments = ["compare", "--limit", "0.3", "--max-runs", "8", "--shell=sh"];
    let mut command = trial.pinwise_within(&outer, &[&arguments[..], &["--", &all]].concat());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let record = trial.stored();
    let runs = arm(&record, "limit=0.3")["runs"]
        .as_array()
        .unwrap()
        .clone();
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
fn a_cpuset_of_its_own_leaves_a_command_no_other_cpus() {
    let Some([first, second]) = two_cpus() else {
        return;
    };
    if !can_make_groups() {
        return;
    }
    let trial = Trial::new();
    // A mask could be left; what the cpuset allows is read after the attempt.
    let leave =
        format!("taskset -c {first},{second} grep Cpus_allowed_list /proc/self/status >> seen");
    let exclusive = format!("cpu:{first}");
    let arguments = [
        "compare",
        "--exclusive",
        &exclusive,
        "--max-runs",
        "6",
        "--shell=sh",
    ];
    let output = trial
        .pinwise(&[&arguments[..], &["--", &leave]].concat())
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    let seen = std::fs::read_to_string(trial.path("seen")).unwrap();
    let only = format!("Cpus_allowed_list:\t{first}");
    let alone = seen.lines().filter(|line| **line == only).count();
    assert_eq!(alone * 2, seen.lines().count(), "{seen}");
    let record = trial.stored();
    let arm = arm(&record, &format!("exclusive {exclusive}"));
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
    let record = trial.stored();
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
        let arguments = [
            "compare",
            "--limit",
            "0.5",
            "--max-runs",
            "8",
            "--shell=sh",
            "--",
            SPIN,
        ];
        let mut command = trial.pinwise(&arguments);
        let mut child = command.env("PINWISE_FAULT", fault).spawn().unwrap();
        let status = child.wait().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(9),
            "{fault}"
        );
        let until = std::time::Instant::now() + PATIENCE;
        while !groups_of(child.id()).is_empty() {
            assert!(
                std::time::Instant::now() < until,
                "{fault}: {:?}",
                groups_of(child.id())
            );
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

#[test]
fn limits_that_make_no_sense_are_refused() {
    let trial = Trial::new();
    let refused = |arguments: &[&str], words: &str| trial.check_refusal(arguments, words);
    refused(
        &["--limit", "none"],
        "write a number of CPUs above 0, such as 2 or 0.5",
    );
    refused(
        &["--limit", "1/2s"],
        "the period must lie between 1ms and 1s",
    );
    refused(&["--limit", "0.5/20"], "write a time with its unit");
    refused(&["--limit", "99999"], "it would limit nothing");
    refused(
        &["--limit", "0.5", "--limit", "0.50"],
        "is the same as limit=0.5 here",
    );
    refused(&["--exclusive", "elsewhere"], "--exclusive elsewhere");
    let simulated = ["--machine", "sim:package:1 core:4 pu:1", "--limit", "0.5"];
    refused(&simulated, "omit them with --machine sim:");
    refused(
        &["--fit-threads", "--place", "os-default"],
        "no arm is limited or placed",
    );
}
