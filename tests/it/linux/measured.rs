//! A run's record agrees with the kernel.

use serde_json::Value;

use super::trial::{Trial, runs_of};
use crate::support::{has_program, skipped, words};

const MIB: u64 = 1 << 20;

#[test]
fn figures_are_null_if_unknown() {
    let trial = Trial::new();
    let line = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; cat /proc/self/stat; exit 0";
    let record = trial.record(&["--shell=sh", "--", line]);
    for run in runs_of(&record) {
        let figure = |name: &str| run[name].as_f64();
        assert!(figure("wall_s").unwrap() > 0.0);
        assert!(figure("user_s").unwrap() + figure("sys_s").unwrap() > 0.0);
        // Each of two processes faults in its program, and waits to be started.
        assert!(figure("minor_faults").unwrap() > 20.0);
        assert!(figure("major_faults").unwrap() >= 0.0);
        assert!(figure("context_switches").unwrap() >= 1.0);
        assert!(figure("context_switches") >= figure("involuntary_switches"));
        assert!(run["involuntary_switches"].is_u64());
        assert_eq!(run["exit"], 0);
        assert_eq!(run["timed_out"], false);
        assert!(run["signal"].is_null());
        for name in ["cycles", "instructions", "threads"] {
            assert!(
                figure(name).is_none_or(|value| value > 0.0),
                "{name}: {run}"
            );
        }
        for name in ["migrations", "throttled", "steal_s", "foreign_cpu_s"] {
            assert!(
                run[name].is_null() || figure(name).unwrap() >= 0.0,
                "{name}"
            );
        }
        assert!(
            run["max_rss_bytes"].is_null(),
            "a shell is smaller than pinwise"
        );
    }
}

/// Two loops on one CPU look like a program that waits half of the time if only CPU time is known.
/// During the sleep after it nothing wants a CPU.
#[test]
fn ready_but_queued_is_not_blocked() {
    let trial = Trial::new();
    let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let line = format!("({spin}) & {spin}; wait; sleep 0.5");
    let record = trial.record(&["--place", "cpu:0", "--shell=sh", "--", &line]);
    let kernel_keeps_it = std::fs::read_to_string("/proc/self/schedstat");
    if kernel_keeps_it.is_ok_and(|text| text.starts_with("0 0 0")) {
        return skipped("the kernel does not keep it");
    }
    let mut arms = record["arms"].as_array().unwrap().iter();
    let arm = arms.find(|arm| arm["name"] == "cpu:0").unwrap();
    for run in arm["runs"].as_array().unwrap() {
        let figure = |name: &str| run[name].as_f64().unwrap();
        let (cpu_s, queued_s) = (figure("user_s") + figure("sys_s"), figure("queued_s"));
        // While both loops run, one is queued: about half as long as both run.
        assert!(queued_s > 0.3 * cpu_s, "{run}");
    }
    assert!(arm["threads"]["text"].is_string(), "{arm}");
}

/// How a run ended when its failure was accepted. A signal cannot be accepted: there is no figure,
/// and no record.
#[test]
fn accepted_failures_keep_their_status() {
    let trial = Trial::new();
    let record = trial.record(&["--ignore-failure", "--shell=sh", "--", "exit 6"]);
    for run in runs_of(&record) {
        assert_eq!(run["exit"], 6);
    }
    let ended = trial.compare(&["--ignore-failure", "--shell=sh", "--", "kill -9 $$"]);
    ended.is_refused(&["was killed by signal 9"]);
    for run in runs_of(&trial.stored()) {
        assert_eq!(run["exit"], 6);
    }
}

/// A program that holds 64 MiB: what it reads has no line that tail could
/// print and forget.
const HOLDS_64_MIB: &str = "head -c 64M /dev/zero | tail";

#[track_caller]
fn assert_64_mib(record: &Value) {
    for run in runs_of(record) {
        let peak = run["max_rss_bytes"].as_u64().unwrap();
        assert!((64 * MIB..128 * MIB).contains(&peak), "{peak}");
    }
}

#[test]
fn memory_is_that_of_the_largest_process() {
    let trial = Trial::new();
    assert_64_mib(&trial.record(&["--shell=sh", "--", HOLDS_64_MIB]));
    let deeper = format!("({HOLDS_64_MIB}) & setsid sleep 0.01 & wait");
    assert_64_mib(&trial.record(&["--shell=sh", "--", &deeper]));
    let metric = ["--metric", "max-rss", "--shell=sh", "--", HOLDS_64_MIB];
    assert_64_mib(&trial.record(&metric));
}

