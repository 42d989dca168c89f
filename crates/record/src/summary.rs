//! The data of any record for lists and plots over time, from its fields.
//!
//! A record is read as JSON here, not as its type: damaged or newer records still appear in the
//! history, with what is known of them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::Kind;
use pinwise_topology::CpuSet;

/// The most figures kept of one record.
const MAX_FIGURES: usize = 24;

/// A field of traces that summaries do not read, since it has millions of values.
const UNREAD_FIELD: &str = "timeline";

/// Figures of a profile's unit of work: elapsed time, CPU time, and of that in
/// spin hints, at accesses of memory, in code that could not be read.
pub const PER_UNIT: [&str; 5] = [
    "elapsed time per unit",
    "CPU time per unit",
    "spin hints per unit",
    "memory accesses per unit",
    "unread code per unit",
];
/// Figures of its machine: a PAUSE, a core cycle, a load from memory.
pub const PER_UNIT_FACTS: [&str; 3] = ["PAUSE", "core cycle", "memory load"];

/// A record's subject, its machine, and its headline figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// The user's labels.
    pub tags: Vec<String>,
    /// Equal for records of the same question, so that their figures can be followed over time;
    /// `null` if there is none.
    pub subject: Option<String>,
    /// The machine: model, shape, kernel, microcode, hypervisor; `null` if unknown.
    pub machine: Option<String>,
    /// Hashes of the programs' files; `null` if unknown.
    pub program: Option<String>,
    /// Its verdict as the record words it: `best`, `fail`; of an A/A comparison `no_alarm` or
    /// `false_alarm`; `null` for records without one.
    pub outcome: Option<String>,
    /// The best arm of a comparison; `null` without one, or if it is not recommended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
    /// The arm with which a comparison compares the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// Headline figures.
    pub figures: Vec<Figure>,
}

/// A headline figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// Its subject, such as an arm's name.
    pub name: String,
    /// Unit; `""` for a number without one.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// An arm's change against the comparison's baseline, as its record judges it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<BaselineChange>,
}

/// A change against a baseline, per cent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BaselineChange {
    /// The change: −20 is a fifth less.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
}

impl Summary {
    /// Reads the text of a stored record; empty if it is not a record.
    #[must_use]
    pub fn from_json(body: &str) -> Self {
        let fields: BTreeMap<String, &RawValue> = match serde_json::from_str(body) {
            Ok(fields) => fields,
            Err(_) => return Self::default(),
        };
        let read = fields
            .into_iter()
            .filter(|(name, _)| name != UNREAD_FIELD)
            .filter_map(|(name, value)| Some((name, serde_json::from_str(value.get()).ok()?)));
        Self::read(&Value::Object(read.collect()))
    }

    /// Reads a record that is already JSON.
    #[must_use]
    pub fn read(record: &Value) -> Self {
        let schema = read_text(record, "schema").unwrap_or_default();
        let kind = Kind::from_any_version(&schema);
        let mut figures = kind.map_or_else(Vec::new, |kind| list_figures(kind, record));
        figures.truncate(MAX_FIGURES);
        let is_comparison = kind == Some(Kind::Comparison);
        let read_arm = |field| read_text(record, field).filter(|_| is_comparison);
        Self {
            tags: read_strings(&record["tags"]),
            subject: kind.map(|kind| describe_subject(kind, record)),
            machine: describe_machine(record),
            program: join_programs(record),
            outcome: read_alarm(record).or_else(|| read_outcome(&record["verdict"])),
            best: read_arm("best").filter(|_| is_recommended(&record["verdict"])),
            baseline: read_arm("baseline"),
            figures,
        }
    }
}

/// The kind of a verdict, or a gate's decision; `None` if its best is not recommended.
fn read_outcome(verdict: &Value) -> Option<String> {
    let kind = read_text(verdict, "kind").filter(|_| is_recommended(verdict));
    kind.or_else(|| read_text(verdict, "decision"))
}

fn is_recommended(verdict: &Value) -> bool {
    verdict["not_recommended"].is_null()
}

/// What an A/A comparison found; `None` of other records, and before it has a result.
fn read_alarm(record: &Value) -> Option<String> {
    let contrasts = read_list(&record["contrasts"]);
    let differs = |one: &Value| one["verdict"] == "faster" || one["verdict"] == "slower";
    let word = ["no_alarm", "false_alarm"][usize::from(contrasts.iter().any(differs))];
    (record["study"] == "aa" && !contrasts.is_empty()).then(|| word.to_owned())
}

