//! Builds a topology from facts: groups CPUs into disjoint units at every level.
//!
//! Facts come from files that contradict each other on real machines: sibling lists that overlap,
//! NUMA nodes that all claim every CPU, hyper-threads with different core ids. The first consistent
//! reading wins; contradictions are reported.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Cache, CacheType, Cpu, CpuSet, Device, Identity, MemoryAttributes, NumaNode, Quota,
    Restriction, Topology, Warning, devices,
};

mod contradictions;
mod kinds;

use contradictions::{
    find_crossings, find_overlap, map_cpus_to_units, push_folded, split_caches_at_packages,
    split_cores_at_packages,
};
pub use kinds::KindFacts;
pub(super) use kinds::{CAPACITY_STEP, FREQUENCY_STEP, cache_speed, join_alike, sort_ranks};
use kinds::{group_kinds_by_caches, name_kinds};

/// Linux's maximum of NUMA nodes (the largest `MAX_NUMNODES`). They may nest, so this also bounds
/// the depth of the tree.
pub(super) const MAX_NODES: usize = 1024;

/// Facts about one CPU before units are formed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuFacts {
    /// Is it online?
    pub online: bool,
    /// CPUs reported in the same core, including itself.
    pub core: Option<CpuSet>,
    /// CPUs reported in the same package, including itself.
    pub package: Option<CpuSet>,
    /// The system's id of the core, unique only within its package or cluster.
    pub core_id: Option<i64>,
    /// The system's id of the package.
    pub package_id: Option<i64>,
}

/// Facts about a NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The operating system's number.
    pub node: usize,
    /// CPUs local to it.
    pub cpus: CpuSet,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Its memory's properties.
    pub attributes: MemoryAttributes,
}

/// Everything a reader found, before contradictions are resolved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// Names and versions.
    pub identity: Identity,
    /// All present CPUs by id.
    pub cpus: BTreeMap<usize, CpuFacts>,
    /// All caches, each once per distinct set of CPUs.
    pub caches: Vec<Cache>,
    /// NUMA nodes.
    pub nodes: Vec<NodeFacts>,
    /// Kinds of CPU in any order; fewer than two means all are alike.
    pub kinds: Vec<KindFacts>,
    /// CPUs by the speed that the firmware reports, in any order; fewer than two means no
    /// preference.
    pub ranks: Vec<KindFacts>,
    /// What restricts the CPUs of this process.
    pub restrictions: Vec<Restriction>,
    /// CPUs that the scheduler avoids.
    pub isolated: CpuSet,
    /// CPUs without a timer tick while they run one thread.
    pub nohz_full: CpuSet,
    /// Nodes that this process may allocate from; `None` for all.
    pub allowed_nodes: Option<BTreeSet<usize>>,
    /// Limit on CPU time.
    pub quota: Option<Quota>,
    /// Devices on the PCI bus, with their reported places.
    pub devices: Vec<Device>,
}

pub(super) fn build(facts: Facts) -> (Topology, Vec<Warning>) {
    let mut warnings = Vec::new();
    let online: CpuSet = facts
        .cpus
        .iter()
        .filter(|(_, cpu)| cpu.online)
        .map(|(&id, _)| id)
        .collect();
    let allowed = facts
        .restrictions
        .iter()
        .fold(online.clone(), |allowed, r| allowed.intersection(&r.leaves));

    let packages = group_packages(&facts, &online, &mut warnings);
    let cores = group_cores(&facts, &online, &mut warnings);
    let cores = split_cores_at_packages(cores, &packages, &mut warnings);
    let caches = drop_overlapping_caches(&facts.caches, &online, &mut warnings);
    let caches = split_caches_at_packages(caches, &packages, &mut warnings);
    let llcs = group_last_level_domains(&caches, &mut warnings);
    let numa_nodes = group_numa_nodes(&facts, &online, &mut warnings);
    let kinds = match facts.kinds.len() {
        0 | 1 => group_kinds_by_caches(&caches, &online),
        _ => facts.kinds,
    };
    let kinds = name_kinds(kinds, &online);
    let ranks = sort_ranks(facts.ranks, &online);
    let devices = devices::complete(facts.devices, &online, &numa_nodes, &mut warnings);

    if let Some(quota) = facts
        .quota
        .as_ref()
        .filter(|q| q.cpus > allowed.len() as f64)
    {
        warnings.push(format!(
            "The limit of {} CPUs in {} exceeds the {} that this process may use: it has no effect.",
            quota.cpus,
            quota.source,
            allowed.len()
        ));
    }
    warnings.extend(find_crossings(&cores, &llcs, &numa_nodes, &packages));
    let isolated = facts.isolated.intersection(&online);
    let nohz_full = facts.nohz_full.intersection(&online);
    let mut topology = Topology {
        identity: facts.identity,
        cpus: Vec::new(),
        cores,
        llcs,
        packages,
        numa_nodes,
        caches,
        kinds,
        ranks,
        online,
        allowed,
        quota: facts.quota,
        restrictions: facts.restrictions,
        isolated,
        nohz_full,
        devices: devices.into(),
        links: Vec::new(),
    };
    let homes =
        [&topology.cores, &topology.llcs, &topology.packages].map(|units| map_cpus_to_units(units));
    topology.cpus = facts
        .cpus
        .iter()
        .map(|(&id, cpu)| build_cpu(&topology, &homes, id, cpu.online))
        .collect();
    (topology, warnings)
}

