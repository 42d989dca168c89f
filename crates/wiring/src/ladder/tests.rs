//! Ladders of machines with known caches.

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use pinwise_stats::normal::upper_quantile;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The misses of a cache at a working set of `ratio` times its size.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// LRU replacement: everything misses at once.
    Sudden,
    /// Random replacement.
    Gradual,
    /// Page collisions: misses begin before it is full.
    Early,
}

const SHAPES: [Shape; 3] = [Shape::Sudden, Shape::Gradual, Shape::Early];

fn miss_share(shape: Shape, ratio: f64) -> f64 {
    match shape {
        Shape::Sudden => ((ratio - 0.97) / 0.12).clamp(0.0, 1.0),
        Shape::Gradual => {
            let over = (ratio - 0.8).max(0.0) / 0.35;
            1.0 - 1.0 / (1.0 + over.powi(3))
        }
        Shape::Early => {
            // Lines in sets of eight ways that more than eight lines map to.
            let mean = 8.0 * ratio;
            let mut term = (-mean).exp();
            let mut few = 0.0;
            for lines in 0..8 {
                few += term;
                term *= mean / f64::from(lines + 1);
            }
            1.0 - few
        }
    }
}

/// A machine whose caches are known.
#[derive(Debug, Clone)]
struct MachineWithCaches {
    name: &'static str,
    /// Bytes and ns of each cache, inner ones first.
    caches: Vec<(u64, f64)>,
    memory_ns: f64,
}

impl MachineWithCaches {
    fn ns(&self, shape: Shape, bytes: f64) -> f64 {
        let mut ns = 0.0;
        let mut left = 1.0f64;
        for &(size, latency) in &self.caches {
            let missing = miss_share(shape, bytes / size as f64).min(left);
            ns += (left - missing) * latency;
            left = missing;
        }
        ns + left * self.memory_ns
    }

    fn reported(&self) -> Vec<ReportedCache> {
        let caches = self.caches.iter().zip(1..);
        caches
            .map(|(&(bytes, _), level)| ReportedCache { level, bytes })
            .collect()
    }

    fn points(
        &self,
        shape: Shape,
        per_octave: u32,
        sd: f64,
        chance: &mut ChaCha8Rng,
    ) -> Vec<Point> {
        let sizes =
            (0..=18 * per_octave).map(|i| 4096.0 * (f64::from(i) / f64::from(per_octave)).exp2());
        sizes
            .map(|bytes| new_point(bytes, self.ns(shape, bytes) * draw_noise(sd, chance)))
            .collect()
    }
}

fn draw_noise(sd: f64, chance: &mut ChaCha8Rng) -> f64 {
    let uniform: f64 = chance.random_range(f64::EPSILON..1.0);
    (sd * upper_quantile(uniform)).exp()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "sizes of tests"
)]
fn new_point(bytes: f64, ns: f64) -> Point {
    Point {
        bytes: bytes as usize,
        ns,
        interval_ns: None,
    }
}

