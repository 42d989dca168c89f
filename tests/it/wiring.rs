//! Inference of the wiring from latency and contention: on synthetic machines of known structure,
//! on recorded machines, and on arbitrary figures.

use pinwise_topology::CpuSet;
use pinwise_wiring::{Evidence, LevelKind, PairMatrix, Wiring, infer};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::support::{self, decode_output, run, run_for_json};

mod corpus;

use corpus::{Groups, Score, draw_normal, list_levels};

/// Levels of a synthetic machine, smallest groups first: CPUs per group, and ns within it.
type Levels = [(usize, f64)];

/// Name, CPUs, levels, ns beyond them; kinds and sizes that must be found.
type Synthetic<'a> = (&'a str, usize, &'a Levels, f64, &'a [(LevelKind, usize)]);

/// Latencies of a machine of equal groups of consecutive CPUs, with noise on every figure.
fn draw_machine(cpus: usize, levels: &Levels, beyond: f64, sd: f64, seed: u64) -> PairMatrix {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    fill_matrix(cpus, |a, b| {
        let level = levels.iter().find(|(size, _)| a / size == b / size);
        level.map_or(beyond, |(_, ns)| *ns) * (sd * draw_normal(&mut random)).exp()
    })
}

fn fill_matrix(cpus: usize, mut ns: impl FnMut(usize, usize) -> f64) -> PairMatrix {
    let mut matrix = PairMatrix::new((0..cpus).collect());
    for a in 0..cpus {
        for b in 0..a {
            matrix.set(a, b, ns(b, a));
        }
    }
    matrix
}

fn infer_from_latency(latency_ns: PairMatrix) -> Wiring {
    infer(&Evidence {
        latency_ns,
        contention: None,
    })
}

fn split_into_groups(cpus: usize, size: usize) -> Groups {
    (0..cpus / size)
        .map(|group| (group * size..(group + 1) * size).collect())
        .collect()
}

#[test]
fn levels_of_synthetic_machines_are_found() {
    let smt = (2, 8.0);
    let cases: [Synthetic<'_>; 7] = [
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
            let wiring = infer_from_latency(draw_machine(cpus, levels, beyond, 0.04, seed));
            let expected: Vec<(LevelKind, Groups)> = expected
                .iter()
                .map(|(kind, size)| (*kind, split_into_groups(cpus, *size)))
                .collect();
            assert_eq!(list_levels(&wiring), expected, "{name}, seed {seed}");
            assert!(!wiring.is_flat && wiring.cannot_tell.is_none(), "{name}");
        }
    }
}

/// The home of the cache line is in package 0: a transfer between caches of package 1 takes as long
/// as one between packages.
#[test]
fn the_package_without_the_home_of_the_line_is_found() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let matrix = fill_matrix(64, |a, b| {
            let ns = match (a / 8 == b / 8, a < 32 && b < 32) {
                (true, _) => 25.0,
                (_, true) => 130.0,
                _ => 265.0,
            };
            ns * (0.03 * draw_normal(&mut random)).exp()
        });
        let wiring = infer_from_latency(matrix);
        let expected = vec![
            (LevelKind::Llc, split_into_groups(64, 8)),
            (LevelKind::Package, split_into_groups(64, 32)),
        ];
        assert_eq!(list_levels(&wiring), expected, "seed {seed}");
        assert!(wiring.notes.iter().any(|note| note.contains("model")));
    }
}

/// Another program ran while one pair of siblings was measured.
#[test]
fn a_disturbed_pair_of_siblings_splits_nothing() {
    let mut matrix = draw_machine(64, &[(2, 8.0)], 46.0, 0.03, 1);
    for disturbed in [12.0, 20.0, 44.0, 70.0] {
        matrix.set(21, 20, disturbed);
        let wiring = infer_from_latency(matrix.clone());
        assert_eq!(
            list_levels(&wiring),
            [(LevelKind::Smt, split_into_groups(64, 2))],
            "{disturbed} ns"
        );
    }
}