/// The kernel counts into a process's peak what it was before it executed:
/// here, this test with a quarter of a gigabyte.
#[test]
fn memory_is_not_hidden_by_a_large_launcher() {
    let ballast = vec![1u8; 256 << 20];
    let trial = Trial::new();
    let large = trial.record(&["--shell=sh", "--", HOLDS_64_MIB]);
    let small = trial.record(&["--", "true"]);
    assert_eq!(std::hint::black_box(&ballast)[4096], 1);
    assert_64_mib(&large);
    for run in runs_of(&small) {
        assert!(run["max_rss_bytes"].is_null(), "{run}");
    }
}

/// The most threads that any run was seen with; a run may end between looks.
fn most_threads(record: &Value) -> u64 {
    let runs = runs_of(record);
    let seen = runs.iter().filter_map(|run| run["threads"].as_u64());
    seen.max().unwrap()
}

#[test]
fn threads_are_counted_over_the_whole_tree() {
    let trial = Trial::new();
    let cases = [
        ("exec sleep 0.2", 1),
        ("sleep 0.3 & sleep 0.3 & wait", 3),
        (
            "(sleep 0.3 & sleep 0.3 & wait) & (sleep 0.3 & sleep 0.3 & wait) & wait",
            7,
        ),
    ];
    for (line, threads) in cases {
        let record = trial.record(&["--max-runs", "2", "--shell=sh", "--", line]);
        assert_eq!(most_threads(&record), threads, "{line}");
    }
}

#[test]
fn threads_of_one_process_are_counted() {
    if !has_program("xz") {
        skipped("xz is not installed");
        return;
    }
    let trial = Trial::new();
    trial.shell("head -c 3M /dev/urandom > input");
    let line = ["xz", "-T2", "-1", "--block-size=512KiB", "-c", "input"];
    let record = trial.record(&[&["--max-runs", "2", "--"][..], &line].concat());
    // The one that writes, and the two that compress.
    assert_eq!(most_threads(&record), 3);
}

/// `gcc -c` is such a command: a driver that waits for the compiler.
#[test]
fn placements_are_tried_for_the_threads_that_are_busy() {
    let trial = Trial::new();
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
    let line = format!("({busy}) & sleep 0.2 & sleep 0.2 & wait");
    let ended = trial.run(&["compare", "--max-runs", "1", "--shell=sh", "--", &line]);
    ended.succeeded();
    // How busy depends on what else runs: all four may be ready at once.
    let threads = ["with 4 threads", "work for 4 CPUs"];
    assert!(
        threads.iter().any(|part| ended.err.contains(part))
            && ended.err.contains(" CPUs on average in one run"),
        "{}",
        ended.err
    );
}

/// CPU time alone would hide that one of the two sleeps.
#[test]
fn a_comparison_by_cpu_time_names_who_waits_longer() {
    let trial = Trial::new();
    let work = "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done";
    let sleeper = format!("sh -c '{work}; sleep 0.5'");
    let line = words("compare --metric cpu --max-runs 12 --min-effect 5% --format json");
    let steady = format!("sh -c '{work}'");
    let arms = [steady.as_str(), &sleeper];
    let ended = trial.run(&[&line[..], &arms].concat());
    ended.succeeded();
    let record: Value = serde_json::from_str(&ended.out).unwrap();
    let findings = record["findings"].as_array().unwrap();
    let named = findings
        .iter()
        .find(|finding| finding["check"] == "wall_time_differs");
    let sentence = named.map(|finding| finding["sentence"].as_str().unwrap());
    let expected = format!("{sleeper} takes more wall-clock time for its CPU time: +");
    assert!(
        sentence.is_some_and(|sentence| sentence.starts_with(&expected)),
        "{record:#}"
    );
}

/// The third run of all has two threads more, whichever arm it is of.
#[test]
fn an_a_a_comparison_blames_no_arm_for_its_threads() {
    let trial = Trial::new();
    let line =
        "echo >> n; if [ $(wc -l < n) = 3 ]; then sleep 0.1 & sleep 0.1 & fi; sleep 0.1; wait";
    let arguments = words("compare --self --format json --warmup 0 --max-runs 8 --shell=sh --");
    let ended = trial.run(&[&arguments[..], &[line]].concat());
    ended.succeeded();
    let record: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(most_threads(&record), 4, "{record}");
    let findings = record["findings"].as_array().unwrap();
    let blamed = findings
        .iter()
        .find(|f| f["check"] == "thread_counts_differ");
    assert_eq!(blamed, None);
}