/// Published capacities and latencies: the vendors' optimisation manuals and software guides for
/// cycles and sizes, common reviews for memory.
fn list_published_caches() -> Vec<MachineWithCaches> {
    let known = |name, caches: &[(u64, f64)], memory_ns| MachineWithCaches {
        name,
        caches: caches.to_vec(),
        memory_ns,
    };
    vec![
        known(
            "Zen 3, 3.45 GHz",
            &[
                (32 * KIB, 4.0 / 3.45),
                (512 * KIB, 12.0 / 3.45),
                (32 * MIB, 46.0 / 3.45),
            ],
            95.0,
        ),
        known(
            "Skylake-SP, 28 slices, 2.7 GHz",
            &[
                (32 * KIB, 4.0 / 2.7),
                (MIB, 14.0 / 2.7),
                (38 * MIB + MIB / 2, 70.0 / 2.7),
            ],
            90.0,
        ),
        known(
            "Graviton2, 2.5 GHz",
            &[(64 * KIB, 4.0 / 2.5), (MIB, 11.0 / 2.5), (32 * MIB, 32.0)],
            96.0,
        ),
        known(
            "Haswell client, 4 GHz",
            &[(32 * KIB, 1.0), (256 * KIB, 3.0), (8 * MIB, 9.0)],
            62.0,
        ),
        known(
            "large cores of an Apple M1",
            &[(128 * KIB, 0.95), (12 * MIB, 5.3)],
            100.0,
        ),
        known("Cortex-A72 board", &[(32 * KIB, 2.7), (MIB, 10.0)], 140.0),
        known(
            "Zen 3 with stacked cache",
            &[(32 * KIB, 0.9), (512 * KIB, 2.7), (96 * MIB, 11.5)],
            80.0,
        ),
        known(
            "Atom, L2 of a cluster",
            &[(24 * KIB, 1.5), (MIB, 9.0)],
            110.0,
        ),
    ]
}

/// The first difference of a ladder from the known caches, whose sizes may be off by a factor.
fn find_fault(known: &MachineWithCaches, ladder: &Ladder, factor: f64) -> Option<String> {
    let caches: Vec<&Plateau> = ladder
        .plateaus
        .iter()
        .filter(|p| p.level.is_some())
        .collect();
    if caches.len() != known.caches.len() {
        return Some(format!(
            "{} caches, not {}",
            caches.len(),
            known.caches.len()
        ));
    }
    for (plateau, &(bytes, ns)) in caches.iter().zip(&known.caches) {
        let found = plateau.effective_bytes.unwrap_or(0) as f64;
        let off = (found / bytes as f64).ln().abs();
        if off > factor.ln() {
            return Some(format!(
                "{} instead of {}",
                round_bytes(whole(found)),
                round_bytes(bytes)
            ));
        }
        if (plateau.latency_ns / ns).ln().abs() > 1.25f64.ln() {
            return Some(format!("{} ns instead of {ns} ns", plateau.latency_ns));
        }
    }
    let memory = ladder.plateaus.last().map_or(0.0, |p| p.latency_ns);
    ((memory / known.memory_ns).ln().abs() > 1.25f64.ln())
        .then(|| format!("memory at {memory} ns instead of {}", known.memory_ns))
}

/// Reads every published ladder in every shape, on a grid of this many sizes per octave and with
/// this noise; a share of them may be wrong.
fn check_published_ladders(per_octave: u32, sd: f64, allowed_per_cent: usize) {
    let mut chance = ChaCha8Rng::seed_from_u64(7);
    let mut faults = Vec::new();
    let mut tried = 0;
    for known in list_published_caches() {
        for shape in SHAPES {
            for _ in 0..20 {
                let points = known.points(shape, per_octave, sd, &mut chance);
                let ladder = find_plateaus(&points, &known.reported());
                tried += 1;
                if let Some(fault) = find_fault(&known, &ladder, 1.3) {
                    faults.push(format!("{} {shape:?}: {fault}", known.name));
                }
            }
        }
    }
    assert!(
        faults.len() * 100 <= tried * allowed_per_cent,
        "{} of {tried} at {per_octave} per octave, noise {sd}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn published_ladders_are_read() {
    check_published_ladders(4, 0.0, 0);
    check_published_ladders(4, 0.03, 0);
    check_published_ladders(8, 0.03, 0);
    check_published_ladders(8, 0.1, 1);
    check_published_ladders(4, 0.1, 2);
}

#[test]
fn coarse_grids_suffice() {
    check_published_ladders(2, 0.03, 2);
}

fn seeded_generator() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(11)
}

fn zen3() -> MachineWithCaches {
    list_published_caches().swap_remove(0)
}

/// Levels and effective sizes in KiB.
fn list_found_levels(ladder: &Ladder) -> Vec<(Option<u8>, u64)> {
    let plateaus = ladder.plateaus.iter();
    plateaus
        .map(|p| (p.level, p.effective_bytes.unwrap_or(0) / KIB))
        .collect()
}

