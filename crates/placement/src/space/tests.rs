//! Placements up to the exchange of equal units, against brute force.

use std::collections::BTreeMap;

use num_bigint::BigUint;
use proptest::prelude::*;
use rand::SeedableRng;
use rand::seq::IteratorRandom;
use rand_chacha::ChaCha8Rng;

use super::*;
use pinwise_topology::{Cache, CacheType, Facts, KindFacts};

fn space(description: &str) -> Space {
    Space::from_topology(&Topology::from_synthetic(description).unwrap())
}

/// A random set of this many CPUs, uniformly drawn.
fn draw_occupancy(topology: &Topology, threads: usize, chance: &mut ChaCha8Rng) -> Occupancy {
    let cpus = topology.allowed.iter().sample(chance, threads);
    Space::from_topology(topology)
        .occupancy(&cpus.into_iter().collect())
        .unwrap()
}

fn total(space: &Space) -> BigUint {
    (0..=space.cpus()).map(|threads| space.count(threads)).sum()
}

#[track_caller]
fn check_counts(description: &str, all: u64, half: u64) {
    let space = space(description);
    assert_eq!(total(&space), BigUint::from(all), "{description}");
    let cores = space.cpus() / 2;
    assert_eq!(space.count(cores), BigUint::from(half), "{description}");
}

/// Closed forms: placements of all numbers of threads (including none), and of as many threads as
/// cores.
#[test]
fn placements_are_counted() {
    check_counts("core:8 pu:2", 45, 5);
    check_counts("package:2 core:8 pu:2", 1_035, 75);
    check_counts("package:2 core:18 pu:2", 18_145, 625);
    check_counts("package:2 core:64 pu:2", 2_301_585, 23_441);
    for (large, all) in [
        ("package:2 l3:8 core:8 pu:2", 2.8e17),
        ("package:2 numa:4 l3:2 core:8 pu:2", 1.2e21),
        ("package:2 l3:12 core:8 pu:2", 1.6e23),
    ] {
        let found: f64 = total(&space(large)).to_string().parse().unwrap();
        eprintln!("{large} {found}");
        assert!((found / all - 1.0).abs() < 0.04, "{large}: {found}");
    }
}

/// The table of the literature's machines has 14 for 2 x 18 x 2; 18 threads have 15: 9 to 18 cores
/// of one package, 5 to 9 of each of two.
#[test]
fn shapes_are_few() {
    for (description, most) in [
        ("core:8 pu:2", 5),
        ("package:2 core:8 pu:2", 8),
        ("package:2 core:18 pu:2", 15),
        ("package:2 core:64 pu:2", 50),
        ("package:2 l3:8 core:8 pu:2", 45),
        ("package:2 numa:4 l3:2 core:8 pu:2", 47),
        ("package:2 l3:12 core:8 pu:2", 65),
    ] {
        let space = space(description);
        let shapes = (1..=space.cpus()).map(|threads| space.list_even_placements(threads).len());
        assert_eq!(shapes.max(), Some(most), "{description}");
    }
}

fn names(space: &Space, threads: usize) -> Vec<String> {
    let shapes = space.shapes(threads);
    shapes.iter().map(|s| s.placement.to_string()).collect()
}

#[test]
fn shapes_have_names() {
    assert_eq!(
        names(&space("package:2 l3:2 core:2 pu:2"), 4),
        [
            "shape:pkg=1,llc=1,core=2,cpu=4",
            "shape:pkg=1,llc=2,core=2,cpu=4",
            "shape:pkg=1,llc=2,core=4,cpu=4",
            "shape:pkg=2,llc=2,core=2,cpu=4",
            "shape:pkg=2,llc=2,core=4,cpu=4",
            "shape:pkg=2,llc=4,core=4,cpu=4",
        ]
    );
    assert_eq!(names(&space("core:4 pu:1"), 3), ["shape:cpu=3"]);
    assert_eq!(names(&space("pu:1"), 1), ["shape:cpu=1"]);
}

/// Packages of LLCs of cores; a core is its kind and its CPUs.
type Cores = Vec<(u64, usize)>;
type Package = Vec<Cores>;

