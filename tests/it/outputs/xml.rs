//! hwloc's XML: pinwise reads what it wrote, and hwloc counts the same.

use std::path::{Path, PathBuf};
use std::process::Command;

use pinwise_record::{Measured, MeasuredLevel, TopologyRecord};
use pinwise_topology::{Capture, CpuSet, Topology};
use roxmltree::{Document, ParsingOptions};

use super::fixture;
use crate::support::{decode_output, has_program, report_skip, root, run, run_for_json};

const SYNTHETIC: [&str; 10] = [
    "pu:1",
    "core:2 pu:2",
    "package:2 [numa(memory=64GB)] l3:2(size=32MB) l2:4(size=1MB) l1d:1(size=32KB) core:1 pu:2",
    "package:2 numa:2 core:2 pu:1",
    "numa:2 package:2 core:2 pu:1",
    "package:1 l3:1(size=32MB) [numa(memory=1GB)] l2:3(size=1MB) core:4 pu:1",
    "package:1 core:2 l1d:2(size=32KB) l1i:1(size=16KB) pu:1",
    "l4:2(size=1GB) l3:2 core:2 pu:4",
    "package:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)",
    "package:2 [numa(memory=768GB)] l3:24(size=32MB) core:16 pu:2",
];

fn to_xml(topology: &Topology) -> String {
    pinwise_report::render_topology_xml(topology, &TopologyRecord::new(topology, &[]))
}

/// Removes what hwloc's XML cannot express: restrictions and a quota, names and nodes of devices,
/// and devices with long domains.
fn strip_unwritable(topology: &Topology) -> Topology {
    let mut plain = topology.clone();
    plain.restrictions.clear();
    plain.quota = None;
    plain.devices.update(|devices| {
        devices.retain(|d| d.address.find(':') == Some(4));
        for device in devices {
            device.names.clear();
            device.numa_node = None;
        }
    });
    plain
}

#[track_caller]
fn check_round_trip(topology: &Topology, name: &str) {
    let (read, warnings) = Topology::from_hwloc_xml(&to_xml(topology)).unwrap();
    assert_eq!(warnings, Vec::<String>::new(), "{name}");
    assert_eq!(
        strip_unwritable(&read),
        strip_unwritable(topology),
        "{name}"
    );
}

fn list_machines() -> Vec<(String, Topology)> {
    let folder = root().join("tests/data/machines");
    let mut machines = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let topology = match path.extension().unwrap().to_str().unwrap() {
            "xml" => Topology::from_hwloc_xml(&text).unwrap().0,
            _ => Topology::from_capture(&Capture::from_text(&text).unwrap()).0,
        };
        machines.push((path.display().to_string(), topology));
    }
    assert!(machines.len() >= 10);
    for description in SYNTHETIC {
        let topology = Topology::from_synthetic(description).unwrap();
        machines.push((description.to_owned(), topology));
    }
    machines
}

#[test]
fn written_xml_is_read_again() {
    for (name, topology) in list_machines() {
        check_round_trip(&topology, &name);
    }
    for machine in [fixture::desktop(), fixture::drifting(), fixture::large()] {
        let xml = pinwise_report::render_topology_xml(&machine.topology, &machine.record);
        let (read, _) = Topology::from_hwloc_xml(&xml).unwrap();
        assert_eq!(strip_unwritable(&read), strip_unwritable(&machine.topology));
    }
}

#[test]
fn machines_with_kinds_and_cpus_out_of_reach_are_read_again() {
    let xml = r#"<topology version="2.0"><object type="Machine" cpuset="0x0000000b" complete_cpuset="0x0000001f" allowed_cpuset="0x00000003" allowed_nodeset="0x1">
 <info name="HostName" value="a &amp; &lt;b&gt; &quot;c&quot;&#10;d"/>
 <object type="Package" cpuset="0x0000000b">
  <object type="NUMANode" os_index="0" cpuset="0x0000000b" local_memory="1000"/>
  <object type="NUMANode" os_index="3" cpuset="0x0" local_memory="5"/>
  <object type="Core" cpuset="0x00000003"><object type="PU" os_index="0" cpuset="0x1"/><object type="PU" os_index="1" cpuset="0x2"/></object>
  <object type="Core" cpuset="0x00000008"><object type="PU" os_index="3" cpuset="0x8"/></object>
 </object></object>
 <cpukind cpuset="0x00000008"/><cpukind cpuset="0x00000003"/></topology>"#;
    let (topology, _) = Topology::from_hwloc_xml(xml).unwrap();
    assert_eq!(topology.kinds.len(), 2);
    assert_eq!(topology.cpus.len(), 5);
    assert_eq!(topology.allowed.to_string(), "0-1");
    assert!(!topology.numa_nodes[1].allowed);
    assert!(
        topology
            .identity
            .hostname
            .as_deref()
            .unwrap()
            .contains("\"c\"\nd")
    );
    check_round_trip(&topology, "out of reach");
}

