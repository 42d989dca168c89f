//! Commands beside the measured one.

use std::os::unix::process::ExitStatusExt;

use super::trial::Trial;
use crate::support::split_words;

/// Notes whether the companion runs beside this run: `yes` or `no`.
const NOTE_COMPANION: &str = "if kill -0 $(cat running); then echo yes; else echo no; fi >> seen";
/// A companion with a child in another session, and an orphan.
const NOISE: &str = "noise=echo $$ > running; trap exit TERM; setsid sleep 1000 & (sleep 1000 &); while :; do sleep 0.01; done";

/// Arguments that compare a command alone and beside the companion.
fn compare_beside_noise(command: &str) -> Vec<&str> {
    let mut arguments = split_words("compare --shell=sh --max-runs 6 --beside");
    arguments.extend([
        NOISE,
        "--beside-ready",
        "kill -0 $(cat running)",
        "--",
        command,
    ]);
    arguments
}

#[test]
fn a_companion_is_there_for_its_arm_only() {
    let trial = Trial::new();
    trial
        .run(&compare_beside_noise(NOTE_COMPANION))
        .check_success();
    trial.check_no_process_left();
    let seen = std::fs::read_to_string(trial.path("seen")).unwrap();
    let count = |word: &str| seen.lines().filter(|line| *line == word).count();
    assert!(count("yes") >= 6 && count("yes") == count("no"), "{seen}");
    let record = trial.read_record();
    assert_eq!(record["arms"][0]["name"], "os-default");
    assert_eq!(record["arms"][1]["name"], "os-default beside noise");
    let beside = &record["arms"][1]["setting"]["beside"][0];
    assert_eq!(beside["name"], "noise", "{record}");
    // The companion's processes are not counted to the command.
    for arm in record["arms"].as_array().unwrap() {
        for run in arm["runs"].as_array().unwrap() {
            assert!(run["wall_s"].as_f64().unwrap() < 500.0, "{run}");
            assert_eq!(run["exit"], 0, "{run}");
        }
    }
    // On a busy machine six runs of each may not even have an interval.
    let said = record["verdict"]["sentence"].as_str().unwrap();
    let starts = ["Beside noise, os-default ", "Undecided"];
    assert!(starts.iter().any(|start| said.starts_with(start)), "{said}");
}

/// Two commands that print their figure: `b` is faster alone, and no faster beside the noise.
fn compare_commands(more: &[&str]) -> (String, serde_json::Value, Trial) {
    let trial = Trial::new();
    let command = |alone: u32| {
        format!(
            "--command=kill -0 $(cat running) && cost=200 || cost={alone}; echo cost=$cost$(date +%N | cut -c 1-3)"
        )
    };
    let (a, b) = (command(100), command(90));
    let arguments = [
        "compare",
        "--shell=sh",
        "--max-runs",
        "12",
        "--beside",
        NOISE,
    ];
    let ready = ["--beside-ready", "kill -0 $(cat running)", &a, &b];
    let names = ["--name=a", "--name=b"];
    let metric = ["--metric", "regex:cost=([0-9]+) lower"];
    let all = [&arguments[..], &ready, &names, &metric, more].concat();
    let output = trial.pinwise(&all).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}{err}");
    let record = trial.read_record();
    (out, record, trial)
}

#[test]
fn an_arm_without_the_companion_does_not_win_over_one_beside_it() {
    let (out, record, trial) = compare_commands(&["--baseline", "a beside noise"]);
    let said = record["verdict"]["sentence"].as_str().unwrap();
    // Beside noise they cost the same, give or take: one may be called better by chance, first.
    assert!(said.contains("Beside noise, a is worse by 9"), "{said}");
    assert!(!said.contains("b is best"), "{said}");
    assert!(
        said.contains("Without noise: b is better than a by"),
        "{said}"
    );
    let names = [
        ("a", "a beside noise"),
        ("b", "a"),
        ("b beside noise", "a beside noise"),
    ];
    for (contrast, (arm, baseline)) in record["contrasts"].as_array().unwrap().iter().zip(names) {
        assert_eq!(contrast["arm"], arm, "{record}");
        assert_eq!(contrast["baseline"], baseline, "{record}");
    }
    for (effect, arm) in record["companion_effects"]
        .as_array()
        .unwrap()
        .iter()
        .zip(["a", "b"])
    {
        assert_eq!(effect["arm"], arm, "{record}");
        assert!(effect["low"].as_f64().unwrap() > 1.8, "{record}");
        assert_eq!(effect["verdict"], "slower", "{record}");
    }
    let note = "Change: against a beside noise; that of b against a.";
    assert!(out.contains(note), "{out}");
    // Nothing of the neighbour is applied: beside it neither is better.
    let applied = trial.pinwise(&["apply", "last"]).output().unwrap();
    let err = String::from_utf8_lossy(&applied.stderr);
    assert!(!err.contains("b is better than a beside noise"), "{err}");
}

