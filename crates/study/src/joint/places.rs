//! The plans that a search considers: for each program a set of CPUs, shared or disjoint.
//!
//! The first plans follow the machine's structure: the CPUs are cut into at most 16 units of whole
//! cores, which programs get side by side or spread over caches; or they get one hyper-thread of each
//! core. Plans that differ only by exchanging equal units of the machine count as one.

use std::collections::{BTreeMap, BTreeSet};

use pinwise_placement::Placement;
use pinwise_placement::space::Space;
use pinwise_topology::{Cpu, CpuSet, Level, Topology};

/// The CPUs of each program.
pub(super) type Place = Vec<CpuSet>;

/// Maximum number of first plans: the time to learn grows with their square.
const MAX_PLANS: usize = 256;
/// Maximum number of units for two, three … six programs.
const MAX_UNITS: [usize; 5] = [16, 10, 8, 8, 8];
/// From this many programs on, only some of their divisions into two groups are tried.
const MANY_PROGRAMS: usize = 5;

/// The first plans; the one without placement (all programs share all CPUs) comes first.
pub(super) fn list_first_plans(topology: &Topology, programs: usize) -> Vec<Place> {
    let all = &topology.allowed;
    let units = cut_into_units(topology, programs);
    let spread = interleave_caches(&units, topology);
    let mut plans = vec![vec![all.clone(); programs]];
    for order in list_orders(programs) {
        add_partitions(&units, &order, &mut plans);
    }
    add_partitions(&spread, &(0..programs).collect::<Vec<_>>(), &mut plans);
    add_divisions(&units, programs, &mut plans);
    for program in 0..programs {
        for count in 1..units.len() {
            let mut plan = vec![all.clone(); programs];
            plan[program] = CpuSet::union_of(&units[..count]);
            plans.push(plan);
        }
    }
    add_hyperthread_splits(topology, programs, &mut plans);
    let (tree, mut seen) = (Tree::new(topology), BTreeSet::new());
    plans.retain(|plan| plan.iter().all(|cpus| !cpus.is_empty()));
    plans.retain(|plan| seen.insert(tree.canonical_text(plan)));
    plans.truncate(MAX_PLANS);
    plans
}

/// Cuts the CPUs into groups of neighbouring cores, in the order of the machine's tree.
fn cut_into_units(topology: &Topology, programs: usize) -> Vec<CpuSet> {
    let max_units = MAX_UNITS[programs.clamp(2, 6) - 2];
    let cores = sort_cores(topology, programs);
    let caches = topology.units(Level::Llc).len().max(1);
    let per_cache = cores.len().div_ceil(caches).max(1);
    // If possible, no unit straddles two caches.
    let sizes = cores.len().div_ceil(max_units.max(1))..=cores.len();
    let fits = |size: &usize| per_cache.is_multiple_of(*size) || size.is_multiple_of(per_cache);
    let size = sizes.clone().find(fits).unwrap_or(*sizes.start());
    cores.chunks(size.max(1)).map(CpuSet::union_of).collect()
}

/// Allowed cores in the order of the machine's tree; single CPUs if there are fewer than two cores per
/// program.
fn sort_cores(topology: &Topology, programs: usize) -> Vec<CpuSet> {
    let allowed = |unit: &CpuSet| unit.intersection(&topology.allowed);
    let mut cores: Vec<CpuSet> = topology.units(Level::Core).iter().map(allowed).collect();
    cores.retain(|core| !core.is_empty());
    if cores.len() < 2 * programs {
        cores = topology.allowed.iter().map(CpuSet::single).collect();
    }
    let position = |core: &CpuSet| {
        let cpu = core.first().and_then(|first| topology.cpu(first));
        cpu.map(|cpu| (cpu.package, cpu.numa_node, cpu.llc, cpu.core))
    };
    cores.sort_by_key(position);
    cores
}

