//! Siblings whose one measurement went wrong.
//!
//! A pair of siblings is a single figure, and one figure in some hundred is disturbed: 31 pairs of
//! 8 ns and two CPUs at 50 are a machine of 32 cores. All other levels are medians of many pairs.
//! If all but a few CPUs are in groups of one size, the few are joined unless something speaks
//! against it.

use super::figures::{Logs, quantile};
use super::search::LevelRows;

/// From this many groups of one size on, the size is a rule of the machine. Hybrid chips with this
/// many P-cores have four E-cores or more for each.
const RULE: usize = 6;
/// Largest share of leftover CPUs: one in eight.
const MIN_CPUS_PER_LEFTOVER: usize = 8;
/// Siblings see the rest of the machine alike; leftovers may differ by this factor of the siblings'
/// difference.
const ALIKE: f64 = 2.0;

/// The level with its leftovers paired if that machine is likelier; `may_be`: no other measurement
/// speaks against it.
pub(super) fn pair_leftovers(
    logs: &Logs,
    mut level: LevelRows,
    may_be: impl Fn(usize, usize) -> bool,
) -> LevelRows {
    let size = level.shared().map(Vec::len).max().unwrap_or(0);
    let whole = level.shared().filter(|group| group.len() == size).count();
    let alone: Vec<usize> = level
        .groups
        .iter()
        .filter(|group| group.len() == 1)
        .map(|group| group[0])
        .collect();
    if size != 2
        || whole != level.shared().count()
        || whole < RULE
        || alone.len() < 2
        || alone.len() * MIN_CPUS_PER_LEFTOVER > logs.len()
    {
        return level;
    }
    let siblings: Vec<Vec<usize>> = level.shared().cloned().collect();
    let mut unlike: Vec<f64> = siblings
        .iter()
        .map(|pair| logs.unlikeness(pair[0], pair[1]))
        .collect();
    let limit = ALIKE * quantile(&mut unlike, 0.9);
    let pairs = match_pairs(logs, &alone, may_be);
    for (a, b) in pairs {
        if logs.unlikeness(a, b) <= limit {
            level.groups.retain(|group| *group != [a] && *group != [b]);
            level.groups.push(vec![a.min(b), a.max(b)]);
        }
    }
    level
}

/// Pairs among the rows that may be siblings: first those that are closest to each other, then, of
/// the rest, those that see all others most alike. Their own latency is the suspect, so it cannot
/// decide alone; cores of one cache see all others nearly as alike as siblings do, so it comes
/// first.
fn match_pairs(
    logs: &Logs,
    alone: &[usize],
    may_be: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    let distance = |a: usize, b: usize| Some(logs.at(a, b)).filter(|v| v.is_finite());
    let everyone: Vec<usize> = (0..logs.len()).collect();
    let mut pairs = mutual(alone, &everyone, distance);
    let is_left = |row: &usize| !pairs.iter().any(|&(a, b)| a == *row || b == *row);
    let left: Vec<usize> = alone.iter().copied().filter(is_left).collect();
    pairs.extend(mutual(&left, &left, |a, b| Some(logs.unlikeness(a, b))));
    pairs.retain(|&(a, b)| may_be(a, b));
    pairs
}

/// Pairs of rows that are each other's nearest among `others`.
fn mutual(
    rows: &[usize],
    others: &[usize],
    distance: impl Fn(usize, usize) -> Option<f64>,
) -> Vec<(usize, usize)> {
    let nearest = |row: usize| {
        let known = others.iter().filter(|&&other| other != row);
        known
            .filter_map(|&other| Some((distance(row, other)?, other)))
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, other)| other)
    };
    rows.iter()
        .filter_map(|&row| nearest(row).map(|other| (row, other)))
        .filter(|&(row, other)| row < other && rows.contains(&other))
        .filter(|&(row, other)| nearest(other) == Some(row))
        .collect()
}
