//! A service that was already running when it was placed or measured.

use serde::{Deserialize, Serialize};

/// A running program that was placed or measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ServiceRecord {
    /// Its process id, that of the first process for a cgroup; `null` if it had ended.
    pub pid: Option<i32>,
    /// The name of that process.
    pub name: String,
    /// Its command line.
    pub command: Vec<String>,
    /// The systemd unit, if the user named one.
    pub unit: Option<String>,
    /// The cgroup, if the user named one or a unit.
    pub cgroup: Option<String>,
    /// The source of its figure, a command or an address; `null` if it was not measured.
    pub metric_source: Option<String>,
    /// How long each placement was measured at a time, seconds.
    pub sample_s: Option<f64>,
    /// Time discarded after each change of placement, seconds.
    pub settle_s: Option<f64>,
}

impl ServiceRecord {
    /// Its name for display: its unit, its cgroup, or its name and process.
    #[must_use]
    pub fn label(&self) -> String {
        match (&self.unit, &self.cgroup, self.pid) {
            (Some(unit), _, _) => unit.clone(),
            (None, Some(cgroup), _) => cgroup.clone(),
            (None, None, Some(pid)) => format!("{} ({pid})", self.name),
            (None, None, None) => self.name.clone(),
        }
    }
}

/// A placement that was applied to a running program and later undone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.applied/1")]
pub struct Applied {
    /// The program.
    pub service: ServiceRecord,
    /// The placement, as on the command line.
    pub placement: String,
    /// CPUs of the placement, as a list.
    pub asked_cpus: String,
    /// CPUs that the kernel granted to all threads together, as a list.
    pub granted_cpus: String,
    /// CPUs that threads were seen on, as a list.
    pub observed_cpus: String,
    /// Number of times that a thread was seen after it had run.
    pub observations: u64,
    /// Share of those observations on CPUs of the placement, 0 to 1; `null` if nothing ran.
    pub observed_share: Option<f64>,
    /// Threads that were placed, in total.
    pub threads: usize,
    /// Threads that were not placed, each with the reason.
    pub left_alone: Vec<String>,
    /// Threads whose own mask was restored.
    pub returned: usize,
    /// Threads that ended before their mask could be restored.
    pub ended: usize,
    /// Time from the first change to the last, seconds.
    pub elapsed_s: f64,
    /// Memory that was moved; `null` if none was requested.
    pub memory: Option<AppliedMemory>,
    /// Interrupts that were moved, and queues of network cards.
    pub interrupts: Vec<AppliedInterrupt>,
}

/// An interrupt, or a queue of a network card, that was moved to other CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AppliedInterrupt {
    /// The interrupt's number; `null` for a queue.
    pub irq: Option<u32>,
    /// The interface and its queue, `eth0 rx-0` (RPS) or `eth0 tx-0` (XPS); `null` for an
    /// interrupt.
    pub queue: Option<String>,
    /// Its CPUs before, as a list; empty if a queue had none.
    pub before_cpus: String,
    /// The CPUs it was moved to, as a list.
    pub asked_cpus: String,
    /// Were its CPUs restored? `null` while they are not.
    pub returned: Option<bool>,
}

/// Memory of a running program that was moved to other NUMA nodes, and back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AppliedMemory {
    /// The nodes that it was moved to.
    pub asked_nodes: Vec<usize>,
    /// Nodes that had some of it before or after.
    pub nodes: Vec<AppliedNode>,
}

/// Memory on a NUMA node, by the kernel's `numa_maps` of all processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AppliedNode {
    /// The operating system's number of the node.
    pub node: usize,
    /// Memory before anything was moved, bytes.
    pub before_bytes: u64,
    /// Memory after the move, bytes.
    pub placed_bytes: u64,
    /// Memory after it was moved back, bytes; `null` before that, and if the processes had ended.
    pub returned_bytes: Option<u64>,
}

impl AppliedMemory {
    /// Bytes that left other nodes than the requested ones, and bytes that stayed there.
    #[must_use]
    pub fn moved_and_left(&self) -> (u64, u64) {
        let others = self.nodes.iter();
        let others = others.filter(|node| !self.asked_nodes.contains(&node.node));
        others.fold((0, 0), |(moved, left), node| {
            let gone = node.before_bytes.saturating_sub(node.placed_bytes);
            (moved + gone, left + node.placed_bytes)
        })
    }
}
