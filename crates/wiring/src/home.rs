//! The far package of a machine whose test line lives in the near one.
//!
//! A line has a home: the memory node that it was allocated on. On machines of several AMD dies a
//! transfer between two LLCs asks the home first, so in the other package every pair of LLCs is as
//! slow as a pair across packages. Dual EPYC 7742, published with core-to-core-latency: 132 ns
//! between LLCs of package 0, 267 ns between those of package 1, 267 ns across (its issue 97).
//! Taken literally, such a matrix says "one package of 64 cores and sixteen of four".
//!
//! The model has two latencies: near (both in the home package) and far (all others). It is
//! accepted only if it fits: one group H is close, everything from H to the rest and within the
//! rest is alike, and the rest is about as large as H. The figures cannot show whether the rest is
//! one package or several; one is the simplest explanation.

use super::cut::{CUTS, NARROWEST};
use super::figures::{Logs, count, mean, median, quantile};
use super::linkage::Tree;
use pinwise_format::whole_usize;

/// Far over near. Published: 7601 1.4, 1950X 1.7, 7R13 1.8, 7302 and 7742 1.9.
const RATIO: f64 = 1.3;
/// Items of more CPUs are not single cores.
const THREADS: usize = 2;
/// Cores that each package must have if nothing is known of its caches: more than a small cache
/// has.
const CORES: usize = 6;
/// Minimum ratio of another cache's latency to the own one's, for caches of four or more cores: 3.5
/// and more on all of Zen.
const CACHE_RATIO: f64 = 2.3;
/// Allowed ratio of the rest to the paths across, either way: within 2 % on 7742, 7R13 and 1950X, 4
/// % on 7302 and 7601.
const ALIKE: f64 = 1.15;
/// The nearest tenth of the paths across over the farthest fifth of those within: no item of the
/// rest may be close to the home package.
const CLEAR: f64 = 1.05;
/// The share of comparisons near < far that must hold.
const ORDERED: f64 = 0.96;
/// Packages of one machine have equally many CPUs; of the few that a guest sees, one may have up to
/// this many times the other's.
const IMBALANCE: usize = 2;

/// The result of the model.
#[derive(Debug, Clone)]
pub(super) struct Home {
    /// Items of the package that is the line's home.
    pub(super) near: Vec<usize>,
    /// Items of the other.
    pub(super) far: Vec<usize>,
    /// Typical within the home package, as logarithm.
    pub(super) inside: f64,
    /// Typical of all the rest.
    pub(super) outside: f64,
    /// Share of comparisons near < far that hold.
    pub(super) ordered: f64,
    /// Share of the variance between near and far.
    explained: f64,
}

impl Home {
    /// Items that the model fits, as far as single pairs show.
    pub(super) fn supporters(&self) -> usize {
        whole_usize((self.ordered * count(self.near.len() + self.far.len())).floor())
    }
}

/// Tries the model on items, each standing for `weights` CPUs.
pub(super) fn find(logs: &Logs, tree: &Tree, weights: &[usize]) -> Option<Home> {
    let mut best: Option<Home> = None;
    for merges in tree.widest_gaps(CUTS, NARROWEST) {
        let groups = tree.groups_after(merges);
        let Some(largest) = groups.iter().max_by_key(|group| weight(group, weights)) else {
            continue;
        };
        if let Some(home) = fit(logs, largest, weights)
            && best.as_ref().is_none_or(|b| home.explained > b.explained)
        {
            best = Some(home);
        }
    }
    best
}

fn weight(group: &[usize], weights: &[usize]) -> usize {
    group.iter().map(|&item| weights[item]).sum()
}

fn fit(logs: &Logs, near: &[usize], weights: &[usize]) -> Option<Home> {
    let far: Vec<usize> = (0..logs.len())
        .filter(|item| !near.contains(item))
        .collect();
    // Groups of several cores are caches, and those of the near package exist in the far one, too.
    // Without any, the near group may itself be a cache among others: then it has few CPUs that are
    // much closer.
    let has_caches = weights.iter().any(|&weight| weight > THREADS);
    let fewest = if has_caches { 2 } else { CORES };
    if near.len() < fewest || far.len() < fewest {
        return None;
    }
    let (near_weight, far_weight) = (weight(near, weights), weight(&far, weights));
    if near_weight > IMBALANCE * far_weight || far_weight > IMBALANCE * near_weight {
        return None;
    }
    let mut within = pairs(logs, near, near);
    let mut across = pairs(logs, near, &far);
    let mut rest = pairs(logs, &far, &far);
    let beyond: Vec<f64> = across.iter().chain(&rest).copied().collect();
    let explained = explained_share(&within, &beyond);
    let ordered = ordered_share(&within, beyond);
    let is_clear = quantile(&mut across, 0.1) - quantile(&mut within, 0.8) >= CLEAR.ln();
    let (inside, cross, other) = (median(&mut within), median(&mut across), median(&mut rest));
    let fits = is_clear
        && (has_caches || cross - inside <= CACHE_RATIO.ln())
        && cross - inside >= RATIO.ln()
        && (other - cross).abs() <= ALIKE.ln()
        && ordered >= ORDERED;
    fits.then(|| Home {
        near: near.to_vec(),
        far,
        inside,
        outside: cross.min(other),
        ordered,
        explained,
    })
}

fn pairs(logs: &Logs, rows: &[usize], columns: &[usize]) -> Vec<f64> {
    rows.iter()
        .flat_map(|&i| columns.iter().map(move |&j| logs.at(i, j)))
        .filter(|value| value.is_finite())
        .collect()
}

/// The variance between two sets over all variance.
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
