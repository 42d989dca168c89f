//! Chooses CPUs for threads without measuring.
//!
//! Core before sibling, the fastest kind first, close together as long as every thread has its own
//! core, and evenly spread beyond that. CPU numbers only decide between equal units.

use std::collections::BTreeMap;

use pinwise_topology::{CpuSet, Level, Topology};

/// A candidate CPU for a thread.
#[derive(Debug, Clone)]
struct Candidate {
    cpu: usize,
    /// Position among the CPUs of its core.
    sibling: usize,
    /// 0 for the fastest kind.
    slowness: usize,
    /// Position of its core among those of its kind and last-level cache.
    turn: usize,
    /// Index of its last-level cache in the NUMA node.
    cache: usize,
    /// Index of its NUMA node in the package.
    node: usize,
    /// Package, NUMA node, last-level cache and core: CPUs next in this order are close together.
    path: [usize; 4],
}

/// Chooses CPUs for this many threads, each at most once and only allowed ones; those of
/// neighbouring threads are close together.
pub(super) fn choose(topology: &Topology, threads: usize) -> Vec<usize> {
    let cores = topology.allowed_units(Level::Core);
    let within = find_smallest_fitting_unit(topology, &cores, threads);
    let mut candidates = list_candidates(topology, &cores, &within);
    // Spread evenly: every cache of the machine gets one thread before any gets the next.
    candidates.sort_by_key(|c| (c.sibling, c.slowness, c.turn, c.cache, c.node, c.path));
    candidates.truncate(threads);
    candidates.sort_by_key(|c| (c.sibling, c.slowness, c.path));
    candidates
        .into_iter()
        .map(|candidate| candidate.cpu)
        .collect()
}

/// How many kinds are faster than this CPU's, among those that this process may use.
fn rank_slowness(topology: &Topology, cpu: usize) -> usize {
    let fastest = topology
        .kinds
        .iter()
        .rposition(|kind| kind.cpus.intersects(&topology.allowed));
    let kind = topology.cpu(cpu).and_then(|cpu| cpu.kind);
    match (fastest, kind) {
        (Some(fastest), Some(kind)) => fastest.saturating_sub(kind),
        _ => 0,
    }
}

/// The CPUs of the smallest unit that has a core of the fastest kind for every thread; all allowed
/// CPUs if no unit has.
fn find_smallest_fitting_unit(topology: &Topology, cores: &[CpuSet], threads: usize) -> CpuSet {
    let firsts: CpuSet = cores
        .iter()
        .filter_map(CpuSet::first)
        .filter(|&cpu| rank_slowness(topology, cpu) == 0)
        .collect();
    let llcs = topology.allowed_units(Level::Llc);
    let units = [Level::Llc, Level::Numa, Level::Package].map(|l| topology.allowed_units(l));
    let fitting = units
        .into_iter()
        .flatten()
        .map(|unit| (unit.intersection(&firsts).len(), unit))
        .filter(|&(cores, _)| cores >= threads)
        .min_by_key(|(cores, unit)| {
            // One cache is better than fewer cores in each of several.
            let is_in_one = llcs.iter().any(|llc| unit.is_subset(llc));
            (!is_in_one, *cores, unit.first())
        });
    fitting.map_or_else(|| topology.allowed.clone(), |(_, unit)| unit)
}

fn list_candidates(topology: &Topology, cores: &[CpuSet], within: &CpuSet) -> Vec<Candidate> {
    let mut turns: BTreeMap<([usize; 3], usize), usize> = BTreeMap::new();
    let mut caches: Numbering = Numbering::default();
    let mut nodes: Numbering = Numbering::default();
    let mut candidates = Vec::new();
    for core in cores {
        let core = core.intersection(within);
        let Some(cpu) = core.first().and_then(|first| topology.cpu(first)) else {
            continue;
        };
        let index = |unit: Option<usize>| unit.unwrap_or(0);
        let [package, node, cache] = [cpu.package, cpu.numa_node, cpu.llc].map(index);
        let slowness = rank_slowness(topology, cpu.id);
        let turn = turns.entry(([package, node, cache], slowness)).or_default();
        for (sibling, id) in core.iter().enumerate() {
            candidates.push(Candidate {
                cpu: id,
                sibling,
                slowness,
                turn: *turn,
                cache: caches.number([package, node], cache),
                node: nodes.number([package, 0], node),
                path: [package, node, cache, index(cpu.core)],
            });
        }
        *turn += 1;
    }
    candidates
}

/// Numbers the units inside each unit around them, in order of appearance.
#[derive(Default)]
struct Numbering {
    known: BTreeMap<([usize; 2], usize), usize>,
    next: BTreeMap<[usize; 2], usize>,
}

impl Numbering {
    fn number(&mut self, around: [usize; 2], unit: usize) -> usize {
        *self.known.entry((around, unit)).or_insert_with(|| {
            let next = self.next.entry(around).or_default();
            *next += 1;
            *next - 1
        })
    }
}