/// Reorders units so that neighbours are in different caches.
fn interleave_caches(units: &[CpuSet], topology: &Topology) -> Vec<CpuSet> {
    let cache = |unit: &CpuSet| {
        let cpu = unit.first().and_then(|first| topology.cpu(first));
        cpu.and_then(|cpu| cpu.llc)
    };
    let mut turns: Vec<(usize, usize)> = Vec::new();
    for (number, unit) in units.iter().enumerate() {
        let before = units[..number].iter();
        let turn = before.filter(|other| cache(other) == cache(unit)).count();
        turns.push((turn, number));
    }
    turns.sort_unstable();
    turns.iter().map(|&(_, n)| units[n].clone()).collect()
}

/// Orders of programs along the units: the three different ones for three programs, else only one.
fn list_orders(programs: usize) -> Vec<Vec<usize>> {
    match programs {
        3 => vec![vec![0, 1, 2], vec![1, 0, 2], vec![0, 2, 1]],
        many => vec![(0..many).collect()],
    }
}

/// Adds plans in which every program has neighbouring units of its own.
fn add_partitions(units: &[CpuSet], order: &[usize], plans: &mut Vec<Place>) {
    fn cut(units: &[CpuSet], order: &[usize], plan: &mut Place, plans: &mut Vec<Place>) {
        match order {
            [] => {}
            [last] => {
                plan[*last] = CpuSet::union_of(units);
                plans.push(plan.clone());
            }
            [first, rest @ ..] => {
                for count in 1..=units.len().saturating_sub(rest.len()) {
                    plan[*first] = CpuSet::union_of(&units[..count]);
                    cut(&units[count..], rest, plan, plans);
                }
            }
        }
    }
    cut(units, order, &mut vec![CpuSet::new(); order.len()], plans);
}

/// Adds plans in which programs form two groups, each of which shares units of its own.
fn add_divisions(units: &[CpuSet], programs: usize, plans: &mut Vec<Place>) {
    // Exchanging the groups gives the same plans with another count.
    for group in 1..(1usize << programs) - 1 {
        let members = group.count_ones() as usize;
        let is_single = members == 1;
        if group & 1 == 0 && !is_single || members == programs - 1 && programs > 2 {
            continue;
        }
        for count in 1..units.len() {
            let is_tried = programs < MANY_PROGRAMS || is_single || 2 * count == units.len();
            if !is_tried || programs >= MANY_PROGRAMS && count > units.len() / 2 {
                continue;
            }
            let (own, rest) = units.split_at(count);
            let side = |program: usize| match group >> program & 1 {
                1 => CpuSet::union_of(own),
                _ => CpuSet::union_of(rest),
            };
            plans.push((0..programs).map(side).collect());
        }
    }
}

/// Adds plans in which programs form two groups, and each group has one hyper-thread of every core.
fn add_hyperthread_splits(topology: &Topology, programs: usize, plans: &mut Vec<Place>) {
    let is_first = |cpu: &usize| topology.cpu(*cpu).is_some_and(|cpu| cpu.smt_rank == 0);
    let (first, second): (Vec<usize>, Vec<usize>) = topology.allowed.iter().partition(is_first);
    let [first, second] = [first, second].map(|cpus| cpus.into_iter().collect::<CpuSet>());
    for group in 1..(1usize << programs) - 1 {
        let side = |program: usize| match group >> program & 1 {
            1 => first.clone(),
            _ => second.clone(),
        };
        if group & 1 == 1 {
            plans.push((0..programs).map(side).collect());
        }
    }
}

/// Plans that differ from this one by a single move: one program gives a few cores of one cache to
/// another, shares them with it, or leaves them.
pub(super) fn list_neighbours(plan: &Place, topology: &Topology) -> Vec<Place> {
    let cores = sort_cores(topology, plan.len());
    let mut caches = topology.units(Level::Llc);
    if caches.is_empty() {
        caches.push(topology.allowed.clone());
    }
    let mut neighbours: Vec<Place> = Vec::new();
    for cache in &caches {
        let inside: Vec<&CpuSet> = cores.iter().filter(|c| c.is_subset(cache)).collect();
        for from in 0..plan.len() {
            let own = inside.iter().filter(|core| core.intersects(&plan[from]));
            let own: Vec<CpuSet> = own.map(|core| (*core).clone()).collect();
            for count in STEPS.into_iter().filter(|&count| count <= own.len()) {
                // From either end, since the cores beside them may differ.
                for part in [&own[..count], &own[own.len() - count..]] {
                    neighbours.extend(move_cpus(plan, from, &CpuSet::union_of(part)));
                }
            }
        }
    }
    neighbours
}

