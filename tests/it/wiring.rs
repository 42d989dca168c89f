//! The wiring inferred from latency and contention: on machines made up from a
//! known structure, on recorded ones, and on anything at all.

use pinwise_topology::CpuSet;
use pinwise_wiring::{Evidence, LevelKind, PairMatrix, Wiring, infer};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::support::{self, decode_output, run, run_for_json};

mod corpus;

use corpus::{Groups, Score, found, normal};

/// Levels of a made-up machine, smallest groups first: CPUs per group, ns
/// within it.
type Levels = [(usize, f64)];

/// Name, CPUs, levels, ns beyond them; kinds and sizes that must be found.
type MadeUp<'a> = (&'a str, usize, &'a Levels, f64, &'a [(LevelKind, usize)]);

/// A machine of equal groups of consecutive CPUs, with noise on every figure.
fn machine(cpus: usize, levels: &Levels, beyond: f64, sd: f64, seed: u64) -> PairMatrix {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    made(cpus, |a, b| {
        let level = levels.iter().find(|(size, _)| a / size == b / size);
        level.map_or(beyond, |(_, ns)| *ns) * (sd * normal(&mut random)).exp()
    })
}

fn made(cpus: usize, mut ns: impl FnMut(usize, usize) -> f64) -> PairMatrix {
    let mut matrix = PairMatrix::new((0..cpus).collect());
    for a in 0..cpus {
        for b in 0..a {
            matrix.set(a, b, ns(b, a));
        }
    }
    matrix
}

fn alone(latency_ns: PairMatrix) -> Wiring {
    infer(&Evidence {
        latency_ns,
        contention: None,
    })
}

fn groups_of(cpus: usize, size: usize) -> Groups {
    (0..cpus / size)
        .map(|group| (group * size..(group + 1) * size).collect())
        .collect()
}

#[test]
fn made_up_machines_are_found() {
    let smt = (2, 8.0);
    let cases: [MadeUp<'_>; 7] = [
        ("4 cores of 2", 8, &[smt], 20.0, &[(LevelKind::Smt, 2)]),
        ("one cache", 64, &[smt], 46.0, &[(LevelKind::Smt, 2)]),
        (
            "two complexes",
            16,
            &[smt, (8, 24.0)],
            91.0,
            &[(LevelKind::Smt, 2), (LevelKind::Llc, 8)],
        ),
        (
            "two packages with rings",
            48,
            &[smt, (24, 47.0)],
            125.0,
            &[(LevelKind::Smt, 2), (LevelKind::Package, 24)],
        ),
        (
            "packages of complexes",
            128,
            &[smt, (16, 24.0), (64, 112.0)],
            200.0,
            &[
                (LevelKind::Smt, 2),
                (LevelKind::Llc, 16),
                (LevelKind::Package, 64),
            ],
        ),
        (
            "without SMT",
            32,
            &[(4, 25.0), (16, 110.0)],
            230.0,
            &[(LevelKind::Llc, 4), (LevelKind::Package, 16)],
        ),
        (
            "small clusters",
            8,
            &[(4, 32.0)],
            85.0,
            &[(LevelKind::Llc, 4)],
        ),
    ];
    for (name, cpus, levels, beyond, expected) in cases {
        for seed in 0..10 {
            let wiring = alone(machine(cpus, levels, beyond, 0.04, seed));
            let expected: Vec<(LevelKind, Groups)> = expected
                .iter()
                .map(|(kind, size)| (*kind, groups_of(cpus, *size)))
                .collect();
            assert_eq!(found(&wiring), expected, "{name}, seed {seed}");
            assert!(!wiring.is_flat && wiring.cannot_tell.is_none(), "{name}");
        }
    }
}

