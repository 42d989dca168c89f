//! Searches that stand in a store: listed, shown, drawn, exported, refused.

use pinwise_record::SearchRecord;
use pinwise_store::Store;
use serde_json::{Value, json};

use super::{MACHINE, Stage};
use crate::support::{root, texts};

impl Stage {
    /// Stores a search of five placements, changed so.
    fn keep(&self, change: impl FnOnce(&mut Value)) -> String {
        let path = root().join("tests/data/search.json");
        let mut value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let machine = self.json(&format!("topology --machine '{MACHINE}'"));
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
        record.id
    }
}

#[test]
fn a_stored_search_is_listed_shown_and_exported() {
    let stage = Stage::new();
    let id = stage.keep(|_| ());
    let listed = stage.json("record history");
    assert_eq!(listed["records"][0]["schema"], "pinwise.search/1");
    assert_eq!(
        listed["records"][0]["title"],
        "search: ./prog -t '{threads}'"
    );
    assert_eq!(listed["records"][0]["complete"], true);
    let text = stage.print(&format!("record show {id}"));
    assert!(text.starts_with("search: ./prog"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    stage.refuse("record show last --format xml", &["is a search"]);
    let shown = stage.json("record show last");
    assert_eq!(shown["schema"], "pinwise.search/1");
    assert_eq!(stage.json("record show last --format json"), shown);
    let csv = stage.print("record show last --format csv");
    let runs = shown["runs"].as_array().unwrap().len();
    assert_eq!(csv.lines().count(), 1 + runs);
    for form in ["markdown", "hyperfine"] {
        stage.refuse(
            &format!("record show last --format {form}"),
            &["is a search", "csv"],
        );
    }
    stage.refuse("record show last --format xml", &["is a search"]);
}

#[test]
fn one_that_was_cut_off_is_shown_as_such() {
    let stage = Stage::new();
    let sentence = "No verdict yet: the search is running, or was cut off before its end.";
    stage.keep(|record| {
        record["stopped"] = Value::Null;
        record["verdict"]["sentence"] = json!(sentence);
    });
    let listed = stage.json("record history");
    assert_eq!(listed["records"][0]["complete"], false);
    assert_eq!(listed["records"][0]["verdict"], "");
    assert!(stage.print("record history").contains("cut off"));
    let text = stage.print("record show last");
    assert!(text.contains(sentence), "{text}");
}

#[test]
fn hostile_strings_are_shown_safely() {
    let stage = Stage::new();
    let hostile = format!("\u{1b}[31m\r\n{}", "x".repeat(300));
    stage.keep(|record| {
        record["command"] = json!([hostile, hostile]);
        record["verdict"]["sentence"] = json!(hostile);
        record["arms"][1]["name"] = json!(hostile);
        record["arms"][1]["invalid"] = json!(hostile);
        record["predictions"][1]["arm"] = json!(hostile);
        record["tags"] = json!([hostile]);
    });
    for line in ["record history", "record show last"] {
        let text = stage.print(line);
        assert!(!text.contains(['\u{1b}', '\r']), "{line}: {text}");
    }
}

#[test]
fn a_newer_search_is_refused_where_its_figures_are_needed() {
    let stage = Stage::new();
    stage.keep(|record| record["schema"] = json!("pinwise.search/2"));
    for line in [
        "search --resume last",
        "search predict last",
        "record show last --format csv",
    ] {
        stage.refuse(line, &["a newer pinwise reads it"]);
    }
}

#[test]
fn a_search_goes_on_only_where_it_began() {
    let stage = Stage::new();
    let resume = format!("search --machine '{MACHINE}' --resume last");
    stage.keep(|record| record["stopped"] = json!("interrupted"));
    stage.refuse(
        "search --resume last",
        &["--resume 2026", "ran on sim:package:1", "--machine"],
    );
    let other = "search --machine 'sim:core:8 pu:1' --resume last";
    stage.refuse(other, &["ran on sim:package:1"]);
    stage.keep(|record| {
        record["stopped"] = json!("interrupted");
        record["host"]["allowed"] = json!("0-3");
    });
    stage.refuse(
        &resume,
        &["had CPUs 0-3 of a machine of shape", "now there are 0-7"],
    );
    stage.keep(|record| {
        record["stopped"] = json!("interrupted");
        record["host"]["shape_hash"] = json!("0123456789abcdef");
    });
    stage.refuse(&resume, &["shape 0123456789abcdef"]);
}

#[test]
fn a_search_that_has_ended_goes_on_only_with_more() {
    let stage = Stage::new();
    let resume = format!("search --machine '{MACHINE}' --resume last");
    stage.keep(|record| record["stopped"] = json!("precision"));
    stage.refuse(&resume, &["found its answer", "pinwise record show"]);
    stage.refuse(&format!("{resume} --max-runs 900"), &["found its answer"]);
    stage.keep(|record| record["stopped"] = json!("failed"));
    stage.refuse(&resume, &["failed"]);
    stage.keep(|record| record["stopped"] = json!("runs"));
    stage.refuse(&resume, &["used up its runs", "--max-runs"]);
    stage.refuse(&format!("{resume} --budget 200"), &["used up its runs"]);
    stage.keep(|record| {
        record["stopped"] = json!("budget");
        record["plan"]["budget_s"] = json!(60.0);
    });
    stage.refuse(&resume, &["used up its time", "--budget"]);
    stage.refuse(&format!("{resume} --budget 1m"), &["used up its time"]);
}

#[test]
fn predict_refuses_what_cannot_be_had() {
    let stage = Stage::new();
    stage.keep(|_| ());
    stage.refuse(
        "search predict --threads 9",
        &["--threads 9", "8 CPUs are allowed"],
    );
    let place = |text: &str, words: &[&str]| {
        stage.refuse(&format!("search predict --place '{text}'"), words)
    };
    place("one-coar", &["--place", "one-coar"]);
    place("one-core:7", &["--place"]);
    place("one-core", &["--place one-core", "2 CPUs, for 4 threads"]);
    place("spread*9", &["--place"]);
    place("compact/mem=bind", &["memory"]);
    let machine = "search predict --machine sim:nowhere.toml --place compact";
    stage.refuse(machine, &["--machine", "nowhere.toml"]);
}

#[test]
fn a_machine_whose_description_has_gone_is_reported() {
    let stage = Stage::new();
    stage.keep(|record| record["host"]["machine_spec"] = json!("sim:gone.toml"));
    let output = stage.run("search predict --place compact");
    let (_, err) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(
        err.contains("the machine that was searched") && err.contains("gone.toml"),
        "{err}"
    );
}