/// Siblings at 18 ns among cores at 19 to 22 (Zen 5): only contention shows it.
#[test]
fn contention_finds_siblings_that_latency_cannot_see() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let latency_ns = fill_matrix(32, |a, b| {
            let ns = match (a / 2 == b / 2, a / 16 == b / 16) {
                (true, _) => 18.0,
                (_, true) => 20.5,
                _ => 180.0,
            };
            ns * (0.04 * draw_normal(&mut random)).exp()
        });
        let mut contention = fill_matrix(32, |a, b| {
            if a / 2 == b / 2 {
                1.6 + 0.12 * draw_normal(&mut random)
            } else {
                1.02 + 0.04 * draw_normal(&mut random)
            }
        });
        // Another program raised the contention of one pair and lowered that of another.
        contention.set(5, 9, 1.7);
        contention.set(20, 21, 1.15);
        let caches = (LevelKind::Llc, split_into_groups(32, 16));
        let without = infer_from_latency(latency_ns.clone());
        assert_eq!(
            list_levels(&without),
            std::slice::from_ref(&caches),
            "seed {seed}"
        );
        let with = infer(&Evidence {
            latency_ns,
            contention: Some(contention),
        });
        assert_eq!(list_levels(&with)[1], caches, "seed {seed}");
        let (kind, siblings) = &list_levels(&with)[0];
        assert_eq!(*kind, LevelKind::Smt);
        let wrong = siblings
            .iter()
            .filter(|g| !split_into_groups(32, 2).contains(g))
            .count();
        assert_eq!(wrong, 0, "seed {seed}: {siblings:?}");
        assert!(siblings.len() >= 15, "seed {seed}: {siblings:?}");
    }
}

/// Contention shows that the closest pairs are no siblings.
#[test]
fn contention_can_exclude_siblings() {
    let latency_ns = draw_machine(16, &[(2, 12.0)], 60.0, 0.03, 1);
    let contention = fill_matrix(16, |_, _| 1.02);
    let wiring = infer(&Evidence {
        latency_ns,
        contention: Some(contention),
    });
    assert_eq!(
        list_levels(&wiring),
        [(LevelKind::Llc, split_into_groups(16, 2))]
    );
}

#[test]
fn rings_meshes_and_noise_have_no_levels() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let ring = fill_matrix(24, |a, b| {
            let hops = a.abs_diff(b).min(24 - a.abs_diff(b));
            (30.0 + 1.5 * hops as f64) * (0.02 * draw_normal(&mut random)).exp()
        });
        let mesh = fill_matrix(64, |a, b| {
            let hops = (a % 8).abs_diff(b % 8) + (a / 8).abs_diff(b / 8);
            (30.0 + 2.0 * hops as f64) * (0.02 * draw_normal(&mut random)).exp()
        });
        let noise = fill_matrix(20, |_, _| 55.0 * (0.25 * draw_normal(&mut random)).exp());
        for (name, matrix) in [("ring", ring), ("mesh", mesh), ("noise", noise)] {
            let wiring = infer_from_latency(matrix);
            assert_eq!(list_levels(&wiring), [], "{name}, seed {seed}");
            assert!(wiring.is_flat);
            assert_eq!(
                wiring.cannot_tell.is_some(),
                name == "noise",
                "{name} {seed}"
            );
        }
    }
}

/// A clock with steps of 5.2 ns shows a latency of 7.7 ns as 5.2 or 10.4 ns.
#[test]
fn coarse_clocks_are_recognised() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let matrix = fill_matrix(16, |a, b| {
            let ns = if a / 2 == b / 2 { 7.7 } else { 18.5 };
            let steps = ns / 5.2 + 0.25 * draw_normal(&mut random).clamp(-2.0, 2.0);
            5.2 * steps.round().max(if a / 2 == b / 2 { 1.0 } else { 3.0 })
        });
        let wiring = infer_from_latency(matrix);
        assert_eq!(
            list_levels(&wiring),
            [(LevelKind::Smt, split_into_groups(16, 2))],
            "{seed}"
        );
        assert!(
            wiring.notes.iter().any(|note| note.contains("5.20 ns")),
            "{:?}",
            wiring.notes
        );
    }
}

/// P-cores with SMT on a ring, and E-cores in clusters of four with longer latencies within.
#[test]
fn clusters_of_e_cores_are_found() {
    for seed in 0..10 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let matrix = fill_matrix(24, |a, b| {
            let ns = match (a < 16, b < 16) {
                (true, true) if a / 2 == b / 2 => 4.5,
                (true, true) => 33.0,
                (false, false) if a / 4 == b / 4 => 52.0,
                _ => 40.0,
            };
            ns * (0.03 * draw_normal(&mut random)).exp()
        });
        let pairs: Groups = (0..8)
            .map(|p| CpuSet::from_iter([2 * p, 2 * p + 1]))
            .collect();
        let clusters: Groups = vec![(16..20).collect(), (20..24).collect()];
        assert_eq!(
            list_levels(&infer_from_latency(matrix)),
            [(LevelKind::Smt, pairs), (LevelKind::Llc, clusters)],
            "seed {seed}"
        );
    }
}

