//! Compares what probes found.
//!
//! A figure has changed if the intervals do not overlap and the ratio of the medians exceeds
//! [`MIN_RATIO`]: latencies of an unchanged virtual machine vary by a fifth with the host's clock
//! and other guests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use super::topology::compare_groups;
use super::{Difference, describe_ns, join_first, unit_noun};
use crate::{Measured, MeasuredLevel, Median, PairRecord, PauseRecord, TopologyRecord};
use pinwise_format::count;
use pinwise_topology::CpuSet;

/// The smallest ratio of medians that counts as a change.
const MIN_RATIO: f64 = 1.25;

pub(super) fn compare_probes(a: &Measured, b: &Measured) -> Vec<Difference> {
    let mut found = compare_levels(a, b);
    found.extend(compare_latencies(a, b));
    found.extend(compare_pairs(a, b));
    found.extend(compare_pause(a, b));
    found.extend(compare_drift(a, b));
    found
}

/// Compares the levels whose report is contradicted by measurement.
pub(super) fn compare_contradictions(a: &TopologyRecord, b: &TopologyRecord) -> Vec<Difference> {
    let contradicted_levels = |record: &TopologyRecord| -> BTreeSet<String> {
        let found = record.contradictions.iter();
        found
            .map(|contradiction| contradiction.level.to_string())
            .collect()
    };
    let (in_a, in_b) = (contradicted_levels(a), contradicted_levels(b));
    let mut found = Vec::new();
    for (side, other, record, level) in in_a
        .difference(&in_b)
        .map(|level| ("A", "B", a, level))
        .chain(in_b.difference(&in_a).map(|level| ("B", "A", b, level)))
    {
        let measured = record
            .contradictions
            .iter()
            .find(|contradiction| contradiction.level.as_str() == level)
            .map_or("", |contradiction| contradiction.measured.as_str());
        let sentence = format!(
            "In {side} measurement contradicts the report on the level '{level}', in {other} it does not. {measured}"
        );
        let values = [json!(side == "A"), json!(side == "B")];
        let [in_a, in_b] = values;
        found.push(Difference::new(
            "contradiction",
            Some(level),
            in_a,
            in_b,
            sentence.trim_end().to_owned(),
        ));
    }
    found
}

fn find_common_cpus(a: &Measured, b: &Measured) -> CpuSet {
    let cpus = |measured: &Measured| -> CpuSet { measured.cpus.iter().copied().collect() };
    cpus(a).intersection(&cpus(b))
}

fn find_level<'a>(measured: &'a Measured, kind: &str) -> Option<&'a MeasuredLevel> {
    measured
        .levels
        .iter()
        .find(|level| level.kind.as_str() == kind)
}

fn list_level_kinds<'a>(a: &'a Measured, b: &'a Measured) -> BTreeSet<&'a str> {
    let levels = a.levels.iter().chain(&b.levels);
    levels.map(|level| level.kind.as_str()).collect()
}

/// Compares the groups of each level, among the CPUs that were measured in both.
fn compare_levels(a: &Measured, b: &Measured) -> Vec<Difference> {
    let common = find_common_cpus(a, b);
    let groups = |measured: &Measured, kind: &str| -> BTreeSet<CpuSet> {
        let of_kind = measured
            .levels
            .iter()
            .filter(|level| level.kind.as_str() == kind);
        let lists = of_kind.flat_map(|level| &level.groups);
        lists
            .filter_map(|list| list.parse::<CpuSet>().ok())
            .map(|group| group.intersection(&common))
            .filter(|group| group.len() > 1)
            .collect()
    };
    list_level_kinds(a, b)
        .into_iter()
        .filter_map(|kind| {
            compare_groups("measured_level", kind, &groups(a, kind), &groups(b, kind))
        })
        .collect()
}

