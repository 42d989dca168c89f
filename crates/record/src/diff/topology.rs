//! Compares the topologies that the systems report.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{Difference, join_first, unit_noun};
use crate::{CacheKind, CpuRecord, MachineRecord, NodeRecord, TopologyRecord};
use pinwise_format::{count, round_bytes};
use pinwise_topology::CpuSet;

/// Memory of a node may differ by this share without being reported: kernels
/// reserve more or less of it.
const MEMORY_TOLERANCE: f64 = 0.01;

pub(super) fn compare_reports(a: &TopologyRecord, b: &TopologyRecord) -> Vec<Difference> {
    let mut found = compare_identity(&a.machine, &b.machine);
    found.extend(compare_counts(a, b));
    found.extend(compare_cpu_sets(a, b));
    found.extend(compare_units(a, b));
    found.extend(compare_kinds(a, b));
    found.extend(compare_cache_sizes(a, b));
    found.extend(compare_nodes(&a.numa_nodes, &b.numa_nodes));
    found
}

fn compare_identity(a: &MachineRecord, b: &MachineRecord) -> Vec<Difference> {
    let signature = |machine: &MachineRecord| {
        let number = |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |v| v.to_string());
        let numbers = [
            machine.cpu_family,
            machine.cpu_model_number,
            machine.cpu_stepping,
        ];
        let is_reported = numbers.iter().any(Option::is_some);
        is_reported.then(|| numbers.map(number).join("/"))
    };
    let names = [
        (
            "cpu_model",
            "processor",
            a.cpu_model.clone(),
            b.cpu_model.clone(),
        ),
        ("arch", "architecture", a.arch.clone(), b.arch.clone()),
        (
            "vendor",
            "processor vendor",
            a.vendor.clone(),
            b.vendor.clone(),
        ),
        (
            "hypervisor",
            "hypervisor",
            a.hypervisor.clone(),
            b.hypervisor.clone(),
        ),
        (
            "cpu_signature",
            "processor's family/model/stepping",
            signature(a),
            signature(b),
        ),
        (
            "microcode",
            "microcode",
            a.microcode.clone(),
            b.microcode.clone(),
        ),
        ("kernel", "kernel", a.kernel.clone(), b.kernel.clone()),
    ];
    let differing = names.into_iter().filter(|(_, _, in_a, in_b)| in_a != in_b);
    differing
        .map(|(what, noun, in_a, in_b)| {
            let shown = |value: &Option<String>| match value {
                // The rest describes the simulated machine.
                Some(text) if what == "cpu_model" && text.starts_with("simulated '") => {
                    "simulated".to_owned()
                }
                Some(text) => text.clone(),
                None if what == "hypervisor" => "none".to_owned(),
                None => "unknown".to_owned(),
            };
            let sentence = format!(
                "The {noun} is {} in A and {} in B.",
                shown(&in_a),
                shown(&in_b)
            );
            let values = [&in_a, &in_b].map(shown);
            Difference::new(what, None, json!(in_a), json!(in_b), sentence).with_values(values)
        })
        .collect()
}

fn compare_counts(a: &TopologyRecord, b: &TopologyRecord) -> Vec<Difference> {
    let (in_a, in_b) = (&a.counts, &b.counts);
    let levels = [
        ("cpu", in_a.cpus, in_b.cpus),
        ("core", in_a.cores, in_b.cores),
        ("llc", in_a.llcs, in_b.llcs),
        ("numa_node", in_a.numa_nodes, in_b.numa_nodes),
        ("package", in_a.packages, in_b.packages),
    ];
    let differing = levels.into_iter().filter(|(_, in_a, in_b)| in_a != in_b);
    differing
        .map(|(level, in_a, in_b)| {
            let sentence = format!("A may use {}, B {in_b}.", count(in_a, unit_noun(level)));
            Difference::new("counts", Some(level), json!(in_a), json!(in_b), sentence)
        })
        .collect()
}

/// Compares the online and allowed CPUs, and the limits on CPU time.
fn compare_cpu_sets(a: &TopologyRecord, b: &TopologyRecord) -> Vec<Difference> {
    let mut found = Vec::new();
    let sets = [
        ("online", "online", &a.online, &b.online),
        ("allowed", "allowed", &a.allowed, &b.allowed),
    ];
    for (what, word, in_a, in_b) in sets {
        if in_a != in_b {
            let shown = |list: &String| match list.as_str() {
                "" => "none".to_owned(),
                list => list.to_owned(),
            };
            let sentence = format!(
                "CPUs {word} are {} in A and {} in B.",
                shown(in_a),
                shown(in_b)
            );
            found.push(Difference::new(
                what,
                None,
                json!(in_a),
                json!(in_b),
                sentence,
            ));
        }
    }
    let quota = |record: &TopologyRecord| record.quota.as_ref().map(|quota| quota.cpus);
    let (in_a, in_b) = (quota(a), quota(b));
    if in_a != in_b && !(is_nan(in_a) && is_nan(in_b)) {
        let shown = |quota: Option<f64>| {
            quota.map_or_else(
                || "not limited".to_owned(),
                |cpus| format!("limited to {cpus:.2} CPUs' worth"),
            )
        };
        let sentence = format!("CPU time is {} in A and {} in B.", shown(in_a), shown(in_b));
        found.push(Difference::new(
            "quota",
            None,
            json!(in_a),
            json!(in_b),
            sentence,
        ));
    }
    found
}

