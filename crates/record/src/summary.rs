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

/// Figures kept of one record.
const MAX_FIGURES: usize = 24;

/// A field of traces that no summary is read from: it has millions of values.
const PASSED_OVER: &str = "timeline";

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
    /// Labels of the user's.
    pub tags: Vec<String>,
    /// Equal for records of the same question, so that their figures can be followed over time;
    /// `null` if there is none.
    pub subject: Option<String>,
    /// What the machine was: model, shape, kernel, microcode, hypervisor; `null` if unknown.
    pub machine: Option<String>,
    /// Hashes of the programs' files, as the record has them; `null` if unknown.
    pub program: Option<String>,
    /// Its verdict, in the verdict's own word: `best`, `fail`; `null` for records without one.
    pub outcome: Option<String>,
    /// Headline figures.
    pub figures: Vec<Figure>,
}

/// A headline figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figure {
    /// What it is of, such as an arm's name.
    pub name: String,
    /// Unit; `""` for a number without one.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
}

impl Summary {
    /// From a stored record; empty if it is not a record.
    #[must_use]
    pub fn from_json(body: &str) -> Self {
        let fields: BTreeMap<String, &RawValue> = match serde_json::from_str(body) {
            Ok(fields) => fields,
            Err(_) => return Self::default(),
        };
        let read = fields
            .into_iter()
            .filter(|(name, _)| name != PASSED_OVER)
            .filter_map(|(name, value)| Some((name, serde_json::from_str(value.get()).ok()?)));
        Self::read(&Value::Object(read.collect()))
    }

    /// From a record as JSON.
    #[must_use]
    pub fn read(record: &Value) -> Self {
        let schema = text(record, "schema").unwrap_or_default();
        let kind = Kind::from_any_version(&schema);
        let mut figures = kind.map_or_else(Vec::new, |kind| figures(kind, record));
        figures.truncate(MAX_FIGURES);
        Self {
            tags: strings(&record["tags"]),
            subject: kind.map(|kind| subject(kind, record)),
            machine: machine(record),
            program: program(record),
            outcome: text(&record["verdict"], "kind")
                .or_else(|| text(&record["verdict"], "decision")),
            figures,
        }
    }
}

fn text(record: &Value, field: &str) -> Option<String> {
    record.get(field)?.as_str().map(str::to_owned)
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The question: kind of record, command, and metric or tier.
fn subject(kind: Kind, record: &Value) -> String {
    let command = match kind {
        Kind::Comparison => {
            let commands: Vec<String> = list(&record["arms"])
                .iter()
                .map(|arm| strings(&arm["command"]).join(" "))
                .collect();
            let mut distinct = commands;
            distinct.dedup();
            distinct.join(" / ")
        }
        Kind::Gate => text(record, "suite").unwrap_or_default(),
        Kind::Bench => text(record, "suite").unwrap_or_else(|| {
            let kernels = list(&record["kernels"]).iter();
            let names: Vec<String> = kernels.filter_map(|k| text(k, "kernel")).collect();
            names.join(" ")
        }),
        Kind::Trace | Kind::SpinAttach | Kind::Profile => {
            strings(&record["source"]["command"]).join(" ")
        }
        Kind::Search => strings(&record["command"]).join(" "),
        _ => String::new(),
    };
    // Tiers of traces do not have the same figures.
    let figure = text(&record["metric"], "name").or_else(|| text(record, "tier"));
    let figure = figure.unwrap_or_default();
    let words = [kind.name(), &command, &figure];
    let shown_words: Vec<&str> = words.into_iter().filter(|w| !w.is_empty()).collect();
    shown_words.join(" · ")
}

/// Model, shape, kernel, microcode, hypervisor in one line.
fn machine(record: &Value) -> Option<String> {
    let host = match record.get("host") {
        Some(host) if host.is_object() => host,
        _ => record.get("machine")?,
    };
    let shape = text(host, "shape_hash").or_else(|| text(record, "shape_hash"));
    let parts = [
        ("", text(host, "cpu_model")),
        ("shape ", shape),
        ("kernel ", text(host, "kernel")),
        ("microcode ", text(host, "microcode")),
        ("on ", text(host, "hypervisor")),
    ];
    let shown_parts: Vec<String> = parts
        .into_iter()
        .filter_map(|(word, value)| Some(format!("{word}{}", value?)))
        .collect();
    (!shown_parts.is_empty()).then(|| shown_parts.join(", "))
}

/// Those of the arms, each once, in their order.
fn program(record: &Value) -> Option<String> {
    let arms = list(&record["arms"]).iter();
    let each = arms
        .chain([record])
        .filter_map(|one| text(&one["workload"], "program"));
    let mut found: Vec<String> = each.collect();
    found.dedup();
    (!found.is_empty()).then(|| found.join(", "))
}

fn figures(kind: Kind, record: &Value) -> Vec<Figure> {
    match kind {
        Kind::Comparison => comparison(record),
        Kind::Gate => gate(record),
        Kind::Bench => bench(record),
        Kind::Topology => list_figures(&record["measured"]),
        Kind::SpinPause => spin_pause(record),
        Kind::Jitter => jitter(record),
        Kind::Trace => trace(record),
        Kind::Search => search(record),
        Kind::Profile => profile(record),
        Kind::FleetReport => fleet_report(record),
        // A fleet's nodes have none: the records of their steps have them
        // already, and a list of ten thousand nodes is to stay short.
        _ => Vec::new(),
    }
}

fn single(name: &str, unit: &str, value: &Value) -> Vec<Figure> {
    let figure = |value| Figure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
        low: None,
        high: None,
    };
    value.as_f64().map(figure).into_iter().collect()
}

