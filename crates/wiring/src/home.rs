//! Finds the far package of a machine whose test line is homed in the near one.
//!
//! A line has a home: the memory node that it was allocated on. On machines of several AMD dies a
//! transfer between two LLCs asks the home first, so in the other package every pair of LLCs is as
//! slow as a pair across packages. On a dual EPYC 7742 it takes 132 ns between LLCs of package 0, 267
//! ns between those of package 1, and 267 ns across (core-to-core-latency, issue 97). Taken
//! literally, such a matrix shows one package of 64 cores and sixteen of four.
//!
//! The model has two latencies: near (both in the home package) and far (all others). It is accepted
//! only if it fits: one group H is close, latencies from H to the rest and within the rest are alike,
//! and the rest is about as large as H. The figures cannot show whether the rest is one package or
//! several; one is assumed.

use super::cut::{MAX_CUTS, MIN_GAP};
use super::figures::{Logs, count, mean, median, quantile};
use super::linkage::Tree;
use pinwise_format::whole_usize;

/// Minimum latency far over near. Published ratios: 7601 1.4, 1950X 1.7, 7R13 1.8, 7302 and 7742 1.9.
const MIN_FAR_RATIO: f64 = 1.3;
/// Items of more CPUs are not single cores.
const MAX_CORE_CPUS: usize = 2;
/// Minimum number of cores of each package if its caches are unknown: more than a small cache has.
const MIN_CORES: usize = 6;
/// The latency to another cache over that within a cache of four or more cores is above this: 3.5 and
/// more on all of Zen.
const CACHE_RATIO: f64 = 2.3;
/// Maximum ratio of latencies within the rest to those across, either way: they are within 2 % on
/// 7742, 7R13 and 1950X, 4 % on 7302 and 7601.
const MAX_REST_RATIO: f64 = 1.15;
/// Minimum ratio of the nearest tenth of the latencies across to the farthest fifth of those within:
/// no item of the rest may be close to the home package.
const MIN_CLEAR_RATIO: f64 = 1.05;
/// Minimum share of comparisons in which near < far.
const MIN_ORDERED_SHARE: f64 = 0.96;
/// Packages of one machine have equally many CPUs; of those that a guest sees, one may have up to
/// this many times as many as the other.
const MAX_IMBALANCE: usize = 2;

/// The result of the model.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// Items of the package that is the line's home.
    pub(super) near: Vec<usize>,
    /// Items of the other.
    pub(super) far: Vec<usize>,
    /// Typical latency within the home package, as logarithm.
    pub(super) inside: f64,
    /// Typical latency of all other pairs, as logarithm.
    pub(super) outside: f64,
    /// Share of comparisons near < far that hold.
    pub(super) ordered: f64,
    /// Share of the variance between near and far.
    explained: f64,
}

impl Home {
    /// Number of items that the model fits.
    pub(super) fn supporters(&self) -> usize {
        whole_usize((self.ordered * count(self.near.len() + self.far.len())).floor())
    }
}

/// Fits the model to items; `weights` are their numbers of CPUs.
pub(super) fn find_home(logs: &Logs, tree: &Tree, weights: &[usize]) -> Option<Home> {
    let mut best: Option<Home> = None;
    for merges in tree.widest_gaps(MAX_CUTS, MIN_GAP) {
        let groups = tree.groups_after(merges);
        let Some(largest) = groups
            .iter()
            .max_by_key(|group| total_weight(group, weights))
        else {
            continue;
        };
        if let Some(home) = fit_home(logs, largest, weights)
            && best.as_ref().is_none_or(|b| home.explained > b.explained)
        {
            best = Some(home);
        }
    }
    best
}

fn total_weight(group: &[usize], weights: &[usize]) -> usize {
    group.iter().map(|&item| weights[item]).sum()
}

fn fit_home(logs: &Logs, near: &[usize], weights: &[usize]) -> Option<Home> {
    let far: Vec<usize> = (0..logs.len())
        .filter(|item| !near.contains(item))
        .collect();
    // Groups of several cores are caches, and those of the near package exist in the far one, too.
    // Without any, the near group may itself be a cache among others: then it has few CPUs that are
    // much closer.
    let has_caches = weights.iter().any(|&weight| weight > MAX_CORE_CPUS);
    let min_items = if has_caches { 2 } else { MIN_CORES };
    if near.len() < min_items || far.len() < min_items {
        return None;
    }
    let (near_weight, far_weight) = (total_weight(near, weights), total_weight(&far, weights));
    if near_weight > MAX_IMBALANCE * far_weight || far_weight > MAX_IMBALANCE * near_weight {
        return None;
    }
    let mut within = block_values(logs, near, near);
    let mut across = block_values(logs, near, &far);
    let mut rest = block_values(logs, &far, &far);
    let beyond: Vec<f64> = across.iter().chain(&rest).copied().collect();
    let explained = explained_share(&within, &beyond);
    let ordered = ordered_share(&within, beyond);
    let is_clear = quantile(&mut across, 0.1) - quantile(&mut within, 0.8) >= MIN_CLEAR_RATIO.ln();
    let (inside, cross, other) = (median(&mut within), median(&mut across), median(&mut rest));
    let fits = is_clear
        && (has_caches || cross - inside <= CACHE_RATIO.ln())
        && cross - inside >= MIN_FAR_RATIO.ln()
        && (other - cross).abs() <= MAX_REST_RATIO.ln()
        && ordered >= MIN_ORDERED_SHARE;
    fits.then(|| Home {
        near: near.to_vec(),
        far,
        inside,
        outside: cross.min(other),
        ordered,
        explained,
    })
}

fn block_values(logs: &Logs, rows: &[usize], columns: &[usize]) -> Vec<f64> {
    rows.iter()
        .flat_map(|&i| columns.iter().map(move |&j| logs.at(i, j)))
        .filter(|value| value.is_finite())
        .collect()
}

/// The share of the variance that is between two sets.
fn explained_share(near: &[f64], far: &[f64]) -> f64 {
    let (a, b) = (mean(near), mean(far));
    let all = (a * count(near.len()) + b * count(far.len())) / count(near.len() + far.len());
    let square = |values: &[f64], centre: f64| -> f64 {
        values.iter().map(|v| (v - centre) * (v - centre)).sum()
    };
    let total = square(near, all) + square(far, all);
    1.0 - (square(near, a) + square(far, b)) / total.max(f64::MIN_POSITIVE)
}

/// The share of pairs (near, far) with near < far (Mann & Whitney 1947).
fn ordered_share(near: &[f64], mut far: Vec<f64>) -> f64 {
    far.sort_by(f64::total_cmp);
    let above: f64 = near
        .iter()
        .map(|value| count(far.len() - far.partition_point(|f| f <= value)))
        .sum();
    above / (count(near.len()) * count(far.len())).max(1.0)
}