/// The test line lives in package 0: between caches of package 1 it takes as
/// long as across.
#[test]
fn the_package_without_the_home_of_the_line_is_found() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let matrix = made(64, |a, b| {
            let ns = match (a / 8 == b / 8, a < 32 && b < 32) {
                (true, _) => 25.0,
                (_, true) => 130.0,
                _ => 265.0,
            };
            ns * (0.03 * normal(&mut random)).exp()
        });
        let wiring = alone(matrix);
        let expected = vec![
            (LevelKind::Llc, groups_of(64, 8)),
            (LevelKind::Package, groups_of(64, 32)),
        ];
        assert_eq!(found(&wiring), expected, "seed {seed}");
        assert!(wiring.notes.iter().any(|note| note.contains("model")));
    }
}

/// One pair of siblings was measured while something else ran.
#[test]
fn a_disturbed_pair_of_siblings_splits_nothing() {
    let mut matrix = machine(64, &[(2, 8.0)], 46.0, 0.03, 1);
    for disturbed in [12.0, 20.0, 44.0, 70.0] {
        matrix.set(21, 20, disturbed);
        let wiring = alone(matrix.clone());
        assert_eq!(
            found(&wiring),
            [(LevelKind::Smt, groups_of(64, 2))],
            "{disturbed} ns"
        );
    }
}

/// Siblings at 18 ns among cores at 19 to 22 (Zen 5): only contention shows it.
#[test]
fn contention_finds_siblings_that_latency_cannot_see() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let latency_ns = made(32, |a, b| {
            let ns = match (a / 2 == b / 2, a / 16 == b / 16) {
                (true, _) => 18.0,
                (_, true) => 20.5,
                _ => 180.0,
            };
            ns * (0.04 * normal(&mut random)).exp()
        });
        let mut contention = made(32, |a, b| {
            if a / 2 == b / 2 {
                1.6 + 0.12 * normal(&mut random)
            } else {
                1.02 + 0.04 * normal(&mut random)
            }
        });
        // A neighbour disturbed one pair, and spared another.
        contention.set(5, 9, 1.7);
        contention.set(20, 21, 1.15);
        let caches = (LevelKind::Llc, groups_of(32, 16));
        let without = alone(latency_ns.clone());
        assert_eq!(
            found(&without),
            std::slice::from_ref(&caches),
            "seed {seed}"
        );
        let with = infer(&Evidence {
            latency_ns,
            contention: Some(contention),
        });
        assert_eq!(found(&with)[1], caches, "seed {seed}");
        let (kind, siblings) = &found(&with)[0];
        assert_eq!(*kind, LevelKind::Smt);
        let wrong = siblings
            .iter()
            .filter(|g| !groups_of(32, 2).contains(g))
            .count();
        assert_eq!(wrong, 0, "seed {seed}: {siblings:?}");
        assert!(siblings.len() >= 15, "seed {seed}: {siblings:?}");
    }
}

/// Contention that shows no siblings forbids to call the closest pairs so.
#[test]
fn contention_can_exclude_siblings() {
    let latency_ns = machine(16, &[(2, 12.0)], 60.0, 0.03, 1);
    let contention = made(16, |_, _| 1.02);
    let wiring = infer(&Evidence {
        latency_ns,
        contention: Some(contention),
    });
    assert_eq!(found(&wiring), [(LevelKind::Llc, groups_of(16, 2))]);
}

#[test]
fn rings_meshes_and_noise_stay_flat() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let ring = made(24, |a, b| {
            let way = a.abs_diff(b).min(24 - a.abs_diff(b));
            (30.0 + 1.5 * way as f64) * (0.02 * normal(&mut random)).exp()
        });
        let mesh = made(64, |a, b| {
            let way = (a % 8).abs_diff(b % 8) + (a / 8).abs_diff(b / 8);
            (30.0 + 2.0 * way as f64) * (0.02 * normal(&mut random)).exp()
        });
        let noise = made(20, |_, _| 55.0 * (0.25 * normal(&mut random)).exp());
        for (name, matrix) in [("ring", ring), ("mesh", mesh), ("noise", noise)] {
            let wiring = alone(matrix);
            assert_eq!(found(&wiring), [], "{name}, seed {seed}");
            assert!(wiring.is_flat);
            assert_eq!(
                wiring.cannot_tell.is_some(),
                name == "noise",
                "{name} {seed}"
            );
        }
    }
}