fn plateau_levels(ladder: &Ladder) -> Vec<Option<u8>> {
    ladder.plateaus.iter().map(|p| p.level).collect()
}

const THREE_LEVELS: [Option<u8>; 4] = [Some(1), Some(2), Some(3), None];

#[test]
fn a_small_tlb_is_not_a_cache() {
    let mut chance = seeded_generator();
    let known = zen3();
    for sd in [0.0, 0.03, 0.06] {
        for _ in 0..30 {
            let mut points = known.points(Shape::Gradual, 6, sd, &mut chance);
            for point in &mut points {
                let bytes = point.bytes as f64;
                // Two steps, as with 4 KiB pages: the first TLB ends at 64 pages, the second at
                // 2048, then page walks begin.
                point.ns += 2.0 * miss_share(Shape::Gradual, bytes / (256 * KIB) as f64);
                point.ns += 6.5 * miss_share(Shape::Gradual, bytes / (8 * MIB) as f64);
            }
            let ladder = find_plateaus(&points, &known.reported());
            assert_eq!(
                plateau_levels(&ladder),
                THREE_LEVELS,
                "{sd} {:?}",
                list_found_levels(&ladder)
            );
        }
    }
}

#[test]
fn memory_may_become_slower_still() {
    let known = zen3();
    let mut points = known.points(Shape::Sudden, 4, 0.02, &mut seeded_generator());
    let tables =
        |bytes: usize| 90.0 * miss_share(Shape::Gradual, bytes as f64 / (256 * MIB) as f64);
    points
        .iter_mut()
        .for_each(|point| point.ns += tables(point.bytes));
    assert_eq!(
        plateau_levels(&find_plateaus(&points, &known.reported())),
        THREE_LEVELS
    );
    assert_eq!(plateau_levels(&find_plateaus(&points, &[])), THREE_LEVELS);
}

#[test]
fn nothing_beyond_the_largest_reported_cache_is_numbered() {
    // Beyond the reported caches, page tables make a knee at 200 MiB.
    let known = MachineWithCaches {
        name: "a guest",
        caches: vec![
            (48 * KIB, 1.0),
            (2 * MIB, 4.0),
            (24 * MIB, 20.0),
            (200 * MIB, 40.0),
        ],
        memory_ns: 47.0,
    };
    let reported = [(1, 48 * KIB), (2, 2 * MIB), (3, 24 * MIB)]
        .map(|(level, bytes)| ReportedCache { level, bytes });
    let ladder = find_plateaus(
        &known.points(Shape::Sudden, 6, 0.01, &mut seeded_generator()),
        &reported,
    );
    assert_eq!(
        plateau_levels(&ladder).iter().flatten().max(),
        Some(&3),
        "{:?}",
        list_found_levels(&ladder)
    );
    assert_eq!(ladder.plateaus.last().unwrap().level, None);
    // A reported one is found.
    let all = [
        &reported[..],
        &[ReportedCache {
            level: 4,
            bytes: 200 * MIB,
        }],
    ]
    .concat();
    let ladder = find_plateaus(
        &known.points(Shape::Sudden, 6, 0.01, &mut seeded_generator()),
        &all,
    );
    assert!(
        plateau_levels(&ladder).contains(&Some(4)),
        "{:?}",
        list_found_levels(&ladder)
    );
}

#[test]
fn outliers_do_not_make_caches() {
    let mut chance = seeded_generator();
    let known = zen3();
    let mut wrong = 0;
    for _ in 0..100 {
        let mut points = known.points(Shape::Sudden, 6, 0.03, &mut chance);
        for point in &mut points {
            if chance.random::<f64>() < 0.04 {
                point.ns *= 3.0;
            }
        }
        let ladder = find_plateaus(&points, &known.reported());
        wrong += usize::from(find_fault(&known, &ladder, 1.3).is_some());
    }
    assert!(wrong <= 3, "{wrong} of 100");
}

