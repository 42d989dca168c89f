//! Searches, most of them on simulated machines, whose truth is known.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::{Value, json};

use super::Stage;
use crate::support::{Running, decode_output, send_signal, wait_until};

/// Two packages of two caches: four threads are fastest if they share a cache.
const SHARE: &str = r#"topology = "package:2 l3:2 core:4 pu:2"
[workload.default]
base_s = 0.5
threads = 4
[workload.broken]
base_s = 0.1
exit = 3
[effects]
"one-llc*4" = 0.80
"shape:pkg=1,llc=1,core=4,smt=1" = 0.80
[noise]
sd = 0.01
"#;

/// All placements are equally fast.
const FLAT: &str = r#"topology = "package:1 l3:2 core:4 pu:2"
[workload.default]
base_s = 0.5
threads = 4
[noise]
sd = 0.005
"#;

fn new_stage() -> Stage {
    let stage = Stage::new();
    for (name, text) in [("share.toml", SHARE), ("flat.toml", FLAT)] {
        std::fs::write(stage.path().join(name), text).unwrap();
    }
    stage
}

/// Checks what must hold of every finished search.
#[track_caller]
fn check_invariants(record: &Value) {
    assert_eq!(record["schema"], "pinwise.search/1");
    let arms = record["arms"].as_array().unwrap();
    assert_eq!(arms[0]["name"], "os-default");
    let names: Vec<&str> = arms
        .iter()
        .map(|arm| arm["name"].as_str().unwrap())
        .collect();
    let distinct: BTreeSet<&&str> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "{names:?}");
    if let Some(best) = record["best"].as_str() {
        assert!(names.contains(&best), "{best}");
        assert!(record["true_regret"].as_f64().unwrap() >= -1e-9);
    }
    for prediction in record["predictions"].as_array().unwrap() {
        let figure = |name: &str| prediction[name].as_f64().unwrap();
        assert!(figure("low") <= figure("predicted") && figure("predicted") <= figure("high"));
        assert!(figure("truth") > 0.0);
    }
    let counted = ["profiling", "search", "refinement"];
    let runs = record["runs"].as_array().unwrap();
    let used = runs
        .iter()
        .filter(|run| counted.contains(&run["step"].as_str().unwrap()));
    assert_eq!(record["runs_used"], json!(used.count()));
    assert!(
        runs.iter()
            .all(|run| run["arm"].as_u64().unwrap() < arms.len() as u64)
    );
}

