//! Fleets on a Slurm of four nodes that runs on this host
//! (`tests/env/slurm/README.md`): what befalls nodes and jobs there.
//!
//! `PINWISE_TEST_SEED` chooses the moments at which nodes are killed; a failing test prints the
//! seed.

mod cluster;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use self::cluster::{Cluster, Kill};
use crate::support::{root, split_words};

/// A cluster that misses a lost node after 10 s instead of 27.
const QUICK: &str = "SlurmdTimeout=2\nMessageTimeout=4";
/// Nodes of the cluster.
const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

/// Steps that take a moment each.
fn quick_study(cluster: &Cluster, repeat: usize) -> String {
    let machine = root().join("tests/data/sim/container-14-of-32.toml");
    let machine = machine.display();
    let text = format!(
        r#"[[step]]
name = "quick"
run = ["compare", "--machine", "sim:{machine}", "--seed", "1", "--place",
  "os-default", "--place", "spread*4", "--max-runs", "4", "--", "sim-workload"]
repeat = {repeat}
"#
    );
    write_text(&cluster.path("quick.toml"), &text)
}

/// One quick step, and one that never ends.
fn slow_study(cluster: &Cluster) -> String {
    let machine = root().join("tests/data/sim/container-14-of-32.toml");
    let machine = machine.display();
    let text = format!(
        r#"[[step]]
name = "quick"
run = ["compare", "--machine", "sim:{machine}", "--seed", "1", "--place",
  "os-default", "--place", "spread*4", "--max-runs", "4", "--", "sim-workload"]

[[step]]
name = "slow"
run = ["compare", "--command", "sleep 1000", "--command", "sleep 2000"]
"#
    );
    write_text(&cluster.path("slow.toml"), &text)
}

fn write_text(path: &Path, text: &str) -> String {
    std::fs::write(path, text).unwrap();
    path.display().to_string()
}

/// Names of files of a node's folder.
fn files(fleet: &Path, node: &str) -> Vec<String> {
    let Ok(found) = std::fs::read_dir(fleet.join("nodes").join(node)) else {
        return Vec::new();
    };
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    found.flatten().map(name).collect()
}

/// Records of steps in a node's folder. What is printed beside a record, a node
/// that was killed may not have written.
fn records(fleet: &Path, node: &str) -> usize {
    let is_record = |name: &&String| {
        let number = name
            .strip_prefix("quick-")
            .and_then(|name| name.strip_suffix(".json"));
        number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
    };
    files(fleet, node).iter().filter(is_record).count()
}

/// Attempts that a node has begun.
fn attempts(fleet: &Path, node: &str) -> usize {
    files(fleet, node)
        .iter()
        .filter(|name| name.starts_with("begun-"))
        .count()
}

fn has(fleet: &Path, node: &str, file: &str) -> bool {
    files(fleet, node).iter().any(|name| name == file)
}

/// A small generator (Marsaglia, Xorshift RNGs, 2003): what it chooses need
/// only be the same for the same seed.
struct Random(u64);