#[test]
fn two_cpus_are_judged_by_published_latencies_and_contention() {
    let cases: [(f64, Option<f64>, Option<LevelKind>, bool); 8] = [
        // ns, contention, expected level, is it decided?
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
            latency_ns: fill_matrix(2, |_, _| ns),
            contention: ratio.map(|ratio| fill_matrix(2, |_, _| ratio)),
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

#[test]
fn confidence_falls_with_noise_and_grows_with_the_gap() {
    let confidence = |outside: f64, sd: f64| {
        let confidence_of_seed = |seed| {
            let wiring = infer_from_latency(draw_machine(32, &[(8, 25.0)], outside, sd, seed));
            wiring.levels.first().map_or(0.0, |level| level.confidence)
        };
        (0..20).map(confidence_of_seed).sum::<f64>() / 20.0
    };
    assert!(confidence(100.0, 0.03) > confidence(45.0, 0.03));
    assert!(confidence(45.0, 0.03) > confidence(45.0, 0.10));
    assert!(confidence(45.0, 0.10) > confidence(45.0, 0.25));
    assert!(confidence(100.0, 0.03) > 0.95);
}

/// `lab` prints the whole table.
#[test]
fn levels_of_recorded_machines_are_found() {
    let Some(folder) = support::corpus() else {
        return;
    };
    let machines = corpus::read_machines(&folder);
    let mut alone = Score::default();
    let mut contention = Score::default();
    for known in &machines {
        alone.add(known, &list_levels(&infer(&known.to_evidence())));
        contention.add(known, &list_levels(&infer(&known.add_contention(1))));
        // With noise and half of the CPUs, inference must not fail.
        let half: Vec<usize> = (0..known.latency.len()).step_by(2).collect();
        let guest = known.restrict_to(&half).add_noise(0.03, 1);
        assert!(!guest.latency.is_empty());
        let _ = infer(&guest.to_evidence());
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

/// Runs `topology infer` for a matrix, and returns its output.
fn run_infer(matrix: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.csv");
    std::fs::write(&path, matrix).unwrap();
    decode_output(&run(&["topology", "infer", path.to_str().unwrap()])).0
}

/// In the format of pandas, with the CPUs of one node.
#[test]
fn infer_takes_the_numbers_of_cpus_from_the_header() {
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
    let text = run_infer(&format!(",0,2,4,32,34,36\n{rows}"));
    assert!(text.starts_with("Wiring of 6 CPUs"), "{text}");
    assert!(
        text.contains("3 groups of 2 CPUs: CPUs 0,32  2,34  4,36;"),
        "{text}"
    );
}

#[test]
fn infer_prints_levels() {
    let matrix = draw_machine(16, &[(2, 8.0), (8, 24.0)], 91.0, 0.02, 1);
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
    let text = run_infer(&matrix.to_csv());
    assert!(
        text.contains("SMT siblings") && text.contains("0-7  8-15"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let flat = draw_machine(16, &[], 40.0, 0.02, 1).to_csv();
    let text = run_infer(&flat);
    assert!(text.contains("all CPUs are equally far apart"), "{text}");
}

/// Checks what must hold whatever was measured.
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

/// A machine whose levels are clear.
fn any_machine() -> impl Strategy<Value = PairMatrix> {
    let shape = prop_oneof![
        Just((16, vec![(2, 8.0)], 20.0)),
        Just((16, vec![(2, 8.0), (8, 24.0)], 91.0)),
        Just((32, vec![(4, 25.0), (16, 110.0)], 230.0)),
        Just((24, vec![], 45.0)),
    ];
    (shape, any::<u64>())
        .prop_map(|((cpus, levels, beyond), seed)| draw_machine(cpus, &levels, beyond, 0.03, seed))
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
        let other = fill_matrix(n, |a, b| matrix.at(order[a], order[b]));
        let back = |group: &CpuSet| group.iter().map(|cpu| order[cpu]).collect::<CpuSet>();
        let mut renumbered = list_levels(&infer_from_latency(other));
        for (_, groups) in &mut renumbered {
            *groups = groups.iter().map(back).collect();
            groups.sort_by_key(CpuSet::first);
        }
        prop_assert_eq!(renumbered, list_levels(&infer_from_latency(matrix)));
    }

    #[test]
    fn a_faster_machine_has_the_same_groups(matrix in any_machine(), factor in 0.2_f64..5.0) {
        let n = matrix.len();
        let scaled = fill_matrix(n, |a, b| factor * matrix.at(a, b));
        let groups = |matrix: PairMatrix| -> Vec<Groups> {
            list_levels(&infer_from_latency(matrix)).into_iter().map(|(_, groups)| groups).collect()
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