#[test]
fn the_best_placement_is_found_and_applied() {
    let stage = new_stage();
    let record = stage
        .run_for_json("search --machine sim:share.toml --threads 4 --seed 1 --confirm 20 -- prog");
    check_invariants(&record);
    assert_eq!(record["verdict"]["kind"], "best", "{}", record["verdict"]);
    assert!(
        record["true_regret"].as_f64().unwrap() <= 0.02,
        "{}",
        record["true_regret"]
    );
    assert_eq!(record["confirmation"]["verdict"], "faster");
    assert_eq!(record["plan"]["threads"], json!([4]));
    let text = stage.run_for_text("record show last");
    assert!(
        text.lines()
            .all(|l| l.starts_with("→ Run:") || l.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn exports_have_what_is_printed() {
    let stage = new_stage();
    let record = stage.run_for_json(
        "search --machine sim:share.toml --threads 4 --seed 2 --max-runs 20 --export-json x.json --export-csv x.csv --tag mine -- prog",
    );
    let read = |name: &str| std::fs::read_to_string(stage.path().join(name)).unwrap();
    let written: Value = serde_json::from_str(&read("x.json")).unwrap();
    assert_eq!(written, record);
    assert_eq!(record["tags"], json!(["mine"]));
    assert!(record["runs_used"].as_u64().unwrap() <= 20);
    assert_eq!(
        read("x.csv").lines().count(),
        1 + record["runs"].as_array().unwrap().len()
    );
}

#[test]
fn a_command_that_fails_has_no_winner() {
    let stage = new_stage();
    let output = stage.run("search --machine sim:share.toml --threads 4 --seed 1 -- broken");
    let (out, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("error: ") && err.contains('3'), "{err}");
    assert!(!out.contains("is best"), "{out}");
}

#[test]
fn a_resumed_search_repeats_no_run() {
    let stage = new_stage();
    let first = stage.run_for_json(
        "search --machine sim:share.toml --threads 4 --seed 3 --min-effect 0.1% --max-runs 8 -- prog",
    );
    check_invariants(&first);
    assert_eq!(first["stopped"], "runs");
    let whole = stage.run_for_json("search --machine sim:share.toml --resume last --max-runs 60");
    check_invariants(&whole);
    assert_eq!(whole["id"], first["id"]);
    let runs = |record: &Value| record["runs"].as_array().unwrap().clone();
    let before = runs(&first);
    // Runs that confirm the result are made again.
    let searched: Vec<Value> = before
        .into_iter()
        .filter(|run| run["step"] != "confirmation" && run["step"] != "least")
        .collect();
    assert!(runs(&whole).len() > searched.len());
    assert_eq!(runs(&whole)[..searched.len()], searched[..]);
    assert_eq!(
        stage.run_for_json("record history")["records"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn thread_counts_are_searched() {
    let stage = new_stage();
    let record = stage.run_for_json(
        "search --machine sim:flat.toml --threads 1..max --seed 1 --max-runs 30 --confirm 0 -- prog",
    );
    check_invariants(&record);
    assert_eq!(record["plan"]["threads"], json!([1, 2, 3, 4, 6, 8, 12, 16]));
    let arms = record["arms"].as_array().unwrap();
    let mut others = arms.iter().skip(1);
    let names_threads = |arm: &Value| arm["name"].as_str().unwrap().contains(" @ ");
    assert!(others.all(names_threads), "{arms:?}");
    assert_eq!(record["confirmation"], Value::Null);
    let sentence = record["verdict"]["sentence"].as_str().unwrap();
    assert!(
        sentence.ends_with(" os-default has 4 threads."),
        "{sentence}"
    );
}

#[test]
fn an_undecided_search_fails_if_a_verdict_is_required() {
    let stage = new_stage();
    let line = "search --machine sim:share.toml --threads 4 --seed 1 --max-runs 3 --confirm 0 --require-verdict -- prog";
    let output = stage.run(line);
    let (out, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(3), "{out}{err}");
    assert!(err.contains("--resume"), "{err}");
}

#[test]
fn predictions_are_checked_on_a_simulated_machine() {
    let stage = new_stage();
    stage.run_for_text("search --machine sim:share.toml --threads 4 --seed 1 -- prog");
    let all = stage.run_for_json("search predict");
    assert_eq!(all["schema"], "pinwise.prediction/1");
    assert_eq!(all["is_searched_machine"], true);
    let placements = all["placements"].as_array().unwrap();
    assert!(placements.len() > 4);
    assert_eq!(all["checked"], json!(placements.len()));
    assert!(
        all["median_error"].as_f64().unwrap() < 0.25,
        "{}",
        all["median_error"]
    );
    let ratios: Vec<f64> = placements
        .iter()
        .map(|p| p["ratio"].as_f64().unwrap())
        .collect();
    assert!(
        ratios.windows(2).all(|pair| pair[0] <= pair[1]),
        "{ratios:?}"
    );
    let one = stage.run_for_json("search predict last --place compact --place os-default");
    assert_eq!(one["placements"][0]["place"], "compact*4");
    assert_eq!(one["placements"][1]["cpus"], "0-31");
    let list = stage.run_for_json("search predict --place cpu:0-7");
    assert_eq!(list["placements"][0]["cpus"], "0-7", "{list}");
    let text = stage.run_for_text("search predict");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let other = stage.run_for_json("search predict --machine sim:flat.toml --place compact");
    assert_eq!(other["is_searched_machine"], false);
}

/// Starts a search of this machine that takes a minute, and waits for three stored runs.
fn start_search(stage: &Stage) -> Running {
    let mut command =
        stage.command("search --threads 1 --budget 60s --min-effect 0.01% -- sleep 0.3");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let running = Running(command.spawn().unwrap());
    wait_until("some runs are stored", || {
        let listed = stage.run_for_json("record history");
        let id = listed["records"][0]["id"].as_str().map(str::to_owned);
        id.is_some_and(|id| {
            let record = stage.run_for_json(&format!("record show {id}"));
            record["runs"]
                .as_array()
                .is_some_and(|runs| runs.len() >= 3)
        })
    });
    running
}

#[test]
fn an_interrupted_search_can_be_resumed() {
    let stage = Stage::new();
    let mut running = start_search(&stage);
    send_signal(running.0.id(), "INT");
    let status = running.0.wait().unwrap();
    let stderr = running.0.stderr.take().unwrap();
    let err = std::io::read_to_string(stderr).unwrap();
    assert_eq!(status.code(), Some(130), "{err}");
    assert!(err.contains("pinwise search --resume "), "{err}");
    check_resumption(&stage, "interrupted");
}

#[test]
fn a_killed_search_is_shown_as_unfinished_and_can_be_resumed() {
    let stage = Stage::new();
    let mut running = start_search(&stage);
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    assert!(stage.run_for_text("record history").contains("cut off"));
    check_resumption(&stage, "");
}

/// Checks that a search that stopped for this reason goes on with its earlier runs.
#[track_caller]
fn check_resumption(stage: &Stage, stopped: &str) {
    let before = stage.run_for_json("record show last");
    assert_eq!(before["stopped"].as_str().unwrap_or_default(), stopped);
    let earlier = before["runs"].as_array().unwrap();
    let max_runs = before["runs_used"].as_u64().unwrap() + 6;
    let line = format!("search --resume last --max-runs {max_runs} --confirm 0");
    let after = stage.run_for_json(&line);
    assert_eq!(after["id"], before["id"]);
    let runs = after["runs"].as_array().unwrap();
    assert!(runs.len() > earlier.len(), "{}", runs.len());
    assert_eq!(runs[..earlier.len()], earlier[..]);
    assert_ne!(after["stopped"], Value::Null);
}
