//! Memory of several kinds, from hwloc's XML and from the kernel's files.

use super::*;
use crate::Capture;

/// Two CPUs with DRAM and HBM (hwloc gives both the CPUs near them), and CXL memory near both.
const XML: &str = r#"<topology version="2.0"><object type="Machine" cpuset="0x3">
 <object type="NUMANode" os_index="4" cpuset="0x3" gp_index="9" subtype="CXL" local_memory="8589934592"/>
 <object type="Core" cpuset="0x1">
  <object type="NUMANode" os_index="0" cpuset="0x1" gp_index="5" subtype="DRAM" local_memory="4294967296"/>
  <object type="NUMANode" os_index="2" cpuset="0x1" gp_index="6" subtype="HBM" local_memory="1073741824"/>
  <object type="PU" os_index="0" cpuset="0x1"/></object>
 <object type="Core" cpuset="0x2">
  <object type="NUMANode" os_index="1" cpuset="0x2" gp_index="7" subtype="DRAM" local_memory="4294967296"/>
  <object type="NUMANode" os_index="3" cpuset="0x2" gp_index="8" subtype="HBM" local_memory="1073741824"/>
  <object type="PU" os_index="1" cpuset="0x2"/></object></object>
 <memattr name="Bandwidth">
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="5" value="22500"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="7" value="22500"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="7" value="9000" initiator_cpuset="0x1"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="6" value="90000"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="8" value="90000"/>
  <memattr_value target_obj_type="PU" target_obj_gp_index="8" value="99999999"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="77" value="1"/>
 </memattr>
 <memattr name="Latency">
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="9" value="400"/>
  <memattr_value target_obj_type="NUMANode" target_obj_gp_index="9" value="250" initiator_cpuset="0x1"/>
 </memattr>
 <memattr name="Capacity"/></topology>"#;

#[test]
fn tiers_of_memory_come_fastest_first() {
    let (topology, warnings) = Topology::from_hwloc_xml(XML).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    let tiers = topology.memory_tiers().into_iter().map(|tier| {
        let MemoryAttributes {
            kind,
            bandwidth_mb_per_s,
            latency_ns,
            ..
        } = tier.attributes;
        let gib = tier.bytes.map(|bytes| bytes >> 30);
        (
            kind.unwrap(),
            tier.nodes.to_string(),
            gib,
            bandwidth_mb_per_s,
            latency_ns,
        )
    });
    let tiers: Vec<_> = tiers.collect();
    assert_eq!(
        tiers,
        [
            (
                "HBM".to_owned(),
                "2-3".to_owned(),
                Some(2),
                Some(90_000),
                None
            ),
            (
                "DRAM".to_owned(),
                "0-1".to_owned(),
                Some(8),
                Some(22_500),
                None
            ),
            ("CXL".to_owned(), "4".to_owned(), Some(8), None, Some(250)),
        ]
    );
    let near: Vec<String> = topology
        .numa_nodes
        .iter()
        .map(|node| format!("{}|{}", node.cpus, node.attributes.near))
        .collect();
    assert_eq!(near, ["0|", "1|", "|0", "|1", "|0-1"]);
}

#[test]
fn memory_attributes_are_read_from_the_kernel() {
    let mut capture = Capture::new();
    for cpu in 0..2 {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list");
        capture.insert(file, format!("{cpu}"));
    }
    let nodes = "sys/devices/system/node";
    for (node, cpus, access, bandwidth) in [(0, "0-1", "0", "22500"), (1, "", "1", "90000")] {
        let dir = format!("{nodes}/node{node}");
        capture.insert(format!("{dir}/cpulist"), cpus);
        capture.insert(
            format!("{dir}/meminfo"),
            format!("Node {node} MemTotal: 1024 kB"),
        );
        let initiators = format!("{dir}/access{access}/initiators");
        capture.insert(format!("{initiators}/read_bandwidth"), bandwidth);
        capture.insert(format!("{initiators}/read_latency"), "0");
        capture.insert(format!("{initiators}/node0"), "../../../node0");
    }
    // Class 0 includes nearby devices.
    capture.insert(
        format!("{nodes}/node1/access0/initiators/read_bandwidth"),
        "7",
    );
    let (topology, warnings) = Topology::from_capture(&capture);
    assert_eq!(warnings, Vec::<String>::new());
    let tiers = topology.memory_tiers();
    let bandwidths = tiers.iter().map(|tier| tier.attributes.bandwidth_mb_per_s);
    assert_eq!(bandwidths.collect::<Vec<_>>(), [Some(90_000), Some(22_500)]);
    assert_eq!(topology.numa_nodes[1].attributes.near.to_string(), "0-1");
    assert_eq!(topology.numa_nodes[1].attributes.latency_ns, None);
    assert!(
        Topology::from_synthetic("numa:2 pu:2")
            .unwrap()
            .memory_tiers()
            .is_empty()
    );
}