fn is_nan(value: Option<f64>) -> bool {
    value.is_some_and(f64::is_nan)
}

/// The unit of a CPU at a level.
type UnitOf = fn(&CpuRecord) -> Option<usize>;

/// Compares which CPUs share a unit, among those that are online in both.
fn compare_units(a: &TopologyRecord, b: &TopologyRecord) -> Vec<Difference> {
    let online = |record: &TopologyRecord| -> CpuSet {
        let cpus = record.cpus.iter().filter(|cpu| cpu.online);
        cpus.map(|cpu| cpu.cpu).collect()
    };
    let common = online(a).intersection(&online(b));
    let levels: [(&str, UnitOf); 4] = [
        ("package", |cpu| cpu.package),
        ("numa_node", |cpu| cpu.numa_node),
        ("llc", |cpu| cpu.llc),
        ("core", |cpu| cpu.core),
    ];
    levels
        .into_iter()
        .filter_map(|(level, unit)| {
            let (in_a, in_b) = (
                group_by_unit(a, &common, unit),
                group_by_unit(b, &common, unit),
            );
            compare_groups("units", level, &in_a, &in_b)
        })
        .collect()
}

fn group_by_unit(record: &TopologyRecord, within: &CpuSet, unit: UnitOf) -> BTreeSet<CpuSet> {
    let mut groups: BTreeMap<usize, CpuSet> = BTreeMap::new();
    for cpu in record.cpus.iter().filter(|cpu| within.contains(cpu.cpu)) {
        if let Some(index) = unit(cpu) {
            groups.entry(index).or_default().insert(cpu.cpu);
        }
    }
    groups.into_values().collect()
}

/// Reports the groups of a level that are not in both.
pub(super) fn compare_groups(
    what: &str,
    level: &str,
    a: &BTreeSet<CpuSet>,
    b: &BTreeSet<CpuSet>,
) -> Option<Difference> {
    let only = |one: &BTreeSet<CpuSet>, other: &BTreeSet<CpuSet>| -> Vec<String> {
        let mut groups: Vec<&CpuSet> = one.difference(other).collect();
        groups.sort_by_key(|group| group.first());
        groups.iter().map(ToString::to_string).collect()
    };
    let (only_a, only_b) = (only(a, b), only(b, a));
    if only_a.is_empty() && only_b.is_empty() {
        return None;
    }
    let claim = match (what, level) {
        ("units", _) => format!("Other CPUs share a {}", unit_noun(level)),
        (_, "smt") => "Measurement finds other SMT siblings".to_owned(),
        (_, "llc" | "package") => format!("Measurement finds other {}s", unit_noun(level)),
        _ => format!("Measurement finds other groups of the level '{level}'"),
    };
    let sentence = format!(
        "{claim}: {} in A, {} in B.",
        join_first(&only_a),
        join_first(&only_b)
    );
    let difference = Difference::new(what, Some(level), json!(only_a), json!(only_b), sentence);
    let of_both = |groups: &[String]| format!("{}, of those in both", groups.join("; "));
    // A CPU alone shares nothing.
    let is_alone = |group: &String| !group.contains(['-', ',']);
    Some(
        match [&only_a, &only_b].map(|only| only.iter().all(is_alone)) {
            [true, false] => difference.with_values(["none".to_owned(), of_both(&only_b)]),
            [false, true] => difference.with_values([of_both(&only_a), "none".to_owned()]),
            _ => difference,
        },
    )
}

fn compare_kinds(a: &TopologyRecord, b: &TopologyRecord) -> Option<Difference> {
    let shown = |record: &TopologyRecord| -> Vec<String> {
        let kinds = record.kinds.iter();
        kinds
            .map(|kind| format!("{} {}", kind.name, kind.cpus))
            .collect()
    };
    let (in_a, in_b) = (shown(a), shown(b));
    (in_a != in_b).then(|| {
        let sentence = format!(
            "The kinds of CPUs are {} in A and {} in B.",
            join_first(&in_a),
            join_first(&in_b)
        );
        Difference::new("kinds", None, json!(in_a), json!(in_b), sentence)
    })
}