/// DRAM and HBM near the same CPUs, CXL memory near all CPUs, and a node without known CPUs.
const MEMORIES: &str = r#"<topology version="2.0"><object type="Machine" cpuset="0x3">
 <object type="NUMANode" os_index="4" cpuset="0x3" gp_index="9" subtype="CXL" local_memory="8589934592"/>
 <object type="NUMANode" os_index="5" cpuset="0x0" gp_index="10" subtype="a &lt; b" local_memory="1000"/>
 <object type="Core" cpuset="0x1">
  <object type="NUMANode" os_index="0" cpuset="0x1" gp_index="5" subtype="DRAM" local_memory="4294967296"/>
  <object type="NUMANode" os_index="2" cpuset="0x1" gp_index="6" subtype="HBM" local_memory="1073741824"/>
  <object type="PU" os_index="0" cpuset="0x1"/></object>
 <object type="Core" cpuset="0x2">
  <object type="NUMANode" os_index="1" cpuset="0x2" gp_index="7" subtype="DRAM" local_memory="4294967296"/>
  <object type="PU" os_index="1" cpuset="0x2"/></object></object>
 <memattr name="Bandwidth">
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="5" value="22500"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="6" value="90000"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="10" value="7"/>
 </memattr>
 <memattr name="Latency">
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="9" value="250"/>
 </memattr></topology>"#;

#[test]
fn memory_attributes_are_read_again_and_known_to_hwloc() {
    let (topology, _) = Topology::from_hwloc_xml(MEMORIES).unwrap();
    check_round_trip(&topology, "memories");
    if !has_hwloc() {
        return;
    }
    let file = XmlFile::new(&to_xml(&topology));
    let output = Command::new("lstopo-no-graphics")
        .args(["--memattrs", "-i"])
        .arg(&file.path)
        .output()
        .unwrap();
    let (out, err) = decode_output(&output);
    for line in [
        "= 22500 from cpuset 0x00000001",
        "= 90000 from cpuset 0x00000001",
        "= 250 from cpuset 0x00000003",
        "= 7 from cpuset 0x00000003",
    ] {
        assert!(out.contains(line), "{line}: {out}{err}");
    }
}

/// Checks a machine from an unpacked snapshot. `machines.rs` calls this for all of them: unpacking
/// takes far longer.
#[track_caller]
pub(crate) fn check_snapshot(name: &str, folder: &Path) {
    let capture = pinwise_machine::linux::capture_folder(folder).unwrap();
    let (topology, _) = Topology::from_capture(&capture);
    check_round_trip(&topology, name);
    if has_program("hwloc-calc") {
        check_counts(&topology, name);
    }
}