/// Compares the typical latencies within the groups of each level.
fn compare_latencies(a: &Measured, b: &Measured) -> Vec<Difference> {
    list_level_kinds(a, b)
        .into_iter()
        .filter_map(|kind| {
            let (in_a, in_b) = (
                find_level(a, kind)?.inside_ns,
                find_level(b, kind)?.inside_ns,
            );
            let ratio = in_b / in_a;
            is_changed(in_a, in_b).then(|| {
                let sentence = format!(
                    "Within a {} a cache line takes {in_a:.1} ns in A and {in_b:.1} ns in B, {}.",
                    unit_noun(kind),
                    describe_ratio(ratio)
                );
                Difference::new("latency", Some(kind), json!(in_a), json!(in_b), sentence)
                    .with_values([in_a, in_b].map(describe_ns))
            })
        })
        .collect()
}

/// Is the ratio of two figures beyond [`MIN_RATIO`]? No if a figure is not a number.
fn is_changed(a: f64, b: f64) -> bool {
    // A difference of logarithms does not overflow, and is symmetric.
    let change = (b.ln() - a.ln()).abs();
    change.is_finite() && change > MIN_RATIO.ln()
}

fn describe_ratio(ratio: f64) -> String {
    if ratio >= 1.0 {
        format!("{ratio:.2} times as long")
    } else {
        format!("{:.2} times faster", 1.0 / ratio)
    }
}

/// Do the medians differ beyond their intervals? No if an interval is unknown.
fn has_changed(a: &Median, b: &Median) -> bool {
    let (Some(low_a), Some(high_a)) = (a.low, a.high) else {
        return false;
    };
    let (Some(low_b), Some(high_b)) = (b.low, b.high) else {
        return false;
    };
    (high_a < low_b || high_b < low_a) && is_changed(a.value, b.value)
}

/// A pair with its latency in A and in B, ns.
struct ChangedPair {
    cpus: (usize, usize),
    a: f64,
    b: f64,
}

/// Compares the latencies of all pairs; the changed ones become one difference.
fn compare_pairs(a: &Measured, b: &Measured) -> Option<Difference> {
    let (in_a, in_b) = (index_by_cpus(&a.pairs), index_by_cpus(&b.pairs));
    let both: Vec<(&PairRecord, &PairRecord)> = in_a
        .iter()
        .filter_map(|(cpus, pair)| Some((*pair, *in_b.get(cpus)?)))
        .collect();
    let mut changed: Vec<ChangedPair> = both
        .iter()
        .filter_map(|(in_a, in_b)| find_largest_change(in_a, in_b))
        .collect();
    if changed.is_empty() {
        return None;
    }
    let factor = |pair: &ChangedPair| (pair.b / pair.a).ln().abs();
    changed.sort_by(|one, other| factor(other).total_cmp(&factor(one)));
    let shown: Vec<String> = changed
        .iter()
        .map(|pair| {
            format!(
                "CPUs {} and {} from {:.1} to {:.1} ns",
                pair.cpus.0, pair.cpus.1, pair.a, pair.b
            )
        })
        .collect();
    let sentence = format!(
        "Of {} measured in both, {} changed from A to B beyond their intervals and by more than {MIN_RATIO} times: {}.",
        count(both.len(), "pair"),
        changed.len(),
        join_first(&shown)
    );
    let side = |latency: fn(&ChangedPair) -> f64| {
        let figures = changed
            .iter()
            .map(|pair| json!({"a": pair.cpus.0, "b": pair.cpus.1, "latency_ns": latency(pair)}));
        figures.collect::<Vec<_>>()
    };
    let values = [json!(side(|pair| pair.a)), json!(side(|pair| pair.b))];
    let [in_a, in_b] = values;
    let side = |latency: fn(&ChangedPair) -> f64| {
        let figures = changed.iter().map(|pair| {
            let ChangedPair { cpus: (a, b), .. } = pair;
            format!("{a} and {b} {}", describe_ns(latency(pair)))
        });
        join_first(&figures.collect::<Vec<_>>())
    };
    let values = [side(|pair| pair.a), side(|pair| pair.b)];
    Some(Difference::new("pairs", None, in_a, in_b, sentence).with_values(values))
}

