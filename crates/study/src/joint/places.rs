//! The joint placements that are searched: for each program a set of CPUs, shared or disjoint.
//!
//! They follow the machine's structure: the CPUs are cut into at most a dozen and a half units of
//! whole cores, which programs get side by side, spread over caches, or one hyper-thread of each.
//! Plans that only exchange equal units of the machine are one plan.

use std::collections::{BTreeMap, BTreeSet};

use pinwise_placement::Placement;
use pinwise_placement::space::Space;
use pinwise_topology::{Cpu, CpuSet, Level, Topology};

/// The CPUs of each program.
pub(super) type Place = Vec<CpuSet>;

/// More plans are not considered: the model's cost grows with their square.
const MAX_PLANS: usize = 256;
/// Units that the CPUs are cut into for two programs, three …
const MAX_UNITS: [usize; 5] = [16, 10, 8, 8, 8];
/// From this many programs on, only some of their divisions into two groups are tried.
const MANY: usize = 5;

/// All plans, without placement (all programs share all CPUs) first.
pub(super) fn plans(topology: &Topology, programs: usize) -> Vec<Place> {
    let all = &topology.allowed;
    let units = units(topology, programs);
    let spread = spread(&units, topology);
    let mut plans = vec![vec![all.clone(); programs]];
    for order in orders(programs) {
        partition(&units, &order, &mut plans);
    }
    partition(&spread, &(0..programs).collect::<Vec<_>>(), &mut plans);
    divide(&units, programs, &mut plans);
    for program in 0..programs {
        for count in 1..units.len() {
            let mut plan = vec![all.clone(); programs];
            plan[program] = CpuSet::union_of(&units[..count]);
            plans.push(plan);
        }
    }
    split_cores(topology, programs, &mut plans);
    let (tree, mut seen) = (Tree::new(topology), BTreeSet::new());
    plans.retain(|plan| plan.iter().all(|cpus| !cpus.is_empty()));
    plans.retain(|plan| seen.insert(tree.canonical(plan)));
    plans.truncate(MAX_PLANS);
    plans
}

/// Groups of neighbouring cores in the order of the machine's tree.
fn units(topology: &Topology, programs: usize) -> Vec<CpuSet> {
    let most = MAX_UNITS[programs.clamp(2, 6) - 2];
    let cores = cores(topology, programs);
    let caches = topology.units(Level::Llc).len().max(1);
    let of_cache = cores.len().div_ceil(caches).max(1);
    // Units that straddle no cache, if possible.
    let sizes = cores.len().div_ceil(most.max(1))..=cores.len();
    let fits = |size: &usize| of_cache.is_multiple_of(*size) || size.is_multiple_of(of_cache);
    let size = sizes.clone().find(fits).unwrap_or(*sizes.start());
    cores.chunks(size.max(1)).map(CpuSet::union_of).collect()
}

/// Allowed cores in the order of the machine's tree; single CPUs if there are hardly any cores.
fn cores(topology: &Topology, programs: usize) -> Vec<CpuSet> {
    let allowed = |unit: &CpuSet| unit.intersection(&topology.allowed);
    let mut cores: Vec<CpuSet> = topology.units(Level::Core).iter().map(allowed).collect();
    cores.retain(|core| !core.is_empty());
    if cores.len() < 2 * programs {
        cores = topology.allowed.iter().map(CpuSet::single).collect();
    }
    let place = |core: &CpuSet| {
        let cpu = core.first().and_then(|first| topology.cpu(first));
        cpu.map(|cpu| (cpu.package, cpu.numa_node, cpu.llc, cpu.core))
    };
    cores.sort_by_key(place);
    cores
}

