//! Formats memory for hwloc: each NUMA node with its near CPUs, the technology of its memory, and
//! its speed if the firmware reports it.

use pinwise_topology::{CpuSet, MemoryAttributes, NumaNode, Topology};

use crate::markup::escape;

/// hwloc's `HWLOC_MEMATTR_FLAG_HIGHER_FIRST`, `…_LOWER_FIRST` and `…_NEED_INITIATOR`.
const HIGHER_IS_BETTER: u32 = 1;
const LOWER_IS_BETTER: u32 = 2;
const HAS_INITIATORS: u32 = 4;

/// Formats the object of a node; `index` is its `gp_index`.
pub(super) fn format_node(node: &NumaNode, indent: &str, index: usize) -> String {
    let size = node
        .memory_bytes
        .map_or_else(String::new, |bytes| format!(" local_memory=\"{bytes}\""));
    let kind = node.attributes.kind.as_ref();
    let kind = kind.map_or_else(String::new, |kind| format!(" subtype=\"{}\"", escape(kind)));
    let cpus = format_bitmap(locality(node));
    let nodes = format_bitmap(&CpuSet::single(node.node));
    format!(
        "{indent}<object type=\"NUMANode\"{kind} os_index=\"{}\" cpuset=\"{cpus}\" complete_cpuset=\"{cpus}\" nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\" gp_index=\"{index}\"{size}/>\n",
        node.node,
    )
}

/// Formats bandwidth and latency of the nodes; `indexes` are their `gp_index`.
pub(super) fn format_attributes(topology: &Topology, indexes: &[Option<usize>]) -> String {
    type Figure = fn(&MemoryAttributes) -> Option<u64>;
    let figures: [(&str, u32, Figure); 2] = [
        ("Bandwidth", HIGHER_IS_BETTER, |of| of.bandwidth_mb_per_s),
        ("Latency", LOWER_IS_BETTER, |of| of.latency_ns),
    ];
    let mut text = String::new();
    for (name, order, figure) in figures {
        let nodes = topology.numa_nodes.iter().zip(indexes);
        let values = nodes.filter_map(|(node, index)| {
            let (index, value) = ((*index)?, figure(&node.attributes)?);
            // hwloc rejects the file if no CPU is an initiator of the memory.
            let near = match locality(node) {
                near if near.is_empty() => &topology.online,
                near => near,
            };
            Some(format!(
                "    <memattr_value target_obj_type=\"NUMANode\" target_obj_gp_index=\"{index}\" value=\"{value}\" initiator_cpuset=\"{}\"/>\n",
                format_bitmap(near)
            ))
        });
        let values: String = values.collect();
        if !values.is_empty() {
            let flags = order | HAS_INITIATORS;
            text.push_str(&format!(
                "  <memattr name=\"{name}\" flags=\"{flags}\">\n{values}  </memattr>\n"
            ));
        }
    }
    text
}

/// The CPUs of a node, or without CPUs those that are near it, as in hwloc.
pub(super) fn locality(node: &NumaNode) -> &CpuSet {
    match node.cpus.is_empty() {
        true => &node.attributes.near,
        false => &node.cpus,
    }
}

/// Formats a set as hwloc does: words of 32 bits, the most significant first.
pub(super) fn format_bitmap(cpus: &CpuSet) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in cpus.words() {
        words.push(format!("0x{:08x}", word & 0xffff_ffff));
        words.push(format!("0x{:08x}", word >> 32));
    }
    while words.len() > 1 && words.last().is_some_and(|word| word == "0x00000000") {
        words.pop();
    }
    if words.is_empty() {
        return "0x0".to_owned();
    }
    words.reverse();
    words.join(",")
}
