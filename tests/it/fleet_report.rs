//! `fleet report` and `fleet diff`, from a store of fleets that are made up.

use std::path::Path;
use std::process::Output;

use crate::support::{pinwise, texts};

/// A store with a made-up fleet.
struct Fleet {
    folder: tempfile::TempDir,
}

impl Fleet {
    fn new(nodes: &str, seed: &str, faults: &str) -> Self {
        let fleet = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fleet.simulate("f", nodes, seed, faults);
        fleet
    }

    #[track_caller]
    fn simulate(&self, id: &str, nodes: &str, seed: &str, faults: &str) {
        let output = self.run(&[
            "fleet", "simulate", "--nodes", nodes, "--seed", seed, "--faults", faults, "--id", id,
        ]);
        assert!(output.status.success(), "{}", texts(&output).1);
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = pinwise(&self.path("store.db"));
        command.args(arguments).current_dir(self.folder.path());
        command.output().unwrap()
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let output = self.run(&[&["--format", "json"], arguments].concat());
        let (out, err) = texts(&output);
        assert!(output.status.success(), "{arguments:?}: {err}");
        serde_json::from_str(&out).unwrap()
    }
}

/// Both lists, of a report over a fleet whose faults are known.
fn named_and_planted(fleet: &Fleet) -> (Vec<String>, Vec<String>) {
    let sorted = |list: &serde_json::Value, key: &str| {
        let all = list.as_array().unwrap().iter();
        let mut all: Vec<String> = all.map(|o| o[key].as_str().unwrap().to_owned()).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let report = fleet.json(&["fleet", "report", "f"]);
    let record = fleet.json(&["record", "show", "f", "--format", "json"]);
    (
        sorted(&report["outliers"], "node"),
        sorted(&record["planted"], "node"),
    )
}

#[test]
fn planted_faults_are_named() {
    let (mut right, mut named, mut planted) = (0, 0, 0);
    for seed in ["1", "2", "3"] {
        let fleet = Fleet::new("400", seed, "5%");
        let (of_report, of_fleet) = named_and_planted(&fleet);
        right += of_report.iter().filter(|n| of_fleet.contains(n)).count();
        named += of_report.len();
        planted += of_fleet.len();
    }
    assert!(planted >= 50, "{planted}");
    assert!(100 * right >= 95 * planted, "{right} of {planted}");
    assert!(
        100 * (named - right) <= 5 * named,
        "{right} of {named} named"
    );
}

#[test]
fn the_answer_comes_first_and_the_report_is_stored() {
    let fleet = Fleet::new("200", "7", "5%");
    let (out, err) = texts(&fleet.run(&["fleet", "report"]));
    let first = out.lines().next().unwrap_or_else(|| panic!("{err}"));
    assert!(
        first.contains("of 200 nodes differ from their peers"),
        "{first}"
    );
    for part in ["Groups of similar nodes", "Outliers", "Record f.report."] {
        assert!(out.contains(part), "{part}: {out}");
    }
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let stored = fleet.json(&["record", "show", "f.report", "--format", "json"]);
    assert_eq!(stored["schema"], "pinwise.fleet-report/1");
    // Again: the newest takes its place, and no node is among its own records.
    fleet.json(&["fleet", "report", "f"]);
    let kept = fleet.json(&["record", "history", "--kind", "fleet-report"]);
    assert_eq!(kept["total"], 1);
}

#[test]
fn gates_close() {
    let fleet = Fleet::new("64", "1", "10%");
    let output = fleet.run(&["fleet", "report", "--fail-on", "outlier"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output).1.contains("--fail-on outlier: "));
    let whole = fleet.run(&["fleet", "report", "--fail-on", "missing"]);
    assert_eq!(whole.status.code(), Some(0), "{}", texts(&whole).1);
    // A node whose record is gone is missing.
    let pruned = fleet.run(&["fleet", "report", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&texts(&pruned).0).unwrap();
    assert_eq!(report["asked"], 64);
    remove(&fleet.path("store.db"), "f.n001");
    let output = fleet.run(&["fleet", "report", "--fail-on", "missing"]);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains("--fail-on missing: 1 node without a record"),
        "{err}"
    );
    assert!(out.contains("1 of 64 nodes has no record"), "{out}");
}

/// Takes a record out of a store behind pinwise's back.
fn remove(store: &Path, id: &str) {
    let store = rusqlite::Connection::open(store).unwrap();
    let gone = store
        .execute("DELETE FROM record WHERE id = ?1", [id])
        .unwrap();
    assert_eq!(gone, 1);
}

#[test]
fn the_page_opens_from_disk() {
    let fleet = Fleet::new("64", "1", "10%");
    let output = fleet.run(&["fleet", "report", "-o", "f.html"]);
    assert!(output.status.success(), "{}", texts(&output).1);
    let page = std::fs::read_to_string(fleet.path("f.html")).unwrap();
    assert!(page.contains("pinwise.fleet-report/1"));
    let printed = fleet.run(&["fleet", "report", "-o", "-"]);
    assert!(texts(&printed).0.starts_with("<!"), "{}", texts(&printed).0);
}

#[test]
fn two_kinds_of_servers_are_compared() {
    let fleet = Fleet::new("200", "1", "0%");
    let found = fleet.json(&["fleet", "diff", "f/1", "f/AMD EPYC 97"]);
    assert_eq!(found["schema"], "pinwise.fleet-diff/1");
    let figures = found["figures"].as_array().unwrap();
    let of = |name: &str| {
        figures
            .iter()
            .find(|figure| figure["name"] == name)
            .unwrap()
    };
    let pause = of("PAUSE");
    let ratio = pause["ratio"].as_f64().unwrap();
    assert!((1.8..2.4).contains(&ratio), "{pause}");
    assert!(pause["low"].as_f64().unwrap() < ratio && ratio < pause["high"].as_f64().unwrap());
    let size = |figure: &serde_json::Value| figure["ratio"].as_f64().unwrap().ln().abs();
    assert!(figures.windows(2).all(|two| size(&two[0]) >= size(&two[1])));
    assert!(
        found["settings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|s| s["name"] == "cpu")
    );
    let (out, _) = texts(&fleet.run(&["fleet", "diff", "f/1", "f/2"]));
    assert!(out.contains("Figures, the largest change first"), "{out}");
    for line in out.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn what_is_not_there_is_said_in_one_line() {
    let fleet = Fleet::new("16", "1", "0%");
    fleet.simulate("f2", "16", "2", "0%");
    for (arguments, said) in [
        (
            vec!["fleet", "report", "g"],
            "fleet 'g': the store has no such fleet; it has ",
        ),
        (vec!["fleet", "diff", "f", "f"], "is both A and B"),
        (
            vec!["fleet", "diff", "f/none", "f2"],
            "A, 'f/none': no group 'none': 1 ",
        ),
        (vec!["fleet", "report", "./here"], "./here"),
        (
            vec!["fleet", "report", "--false-discoveries", "0"],
            "--false-discoveries",
        ),
    ] {
        let output = fleet.run(&arguments);
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains(said) && out.is_empty(), "{arguments:?}: {err}");
    }
    let empty = tempfile::tempdir().unwrap();
    let mut none = pinwise(&empty.path().join("store.db"));
    let output = none.args(["fleet", "report"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("no fleet is in the store"));
}

#[test]
fn records_that_do_not_fit_are_reported_and_left_out() {
    let fleet = Fleet::new("16", "1", "0%");
    let store = rusqlite::Connection::open(fleet.path("store.db")).unwrap();
    let body: String = store
        .query_row("SELECT body FROM record WHERE id = 'f.n003'", [], |row| {
            row.get(0)
        })
        .unwrap();
    let newer = body.replace("pinwise.fleet-node/1", "pinwise.fleet-node/9");
    let changed = store.execute("UPDATE record SET body = ?1 WHERE id = 'f.n003'", [&newer]);
    assert_eq!(changed.unwrap(), 1);
    let hostile = body_of(&store, "f.n005").replace("\"n005\"", "\"n\\u001b[31m<img src=x>\"");
    store
        .execute(
            "UPDATE record SET body = ?1 WHERE id = 'f.n005'",
            [&hostile],
        )
        .unwrap();
    drop(store);
    let (out, err) = texts(&fleet.run(&["fleet", "report", "f"]));
    let flat = out.split_whitespace().collect::<Vec<&str>>().join(" ");
    assert!(
        flat.contains("1 record could not be used: f.n003 ("),
        "{out}{err}"
    );
    assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}'));
}

fn body_of(store: &rusqlite::Connection, id: &str) -> String {
    let found = store.query_row("SELECT body FROM record WHERE id = ?1", [id], |row| {
        row.get(0)
    });
    found.unwrap()
}