/// A clock of 5.2 ns shows siblings of 7.7 ns as 5.2 or 10.4.
#[test]
fn coarse_clocks_are_recognised() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let matrix = made(16, |a, b| {
            let ns = if a / 2 == b / 2 { 7.7 } else { 18.5 };
            let steps = ns / 5.2 + 0.25 * normal(&mut random).clamp(-2.0, 2.0);
            5.2 * steps.round().max(if a / 2 == b / 2 { 1.0 } else { 3.0 })
        });
        let wiring = alone(matrix);
        assert_eq!(
            found(&wiring),
            [(LevelKind::Smt, groups_of(16, 2))],
            "{seed}"
        );
        assert!(
            wiring.notes.iter().any(|note| note.contains("5.20 ns")),
            "{:?}",
            wiring.notes
        );
    }
}

/// P-cores with SMT on a ring, E-cores in clusters of four that are slower
/// among themselves.
#[test]
fn clusters_of_small_cores_are_found() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let matrix = made(24, |a, b| {
            let ns = match (a < 16, b < 16) {
                (true, true) if a / 2 == b / 2 => 4.5,
                (true, true) => 33.0,
                (false, false) if a / 4 == b / 4 => 52.0,
                _ => 40.0,
            };
            ns * (0.03 * normal(&mut random)).exp()
        });
        let pairs: Groups = (0..8)
            .map(|p| CpuSet::from_iter([2 * p, 2 * p + 1]))
            .collect();
        let clusters: Groups = vec![(16..20).collect(), (20..24).collect()];
        assert_eq!(
            found(&alone(matrix)),
            [(LevelKind::Smt, pairs), (LevelKind::Llc, clusters)],
            "seed {seed}"
        );
    }
}

/// Two CPUs: published latencies, contention, or "inconclusive".
#[test]
fn two_cpus_are_judged_by_published_latencies() {
    let cases: [(f64, Option<f64>, Option<LevelKind>, bool); 8] = [
        // ns, contention, level, is it decidable.
        (8.0, None, Some(LevelKind::Smt), true),
        (17.0, None, None, false),
        (17.0, Some(1.72), Some(LevelKind::Smt), true),
        (17.0, Some(1.03), Some(LevelKind::Llc), true),
        (36.6, Some(1.03), Some(LevelKind::Llc), true),
        (36.6, Some(1.2), None, false),
        (65.0, None, None, false),
        (117.0, Some(1.03), None, true),
    ];
    for (ns, ratio, level, is_decided) in cases {
        let wiring = infer(&Evidence {
            latency_ns: made(2, |_, _| ns),
            contention: ratio.map(|ratio| made(2, |_, _| ratio)),
        });
        let kinds: Vec<LevelKind> = wiring.levels.iter().map(|level| level.kind).collect();
        assert_eq!(
            kinds,
            level.into_iter().collect::<Vec<_>>(),
            "{ns} {ratio:?}"
        );
        assert_eq!(wiring.cannot_tell.is_none(), is_decided, "{ns} {ratio:?}");
    }
}

/// More noise, less confidence; a wider gap, more of it.
#[test]
fn confidence_follows_gap_and_noise() {
    let confidence = |outside: f64, sd: f64| {
        let of_seed = |seed| {
            let wiring = alone(machine(32, &[(8, 25.0)], outside, sd, seed));
            wiring.levels.first().map_or(0.0, |level| level.confidence)
        };
        (0..20).map(of_seed).sum::<f64>() / 20.0
    };
    assert!(confidence(100.0, 0.03) > confidence(45.0, 0.03));
    assert!(confidence(45.0, 0.03) > confidence(45.0, 0.10));
    assert!(confidence(45.0, 0.10) > confidence(45.0, 0.25));
    assert!(confidence(100.0, 0.03) > 0.95);
}