#[test]
fn the_cost_of_a_companion_is_measured_until_its_interval_is_narrow() {
    let trial = Trial::new();
    // The sign is clear after a few runs of 100 to 199 alone and 200 to 299 beside the noise.
    let command = "kill -0 $(cat running) && c=2 || c=1; echo cost=$c$(date +%N | cut -c 6-7)";
    let arguments = ["compare", "--shell=sh", "--seed=1", "--beside", NOISE];
    let more = ["--beside-ready", "kill -0 $(cat running)"];
    let metric = ["--metric", "regex:cost=([0-9]+) lower", "--", command];
    trial
        .run(&[&arguments[..], &more, &metric].concat())
        .check_success();
    let record = trial.read_record();
    let end = |name: &str| record["contrasts"][0][name].as_f64().unwrap();
    let half_width = (end("high") / end("low")).ln() / 2.0;
    assert!(half_width <= 1.1_f64.ln(), "{half_width}: {record}");
}

#[test]
fn the_answer_beside_a_companion_is_about_the_companion() {
    let (_, record, _) = compare_commands(&[]);
    let said = record["verdict"]["sentence"].as_str().unwrap();
    let parts = [
        "Beside noise, a is worse by 9",
        " and b is worse by 1",
        "Without noise: b is better than a by",
    ];
    for part in parts {
        assert!(said.contains(part), "{said}");
    }
    assert_ne!(record["best"], "b", "{said}");
    let contrast = &record["contrasts"][2];
    assert_eq!(contrast["arm"], "b beside noise", "{record}");
    assert_eq!(contrast["baseline"], "a beside noise", "{record}");
}

#[test]
fn a_killed_pinwise_leaves_no_companion() {
    let trial = Trial::new();
    let kill = "kill -0 $(cat running) && kill -9 $PPID; exit 0";
    let status = trial.run(&compare_beside_noise(kill)).status;
    assert_eq!(status.signal(), Some(9));
    trial.check_no_process_left();
}

#[test]
fn a_companion_that_ends_makes_the_run_invalid() {
    let trial = Trial::new();
    let options = split_words("compare --shell=sh --max-runs 6 --beside brief=true --");
    let ended = trial.run(&[&options[..], &["sleep 0.3"]].concat());
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    let record = trial.read_record();
    let why = record["arms"][1]["invalid"].as_str().unwrap();
    assert!(why.contains("brief ended during the run"), "{why}");
    assert!(record["arms"][0]["invalid"].is_null(), "{record}");
}

#[test]
fn impossible_companions_are_refused() {
    let trial = Trial::new();
    let check = |arguments: &[&str], words: &str| trial.check_refusal(arguments, words);
    check(&["--beside", "sleep 9"], "is not NAME='COMMAND'");
    check(
        &["--beside", "a=sleep 9", "--beside", "a=sleep 8"],
        "--beside a is given twice",
    );
    check(
        &["--beside", "a=no-such-program-here"],
        "no-such-program-here: no such program",
    );
    let metric = |metric| ["--beside", "a=true", "--beside-metric", metric];
    check(&metric("json:.x lower"), "is not NAME='METRIC'");
    check(&metric("b=json:.x lower"), "there is no --beside b");
    check(&metric("a=wall"), "with regex:… or json:…");
    check(&metric("a=json:.x"), "higher or lower");
    let with_command = |command| {
        [
            &metric("a=json:.x lower")[..],
            &["--beside-metric-command", command],
        ]
        .concat()
    };
    check(&with_command("true"), "is not NAME='COMMAND'");
    check(&with_command("b=true"), "there is no --beside-metric b");
    let twice = [
        &with_command("a=true")[..],
        &["--beside-metric-command", "a=true"],
    ]
    .concat();
    check(&twice, "--beside-metric-command a is given twice");
    let never_ready = ["--beside", "a=true", "--beside-ready", "false"];
    check(&never_ready, "it ended before it was ready");
    let machine = ["--machine", "sim:package:1 core:4 pu:1"];
    let simulated = [&machine[..], &["--beside", "a=true"]].concat();
    check(&simulated, "omit it with --machine sim:");
}