impl Random {
    /// Seeds that are near each other begin alike without the first steps.
    fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..16 {
            random.below(1);
        }
        random
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

fn seed() -> u64 {
    match std::env::var("PINWISE_TEST_SEED") {
        Ok(text) => text.parse().expect("PINWISE_TEST_SEED is a number"),
        Err(_) => {
            let now = std::time::SystemTime::now();
            let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
            u64::from(since.subsec_nanos()) + (u64::from(std::process::id()) << 32) + 1
        }
    }
}

/// What can happen to a node; `None`: its job is requeued. If only the task is killed, the job ends
/// and has to be resumed.
const BEFALLS: [Option<Kill>; 6] = [
    Some(Kill::Node),
    Some(Kill::Daemons),
    None,
    Some(Kill::Node),
    Some(Kill::Daemons),
    Some(Kill::Task),
];

/// 1,000 records on four nodes, which are killed, half killed, requeued and
/// left by their tasks at random moments.
#[test]
fn no_record_is_lost_or_doubled_whatever_befalls_nodes() {
    const STEPS: usize = 250;
    let Some(cluster) = Cluster::start("") else {
        return;
    };
    let seed = seed();
    eprintln!("PINWISE_TEST_SEED={seed}");
    let mut random = Random::new(seed);
    let study = quick_study(&cluster, STEPS);
    let fleet = cluster.path("fleet");
    let folder = fleet.display().to_string();
    let id = "kills";
    cluster.pinwise(&[
        "fleet",
        "submit",
        "--partition",
        "all",
        "--id",
        id,
        "--dir",
        &folder,
        &study,
    ]);
    for what in BEFALLS {
        let open = NODES.iter().filter(|node| records(&fleet, node) < STEPS);
        let open: Vec<&str> = open.copied().collect();
        if open.is_empty() {
            break;
        }
        let node = open[random.below(open.len())];
        let start = records(&fleet, node);
        let moment = start + random.below(40);
        let ended = || cluster.queue(id).is_empty();
        cluster.wait_until("a node gets on", || {
            records(&fleet, node) >= moment.min(STEPS) || ended()
        });
        eprintln!(
            "{node}, {} of {STEPS} done: {what:?}",
            records(&fleet, node)
        );
        inflict(&cluster, node, what);
    }
    finish(&cluster, id, &folder);
    let attempts: usize = NODES.iter().map(|node| attempts(&fleet, node)).sum();
    assert!(attempts > 4, "nothing befell any node");
    let reported = cluster.pinwise(&["fleet", "collect", &folder]);
    assert_whole(&cluster, id, STEPS, &reported);
    cluster.pinwise(&["fleet", "collect", &folder]);
    assert_whole(&cluster, id, STEPS, "collected twice");
}

/// Lets it happen.
fn inflict(cluster: &Cluster, node: &str, what: Option<Kill>) {
    match what {
        Some(what) => {
            cluster.kill(node, what);
            if what != Kill::Task {
                cluster.start_node(node);
            }
        }
        None => {
            let out = cluster.slurm("squeue", &["-h", "-t", "running", "-w", node, "-o", "%i"]);
            for job in out.split_whitespace() {
                // It may have ended by now.
                cluster.try_slurm("scontrol", &["requeue", job]);
            }
        }
    }
}

/// Resumes until nothing is missing.
fn finish(cluster: &Cluster, id: &str, folder: &str) {
    for _ in 0..8 {
        cluster.wait_until("all jobs have ended", || cluster.queue(id).is_empty());
        if cluster.status(folder)["done"] == 4 {
            return;
        }
        cluster.pinwise(&["fleet", "resume", folder]);
    }
    panic!("still not done: {:#}", cluster.status(folder));
}

/// Every step of every node is in the store, once.
fn assert_whole(cluster: &Cluster, id: &str, steps: usize, reported: &str) {
    let tag = format!("fleet:{id}");
    let out = cluster.pinwise(&[
        "record", "history", "--tag", &tag, "--limit", "10000", "--format", "json",
    ]);
    let listed: Value = serde_json::from_str(&out).unwrap();
    let ids: Vec<String> = ids_in(&listed);
    let mut once = BTreeSet::new();
    for id in &ids {
        assert!(once.insert(id.clone()), "{id} is there twice");
    }
    for node in NODES {
        for step in 1..=steps {
            let wanted = format!("{id}.{node}~quick-{step}");
            assert!(once.contains(&wanted), "{wanted} is lost: {reported}");
        }
    }
    let of_steps = ids.iter().filter(|id| id.contains('~')).count();
    assert_eq!(of_steps, NODES.len() * steps, "{reported}");
}

fn ids_in(listed: &Value) -> Vec<String> {
    let entries = listed.as_array().or_else(|| listed["records"].as_array());
    let entries = entries.unwrap_or_else(|| panic!("no list: {listed}"));
    entries
        .iter()
        .map(|entry| entry["id"].as_str().unwrap().to_owned())
        .collect()
}

/// The node of a status.
#[track_caller]
fn node(status: &Value, name: &str) -> Value {
    let nodes = status["nodes"].as_array().unwrap();
    let found = nodes.iter().find(|node| node["node"] == name);
    found
        .unwrap_or_else(|| panic!("no {name}: {status:#}"))
        .clone()
}

/// A node that is lost, a requeue half-way, a drained node, a cancelled job:
/// each is reported, and what was done before counts.
#[test]
fn failures_of_jobs_are_reported() {
    let Some(cluster) = Cluster::start(QUICK) else {
        return;
    };
    let study = slow_study(&cluster);
    cluster.set_node("n4", "DRAIN", "bad DIMM \u{1b}[31m");
    let fleet = cluster.path("fleet");
    let folder = fleet.display().to_string();
    let words = ["fleet", "submit", "--nodelist", "n[2-4]", "--id", "asked"];
    let output = cluster.run(&[&words[..], &["--dir", &folder, &study]].concat());
    let (out, err) = crate::support::decode_output(&output);
    assert!(output.status.success(), "{out}{err}");
    assert!(err.contains("n4: drained: bad DIMM"), "{err}");
    assert!(!err.contains('\u{1b}'), "{err:?}");
    cluster.wait_until("the slow step runs on two nodes", || {
        ["n2", "n3"]
            .iter()
            .all(|node| has(&fleet, node, "quick.json"))
    });
    let status = cluster.status(&folder);
    assert_eq!(
        (&status["asked"], &status["running"]),
        (&2.into(), &2.into()),
        "{status:#}"
    );
    let done = std::fs::read(fleet.join("nodes/n3/quick.json")).unwrap();
    lose_a_node(&cluster, &fleet);
    requeue_half_way(&cluster, &fleet);
    let now = std::fs::read(fleet.join("nodes/n3/quick.json")).unwrap();
    assert_eq!(done, now, "a step that was done is done again");
    cluster.pinwise(&["fleet", "cancel", &folder]);
    cluster.wait_until("the jobs are cancelled", || {
        cluster.queue("asked").is_empty()
    });
    let status = cluster.status(&folder);
    for name in ["n2", "n3"] {
        let node = node(&status, name);
        assert_eq!(
            (&node["state"], &node["done"]),
            (&"failed".into(), &1.into()),
            "{status:#}"
        );
    }
    let why = node(&status, "n3")["why"].as_str().unwrap().to_owned();
    assert!(why.contains("CANCELLED"), "{why}");
}

/// n2 is lost, which Slurm notices by itself, and comes back.
fn lose_a_node(cluster: &Cluster, fleet: &Path) {
    cluster.kill("n2", Kill::Node);
    cluster.wait_until("Slurm misses n2", || {
        cluster.node_state("n2").starts_with("down")
    });
    let folder = fleet.display().to_string();
    cluster.wait_until("its job waits", || {
        node(&cluster.status(&folder), "n2")["state"] == "queued"
    });
    let resumed = cluster.pinwise(&["fleet", "resume", &folder]);
    assert_eq!(
        cluster.queue("asked").len(),
        2,
        "a job that waits is not submitted again: {resumed}"
    );
    cluster.start_node("n2");
    cluster.wait_until("n2 begins anew", || attempts(fleet, "n2") == 2);
    cluster.wait_until("n2 runs", || {
        node(&cluster.status(&folder), "n2")["state"] == "running"
    });
}

/// The job of n3 is requeued while its second step runs.
fn requeue_half_way(cluster: &Cluster, fleet: &Path) {
    let out = cluster.slurm("squeue", &["-h", "-w", "n3", "-o", "%i"]);
    cluster.slurm("scontrol", &["requeue", out.trim()]);
    cluster.wait_until("n3 begins anew", || attempts(fleet, "n3") == 2);
    assert!(
        has(fleet, "n3", "ended-1.json"),
        "the first attempt was asked to end"
    );
}

/// The time limit, of which Slurm counts whole minutes, ends a node's task in
/// order.
#[test]
fn a_time_limit_is_reported_and_finished_steps_count() {
    let Some(cluster) = Cluster::start("") else {
        return;
    };
    let study = slow_study(&cluster);
    let fleet = cluster.path("timed");
    let folder = fleet.display().to_string();
    let words = split_words("fleet submit --nodelist n1 --time 1m --id timed --dir");
    cluster.pinwise(&[&words[..], &[&folder, &study]].concat());
    cluster.wait_until("the time limit is reached", || {
        cluster.queue("timed").is_empty()
    });
    let status = cluster.status(&folder);
    let node = node(&status, "n1");
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
    assert!(has(&fleet, "n1", "ended-1.json"), "it was asked to end");
}

/// One job over four nodes, one of which is lost; an array, and an array of
/// which a node takes several tasks.
#[test]
fn one_job_over_several_nodes_and_arrays_measure_each_node_once() {
    let Some(cluster) = Cluster::start(QUICK) else {
        return;
    };
    let study = quick_study(&cluster, 20);
    let fleet = cluster.path("one");
    let folder = fleet.display().to_string();
    cluster.pinwise(&[
        "fleet", "submit", "--nodes", "4", "--id", "one", "--dir", &folder, &study,
    ]);
    cluster.wait_until("n3 gets on", || records(&fleet, "n3") >= 3);
    cluster.kill("n3", Kill::Node);
    cluster.wait_until("Slurm misses n3", || {
        cluster.node_state("n3").starts_with("down")
    });
    cluster.start_node("n3");
    finish(&cluster, "one", &folder);
    for node in NODES {
        assert_eq!(records(&fleet, node), 20, "{node}");
    }
    let folder = cluster.path("array").display().to_string();
    let words = [
        "fleet", "submit", "--nodes", "4", "--array", "--id", "array", "--dir",
    ];
    cluster.pinwise(&[&words[..], &[&folder, &study]].concat());
    cluster.wait_until("the array has ended", || cluster.queue("array").is_empty());
    let status = cluster.status(&folder);
    // A node that is quick may take two of its tasks.
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
    cluster.pinwise(&[&words[..], &[&folder, &study]].concat());
    cluster.wait_until("n1 has run all tasks", || cluster.queue("again").is_empty());
    let status = cluster.status(&folder);
    let counts = (&status["done"], &status["missing"]);
    assert_eq!(counts, (&1.into(), &2.into()), "{status:#}");
    assert_eq!((attempts(&fleet, "n1"), records(&fleet, "n1")), (3, 20));
}

/// What cannot be is refused in one line, in Slurm's own words.
#[test]
fn what_slurm_refuses_is_reported_in_its_words() {
    let Some(cluster) = Cluster::start("") else {
        return;
    };
    let study = quick_study(&cluster, 1);
    let check = |arguments: &[&str], words: &str| {
        let err = cluster.refusal(&[&["fleet", "submit"], arguments, &[&study]].concat());
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
    let plan = cluster.pinwise(&["fleet", "submit", "--nodelist", "n2", "--dry-run", &study]);
    assert!(
        plan.contains("--cpu-bind=none") && plan.contains("--nodelist=n2"),
        "{plan}"
    );
    assert!(cluster.has_no_job());
    let folder = cluster.path("f").display().to_string();
    cluster.pinwise(&[
        "fleet",
        "submit",
        "--nodelist",
        "n2",
        "--id",
        "f",
        "--dir",
        &folder,
        &study,
    ]);
    cluster.wait_until("it has ended", || cluster.queue("f").is_empty());
    cluster.stop_controller();
    let status = cluster.status(&folder);
    assert_eq!(status["done"], 1, "{status:#}");
    let err = cluster.refusal(&["fleet", "cancel", &folder]);
    assert!(
        err.contains("squeue: slurm_load_jobs error: Unable to contact"),
        "{err}"
    );
    let study = quick_study(&cluster, 1);
    let mut command = cluster.command(&["fleet", "submit", "--partition", "all", &study]);
    let output = command.env("PATH", "/nowhere").output().unwrap();
    let (_, err) = crate::support::decode_output(&output);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("sinfo is not on the path"), "{err}");
}

/// Blocks of a section of a document: of these languages.
fn blocks(text: &str, section: &str, language: &str) -> Vec<String> {
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

/// Nodes that show eight machines alike, but that the cores of n5 have no second
/// CPUs.
fn eight_machines() -> Option<Cluster> {
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

/// What the document shows, from a study file to the nodes that differ from
/// their peers, run as written, on nodes that are different machines.
#[test]
fn commands_of_the_document_go_from_nothing_to_outliers() {
    let document = root().join("docs/fleet.md");
    let text = std::fs::read_to_string(document).unwrap();
    let section = "## Quick start\n";
    let lines = blocks(&text, section, "sh").concat();
    let commands = lines.lines().filter(|line| line.starts_with("pinwise "));
    let commands: Vec<&str> = commands.collect();
    assert!(commands.len() >= 5, "the document shows no commands");
    let Some(cluster) = eight_machines() else {
        return;
    };
    // The whole takes minutes, and measures nothing if nodes share CPUs.
    let study = blocks(&text, section, "toml").concat();
    let short = "\"--measure\", \"--wiring-only\", \"--budget\", \"200ms\"";
    let study = study.replace("\"--measure\"", short);
    std::fs::write(cluster.path("study.toml"), study).unwrap();
    for line in commands {
        let line = line.split("  #").next().unwrap().trim();
        let words = shell_words::split(line).unwrap();
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let out = cluster.pinwise(&words);
        if line.contains("submit") {
            cluster.wait_until("the fleet has ended", || {
                cluster.slurm("squeue", &["-h"]).trim().is_empty()
            });
        }
        if line.contains("report") {
            let (_, departing) = out.split_once("Outliers").unwrap_or_default();
            assert!(out.contains("8 of 8 nodes"), "{line}: {out}");
            assert!(departing.contains("n5 "), "{line}: {out}");
        }
    }
}

/// The examples of `fleet submit --help` that are for Slurm.
#[test]
fn examples_of_the_help_are_submitted() {
    let Some(cluster) = Cluster::start("") else {
        return;
    };
    std::fs::rename(quick_study(&cluster, 1), cluster.path("study.toml")).unwrap();
    let help = cluster.pinwise(&["fleet", "submit", "--help"]);
    let is_one =
        |line: &&str| line.starts_with("pinwise fleet submit") && !line.contains("--launcher");
    let examples: Vec<&str> = help.lines().map(str::trim).filter(is_one).collect();
    assert!(examples.len() >= 3, "{help}");
    for (number, line) in examples.iter().enumerate() {
        let line = line.replace("--nodes 16", "--nodes 4");
        let id = format!("example-{number}");
        let words = shell_words::split(&line).unwrap();
        let mut words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        words.extend(["--id", &id]);
        cluster.pinwise(&words);
    }
    cluster.wait_until("all have ended", || {
        cluster.slurm("squeue", &["-h"]).trim().is_empty()
    });
    let status = cluster.status("example-0");
    assert_eq!(status["done"], 4, "{status:#}");
}
