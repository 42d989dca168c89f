//! Joins siblings whose only measurement was disturbed.
//!
//! A pair of siblings has a single figure, and about one figure in a hundred is disturbed: 31 pairs of
//! 8 ns and two CPUs at 50 ns are a machine of 32 cores. All other levels are medians of many pairs.
//! If all but a few CPUs are in groups of one size, the few are joined unless other figures contradict.

use super::figures::{Logs, quantile};
use super::search::LevelRows;

/// Minimum number of groups of one size before others are expected to have it. (Hybrid chips with
/// this many P-cores have four E-cores or more.)
const MIN_GROUPS: usize = 6;
/// Limits the leftover CPUs to one in eight.
const MIN_CPUS_PER_LEFTOVER: usize = 8;
/// Limits how much leftovers may differ in their latencies to the rest of the machine, relative to
/// known siblings.
const MAX_UNLIKENESS_RATIO: f64 = 2.0;

/// Pairs the leftovers of a level of siblings if that is more likely. `may_be`: can two rows be
/// siblings according to other measurements?
pub(super) fn pair_leftovers(
    logs: &Logs,
    mut level: LevelRows,
    may_be: impl Fn(usize, usize) -> bool,
) -> LevelRows {
    let size = level.shared_groups().map(Vec::len).max().unwrap_or(0);
    let whole = level
        .shared_groups()
        .filter(|group| group.len() == size)
        .count();
    let alone: Vec<usize> = level
        .groups
        .iter()
        .filter(|group| group.len() == 1)
        .map(|group| group[0])
        .collect();
    if size != 2
        || whole != level.shared_groups().count()
        || whole < MIN_GROUPS
        || alone.len() < 2
        || alone.len() * MIN_CPUS_PER_LEFTOVER > logs.len()
    {
        return level;
    }
    let siblings: Vec<Vec<usize>> = level.shared_groups().cloned().collect();
    let mut unlike: Vec<f64> = siblings
        .iter()
        .map(|pair| logs.unlikeness(pair[0], pair[1]))
        .collect();
    let limit = MAX_UNLIKENESS_RATIO * quantile(&mut unlike, 0.9);
    let pairs = match_pairs(logs, &alone, may_be);
    for (a, b) in pairs {
        if logs.unlikeness(a, b) <= limit {
            level.groups.retain(|group| *group != [a] && *group != [b]);
            level.groups.push(vec![a.min(b), a.max(b)]);
        }
    }
    level
}

/// Pairs the rows that may be siblings: first those that are closest to each other, then, of the rest,
/// those with the most similar latencies to all others. The latency of a pair may be disturbed, so it
/// cannot decide alone. It comes first because cores of one cache have nearly as similar latencies to
/// all others as siblings have.
fn match_pairs(
    logs: &Logs,
    alone: &[usize],
    may_be: impl Fn(usize, usize) -> bool,
) -> Vec<(usize, usize)> {
    let distance = |a: usize, b: usize| Some(logs.at(a, b)).filter(|v| v.is_finite());
    let everyone: Vec<usize> = (0..logs.len()).collect();
    let mut pairs = mutual_nearest(alone, &everyone, distance);
    let is_unpaired = |row: &usize| !pairs.iter().any(|&(a, b)| a == *row || b == *row);
    let unpaired: Vec<usize> = alone.iter().copied().filter(is_unpaired).collect();
    pairs.extend(mutual_nearest(&unpaired, &unpaired, |a, b| {
        Some(logs.unlikeness(a, b))
    }));
    pairs.retain(|&(a, b)| may_be(a, b));
    pairs
}

/// Pairs of rows that are each other's nearest among `others`.
fn mutual_nearest(
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