#[test]
fn virtual_machines_report_more_than_a_program_gets() {
    let mut known = zen3();
    known.caches[2].0 = 8 * MIB;
    let points = known.points(Shape::Gradual, 6, 0.03, &mut seeded_generator());
    let reported = zen3().reported();
    let ladder = find_plateaus(&points, &reported);
    assert_eq!(plateau_levels(&ladder), THREE_LEVELS);
    let outer = ladder.plateaus[2];
    assert_eq!(outer.reported_bytes, Some(32 * MIB));
    assert!(outer.effective_bytes.unwrap() < 12 * MIB);
    assert_eq!(ladder.hint, None);
}

#[test]
fn unreported_caches_are_numbered() {
    let points = zen3().points(Shape::Sudden, 6, 0.03, &mut seeded_generator());
    let all = zen3().reported();
    for reported in [&[][..], &all[..1], &all[2..], &all[..2], &[all[0], all[2]]] {
        let ladder = find_plateaus(&points, reported);
        assert_eq!(plateau_levels(&ladder), THREE_LEVELS, "{reported:?}");
        let claimed = ladder
            .plateaus
            .iter()
            .filter(|p| p.reported_bytes.is_some());
        assert_eq!(claimed.count(), reported.len());
    }
    // A knee between consecutive levels has no number.
    let reported = [all[0], ReportedCache { level: 2, ..all[2] }];
    let ladder = find_plateaus(&points, &reported);
    assert_eq!(plateau_levels(&ladder), [Some(1), Some(2), None]);
    assert!(
        ladder.notes[0].contains("where no cache is reported to end"),
        "{:?}",
        ladder.notes
    );
}

#[test]
fn a_range_that_ends_early_is_not_called_memory() {
    let mut points = zen3().points(Shape::Sudden, 6, 0.02, &mut seeded_generator());
    points.retain(|point| point.bytes <= 8 << 20);
    let ladder = find_plateaus(&points, &zen3().reported());
    assert_eq!(plateau_levels(&ladder), [Some(1), Some(2), Some(3)]);
    assert_eq!(ladder.plateaus[2].effective_bytes, None);
    assert_eq!(ladder.plateaus[2].reported_bytes, Some(32 * MIB));
    assert!(ladder.notes[0].contains("large enough"));
}

#[test]
fn capacities_hint_at_exclusion() {
    let reported = [(1, 64 * KIB), (2, 512 * KIB), (3, MIB)]
        .map(|(level, bytes)| ReportedCache { level, bytes });
    for (outer, hint) in [
        (MIB, Some(Inclusion::Inclusive)),
        (3 * MIB / 2, Some(Inclusion::Exclusive)),
        (600 * KIB, None),
        (8 * MIB, None),
    ] {
        let known = MachineWithCaches {
            name: "an old one",
            caches: vec![(64 * KIB, 1.5), (300 * KIB, 6.0), (outer, 20.0)],
            memory_ns: 110.0,
        };
        let points = known.points(Shape::Sudden, 8, 0.01, &mut seeded_generator());
        assert_eq!(find_plateaus(&points, &reported).hint, hint, "{outer}");
    }
    // 512 KiB more of 32 MiB is less than a knee's error.
    let points = zen3().points(Shape::Sudden, 8, 0.01, &mut seeded_generator());
    assert_eq!(find_plateaus(&points, &zen3().reported()).hint, None);
}

