//! How commands are run: input, output, helper commands, environment, shell.

use serde_json::Value;

use super::trial::{SHORT, Trial, finish, list_runs};
use crate::support::split_words;

/// A metric that is the first number of the output.
const FIRST_NUMBER: [&str; 2] = ["--metric", "regex:([0-9]+) lower"];

/// The metric of every run.
fn list_readings(record: &Value) -> Vec<f64> {
    let runs = list_runs(record);
    let values = runs.iter().map(|run| run["metric"]["value"].as_f64());
    values.map(Option::unwrap).collect()
}

#[test]
fn every_run_reads_the_input_from_its_beginning() {
    let trial = Trial::new();
    std::fs::write(trial.path("input"), "x".repeat(12345)).unwrap();
    let with_input = [&FIRST_NUMBER[..], &["--input", "input", "--", "wc", "-c"]].concat();
    let record = trial.compare_for_record(&with_input);
    assert_eq!(list_readings(&record), [12345.0, 12345.0]);
    let without = [
        &FIRST_NUMBER[..],
        &["--shell=sh", "--", "expr 1 + $(wc -c)"],
    ]
    .concat();
    let record = trial.compare_for_record(&without);
    assert_eq!(list_readings(&record), [1.0, 1.0]);
}

#[test]
fn output_is_written_to_its_target() {
    let trial = Trial::new();
    let line = ["--shell=sh", "--", "echo to-out; echo to-err >&2"];
    let discarded = trial.compare(&line);
    discarded.check_success();
    assert_eq!(discarded.out.matches("\nto-out\n").count(), 0);
    assert_eq!(discarded.err.lines().count(), 1, "{}", discarded.err);
    assert!(!discarded.err.contains("to-err"), "{}", discarded.err);

    let inherited = trial.compare(&[&["--output", "inherit"][..], &line].concat());
    inherited.check_success();
    assert!(
        inherited.out.starts_with("to-out\nto-out\n"),
        "{}",
        inherited.out
    );
    let err = inherited.err.lines();
    let of_command = err.filter(|line| !line.starts_with("warning: --max-runs"));
    let of_command: Vec<&str> = of_command.collect();
    assert_eq!(of_command, ["to-err"; 2], "{}", inherited.err);

    let kept = [&["--output", "a/b/", "--max-runs", "2"][..], &line].concat();
    trial.compare(&kept).check_success();
    let folder = trial.path("a/b");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut expected = Vec::new();
    for arm in ["os-default", "placebo"] {
        for block in 0..2 {
            for stream in ["stderr", "stdout"] {
                expected.push(format!("{arm}.run-{block:04}.{stream}"));
            }
        }
    }
    assert_eq!(names, expected);
    for name in names {
        let message = match name.ends_with("stdout") {
            true => "to-out\n",
            false => "to-err\n",
        };
        assert_eq!(std::fs::read_to_string(folder.join(name)).unwrap(), message);
    }
}

/// Whether the output goes to files or is read for a metric.
#[test]
fn standard_error_of_a_failed_run_is_shown() {
    let trial = Trial::new();
    let line = ["--shell=sh", "--", "echo the reason >&2; exit 5"];
    let kept = trial.compare(&[&["--output", "kept/"][..], &line].concat());
    kept.check_failure(&["exit status 5", "the reason"]);
    let read = trial.compare(&[&FIRST_NUMBER[..], &line].concat());
    read.check_failure(&["exit status 5", "the reason"]);
}

#[test]
fn helper_commands_run_before_and_after_every_run() {
    let trial = Trial::new();
    let prepare = ["--prepare", "printf 'before ' >> log"];
    let conclude = ["--conclude", "echo after >> log"];
    let command = ["--shell=sh", "--", "printf 'run ' >> log"];
    let arguments = [prepare, conclude].concat();
    trial
        .compare(&[&arguments[..], &command].concat())
        .check_success();
    let log = std::fs::read_to_string(trial.path("log")).unwrap();
    assert_eq!(log, "before run after\n".repeat(2));
}

