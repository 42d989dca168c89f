//! Memory of a target, moved to other NUMA nodes and back.

use std::collections::BTreeMap;

use super::LiveError;
use super::service::Service;
use crate::linux::numa_maps::bytes_by_node;
use crate::linux::{LedgerError, UndoOutcome};
use pinwise_topology::CpuSet;

impl Service {
    /// Memory of its processes on each NUMA node, bytes, as the kernel counts it:
    /// pages that two of them share are counted twice.
    #[must_use]
    pub fn memory(&self) -> BTreeMap<usize, u64> {
        let mut nodes = BTreeMap::new();
        for process in self.target.processes() {
            for (node, bytes) in bytes_by_node(process) {
                *nodes.entry(node).or_default() += bytes;
            }
        }
        nodes
    }

    /// Moves the pages that its processes have, and no other uses, to NUMA nodes.
    /// Pages that come later are where the processes' own policies say.
    ///
    /// # Errors
    /// [`LiveError::Ledger`]; then all are where they were.
    pub fn move_memory(&mut self, nodes: &CpuSet) -> Result<(), LiveError> {
        for process in self.target.processes() {
            match self.pins.move_memory(process, nodes) {
                Ok(()) | Err(LedgerError::Gone(_)) => {}
                Err(error) => {
                    self.pins.move_back();
                    return Err(LiveError::Ledger(error));
                }
            }
        }
        Ok(())
    }

    /// Moves pages back; the reasons of those that stay.
    pub fn give_memory_back(&mut self) -> Vec<String> {
        let outcomes = self.pins.move_back().into_iter();
        let failed = outcomes.filter_map(|outcome| match outcome {
            UndoOutcome::Failed(reason) => Some(reason),
            _ => None,
        });
        failed.collect()
    }
}