fn build_topology(packages: &[Package]) -> Topology {
    let mut facts = Facts::default();
    let mut kinds: BTreeMap<u64, CpuSet> = BTreeMap::new();
    let mut next = 0;
    for package in packages {
        let first = next;
        for cores in package {
            let first_of_llc = next;
            for &(kind, cpus) in cores {
                let core: CpuSet = (next..next + cpus).collect();
                for cpu in core.iter() {
                    let known = facts.cpus.entry(cpu).or_default();
                    known.online = true;
                    known.core = Some(core.clone());
                    kinds.entry(kind).or_default().insert(cpu);
                }
                next += cpus;
            }
            facts.caches.push(Cache {
                level: 3,
                kind: CacheType::Unified,
                size_bytes: None,
                cpus: (first_of_llc..next).collect(),
            });
        }
        for cpu in first..next {
            let known = facts.cpus.entry(cpu).or_default();
            known.package = Some((first..next).collect());
        }
    }
    let kind = |(speed, cpus)| KindFacts { cpus, speed };
    facts.kinds = kinds.into_iter().map(kind).collect();
    Topology::from_facts(facts).0
}

/// All multisets of things whose sizes sum to `total`.
fn multisets<T: Clone>(things: &[(usize, T)], total: usize) -> Vec<Vec<T>> {
    if total == 0 {
        return vec![Vec::new()];
    }
    let mut found = Vec::new();
    for (index, (size, thing)) in things.iter().enumerate() {
        if *size <= total {
            for mut rest in multisets(&things[index..], total - size) {
                rest.push(thing.clone());
                found.push(rest);
            }
        }
    }
    found
}

/// The same by total, from 1 on.
fn group_by_size<T: Clone>(things: &[(usize, T)], most: usize) -> Vec<(usize, Vec<T>)> {
    let sets_of_total = |total| {
        multisets(things, total)
            .into_iter()
            .map(move |set| (total, set))
    };
    (1..=most).flat_map(sets_of_total).collect()
}

/// Every machine of this many CPUs that is made of these cores.
fn machines(cores: &[(u64, usize)], cpus: usize, packages: bool) -> Vec<Topology> {
    let cores: Vec<(usize, (u64, usize))> = cores.iter().map(|core| (core.1, *core)).collect();
    let llcs = group_by_size(&cores, cpus);
    let of_packages = match packages {
        true => group_by_size(&llcs, cpus),
        false => llcs
            .iter()
            .map(|(n, llc)| (*n, vec![llc.clone()]))
            .collect(),
    };
    multisets(&of_packages, cpus)
        .iter()
        .map(|packages| build_topology(packages))
        .collect()
}

/// Checks everything about a machine against all sets of its CPUs.
fn check_by_brute_force(topology: &Topology) {
    let space = Space::from_topology(topology);
    let cpus: Vec<usize> = topology.allowed.iter().collect();
    let mut by_threads: Vec<BTreeSet<Occupancy>> = vec![BTreeSet::new(); cpus.len() + 1];
    for bits in 0..1usize << cpus.len() {
        let chosen = |(place, &cpu): (usize, &usize)| (bits >> place & 1 == 1).then_some(cpu);
        let set: CpuSet = cpus.iter().enumerate().filter_map(chosen).collect();
        by_threads[set.len()].insert(space.occupancy(&set).unwrap());
    }
    let mut ids = BTreeSet::new();
    for (threads, expected) in by_threads.iter().enumerate() {
        assert_eq!(space.count(threads), BigUint::from(expected.len()));
        let even = space.list_even_placements(threads);
        for occupancy in expected {
            assert_eq!(occupancy.threads, threads);
            assert!(ids.insert(space.id(occupancy)), "two placements of one id");
            let chosen = space.choose(occupancy);
            assert_eq!(space.occupancy(&chosen).as_ref(), Some(occupancy));
            let other = space.choose_beside(occupancy, &chosen);
            assert_eq!(space.occupancy(&other).as_ref(), Some(occupancy));
            if threads > 0 {
                let name = space.name_even(occupancy, &even).to_string();
                let parsed: Placement = name.parse().unwrap();
                assert_eq!(parsed.to_string(), name);
                let realised = parsed.realise(topology).unwrap();
                assert_eq!(realised.cpus, chosen, "{name}");
            }
        }
    }
}