#[test]
fn a_few_chosen_points_are_enough() {
    let mut chance = seeded_generator();
    let mut wrong = Vec::new();
    let mut most = 0;
    for known in list_published_caches() {
        for shape in SHAPES {
            let mut points: Vec<Point> = Vec::new();
            for _ in 0..12 {
                let sizes = next_sizes(&points, 4 << 10, 1 << 30, 40);
                if sizes.is_empty() {
                    break;
                }
                for bytes in sizes {
                    let ns = known.ns(shape, bytes as f64) * draw_noise(0.03, &mut chance);
                    points.push(new_point(bytes as f64, ns));
                }
            }
            most = most.max(points.len());
            let ladder = find_plateaus(&points, &known.reported());
            if let Some(fault) = find_fault(&known, &ladder, 1.2) {
                wrong.push(format!("{} {shape:?}: {fault}", known.name));
            }
        }
    }
    assert!(
        wrong.is_empty() && most <= 64,
        "{most} points\n{}",
        wrong.join("\n")
    );
}

#[test]
fn no_sizes_are_suggested_for_an_empty_range_or_a_flat_ladder() {
    assert!(next_sizes(&[], 4096, 1 << 20, 0).is_empty());
    assert!(next_sizes(&[], 1 << 20, 4096, 9).is_empty());
    assert_eq!(next_sizes(&[], 4096, 1 << 20, 2), [4096, 1 << 20]);
    assert_eq!(
        next_sizes(&[], 4096, 16384, 9),
        [4096, 5888, 8192, 11520, 16384]
    );
    let flat: Vec<Point> = (12..30)
        .map(|i| new_point(f64::from(i).exp2(), 3.0))
        .collect();
    assert!(next_sizes(&flat, 4096, 1 << 30, 10).is_empty());
}

#[test]
fn zero_or_one_point_make_no_ladder() {
    assert_eq!(find_plateaus(&[], &zen3().reported()), Ladder::default());
    let nonsense = [
        new_point(4096.0, f64::NAN),
        new_point(0.0, 3.0),
        new_point(8192.0, -1.0),
    ];
    assert_eq!(find_plateaus(&nonsense, &[]), Ladder::default());
    assert_eq!(
        plateau_levels(&find_plateaus(&[new_point(4096.0, 1.0)], &[])),
        [Some(1)]
    );
    assert_eq!(
        plateau_levels(&find_plateaus(&[new_point(4096.0, 100.0)], &[])),
        [None]
    );
}

#[test]
fn many_points_are_thinned() {
    let known = zen3();
    let points = known.points(Shape::Gradual, 1000, 0.05, &mut seeded_generator());
    let ladder = find_plateaus(&points, &known.reported());
    assert_eq!(find_fault(&known, &ladder, 1.3), None);
}

/// Measured medians, with huge pages and without: a virtual machine on a shared Zen 4 that reports
/// 32 KiB, 1 MiB and 32 MiB and whose last cache slopes instead of being level. Four sizes an
/// octave from 4 KiB on, ns.
const WITH_HUGE_PAGES: [f64; 65] = [
    1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.27, 3.82, 3.79, 3.79,
    3.80, 3.80, 3.80, 3.80, 3.80, 3.80, 3.80, 3.80, 3.80, 3.92, 4.25, 4.52, 4.78, 5.28, 5.89, 6.71,
    8.00, 9.98, 11.01, 12.73, 13.34, 13.99, 14.74, 14.92, 15.50, 16.02, 16.25, 18.09, 18.96, 20.93,
    99.14, 121.76, 137.44, 124.91, 125.54, 135.55, 132.92, 137.27, 140.71, 140.37, 143.91, 151.57,
    150.73, 150.46, 150.91, 156.11, 155.24, 155.55, 163.85,
];
const WITHOUT_HUGE_PAGES: [f64; 65] = [
    1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.08, 1.09, 3.82, 3.82, 3.79,
    3.80, 3.80, 3.80, 3.80, 3.80, 3.80, 3.80, 3.84, 3.80, 3.93, 4.26, 5.28, 4.98, 5.19, 6.41, 8.99,
    9.05, 13.06, 13.71, 12.73, 13.39, 14.05, 14.50, 14.73, 15.36, 15.61, 16.20, 16.35, 17.40,
    20.36, 42.27, 144.39, 133.69, 140.47, 147.32, 147.65, 147.56, 153.64, 167.34, 181.73, 176.88,
    170.94, 172.15, 175.72, 181.78, 190.59, 228.13, 266.06, 232.96,
];

