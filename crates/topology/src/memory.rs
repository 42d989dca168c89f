//! What the memory of NUMA nodes is like, as far as the firmware says it: memory of
//! several kinds stands beside the same CPUs (DRAM and HBM), or behind a link (CXL).

use super::{CpuSet, Topology};

/// What a NUMA node's memory is like. What nobody says is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryAttributes {
    /// What it is made of, in hwloc's words: `DRAM`, `HBM`, `NVM`, `MCDRAM`.
    pub kind: Option<String>,
    /// The CPUs nearest to a node that has none of its own.
    pub near: CpuSet,
    /// Bandwidth from the nearest CPUs, MB/s.
    pub bandwidth_mb_per_s: Option<u64>,
    /// Latency from there, ns.
    pub latency_ns: Option<u64>,
}

/// Nodes whose memory is alike.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryTier {
    /// Their numbers.
    pub nodes: CpuSet,
    /// Memory of all of them; `None` where one does not say.
    pub bytes: Option<u64>,
    /// What it is like; nobody is nearest to all.
    pub attributes: MemoryAttributes,
}

impl Topology {
    /// Nodes with memory by what it is like, fastest first; none where all are alike or
    /// nothing is known.
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
#[path = "memory_tests.rs"]
mod tests;
