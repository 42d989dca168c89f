//! Location of a program's memory.

use serde::{Deserialize, Serialize};

/// Location of the pages of traced processes, sampled repeatedly.
///
/// Pages that several of the processes map count for each of them, as in `numastat -p`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryRecord {
    /// Number of samples.
    pub looks: usize,
    /// Each NUMA node.
    pub nodes: Vec<NodePagesRecord>,
    /// Share of pages in huge pages, transparent or reserved, per cent.
    pub huge_percent: f64,
    /// Share of accesses that would be local if all threads used all pages equally, per cent: the
    /// sum over nodes of their share of CPU time times their share of pages. `null` on a machine
    /// with one node.
    pub local: Option<LocalShare>,
    /// Share of pages on nodes on which the threads used less than 5 % of their CPU time, per cent:
    /// far from their users. `null` on a machine with one node.
    pub far_percent: Option<f64>,
    /// Does the kernel move pages to their users (`numa_balancing`)? `null` if unknown.
    pub is_balanced: Option<bool>,
}

/// A share of accesses over a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LocalShare {
    /// On average over the time, per cent.
    pub percent: f64,
    /// The lowest of the samples.
    pub low: f64,
    /// The highest of the samples.
    pub high: f64,
}

/// A node's share of memory and of CPU time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodePagesRecord {
    /// Its number.
    pub node: usize,
    /// Pages on it, bytes, on average over the time.
    pub bytes: f64,
    /// Pages on it in the last sample, bytes.
    pub last_bytes: u64,
    /// Its share of the traced threads' CPU time, per cent.
    pub cpu_percent: f64,
}
