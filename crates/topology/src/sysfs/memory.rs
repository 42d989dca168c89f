//! The properties of a node's memory, from the firmware's tables (HMAT).

use super::{CpuSet, NODE_DIR, Reader};
use crate::MemoryAttributes;

/// Access classes of the kernel: from the nearest CPUs, then from the nearest CPUs and devices.
const ACCESS_CLASSES: [&str; 2] = ["access1", "access0"];

impl Reader<'_> {
    /// The properties of this node's memory; `cpus` are its own.
    pub(super) fn read_memory_attributes(
        &mut self,
        node: usize,
        cpus: &CpuSet,
    ) -> MemoryAttributes {
        let folders =
            ACCESS_CLASSES.map(|class| format!("{NODE_DIR}/node{node}/{class}/initiators"));
        let has_files = |folder: &&String| self.capture.children(folder).next().is_some();
        let Some(folder) = folders.iter().find(has_files) else {
            return MemoryAttributes::default();
        };
        let near = match cpus.is_empty() {
            true => {
                let initiators = self.capture.numbered_children(folder, "node").into_iter();
                CpuSet::union_of(initiators.map(|node| self.read_node_cpus(node)))
            }
            false => CpuSet::new(),
        };
        let mut figure = |name: &str| {
            let value = self.read_integer(&format!("{folder}/{name}"))?;
            // 0 means that the tables have no entry.
            u64::try_from(value).ok().filter(|&value| value > 0)
        };
        MemoryAttributes {
            kind: None,
            near,
            bandwidth_mb_per_s: figure("read_bandwidth"),
            latency_ns: figure("read_latency"),
        }
    }

    /// The CPUs of a node.
    pub(super) fn read_node_cpus(&mut self, node: usize) -> CpuSet {
        let dir = format!("{NODE_DIR}/node{node}");
        let mask = self.read_mask(&format!("{dir}/cpumap"));
        let cpus = mask.or_else(|| self.read_list(&format!("{dir}/cpulist")));
        cpus.unwrap_or_default()
    }
}