/// A value with its interval.
fn interval(name: String, unit: &str, value: &Value) -> Option<Figure> {
    Some(Figure {
        name,
        unit: unit.to_owned(),
        value: value["value"].as_f64()?,
        low: value["low"].as_f64(),
        high: value["high"].as_f64(),
    })
}

fn comparison(record: &Value) -> Vec<Figure> {
    let unit = text(&record["metric"], "unit").unwrap_or_default();
    let arm = |arm: &Value| interval(text(arm, "name")?, &unit, &arm["estimate"]);
    list(&record["arms"]).iter().filter_map(arm).collect()
}

/// What each benchmark changed by.
fn gate(record: &Value) -> Vec<Figure> {
    let benchmark = |one: &Value| interval(text(one, "name")?, "%", &one["effect"]);
    let benchmarks = list(&record["benchmarks"]).iter();
    benchmarks.filter_map(benchmark).collect()
}

fn bench(record: &Value) -> Vec<Figure> {
    let kernel = |kernel: &Value| {
        let baseline = text(kernel, "baseline")?;
        let cells = list(&kernel["cells"]).iter();
        let cell = cells
            .clone()
            .find(|cell| text(cell, "name").as_deref() == Some(&baseline))?;
        interval(text(kernel, "kernel")?, "s", &cell["seconds"])
    };
    list(&record["kernels"]).iter().filter_map(kernel).collect()
}

/// Latency within each level, memory latency, bandwidth, the spin-wait hint.
fn list_figures(measured: &Value) -> Vec<Figure> {
    let level = |level: &Value| {
        let kind = text(level, "kind")?;
        Some(single(
            &format!("latency within {kind}"),
            "ns",
            &level["inside_ns"],
        ))
    };
    let mut figures: Vec<Figure> = list(&measured["levels"])
        .iter()
        .filter_map(level)
        .flatten()
        .collect();
    let memory = list(&measured["ladder"]["plateaus"]).last();
    if let Some(memory) = memory.filter(|plateau| plateau["level"].is_null()) {
        figures.extend(single("memory latency", "ns", &memory["latency_ns"]));
    }
    figures.extend(list(&measured["bandwidth"]).iter().filter_map(bandwidth));
    let pauses = list(&measured["pause"]).iter();
    let pauses = pauses.filter_map(|cpu| cpu["pause_ns"]["value"].as_f64());
    figures.extend(middle("spin-wait hint", "ns", pauses.collect()));
    figures
}

/// Bandwidth of each thread's own memory: the forms that cross nodes are too many.
fn bandwidth(stream: &Value) -> Option<Figure> {
    let cpus = CpuSet::parse_list(stream["cpus"].as_str()?).ok()?.len();
    let own = stream["node"].is_null();
    let what = text(stream, "stream")?;
    let cpus = if cpus == 1 {
        "1 CPU".to_owned()
    } else {
        format!("{cpus} CPUs")
    };
    let name = format!("{what} bandwidth, {cpus}");
    own.then(|| interval(name, "GB/s", &stream["gb_per_s"]))?
}