/// What the project promises of recorded machines; the benchmark has the whole
/// table.
#[test]
fn recorded_machines_are_found() {
    let Some(folder) = support::corpus() else {
        return;
    };
    let machines = corpus::read(&folder);
    let mut alone = Score::default();
    let mut contention = Score::default();
    for known in &machines {
        alone.add(known, &found(&infer(&known.latency_alone())));
        contention.add(known, &found(&infer(&known.add_contention(1))));
        // Half of the siblings are seen, in noise and among half of the CPUs.
        let half: Vec<usize> = (0..known.latency.len()).step_by(2).collect();
        let guest = known.only(&half).noisy(0.03, 1);
        assert!(!guest.latency.is_empty());
        let _ = infer(&guest.latency_alone());
    }
    for (score, smt) in [(&alone, 0.95), (&contention, 0.98)] {
        let share = |level: usize| score.levels[level][0] as f64 / score.levels[level][2] as f64;
        let wrong = &score.mistakes;
        assert!(share(0) >= smt, "SMT: {wrong:#?}");
        assert!(share(1) >= 0.95, "LLC: {wrong:#?}");
        assert!(share(2) >= 0.93, "package: {wrong:#?}");
        assert_eq!(score.flat[0], score.flat[1], "flat: {wrong:#?}");
        assert!(score.spurious <= 2, "spurious: {wrong:#?}");
        assert!(score.exact >= score.perfect && score.machines == machines.len());
    }
}

fn replayed(text: &str, more: &[&str]) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.csv");
    std::fs::write(&path, text).unwrap();
    let mut arguments = vec!["topology", "infer", path.to_str().unwrap()];
    arguments.extend(more);
    run(&arguments)
}

/// As pandas writes the matrix of the CPUs of a node.
#[test]
fn replay_names_cpus_by_their_numbers() {
    let numbers = [0, 2, 4, 32, 34, 36];
    let row = |cpu: usize| {
        let figures = (0..6).map(|other| match other {
            other if other == cpu => String::new(),
            other if other % 3 == cpu % 3 => "9.5".to_owned(),
            other => format!("26.{}", (cpu + other) % 4),
        });
        let figures: Vec<String> = figures.collect();
        format!("{},{}\n", numbers[cpu], figures.join(","))
    };
    let rows: String = (0..6).map(row).collect();
    let (text, _) = decode_output(&replayed(&format!(",0,2,4,32,34,36\n{rows}"), &[]));
    assert!(text.starts_with("Wiring of 6 CPUs"), "{text}");
    assert!(
        text.contains("3 groups of 2 CPUs: CPUs 0,32  2,34  4,36;"),
        "{text}"
    );
}

