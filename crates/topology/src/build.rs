//! Facts to topology: groups CPUs into disjoint units at every level.
//!
//! Facts come from files that contradict each other on real machines: sibling
//! lists that overlap, NUMA nodes that all claim every CPU, hyper-threads with
//! different core ids. The first consistent reading wins, the rest is reported.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Cache, CacheType, Cpu, CpuKind, CpuSet, Device, Identity, NumaNode, Quota, Restriction,
    Topology, Warning, devices,
};

/// Linux has no more NUMA nodes (`MAX_NUMNODES` where it is largest). They may
/// stand within each other, so this also bounds the depth of the tree.
pub(super) const MOST_NODES: usize = 1024;

/// What is known of one CPU before units are formed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuFacts {
    /// Is it switched on?
    pub online: bool,
    /// CPUs said to be in the same core, itself included.
    pub core: Option<CpuSet>,
    /// CPUs said to be in the same package, itself included.
    pub package: Option<CpuSet>,
    /// The system's id of the core, unique only within its package or cluster.
    pub core_id: Option<i64>,
}

/// What is known of a NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeFacts {
    /// The operating system's number.
    pub node: usize,
    /// CPUs local to it.
    pub cpus: CpuSet,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
}

/// CPUs of one kind and how fast it is, in any unit that grows with speed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindFacts {
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Larger is faster; only the order counts.
    pub speed: u64,
}

/// Everything a reader found, before it is made consistent.
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
    /// Who takes CPUs away.
    pub restrictions: Vec<Restriction>,
    /// Nodes that this process may allocate from; `None` for all.
    pub allowed_nodes: Option<BTreeSet<usize>>,
    /// Limit on CPU time.
    pub quota: Option<Quota>,
    /// Devices on the PCI bus, with what the system says of their place.
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
        .fold(online.clone(), |left, r| left.intersection(&r.leaves));

    let cores = cores(&facts, &online, &mut warnings);
    let packages = packages(&facts, &online, &mut warnings);
    let caches = consistent_caches(&facts.caches, &online, &mut warnings);
    let llcs = last_level_domains(&caches, &mut warnings);
    let numa_nodes = numa_nodes(&facts, &online, &mut warnings);
    let kinds = kinds(facts.kinds, &online);
    let devices = devices::complete(facts.devices, &online, &numa_nodes, &mut warnings);

    let mut topology = Topology {
        identity: facts.identity,
        cpus: Vec::new(),
        cores,
        llcs,
        packages,
        numa_nodes,
        caches,
        kinds,
        online,
        allowed,
        quota: facts.quota,
        restrictions: facts.restrictions,
        devices: devices.into(),
        links: Vec::new(),
    };
    let homes = [&topology.cores, &topology.llcs, &topology.packages].map(|units| homes(units));
    topology.cpus = facts
        .cpus
        .iter()
        .map(|(&id, cpu)| describe(&topology, &homes, id, cpu.online))
        .collect();
    (topology, warnings)
}

/// The unit of each CPU, by number. Looking through all units for each took a
/// large machine longer than reading half of its files.
fn homes(units: &[CpuSet]) -> Vec<Option<usize>> {
    let last = units.iter().filter_map(CpuSet::last).max();
    let mut homes = vec![None; last.map_or(0, |last| last + 1)];
    for (index, unit) in units.iter().enumerate() {
        for cpu in unit.iter() {
            homes[cpu].get_or_insert(index);
        }
    }
    homes
}

