//! What differs between two machines, or between one machine at two times:
//! after a reboot, a live migration, a change in the firmware.
//!
//! Compares records, so that machines from any source can be compared, and judges nothing, such as
//! which of two machines is right. Unit numbers are not compared, since they depend on how CPUs are
//! counted; which CPUs share a unit is.

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
    /// Whether there is no difference.
    pub same: bool,
    /// Differences, the weightiest first.
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
    /// The level it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// Its value in A; `null` if A does not say.
    pub a: Value,
    /// How it is in B.
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
    /// Compares two machines, named for people.
    #[must_use]
    pub fn between(names: [&str; 2], a: &TopologyRecord, b: &TopologyRecord) -> Self {
        let mut differences = measured::contradictions(a, b);
        differences.extend(topology::differences(a, b));
        let mut not_compared = Vec::new();
        match (&a.measured, &b.measured) {
            (Some(in_a), Some(in_b)) => differences.extend(measured::differences(in_a, in_b)),
            (Some(_), None) => not_compared.push(only_measured("A", "B")),
            (None, Some(_)) => not_compared.push(only_measured("B", "A")),
            (None, None) => {}
        }
        differences.sort_by_key(weight);
        Self {
            between: names.map(str::to_owned),
            same: differences.is_empty(),
            differences,
            not_compared,
        }
    }
}

fn only_measured(one: &str, other: &str) -> String {
    format!("Only {one} was measured, {other} was not: latencies and costs are not compared.")
}

/// What matters most for placing threads comes first: whether it is the same machine at all, then
/// which CPUs it has, how they are wired, what they cost, and names that may explain it.
fn weight(difference: &Difference) -> usize {
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
    let place = ORDER.iter().position(|what| *what == difference.what);
    place.unwrap_or(ORDER.len())
}

/// `one of 3`: a noun for the unit of a level.
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

/// The first few of a list in words.
fn join_first(items: &[String]) -> String {
    const NAMED: usize = 6;
    if items.is_empty() {
        return "none".to_owned();
    }
    let mut text = items[..items.len().min(NAMED)].join("; ");
    if items.len() > NAMED {
        text.push_str(&format!("; and {} more", items.len() - NAMED));
    }
    text
}
