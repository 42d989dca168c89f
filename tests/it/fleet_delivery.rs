//! Nodes that deliver their records to a server, which may be away.

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::store::server::Server;
use crate::support::{decode_output, pinwise, wait_until};

/// A study whose first step waits until the file `GO` exists.
const STUDY: &str = r#"[[step]]
name = "wait"
run = ["compare", "--place", "os-default", "--place", "cpu:0", "--max-runs", "3",
  "--warmup", "0", "--", "sh", "-c", "until [ -e GO ]; do sleep 0.02; done"]

[[step]]
name = "quick"
run = ["compare", "--machine", "sim:core:2 pu:2", "--seed", "1", "--place",
  "os-default", "--place", "spread*2", "--max-runs", "4", "--", "sim-workload"]
repeat = 3
"#;

/// Submits the study to two nodes in a new folder. The file `go` there lets them continue.
#[track_caller]
fn submit(url: &str, id: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let study = STUDY.replace("GO", folder.path().join("go").to_str().unwrap());
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    let submit = format!("fleet submit --launcher local --nodes 2 --id {id} study.toml");
    run_for_text(folder.path(), url, &submit);
    folder
}

#[test]
fn records_that_a_server_missed_are_collected_once() {
    let Some(server) = Server::start_own() else {
        return;
    };
    let url = server.create_database();
    let folder = submit(&url, "away");
    server.stop();
    std::fs::write(folder.path().join("go"), "").unwrap();
    // The status of a folder needs no store.
    wait_until("both nodes are done", || {
        let status = run(folder.path(), "none", STATUS);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        status["done"] == 2
    });
    let node = folder.path().join("pinwise-fleet/away/nodes/local-1/log");
    let log = std::fs::read_to_string(node).unwrap();
    assert!(
        log.contains("not delivered, and kept in the folder"),
        "{log}"
    );
    server.start();
    let collect = "fleet collect pinwise-fleet/away";
    let out = run_for_text(folder.path(), &url, collect);
    assert_eq!(out, "Fleet away: 8 records of 2 nodes, 8 new.\n");
    let out = run_for_text(folder.path(), &url, collect);
    assert_eq!(out, "Fleet away: 8 records of 2 nodes, 0 new.\n");
    // Records of eight steps, two nodes, and the fleet.
    let history = "record history --tag fleet:away --limit 100 --format json";
    let listed: Value = serde_json::from_str(&run_for_text(folder.path(), &url, history)).unwrap();
    assert_eq!(listed["total"], 11, "{listed:#}");
}

#[test]
fn nodes_deliver_to_a_server() {
    let Some(server) = Server::start_own() else {
        return;
    };
    let url = server.create_database();
    let folder = submit(&url, "here");
    std::fs::write(folder.path().join("go"), "").unwrap();
    let history = "record history --tag fleet:here --limit 100 --format json";
    wait_until("all is delivered", || {
        let listed = run(folder.path(), &url, history).stdout;
        let listed: Value = serde_json::from_slice(&listed).unwrap_or_default();
        listed["total"] == 11
    });
    wait_until("the nodes have ended", || {
        let status = run(folder.path(), &url, "fleet status here --format json");
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        status["done"] == 2 && status["running"] == 0
    });
    let out = run_for_text(folder.path(), &url, "fleet collect here");
    assert_eq!(out, "Fleet here: 8 records of 2 nodes, 0 new.\n");
    // The file may contain the URL of a store with its password.
    let submission = folder.path().join("pinwise-fleet/here/submission.json");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(submission).unwrap().permissions(),
    );
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

const STATUS: &str = "fleet status pinwise-fleet/away --format json";

fn run(folder: &Path, store: &str, line: &str) -> Output {
    let mut command = pinwise(&folder.join("unused.db"));
    command.env("PINWISE_STORE", store).current_dir(folder);
    command.env("XDG_STATE_HOME", folder.join("state"));
    command.args(line.split(' ')).output().unwrap()
}

#[track_caller]
fn run_for_text(folder: &Path, store: &str, line: &str) -> String {
    let output = run(folder, store, line);
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{line}: {out}{err}");
    out
}
