//! Synthetic machines without randomness, in which single figures decide.

use super::super::{Evidence, LevelKind, PairMatrix, Wiring, infer};

fn make_matrix(cpus: usize, ns: impl Fn(usize, usize) -> f64) -> PairMatrix {
    let mut matrix = PairMatrix::new((0..cpus).collect());
    for b in 0..cpus {
        for a in 0..b {
            // A slight variation, so that no two figures are equal.
            let wobble = 1.0 + 0.002 * ((a * 7 + b * 13) % 11) as f64;
            matrix.set(a, b, wobble * ns(a, b));
        }
    }
    matrix
}

fn infer_wiring(latency_ns: PairMatrix, contention: Option<PairMatrix>) -> Wiring {
    infer(&Evidence {
        latency_ns,
        contention,
    })
}

fn count_sibling_groups(wiring: &Wiring) -> usize {
    let level = wiring.level(LevelKind::Smt);
    level.map_or(0, |level| level.groups.len())
}

/// 7R13 with one pair in a hundred disturbed: siblings at 31 ns, mates of their
/// cache at 21.
#[test]
fn siblings_slower_than_mates_of_their_cache_are_found() {
    let caches = |a: usize, b: usize| match (a / 2 == b / 2, a / 16 == b / 16) {
        (true, _) if a == 6 || a == 40 => 31.0,
        (true, _) => 9.0,
        (_, true) => 21.0 + 0.2 * (a / 2).abs_diff(b / 2) as f64,
        _ => 105.0,
    };
    let wiring = infer_wiring(make_matrix(64, caches), None);
    assert_eq!(count_sibling_groups(&wiring), 32, "{:?}", wiring.levels);
}

/// A guest with two of the small cores of a hybrid chip.
#[test]
fn two_small_cores_are_not_siblings_if_contention_denies_it() {
    let ns = |a: usize, b: usize| match (a < 14, b < 14) {
        (true, true) if a / 2 == b / 2 => 4.5,
        (true, true) => 33.0,
        (false, false) => 38.0,
        _ => 36.0,
    };
    let ratio = |a: usize, b: usize| if a / 2 == b / 2 && b < 14 { 1.6 } else { 1.02 };
    let wiring = infer_wiring(make_matrix(16, ns), Some(make_matrix(16, ratio)));
    assert_eq!(count_sibling_groups(&wiring), 7, "{:?}", wiring.levels);
}

/// Eight CPUs of a machine with two packages, whose line is homed in the first: those of the other
/// are as far from each other as from the first.
#[test]
fn a_package_among_single_cpus_is_reported_with_little_confidence() {
    let ns = |a: usize, b: usize| if a < 4 && b < 4 { 110.0 } else { 222.0 };
    let wiring = infer_wiring(make_matrix(8, ns), None);
    let level = &wiring.levels[0];
    assert!(level.confidence < 0.7, "it contradicts nothing: {level:?}");
    let whole = infer_wiring(
        make_matrix(8, |a, b| if a / 4 == b / 4 { 45.0 } else { 110.0 }),
        None,
    );
    assert!(whole.levels[0].confidence > 0.9, "{whole:?}");
}
