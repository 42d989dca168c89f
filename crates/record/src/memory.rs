//! Location of a program's memory.

use serde::{Deserialize, Serialize};

/// Location of the pages of traced processes, sampled now and then.
///
/// Pages that two of the processes map count for each, as with `numastat -p`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryRecord {
    /// How often it was looked at.
    pub looks: usize,
    /// Each NUMA node.
    pub nodes: Vec<NodePagesRecord>,
    /// Share of pages in huge pages, transparent or reserved, per cent.
    pub huge_percent: f64,
    /// Share of accesses that would be local if all threads used all pages alike,
    /// per cent: what the nodes have of the CPU time, by what they have of the pages.
    /// `null` on a machine of one node.
    pub local: Option<LocalShare>,
    /// Share of pages on nodes on which the threads used less than 5 % of their CPU time, per cent:
    /// far from their users. `null` on a machine with one node.
    pub far_percent: Option<f64>,
    /// Whether the kernel moves pages to their users (`numa_balancing`); `null` if unknown.
    pub is_balanced: Option<bool>,
}

/// A share of accesses over a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LocalShare {
    /// On average over the time, per cent.
    pub percent: f64,
    /// The lowest of the looks.
    pub low: f64,
    /// The highest of the looks.
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
    /// Pages on it at the last look, bytes.
    pub last_bytes: u64,
    /// Its share of the traced threads' CPU time, per cent.
    pub cpu_percent: f64,
}