fn spin_pause(record: &Value) -> Vec<Figure> {
    let cpus = list(&record["cpus"]).iter();
    let pauses = cpus.filter_map(|cpu| cpu["pause_ns"].as_f64()).collect();
    middle("PAUSE", "ns", pauses).into_iter().collect()
}

fn jitter(record: &Value) -> Vec<Figure> {
    let read_cpus = |field: &str, factor: f64| -> Vec<f64> {
        let cpus = list(&record["cpus"]).iter();
        let values = cpus.filter_map(|cpu| cpu[field].as_f64());
        values.map(|value| value * factor).collect()
    };
    let longest = middle("longest gap", "s", read_cpus("longest_us", 1e-6));
    let lost = middle("time lost", "%", read_cpus("lost_share", 1e2));
    longest.into_iter().chain(lost).collect()
}

/// The middle of several CPUs' figures, with their least and greatest.
fn middle(name: &str, unit: &str, mut values: Vec<f64>) -> Option<Figure> {
    values.sort_by(f64::total_cmp);
    Some(Figure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        value: *values.get(values.len() / 2)?,
        low: values.first().copied(),
        high: values.last().copied(),
    })
}

fn trace(record: &Value) -> Vec<Figure> {
    let migrations = record["totals"]["migrations"].as_object();
    let moves: Option<f64> = migrations.map(|m| m.values().filter_map(Value::as_f64).sum());
    let mut figures = single("CPU time", "s", &record["totals"]["cpu_s"]);
    figures.extend(single("time queued", "s", &record["waits"]["total_s"]));
    figures.extend(moves.map(|value| Figure {
        name: "migrations".to_owned(),
        unit: String::new(),
        value,
        low: None,
        high: None,
    }));
    let avoidable = &record["avoidable_smt_sharing"]["percent"];
    figures.extend(single("avoidable SMT sharing", "%", avoidable));
    figures
}

/// CPU time, and of each unit of work what differences are taken apart by.
fn profile(record: &Value) -> Vec<Figure> {
    let total = &record["total"]["cpu_s"];
    let mut figures = single("CPU time", "s", total);
    let units = record["work"]["count"]
        .as_f64()
        .filter(|units| *units > 0.0);
    let runs = list(&record["runs"]);
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
        figures.extend(single(PER_UNIT[0], "s", &(wall_s / units).into()));
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
    });
    for (name, field) in PER_UNIT[2..].iter().zip(["waits", "accesses", "unread"]) {
        let part_s = record[field]["cpu_s"].as_f64();
        let each = part_s.map(|part_s| cpu_s * part_s / sampled_s);
        figures.extend(single(name, "s", &each.into()));
    }
    let pause = &record["pause"];
    figures.extend(pause["ns"].as_f64().map(|value| Figure {
        name: PER_UNIT_FACTS[0].to_owned(),
        unit: "ns".to_owned(),
        value,
        low: pause["low_ns"].as_f64(),
        high: pause["high_ns"].as_f64(),
    }));
    for (name, field) in PER_UNIT_FACTS[1..].iter().zip(["cycle_ns", "memory_ns"]) {
        figures.extend(interval(
            (*name).to_owned(),
            "ns",
            &record["machine"][field],
        ));
    }
    figures
}

/// Nodes that differ from their peers, and nodes of which every step is done.
fn fleet_report(record: &Value) -> Vec<Figure> {
    let outliers = list(&record["outliers"]).iter();
    let nodes: BTreeSet<&str> = outliers.filter_map(|o| o["node"].as_str()).collect();
    let mut figures = single("nodes that depart", "", &nodes.len().into());
    figures.extend(single("complete nodes", "", &record["complete"]));
    figures
}

fn search(record: &Value) -> Vec<Figure> {
    let unit = text(&record["metric"], "unit").unwrap_or_default();
    let best = text(record, "best");
    let arms = list(&record["predictions"]).iter();
    let wanted = |arm: &&Value| {
        let name = text(arm, "arm");
        name == best || name.as_deref() == Some("os-default")
    };
    arms.filter(wanted)
        .filter_map(|arm| {
            Some(Figure {
                name: text(arm, "arm")?,
                unit: unit.clone(),
                value: arm["predicted"].as_f64()?,
                low: arm["low"].as_f64(),
                high: arm["high"].as_f64(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests;
