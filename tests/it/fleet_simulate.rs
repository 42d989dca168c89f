//! Simulated fleets, as the command stores and prints them.

use pinwise_store::Store;
use serde_json::Value;

use crate::support::{pinwise, texts};

/// Runs pinwise with a store in `folder`.
fn run(folder: &tempfile::TempDir, arguments: &[&str]) -> std::process::Output {
    let store = folder.path().join("store.db");
    pinwise(&store).args(arguments).output().unwrap()
}

fn json(folder: &tempfile::TempDir, arguments: &[&str]) -> Value {
    let output = run(folder, &[&["--format", "json"], arguments].concat());
    let (out, err) = texts(&output);
    assert!(output.status.success(), "{arguments:?}: {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

/// A record as the store has it.
fn stored(folder: &tempfile::TempDir, id: &str) -> Value {
    let store = Store::open(&folder.path().join("store.db")).unwrap();
    let body = store.load(id).unwrap().whole().unwrap();
    serde_json::from_str(body.get()).unwrap()
}

/// A record without the times of its making.
fn timeless(mut record: Value) -> Value {
    for key in ["started", "ended"] {
        record[key] = Value::Null;
    }
    record
}

#[test]
fn a_fleet_is_stored_with_what_was_planted() {
    let folder = tempfile::tempdir().unwrap();
    let reported = json(
        &folder,
        &["fleet", "simulate", "--nodes", "1000", "--seed", "7"],
    );
    assert_eq!(reported["fleet"], "sim-1000-7");
    assert_eq!(reported["nodes"], 1000);
    let planted = reported["planted"].as_array().unwrap();
    assert_eq!(planted.len(), 30);
    for fault in [
        "slow-dimm-channel",
        "smt-off",
        "wrong-nps",
        "old-microcode",
        "throttling",
        "noisy-neighbour",
    ] {
        assert_eq!(
            planted.iter().filter(|p| p["fault"] == fault).count(),
            5,
            "{fault}"
        );
    }
    let fleet = stored(&folder, "sim-1000-7");
    assert_eq!(fleet["schema"], "pinwise.fleet/1");
    assert_eq!(fleet["planted"], reported["planted"]);
    assert_eq!(fleet["asked"], 1000);
    let history = json(&folder, &["record", "history", "--tag", "fleet:sim-1000-7"]);
    assert_eq!(history["total"], 1001);
    for planted in planted.iter().take(6) {
        let id = format!("sim-1000-7.{}", planted["node"].as_str().unwrap());
        let node = stored(&folder, &id);
        assert_eq!(node["schema"], "pinwise.fleet-node/1");
        assert_eq!(node["fleet"], "sim-1000-7");
        let smt = if planted["fault"] == "smt-off" {
            "off"
        } else {
            "on"
        };
        assert_eq!(node["settings"]["smt"], smt, "{id}");
    }
}

#[test]
fn the_same_seed_gives_the_same_records_and_another_others() {
    let node = |seed: &str, id: &str| {
        let folder = tempfile::tempdir().unwrap();
        let simulate = [
            "fleet", "simulate", "--nodes", "20", "--seed", seed, "--id", id,
        ];
        let reported = json(&folder, &simulate);
        let node = timeless(stored(&folder, &format!("{id}.n007")));
        (reported, node)
    };
    assert_eq!(node("3", "a"), node("3", "a"));
    let (_, three) = node("3", "a");
    let (_, four) = node("4", "a");
    assert_eq!(three["id"], four["id"]);
    assert_ne!(three["figures"], four["figures"]);
}

#[test]
fn a_fleet_that_is_there_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    json(
        &folder,
        &["fleet", "simulate", "--nodes", "3", "--seed", "1"],
    );
    let before = stored(&folder, "sim-3-1.n002");
    let again = [
        "fleet", "simulate", "--nodes", "3", "--seed", "1", "--noise", "9%",
    ];
    let output = run(&folder, &again);
    let (out, err) = texts(&output);
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert!(err.contains("sim-3-1") && err.contains("--id"), "{err}");
    assert_eq!(err.lines().count(), 1, "{err}");
    assert_eq!(stored(&folder, "sim-3-1.n002"), before);
    // Another seed, and an id that begins alike, are other fleets.
    json(
        &folder,
        &["fleet", "simulate", "--nodes", "3", "--seed", "12"],
    );
    json(
        &folder,
        &[
            "fleet", "simulate", "--nodes", "3", "--seed", "1", "--id", "b",
        ],
    );
    assert_eq!(json(&folder, &["record", "history"])["total"], 12);
    assert_eq!(stored(&folder, "sim-3-1")["id"], "sim-3-1");
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, word) in [
        (&["--nodes", "0", "--seed", "1"][..], "--nodes"),
        (&["--nodes", "5000000", "--seed", "1"], "--nodes"),
        (&["--nodes", "5", "--seed", "x"], "--seed"),
        (
            &["--nodes", "5", "--seed", "1", "--noise", "80%"],
            "--noise",
        ),
        (
            &["--nodes", "5", "--seed", "1", "--faults", "120%"],
            "--faults",
        ),
        (&["--nodes", "5", "--seed", "1", "--id", "../x"], "--id"),
        (
            &["--nodes", "5", "--seed", "1", "--id", "a\u{1b}[2J"],
            "--id",
        ),
        (&["--nodes", "5", "--seed", "1", "--id", ""], "--id"),
        (&["--nodes", "5", "--seed", "1", "--id", "last"], "--id"),
    ] {
        let output = run(&folder, &[&["fleet", "simulate"], arguments].concat());
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {out}{err}");
        assert!(
            err.contains(word) && !err.contains('\u{1b}'),
            "{arguments:?}: {err}"
        );
        assert!(out.is_empty());
    }
    assert_eq!(json(&folder, &["record", "history"])["total"], 0);
    let none = [
        "--store", "none", "fleet", "simulate", "--nodes", "2", "--seed", "1",
    ];
    assert_eq!(run(&folder, &none).status.code(), Some(2));
}

#[test]
fn people_read_what_was_planted() {
    let folder = tempfile::tempdir().unwrap();
    let simulate = ["fleet", "simulate", "--nodes", "500", "--seed", "2"];
    let (out, err) = texts(&run(&folder, &simulate));
    assert!(
        out.starts_with("Stored fleet sim-500-2: 500 nodes with 50 figures each.\n"),
        "{out}"
    );
    assert!(out.contains("Planted 15 faults:\n"), "{out}");
    assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
    assert!(err.contains("pinwise fleet report sim-500-2"), "{err}");
    let none = [
        "fleet", "simulate", "--nodes", "5", "--seed", "2", "--faults", "0",
    ];
    let (out, _) = texts(&run(&folder, &none));
    assert!(out.ends_with("No fault was planted.\n"), "{out}");
}