#[test]
fn every_small_machine_is_counted_listed_and_named() {
    let mut all = Vec::new();
    for cpus in 1..=5 {
        all.extend(machines(&[(1, 1), (1, 2)], cpus, true));
        all.extend(machines(&[(1, 1), (2, 1), (2, 2)], cpus, false));
    }
    for cpus in 6..=8 {
        all.extend(machines(&[(1, 2), (1, 3)], cpus, true));
        all.extend(machines(&[(1, 1), (2, 2)], cpus, false));
    }
    assert!(all.len() > 300, "{}", all.len());
    for topology in &all {
        check_by_brute_force(topology);
    }
}

#[test]
fn every_even_machine_up_to_twelve_cpus_is_counted_listed_and_named() {
    let mut machines = 0;
    for packages in 1..=12 {
        for caches in 1..=12 / packages {
            for cores in 1..=12 / packages / caches {
                for cpus in 1..=12 / packages / caches / cores {
                    let text = format!("package:{packages} l3:{caches} core:{cores} pu:{cpus}");
                    check_by_brute_force(&Topology::from_synthetic(&text).unwrap());
                    machines += 1;
                }
            }
        }
    }
    assert_eq!(machines, 133);
}

#[test]
fn machines_of_twelve_cpus_are_counted_listed_and_named() {
    for description in [
        "package:2 l3:3 core:2 pu:1",
        "package:2 numa:2 core:3 pu:1",
        "l3:2 numa:3 core:1 pu:2",
        "core:3 pu:4",
        "pu:12",
    ] {
        check_by_brute_force(&Topology::from_synthetic(description).unwrap());
    }
    let hybrid = vec![vec![vec![(2, 2), (2, 2), (1, 1), (1, 1), (1, 1), (1, 1)]]];
    let uneven = vec![
        vec![vec![(1, 2); 3], vec![(1, 2)]],
        vec![vec![(1, 2), (1, 1)]],
    ];
    check_by_brute_force(&build_topology(&hybrid));
    check_by_brute_force(&build_topology(&uneven));
    let mut cut = Topology::from_synthetic("package:2 l3:2 core:2 pu:2").unwrap();
    cut.allowed = CpuSet::parse_list("1-7,10-14").unwrap();
    check_by_brute_force(&cut);
}

/// 13900K: 8 P cores of two CPUs and 16 E cores.
fn hybrid() -> Topology {
    let mut cores = vec![(2, 2); 8];
    cores.extend([(1, 1); 16]);
    build_topology(&[vec![cores]])
}

#[test]
fn kinds_of_core_are_not_exchanged() {
    let space = Space::from_topology(&hybrid());
    assert_eq!(total(&space), BigUint::from(45u32 * 17));
    let one: Vec<String> = space
        .shapes(1)
        .iter()
        .map(|shape| format!("{} {}", shape.placement, space.choose(&shape.occupancy)))
        .collect();
    assert_eq!(one, ["tree:1cP.1t 2", "tree:1cE 16"]);
    assert_eq!(
        names(&space, 8),
        [
            "shape:core=4,cpu=8",
            "shape:core=5,cpu=8",
            "tree:2cP+4cP.1t",
            "tree:2cP+4cE",
            "tree:1cP+6cP.1t",
            "tree:1cP+1cP.1t+5cE",
            "tree:8cP.1t",
            "tree:8cE",
            "tree:2cP.1t+6cE",
        ]
    );
}

#[test]
fn every_shape_of_every_machine_realises_to_itself() {
    let mut cut = Topology::from_synthetic("package:2 l3:2 core:8 pu:2").unwrap();
    cut.allowed = CpuSet::parse_list("0-18,32-40,45,47,60-63").unwrap();
    let large = "package:2 numa:2 l3:3 core:4 pu:2";
    for topology in [hybrid(), cut, Topology::from_synthetic(large).unwrap()] {
        let space = Space::from_topology(&topology);
        for threads in 1..=space.cpus() {
            let shapes = space.shapes(threads);
            assert!(
                !shapes.is_empty() && shapes.len() <= 200,
                "{}",
                shapes.len()
            );
            for Shaped {
                occupancy,
                placement,
            } in shapes
            {
                let name = placement.to_string();
                let parsed: Placement = name.parse().unwrap();
                let cpus = parsed.realise(&topology).unwrap().cpus;
                assert_eq!(cpus, space.choose(&occupancy), "{name}");
                assert_eq!(space.occupancy(&cpus), Some(occupancy), "{name}");
            }
        }
    }
}