#[test]
fn helper_commands_that_fail_end_the_experiment() {
    let trial = Trial::new();
    for option in ["--prepare", "--conclude"] {
        let line = "echo said >&2; exit 4";
        let ended = trial.compare(&["--shell=sh", option, line, "--", "true"]);
        ended.check_refused(&[option, "exit status 4", "said"]);
        let ended = trial.compare(&["--shell=sh", option, "kill -9 $$", "--", "true"]);
        ended.check_refused(&[option, "signal 9"]);
        let ended = trial.compare(&[option, "no-such-program", "--", "true"]);
        ended.check_refused(&["no-such-program: no such program"]);
    }
    // Runs that were measured before are kept.
    let line = "echo >> count; [ $(wc -l < count) -lt 4 ]";
    let runs = split_words("--max-runs 9 --shell=sh --prepare");
    let ended = trial.compare(&[&runs[..], &[line, "--", "true"]].concat());
    ended.check_refused(&["--prepare", "exit status 1"]);
    let record = trial.read_record();
    assert_eq!(list_runs(&record).len(), 3);
    assert_eq!(record["stopped"], "failed");
    let sentence = record["verdict"]["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("Ended with an error: "), "{sentence}");
    trial.check_no_process_left();
}

#[test]
fn a_measured_command_does_not_see_store_or_password() {
    let trial = Trial::new();
    let run = |variables: &[&str]| {
        let mut words = SHORT.to_vec();
        words.extend(["--max-runs", "1", "--output", "kept/"]);
        words.extend(variables);
        words.extend(["--", "env"]);
        let mut command = trial.pinwise(&words);
        command.env("PGPASSWORD", "sesame");
        finish(command.spawn().unwrap()).check_success();
        let kept = std::fs::read_dir(trial.path("kept")).unwrap();
        let kept = kept.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
        let text: String = kept.collect();
        assert!(text.contains("PATH="), "{text}");
        std::fs::remove_dir_all(trial.path("kept")).unwrap();
        text
    };
    let text = run(&[]);
    assert!(!text.contains("PINWISE_STORE"), "{text}");
    assert!(!text.contains("sesame"), "{text}");
    // Explicitly, it may be passed on.
    let text = run(&["--env", "PGPASSWORD=other"]);
    assert!(text.contains("PGPASSWORD=other"), "{text}");
}

#[test]
fn the_environment_is_the_requested_one() {
    let trial = Trial::new();
    let variables = "--env ADDED=one=1 --env PATH=/usr/bin:/bin:/nowhere --env EMPTY=";
    let line = format!("{variables} --threads-env 3 --output kept/ -- env");
    trial.compare(&split_words(&line)).check_success();
    let text = std::fs::read_to_string(trial.path("kept/placebo.run-0000.stdout")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for line in [
        "ADDED=one=1",
        "PATH=/usr/bin:/bin:/nowhere",
        "EMPTY=",
        "NO_COLOR=1",
        "OMP_NUM_THREADS=3",
        "GOMAXPROCS=3",
        "RAYON_NUM_THREADS=3",
        "TOKIO_WORKER_THREADS=3",
        "OPENBLAS_NUM_THREADS=3",
        "MKL_NUM_THREADS=3",
        "JAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=3",
    ] {
        let count = lines.iter().filter(|given| **given == line).count();
        assert_eq!(count, 1, "{line} in {text}");
    }
    let paths = lines.iter().filter(|line| line.starts_with("PATH="));
    assert_eq!(paths.count(), 1);
}

/// Descriptors, signal mask and SIGPIPE are those that a shell passes on.
#[test]
fn commands_inherit_nothing_of_pinwise() {
    let trial = Trial::new();
    let line = "ls /proc/self/fd; cat /proc/self/status";
    trial
        .compare(&["--output", "kept/", "--shell=sh", "--", line])
        .check_success();
    let text = std::fs::read_to_string(trial.path("kept/placebo.run-0000.stdout")).unwrap();
    // Descriptors that the parent of this test left open are in both lists.
    let direct = trial.run_shell("ls /proc/self/fd");
    assert!(
        text.starts_with(&format!("{direct}Name:")),
        "{direct}{text}"
    );
    let mask = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    assert_eq!(mask("SigBlk:"), 0);
    assert_eq!(mask("SigIgn:") & (1 << (13 - 1)), 0, "SIGPIPE is ignored");
}

#[test]
fn a_shell_is_used_only_on_request() {
    let trial = Trial::new();
    let cases: [(&[&str], f64); 3] = [
        (&["--shell=sh", "--", "echo 2 | tr 2 9"], 9.0),
        (&["--", "echo", "2", "|", "tr"], 2.0),
        (&["--shell=/bin/sh", "echo $((3 + 4))"], 7.0),
    ];
    for (arguments, value) in cases {
        let record = trial.compare_for_record(&[&FIRST_NUMBER[..], arguments].concat());
        assert_eq!(list_readings(&record), [value; 2], "{arguments:?}");
    }
    let message = trial.compare(&["--", "echo", "2", "|", "tr"]).err;
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    assert!(
        lines[0].starts_with("warning: '|' is a shell's syntax"),
        "{message}"
    );
    assert!(
        lines[1].contains("--max-runs 1 is too few for a verdict"),
        "{message}"
    );
}

#[test]
fn metrics_are_read_from_real_output() {
    let trial = Trial::new();
    let json = r#"{"name": "x", "rates": [{"per_s": 1250.5}, {"per_s": "2,000"}]}"#;
    for (metric, value) in [
        ("json:.rates[0].per_s higher", 1250.5),
        ("json:.rates[1].per_s higher", 2000.0),
        (r#"regex:"per_s": ([0-9.]+) lower"#, 1250.5),
    ] {
        let record = trial.compare_for_record(&["--metric", metric, "--", "echo", json]);
        assert_eq!(list_readings(&record), [value; 2], "{metric}");
        let reading = &record["arms"][0]["runs"][0]["metric"];
        let cost = reading["cost"].as_f64().unwrap();
        let expected = match metric.ends_with("higher") {
            true => 1.0 / value,
            false => value,
        };
        assert!((cost / expected - 1.0).abs() < 1e-12, "{metric}: {cost}");
    }
    let metric = ["--metric", "regex:took ([0-9]+) ms lower"];
    let line = ["--shell=sh", "--", "echo took 15 ms >&2"];
    let record = trial.compare_for_record(&[&metric[..], &line].concat());
    assert_eq!(list_readings(&record), [15.0; 2]);
}
