//! Measures fewer pairs: CPUs form groups around leaders, whose latencies stand for the group.
//!
//! ```text
//! measure a leader's row ─► CPUs near it are its group ─► the farthest of the
//! rest is the next leader … ─► measure pairs within groups ─► estimate the
//! other pairs from their leaders
//! ```

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::pairs::{Pairs, measure_transfers};
use super::rounds::tournament;
use super::session::Session;
use pinwise_machine::MachineError;
use pinwise_stats::describe::quantile;

/// A CPU belongs to a leader's group up to this many times the second-lowest latency of the leader's
/// row (the lowest may be an SMT sibling's). In published matrices, latencies between caches are 2 to
/// 5 times those within one, which vary by up to 1.4.
const NEAR: f64 = 1.5;

/// Measures the pairs of leaders and those within groups, and estimates the rest. Returns how many
/// pairs within groups time did not allow.
pub(super) fn measure(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    width: usize,
    rng: &mut ChaCha8Rng,
) -> Result<usize, MachineError> {
    let leader_of = choose_leaders(session, pairs, width)?;
    let mut within: Vec<(usize, usize)> = tournament(pairs.len())
        .into_iter()
        .filter(|&(a, b)| leader_of[a] == leader_of[b] && !pairs.is_measured(a, b))
        .collect();
    within.shuffle(rng);
    // If time is short, reported siblings come first: the report is a hint, but not evidence.
    within.sort_by_key(|&(a, b)| !pairs.are_reported_siblings(&session.topology, a, b));
    let missed = measure_transfers(session, pairs, &within, width)?;
    estimate_missing_pairs(session, pairs, &leader_of);
    Ok(missed)
}

/// Chooses leaders and measures their rows; returns the leader of each row.
fn choose_leaders(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    width: usize,
) -> Result<Vec<usize>, MachineError> {
    let n = pairs.len();
    let mut leader_of: Vec<Option<usize>> = vec![None; n];
    let mut leaders: Vec<usize> = Vec::new();
    let mut next = Some(0);
    while let Some(leader) = next {
        leader_of[leader] = Some(leader);
        let free = (0..n).filter(|&row| leader_of[row].is_none());
        let rows: Vec<usize> = leaders.iter().copied().chain(free).collect();
        let row: Vec<(usize, usize)> = rows.iter().map(|&other| (leader, other)).collect();
        measure_transfers(session, pairs, &row, width)?;
        for member in find_near_rows(pairs, leader, &rows) {
            leader_of[member].get_or_insert(leader);
        }
        leaders.push(leader);
        let distance = |row: usize| {
            let figure = pairs.latency.at(leader, row);
            if figure.is_nan() { 0.0 } else { figure }
        };
        next = (0..n)
            .filter(|&row| leader_of[row].is_none())
            .max_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    }
    Ok(leader_of
        .into_iter()
        .map(|leader| leader.unwrap_or(0))
        .collect())
}

/// Rows that are near the leader.
fn find_near_rows(pairs: &Pairs, leader: usize, rows: &[usize]) -> Vec<usize> {
    let mut figures: Vec<f64> = rows
        .iter()
        .map(|&row| pairs.latency.at(leader, row))
        .filter(|figure| figure.is_finite())
        .collect();
    figures.sort_unstable_by(f64::total_cmp);
    let Some(&reach) = figures.get(1).or(figures.first()) else {
        return Vec::new();
    };
    rows.iter()
        .copied()
        .filter(|&row| pairs.latency.at(leader, row) <= NEAR * reach)
        .collect()
}

/// Estimates the latency of pairs that were not measured: between groups from their leaders, within a
/// group by the median of the leader's latencies.
fn estimate_missing_pairs(session: &mut Session<'_>, pairs: &mut Pairs, leader_of: &[usize]) {
    let n = pairs.len();
    let mut medians: BTreeMap<usize, f64> = BTreeMap::new();
    for &leader in leader_of {
        medians.entry(leader).or_insert_with(|| {
            let members: Vec<usize> = (0..n).filter(|&row| leader_of[row] == leader).collect();
            let figures: Vec<f64> = members
                .iter()
                .map(|&row| pairs.latency.at(leader, row))
                .filter(|figure| figure.is_finite())
                .collect();
            quantile(&figures, 0.5)
        });
    }
    for a in 0..n {
        for b in a + 1..n {
            if pairs.is_measured(a, b) {
                continue;
            }
            let estimate = if leader_of[a] == leader_of[b] {
                medians[&leader_of[a]]
            } else {
                estimate_by_leaders(pairs, leader_of, a, b)
            };
            if estimate.is_finite() {
                pairs.latency.set(a, b, estimate);
                session.effort.pairs_skipped += 1;
            }
        }
    }
}

/// Mean of the measured latencies between each CPU and the other's leader; if there is none, the
/// latency between the leaders.
fn estimate_by_leaders(pairs: &Pairs, leader_of: &[usize], a: usize, b: usize) -> f64 {
    let (la, lb) = (leader_of[a], leader_of[b]);
    let near: Vec<f64> = [(a, lb), (la, b)]
        .into_iter()
        .filter(|&(x, y)| pairs.is_measured(x, y))
        .map(|(x, y)| pairs.latency.at(x, y))
        .collect();
    if near.is_empty() {
        return pairs.latency.at(la, lb);
    }
    near.iter().sum::<f64>() / near.len() as f64
}