/// The expected result of `neighbours`, by moving every CPU of a set to every free one.
fn list_neighbours(space: &Space, topology: &Topology, cpus: &CpuSet) -> BTreeSet<Occupancy> {
    let free = topology.allowed.difference(cpus);
    let mut found = BTreeSet::new();
    for from in cpus.iter() {
        for to in free.iter() {
            let set = cpus.difference(&CpuSet::single(from));
            found.insert(space.occupancy(&set.union(&CpuSet::single(to))).unwrap());
        }
    }
    found.remove(&space.occupancy(cpus).unwrap());
    found
}

#[test]
fn neighbours_are_one_move_away() {
    for topology in [
        hybrid(),
        Topology::from_synthetic("package:2 l3:2 core:3 pu:2").unwrap(),
        Topology::from_synthetic("package:2 numa:4 l3:2 core:8 pu:2").unwrap(),
    ] {
        let space = Space::from_topology(&topology);
        let mut chance = ChaCha8Rng::seed_from_u64(1);
        for threads in [1, 5, 11, space.cpus()] {
            let drawn = draw_occupancy(&topology, threads, &mut chance);
            let expected = list_neighbours(&space, &topology, &space.choose(&drawn));
            let found = space.neighbours(&drawn);
            assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
        }
    }
}

/// The numbering of most servers.
#[test]
fn renumbered_cpus_keep_ids_and_names() {
    let topology = Topology::from_synthetic("package:2 core:4 pu:2").unwrap();
    let other = "package:2 core:4 pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)";
    let other = Topology::from_synthetic(other).unwrap();
    let (plain, other) = (
        Space::from_topology(&topology),
        Space::from_topology(&other),
    );
    let mut chance = ChaCha8Rng::seed_from_u64(7);
    for threads in 1..=16 {
        assert_eq!(names(&plain, threads), names(&other, threads));
        for _ in 0..30 {
            let occupancy = draw_occupancy(&topology, threads, &mut chance);
            let same = other.occupancy(&other.choose(&occupancy)).unwrap();
            assert_eq!(other.id(&same), plain.id(&occupancy));
        }
    }
    let larger = space("package:2 core:5 pu:2");
    let one = |space: &Space| space.id(&space.shapes(1)[0].occupancy);
    assert_ne!(one(&plain), one(&larger));
}

#[test]
fn the_core_of_cpu_0_is_used_last() {
    let space = space("package:2 core:3 pu:2");
    let cpus = |name: &str| {
        let topology = Topology::from_synthetic("package:2 core:3 pu:2").unwrap();
        let placement: Placement = name.parse().unwrap();
        let cpus = placement.realise(&topology).unwrap().cpus;
        assert_eq!(cpus, space.choose(&space.occupancy(&cpus).unwrap()));
        cpus.to_string()
    };
    assert_eq!(cpus("shape:pkg=1,core=1,cpu=2"), "2-3");
    assert_eq!(cpus("shape:pkg=1,core=3,cpu=4"), "0,2-4");
    assert_eq!(cpus("tree:1p+1p.1c.1t"), "0-6");
    assert_eq!(cpus("tree:1p.1c.1t+.1c"), "2-4");
}

#[track_caller]
fn check_cpus(machine: &str, name: &str, cpus: &str) {
    let topology = Topology::from_synthetic(machine).unwrap();
    let placement: Placement = name.parse().unwrap();
    let realised = placement.realise(&topology).unwrap();
    assert_eq!(realised.cpus.to_string(), cpus, "{name}");
    assert_eq!(placement.to_string(), name);
}