fn read_text(record: &Value, field: &str) -> Option<String> {
    record.get(field)?.as_str().map(str::to_owned)
}

fn read_strings(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn read_list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// What records of the same question share: kind, command, and metric or tier.
fn describe_subject(kind: Kind, record: &Value) -> String {
    let command = match kind {
        Kind::Comparison => {
            let commands: Vec<String> = read_list(&record["arms"])
                .iter()
                .map(|arm| read_strings(&arm["command"]).join(" "))
                .collect();
            let mut distinct = commands;
            distinct.dedup();
            distinct.join(" / ")
        }
        Kind::Gate => read_text(record, "suite").unwrap_or_default(),
        Kind::Bench => read_text(record, "suite").unwrap_or_else(|| {
            let kernels = read_list(&record["kernels"]).iter();
            let names: Vec<String> = kernels.filter_map(|k| read_text(k, "kernel")).collect();
            names.join(" ")
        }),
        Kind::Trace | Kind::SpinAttach | Kind::Profile => {
            let command = read_strings(&record["source"]["command"]).join(" ");
            let name = || read_text(&record["source"], "name").unwrap_or_default();
            if command.is_empty() { name() } else { command }
        }
        Kind::FleetReport => read_text(record, "fleet").unwrap_or_default(),
        Kind::Search => read_strings(&record["command"]).join(" "),
        _ => String::new(),
    };
    // Tiers of traces do not have the same figures.
    let figure = read_text(&record["metric"], "name").or_else(|| read_text(record, "tier"));
    let figure = figure.unwrap_or_default();
    let words = [kind.name(), &command, &figure];
    let shown_words: Vec<&str> = words.into_iter().filter(|w| !w.is_empty()).collect();
    shown_words.join(" · ")
}

/// Model, shape, kernel, microcode, hypervisor in one line.
fn describe_machine(record: &Value) -> Option<String> {
    let host = match record.get("host") {
        Some(host) if host.is_object() => host,
        _ => record.get("machine")?,
    };
    let shape = read_text(host, "shape_hash").or_else(|| read_text(record, "shape_hash"));
    let parts = [
        ("", read_text(host, "cpu_model")),
        ("shape ", shape),
        ("kernel ", read_text(host, "kernel")),
        ("microcode ", read_text(host, "microcode")),
        ("on ", read_text(host, "hypervisor")),
    ];
    let shown_parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(word, value)| Some(format!("{word}{}", value?)))
        .collect();
    (!shown_parts.is_empty()).then(|| shown_parts.join(", "))
}

/// The hashes of the arms' programs, without repetitions in a row.
fn join_programs(record: &Value) -> Option<String> {
    let arms = read_list(&record["arms"]).iter();
    let each = arms
        .chain([record])
        .filter_map(|one| read_text(&one["workload"], "program"));
    let mut found: Vec<String> = each.collect();
    found.dedup();
    (!found.is_empty()).then(|| found.join(", "))
}

fn list_figures(kind: Kind, record: &Value) -> Vec<Figure> {
    match kind {
        Kind::Comparison => read_comparison(record),
        Kind::Gate => read_gate(record),
        Kind::Bench => read_bench(record),
        Kind::Topology => read_topology(&record["measured"]),
        Kind::SpinPause => read_spin_pause(record),
        Kind::Jitter => read_jitter(record),
        Kind::Trace => read_trace(record),
        Kind::Search => read_search(record),
        Kind::Profile => read_profile(record),
        Kind::FleetReport => read_fleet_report(record),
        // A fleet's nodes have none: the records of their steps have them
        // already, and a list of ten thousand nodes is to stay short.
        _ => Vec::new(),
    }
}

fn read_number(name: &str, unit: &str, value: &Value) -> Vec<Figure> {
    let figure = |value| Figure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
        low: None,
        high: None,
        change: None,
    };
    value.as_f64().map(figure).into_iter().collect()
}

/// A figure from a value with its interval.
fn read_estimate(name: String, unit: &str, value: &Value) -> Option<Figure> {
    Some(Figure {
        name,
        unit: unit.to_owned(),
        value: value["value"].as_f64()?,
        low: value["low"].as_f64(),
        high: value["high"].as_f64(),
        change: None,
    })
}

fn read_change(effect: &Value) -> Option<BaselineChange> {
    Some(BaselineChange {
        value: effect["value"].as_f64()?,
        low: effect["low"].as_f64(),
        high: effect["high"].as_f64(),
    })
}

