//! The properties of NUMA nodes' memory, as far as the firmware reports them: CPUs may have several
//! kinds of memory (DRAM and HBM), or memory behind a link (CXL).

use super::{CpuSet, Topology};

/// The properties of a NUMA node's memory; `None` if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryAttributes {
    /// Its technology, in hwloc's terms: `DRAM`, `HBM`, `NVM`, `MCDRAM`.
    pub kind: Option<String>,
    /// The CPUs nearest to a node without CPUs.
    pub near: CpuSet,
    /// Bandwidth from the nearest CPUs, MB/s.
    pub bandwidth_mb_per_s: Option<u64>,
    /// Latency from the nearest CPUs, ns.
    pub latency_ns: Option<u64>,
}

/// Nodes with equal memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryTier {
    /// Their numbers.
    pub nodes: CpuSet,
    /// Total memory of the nodes, bytes; `None` if one is unknown.
    pub bytes: Option<u64>,
    /// The properties of the memory, without the nearest CPUs.
    pub attributes: MemoryAttributes,
}

impl Topology {
    /// Nodes with memory grouped by its properties, fastest first; empty if all are alike or
    /// unknown.
    #[must_use]
    pub fn memory_tiers(&self) -> Vec<MemoryTier> {
        let mut tiers: Vec<MemoryTier> = Vec::new();
        for node in self.numa_nodes.iter().filter(|n| n.memory_bytes != Some(0)) {
            let attributes = MemoryAttributes {
                near: CpuSet::new(),
                ..node.attributes.clone()
            };
            match tiers.iter_mut().find(|tier| tier.attributes == attributes) {
                Some(tier) => {
                    tier.nodes.insert(node.node);
                    let both = tier.bytes.zip(node.memory_bytes);
                    tier.bytes = both.and_then(|(a, b)| a.checked_add(b));
                }
                None => tiers.push(MemoryTier {
                    nodes: CpuSet::single(node.node),
                    bytes: node.memory_bytes,
                    attributes,
                }),
            }
        }
        tiers.sort_by_key(|tier| {
            let MemoryAttributes {
                bandwidth_mb_per_s,
                latency_ns,
                ..
            } = tier.attributes;
            let speed = std::cmp::Reverse(bandwidth_mb_per_s);
            (speed, latency_ns.unwrap_or(u64::MAX))
        });
        if tiers.len() < 2 {
            tiers.clear();
        }
        tiers
    }
}

#[cfg(test)]
mod tests;
