//! What differs between two machines, or between one machine at two times:
//! after a reboot, a live migration, a change in the firmware.
//!
//! Compares records, so that machines from any source can be compared. It does not judge which of
//! two machines is right. Numbers of units are not compared, because they depend on how CPUs are
//! counted; which CPUs share a unit is compared. A host's name is no difference.

mod conclude;
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
    /// Names of the machines A and B; `null` if unknown.
    #[serde(default)]
    pub hosts: [Option<String>; 2],
    /// The difference that matters most to the placement of threads, in a sentence.
    #[serde(default)]
    pub sentence: String,
    /// What to do next.
    #[serde(default)]
    pub advice: String,
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
    /// What differs, in words: `number of cores`.
    #[serde(default)]
    pub name: String,
    /// Its values in A and B in words, with units; `unknown` where a side does not say.
    #[serde(default)]
    pub values: [String; 2],
    /// Does one side not say? Then it may be no difference.
    #[serde(default)]
    pub is_unknown: bool,
}

impl Difference {
    fn new(what: &str, level: Option<&str>, a: Value, b: Value, sentence: String) -> Self {
        // Without a hypervisor or a quota there is none.
        let absent = match what {
            "hypervisor" => Some("none"),
            "quota" => Some("not limited"),
            _ => None,
        };
        let values = [&a, &b].map(|value| match (value, absent) {
            (Value::Null, absent) => absent.unwrap_or("unknown").to_owned(),
            _ => describe_value(value),
        });
        Self {
            what: what.to_owned(),
            level: level.map(str::to_owned),
            name: describe_name(what, level),
            values,
            is_unknown: absent.is_none() && (a.is_null() || b.is_null()),
            a,
            b,
            sentence,
        }
    }

    /// The difference with these words for its values.
    fn with_values(self, values: [String; 2]) -> Self {
        Self { values, ..self }
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
            hosts: [a, b].map(|side| side.machine.hostname.clone()),
            sentence: conclude::describe_most_important(&differences, a, b),
            advice: conclude::advise(a, b),
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
    const ORDER: [&str; 22] = [
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
    ];
    let rank = ORDER.iter().position(|what| *what == difference.what);
    rank.unwrap_or(ORDER.len())
}

/// What differs, in words.
fn describe_name(what: &str, level: Option<&str>) -> String {
    let level = level.map_or("", unit_noun);
    let name = match what {
        "allowed" => "CPUs allowed",
        "arch" => "architecture",
        "contradiction" => return format!("{level}: contradicted by measurement"),
        "counts" => return format!("number of {level}s"),
        "cpu_model" => "processor",
        "cpu_signature" => "family/model/stepping",
        "drift" => "changes while watched",
        "kinds" => "kinds of CPUs",
        "latency" => return format!("latency within a {level}"),
        "measured_level" => return format!("{level}s, measured"),
        "online" => "CPUs online",
        "pairs" => "latency of pairs",
        "pause" => "spin-wait hint (PAUSE)",
        "quota" => "CPU quota",
        "units" => return format!("CPUs that share a {level}"),
        "vendor" => "processor vendor",
        other => return other.replace('_', " "),
    };
    name.to_owned()
}

/// A value without a unit, in words.
fn describe_value(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
        Value::Array(items) => {
            join_first(&items.iter().map(describe_value).collect::<Vec<String>>())
        }
        other => other.to_string(),
    }
}

/// A latency in words.
fn describe_ns(ns: f64) -> String {
    format!("{ns:.1} ns")
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn difference(what: &str, level: Option<&str>, a: Value, b: Value) -> Difference {
        Difference::new(what, level, a, b, String::new())
    }

    #[test]
    fn a_difference_has_its_name_and_values_in_words() {
        let shown = |difference: &Difference| {
            let [a, b] = &difference.values;
            format!("{}: {a} | {b}", difference.name)
        };
        let counts = difference("counts", Some("numa_node"), json!(1), json!(2));
        assert_eq!(shown(&counts), "number of NUMA nodes: 1 | 2");
        let units = difference("units", Some("core"), json!(["0", "1"]), json!(["0-1"]));
        assert_eq!(shown(&units), "CPUs that share a core: 0; 1 | 0-1");
        let memory = difference("memory", None, json!(1), json!(2));
        let words = ["1 GiB", "2 GiB"].map(str::to_owned);
        assert_eq!(shown(&memory.with_values(words)), "memory: 1 GiB | 2 GiB");
    }

    #[test]
    fn a_value_that_one_side_lacks_is_unknown_but_a_hypervisor_is_none() {
        let kernel = difference("kernel", None, json!("6.1"), Value::Null);
        assert_eq!(
            (kernel.is_unknown, kernel.values[1].as_str()),
            (true, "unknown")
        );
        let hypervisor = difference("hypervisor", None, json!("kvm"), Value::Null);
        assert_eq!(
            (hypervisor.is_unknown, hypervisor.values[1].as_str()),
            (false, "none")
        );
    }
}