/// Pairs by their CPUs, the smaller first; of several records the first.
fn index_by_cpus(pairs: &[PairRecord]) -> BTreeMap<(usize, usize), &PairRecord> {
    let mut known = BTreeMap::new();
    for pair in pairs {
        let cpus = (pair.a.min(pair.b), pair.a.max(pair.b));
        known.entry(cpus).or_insert(pair);
    }
    known
}

/// The largest change of a pair's latency over the home nodes of the cache line; `None` if none
/// changed.
fn find_largest_change(a: &PairRecord, b: &PairRecord) -> Option<ChangedPair> {
    let latency_for_home = |pair: &PairRecord, home: Option<usize>| {
        let latencies = pair.latency_ns.iter();
        latencies.copied().find(|latency| latency.home_node == home)
    };
    let homes: BTreeSet<Option<usize>> = a.latency_ns.iter().map(|l| l.home_node).collect();
    let homes = homes.into_iter().filter_map(|home| {
        let (in_a, in_b) = (
            latency_for_home(a, home)?.median,
            latency_for_home(b, home)?.median,
        );
        has_changed(&in_a, &in_b).then_some((in_a.value, in_b.value))
    });
    let factor = |pair: &(f64, f64)| (pair.1 / pair.0).ln().abs();
    let (in_a, in_b) = homes.max_by(|one, other| factor(one).total_cmp(&factor(other)))?;
    Some(ChangedPair {
        cpus: (a.a.min(a.b), a.a.max(a.b)),
        a: in_a,
        b: in_b,
    })
}

/// Compares the cost of the spin-wait hint: CPUs on which it rose, and those on which it fell.
fn compare_pause(a: &Measured, b: &Measured) -> Vec<Difference> {
    let (in_a, in_b) = (index_by_cpu(&a.pause), index_by_cpu(&b.pause));
    let mut changes: [Vec<(usize, f64, f64)>; 2] = [Vec::new(), Vec::new()];
    for (cpu, before) in &in_a {
        if let Some(after) = in_b.get(cpu).filter(|after| has_changed(before, after)) {
            let is_slower = after.value > before.value;
            changes[usize::from(is_slower)].push((*cpu, before.value, after.value));
        }
    }
    let shown = changes.into_iter().filter(|change| !change.is_empty());
    shown.map(|change| {
        let cpus: CpuSet = change.iter().map(|(cpu, ..)| *cpu).collect();
        let in_a = lower_median(change.iter().map(|(_, a, _)| *a).collect());
        let in_b = lower_median(change.iter().map(|(.., b)| *b).collect());
        let sentence = format!(
            "A spin-wait hint (PAUSE) on CPUs {cpus} takes {in_a:.1} ns in A and {in_b:.1} ns in B, {}.",
            describe_ratio(in_b / in_a)
        );
        Difference::new("pause", None, json!(in_a), json!(in_b), sentence)
            .with_values([in_a, in_b].map(describe_ns))
    })
    .collect()
}

/// Costs by CPU; of several records the first.
fn index_by_cpu(records: &[PauseRecord]) -> BTreeMap<usize, Median> {
    let mut known = BTreeMap::new();
    for record in records {
        known.entry(record.cpu).or_insert(record.pause_ns);
    }
    known
}

/// The median; the lower one of two in the middle.
fn lower_median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values
        .get(values.len().saturating_sub(1) / 2)
        .copied()
        .unwrap_or(f64::NAN)
}

/// Reports if the wiring of only one of the machines changed while it was measured.
fn compare_drift(a: &Measured, b: &Measured) -> Option<Difference> {
    let (in_a, in_b) = (a.drift.as_ref()?, b.drift.as_ref()?);
    ((in_a.changes == 0) != (in_b.changes == 0)).then(|| {
        let shown = |changes: usize, seconds: f64| {
            format!("{} in {seconds:.0} s", count(changes, "change"))
        };
        let sentence = format!(
            "While they were watched, the wiring of A had {}, that of B {}.",
            shown(in_a.changes, in_a.watched_s),
            shown(in_b.changes, in_b.watched_s)
        );
        Difference::new(
            "drift",
            None,
            json!(in_a.changes),
            json!(in_b.changes),
            sentence,
        )
    })
}
