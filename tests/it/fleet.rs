//! Fleets from submission to store, with nodes that are processes of this host. Some are killed,
//! and their files lost, damaged or hostile.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rand::RngExt;
use serde_json::{Value, json};

use crate::support::{decode_output, pinwise, random_generator, split_words, wait_until};

/// A step that takes almost no time.
pub(crate) const QUICK: &str = r#"[[step]]
name = "quick"
run = ["compare", "--machine", "sim:core:2 pu:2", "--seed", "1", "--place",
  "os-default", "--place", "spread*2", "--max-runs", "4", "--", "sim-workload"]
"#;

/// A folder with a store, from which fleets are submitted.
pub(crate) struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    pub(crate) fn new(study: &str) -> Self {
        let site = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::write(site.path("study.toml"), study).unwrap();
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn fleet_folder(&self, id: &str) -> PathBuf {
        self.path("pinwise-fleet").join(id)
    }

    pub(crate) fn node_folder(&self, id: &str, node: &str) -> PathBuf {
        self.fleet_folder(id).join("nodes").join(node)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = pinwise(&self.path("store.db"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    #[track_caller]
    pub(crate) fn run_for_text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{arguments:?}: {out}{err}");
        out
    }

    /// The same, of a line of arguments.
    #[track_caller]
    pub(crate) fn run_line(&self, line: &str) -> String {
        self.run_for_text(&split_words(line))
    }

    #[track_caller]
    pub(crate) fn run_for_json(&self, line: &str) -> Value {
        serde_json::from_str(&self.run_line(&format!("--format json {line}"))).unwrap()
    }

    /// Checks for status 2 and an error of one line, which is returned.
    #[track_caller]
    pub(crate) fn check_refusal(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = decode_output(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {out}{err}");
        assert_eq!(err.lines().count(), 1, "{err}");
        err
    }

    #[track_caller]
    pub(crate) fn submit(&self, more: &[&str]) -> String {
        let words = ["fleet", "submit", "--launcher", "local"];
        self.run_for_text(&[&words[..], more, &["study.toml"]].concat())
    }

    #[track_caller]
    pub(crate) fn read_status(&self, fleet: &str) -> Value {
        self.run_for_json(&format!("fleet status {fleet}"))
    }

    /// Waits until no job of a fleet runs or is queued; returns the status then.
    #[track_caller]
    pub(crate) fn wait_until_ended(&self, fleet: &str) -> Value {
        wait_until("the fleet has ended", || {
            let status = self.read_status(fleet);
            status["running"] == 0 && status["queued"] == 0
        });
        self.read_status(fleet)
    }

    /// Ids of the records of a fleet's steps in the store, sorted.
    pub(crate) fn list_records(&self, id: &str) -> Vec<String> {
        let listed = self.run_for_json(&format!("record history --limit 100000 --tag fleet:{id}"));
        let records = listed["records"].as_array().unwrap().iter();
        let ids = records.map(|record| record["id"].as_str().unwrap().to_owned());
        let mut ids: Vec<String> = ids.filter(|id| id.contains('~')).collect();
        ids.sort();
        ids
    }
}

#[test]
fn records_of_a_fleet_are_collected_once() {
    let site = Site::new(&format!("{QUICK}repeat = 2\n"));
    let words = ["--nodes", "2", "--id", "f", "--tag", "burn-in"];
    let out = site.submit(&words);
    assert!(
        out.starts_with("Fleet f: 2 jobs submitted for 2 nodes, in "),
        "{out}"
    );
    let status = site.wait_until_ended("f");
    assert_eq!(
        (&status["done"], &status["asked"]),
        (&json!(2), &json!(2)),
        "{status:#}"
    );
    assert_eq!(status["notes"], json!([]));
    let text = site.run_for_text(&["fleet", "status"]);
    assert!(text.starts_with("Fleet f: 2 done of 2 asked.\n"), "{text}");
    assert!(
        site.list_records("f").is_empty(),
        "nothing is in the store before it is collected"
    );
    let out = site.run_for_text(&["fleet", "collect", "last"]);
    assert_eq!(out, "Fleet f: 4 records of 2 nodes, 4 new.\n");
    let expected = [
        "f.local-1~quick-1",
        "f.local-1~quick-2",
        "f.local-2~quick-1",
        "f.local-2~quick-2",
    ];
    assert_eq!(site.list_records("f"), expected);
    let out = site.run_for_text(&["fleet", "collect", "f"]);
    assert_eq!(out, "Fleet f: 4 records of 2 nodes, 0 new.\n");
    assert_eq!(site.list_records("f"), expected);
    let node = std::fs::read_to_string(site.node_folder("f", "local-1").join("node.json")).unwrap();
    let node: Value = serde_json::from_str(&node).unwrap();
    assert_eq!(node["tags"], json!(["burn-in", "fleet:f"]));
    assert_eq!(node["figures"].as_array().unwrap().len(), 4, "{node:#}");
    assert_eq!(node["steps"][1]["record"], "f.local-1~quick-2");
    assert_eq!(
        site.run_for_text(&["fleet", "resume", "f"]),
        "Fleet f: nothing is missing.\n"
    );
    site.run_for_text(&["record", "show", "f.local-1~quick-1"]);
}

#[test]
fn steps_that_fail_are_reported_and_stop_no_other() {
    let study = format!(
        r#"[[step]]
name = "fails"
run = ["compare", "--place", "os-default", "--place", "cpu:0", "--max-runs", "2",
  "--prepare", "sh -c 'printf \"\\033[31mhostile\\n\" >&2; exit 3'", "--", "true"]
[[step]]
name = "slow"
run = ["compare", "--place", "os-default", "--place", "cpu:0", "--", "sleep", "600"]
timeout = "300ms"
{QUICK}"#
    );
    let site = Site::new(&study);
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    let status = site.wait_until_ended("f");
    let node = &status["nodes"][0];
    assert_eq!(
        (&node["state"], &node["done"]),
        (&json!("failed"), &json!(1)),
        "{status:#}"
    );
    assert_eq!(node["step"], "fails");
    assert!(
        node["why"].as_str().unwrap().contains("hostile"),
        "{node:#}"
    );
    let text = site.run_for_text(&["fleet", "status", "f"]);
    assert!(
        !text.contains('\u{1b}') && text.contains("hostile"),
        "{text}"
    );
    let out = site.run_for_text(&["fleet", "collect", "f"]);
    assert_eq!(out, "Fleet f: 1 record of 1 node, 1 new.\n");
    let record = std::fs::read_to_string(site.node_folder("f", "n1").join("node.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let why = record["steps"][1]["why"].as_str().unwrap();
    assert!(why.contains("time-out of 300ms"), "{why}");
    let out = site.run_for_text(&["fleet", "resume", "f"]);
    assert!(out.ends_with("Fleet f: 1 node submitted again.\n"), "{out}");
    let status = site.wait_until_ended("f");
    assert_eq!(status["nodes"][0]["attempts"], 2);
}

/// Processes whose command line names this folder.
fn list_processes(folder: &Path) -> Vec<i32> {
    let folder = folder.display().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let names_folder = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&folder)
    };
    pids.filter(names_folder).collect()
}

/// Kills a process, which may have ended already.
fn kill(pid: i32) {
    let _ = Command::new("kill").args(["-9", &pid.to_string()]).output();
}

/// Nodes are killed at random moments, several times.
#[test]
fn steps_of_killed_nodes_are_recorded_exactly_once() {
    let mut random = random_generator();
    let site = Site::new(&format!("{QUICK}repeat = 40\n"));
    site.submit(&["--nodelist", "n[1-2]", "--id", "f"]);
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(random.random_range(0..150)));
        for pid in list_processes(&site.fleet_folder("f")) {
            kill(pid);
        }
        wait_until("killed processes are gone", || {
            list_processes(&site.fleet_folder("f")).is_empty()
        });
        site.run_for_text(&["fleet", "collect", "f"]);
        site.run_for_text(&["fleet", "resume", "f"]);
    }
    wait_until("all is done", || {
        let status = site.wait_until_ended("f");
        if status["done"] != 2 {
            site.run_for_text(&["fleet", "resume", "f"]);
        }
        status["done"] == 2
    });
    site.run_for_text(&["fleet", "collect", "f"]);
    let mut expected: Vec<String> = (1..=2)
        .flat_map(|node| (1..=40).map(move |step| format!("f.n{node}~quick-{step}")))
        .collect();
    expected.sort();
    assert_eq!(site.list_records("f"), expected);
    let attempts = &site.read_status("f")["nodes"][0]["attempts"];
    assert!(attempts.as_u64().unwrap() > 1, "nothing was killed in time");
}

/// As when a lost node comes back while another attempt runs.
#[test]
fn concurrent_attempts_count_once() {
    let site = Site::new(&format!("{QUICK}repeat = 10\n"));
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    let folder = site.fleet_folder("f").display().to_string();
    let attempt = || site.command(&["fleet", "node", &folder, "--node", "n1"]);
    let attempts = [attempt().spawn().unwrap(), attempt().spawn().unwrap()];
    for mut attempt in attempts {
        assert!(attempt.wait().unwrap().success());
    }
    let status = site.wait_until_ended("f");
    assert_eq!(
        (&status["done"], &status["nodes"][0]["attempts"]),
        (&json!(1), &json!(3))
    );
    let out = site.run_for_text(&["fleet", "collect", "f"]);
    assert_eq!(out, "Fleet f: 10 records of 1 node, 10 new.\n");
    assert_eq!(site.list_records("f").len(), 10);
}

/// Schedulers first send a signal to jobs that they end.
#[test]
fn a_terminated_node_reports_it_and_ends_its_step() {
    let slow = r#"[[step]]
name = "slow"
run = ["compare", "--place", "os-default", "--place", "cpu:0", "--", "sleep", "600.25"]
"#;
    let site = Site::new(&format!("{QUICK}{slow}"));
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    wait_until("the slow step runs", || {
        site.node_folder("f", "n1").join("quick.done.json").exists()
    });
    assert_eq!(site.read_status("f")["nodes"][0]["state"], "running");
    assert_eq!(site.read_status("f")["nodes"][0]["step"], "slow");
    site.run_for_text(&["fleet", "cancel", "f"]);
    let status = site.wait_until_ended("f");
    let why = status["nodes"][0]["why"].as_str().unwrap();
    assert!(why.contains("interrupted by a signal"), "{why}");
    wait_until("its processes are gone", || {
        list_processes(&site.fleet_folder("f")).is_empty()
    });
    site.run_for_text(&["fleet", "cancel", "f"]);
}

#[test]
fn a_killed_node_ends_its_steps() {
    let site = Site::new(
        r#"[[step]]
name = "slow"
run = ["compare", "--place", "os-default", "--place", "cpu:0", "--", "sleep", "600.75"]
"#,
    );
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    let count_sleepers = || {
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = entries.filter_map(|e| std::fs::read(e.path().join("cmdline")).ok());
        lines.filter(|line| line == b"sleep\x00600.75\x00").count()
    };
    wait_until("the command runs", || count_sleepers() == 1);
    let record = std::fs::read_to_string(site.fleet_folder("f").join("fleet.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    kill(record["jobs"][0]["id"].as_str().unwrap().parse().unwrap());
    wait_until("the command is gone", || count_sleepers() == 0);
    let status = site.wait_until_ended("f");
    let why = status["nodes"][0]["why"].as_str().unwrap();
    assert!(why.contains("did not end by itself"), "{why}");
}

#[test]
fn two_fleets_share_neither_folder_nor_id() {
    let site = Site::new(QUICK);
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    site.wait_until_ended("f");
    let again = |more: &str| {
        let line = format!("fleet submit --launcher local --nodes 1 study.toml --id {more}");
        site.check_refusal(&split_words(&line))
    };
    let err = again("f");
    assert!(err.contains("exists already"), "{err}");
    let err = again("f --dir elsewhere");
    assert!(err.contains("two fleets cannot share an id"), "{err}");
    assert!(!site.path("elsewhere").exists());
    let err = again("../f");
    assert!(err.contains("letters, digits"), "{err}");
    // A fleet of another host, which has the same id by accident.
    std::fs::rename(site.path("pinwise-fleet"), site.path("moved")).unwrap();
    let path = site.path("moved/f/fleet.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut other: Value = serde_json::from_str(&text).unwrap();
    other["host"] = json!("other");
    std::fs::write(&path, other.to_string()).unwrap();
    let err = site.check_refusal(&["fleet", "collect", "moved/f"]);
    assert!(err.contains("the store has another fleet 'f'"), "{err}");
    // A copy of the same fleet.
    std::fs::write(&path, text).unwrap();
    let out = site.run_for_text(&["fleet", "collect", "moved/f"]);
    assert_eq!(out, "Fleet f: 1 record of 1 node, 1 new.\n");
    let err = site.check_refusal(&["fleet", "status", "f"]);
    assert!(err.contains("is not here"), "{err}");
}

/// As are newer and foreign ones, and files that are not regular.
#[test]
fn damaged_results_are_reported_and_the_others_collected() {
    let site = Site::new(&format!("{QUICK}repeat = 6\n"));
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    site.wait_until_ended("f");
    let node = site.node_folder("f", "n1");
    let file = |step: u32| node.join(format!("quick-{step}.json"));
    let good = std::fs::read_to_string(file(1)).unwrap();
    std::fs::write(file(1), &good[..good.len() / 2]).unwrap();
    let body = std::fs::read_to_string(file(2)).unwrap();
    std::fs::write(
        file(2),
        body.replace("pinwise.comparison/1", "pinwise.comparison/99"),
    )
    .unwrap();
    std::fs::write(file(3), body.replace("f.n1~quick-2", "g.n1~quick-2")).unwrap();
    std::fs::remove_file(file(4)).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", file(4)).unwrap();
    std::fs::remove_file(file(5)).unwrap();
    let status = Command::new("mkfifo").arg(file(5)).status();
    assert!(status.unwrap().success());
    std::fs::create_dir(site.fleet_folder("f").join("nodes/\u{1b}[31mred")).unwrap();
    std::fs::write(node.join("begun-2.json"), "{").unwrap();
    let output = site.run(&["fleet", "collect", "f"]);
    let (out, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{out}{err}");
    assert_eq!(out, "Fleet f: 1 record of 1 node, 1 new.\n", "{err}");
    for words in [
        "quick-1.json: the record is damaged",
        "quick-2.json: ",
        "newer",
        "quick-3.json: it is record 'g.n1~quick-2', not 'f.n1~quick-3'",
        "quick-4.json: it is not a regular file",
        "quick-5.json: it is not a regular file",
        "not a node's folder",
        "begun-2.json: the record is damaged",
    ] {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert!(!err.contains('\u{1b}'), "{err:?}");
    assert_eq!(site.list_records("f"), ["f.n1~quick-6"]);
    site.run_for_text(&["fleet", "status", "f"]);
}

/// A limit on the size of files stands in for a full disk.
#[test]
fn a_full_disk_is_reported_and_partial_files_do_not_count() {
    let site = Site::new(&format!("{QUICK}repeat = 3\n"));
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    site.wait_until_ended("f");
    std::fs::remove_dir_all(site.node_folder("f", "n1")).unwrap();
    let folder = site.fleet_folder("f").display().to_string();
    for blocks in ["3", "12"] {
        let limited = format!("ulimit -f {blocks}; exec \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &limited, "sh", env!("CARGO_BIN_EXE_pinwise")])
            .args(["fleet", "node", &folder, "--node", "n1"])
            .current_dir(site.folder.path())
            .output()
            .unwrap();
        let (_, err) = decode_output(&output);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("File too large"), "{err}");
        let out = site.run_for_text(&["fleet", "collect", "f"]);
        assert!(out.contains(" 0 new"), "{out}");
    }
    assert!(site.list_records("f").is_empty());
    let again = site
        .command(&["fleet", "node", &folder, "--node", "n1"])
        .output()
        .unwrap();
    assert!(again.status.success(), "{}", decode_output(&again).1);
    let out = site.run_for_text(&["fleet", "collect", "f"]);
    assert_eq!(out, "Fleet f: 3 records of 1 node, 3 new.\n");
}

#[test]
fn a_removed_folder_is_not_created_again() {
    let site = Site::new(QUICK);
    let err = site.check_refusal(&["fleet", "node", "pinwise-fleet/f", "--node", "n1"]);
    assert!(err.contains("no fleet found"), "{err}");
    site.submit(&["--nodelist", "n1", "--id", "f"]);
    site.wait_until_ended("f");
    let folder = site.fleet_folder("f").display().to_string();
    for bad in ["../x", "a/b", "\u{1b}[31m", "", "report"] {
        let output = site.run(&["fleet", "node", &folder, "--node", bad]);
        let (_, err) = decode_output(&output);
        assert_eq!(output.status.code(), Some(2), "{bad}: {err}");
        assert!(
            err.contains("letters, digits") && !err.contains('\u{1b}'),
            "{err}"
        );
    }
    std::fs::remove_dir_all(site.fleet_folder("f")).unwrap();
    let err = site.check_refusal(&["fleet", "collect", "f"]);
    assert!(err.contains("is not here"), "{err}");
}

#[test]
fn files_of_simulated_machines_are_copied_into_the_fleet() {
    let site = Site::new("");
    std::fs::write(site.path("machine.toml"), "topology = \"core:2 pu:2\"\n").unwrap();
    let study = QUICK.replace("sim:core:2 pu:2", "sim:machine.toml");
    std::fs::write(site.path("study.toml"), study).unwrap();
    site.submit(&["--nodes", "1", "--id", "f"]);
    std::fs::remove_file(site.path("machine.toml")).unwrap();
    assert_eq!(site.wait_until_ended("f")["done"], 1);
}

#[test]
fn a_users_template_submits_and_earlier_jobs_of_a_failed_submission_are_known() {
    let site = Site::new(QUICK);
    let template = "name = \"mine\"\n[submit]\ncommand = \"test {node} != n2 || { echo no room >&2; exit 1; }; {command} >>{log} 2>&1; echo did {node}\"\njob = '^did (.*)$'\n";
    std::fs::write(site.path("mine.toml"), template).unwrap();
    let line = "fleet submit --launcher mine.toml --nodelist n[1-3] --id f study.toml";
    let words = split_words(line);
    let out = site.run_for_text(&[&words[..], &["--dry-run"]].concat());
    assert!(
        out.contains("pinwise fleet node ") && out.contains("--node n3"),
        "{out}"
    );
    assert!(!site.path("pinwise-fleet").exists());
    let err = site.check_refusal(&words);
    assert!(
        err.contains("mine: no room") && err.contains("1 job was submitted before"),
        "{err}"
    );
    let status = site.read_status("f");
    assert_eq!(
        (&status["done"], &status["missing"]),
        (&json!(1), &json!(2)),
        "{status:#}"
    );
    std::fs::write(site.path("mine.toml"), template.replace("{node}", "{knot}")).unwrap();
    let err = site.check_refusal(&words);
    assert!(
        err.contains("mine.toml:3:") && err.contains("{knot}"),
        "{err}"
    );
    // The fleet keeps the template with which it was submitted.
    let err = site.check_refusal(&["fleet", "resume", "f"]);
    assert!(err.contains("mine: no room"), "{err}");
    site.run_line("fleet submit --launcher kubernetes --nodelist n1 --id k study.toml");
    let text = std::fs::read_to_string(site.fleet_folder("k").join("jobs/n1.yaml")).unwrap();
    assert!(
        text.contains("kind: Job") && text.contains("nodeName: \"n1\""),
        "{text}"
    );
}

/// A script in the place of ssh gives its last argument to a shell, as sshd does. The name of the
/// folder needs quotes.
#[test]
fn nodes_are_run_and_cancelled_through_ssh() {
    let slow = r#"[[step]]
name = "slow"
run = ["compare", "--place", "os-default", "--place", "cpu:0", "--", "sleep", "600.125"]
"#;
    let site = Site::new(&format!("{QUICK}{slow}"));
    std::fs::create_dir(site.path("bin")).unwrap();
    let ssh = site.path("bin/ssh");
    std::fs::write(
        &ssh,
        "#!/bin/sh\nfor last; do :; done\nexec sh -c \"$last\"\n",
    )
    .unwrap();
    std::fs::set_permissions(&ssh, PermissionsExt::from_mode(0o755)).unwrap();
    let mut path = vec![site.path("bin")];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let path = std::env::join_paths(path).unwrap();
    let run = |words: &[&str]| {
        let output = site.command(words).env("PATH", &path).output().unwrap();
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{words:?}: {out}{err}");
        out
    };
    let words = ["fleet", "submit", "--launcher", "ssh", "--nodelist"];
    let more = ["n[1-2]", "--id", "f", "--dir", "it's here", "study.toml"];
    run(&[&words[..], &more].concat());
    let read_status = || -> Value {
        serde_json::from_str(&run(&["fleet", "status", "f", "--format", "json"])).unwrap()
    };
    wait_until("both are at the slow step", || {
        let status = read_status();
        let nodes = status["nodes"].as_array().unwrap().iter();
        status["running"] == 2 && nodes.clone().all(|node| node["done"] == 1)
    });
    run(&["fleet", "cancel", "f"]);
    wait_until("both have ended", || read_status()["failed"] == 2);
    let out = run(&["fleet", "collect", "f"]);
    assert_eq!(out, "Fleet f: 2 records of 2 nodes, 2 new.\n");
}
