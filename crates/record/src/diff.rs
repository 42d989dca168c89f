//! What differs between two machines, or between one machine at two times:
//! after a reboot, a live migration, a change in the firmware.
//!
//! Compares records, so that machines from any source can be compared. It does not judge which of
//! two machines is right. Numbers of units are not compared, because they depend on how CPUs are
//! counted; which CPUs share a unit is compared.

mod measured;
mod topology;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::TopologyRecord;

/// Everything that differs between two machines A and B.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.topology-diff/1")]
pub struct TopologyDiff {
    /// Sources of A and B.
    pub between: [String; 2],
    /// Is there no difference?
    pub same: bool,
    /// Differences, the most important first.
    pub differences: Vec<Difference>,
    /// What could not be compared, as full sentences.
    pub not_compared: Vec<String>,
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Difference {
    /// A stable name of what differs, such as `kernel` or `units`.
    pub what: String,
    /// The level that it concerns, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Its value in A; `null` if A does not say.
    pub a: Value,
    /// Its value in B; `null` if B does not say.
    pub b: Value,
    /// The difference in words.
    pub sentence: String,
}

impl Difference {
    fn new(what: &str, level: Option<&str>, a: Value, b: Value, sentence: String) -> Self {
        Self {
            what: what.to_owned(),
            level: level.map(str::to_owned),
            a,
            b,
            sentence,
        }
    }
}

impl TopologyDiff {
    /// Compares two machines; `names` are their sources, for display.
    #[must_use]
    pub fn compare(names: [&str; 2], a: &TopologyRecord, b: &TopologyRecord) -> Self {
        let mut differences = measured::compare_contradictions(a, b);
        differences.extend(topology::compare_reports(a, b));
        let mut not_compared = Vec::new();
        match (&a.measured, &b.measured) {
            (Some(in_a), Some(in_b)) => differences.extend(measured::compare_probes(in_a, in_b)),
            (Some(_), None) => not_compared.push(explain_single_measurement("A", "B")),
            (None, Some(_)) => not_compared.push(explain_single_measurement("B", "A")),
            (None, None) => {}
        }
        differences.sort_by_key(rank_importance);
        Self {
            between: names.map(str::to_owned),
            same: differences.is_empty(),
            differences,
            not_compared,
        }
    }
}

fn explain_single_measurement(one: &str, other: &str) -> String {
    format!("Only {one} was measured, {other} was not: latencies and costs are not compared.")
}

/// Ranks differences by their importance for placing threads: whether it is the same machine at
/// all, then its CPUs, how they are connected, their latencies, and names that may explain the
/// rest.
fn rank_importance(difference: &Difference) -> usize {
    const ORDER: [&str; 23] = [
        "contradiction",
        "cpu_model",
        "arch",
        "vendor",
        "hypervisor",
        "cpu_signature",
        "counts",
        "online",
        "allowed",
        "quota",
        "units",
        "measured_level",
        "latency",
        "pairs",
        "drift",
        "pause",
        "kinds",
        "cache_size",
        "numa_node",
        "memory",
        "microcode",
        "kernel",
        "hostname",
    ];
    let rank = ORDER.iter().position(|what| *what == difference.what);
    rank.unwrap_or(ORDER.len())
}

/// The noun for a unit of a level.
fn unit_noun(level: &str) -> &str {
    match level {
        "smt" => "group of SMT siblings",
        "core" => "core",
        "llc" => "last-level cache",
        "numa_node" | "numa" => "NUMA node",
        "package" => "package",
        "cpu" => "CPU",
        other => other,
    }
}

/// Joins the first few items of a list.
fn join_first(items: &[String]) -> String {
    const MAX_NAMED: usize = 6;
    if items.is_empty() {
        return "none".to_owned();
    }
    let mut text = items[..items.len().min(MAX_NAMED)].join("; ");
    if items.len() > MAX_NAMED {
        text.push_str(&format!("; and {} more", items.len() - MAX_NAMED));
    }
    text
}