fn read_comparison(record: &Value) -> Vec<Figure> {
    let unit = read_text(&record["metric"], "unit").unwrap_or_default();
    let contrasts = read_list(&record["contrasts"]);
    let arm = |arm: &Value| {
        let name = read_text(arm, "name")?;
        let contrast = contrasts.iter().find(|one| one["arm"] == arm["name"]);
        Some(Figure {
            change: contrast.and_then(|one| read_change(&one["effect"])),
            ..read_estimate(name, &unit, &arm["estimate"])?
        })
    };
    read_list(&record["arms"]).iter().filter_map(arm).collect()
}

/// The change of each benchmark.
fn read_gate(record: &Value) -> Vec<Figure> {
    let benchmark = |one: &Value| {
        let cpu = &one["cpu"];
        let effect = match cpu["decides"].as_bool() {
            Some(true) => &cpu["effect"],
            _ => &one["effect"],
        };
        read_estimate(read_text(one, "name")?, "%", effect)
    };
    let benchmarks = read_list(&record["benchmarks"]).iter();
    benchmarks.filter_map(benchmark).collect()
}

fn read_bench(record: &Value) -> Vec<Figure> {
    let kernel = |kernel: &Value| {
        let baseline = read_text(kernel, "baseline")?;
        let cells = read_list(&kernel["cells"]).iter();
        let cell = cells
            .clone()
            .find(|cell| read_text(cell, "name").as_deref() == Some(&baseline))?;
        read_estimate(read_text(kernel, "kernel")?, "s", &cell["seconds"])
    };
    read_list(&record["kernels"])
        .iter()
        .filter_map(kernel)
        .collect()
}

/// Latency within each level, memory latency, bandwidth, the spin-wait hint.
fn read_topology(measured: &Value) -> Vec<Figure> {
    let level = |level: &Value| {
        let kind = read_text(level, "kind")?;
        Some(read_number(
            &format!("latency within {kind}"),
            "ns",
            &level["inside_ns"],
        ))
    };
    let mut figures: Vec<Figure> = read_list(&measured["levels"])
        .iter()
        .filter_map(level)
        .flatten()
        .collect();
    let memory = read_list(&measured["ladder"]["plateaus"]).last();
    if let Some(memory) = memory.filter(|plateau| plateau["level"].is_null()) {
        figures.extend(read_number("memory latency", "ns", &memory["latency_ns"]));
    }
    figures.extend(
        read_list(&measured["bandwidth"])
            .iter()
            .filter_map(read_bandwidth),
    );
    let pauses = read_list(&measured["pause"]).iter();
    let pauses = pauses.filter_map(|cpu| cpu["pause_ns"]["value"].as_f64());
    figures.extend(summarise("spin-wait hint", "ns", pauses.collect()));
    figures
}

/// Bandwidth of each thread's own memory: the forms that cross nodes are too many.
fn read_bandwidth(stream: &Value) -> Option<Figure> {
    let cpus = CpuSet::parse_list(stream["cpus"].as_str()?).ok()?.len();
    let own = stream["node"].is_null();
    let what = read_text(stream, "stream")?;
    let cpus = if cpus == 1 {
        "1 CPU".to_owned()
    } else {
        format!("{cpus} CPUs")
    };
    let name = format!("{what} bandwidth, {cpus}");
    own.then(|| read_estimate(name, "GB/s", &stream["gb_per_s"]))?
}

fn read_spin_pause(record: &Value) -> Vec<Figure> {
    let cpus = read_list(&record["cpus"]).iter();
    let pauses = cpus.filter_map(|cpu| cpu["pause_ns"].as_f64()).collect();
    summarise("PAUSE", "ns", pauses).into_iter().collect()
}

fn read_jitter(record: &Value) -> Vec<Figure> {
    let read_cpus = |field: &str, factor: f64| -> Vec<f64> {
        let cpus = read_list(&record["cpus"]).iter();
        let values = cpus.filter_map(|cpu| cpu[field].as_f64());
        values.map(|value| value * factor).collect()
    };
    let longest = summarise("longest gap", "s", read_cpus("longest_us", 1e-6));
    let lost = summarise("time lost", "%", read_cpus("lost_share", 1e2));
    longest.into_iter().chain(lost).collect()
}

