//! Simulated machines through the command: descriptions that work, and those
//! that are refused.

use std::path::PathBuf;

use crate::support::{json, root, run, texts};

/// The example descriptions.
fn examples() -> Vec<PathBuf> {
    let folder = root().join("tests/data/sim");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 3);
    files
}

#[test]
fn examples_are_machines_that_run() {
    for file in examples() {
        let machine = format!("sim:{}", file.display());
        let found = json(&["topology", "--machine", &machine, "--format", "json"]);
        assert!(found["schema"].is_string(), "{found}");
        let record = json(&[
            "compare",
            "--machine",
            &machine,
            "--seed",
            "1",
            "--place",
            "os-default",
            "--place",
            "spread*4",
            "--threads-env",
            "4",
            "--max-runs",
            "8",
            "--format",
            "json",
            "--",
            "sim-workload",
        ]);
        assert_eq!(record["arms"].as_array().unwrap().len(), 2, "{record}");
    }
}

/// A description is refused in one line with status 2 that names the key.
#[track_caller]
fn refused(description: &str, part: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.toml");
    std::fs::write(&file, description).unwrap();
    let machine = format!("sim:{}", file.display());
    for line in [
        vec!["topology", "--machine", &machine],
        vec!["compare", "--machine", &machine, "--", "prog"],
    ] {
        let output = run(&line);
        let (out, err) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{description}: {out}{err}");
        assert!(err.contains(part) && err.contains("m.toml"), "{err}");
        assert_eq!(err.trim_end().lines().count(), 1, "{err}");
    }
}

#[test]
fn impossible_machines_are_refused() {
    refused(
        "topology = \"pu:4\"\n[scheduler]\npolicy = \"pinned\"\n[performance]\n",
        "performance: there is a [scheduler], too",
    );
    refused(
        "topology = \"pu:4\"\nallowed = \"9\"",
        "allowed: there is no CPU 9",
    );
    refused(
        "topology = \"pu:4\"\noffline = \"0-3\"",
        "offline: leaves no CPU",
    );
    refused(
        "topology = \"pu:4\"\n[[kind]]\ncpus = \"0-3\"\nspeed = 1.0\n[[kind]]\ncpus = \"3\"\nspeed = 2.0",
        "kind[1].cpus: CPUs 3 are of another kind, too",
    );
    refused(
        "topology = \"pu:4\"\n[performance]\nturbo_drop = 2.0",
        "performance.turbo_drop: 2 must be from 0 to 0.9",
    );
    refused(
        "topology = \"pu:4\"\n[performance]\nturbo = 0.1",
        "m.toml:3: unknown field `turbo`",
    );
    refused(
        "topology = \"pu:4\"\n[performance]\n[workload.x]\nbase_s = 1.0\n[workload.x.demand]\nserial = -0.1",
        "workload.x.demand.serial: -0.1 must be from 0 to 1",
    );
    refused(
        "topology = \"pu:4\"\n[workload.x]\nbase_s = 1.0\nfails = [\"two-llcs\"]",
        "workload.x.fails",
    );
}

#[test]
fn more_threads_and_fewer_are_set_by_the_environment() {
    let example = root().join("tests/data/sim/server-2x8x8x2.toml");
    let machine = format!("sim:{}", example.display());
    let typical = |threads: &str| {
        let record = json(&[
            "compare",
            "--self",
            "--machine",
            &machine,
            "--seed",
            "1",
            "--threads-env",
            threads,
            "--max-runs",
            "8",
            "--format",
            "json",
            "--",
            "sim-workload",
        ]);
        record["arms"][0]["estimate"]["value"].as_f64().unwrap()
    };
    let (few, many) = (typical("8"), typical("64"));
    assert!(few > 3.0 * many, "{few} {many}");
}