/// Numbers of cores that are moved at once.
const STEPS: [usize; 3] = [1, 2, 4];

/// Plans in which program `from` gives these CPUs to another program, shares them with it, or leaves
/// them to a program that has them, too.
fn move_cpus(plan: &Place, from: usize, cpus: &CpuSet) -> Vec<Place> {
    let mut without = plan.clone();
    without[from] = without[from].difference(cpus);
    let mut plans = Vec::new();
    for to in (0..plan.len()).filter(|&to| to != from) {
        for base in [plan, &without] {
            let mut moved = base.clone();
            moved[to] = moved[to].union(cpus);
            plans.push(moved);
        }
    }
    let is_used = (0..plan.len()).any(|other| other != from && cpus.is_subset(&plan[other]));
    if is_used {
        plans.push(without);
    }
    plans.retain(|moved| moved != plan && moved.iter().all(|cpus| !cpus.is_empty()));
    plans
}

/// The machine's tree, to recognise plans that differ only by exchanging equal units.
pub(super) struct Tree {
    /// Allowed CPUs: number, units from the package down to the core, and kind.
    cpus: Vec<(usize, [usize; 4], Option<usize>)>,
    /// Bytes of each last-level cache.
    sizes: Vec<Option<u64>>,
}

/// Index of the last-level cache among a CPU's units.
const LLC: usize = 2;

impl Tree {
    pub(super) fn new(topology: &Topology) -> Self {
        let cpus = topology.cpus.iter().filter(|cpu| cpu.allowed);
        let units = |cpu: &Cpu| {
            let units = [cpu.package, cpu.numa_node, cpu.llc, cpu.core];
            units.map(|unit| unit.unwrap_or(0))
        };
        let size = |llc: &CpuSet| {
            let own = topology.caches.iter().filter(|cache| cache.cpus == *llc);
            own.filter_map(|cache| cache.size_bytes).max()
        };
        Self {
            cpus: cpus.map(|cpu| (cpu.id, units(cpu), cpu.kind)).collect(),
            sizes: topology.llcs.iter().map(size).collect(),
        }
    }

    /// A text that is equal for plans that differ only by exchanging equal units: the text of a unit
    /// is the sorted texts of its parts, and that of a CPU says which programs may use it.
    pub(super) fn canonical_text(&self, plan: &[CpuSet]) -> String {
        let mut texts: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        for (cpu, units, kind) in &self.cpus {
            let users = plan.iter().map(|cpus| u8::from(cpus.contains(*cpu)));
            let users: String = users.map(|user| user.to_string()).collect();
            let text = kind.map_or(users.clone(), |kind| format!("{users}k{kind}"));
            texts.entry(units.to_vec()).or_default().push(text);
        }
        for depth in (0..LLC + 2).rev() {
            let mut above: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
            for (path, mut inside) in texts {
                inside.sort_unstable();
                let size = self.sizes.get(path[depth]).filter(|_| depth == LLC);
                let size = size.copied().flatten().unwrap_or(0);
                let text = format!("{size}({})", inside.join(" "));
                above.entry(path[..depth].to_vec()).or_default().push(text);
            }
            texts = above;
        }
        let mut whole: Vec<String> = texts.into_values().flatten().collect();
        whole.sort_unstable();
        whole.join(" ")
    }
}

