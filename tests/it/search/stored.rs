//! Stored searches are listed, shown, exported and resumed, or refused.

use pinwise_record::SearchRecord;
use pinwise_store::Store;
use serde_json::{Value, json};

use super::{MACHINE, Stage};
use crate::support::{decode_output, root};

impl Stage {
    /// Stores a search of five placements after this change; returns its id.
    fn store_search(&self, change: impl FnOnce(&mut Value)) -> String {
        let path = root().join("tests/data/search.json");
        let mut value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let machine = self.run_for_json(&format!("topology --machine '{MACHINE}'"));
        value["host"]["machine_spec"] = json!(MACHINE);
        value["host"]["simulated"] = json!(true);
        value["host"]["allowed"] = machine["allowed"].clone();
        value["host"]["shape_hash"] = machine["shape_hash"].clone();
        value["plan"]["threads"] = json!([4]);
        value["plan"]["default_threads"] = json!(4);
        for arm in value["arms"].as_array_mut().unwrap() {
            arm["threads"] = json!(4);
        }
        change(&mut value);
        let record: SearchRecord = serde_json::from_value(value).unwrap();
        let mut store = Store::open(&self.path().join("store.db")).unwrap();
        store.keep(&record).unwrap();
        record.header.id
    }
}

#[test]
fn a_stored_search_is_listed_shown_and_exported() {
    let stage = Stage::new();
    let id = stage.store_search(|_| ());
    let listed = stage.run_for_json("record history");
    assert_eq!(listed["records"][0]["schema"], "pinwise.search/1");
    assert_eq!(
        listed["records"][0]["title"],
        "search: ./prog -t '{threads}'"
    );
    assert_eq!(listed["records"][0]["complete"], true);
    let text = stage.run_for_text(&format!("record show {id}"));
    assert!(text.starts_with("search: ./prog"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let shown = stage.run_for_json("record show last");
    assert_eq!(shown["schema"], "pinwise.search/1");
    assert_eq!(stage.run_for_json("record show last --format json"), shown);
    let csv = stage.run_for_text("record show last --format csv");
    let runs = shown["runs"].as_array().unwrap().len();
    assert_eq!(csv.lines().count(), 1 + runs);
}

#[test]
fn a_newer_search_is_refused_if_its_figures_are_needed() {
    let stage = Stage::new();
    stage.store_search(|_| {});
    let store = rusqlite::Connection::open(stage.path().join("store.db")).unwrap();
    let newer = "UPDATE record SET schema = 'pinwise.search/2', \
                 body = replace(body, 'pinwise.search/1', 'pinwise.search/2')";
    store.execute(newer, []).unwrap();
    drop(store);
    for line in [
        "search --resume last",
        "search predict last",
        "record show last --format csv",
    ] {
        stage.check_refusal(line, &["use a newer pinwise"]);
    }
}

#[test]
fn a_search_resumes_only_on_its_own_machine() {
    let stage = Stage::new();
    let resume = format!("search --machine '{MACHINE}' --resume last");
    stage.store_search(|record| {
        record["stopped"] = json!("interrupted");
        record["host"]["allowed"] = json!("0-3");
    });
    stage.check_refusal(
        &resume,
        &["had CPUs 0-3 of a machine of shape", "now there are 0-7"],
    );
    stage.store_search(|record| {
        record["stopped"] = json!("interrupted");
        record["host"]["shape_hash"] = json!("0123456789abcdef");
    });
    stage.check_refusal(&resume, &["shape 0123456789abcdef"]);
}

#[test]
fn a_finished_search_resumes_only_with_more_budget() {
    let stage = Stage::new();
    let resume = format!("search --machine '{MACHINE}' --resume last");
    stage.store_search(|record| record["stopped"] = json!("precision"));
    stage.check_refusal(&resume, &["is finished", "pinwise record show"]);
    stage.check_refusal(&format!("{resume} --max-runs 900"), &["is finished"]);
    stage.store_search(|record| {
        record["stopped"] = json!("failed");
        record["arms"][0]["invalid"] = json!("it failed");
    });
    stage.check_refusal(&resume, &["failed"]);
    stage.store_search(|record| record["stopped"] = json!("runs"));
    stage.check_refusal(&resume, &["used up its runs", "--max-runs"]);
    stage.check_refusal(&format!("{resume} --max-runs 200"), &["used up its runs"]);
    stage.store_search(|record| {
        record["stopped"] = json!("budget");
        record["plan"]["budget_s"] = json!(60.0);
    });
    stage.check_refusal(&resume, &["used up its time", "--budget"]);
    stage.check_refusal(&format!("{resume} --budget 1m"), &["used up its time"]);
}

#[test]
fn a_removed_machine_description_is_reported() {
    let stage = Stage::new();
    stage.store_search(|record| record["host"]["machine_spec"] = json!("sim:gone.toml"));
    let output = stage.run("search predict --place compact");
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(
        err.contains("the machine that was searched") && err.contains("gone.toml"),
        "{err}"
    );
}
