//! Fleets on a Slurm of four nodes that runs on this host (`tests/env/slurm/README.md`), with
//! failures of nodes and jobs.

mod cluster;

use std::collections::BTreeSet;
use std::path::Path;

use rand::RngExt;
use serde_json::Value;

use self::cluster::{Cluster, Kill};
use crate::support::{decode_output, random_generator, root, split_words};

/// Settings with which Slurm notices a lost node after 10 s instead of 27.
const FAST_DETECTION: &str = "SlurmdTimeout=2\nMessageTimeout=4";
/// Nodes of the cluster.
const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

/// Writes a study of quick steps; returns its path.
fn write_quick_study(cluster: &Cluster, repeat: usize) -> String {
    write_study(cluster, "quick.toml", &format!("repeat = {repeat}\n"))
}

/// Writes a study of a quick step and one that never ends; returns its path.
fn write_slow_study(cluster: &Cluster) -> String {
    let slow = r#"
[[step]]
name = "slow"
run = ["compare", "--command", "sleep 1000", "--command", "sleep 2000"]
"#;
    write_study(cluster, "slow.toml", slow)
}

/// Writes a study of a quick step and these further lines.
fn write_study(cluster: &Cluster, name: &str, more: &str) -> String {
    let machine = root().join("tests/data/sim/container-14-of-32.toml");
    let machine = machine.display();
    let text = format!(
        r#"[[step]]
name = "quick"
run = ["compare", "--machine", "sim:{machine}", "--seed", "1", "--place",
  "os-default", "--place", "spread*4", "--max-runs", "4", "--", "sim-workload"]
{more}"#
    );
    let path = cluster.path(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Names of the files in a node's folder.
fn list_files(fleet: &Path, node: &str) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(fleet.join("nodes").join(node)) else {
        return Vec::new();
    };
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    found.flatten().map(name).collect()
}

/// The number of records of steps in a node's folder. Other files of a step may be missing if the
/// node was killed.
fn count_records(fleet: &Path, node: &str) -> usize {
    let is_record = |name: &&String| {
        let number = name
            .strip_prefix("quick-")
            .and_then(|name| name.strip_suffix(".json"));
        number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    };
    list_files(fleet, node).iter().filter(is_record).count()
}

/// The number of attempts that a node has begun.
fn count_attempts(fleet: &Path, node: &str) -> usize {
    let files = list_files(fleet, node).into_iter();
    files.filter(|name| name.starts_with("begun-")).count()
}

fn has_file(fleet: &Path, node: &str, file: &str) -> bool {
    list_files(fleet, node).iter().any(|name| name == file)
}

/// A failure that a test causes.
#[derive(Debug, Clone, Copy)]
enum Failure {
    Killed(Kill),
    /// The job of the node is requeued.
    Requeued,
}

/// The failures of nodes, in this order. If only the task is killed, the job ends and has to be
/// resumed.
const FAILURES: [Failure; 6] = [
    Failure::Killed(Kill::Node),
    Failure::Killed(Kill::Daemons),
    Failure::Requeued,
    Failure::Killed(Kill::Node),
    Failure::Killed(Kill::Daemons),
    Failure::Killed(Kill::Task),
];

/// 1,000 records on four nodes that fail at random moments.
#[test]
fn no_record_is_lost_or_doubled_if_nodes_fail() {
    const STEPS: usize = 250;
    let Some(cluster) = Cluster::start("") else {
        return;
    };
    let mut random = random_generator();
    let study = write_quick_study(&cluster, STEPS);
    let fleet = cluster.path("fleet");
    let folder = fleet.display().to_string();
    let id = "kills";
    let options = ["--partition", "all", "--id", id, "--dir", &folder, &study];
    cluster.run_for_text(&[&["fleet", "submit"], &options[..]].concat());
    for failure in FAILURES {
        let open = NODES
            .iter()
            .filter(|node| count_records(&fleet, node) < STEPS);
        let open: Vec<&str> = open.copied().collect();
        if open.is_empty() {
            break;
        }
        let node = open[random.random_range(0..open.len())];
        let start = count_records(&fleet, node);
        let moment = start + random.random_range(0..40);
        let has_ended = || cluster.list_queue(id).is_empty();
        cluster.wait_until("a node makes progress", || {
            count_records(&fleet, node) >= moment.min(STEPS) || has_ended()
        });
        let done = count_records(&fleet, node);
        eprintln!("{node}, {done} of {STEPS} done: {failure:?}");
        cause(&cluster, node, failure);
    }
    resume_until_done(&cluster, id, &folder);
    let attempts: usize = NODES.iter().map(|node| count_attempts(&fleet, node)).sum();
    assert!(attempts > 4, "no node failed");
    let reported = cluster.run_for_text(&["fleet", "collect", &folder]);
    check_records(&cluster, id, STEPS, &reported);
    cluster.run_for_text(&["fleet", "collect", &folder]);
    check_records(&cluster, id, STEPS, "collected twice");
}

/// Makes a node fail, and starts it again.
fn cause(cluster: &Cluster, node: &str, failure: Failure) {
    match failure {
        Failure::Killed(kill) => {
            cluster.kill(node, kill);
            if kill != Kill::Task {
                cluster.start_node(node);
            }
        }
        Failure::Requeued => {
            let out = cluster.run_slurm("squeue", &["-h", "-t", "running", "-w", node, "-o", "%i"]);
            for job in out.split_whitespace() {
                // It may have ended by now.
                cluster.try_slurm("scontrol", &["requeue", job]);
            }
        }
    }
}

/// Resumes until all nodes are done.
fn resume_until_done(cluster: &Cluster, id: &str, folder: &str) {
    for _ in 0..8 {
        cluster.wait_until("all jobs have ended", || cluster.list_queue(id).is_empty());
        if cluster.read_status(folder)["done"] == 4 {
            return;
        }
        cluster.run_for_text(&["fleet", "resume", folder]);
    }
    panic!("still not done: {:#}", cluster.read_status(folder));
}

/// Checks that every step of every node is in the store, once.
fn check_records(cluster: &Cluster, id: &str, steps: usize, reported: &str) {
    let tag = format!("fleet:{id}");
    let out = cluster.run_for_text(&[
        "record", "history", "--tag", &tag, "--limit", "10000", "--format", "json",
    ]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    let mut ids = BTreeSet::new();
    for entry in listed["records"].as_array().unwrap() {
        let id = entry["id"].as_str().unwrap();
        assert!(ids.insert(id), "{id} is there twice");
    }
    for node in NODES {
        for step in 1..=steps {
            let expected = format!("{id}.{node}~quick-{step}");
            assert!(
                ids.contains(expected.as_str()),
                "{expected} is lost: {reported}"
            );
        }
    }
    let of_steps = ids.iter().filter(|id| id.contains('~')).count();
    assert_eq!(of_steps, NODES.len() * steps, "{reported}");
}

/// The node of this name in a status.
#[track_caller]
fn find_node(status: &Value, name: &str) -> Value {
    let nodes = status["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|node| node["node"] == name);
    found
        .unwrap_or_else(|| panic!("no {name}: {status:#}"))
        .clone()
}

/// A node is lost, a job is requeued, a node is drained, a job is cancelled.
#[test]
fn failures_of_jobs_are_reported_and_finished_steps_count() {
    let Some(cluster) = Cluster::start(FAST_DETECTION) else {
        return;
    };
    let study = write_slow_study(&cluster);
    cluster.set_node("n4", "DRAIN", "bad DIMM \u{1b}[31m");
    let fleet = cluster.path("fleet");
    let folder = fleet.display().to_string();
    let words = ["fleet", "submit", "--nodelist", "n[2-4]", "--id", "asked"];
    let output = cluster.run(&[&words[..], &["--dir", &folder, &study]].concat());
    let (out, err) = decode_output(&output);
    assert!(output.status.success(), "{out}{err}");
    assert!(err.contains("n4: drained: bad DIMM"), "{err}");
    assert!(!err.contains('\u{1b}'), "{err:?}");
    cluster.wait_until("the slow step runs on two nodes", || {
        ["n2", "n3"]
            .iter()
            .all(|node| has_file(&fleet, node, "quick.json"))
    });
    let status = cluster.read_status(&folder);
    assert_eq!(
        (&status["asked"], &status["running"]),
        (&2.into(), &2.into()),
        "{status:#}"
    );
    let done = std::fs::read(fleet.join("nodes/n3/quick.json")).unwrap();
    lose_a_node(&cluster, &fleet);
    requeue_during_step(&cluster, &fleet);
    let now = std::fs::read(fleet.join("nodes/n3/quick.json")).unwrap();
    assert_eq!(done, now, "a finished step was repeated");
    cluster.run_for_text(&["fleet", "cancel", &folder]);
    cluster.wait_until("the jobs are cancelled", || {
        cluster.list_queue("asked").is_empty()
    });
    let status = cluster.read_status(&folder);
    for name in ["n2", "n3"] {
        let node = find_node(&status, name);
        assert_eq!(
            (&node["state"], &node["done"]),
            (&"failed".into(), &1.into()),
            "{status:#}"
        );
    }
    let why = find_node(&status, "n3")["why"].as_str().unwrap().to_owned();
    assert!(why.contains("CANCELLED"), "{why}");
}

/// Kills n2, waits until Slurm notices it, and starts n2 again.
fn lose_a_node(cluster: &Cluster, fleet: &Path) {
    cluster.kill("n2", Kill::Node);
    cluster.wait_until("Slurm notices the loss of n2", || {
        cluster.read_node_state("n2").starts_with("down")
    });
    let folder = fleet.display().to_string();
    cluster.wait_until("its job waits", || {
        find_node(&cluster.read_status(&folder), "n2")["state"] == "queued"
    });
    let resumed = cluster.run_for_text(&["fleet", "resume", &folder]);
    assert_eq!(
        cluster.list_queue("asked").len(),
        2,
        "a queued job was submitted again: {resumed}"
    );
    cluster.start_node("n2");
    cluster.wait_until("n2 begins anew", || count_attempts(fleet, "n2") == 2);
    cluster.wait_until("n2 runs", || {
        find_node(&cluster.read_status(&folder), "n2")["state"] == "running"
    });
}

/// Requeues the job of n3 while its second step runs.
fn requeue_during_step(cluster: &Cluster, fleet: &Path) {
    let out = cluster.run_slurm("squeue", &["-h", "-w", "n3", "-o", "%i"]);
    cluster.run_slurm("scontrol", &["requeue", out.trim()]);
    cluster.wait_until("n3 begins anew", || count_attempts(fleet, "n3") == 2);
    assert!(
        has_file(fleet, "n3", "ended-1.json"),
        "the first attempt got no signal"
    );
}

/// Slurm counts whole minutes, and sends a signal to the node's task.
#[test]
fn a_time_limit_is_reported_and_finished_steps_count() {
    let Some(cluster) = Cluster::start("") else {
        return;
    };
    let study = write_slow_study(&cluster);
    let fleet = cluster.path("timed");
    let folder = fleet.display().to_string();
    let words = split_words("fleet submit --nodelist n1 --time 1m --id timed --dir");
    cluster.run_for_text(&[&words[..], &[&folder, &study]].concat());
    cluster.wait_until("the time limit is reached", || {
        cluster.list_queue("timed").is_empty()
    });
    let status = cluster.read_status(&folder);
    let node = find_node(&status, "n1");
    assert_eq!(
        (&node["state"], &node["done"]),
        (&"failed".into(), &1.into()),
        "{status:#}"
    );
    let why = node["why"].as_str().unwrap();
    assert!(
        why.contains("TIMEOUT") || why.contains("time limit"),
        "{why}"
    );
    assert!(has_file(&fleet, "n1", "ended-1.json"), "it got no signal");
}

/// One job over four nodes, one of which is lost; an array; and an array of which one node takes
/// several tasks.
#[test]
fn one_job_over_several_nodes_and_arrays_measure_each_node_once() {
    let Some(cluster) = Cluster::start(FAST_DETECTION) else {
        return;
    };
    let study = write_quick_study(&cluster, 20);
    let fleet = cluster.path("one");
    let folder = fleet.display().to_string();
    cluster.run_for_text(&[
        "fleet", "submit", "--nodes", "4", "--id", "one", "--dir", &folder, &study,
    ]);
    cluster.wait_until("n3 makes progress", || count_records(&fleet, "n3") >= 3);
    cluster.kill("n3", Kill::Node);
    cluster.wait_until("Slurm notices the loss of n3", || {
        cluster.read_node_state("n3").starts_with("down")
    });
    cluster.start_node("n3");
    resume_until_done(&cluster, "one", &folder);
    for node in NODES {
        assert_eq!(count_records(&fleet, node), 20, "{node}");
    }
    let folder = cluster.path("array").display().to_string();
    let words = [
        "fleet", "submit", "--nodes", "4", "--array", "--id", "array", "--dir",
    ];
    cluster.run_for_text(&[&words[..], &[&folder, &study]].concat());
    cluster.wait_until("the array has ended", || {
        cluster.list_queue("array").is_empty()
    });
    let status = cluster.read_status(&folder);
    // A fast node may take two tasks.
    let done = status["done"].as_u64().unwrap();
    assert!((1..=4).contains(&done), "{status:#}");
    for node in ["n2", "n3", "n4"] {
        cluster.set_node(node, "DRAIN", "not now");
    }
    let fleet = cluster.path("again");
    let folder = fleet.display().to_string();
    let words = [
        "fleet", "submit", "--nodes", "3", "--array", "--id", "again", "--dir",
    ];
    cluster.run_for_text(&[&words[..], &[&folder, &study]].concat());
    cluster.wait_until("n1 has run all tasks", || {
        cluster.list_queue("again").is_empty()
    });
    let status = cluster.read_status(&folder);
    let counts = (&status["done"], &status["missing"]);
    assert_eq!(counts, (&1.into(), &2.into()), "{status:#}");
    assert_eq!(
        (count_attempts(&fleet, "n1"), count_records(&fleet, "n1")),
        (3, 20)
    );
}

#[test]
fn refusals_of_slurm_are_reported_in_its_words() {
    let Some(cluster) = Cluster::start("") else {
        return;
    };
    let study = write_quick_study(&cluster, 1);
    let check = |arguments: &[&str], words: &str| {
        let err = cluster.check_refusal(&[&["fleet", "submit"], arguments, &[&study]].concat());
        let lines = err.lines().filter(|line| line.contains("error")).count();
        assert!(err.contains(words) && lines == 1, "{arguments:?}: {err}");
    };
    check(
        &["--nodes", "2", "--partition", "nope"],
        "invalid partition specified: nope",
    );
    check(&["--partition", "nope"], "no partition 'nope'");
    check(
        &["--partition", "short", "--time", "5m"],
        "Requested time limit is invalid",
    );
    check(&["--nodelist", "n[3-9]"], "Slurm has no node n5");
    check(&["--nodelist", "n[3-"], "a bracket is not closed");
    check(&["--nodes", "9"], "only 4 nodes");
    check(
        &["--partition", "all", "--constraint", "gpu"],
        "no node has 'gpu'",
    );
    check(
        &["--nodes", "1", "--constraint", "gpu"],
        "Invalid feature specification",
    );
    check(&[], "no nodes given");
    assert!(cluster.has_no_job());
    let plan = cluster.run_for_text(&["fleet", "submit", "--nodelist", "n2", "--dry-run", &study]);
    assert!(
        plan.contains("--cpu-bind=none") && plan.contains("--nodelist=n2"),
        "{plan}"
    );
    assert!(cluster.has_no_job());
    let folder = cluster.path("f").display().to_string();
    let options = ["--nodelist", "n2", "--id", "f", "--dir", &folder, &study];
    cluster.run_for_text(&[&["fleet", "submit"], &options[..]].concat());
    cluster.wait_until("it has ended", || cluster.list_queue("f").is_empty());
    cluster.stop_controller();
    let status = cluster.read_status(&folder);
    assert_eq!(status["done"], 1, "{status:#}");
    let err = cluster.check_refusal(&["fleet", "cancel", &folder]);
    assert!(
        err.contains("squeue: slurm_load_jobs error: Unable to contact"),
        "{err}"
    );
    let study = write_quick_study(&cluster, 1);
    let mut command = cluster.command(&["fleet", "submit", "--partition", "all", &study]);
    let output = command.env("PATH", "/nowhere").output().unwrap();
    let (_, err) = decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("sinfo is not on the path"), "{err}");
}

/// Code blocks of this language in a section of a document.
fn find_blocks(text: &str, section: &str, language: &str) -> Vec<String> {
    let start = text
        .find(section)
        .map_or("", |at| &text[at + section.len()..]);
    let end = start.find("\n## ").unwrap_or(start.len());
    let opening = format!("```{language}\n");
    let opened = start[..end].split(&opening).skip(1);
    opened
        .filter_map(|block| Some(block.split_once("```")?.0.to_owned()))
        .collect()
}

/// Starts a cluster whose eight nodes have the topology of the same machine, except that n5 has no
/// SMT.
fn start_eight_machines() -> Option<Cluster> {
    let capture = |node: usize| {
        let machine = if node == 5 { "2s2c2t-nosmt" } else { "2s2c2t" };
        format!("n{node}=tests/data/machines/{machine}.capture")
    };
    let captures: Vec<String> = (1..=8).map(capture).collect();
    let captures = captures.join(" ");
    let settings = [
        ("SLURM_NODES", "8:2:2:2"),
        ("SLURM_CAPTURES", captures.as_str()),
    ];
    Cluster::start_with(&settings)
}

/// The quick start of `docs/fleet.md`, run as written.
#[test]
fn commands_of_the_document_find_the_outlier() {
    let document = root().join("docs/fleet.md");
    let text = std::fs::read_to_string(document).unwrap();
    let section = "## Quick start\n";
    let lines = find_blocks(&text, section, "sh").concat();
    let commands = lines.lines().filter(|line| line.starts_with("pinwise "));
    let commands: Vec<&str> = commands.collect();
    assert!(commands.len() >= 5, "the document shows no commands");
    let Some(cluster) = start_eight_machines() else {
        return;
    };
    // A full measurement takes minutes, and means nothing if nodes share CPUs.
    let study = find_blocks(&text, section, "toml").concat();
    let short = "\"--measure\", \"--wiring-only\", \"--budget\", \"200ms\"";
    let study = study.replace("\"--measure\"", short);
    std::fs::write(cluster.path("study.toml"), study).unwrap();
    for line in commands {
        let line = line.split("  #").next().unwrap().trim();
        let words = shell_words::split(line).unwrap();
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let out = cluster.run_for_text(&words);
        if line.contains("submit") {
            cluster.wait_until("the fleet has ended", || {
                cluster.run_slurm("squeue", &["-h"]).trim().is_empty()
            });
        }
        if line.contains("report") {
            let (_, outliers) = out.split_once("Outliers").unwrap_or_default();
            assert!(out.contains("8 of 8 nodes"), "{line}: {out}");
            assert!(outliers.contains("n5 "), "{line}: {out}");
        }
    }
}

/// The examples of `fleet submit --help` that are for Slurm.
#[test]
fn examples_of_the_help_are_submitted() {
    let Some(cluster) = Cluster::start("") else {
        return;
    };
    std::fs::rename(write_quick_study(&cluster, 1), cluster.path("study.toml")).unwrap();
    let help = cluster.run_for_text(&["fleet", "submit", "--help"]);
    let is_example =
        |line: &&str| line.starts_with("pinwise fleet submit") && !line.contains("--launcher");
    let examples: Vec<&str> = help.lines().map(str::trim).filter(is_example).collect();
    assert!(examples.len() >= 3, "{help}");
    for (number, line) in examples.iter().enumerate() {
        let line = line.replace("--nodes 16", "--nodes 4");
        let id = format!("example-{number}");
        let words = shell_words::split(&line).unwrap();
        let mut words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        words.extend(["--id", &id]);
        cluster.run_for_text(&words);
    }
    cluster.wait_until("all have ended", || {
        cluster.run_slurm("squeue", &["-h"]).trim().is_empty()
    });
    let status = cluster.read_status("example-0");
    assert_eq!(status["done"], 4, "{status:#}");
}
