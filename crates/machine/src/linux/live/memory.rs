//! Moves a target's memory to other NUMA nodes and back.

use std::collections::BTreeMap;

use super::LiveError;
use super::service::Service;
use crate::linux::numa_maps::read_bytes_by_node;
use crate::linux::{LedgerError, UndoOutcome};
use pinwise_topology::CpuSet;

impl Service {
    /// Memory of its processes on each NUMA node, bytes. Pages that two processes share count
    /// twice.
    #[must_use]
    pub fn memory(&self) -> BTreeMap<usize, u64> {
        let mut nodes = BTreeMap::new();
        for process in self.target.processes() {
            for (node, bytes) in read_bytes_by_node(process) {
                *nodes.entry(node).or_default() += bytes;
            }
        }
        nodes
    }

    /// Moves the pages that only its processes use to NUMA nodes. Later pages follow the processes'
    /// own policies.
    ///
    /// # Errors
    /// [`LiveError::Ledger`]; all pages are then where they were.
    pub fn move_memory(&mut self, nodes: &CpuSet) -> Result<(), LiveError> {
        for process in self.target.processes() {
            match self.pins.move_memory(process, nodes) {
                Ok(()) | Err(LedgerError::Gone(_)) => {}
                Err(error) => {
                    self.pins.move_memory_back();
                    return Err(LiveError::Ledger(error));
                }
            }
        }
        Ok(())
    }

    /// Moves pages back; returns the reasons for those that stay.
    pub fn move_memory_back(&mut self) -> Vec<String> {
        let outcomes = self.pins.move_memory_back().into_iter();
        let failed = outcomes.filter_map(|outcome| match outcome {
            UndoOutcome::Failed(reason) => Some(reason),
            _ => None,
        });
        failed.collect()
    }
}