/// The middle one of several CPUs' values, with the least and the greatest.
fn summarise(name: &str, unit: &str, mut values: Vec<f64>) -> Option<Figure> {
    values.sort_by(f64::total_cmp);
    Some(Figure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value: *values.get(values.len() / 2)?,
        low: values.first().copied(),
        high: values.last().copied(),
        change: None,
    })
}

fn read_trace(record: &Value) -> Vec<Figure> {
    let migrations = record["totals"]["migrations"].as_object();
    let moves: Option<f64> = migrations.map(|m| m.values().filter_map(Value::as_f64).sum());
    let mut figures = read_number("CPU time", "s", &record["totals"]["cpu_s"]);
    figures.extend(read_number("time queued", "s", &record["waits"]["total_s"]));
    figures.extend(moves.map(|value| Figure {
        name: "migrations".to_owned(),
        unit: String::new(),
        value,
        low: None,
        high: None,
        change: None,
    }));
    let avoidable = &record["avoidable_smt_sharing"]["percent"];
    figures.extend(read_number("avoidable SMT sharing", "%", avoidable));
    figures
}

/// CPU time, and the parts of it per unit of work that explain differences between nodes.
fn read_profile(record: &Value) -> Vec<Figure> {
    let total = &record["total"]["cpu_s"];
    let mut figures = read_number("CPU time", "s", total);
    let units = record["work"]["count"]
        .as_f64()
        .filter(|units| *units > 0.0);
    let runs = read_list(&record["runs"]);
    let sum = |field: &str| -> Option<f64> {
        let all: Option<Vec<f64>> = runs.iter().map(|run| run[field].as_f64()).collect();
        all.filter(|all| !all.is_empty())
            .map(|all| all.iter().sum())
    };
    let used_s = sum("used_cpu_s");
    let (Some(units), Some(sampled_s)) = (units, total.as_f64().filter(|s| *s > 0.0)) else {
        return figures;
    };
    if let (Some(wall_s), Some(_)) = (sum("wall_s"), used_s) {
        figures.extend(read_number(PER_UNIT[0], "s", &(wall_s / units).into()));
    }
    let cpu_s = used_s.unwrap_or(sampled_s) / units;
    let samples = record["total"]["samples"].as_f64().unwrap_or(0.0);
    let half = 1.96 * cpu_s / samples.max(1.0).sqrt();
    figures.push(Figure {
        name: PER_UNIT[1].to_owned(),
        unit: "s".to_owned(),
        value: cpu_s,
        low: Some(cpu_s - half),
        high: Some(cpu_s + half),
        change: None,
    });
    for (name, field) in PER_UNIT[2..].iter().zip(["waits", "accesses", "unread"]) {
        let part_s = record[field]["cpu_s"].as_f64();
        let each = part_s.map(|part_s| cpu_s * part_s / sampled_s);
        figures.extend(read_number(name, "s", &each.into()));
    }
    let pause = &record["pause"];
    figures.extend(pause["ns"].as_f64().map(|value| Figure {
        name: PER_UNIT_FACTS[0].to_owned(),
        unit: "ns".to_owned(),
        value,
        low: pause["low_ns"].as_f64(),
        high: pause["high_ns"].as_f64(),
        change: None,
    }));
    for (name, field) in PER_UNIT_FACTS[1..].iter().zip(["cycle_ns", "memory_ns"]) {
        figures.extend(read_estimate(
            (*name).to_owned(),
            "ns",
            &record["machine"][field],
        ));
    }
    figures
}

/// The numbers of nodes that differ from their peers, and of nodes with every step done.
fn read_fleet_report(record: &Value) -> Vec<Figure> {
    let outliers = read_list(&record["outliers"]).iter();
    let nodes: BTreeSet<&str> = outliers.filter_map(|o| o["node"].as_str()).collect();
    let mut figures = read_number("outlier nodes", "", &nodes.len().into());
    figures.extend(read_number("complete nodes", "", &record["complete"]));
    figures
}

fn read_search(record: &Value) -> Vec<Figure> {
    let unit = read_text(&record["metric"], "unit").unwrap_or_default();
    let best = read_text(record, "best");
    let arms = read_list(&record["predictions"]).iter();
    let wanted = |arm: &&Value| {
        let name = read_text(arm, "arm");
        name == best || name.as_deref() == Some("os-default")
    };
    arms.filter(wanted)
        .filter_map(|arm| {
            Some(Figure {
                name: read_text(arm, "arm")?,
                unit: unit.clone(),
                value: arm["predicted"].as_f64()?,
                low: arm["low"].as_f64(),
                high: arm["high"].as_f64(),
                change: None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