/// Sizes in bytes by level and type, then by CPU; `None` if unknown.
type CacheSizes = BTreeMap<(u8, CacheKind), BTreeMap<usize, Option<u64>>>;

fn index_cache_sizes(record: &TopologyRecord, within: &CpuSet) -> CacheSizes {
    let mut sizes = CacheSizes::new();
    for cache in &record.caches {
        let cpus: CpuSet = cache.cpus.parse().unwrap_or_default();
        let of_level = sizes.entry((cache.level, cache.kind.clone())).or_default();
        for cpu in cpus.intersection(within).iter() {
            of_level.insert(cpu, cache.size_bytes);
        }
    }
    sizes
}

fn compare_cache_sizes(a: &TopologyRecord, b: &TopologyRecord) -> Vec<Difference> {
    let cpus = |record: &TopologyRecord| -> CpuSet {
        let online = record.cpus.iter().filter(|cpu| cpu.online);
        online.map(|cpu| cpu.cpu).collect()
    };
    let common = cpus(a).intersection(&cpus(b));
    let (in_a, in_b) = (index_cache_sizes(a, &common), index_cache_sizes(b, &common));
    let levels: BTreeSet<&(u8, CacheKind)> = in_a.keys().chain(in_b.keys()).collect();
    let mut found = Vec::new();
    for level in levels {
        // CPUs with the same change are reported together.
        let mut changes: BTreeMap<[Option<Option<u64>>; 2], CpuSet> = BTreeMap::new();
        for cpu in common.iter() {
            let size = |sizes: &CacheSizes| sizes.get(level).and_then(|of| of.get(&cpu)).copied();
            let pair = [size(&in_a), size(&in_b)];
            if pair[0] != pair[1] {
                changes.entry(pair).or_default().insert(cpu);
            }
        }
        let changed = changes.into_iter();
        found.extend(changed.map(|(sizes, cpus)| describe_cache_change(level, sizes, &cpus)));
    }
    found
}

fn describe_cache_change(
    (level, kind): &(u8, CacheKind),
    [a, b]: [Option<Option<u64>>; 2],
    cpus: &CpuSet,
) -> Difference {
    let shown = |size: Option<Option<u64>>| match size {
        None => "absent".to_owned(),
        Some(None) => "of unknown size".to_owned(),
        Some(Some(bytes)) => round_bytes(bytes),
    };
    let sentence = format!(
        "The L{level} {kind} cache of CPUs {cpus} is {} in A and {} in B.",
        shown(a),
        shown(b)
    );
    let name = format!("l{level}");
    let [in_a, in_b] = [json!(a.flatten()), json!(b.flatten())];
    let words = Difference::new("cache_size", Some(&name), in_a, in_b, sentence);
    Difference {
        name: format!("L{level} {kind} cache, each"),
        ..words.with_values([shown(a), shown(b)])
    }
}

fn compare_nodes(a: &[NodeRecord], b: &[NodeRecord]) -> Vec<Difference> {
    let find =
        |nodes: &[NodeRecord], number: usize| nodes.iter().find(|n| n.node == number).cloned();
    let numbers: BTreeSet<usize> = a.iter().chain(b).map(|node| node.node).collect();
    let mut found = Vec::new();
    for number in numbers {
        let (in_a, in_b) = (find(a, number), find(b, number));
        let (Some(node_a), Some(node_b)) = (&in_a, &in_b) else {
            let side = if in_a.is_some() { "A" } else { "B" };
            let sentence = format!("NUMA node {number} is in {side} only.");
            let (there_a, there_b) = (json!(in_a.is_some()), json!(in_b.is_some()));
            found.push(Difference::new(
                "numa_node",
                None,
                there_a,
                there_b,
                sentence,
            ));
            continue;
        };
        let (bytes_a, bytes_b) = (node_a.memory_bytes, node_b.memory_bytes);
        if !is_alike(bytes_a, bytes_b) {
            let shown =
                |bytes: Option<u64>| bytes.map_or_else(|| "unknown".to_owned(), round_bytes);
            let sentence = format!(
                "Memory of NUMA node {number} is {} in A and {} in B.",
                shown(bytes_a),
                shown(bytes_b)
            );
            let values: [Value; 2] = [json!(bytes_a), json!(bytes_b)];
            let [a, b] = values;
            let words = Difference::new("memory", None, a, b, sentence);
            found.push(Difference {
                name: format!("memory of NUMA node {number}"),
                ..words.with_values([shown(bytes_a), shown(bytes_b)])
            });
        }
    }
    found
}

fn is_alike(a: Option<u64>, b: Option<u64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.abs_diff(b) as f64 <= MEMORY_TOLERANCE * a.max(b) as f64,
        _ => a == b,
    }
}
