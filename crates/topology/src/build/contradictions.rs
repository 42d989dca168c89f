//! Finds units that cannot be as they are reported, warns, and takes the likelier reading.

use std::collections::BTreeSet;

use crate::{Cache, CpuSet, NumaNode, Warning};

/// No core spans packages: if one is reported to, each package gets its part.
pub(super) fn split_cores_at_packages(
    cores: Vec<CpuSet>,
    packages: &[CpuSet],
    warnings: &mut Vec<Warning>,
) -> Vec<CpuSet> {
    let mut found = Vec::new();
    let homes = map_cpus_to_units(packages);
    let split = |core: CpuSet| -> Vec<CpuSet> {
        let parts = split_by_unit(&core, packages, &homes);
        if parts.len() < 2 {
            return vec![core];
        }
        found.push(format!(
            "CPUs {core} are reported as one core over {} packages, which is impossible: taken as one in each.",
            parts.len()
        ));
        let in_no_package = parts.iter().fold(core, |rest, part| rest.difference(part));
        parts
            .into_iter()
            .chain(in_no_package.iter().map(CpuSet::single))
            .collect()
    };
    let mut cores: Vec<CpuSet> = cores.into_iter().flat_map(split).collect();
    push_folded(found, warnings);
    cores.sort_by_key(CpuSet::first);
    cores
}

/// Splits a set by unit; CPUs in no unit are left out.
fn split_by_unit(set: &CpuSet, units: &[CpuSet], homes: &[Option<usize>]) -> Vec<CpuSet> {
    let parts = units_around(set, homes)
        .into_iter()
        .map(|index| set.intersection(&units[index]));
    parts.collect()
}

/// The indices of the units that a set has CPUs of.
fn units_around(set: &CpuSet, homes: &[Option<usize>]) -> BTreeSet<usize> {
    let units = set.iter().filter_map(|cpu| homes.get(cpu).copied()?);
    units.collect()
}

/// Adds warnings of one kind, only the first two in full: a large machine may have one per CPU.
pub(super) fn push_folded(mut found: Vec<Warning>, warnings: &mut Vec<Warning>) {
    let rest = found.len().saturating_sub(MAX_ALIKE);
    found.truncate(MAX_ALIKE);
    if let Some(last) = found.last_mut().filter(|_| rest > 0) {
        last.push_str(&format!(" The same of {rest} more."));
    }
    warnings.append(&mut found);
}

/// Limits the warnings of one sort that are given in full.
const MAX_ALIKE: usize = 2;

/// The index of the unit of each CPU, by CPU number. Searching all units for each CPU took longer
/// on a large machine than reading half of its files.
pub(super) fn map_cpus_to_units(units: &[CpuSet]) -> Vec<Option<usize>> {
    let last = units.iter().filter_map(CpuSet::last).max();
    let mut homes = vec![None; last.map_or(0, |last| last + 1)];
    for (index, unit) in units.iter().enumerate() {
        for cpu in unit.iter() {
            homes[cpu].get_or_insert(index);
        }
    }
    homes
}

/// Warns if a unit of one level lies across units of another: both cannot be right.
pub(super) fn find_crossings(
    cores: &[CpuSet],
    llcs: &[CpuSet],
    nodes: &[NumaNode],
    packages: &[CpuSet],
) -> Vec<Warning> {
    let nodes: Vec<CpuSet> = nodes.iter().map(|node| node.cpus.clone()).collect();
    let level = |noun, units| ReportedLevel { noun, units };
    let [cores, llcs] = [level("core", cores), level("last-level cache", llcs)];
    let [nodes, packages] = [level("NUMA node", &nodes), level("package", packages)];
    let pairs = [
        (cores, llcs),
        (cores, nodes),
        (llcs, nodes),
        (nodes, packages),
    ];
    let found = pairs
        .into_iter()
        .filter_map(|(one, other)| find_crossing(one, other));
    found.collect()
}

/// The units of a level, as the system reports them.
#[derive(Clone, Copy)]
struct ReportedLevel<'a> {
    noun: &'a str,
    units: &'a [CpuSet],
}

fn find_crossing(one: ReportedLevel<'_>, others: ReportedLevel<'_>) -> Option<Warning> {
    let homes = map_cpus_to_units(others.units);
    let crosses = |unit: &CpuSet, other: &CpuSet| {
        unit.intersects(other) && !unit.is_subset(other) && !other.is_subset(unit)
    };
    let pairs = one.units.iter().flat_map(|unit| {
        let around = units_around(unit, &homes).into_iter();
        around.map(move |index| (unit, &others.units[index]))
    });
    let (unit, other) = pairs
        .into_iter()
        .find(|(unit, other)| crosses(unit, other))?;
    Some(format!(
        "The {} of CPUs {unit} and the {} of CPUs {other} overlap only in part: one of them is reported wrongly; both are kept.",
        one.noun, others.noun
    ))
}

/// No cache spans packages: if one is reported to, each package gets its part.
pub(super) fn split_caches_at_packages(
    caches: Vec<Cache>,
    packages: &[CpuSet],
    warnings: &mut Vec<Warning>,
) -> Vec<Cache> {
    let mut found = Vec::new();
    let homes = map_cpus_to_units(packages);
    let split = |cache: Cache| -> Vec<Cache> {
        let parts = split_by_unit(&cache.cpus, packages, &homes);
        if parts.len() < 2 {
            return vec![cache];
        }
        found.push(format!(
            "An L{} cache is reported to be shared by CPUs {} of {} packages, which is impossible: taken as one in each.",
            cache.level,
            cache.cpus,
            parts.len()
        ));
        let each = parts.into_iter().map(|cpus| Cache {
            cpus,
            ..cache.clone()
        });
        each.collect()
    };
    let caches = caches.into_iter().flat_map(split).collect();
    push_folded(found, warnings);
    caches
}

/// Warns of NUMA nodes with the same CPUs, or that overlap in part. Nodes may nest (memory at
/// several levels).
pub(super) fn find_overlap(nodes: &[NumaNode]) -> Option<Warning> {
    let pairs = nodes
        .iter()
        .enumerate()
        .flat_map(|(index, node)| nodes[..index].iter().map(move |other| (node, other)));
    for (node, other) in pairs {
        let is_nested = node.cpus.is_subset(&other.cpus) != other.cpus.is_subset(&node.cpus);
        if node.cpus.intersects(&other.cpus) && !is_nested {
            return Some(format!(
                "NUMA node {} claims CPUs {} that node {} claims too; all nodes are taken as one.",
                node.node, node.cpus, other.node
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests;