/// The same units, one cache after the other in turns.
fn spread(units: &[CpuSet], topology: &Topology) -> Vec<CpuSet> {
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

/// Orders of programs along the units; of more than three only the given one.
fn orders(programs: usize) -> Vec<Vec<usize>> {
    match programs {
        3 => vec![vec![0, 1, 2], vec![1, 0, 2], vec![0, 2, 1]],
        many => vec![(0..many).collect()],
    }
}

/// Every program gets neighbouring units of its own.
fn partition(units: &[CpuSet], order: &[usize], plans: &mut Vec<Place>) {
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

/// Two groups of programs get units of their own, and share those.
fn divide(units: &[CpuSet], programs: usize, plans: &mut Vec<Place>) {
    // The same with both groups exchanged is met at another count.
    for group in 1..(1usize << programs) - 1 {
        let members = group.count_ones() as usize;
        let is_single = members == 1;
        if group & 1 == 0 && !is_single || members == programs - 1 && programs > 2 {
            continue;
        }
        for count in 1..units.len() {
            let is_tried = programs < MANY || is_single || 2 * count == units.len();
            if !is_tried || programs >= MANY && count > units.len() / 2 {
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

/// Two groups of programs get a hyper-thread each of every core.
fn split_cores(topology: &Topology, programs: usize, plans: &mut Vec<Place>) {
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

/// Plans that differ from this one by a few cores of one cache, which one program gives to another,
/// shares with it, or leaves.
pub(super) fn neighbours(plan: &Place, topology: &Topology) -> Vec<Place> {
    let cores = cores(topology, plan.len());
    let mut caches = topology.units(Level::Llc);
    if caches.is_empty() {
        caches.push(topology.allowed.clone());
    }
    let mut found: Vec<Place> = Vec::new();
    for cache in &caches {
        let inside: Vec<&CpuSet> = cores.iter().filter(|c| c.is_subset(cache)).collect();
        for from in 0..plan.len() {
            let own = inside.iter().filter(|core| core.intersects(&plan[from]));
            let own: Vec<CpuSet> = own.map(|core| (*core).clone()).collect();
            for count in STEPS.into_iter().filter(|&count| count <= own.len()) {
                // From either end: what is beside them may differ.
                for part in [&own[..count], &own[own.len() - count..]] {
                    found.extend(moves(plan, from, &CpuSet::union_of(part)));
                }
            }
        }
    }
    found
}

/// Cores that are moved at once.
const STEPS: [usize; 3] = [1, 2, 4];

/// What can be done with CPUs of a program.
fn moves(plan: &Place, from: usize, cpus: &CpuSet) -> Vec<Place> {
    let mut left = plan.clone();
    left[from] = left[from].difference(cpus);
    let mut found = Vec::new();
    for to in (0..plan.len()).filter(|&to| to != from) {
        for base in [plan, &left] {
            let mut moved = base.clone();
            moved[to] = moved[to].union(cpus);
            found.push(moved);
        }
    }
    let is_used = (0..plan.len()).any(|other| other != from && cpus.is_subset(&plan[other]));
    if is_used {
        found.push(left);
    }
    found.retain(|moved| moved != plan && moved.iter().all(|cpus| !cpus.is_empty()));
    found
}

/// The machine's tree, to recognise plans that differ only by the exchange of equal units.
pub(super) struct Tree {
    /// Each allowed CPU, the units around it from outside, and its kind.
    cpus: Vec<(usize, [usize; 4], Option<usize>)>,
    /// Bytes of each last-level cache.
    sizes: Vec<Option<u64>>,
}

/// The cache among the units around a CPU.
const LLC: usize = 2;

impl Tree {
    pub(super) fn new(topology: &Topology) -> Self {
        let cpus = topology.cpus.iter().filter(|cpu| cpu.allowed);
        let around = |cpu: &Cpu| {
            let units = [cpu.package, cpu.numa_node, cpu.llc, cpu.core];
            units.map(|unit| unit.unwrap_or(0))
        };
        let size = |llc: &CpuSet| {
            let own = topology.caches.iter().filter(|cache| cache.cpus == *llc);
            own.filter_map(|cache| cache.size_bytes).max()
        };
        Self {
            cpus: cpus.map(|cpu| (cpu.id, around(cpu), cpu.kind)).collect(),
            sizes: topology.llcs.iter().map(size).collect(),
        }
    }

    /// Equal for plans that differ only by the exchange of equal units: the texts of units, sorted,
    /// are that of the unit around them.
    pub(super) fn canonical(&self, plan: &[CpuSet]) -> String {
        let mut texts: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
        for (cpu, around, kind) in &self.cpus {
            let users = plan.iter().map(|cpus| u8::from(cpus.contains(*cpu)));
            let users: String = users.map(|user| user.to_string()).collect();
            let text = kind.map_or(users.clone(), |kind| format!("{users}k{kind}"));
            texts.entry(around.to_vec()).or_default().push(text);
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

/// The name of a program's CPUs that `--place` takes.
pub(super) fn placement(cpus: &CpuSet, topology: &Topology, space: &Space) -> Placement {
    if *cpus == topology.allowed {
        return Placement::os_default();
    }
    let named = space
        .occupancy(cpus)
        .map(|occupancy| space.placement(&occupancy));
    let is_it = |name: &Placement| {
        name.realise(topology)
            .is_ok_and(|place| place.cpus == *cpus)
    };
    named.filter(is_it).unwrap_or_else(|| {
        let list = format!("cpu:{cpus}");
        list.parse().unwrap_or_else(|_| Placement::os_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(machine: &str, programs: usize) -> Vec<Place> {
        let topology = Topology::from_synthetic(machine).unwrap();
        let plans = plans(&topology, programs);
        let tree = Tree::new(&topology);
        let all: BTreeSet<String> = plans.iter().map(|p| tree.canonical(p)).collect();
        assert_eq!(all.len(), plans.len(), "equal plans are merged");
        assert!(plans[0].iter().all(|cpus| *cpus == topology.allowed));
        let fits = |cpus: &CpuSet| !cpus.is_empty() && cpus.is_subset(&topology.allowed);
        assert!(plans.iter().flatten().all(fits));
        plans
    }

    #[test]
    fn two_programs_on_two_cpus_share_or_part() {
        let texts: Vec<String> = found("package:1 core:2 pu:1", 2)
            .iter()
            .map(|plan| format!("{} {}", plan[0], plan[1]))
            .collect();
        assert_eq!(texts, ["0-1 0-1", "0 1", "0 0-1", "0-1 0"]);
    }

    #[test]
    fn every_machine_has_plans_and_not_too_many() {
        for machine in [
            "package:1 core:1 pu:2",
            "package:1 l3:1 core:4 pu:2",
            "package:2 l3:4 core:4 pu:2",
            "package:2 numa:4 l3:3 core:8 pu:2",
            "package:1 l3:1 core:48 pu:1",
        ] {
            for programs in 2..=6 {
                let plans = found(machine, programs);
                assert!(plans.len() <= MAX_PLANS);
                let cpus = plans[0][0].len();
                let is_partition = |plan: &&Place| {
                    let sizes: usize = plan.iter().map(CpuSet::len).sum();
                    sizes == cpus && CpuSet::union_of(plan.iter()) == plans[0][0]
                };
                let has = plans.iter().any(|plan| is_partition(&plan));
                assert!(has || programs > cpus, "{machine}: {programs}");
            }
        }
    }

    #[test]
    fn units_straddle_no_cache() {
        let topology = Topology::from_synthetic("package:2 l3:3 core:8 pu:2").unwrap();
        for programs in 2..=6 {
            let units = units(&topology, programs);
            let most = MAX_UNITS[programs - 2];
            assert!(units.len() <= most && units.len() >= 6, "{}", units.len());
            let caches = topology.units(Level::Llc);
            let inside = |unit: &CpuSet| caches.iter().any(|cache| unit.is_subset(cache));
            assert!(units.iter().all(inside));
        }
    }

    #[test]
    fn neighbours_differ_by_a_few_cores() {
        let topology = Topology::from_synthetic("package:1 l3:2 core:4 pu:2").unwrap();
        for plan in plans(&topology, 3) {
            let near = neighbours(&plan, &topology);
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
    fn names_stand_for_the_cpus() {
        let topology = Topology::from_synthetic("package:1 l3:2 core:4 pu:2").unwrap();
        let space = Space::from_topology(&topology);
        for plan in plans(&topology, 3) {
            for cpus in plan {
                let name = placement(&cpus, &topology, &space);
                assert_eq!(name.realise(&topology).unwrap().cpus, cpus, "{name}");
            }
        }
    }
}