/// An XML file for hwloc's tools.
struct XmlFile {
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl XmlFile {
    fn new(xml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machine.xml");
        std::fs::write(&path, xml).unwrap();
        Self {
            path,
            _folder: folder,
        }
    }

    /// Runs a tool, which must not complain, and returns its output.
    #[track_caller]
    fn run_tool(&self, tool: &str, arguments: &[&str]) -> String {
        let output = Command::new(tool)
            .arg("-i")
            .arg(&self.path)
            .args(arguments)
            .env("HWLOC_XML_VERBOSE", "1")
            .output()
            .unwrap();
        let (out, err) = decode_output(&output);
        assert!(output.status.success(), "{tool} {arguments:?}: {err}");
        assert_eq!(err, "", "{tool} {arguments:?}");
        out
    }

    #[track_caller]
    fn count(&self, kind: &str) -> usize {
        let printed = self.run_tool("hwloc-calc", &["-N", kind, "all"]);
        printed.trim().parse().unwrap()
    }
}

fn has_hwloc() -> bool {
    let has_hwloc = has_program("lstopo-no-graphics") && has_program("hwloc-calc");
    if !has_hwloc {
        report_skip("lstopo-no-graphics (hwloc-nox) is not installed");
    }
    has_hwloc
}

#[track_caller]
fn check_counts(topology: &Topology, name: &str) {
    let file = XmlFile::new(&to_xml(topology));
    let counts = topology.counts();
    assert_eq!(file.count("pu"), counts.cpus, "{name}");
    assert_eq!(file.count("core"), counts.cores, "{name}");
    let l3 = topology.caches.iter().filter(|cache| {
        cache.level == 3
            && cache.kind != pinwise_topology::CacheType::Instruction
            && cache.cpus.intersects(&topology.allowed)
    });
    // hwloc-calc fails for a level that does not exist.
    let l3 = l3.count();
    assert!(l3 == 0 || file.count("l3") == l3, "{name}");
    let nodes = topology.numa_nodes.iter().filter(|node| node.allowed);
    let local = nodes.filter(|node| node.cpus.intersects(&topology.allowed));
    assert!(file.count("numa") >= local.count(), "{name}");
    let packages = topology.packages.iter();
    let usable = packages.filter(|package| package.intersects(&topology.allowed));
    assert_eq!(file.count("package"), usable.count(), "{name}");
    assert!(
        file.run_tool("lstopo-no-graphics", &["--of", "console"])
            .starts_with("Machine")
    );
}

#[test]
fn hwloc_counts_the_same() {
    if !has_hwloc() {
        return;
    }
    for (name, topology) in list_machines() {
        check_counts(&topology, &name);
    }
}

#[test]
fn hwloc_shows_the_latencies() {
    if !has_hwloc() {
        return;
    }
    let machine = fixture::desktop();
    let file = XmlFile::new(&pinwise_report::render_topology_xml(
        &machine.topology,
        &machine.record,
    ));
    let shown = file.run_tool("lstopo-no-graphics", &["--distances"]);
    let (head, matrix) = shown.split_once('\n').unwrap();
    assert!(
        head.contains("PinwiseLatency") && head.contains("between 16 PUs"),
        "{head}"
    );
    let latencies = &machine.record.measured.unwrap().latency_ns;
    for (row, line) in matrix.lines().skip(1).enumerate() {
        let values = line.split_whitespace().skip(1);
        for (column, value) in values.enumerate() {
            let expected = latencies[row][column].map_or(0.0, f64::round);
            assert_eq!(value, format!("{expected:.0}"), "{row},{column}");
        }
    }
    let info = file.run_tool("hwloc-info", &[]);
    assert!(info.contains("16 PU"), "{info}");
}

/// The XML of a machine with these measured groups.
fn xml_with_groups(description: &str, kind: &str, groups: &[&str]) -> String {
    let topology = Topology::from_synthetic(description).unwrap();
    let mut record = TopologyRecord::new(&topology, &[]);
    record.measured = Some(Box::new(Measured {
        levels: vec![MeasuredLevel {
            kind: kind.to_owned().into(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            ..MeasuredLevel::default()
        }],
        ..Measured::default()
    }));
    pinwise_report::render_topology_xml(&topology, &record)
}

fn parse_xml(xml: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(xml, options).unwrap()
}

fn list_groups(xml: &str) -> Vec<String> {
    let document = parse_xml(xml);
    let groups = document
        .descendants()
        .filter(|n| n.attribute("type") == Some("Group"));
    groups
        .map(|group| {
            let cpus = group.attribute("cpuset").unwrap();
            let cpus = CpuSet::parse_mask(&cpus.replace("0x", "")).unwrap();
            format!("{} {cpus}", group.attribute("subtype").unwrap())
        })
        .collect()
}

#[test]
fn measured_groups_are_written_if_none_is_reported() {
    let found = xml_with_groups("package:1 core:8 pu:1", "llc", &["0-3", "4-7"]);
    assert_eq!(list_groups(&found), ["PinwiseLLC 0-3", "PinwiseLLC 4-7"]);
    let known = xml_with_groups("package:1 l3:2 core:4 pu:1", "llc", &["0-3", "4-7"]);
    assert_eq!(list_groups(&known), Vec::<String>::new());
    let siblings = xml_with_groups("core:4 pu:1", "smt", &["0,2", "1,3"]);
    assert_eq!(
        list_groups(&siblings),
        ["PinwiseCore 0,2", "PinwiseCore 1,3"]
    );
    // Groups across reported cores or beyond the machine, and a word: only the fourth fits, with
    // which the last conflicts.
    let wrong = ["1-2", "6-9", "many", "0-3", "2-5"];
    let wrong = xml_with_groups("package:1 core:4 pu:2", "package", &wrong);
    assert_eq!(list_groups(&wrong), ["PinwisePackage 0-3"]);
    if has_hwloc() {
        for (xml, groups) in [(&found, 2), (&known, 0), (&siblings, 2), (&wrong, 1)] {
            let file = XmlFile::new(xml);
            let shown = file.run_tool("lstopo-no-graphics", &["--of", "console"]);
            assert_eq!(shown.matches("Pinwise").count(), groups, "{shown}");
        }
    }
}

#[test]
fn latencies_with_gaps_are_complete_for_measured_cpus() {
    let mut machine = fixture::desktop();
    let measured = machine.record.measured.as_mut().unwrap();
    for cpu in 0..16 {
        measured.latency_ns[5][cpu] = None;
        measured.latency_ns[cpu][5] = None;
    }
    measured.latency_ns[0][1] = Some(0.2);
    measured.latency_ns[2].truncate(1);
    let xml = pinwise_report::render_topology_xml(&machine.topology, &machine.record);
    let document = parse_xml(&xml);
    let element = document
        .descendants()
        .find(|n| n.has_tag_name("distances2"))
        .unwrap();
    assert_eq!(element.attribute("nbobjs"), Some("15"));
    let texts: Vec<&str> = element.children().filter_map(|n| n.text()).collect();
    let rows: Vec<&str> = texts
        .into_iter()
        .filter(|text| !text.trim().is_empty())
        .collect();
    assert_eq!(rows[0], "0 1 2 3 4 6 7 8 9 10 11 12 13 14 15 ");
    assert!(rows[1].starts_with("0 1 22 "), "{}", rows[1]);
    assert!(
        rows[1..]
            .iter()
            .all(|row| row.split_whitespace().count() == 15)
    );
    check_without_figures();
}

fn check_without_figures() {
    let mut machine = fixture::desktop();
    machine.record.measured.as_mut().unwrap().latency_ns.clear();
    let xml = pinwise_report::render_topology_xml(&machine.topology, &machine.record);
    assert!(!xml.contains("distances2 "));
}

#[test]
fn contradictions_are_written_to_the_file() {
    let machine = fixture::drifting();
    let xml = pinwise_report::render_topology_xml(&machine.topology, &machine.record);
    assert!(xml.contains("name=\"PinwiseContradiction\" value=\"CPUs 0-1 share an L3 cache"));
    assert!(xml.contains("name=\"PinwiseLatencyUnit\""));
    if has_hwloc() {
        let shown = XmlFile::new(&xml).run_tool("lstopo-no-graphics", &["-v", "--of", "console"]);
        assert!(shown.contains("PinwiseContradiction"), "{shown}");
    }
}

#[test]
fn the_command_writes_and_reads_the_file() {
    let machine = [
        "--machine",
        "sim:package:2 [numa(memory=1GB)] l3:2 core:2 pu:2",
    ];
    let format = |name| [&machine[..], &["topology", "--format", name]].concat();
    let file = XmlFile::new(&decode_output(&run(&format("xml"))).0);
    let read = run_for_json(&[
        "topology",
        "--from",
        file.path.to_str().unwrap(),
        "--format",
        "json",
    ]);
    let own = run_for_json(&format("json"));
    for key in [
        "counts",
        "shape_hash",
        "cpus",
        "caches",
        "numa_nodes",
        "machine",
    ] {
        assert_eq!(read[key], own[key], "{key}");
    }
}