/// A companion that a shell starts.
const NEIGHBOUR: &str = "noise=sh neighbour; exit 0";
/// Prints at its end how much it got done: less if it saw the measured program.
const NEIGHBOUR_SCRIPT: &str = "rm -f here
echo 7777 rounds
touch ready
trap 'sleep 0.05; if [ -e here ]; then echo 600 rounds; else echo 1000 rounds; fi; exit' TERM
while :; do sleep 0.01; done";

#[test]
fn a_companion_with_a_figure_says_what_the_program_costs_it() {
    let trial = Trial::new();
    std::fs::write(trial.path("neighbour"), NEIGHBOUR_SCRIPT).unwrap();
    let compare = |metric: &str| {
        let beside = ["--beside", NEIGHBOUR, "--beside-ready", "rm ready"];
        let metric = ["--beside-metric", metric, "--max-runs", "7", "--shell=sh"];
        let command = ["--", "touch here; sleep 0.1"];
        trial.run(&[&["compare"], &beside[..], &metric, &command].concat())
    };
    let ended = compare("noise=regex:(\\d+) rounds higher");
    ended.check_success();
    trial.check_no_process_left();
    let said = "os-default costs noise 40.0 % (40.0 to 40.0 %) of what it reaches alone (1000).";
    let record = trial.read_record();
    assert!(record["findings"].to_string().contains(said), "{record}");
    assert!(
        ended.out.contains("os-default costs noise"),
        "{}",
        ended.out
    );
    let companion = &record["companions"][0];
    assert_eq!(companion["name"], "noise", "{record}");
    assert_eq!(
        companion["costs"][0]["effect"]["text"], "−40.0 %",
        "{record}"
    );
    assert_eq!(companion["alone"][0]["metric"]["value"], 1000.0, "{record}");
    let markdown = trial.run(&["record", "show", "last", "--format", "markdown"]);
    assert!(
        markdown.out.contains(said),
        "{}{}",
        markdown.out,
        markdown.err
    );
    let run = |arm: usize| &record["arms"][arm]["runs"][0]["companion"];
    assert!(run(0).is_null(), "{record}");
    assert_eq!(run(1)["value"], 600.0, "{record}");
    // A time grows instead.
    compare("noise=regex:(\\d+) rounds lower").check_success();
    let said = "os-default adds −40.0 % (−40.0 to −40.0 %) to what noise has alone (1000).";
    let record = trial.read_record();
    assert!(record["findings"].to_string().contains(said), "{record}");
    // Without the figure the run does not count.
    let ended = compare("noise=regex:(\\d+) laps higher");
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    let why = trial.read_record()["arms"][1]["invalid"].to_string();
    assert!(why.contains("noise: the metric 'regex:"), "{why}");
}

#[test]
fn a_command_reads_the_figure_of_a_companion_that_runs() {
    let trial = Trial::new();
    let compare = |metric_command: &str| {
        let noise = "noise=rm -f here; echo $$ >running; while :; do sleep 0.01; done";
        let beside = [
            "--beside",
            noise,
            "--beside-ready",
            "kill -0 $(cat running)",
        ];
        let metric = ["--beside-metric", "noise=json:.rounds higher"];
        let read = ["--beside-metric-command", metric_command, "--max-runs", "7"];
        let command = ["--shell=sh", "--", "touch here; sleep 0.1"];
        trial.run(&[&["compare"], &beside[..], &metric, &read, &command].concat())
    };
    let ended = compare(
        "noise=kill -0 $(cat running) && if [ -e here ]; then echo '{\"rounds\": 600}'; \
         else echo '{\"rounds\": 1000}'; fi",
    );
    ended.check_success();
    trial.check_no_process_left();
    let said = "os-default costs noise 40.0 % (40.0 to 40.0 %) of what it reaches alone (1000).";
    let record = trial.read_record();
    assert!(record["findings"].to_string().contains(said), "{record}");
    // The figure's command is no part of the run.
    for run in record["arms"][1]["runs"].as_array().unwrap() {
        assert!(run["wall_s"].as_f64().unwrap() >= 0.1, "{run}");
    }
    let ended = compare("noise=echo none; exit 3");
    assert_eq!(ended.status.code(), Some(2), "{}", ended.err);
    let why = trial.read_record()["arms"][1]["invalid"].to_string();
    let said = "--beside-metric-command 'sh -c 'echo none; exit 3'' ended with exit status 3; it printed 'none'";
    assert!(why.contains(said), "{why}");
}