#[test]
fn a_measured_ladder_is_read() {
    let reported = [(1, 32 * KIB), (2, MIB), (3, 32 * MIB)]
        .map(|(level, bytes)| ReportedCache { level, bytes });
    for measured in [WITH_HUGE_PAGES, WITHOUT_HUGE_PAGES] {
        let sizes = (0..).map(|index| 4096.0 * (f64::from(index) / 4.0).exp2());
        let points: Vec<Point> = sizes
            .zip(measured)
            .map(|(bytes, ns)| new_point(bytes, ns))
            .collect();
        let ladder = find_plateaus(&points, &reported);
        assert_eq!(
            plateau_levels(&ladder),
            THREE_LEVELS,
            "{:?}",
            list_found_levels(&ladder)
        );
        for (plateau, wanted) in ladder.plateaus.iter().zip([32 * KIB, MIB, 11 * MIB]) {
            let ratio = plateau.effective_bytes.unwrap() as f64 / wanted as f64;
            assert!(
                (0.8..1.2).contains(&ratio),
                "{:?}",
                list_found_levels(&ladder)
            );
        }
        assert_eq!(ladder.plateaus[2].reported_bytes, Some(32 * MIB));
    }
}

/// Latencies, some of which no clock should return.
fn any_ns() -> impl Strategy<Value = f64> {
    let odd = [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300];
    prop_oneof![9 => 0.1f64..500.0, 1 => prop::sample::select(odd.to_vec())]
}

fn any_points() -> impl Strategy<Value = Vec<Point>> {
    let bytes =
        prop_oneof![9 => 1usize..1 << 31, 1 => prop::sample::select(vec![0, 1, usize::MAX])];
    let interval = prop::option::of((any_ns(), any_ns()));
    let any = (bytes, any_ns(), interval).prop_map(|(bytes, ns, interval_ns)| Point {
        bytes,
        ns,
        interval_ns,
    });
    prop::collection::vec(any, 0..60)
}

proptest! {
    #[test]
    fn plateaus_ascend_for_any_points(points in any_points(), caches in prop::collection::vec((any::<u8>(), any::<u64>()), 0..6)) {
        let reported: Vec<ReportedCache> = caches.into_iter().map(|(level, bytes)| ReportedCache { level, bytes }).collect();
        let ladder = find_plateaus(&points, &reported);
        for pair in ladder.plateaus.windows(2) {
            prop_assert!(pair[0].latency_ns < pair[1].latency_ns);
            prop_assert!(pair[0].effective_bytes.is_some());
            prop_assert!(pair[1].effective_bytes.is_none_or(|bytes| Some(bytes) >= pair[0].effective_bytes));
            prop_assert!(pair[1].level.is_none() || pair[0].level < pair[1].level);
        }
        let usable = points.iter().any(|p| p.bytes > 0 && p.ns > 0.0 && p.ns.is_finite());
        prop_assert_eq!(ladder.plateaus.is_empty(), !usable);
    }

    #[test]
    fn the_order_of_points_makes_no_difference(seed in any::<u64>()) {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut points = zen3().points(Shape::Gradual, 3, 0.05, &mut chance);
        let before = find_plateaus(&points, &[]);
        points.reverse();
        prop_assert_eq!(find_plateaus(&points, &[]), before);
    }

    #[test]
    fn suggested_sizes_are_new_and_within(points in any_points(), low in 1usize..1 << 20, high in 1usize..1 << 31, most in 0usize..20) {
        let sizes = next_sizes(&points, low, high, most);
        prop_assert!(sizes.len() <= most);
        for size in sizes {
            prop_assert!((low..=high).contains(&size));
            prop_assert!(points.iter().all(|point| point.bytes != size));
        }
    }
}
