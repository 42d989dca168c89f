//! Differences between two machines, or between two states of one machine.

use std::path::Path;

use pinwise_record::{Contradiction, LevelName, TopologyDiff, TopologyRecord, read};
use pinwise_topology::Topology;

use super::fixture::{self, Machine};
use crate::support::{decode_output, pinwise, root};

fn diff_records(a: &TopologyRecord, b: &TopologyRecord) -> TopologyDiff {
    TopologyDiff::compare(["a", "b"], a, b)
}

/// Kind and level of each difference.
fn list_kinds(diff: &TopologyDiff) -> Vec<String> {
    let found = diff.differences.iter();
    found
        .map(|d| match &d.level {
            Some(level) => format!("{} {level}", d.what),
            None => d.what.clone(),
        })
        .collect()
}

fn synthetic(description: &str) -> TopologyRecord {
    let mut topology = Topology::from_synthetic(description).unwrap();
    topology.identity.cpu_model = None;
    TopologyRecord::new(&topology, &[])
}

#[test]
fn a_machine_does_not_differ_from_itself() {
    for Machine { record, .. } in [fixture::desktop(), fixture::drifting(), fixture::large()] {
        let diff = diff_records(&record, &record);
        assert!(diff.same && diff.differences.is_empty() && diff.not_compared.is_empty());
    }
    let diff = diff_records(&synthetic("core:4 pu:2"), &synthetic("core:4 pu:2"));
    assert!(diff.same);
}

/// The desktop after many changes, among them a firmware update.
fn changed_desktop() -> TopologyRecord {
    let mut record = fixture::desktop().record;
    record.machine.microcode = Some("0xa0011de".to_owned());
    record.machine.kernel = Some("6.14.0".to_owned());
    record.numa_nodes[0].memory_bytes = Some(32 << 30);
    for cpu in &mut record.cpus {
        cpu.llc = Some(0);
    }
    record.counts.llcs = 1;
    for cache in &mut record.caches {
        if cache.level == 3 {
            cache.size_bytes = Some(16 << 20);
        }
    }
    record.contradictions.push(Contradiction {
        level: LevelName::Llc,
        claim: "CPUs 0-15 share an L3 cache.".to_owned(),
        measured: "Between CPUs 0-7 and 8-15 a line takes 84 ns.".to_owned(),
        confidence: 0.98,
        advice: String::new(),
    });
    let measured = record.measured.as_mut().unwrap();
    measured.levels[0].groups = vec!["0,2".to_owned(), "1,3".to_owned()];
    measured.levels[1].inside_ns *= 1.4;
    for pause in &mut measured.pause {
        pause.pause_ns.value *= 2.9;
        pause.pause_ns.low = Some(pause.pause_ns.value * 0.99);
        pause.pause_ns.high = Some(pause.pause_ns.value * 1.01);
    }
    for pair in measured
        .pairs
        .iter_mut()
        .filter(|pair| pair.a < 4 && pair.b == pair.a + 1)
    {
        let median = &mut pair.latency_ns[0].median;
        median.value *= 4.0;
        median.low = Some(median.value * 0.98);
        median.high = Some(median.value * 1.02);
    }
    record
}

#[test]
fn the_most_important_differences_come_first() {
    let diff = diff_records(&fixture::desktop().record, &changed_desktop());
    assert!(!diff.same);
    let expected = [
        "contradiction llc",
        "counts llc",
        "units llc",
        "measured_level smt",
        "latency llc",
        "pairs",
        "pause",
        "cache_size l3",
        "memory",
        "microcode",
        "kernel",
    ];
    assert_eq!(list_kinds(&diff), expected);
    let pairs = diff.differences.iter().find(|d| d.what == "pairs").unwrap();
    assert_eq!(pairs.a.as_array().unwrap().len(), 4);
    let latency = |side: &serde_json::Value| side[0]["latency_ns"].as_f64().unwrap();
    let ratio = latency(&pairs.b) / latency(&pairs.a);
    assert!((ratio - 4.0).abs() < 1e-9, "{ratio}");
    let units = diff.differences.iter().find(|d| d.what == "units").unwrap();
    assert_eq!(units.a, serde_json::json!(["0-7", "8-15"]));
    assert_eq!(units.b, serde_json::json!(["0-15"]));
}