fn build_cpu(topology: &Topology, homes: &[Vec<Option<usize>>; 3], id: usize, online: bool) -> Cpu {
    let [core, llc, package] = [0, 1, 2].map(|level| homes[level].get(id).copied().flatten());
    Cpu {
        id,
        core,
        llc,
        numa_node: smallest_node(topology, id),
        package,
        kind: topology
            .kinds
            .iter()
            .position(|kind| kind.cpus.contains(id)),
        smt_rank: core
            .and_then(|core| topology.cores[core].iter().position(|cpu| cpu == id))
            .unwrap_or(0),
        online,
        allowed: topology.allowed.contains(id),
    }
}

/// The innermost NUMA node of a CPU, as an index.
fn smallest_node(topology: &Topology, id: usize) -> Option<usize> {
    let nodes = topology.numa_nodes.iter().enumerate();
    nodes
        .filter(|(_, node)| node.cpus.contains(id))
        .min_by_key(|(_, node)| node.cpus.len())
        .map(|(index, _)| index)
}

/// Groups the reported siblings that are online, and splits them where their core ids differ (the
/// kernel calls both halves of an AMD Bulldozer module siblings, yet gives them two core ids).
/// Unknown ids split nothing.
fn group_cores(facts: &Facts, online: &CpuSet, warnings: &mut Vec<Warning>) -> Vec<CpuSet> {
    let mut claims = Vec::new();
    for id in online.iter() {
        let Some(siblings) = &facts.cpus[&id].core else {
            continue;
        };
        let core_id = facts.cpus[&id].core_id;
        let same: CpuSet = siblings
            .intersection(online)
            .iter()
            .filter(|cpu| match (facts.cpus[cpu].core_id, core_id) {
                (Some(other), Some(id)) => other == id,
                _ => true,
            })
            .collect();
        claims.push((id, same.union(&CpuSet::single(id))));
    }
    let mut cores = disjoint_units("core", claims, warnings);
    // A CPU that reports no siblings is in the core that lists it, or alone.
    let grouped: CpuSet = cores.iter().flat_map(CpuSet::iter).collect();
    cores.extend(online.difference(&grouped).iter().map(CpuSet::single));
    cores.sort_by_key(CpuSet::first);
    cores
}

fn group_packages(facts: &Facts, online: &CpuSet, warnings: &mut Vec<Warning>) -> Vec<CpuSet> {
    let claims: Vec<(usize, CpuSet)> = online
        .iter()
        .filter_map(|id| Some((id, facts.cpus[&id].package.clone()?.intersection(online))))
        .collect();
    if claims.is_empty() && !online.is_empty() {
        return vec![online.clone()];
    }
    let units = disjoint_units("package", claims, warnings);
    let mut ids = online.iter().map(|id| facts.cpus[&id].package_id);
    let first = ids.next().flatten();
    if units.len() > 1 && first.is_some() && ids.all(|id| id == first) {
        warnings.push(format!(
            "The lists of CPUs make {} packages, but all CPUs have one package id: taken as one package.",
            units.len()
        ));
        return vec![online.clone()];
    }
    units
}