#[test]
fn omitted_numbers_of_units_are_as_large_as_possible() {
    let machine = "package:2 l3:2 core:4 pu:2";
    check_cpus(machine, "shape:cpu=4", "2,8,16,24");
    check_cpus(machine, "shape:pkg=1,cpu=4", "2,4,8,10");
    check_cpus(machine, "shape:core=2,cpu=4", "2-3,16-17");
    check_cpus(machine, "shape:llc=1,cpu=3", "2,4,6");
    check_cpus(machine, "shape:pkg=2,cpu=32", "0-31");
}

#[test]
fn trees_express_any_placement() {
    let machine = "package:2 l3:2 core:4 pu:2";
    check_cpus(machine, "tree:1p", "0-15");
    check_cpus(machine, "tree:1p.1l.2c.1t", "2,4");
    check_cpus(machine, "tree:1p.1l.1c+..2c.1t", "2-4,6");
    check_cpus(machine, "tree:1p.1l+.1l.1c.1t+1p.1l.2c", "0-8,16-19");
    // A NUMA node may hold caches, or a cache NUMA nodes.
    check_cpus("l3:2 numa:2 core:2 pu:1", "tree:1l.1n+.1n.1c", "0-2");
}

fn shuffle_topology(seed: u64) -> (Topology, Topology) {
    use rand::seq::SliceRandom;
    let plain = "package:2 l3:2 core:2 pu:2";
    let mut numbers: Vec<usize> = (0..16).collect();
    numbers.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let list: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let mixed = format!("{plain}(indexes={})", list.join(","));
    let read = |text: &str| Topology::from_synthetic(text).unwrap();
    (read(plain), read(&mixed))
}

proptest! {
    #[test]
    fn renumbering_cpus_only_renumbers_shapes(seed in any::<u64>(), threads in 1usize..17) {
        let (plain, mixed) = shuffle_topology(seed);
        let (a, b) = (Space::from_topology(&plain), Space::from_topology(&mixed));
        let ids = |space: &Space| -> Vec<(String, String)> {
            let shapes = space.shapes(threads);
            shapes.iter().map(|s| (space.id(&s.occupancy), s.placement.to_string())).collect()
        };
        prop_assert_eq!(ids(&a), ids(&b));
        prop_assert_eq!(a.count(threads), b.count(threads));
    }

    #[test]
    fn shapes_stay_inside_the_allowed_cpus(
        leaves in prop::collection::btree_set(0usize..32, 1..32),
        seed in any::<u64>(),
    ) {
        let mut topology = Topology::from_synthetic("package:2 l3:2 core:4 pu:2").unwrap();
        topology.allowed = leaves.into_iter().collect();
        let space = Space::from_topology(&topology);
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        for threads in 1..=space.cpus() {
            let drawn = draw_occupancy(&topology, threads, &mut chance);
            let mut all: Vec<Occupancy> =
                space.shapes(threads).into_iter().map(|s| s.occupancy).collect();
            prop_assert!(!all.is_empty());
            all.extend(space.neighbours(&drawn));
            all.push(drawn);
            for occupancy in all {
                let cpus = space.choose(&occupancy);
                prop_assert!(cpus.is_subset(&topology.allowed));
                prop_assert_eq!(cpus.len(), threads);
                let known = space.occupancy(&cpus);
                prop_assert_eq!(known.as_ref(), Some(&occupancy));
            }
        }
        let outside = CpuSet::single(40);
        prop_assert_eq!(space.occupancy(&outside), None);
    }
}

#[test]
fn the_same_shape_can_be_placed_elsewhere_if_there_is_room() {
    let topology = Topology::from_synthetic("package:2 l3:2 core:4 pu:2").unwrap();
    let space = Space::from_topology(&topology);
    for shape in space.shapes(4) {
        let here = space.choose(&shape.occupancy);
        let there = space.choose_beside(&shape.occupancy, &here);
        assert!(
            here.intersection(&there).is_empty(),
            "{}: {here} {there}",
            shape.placement
        );
    }
    // Twelve of sixteen cores: four are left out, and a move changes which.
    let spread = space.shapes(12).pop().unwrap();
    let here = space.choose(&spread.occupancy);
    let there = space.choose_beside(&spread.occupancy, &here);
    assert_eq!(
        here.difference(&there).len(),
        12,
        "another CPU of each core"
    );
}
