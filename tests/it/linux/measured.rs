//! Figures of runs agree with what their commands did.

use serde_json::Value;

use super::trial::{Trial, list_runs};
use crate::support::{find_finding, has_program, report_skip, split_words};

const MIB: u64 = 1 << 20;

#[test]
fn figures_of_a_run_are_plausible_or_null() {
    let trial = Trial::new();
    let line = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; cat /proc/self/stat; exit 0";
    let record = trial.compare_for_record(&["--shell=sh", "--", line]);
    for run in list_runs(&record) {
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

/// By CPU time alone, two loops on one CPU look like a program that waits half of the time.
#[test]
fn queued_time_is_told_from_sleep() {
    let trial = Trial::new();
    let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let line = format!("({spin}) & {spin}; wait; sleep 0.5");
    let record = trial.compare_for_record(&["--place", "cpu:0", "--shell=sh", "--", &line]);
    let schedstat = std::fs::read_to_string("/proc/self/schedstat");
    if schedstat.is_ok_and(|text| text.starts_with("0 0 0")) {
        return report_skip("this kernel does not count queued time");
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

/// The end by a signal cannot be accepted: such a run has no figures.
#[test]
fn runs_with_accepted_failures_keep_their_status() {
    let trial = Trial::new();
    let record = trial.compare_for_record(&["--ignore-failure", "--shell=sh", "--", "exit 6"]);
    for run in list_runs(&record) {
        assert_eq!(run["exit"], 6);
    }
    let ended = trial.compare(&["--ignore-failure", "--shell=sh", "--", "kill -9 $$"]);
    ended.check_refused(&["was killed by signal 9"]);
    for run in list_runs(&trial.read_record()) {
        assert_eq!(run["exit"], 6);
    }
}

/// Holds 64 MiB: tail must keep all of the input, which has no line ends.
const HOLDS_64_MIB: &str = "head -c 64M /dev/zero | tail";

#[track_caller]
fn check_64_mib(record: &Value) {
    for run in list_runs(record) {
        let peak = run["max_rss_bytes"].as_u64().unwrap();
        assert!((64 * MIB..128 * MIB).contains(&peak), "{peak}");
    }
}

#[test]
fn memory_is_that_of_the_largest_process() {
    let trial = Trial::new();
    check_64_mib(&trial.compare_for_record(&["--shell=sh", "--", HOLDS_64_MIB]));
    let deeper = format!("({HOLDS_64_MIB}) & setsid sleep 0.01 & wait");
    check_64_mib(&trial.compare_for_record(&["--shell=sh", "--", &deeper]));
    let metric = ["--metric", "max-rss", "--shell=sh", "--", HOLDS_64_MIB];
    check_64_mib(&trial.compare_for_record(&metric));
}

/// The kernel counts to the peak of a process its size before exec: here that of this test, with a
/// quarter of a gigabyte.
#[test]
fn memory_of_the_launcher_is_not_counted() {
    let ballast = vec![1u8; 256 << 20];
    let trial = Trial::new();
    let large = trial.compare_for_record(&["--shell=sh", "--", HOLDS_64_MIB]);
    let small = trial.compare_for_record(&["--", "true"]);
    assert_eq!(std::hint::black_box(&ballast)[4096], 1);
    check_64_mib(&large);
    for run in list_runs(&small) {
        assert!(run["max_rss_bytes"].is_null(), "{run}");
    }
}

/// The highest number of threads of all runs. A short run may end before it is sampled.
fn max_threads(record: &Value) -> u64 {
    let runs = list_runs(record);
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
        let record = trial.compare_for_record(&["--max-runs", "2", "--shell=sh", "--", line]);
        assert_eq!(max_threads(&record), threads, "{line}");
    }
}

#[test]
fn threads_of_one_process_are_counted() {
    if !has_program("xz") {
        return report_skip("xz is not installed");
    }
    let trial = Trial::new();
    trial.run_shell("head -c 3M /dev/urandom > input");
    let line = ["xz", "-T2", "-1", "--block-size=512KiB", "-c", "input"];
    let record = trial.compare_for_record(&[&["--max-runs", "2", "--"][..], &line].concat());
    // One writes, and two compress.
    assert_eq!(max_threads(&record), 3);
}

/// As in `gcc -c`, a driver that waits for the compiler.
#[test]
fn threads_that_wait_do_not_count_for_default_placements() {
    let trial = Trial::new();
    let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done";
    let line = format!("({busy}) & sleep 0.2 & sleep 0.2 & wait");
    let ended = trial.run(&["compare", "--max-runs", "1", "--shell=sh", "--", &line]);
    ended.check_success();
    // If other programs run, all four threads may be ready at the same time.
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
fn a_comparison_by_cpu_time_names_the_arm_that_waits_longer() {
    let trial = Trial::new();
    let work = "i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done";
    let sleeper = format!("sh -c '{work}; sleep 0.5'");
    let line = split_words("compare --metric cpu --max-runs 12 --min-effect 5% --format json");
    let steady = format!("sh -c '{work}'");
    let arms = [steady.as_str(), &sleeper];
    let ended = trial.run(&[&line[..], &arms].concat());
    ended.check_success();
    let record: Value = serde_json::from_str(&ended.out).unwrap();
    let finding = find_finding(&record, "wall_time_differs");
    let sentence = finding.map(|finding| finding["sentence"].as_str().unwrap());
    let expected = format!("{sleeper} takes more wall-clock time for its CPU time: ");
    assert!(
        sentence.is_some_and(|sentence| sentence.starts_with(&expected)),
        "{record:#}"
    );
}

/// The third run has two threads more, whichever its arm.
#[test]
fn an_a_a_comparison_blames_no_arm_for_its_threads() {
    let trial = Trial::new();
    let line =
        "echo >> n; if [ $(wc -l < n) = 3 ]; then sleep 0.1 & sleep 0.1 & fi; sleep 0.1; wait";
    let arguments =
        split_words("compare --self --format json --warmup 0 --max-runs 8 --shell=sh --");
    let ended = trial.run(&[&arguments[..], &[line]].concat());
    ended.check_success();
    let record: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(max_threads(&record), 4, "{record}");
    assert_eq!(find_finding(&record, "thread_counts_differ"), None);
}
