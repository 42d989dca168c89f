//! `topology`: machines of many shapes as text, and what placements stand for.

use super::{Ran, Stage, check};
use crate::support::root;

/// One of the captured machines.
fn captured(name: &str) -> String {
    let path = root().join(format!("tests/data/machines/{name}.capture"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn synthetic_machines() {
    let stage = Stage::new();
    for (name, machine) in [
        ("one-cpu", "pu:1"),
        ("smt", "package:1 core:4 pu:2"),
        ("llcs", "package:1 l3:2(size=32MB) core:4 pu:1"),
        (
            "two-packages",
            "package:2 [numa(memory=64GB)] l3:2(size=32MB) l2:4(size=1MB) l1d:1(size=32KB) core:1 pu:2",
        ),
        ("numa-in-package", "package:2 numa:2 core:2 pu:1"),
        (
            "1536-cpus",
            "package:2 [numa(memory=768GB)] l3:24(size=32MB) core:16 pu:2",
        ),
    ] {
        stage.snapshot(
            &format!("topology-{name}"),
            &format!("topology --machine 'sim:{machine}'"),
        );
    }
}

#[test]
fn captured_machines() {
    let stage = Stage::new();
    for name in [
        "2s2c2t",
        "2s2c2t-interleaved",
        "2s2c2t-nosmt",
        "1s2d4c2t",
        "64",
    ] {
        stage.write("machine.capture", &captured(name));
        stage.snapshot(
            &format!("topology-from-{name}"),
            "topology --from machine.capture",
        );
    }
}

const HYBRID: &str = r#"<?xml version="1.0"?>
<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x0000000f">
 <info name="Architecture" value="x86_64"/>
 <object type="Package" os_index="0" cpuset="0x0000000f"><info name="CPUModel" value="Hybrid CPU"/>
  <object type="NUMANode" os_index="0" cpuset="0x0000000f" local_memory="17179869184"/>
  <object type="L3Cache" cpuset="0x0000000f" cache_size="12582912" cache_type="0">
   <object type="Core" cpuset="0x00000003"><object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/></object>
   <object type="Core" cpuset="0x00000004"><object type="PU" os_index="2" cpuset="0x4"/></object>
   <object type="Core" cpuset="0x00000008"><object type="PU" os_index="3" cpuset="0x8"/></object>
  </object></object></object>
 <cpukind cpuset="0x0000000c" forced_efficiency="0"/>
 <cpukind cpuset="0x00000003" forced_efficiency="1"/>
</topology>
"#;

#[test]
fn a_hybrid_machine() {
    let stage = Stage::new();
    stage.write("hybrid.xml", HYBRID);
    stage.snapshot("topology-hybrid", "topology --from hybrid.xml");
    let kinds: String = ["p-cores", "e-cores", "e-cores*1"]
        .iter()
        .map(|name| {
            let ran = stage.succeed(&format!("topology --from hybrid.xml --explain {name}"));
            ran.check_form();
            ran.to_string()
        })
        .collect();
    check("explain-hybrid", &kinds);
}

/// A machine of which the process may use a part only.
const CONFINED: &str = "pinwise-capture 1
pinwise/affinity\t0-3
proc/cpuinfo\tmodel name\\t: Example CPU\\n
proc/mounts\tcgroup2 /sys/fs/cgroup cgroup2 rw 0 0\\n
proc/self/cgroup\t0::/jobs/17\\n
sys/fs/cgroup/jobs/17/cpuset.cpus.effective\t0,2-3\\n
sys/fs/cgroup/jobs/17/cpu.max\tmax 100000\\n
sys/fs/cgroup/jobs/cpu.max\t250000 100000\\n
sys/devices/system/cpu/online\t0-3\\n
sys/devices/system/cpu/cpu0/topology/core_cpus_list\t0-1\\n
sys/devices/system/cpu/cpu1/topology/core_cpus_list\t0-1\\n
sys/devices/system/cpu/cpu2/topology/core_cpus_list\t2-3\\n
sys/devices/system/cpu/cpu3/topology/core_cpus_list\t2-3\\n
sys/devices/system/cpu/cpu4/online\t0\\n
end
";

#[test]
fn a_confined_process_learns_what_confines_it() {
    let stage = Stage::new();
    stage.write("confined.capture", CONFINED);
    stage.snapshot("topology-confined", "topology --from confined.capture");
    stage.snapshot(
        "explain-forbidden",
        "topology --from confined.capture --explain cpu:0-1",
    );
    stage.snapshot(
        "explain-offline",
        "topology --from confined.capture --explain cpu:4",
    );
}

/// Every name, on a machine where each means something else.
const NAMES: [&str; 26] = [
    "os-default",
    "compact",
    "compact*3",
    "one-per-core",
    "one-per-llc",
    "one-per-numa",
    "spread",
    "spread*4",
    "balanced",
    "balanced*3",
    "p-cores",
    "e-cores",
    "one-core",
    "one-core:5",
    "one-llc",
    "one-llc:3",
    "one-numa/mem=bind",
    "one-numa:1/mem=interleave",
    "one-package",
    "one-core/mem=local",
    "spread*4/mem=weighted",
    "one-numa/mem=preferred:1",
    "cpu:0,2-4",
    "cpu:7",
    "mask:0x55",
    "shape:pkg=1,llc=2,core=8,smt=1",
];

#[test]
fn every_placement_is_explained() {
    let stage = Stage::new();
    let all: String = NAMES
        .iter()
        .map(|name| {
            let ran = stage.run(&format!(
                "topology --machine 'sim:package:2 [numa] l3:2 core:4 pu:2' --explain '{name}'"
            ));
            ran.check_form();
            ran.to_string() + "\n"
        })
        .collect();
    check("explain", &all);
}

#[test]
fn a_small_machine_as_json() {
    let stage = Stage::new();
    let line = "topology --machine 'sim:core:2 pu:2'";
    stage.snapshot("topology-json", &format!("{line} --format json"));
    let explained = stage.json(&format!("{line} --explain one-core/mem=bind"));
    assert_eq!(explained["cpus"], "0-1");
    assert_eq!(explained["mask"], "0x3");
    assert_eq!(explained["memory"], "bind");
    assert_eq!(explained["memory_nodes"], serde_json::json!([0]));
    // What is shown is what `apply --as` prints.
    let shown = explained["equivalents"].as_array().unwrap();
    assert_eq!(shown.len(), 5);
    for one in shown {
        let tool = one["tool"].as_str().unwrap();
        let applied = stage.json(&format!(
            "apply --machine 'sim:core:2 pu:2' --as {tool} --place one-core/mem=bind"
        ));
        let pieces = applied["tools"][0]["pieces"].as_array().unwrap();
        let command = pieces.iter().find_map(|piece| piece["command"].as_str());
        let line = one["setting"].as_str().unwrap();
        assert!(line.ends_with(command.unwrap()), "{tool}: {line}");
    }
}

#[test]
fn what_is_saved_is_read_again() {
    let stage = Stage::new();
    let saved = stage.succeed("topology --save own.capture");
    assert!(
        saved.err.ends_with("files saved to own.capture\n"),
        "{saved}"
    );
    let own = stage.json("topology");
    let read = stage.json("topology --from own.capture");
    assert_eq!(own["shape_hash"], read["shape_hash"]);
    assert_eq!(own["counts"], read["counts"]);
}

#[test]
fn truncated_captures_are_refused() {
    let stage = Stage::new();
    let whole = captured("2s2c2t");
    for part in 0..40 {
        let cut = whole.len() * part / 40;
        stage.write("cut.capture", &whole[..cut]);
        let ran = stage.run("topology --from cut.capture");
        ran.check_form();
        check_one_error(&ran);
    }
    // Whole lines, but half of the CPUs are missing: that is reported.
    let lines: Vec<&str> = whole
        .lines()
        .take_while(|line| !line.starts_with("sys/devices/system/cpu/cpu4"))
        .collect();
    stage.write("cut.capture", &(lines.join("\n") + "\nend\n"));
    let ran = stage.snapshot("topology-cut", "topology --from cut.capture");
    assert!(ran.out.contains("incomplete"), "{ran}");
}

#[track_caller]
fn check_one_error(ran: &Ran) {
    assert_eq!(ran.status, 2, "{ran}");
    assert!(ran.err.starts_with("error: "), "{ran}");
    assert_eq!(ran.err.lines().count(), 1, "{ran}");
}

#[test]
fn placements_are_counted_and_named() {
    let stage = Stage::new();
    stage.write("hybrid.xml", HYBRID);
    stage.write("confined.capture", CONFINED);
    for (name, line) in [
        (
            "16",
            "--machine 'sim:package:2 l3:2 core:4 pu:2' topology --placements 16",
        ),
        (
            "table",
            "--machine 'sim:package:2 l3:8 core:8 pu:2' topology --placements",
        ),
        ("one", "--machine sim:pu:1 topology --placements 1"),
        ("hybrid", "topology --from hybrid.xml --placements 2"),
        (
            "confined",
            "topology --from confined.capture --placements 3",
        ),
        (
            "json",
            "--machine 'sim:package:2 core:2 pu:2' --format json topology --placements 3",
        ),
    ] {
        let ran = stage.run(line);
        if name != "json" {
            ran.check_form();
        }
        check(&format!("placements-{name}"), &ran.to_string());
    }
}

/// Every name that is listed stands for the CPUs that stand beside it.
#[test]
fn listed_placements_can_be_asked_for() {
    let stage = Stage::new();
    stage.write("hybrid.xml", HYBRID);
    for machine in [
        "--machine 'sim:package:2 l3:2 core:2 pu:2' topology",
        "topology --from hybrid.xml",
    ] {
        let found = stage.json(&format!("{machine} --placements 3"));
        let shapes = found["threads"][0]["shapes"].as_array().unwrap();
        assert!(shapes.len() > 1, "{found}");
        for shape in shapes {
            let name = shape["name"].as_str().unwrap();
            let explained = stage.json(&format!("{machine} --explain {name}"));
            for (key, same) in [
                ("cpus", "cpus"),
                ("packages", "packages"),
                ("cores", "cores"),
            ] {
                assert_eq!(explained[key], shape[same], "{name}");
            }
        }
    }
}