#[test]
fn infer_prints_levels() {
    let matrix = machine(16, &[(2, 8.0), (8, 24.0)], 91.0, 0.02, 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.csv");
    std::fs::write(&path, matrix.to_csv()).unwrap();
    let record = run_for_json(&[
        "topology",
        "infer",
        path.to_str().unwrap(),
        "--format",
        "json",
    ]);
    assert_eq!(record["flat"], false);
    assert_eq!(record["levels"][0]["kind"], "smt");
    assert_eq!(record["levels"][1]["kind"], "llc");
    assert_eq!(
        record["levels"][1]["groups"],
        serde_json::json!(["0-7", "8-15"])
    );
    let (text, _) = decode_output(&replayed(&matrix.to_csv(), &[]));
    assert!(
        text.contains("SMT siblings") && text.contains("0-7  8-15"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let flat = machine(16, &[], 40.0, 0.02, 1).to_csv();
    let (text, _) = decode_output(&replayed(&flat, &[]));
    assert!(text.contains("all CPUs are equally far apart"), "{text}");
}

/// What must hold whatever was measured.
fn check(wiring: &Wiring, cpus: &CpuSet) {
    for level in &wiring.levels {
        let mut seen = CpuSet::new();
        assert!(!level.groups.is_empty());
        for group in &level.groups {
            assert!(group.len() >= 2 && group.is_subset(cpus));
            assert!(!group.intersects(&seen), "{:?}", level.groups);
            seen = seen.union(group);
        }
        assert!(
            (0.0..=1.0).contains(&level.confidence),
            "{}",
            level.confidence
        );
        assert!(level.evidence.ends_with('.') && !level.evidence.contains("NaN"));
        assert!(level.outside_ns.is_none_or(f64::is_finite));
    }
    assert!(!wiring.is_flat || wiring.levels.is_empty());
}

fn any_figure() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 1.0..300.0,
        1 => Just(f64::NAN),
        1 => Just(0.0),
        1 => Just(42.0),
        1 => prop_oneof![Just(f64::INFINITY), Just(-1.0), Just(f64::MAX), Just(5e-324)],
    ]
}

fn any_matrix() -> impl Strategy<Value = PairMatrix> {
    (0_usize..20).prop_flat_map(|n| {
        proptest::collection::vec(any_figure(), n * n).prop_map(move |values| {
            let mut matrix = PairMatrix::new((0..n).map(|cpu| 3 * cpu).collect());
            for a in 0..n {
                for b in 0..a {
                    matrix.set(a, b, values[a * n + b]);
                }
            }
            matrix
        })
    })
}

/// A machine whose answer is not a matter of chance, and its CPUs.
fn any_machine() -> impl Strategy<Value = PairMatrix> {
    let shape = prop_oneof![
        Just((16, vec![(2, 8.0)], 20.0)),
        Just((16, vec![(2, 8.0), (8, 24.0)], 91.0)),
        Just((32, vec![(4, 25.0), (16, 110.0)], 230.0)),
        Just((24, vec![], 45.0)),
    ];
    (shape, any::<u64>())
        .prop_map(|((cpus, levels, beyond), seed)| machine(cpus, &levels, beyond, 0.03, seed))
}

proptest! {
    #[test]
    fn any_figures_give_disjoint_groups(
        latency_ns in any_matrix(),
        ratios in proptest::option::of(any_matrix()),
    ) {
        let cpus: CpuSet = latency_ns.cpus().iter().copied().collect();
        check(&infer(&Evidence { latency_ns, contention: ratios }), &cpus);
    }

    #[test]
    fn renumbering_cpus_only_renumbers_the_answer(matrix in any_machine(), seed: u64) {
        let n = matrix.len();
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        let other = made(n, |a, b| matrix.at(order[a], order[b]));
        let back = |group: &CpuSet| group.iter().map(|cpu| order[cpu]).collect::<CpuSet>();
        let mut renumbered = found(&alone(other));
        for (_, groups) in &mut renumbered {
            *groups = groups.iter().map(back).collect();
            groups.sort_by_key(CpuSet::first);
        }
        prop_assert_eq!(renumbered, found(&alone(matrix)));
    }

    #[test]
    fn a_faster_machine_has_the_same_groups(matrix in any_machine(), factor in 0.2_f64..5.0) {
        let n = matrix.len();
        let scaled = made(n, |a, b| factor * matrix.at(a, b));
        let groups = |matrix: PairMatrix| -> Vec<Groups> {
            found(&alone(matrix)).into_iter().map(|(_, groups)| groups).collect()
        };
        prop_assert_eq!(groups(scaled), groups(matrix));
    }

    #[test]
    fn matrices_round_trip(matrix in any_machine()) {
        let read = PairMatrix::from_csv(&matrix.to_csv()).unwrap();
        prop_assert_eq!(read.to_csv(), matrix.to_csv());
        prop_assert_eq!(read.cpus(), matrix.cpus());
    }
}
