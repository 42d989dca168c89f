//! Joint plans of several programs, run on the real host.

use std::os::unix::process::ExitStatusExt;

use serde_json::Value;

use super::trial::{Ended, Trial, finish};
use crate::support::send_signal;

/// Busy for some hundredths of a second.
const WORK: &str = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'";

fn search(trial: &Trial, plan: &str, more: &[&str]) -> Ended {
    std::fs::write(trial.path("plan.toml"), plan).unwrap();
    trial.run(&[&["search", "--joint", "plan.toml"], more].concat())
}

/// The lines of a plan for one program.
fn program_lines(name: &str, command: &str, more: &str) -> String {
    format!("[[program]]\nname = \"{name}\"\ncommand = \"{command}\"\n{more}\n")
}

#[test]
fn programs_are_placed_together_and_leave_nothing() {
    let trial = Trial::new();
    // A service with a child that leaves its process group.
    let service = "sh -c 'echo $$ > served; trap exit TERM; setsid sleep 1000 & while :; do sleep 0.01; done'";
    let web = "ready = \"sh -c 'kill -0 $(cat served)'\"\nlimit = \"5 s\"\nload = \"LOAD\"";
    let plan = format!(
        "{}{}",
        program_lines("web", service, &web.replace("LOAD", WORK)),
        program_lines("batch", WORK, "weight = 2.0")
    );
    let ended = search(&trial, &plan, &["--max-runs", "26", "--confirm", "6"]);
    if ended.err.contains("one CPU only") {
        return;
    }
    ended.check_success();
    trial.check_no_process_left();
    assert!(
        ended.out.contains("joint plan: web, batch"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("≤ 5.00 s: held"), "{}", ended.out);
    let record = trial.read_record();
    let programs = record["joint"]["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2, "{record}");
    assert_eq!(programs[1]["weight"], 1.0, "{record}");
    for program in programs {
        assert!(program["default_value"].as_f64().unwrap() > 0.0, "{record}");
    }
    let id = record["id"].as_str().unwrap();
    // All tools that can place several programs, among them systemd.
    let Ended { out, err, .. } = trial.run(&["apply", id, "--as", "all"]);
    match record["verdict"]["kind"].as_str().unwrap() {
        "best" => {
            assert!(out.contains(".service.d/50-pinwise.conf"), "{out}{err}");
            assert!(out.contains("kind: Pod"), "{out}{err}");
        }
        "leave_alone" => assert!(out.contains("Nothing to apply"), "{out}{err}"),
        _ => assert!(err.contains("has no answer"), "{out}{err}"),
    }
}

#[test]
fn a_killed_pinwise_leaves_no_program_of_a_plan() {
    let trial = Trial::new();
    // The parent of this command runs the round; the parent of that is pinwise.
    let kill = "sh -c 'sleep 0.1; kill -9 $(cut -d \\\" \\\" -f 4 /proc/$PPID/stat)'";
    let service = program_lines("web", "sleep 1000", "load = \"sleep 900\"");
    let plan = format!("{service}{}", program_lines("batch", kill, ""));
    let ended = search(&trial, &plan, &[]);
    assert!(
        ended.status.signal() == Some(9) || ended.err.contains("one CPU only"),
        "{}: {}",
        ended.status,
        ended.err
    );
    trial.check_no_process_left();
}

#[test]
fn an_interrupted_search_is_stored_and_resumed() {
    let trial = Trial::new();
    // The sixth round never ends.
    let slow =
        "sh -c 'echo >> rounds; sleep 0.05; test $(wc -l < rounds) -lt $(cat limit) || sleep 1000'";
    std::fs::write(trial.path("limit"), "6").unwrap();
    let plan = format!(
        "{}{}",
        program_lines("a", "sleep 0.02", ""),
        program_lines("b", slow, "")
    );
    std::fs::write(trial.path("plan.toml"), &plan).unwrap();
    let mut search = trial.pinwise(&["search", "--joint", "plan.toml"]);
    let mut child = search.spawn().unwrap();
    trial.wait_for_lines("rounds", 6, &mut child);
    send_signal(child.id(), "INT");
    let ended = finish(child);
    if ended.err.contains("one CPU only") {
        return;
    }
    assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
    trial.check_no_process_left();
    assert!(ended.out.contains("interrupted after "), "{}", ended.out);
    let record = trial.read_record();
    assert_eq!(record["stopped"], "interrupted", "{record}");
    let history = trial.run(&["record", "history"]).out;
    assert!(history.contains("joint plan: a, b"), "{history}");
    assert!(
        record["joint"]["tried"][0]["figures"][0][0].is_number(),
        "{record}"
    );
    let id = record["id"].as_str().unwrap();
    let advice = format!("Continue with: pinwise search --resume {id}");
    assert!(ended.err.contains(&advice), "{}", ended.err);
    std::fs::write(trial.path("plan.toml"), plan.replace("0.05", "0.04")).unwrap();
    let resume = [
        "search",
        "--resume",
        id,
        "--max-runs",
        "24",
        "--confirm",
        "6",
    ];
    let other = trial.run(&resume);
    assert!(
        other.err.contains("are others than those of that search"),
        "{}",
        other.err
    );
    std::fs::write(trial.path("plan.toml"), &plan).unwrap();
    std::fs::write(trial.path("rounds"), "").unwrap();
    std::fs::write(trial.path("limit"), "600").unwrap();
    let resumed = trial.run(&resume);
    resumed.check_success();
    let rounds = trial.count_lines("rounds");
    let whole = trial.read_record();
    assert_ne!(whole["id"].as_str(), Some(id));
    // On a busy machine it may know sooner that nothing better is to be found.
    let searched = whole["joint"]["rounds"].as_u64().unwrap();
    assert!((6..=12).contains(&searched), "{whole}");
    // The five rounds from before count, and one more tries whether the programs can be measured
    // together. Programs that end early are started again within a round.
    assert!(
        rounds as u64 >= searched + 12 + 1 - 5,
        "{rounds}, {searched}"
    );
    let tried = |record: &Value| record["joint"]["tried"].to_string();
    let figure = record["joint"]["tried"][0]["figures"][0].to_string();
    assert!(tried(&whole).contains(&figure), "{figure}: {whole}");
    let again = trial.run(&["search", "--resume", "last"]);
    assert!(
        again.err.contains("that search is finished"),
        "{}",
        again.err
    );
}

#[test]
fn impossible_plans_are_refused_with_line_and_column() {
    let trial = Trial::new();
    let check = |plan: String, words: &str| {
        let ended = search(&trial, &plan, &[]);
        if ended.err.contains("one CPU only") {
            return;
        }
        ended.check_refused(&[words]);
        trial.check_no_process_left();
    };
    let batch = program_lines("batch", WORK, "");
    check(
        format!("{batch}{batch}"),
        "plan.toml: 6:8: name: there is a program 'batch'",
    );
    let ended = program_lines("web", "true", "load = \"sleep 9\"");
    check(format!("{ended}{batch}"), "plan.toml: 3:11: web: it ended");
    let never = program_lines("web", "false", "load = \"true\"\nready = \"false\"");
    check(
        format!("{never}{batch}"),
        "3:11: web: it ended before it was ready",
    );
    let failing = program_lines("a", "sh -c 'sleep 0.05; echo why >&2; exit 3'", "");
    check(
        format!("{failing}{batch}"),
        "a: it failed, with exit status 3: why",
    );
    let missing = program_lines("a", "no-such-program-here", "");
    check(format!("{missing}{batch}"), "3:11: a: no-such-program-here");
    let odd = program_lines("a", WORK, "metric = \"json:.x lower\"");
    check(
        format!("{odd}{batch}"),
        "3:11: a: the metric 'json:.x lower'",
    );
    std::fs::write(trial.path("plan.toml"), format!("{batch}{batch}")).unwrap();
    let machine = ["--machine", "sim:package:1 core:4 pu:1"];
    let search = ["search", "--joint", "plan.toml"];
    trial
        .run(&[&machine[..], &search].concat())
        .check_refused(&["--joint runs real programs", "omit --machine"]);
}