#[test]
fn unstable_figures_are_no_difference() {
    let a = fixture::desktop().record;
    let mut b = a.clone();
    let measured = b.measured.as_mut().unwrap();
    for pair in &mut measured.pairs {
        // Latencies may vary by a fifth without a change of the machine.
        let median = &mut pair.latency_ns[0].median;
        median.value *= 1.2;
        median.low = Some(median.value * 0.98);
        median.high = Some(median.value * 1.02);
    }
    for pause in &mut measured.pause {
        pause.pause_ns.value *= 10.0;
        (pause.pause_ns.low, pause.pause_ns.high) = (None, None);
    }
    b.numa_nodes[0].memory_bytes = b.numa_nodes[0].memory_bytes.map(|bytes| bytes + 1_000_000);
    assert_eq!(list_kinds(&diff_records(&a, &b)), Vec::<String>::new());
}

#[test]
fn units_are_compared_among_the_cpus_of_both() {
    let small = synthetic("package:1 l3:1 core:4 pu:1");
    let large = synthetic("package:1 l3:2 core:4 pu:1");
    let expected = [
        "counts cpu",
        "counts core",
        "counts llc",
        "online",
        "allowed",
    ];
    assert_eq!(list_kinds(&diff_records(&small, &large)), expected);
    let numbered = synthetic("package:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)");
    let plain = synthetic("package:2 core:2 pu:2");
    let diff = diff_records(&plain, &numbered);
    assert_eq!(list_kinds(&diff), ["units package", "units core"]);
    assert_eq!(
        diff.differences[0].sentence,
        "Other CPUs share a package: 0-3; 4-7 in A, 0-1,4-5; 2-3,6-7 in B."
    );
}

#[test]
fn unmeasured_machines_are_compared_by_their_report() {
    let measured = fixture::desktop().record;
    let mut plain = measured.clone();
    plain.measured = None;
    let diff = diff_records(&measured, &plain);
    assert!(diff.same);
    assert!(diff.not_compared[0].starts_with("Only A was measured"));
}

/// A folder with files, in which pinwise runs.
struct Folder {
    path: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        Self {
            path: tempfile::tempdir().unwrap(),
        }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path.path().join(name), text).unwrap();
    }

    fn write_record(&self, name: &str, record: &TopologyRecord) {
        self.write(name, &serde_json::to_string(record).unwrap());
    }

    /// Standard output, standard error and exit status.
    fn run(&self, arguments: &[&str]) -> (String, String, i32) {
        let output = pinwise(Path::new("store.db"))
            .args(["topology", "diff"])
            .args(arguments)
            .current_dir(self.path.path())
            .output()
            .unwrap();
        let (out, err) = decode_output(&output);
        (out, err, output.status.code().unwrap())
    }
}

#[test]
fn records_are_compared_on_the_command_line() {
    let folder = Folder::new();
    folder.write_record("before.json", &fixture::desktop().record);
    folder.write_record("after.json", &changed_desktop());
    let (changed, err, status) = folder.run(&["before.json", "after.json"]);
    assert_eq!((err.as_str(), status), ("", 0));
    let (same, _, status) = folder.run(&["after.json", "after.json"]);
    assert_eq!(status, 0);
    for line in changed.lines().chain(same.lines()) {
        assert!(
            line.chars().count() <= 80 && line == line.trim_end(),
            "{line}"
        );
    }
    super::check_text("diff", &format!("{changed}\n---\n{same}"));
    let (out, _, _) = folder.run(&["before.json", "after.json", "--format", "json"]);
    let diff: TopologyDiff = read(&out).unwrap();
    let mut expected = diff_records(&fixture::desktop().record, &changed_desktop());
    expected.between = ["before.json", "after.json"].map(str::to_owned);
    assert_eq!(diff, expected);
}

#[test]
fn captures_folders_and_xml_are_compared_with_each_other() {
    let folder = Folder::new();
    let machine = |name: &str| root().join("tests/data/machines").join(name);
    let path = |name: &str| machine(name).to_str().unwrap().to_owned();
    let (out, err, _) = folder.run(&[&path("2s2c2t.capture"), &path("2s2c2t-nosmt.capture")]);
    assert_eq!(err, "");
    assert!(out.contains("A may use 8 CPUs, B 4."), "{out}");
    let (out, ..) = folder.run(&[
        &path("2s2c2t.capture"),
        &path("2s2c2t.xml"),
        "--format",
        "json",
    ]);
    let diff: serde_json::Value = serde_json::from_str(&out).unwrap();
    let differences = diff["differences"].as_array().unwrap();
    // The file of hwloc lacks the first two, and its memory does not include that of the kernel.
    let known = ["hypervisor", "microcode", "memory"];
    let other = differences
        .iter()
        .find(|d| !known.contains(&d["what"].as_str().unwrap()));
    assert_eq!(other, None);
}