fn describe(topology: &Topology, homes: &[Vec<Option<usize>>; 3], id: usize, online: bool) -> Cpu {
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

/// Cores: the reported siblings, cut to online CPUs, and split where their
/// core ids differ (the kernel calls both halves of an AMD Bulldozer module
/// siblings, yet gives them two core ids). An id that is not known splits none.
fn cores(facts: &Facts, online: &CpuSet, warnings: &mut Vec<Warning>) -> Vec<CpuSet> {
    let mut claims = Vec::new();
    for id in online.iter() {
        let Some(siblings) = &facts.cpus[&id].core else {
            continue;
        };
        let own_core_id = facts.cpus[&id].core_id;
        let same: CpuSet = siblings
            .intersection(online)
            .iter()
            .filter(|cpu| match (facts.cpus[cpu].core_id, own_core_id) {
                (Some(id), Some(own)) => id == own,
                _ => true,
            })
            .collect();
        claims.push((id, same.union(&CpuSet::single(id))));
    }
    let mut cores = disjoint_units("core", claims, warnings);
    // Who says nothing is where others say, or alone.
    let listed: CpuSet = cores.iter().flat_map(CpuSet::iter).collect();
    cores.extend(online.difference(&listed).iter().map(CpuSet::single));
    cores.sort_by_key(CpuSet::first);
    cores
}

fn packages(facts: &Facts, online: &CpuSet, warnings: &mut Vec<Warning>) -> Vec<CpuSet> {
    let claims: Vec<(usize, CpuSet)> = online
        .iter()
        .filter_map(|id| Some((id, facts.cpus[&id].package.clone()?.intersection(online))))
        .collect();
    if claims.is_empty() && !online.is_empty() {
        return vec![online.clone()];
    }
    disjoint_units("package", claims, warnings)
}

/// Keeps the first of overlapping claims. A CPU whose own claim is dropped
/// stands in no unit of that level, or alone where every CPU must have one.
fn disjoint_units(
    noun: &str,
    claims: Vec<(usize, CpuSet)>,
    warnings: &mut Vec<Warning>,
) -> Vec<CpuSet> {
    let mut units: Vec<CpuSet> = Vec::new();
    let mut unit_of: BTreeMap<usize, usize> = BTreeMap::new();
    for (id, mut claim) in claims {
        if unit_of.get(&id).is_some_and(|&unit| units[unit] == claim) {
            continue;
        }
        if claim.iter().any(|cpu| unit_of.contains_key(&cpu)) {
            warnings.push(format!(
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
    units.sort_by_key(CpuSet::first);
    units
}

fn consistent_caches(caches: &[Cache], online: &CpuSet, warnings: &mut Vec<Warning>) -> Vec<Cache> {
    let mut kept: Vec<Cache> = Vec::new();
    // Which of the kept a CPU has: large machines have too many to compare all.
    let mut cache_of: BTreeMap<(u8, CacheType, usize), usize> = BTreeMap::new();
    for cache in caches {
        let mut cache = cache.clone();
        cache.cpus = cache.cpus.intersection(online);
        let (level, kind) = (cache.level, cache.kind);
        let key = |cpu: usize| (level, kind, cpu);
        let Some(first) = cache.cpus.first() else {
            continue;
        };
        let of_first = cache_of.get(&key(first));
        if of_first.is_some_and(|&index| kept[index].cpus == cache.cpus) {
            continue;
        }
        let is_taken = |cpu| cache_of.contains_key(&key(cpu));
        if cache.cpus.iter().any(is_taken) {
            warnings.push(format!(
                "An L{} cache is reported to be shared by CPUs {}, which overlaps another L{}; ignored.",
                cache.level, cache.cpus, cache.level
            ));
            continue;
        }
        cache_of.extend(cache.cpus.iter().map(|cpu| (key(cpu), kept.len())));
        kept.push(cache);
    }
    kept.sort_by_key(|cache| (cache.level, cache.kind, cache.cpus.first()));
    kept
}

/// Each CPU's outermost data cache; CPUs with the same one form a domain.
fn last_level_domains(caches: &[Cache], warnings: &mut Vec<Warning>) -> Vec<CpuSet> {
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

fn numa_nodes(facts: &Facts, online: &CpuSet, warnings: &mut Vec<Warning>) -> Vec<NumaNode> {
    let mut nodes: Vec<NumaNode> = facts
        .nodes
        .iter()
        .map(|node| NumaNode {
            node: node.node,
            cpus: node.cpus.intersection(online),
            memory_bytes: node.memory_bytes,
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
    if nodes.len() > MOST_NODES {
        warnings.push(format!(
            "{} NUMA nodes are more than any system has ({MOST_NODES}); all nodes are taken as one.",
            nodes.len()
        ));
        nodes.clear();
    }
    if let Some(warning) = overlap_of(&nodes) {
        warnings.push(warning);
        nodes.clear();
    }
    if nodes.is_empty() && !online.is_empty() {
        nodes.push(NumaNode {
            node: 0,
            cpus: online.clone(),
            memory_bytes: None,
            allowed: true,
        });
    }
    nodes
}

/// Nodes may stand within others (memory at several levels), but two must not
/// claim the same CPUs, or some of each other's.
fn overlap_of(nodes: &[NumaNode]) -> Option<Warning> {
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

fn kinds(mut facts: Vec<KindFacts>, online: &CpuSet) -> Vec<CpuKind> {
    for kind in &mut facts {
        kind.cpus = kind.cpus.intersection(online);
    }
    facts.retain(|kind| !kind.cpus.is_empty());
    if facts.len() < 2 {
        return Vec::new();
    }
    facts.sort_by_key(|kind| kind.speed);
    let last = facts.len() - 1;
    facts
        .into_iter()
        .enumerate()
        .map(|(rank, kind)| CpuKind {
            name: match rank {
                0 => "E",
                rank if rank == last => "P",
                _ => "M",
            }
            .to_owned(),
            cpus: kind.cpus,
        })
        .collect()
}