/// The placement that `--place` takes for a program's CPUs: by name if one means exactly these.
pub(super) fn describe_cpus(cpus: &CpuSet, topology: &Topology, space: &Space) -> Placement {
    if *cpus == topology.allowed {
        return Placement::os_default();
    }
    let named = space
        .occupancy(cpus)
        .map(|occupancy| space.placement(&occupancy));
    let is_exact = |name: &Placement| {
        name.realise(topology)
            .is_ok_and(|place| place.cpus == *cpus)
    };
    named.filter(is_exact).unwrap_or_else(|| {
        let list = format!("cpu:{cpus}");
        list.parse().unwrap_or_else(|_| Placement::os_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first plans, checked to be different, not empty, and within the allowed CPUs.
    fn check_plans(machine: &str, programs: usize) -> Vec<Place> {
        let topology = Topology::from_synthetic(machine).unwrap();
        let plans = list_first_plans(&topology, programs);
        let tree = Tree::new(&topology);
        let all: BTreeSet<String> = plans.iter().map(|p| tree.canonical_text(p)).collect();
        assert_eq!(all.len(), plans.len(), "equal plans are merged");
        assert!(plans[0].iter().all(|cpus| *cpus == topology.allowed));
        let fits = |cpus: &CpuSet| !cpus.is_empty() && cpus.is_subset(&topology.allowed);
        assert!(plans.iter().flatten().all(fits));
        plans
    }

    #[test]
    fn two_programs_on_two_cpus_share_or_split_them() {
        let texts: Vec<String> = check_plans("package:1 core:2 pu:1", 2)
            .iter()
            .map(|plan| format!("{} {}", plan[0], plan[1]))
            .collect();
        assert_eq!(texts, ["0-1 0-1", "0 1", "0 0-1", "0-1 0"]);
    }

    #[test]
    fn every_machine_has_a_partition_among_a_limited_number_of_plans() {
        for machine in [
            "package:1 core:1 pu:2",
            "package:1 l3:1 core:4 pu:2",
            "package:2 l3:4 core:4 pu:2",
            "package:2 numa:4 l3:3 core:8 pu:2",
            "package:1 l3:1 core:48 pu:1",
        ] {
            for programs in 2..=6 {
                let plans = check_plans(machine, programs);
                assert!(plans.len() <= MAX_PLANS);
                let cpus = plans[0][0].len();
                let is_partition = |plan: &&Place| {
                    let sizes: usize = plan.iter().map(CpuSet::len).sum();
                    sizes == cpus && CpuSet::union_of(plan.iter()) == plans[0][0]
                };
                let has_partition = plans.iter().any(|plan| is_partition(&plan));
                assert!(has_partition || programs > cpus, "{machine}: {programs}");
            }
        }
    }

    #[test]
    fn units_straddle_no_cache() {
        let topology = Topology::from_synthetic("package:2 l3:3 core:8 pu:2").unwrap();
        for programs in 2..=6 {
            let units = cut_into_units(&topology, programs);
            let max_units = MAX_UNITS[programs - 2];
            assert!((6..=max_units).contains(&units.len()), "{}", units.len());
            let caches = topology.units(Level::Llc);
            let inside = |unit: &CpuSet| caches.iter().any(|cache| unit.is_subset(cache));
            assert!(units.iter().all(inside));
        }
    }

    #[test]
    fn neighbours_differ_by_a_few_cores() {
        let topology = Topology::from_synthetic("package:1 l3:2 core:4 pu:2").unwrap();
        for plan in list_first_plans(&topology, 3) {
            let near = list_neighbours(&plan, &topology);
            assert!(near.len() <= 200, "{}", near.len());
            for other in near {
                assert!(other.iter().all(|cpus| !cpus.is_empty()));
                let changed = plan.iter().zip(&other).map(|(a, b)| {
                    let moved = a.difference(b).union(&b.difference(a));
                    assert!(moved.len() <= 8);
                    usize::from(!moved.is_empty())
                });
                assert!((1..=2).contains(&changed.sum::<usize>()));
            }
        }
    }

    #[test]
    fn placements_that_name_cpus_mean_exactly_these() {
        let topology = Topology::from_synthetic("package:1 l3:2 core:4 pu:2").unwrap();
        let space = Space::from_topology(&topology);
        for plan in list_first_plans(&topology, 3) {
            for cpus in plan {
                let name = describe_cpus(&cpus, &topology, &space);
                assert_eq!(name.realise(&topology).unwrap().cpus, cpus, "{name}");
            }
        }
    }
}
