//! Names levels by their order, and by published latencies if the order does not decide.
//!
//! Latencies are one-way times of compare-and-swap as core-to-core-latency publishes them: SMT
//! siblings 4 to 13 ns on most cores (10 on Milan, 8 on Zen 3 desktops, 4 to 8 on Intel), one LLC
//! 15 to 57 ns, another LLC 68 to 145 ns, another package 97 to 320 ns. If ranges overlap, the
//! weaker claim is taken: Intel cores that share a package share its LLC too, while two LLCs of one
//! AMD package are not two packages.

use super::LevelKind;
use super::search::{By, LevelRows};

/// Only SMT siblings are this near; the fastest published pair of cores with one LLC (Zen 3, Zen 4)
/// has 15.3 ns.
const MAX_SURE_SMT_NS: f64 = 14.0;
/// Siblings of slower cores: 14.4 ns on Milan in a guest, 18 on Zen 5. The next level is then the
/// LLC, not 68 ns and more away.
const MAX_SLOW_SMT_NS: f64 = 20.0;
const MAX_SAME_LLC_NS: f64 = 62.0;
/// For machines of pairs with nothing below them: Bulldozer's modules communicate through their L2
/// in 42 to 47 ns, Loongson's siblings in 32; pairs of cores on a tile or cluster bus take 53 (KNL)
/// and 60 (Cortex-A72).
const MAX_PAIR_OF_THREADS_NS: f64 = 48.0;
/// From this many pairs on, pairs are not chance.
const MIN_PAIRS: usize = 3;
/// The widest SMT: POWER's eight threads.
const MAX_SMT: usize = 8;

/// Another package is at least this far (Ice Lake 97, Sandy Bridge 99 ns); another LLC of the same
/// one is nearer on most machines.
const MIN_OTHER_PACKAGE_NS: f64 = 94.0;
/// Beyond this another package is likely whatever its size (Elbrus 253).
const MIN_SURE_OTHER_PACKAGE_NS: f64 = 150.0;
/// Rings and meshes of whole packages take 32 to 57 ns; AMD's small complexes 15 to 38.
const MIN_RING_NS: f64 = 24.0;
const MIN_LARGE_RING_NS: f64 = 40.0;
/// The largest complex of Zen to Zen 2 has eight CPUs.
const MAX_OLD_COMPLEX: usize = 8;

/// Names the levels, which are ordered from low to high. `may_be_smt` is false if contention has
/// already decided about siblings.
pub(super) fn name_levels(levels: &[LevelRows], may_be_smt: bool) -> Vec<LevelKind> {
    let mut kinds = Vec::new();
    for (place, level) in levels.iter().enumerate() {
        let is_above_cache = kinds
            .iter()
            .any(|kind| matches!(kind, LevelKind::Llc | LevelKind::Package));
        kinds.push(match level.by {
            By::Contention => LevelKind::Smt,
            By::Inverse => LevelKind::Llc,
            By::Home => LevelKind::Package,
            By::Gap if place == 0 && may_be_smt && is_smt(level) => LevelKind::Smt,
            By::Gap if is_above_cache && kinds.contains(&LevelKind::Package) => LevelKind::Other,
            By::Gap if is_above_cache && level.outside_ns >= MIN_OTHER_PACKAGE_NS => {
                LevelKind::Package
            }
            By::Gap if is_above_cache => LevelKind::Other,
            By::Gap if is_package(level) => LevelKind::Package,
            By::Gap => LevelKind::Llc,
        });
    }
    kinds
}

/// Can the lowest level, found by latency, be SMT siblings?
pub(super) fn is_smt(level: &LevelRows) -> bool {
    let widest = level.shared_groups().map(Vec::len).max().unwrap_or(0);
    let is_all_pairs = widest == 2
        && level.shared_groups().count() >= MIN_PAIRS
        && level.groups.iter().all(|group| group.len() == 2);
    let inside = level.inside_ns;
    (inside < MAX_SURE_SMT_NS && widest <= MAX_SMT)
        || (inside < MAX_SLOW_SMT_NS && widest <= 2 && level.outside_ns < MAX_SAME_LLC_NS)
        || (is_all_pairs && inside < MAX_PAIR_OF_THREADS_NS)
}

fn is_package(level: &LevelRows) -> bool {
    let smallest = level.shared_groups().map(Vec::len).min().unwrap_or(0);
    let (inside, outside) = (level.inside_ns, level.outside_ns);
    let is_large = smallest > MAX_OLD_COMPLEX
        && outside >= MIN_OTHER_PACKAGE_NS
        && inside >= MIN_RING_NS
        && (level.shared_groups().count() == 2 || inside >= MIN_LARGE_RING_NS);
    let is_far =
        outside >= MIN_SURE_OTHER_PACKAGE_NS && inside >= MIN_LARGE_RING_NS && smallest > 2;
    is_large || is_far
}