/// Keeps the first of overlapping claims. A CPU whose own claim is dropped is in no unit of that
/// level, or alone if every CPU must have one.
fn disjoint_units(
    noun: &str,
    claims: Vec<(usize, CpuSet)>,
    warnings: &mut Vec<Warning>,
) -> Vec<CpuSet> {
    let mut units: Vec<CpuSet> = Vec::new();
    let mut unit_of: BTreeMap<usize, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for (id, mut claim) in claims {
        if unit_of.get(&id).is_some_and(|&unit| units[unit] == claim) {
            continue;
        }
        if claim.iter().any(|cpu| unit_of.contains_key(&cpu)) {
            found.push(format!(
                "CPU {id} is reported to share a {noun} with CPUs {claim}, which contradicts what another CPU says; ignored."
            ));
            if noun != "core" || unit_of.contains_key(&id) {
                continue;
            }
            claim = CpuSet::single(id);
        }
        unit_of.extend(claim.iter().map(|cpu| (cpu, units.len())));
        units.push(claim);
    }
    push_folded(found, warnings);
    units.sort_by_key(CpuSet::first);
    units
}

fn drop_overlapping_caches(
    caches: &[Cache],
    online: &CpuSet,
    warnings: &mut Vec<Warning>,
) -> Vec<Cache> {
    let mut kept: Vec<Cache> = Vec::new();
    let mut found = Vec::new();
    // Maps a CPU to its kept cache: large machines have too many to compare all.
    let mut cache_of: BTreeMap<(u8, CacheType, usize), usize> = BTreeMap::new();
    for cache in caches {
        let mut cache = cache.clone();
        cache.cpus = cache.cpus.intersection(online);
        let (level, kind) = (cache.level, cache.kind);
        let key = |cpu: usize| (level, kind, cpu);
        let Some(first) = cache.cpus.first() else {
            continue;
        };
        let known = cache_of.get(&key(first));
        if known.is_some_and(|&index| kept[index].cpus == cache.cpus) {
            continue;
        }
        let is_taken = |cpu| cache_of.contains_key(&key(cpu));
        if cache.cpus.iter().any(is_taken) {
            found.push(format!(
                "An L{} cache is reported to be shared by CPUs {}, which overlaps another L{}; ignored.",
                cache.level, cache.cpus, cache.level
            ));
            continue;
        }
        cache_of.extend(cache.cpus.iter().map(|cpu| (key(cpu), kept.len())));
        kept.push(cache);
    }
    push_folded(found, warnings);
    kept.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    kept
}

/// Groups CPUs by their outermost data cache.
fn group_last_level_domains(caches: &[Cache], warnings: &mut Vec<Warning>) -> Vec<CpuSet> {
    let mut outermost: BTreeMap<usize, &Cache> = BTreeMap::new();
    for cache in caches.iter().filter(|c| c.kind != CacheType::Instruction) {
        for cpu in cache.cpus.iter() {
            let known = outermost.entry(cpu).or_insert(cache);
            if cache.level >= known.level {
                *known = cache;
            }
        }
    }
    let claims: Vec<(usize, CpuSet)> = outermost
        .into_iter()
        .map(|(id, cache)| (id, cache.cpus.clone()))
        .collect();
    disjoint_units("last-level cache", claims, warnings)
}

fn group_numa_nodes(facts: &Facts, online: &CpuSet, warnings: &mut Vec<Warning>) -> Vec<NumaNode> {
    let mut nodes: Vec<NumaNode> = facts
        .nodes
        .iter()
        .map(|node| NumaNode {
            node: node.node,
            cpus: node.cpus.intersection(online),
            memory_bytes: node.memory_bytes,
            attributes: MemoryAttributes {
                near: node.attributes.near.intersection(online),
                ..node.attributes.clone()
            },
            allowed: facts
                .allowed_nodes
                .as_ref()
                .is_none_or(|allowed| allowed.contains(&node.node)),
        })
        .collect();
    nodes.sort_by_key(|node| node.node);
    nodes.dedup_by(|next, node| {
        let is_repeated = next.node == node.node;
        if is_repeated {
            warnings.push(format!(
                "NUMA node {} is described twice; the second, with CPUs {}, is ignored.",
                node.node, next.cpus
            ));
        }
        is_repeated
    });
    if nodes.len() > MAX_NODES {
        warnings.push(format!(
            "{} NUMA nodes are more than any system has ({MAX_NODES}); all nodes are taken as one.",
            nodes.len()
        ));
        nodes.clear();
    }
    if let Some(warning) = find_overlap(&nodes) {
        warnings.push(warning);
        nodes.clear();
    }
    if nodes.is_empty() && !online.is_empty() {
        nodes.push(NumaNode {
            node: 0,
            cpus: online.clone(),
            memory_bytes: None,
            attributes: MemoryAttributes::default(),
            allowed: true,
        });
    }
    nodes
}
