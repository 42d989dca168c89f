//! Joint plans of several programs, really run.

use serde_json::Value;

use super::trial::{Trial, finish, signal};

/// Busy for some hundredths of a second.
const WORK: &str = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'";

fn search(trial: &Trial, plan: &str, more: &[&str]) -> std::process::Output {
    std::fs::write(trial.path("plan.toml"), plan).unwrap();
    let file = trial.path("plan.toml");
    let arguments = ["search", "--joint", file.to_str().unwrap()];
    trial
        .pinwise(&[&arguments[..], more].concat())
        .output()
        .unwrap()
}

fn program(name: &str, command: &str, more: &str) -> String {
    format!("[[program]]\nname = \"{name}\"\ncommand = \"{command}\"\n{more}\n")
}

#[test]
fn programs_are_placed_together_and_leave_nothing() {
    let trial = Trial::new();
    // A service that its load needs, with a child that gets away from its group.
    let service = "sh -c 'echo $$ > served; trap exit TERM; setsid sleep 1000 & while :; do sleep 0.01; done'";
    let web = "ready = \"sh -c 'kill -0 $(cat served)'\"\nlimit = \"5 s\"\nload = \"LOAD\"";
    let plan = format!(
        "{}{}",
        program("web", service, &web.replace("LOAD", WORK)),
        program("batch", WORK, "weight = 2.0")
    );
    let output = search(&trial, &plan, &["--max-runs", "26", "--confirm", "6"]);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    if out.is_empty() && err.contains("one CPU only") {
        return;
    }
    assert!(output.status.success(), "{out}{err}");
    trial.leaves_no_process();
    assert!(out.contains("joint plan: web, batch"), "{out}");
    assert!(out.contains("≤ 5.00 s: held"), "{out}");
    let record = trial.stored();
    let programs = record["joint"]["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2, "{record}");
    assert_eq!(programs[1]["weight"], 1.0, "{record}");
    for program in programs {
        assert!(program["default_value"].as_f64().unwrap() > 0.0, "{record}");
    }
    let id = record["id"].as_str().unwrap();
    // All tools that can place several programs, among them systemd.
    let applied = trial
        .pinwise(&["apply", id, "--as", "all"])
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&applied.stdout);
    let err = String::from_utf8_lossy(&applied.stderr);
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
    // Its parent carries out the round; the parent of that is pinwise.
    let kill = "sh -c 'sleep 0.1; kill -9 $(cut -d \\\" \\\" -f 4 /proc/$PPID/stat)'";
    let service = program("web", "sleep 1000", "load = \"sleep 900\"");
    let plan = format!("{service}{}", program("batch", kill, ""));
    let output = search(&trial, &plan, &[]);
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        signal == Some(9) || err.contains("one CPU only"),
        "{output:?}"
    );
    trial.leaves_no_process();
}

#[test]
fn an_interrupted_search_is_stored() {
    let trial = Trial::new();
    // The sixth round never ends.
    let slow =
        "sh -c 'echo >> rounds; sleep 0.05; test $(wc -l < rounds) -lt $(cat limit) || sleep 1000'";
    std::fs::write(trial.path("limit"), "6").unwrap();
    let plan = format!(
        "{}{}",
        program("a", "sleep 0.02", ""),
        program("b", slow, "")
    );
    std::fs::write(trial.path("plan.toml"), &plan).unwrap();
    let file = trial.path("plan.toml");
    let mut search = trial.pinwise(&["search", "--joint", file.to_str().unwrap()]);
    let piped = std::process::Stdio::piped;
    let mut child = search.stdout(piped()).stderr(piped()).spawn().unwrap();
    trial.wait_for_lines("rounds", 6, &mut child);
    signal(&child, "INT");
    let ended = finish(child);
    if ended.err.contains("one CPU only") {
        return;
    }
    assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
    trial.leaves_no_process();
    assert!(ended.out.contains("interrupted after "), "{}", ended.out);
    let record = trial.stored();
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
    // The rest, and one round that shows whether the programs can be measured together.
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
    resumed.succeeded();
    let made = std::fs::read_to_string(trial.path("rounds"))
        .unwrap()
        .lines()
        .count();
    let whole = trial.stored();
    assert_ne!(whole["id"].as_str(), Some(id));
    assert_eq!(whole["joint"]["rounds"], 12, "{whole}");
    // Programs that end early are started again within a round.
    assert!(made >= 12 + 12 + 1 - 5, "{made}");
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
fn plans_that_cannot_be_are_refused_with_their_place() {
    let trial = Trial::new();
    let refused = |plan: String, words: &str| {
        let output = search(&trial, &plan, &[]);
        let err = String::from_utf8_lossy(&output.stderr);
        if err.contains("one CPU only") {
            return;
        }
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        assert!(err.contains(words), "{err}");
        trial.leaves_no_process();
    };
    let batch = program("batch", WORK, "");
    refused(
        format!("{batch}{batch}"),
        "plan.toml: 6:8: name: there is a program 'batch'",
    );
    let ended = program("web", "true", "load = \"sleep 9\"");
    refused(format!("{ended}{batch}"), "plan.toml: 3:11: web: it ended");
    let never = program("web", "false", "load = \"true\"\nready = \"false\"");
    refused(
        format!("{never}{batch}"),
        "3:11: web: it ended before it was ready",
    );
    let failing = program("a", "sh -c 'sleep 0.05; echo why >&2; exit 3'", "");
    refused(
        format!("{failing}{batch}"),
        "a: it failed, with exit status 3: why",
    );
    let missing = program("a", "no-such-program-here", "");
    refused(format!("{missing}{batch}"), "3:11: a: no-such-program-here");
    let odd = program("a", WORK, "metric = \"json:.x lower\"");
    refused(
        format!("{odd}{batch}"),
        "3:11: a: the metric 'json:.x lower'",
    );
    std::fs::write(trial.path("plan.toml"), format!("{batch}{batch}")).unwrap();
    let file = trial.path("plan.toml");
    let machine = "sim:package:1 core:4 pu:1";
    let simulated = [
        "--machine",
        machine,
        "search",
        "--joint",
        file.to_str().unwrap(),
    ];
    trial
        .run(&simulated)
        .is_refused(&["--joint runs real programs", "omit --machine"]);
}
