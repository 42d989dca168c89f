//! Decides whether a cut of the tree is a level, or a position in a gradient.
//!
//! The criterion is how much nearer each item is to its own group than to the nearest other one. On a
//! ring or a mesh the items at a group's edge are as near to the next group; at a level none is.

use super::Thresholds;
use super::figures::{Logs, count, mean, median, quantile};
use super::linkage::Tree;
use pinwise_format::whole_usize;

/// The thresholds for a cut.
#[derive(Debug, Clone, Copy)]
pub(super) struct Criteria {
    /// Step of the clock, ns; 0 if it is fine.
    pub(super) step_ns: f64,
    pub(super) thresholds: Thresholds,
}

/// Minimum ratio if noise is small in comparison: on Loongson 3A6000 siblings have 31.9 and all
/// others 38.6 ns, a ratio of 1.21, with a spread of 0.1 %.
const MIN_FINE_RATIO: f64 = 1.12;
/// With fewer items the spread is too uncertain for `MIN_FINE_RATIO`.
const MIN_FINE_ITEMS: usize = 6;
/// Minimum distance between a level's inside and outside, in steps of the clock: one step may be
/// chance, as each figure is off by up to a step. A quarter of the items may be closer: among many
/// random errors the smallest distance is too small.
const MIN_CLOCK_STEPS: f64 = 1.25;
/// From this many single CPUs on, one disturbed pair (two CPUs) may contradict a level. Blocks of
/// pairs are medians and need no such tolerance.
const MIN_CPUS_TO_TOLERATE_PAIR: usize = 16;
/// Limits the examined cuts, the widest gaps first. Machines have at most five levels; the rest is
/// room for disturbed pairs.
pub(super) const MAX_CUTS: usize = 24;
/// A narrower gap, as a difference of logarithms, cannot be a level and is not examined.
pub(super) const MIN_GAP: f64 = 0.03;

/// A partition of items with its figures. Heights are logarithms of latency.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    /// All items, single ones as groups of one.
    pub(super) groups: Vec<Vec<usize>>,
    /// Height of the last merge.
    height: f64,
    /// For each item, how much nearer its own group is than the nearest other.
    pub(super) margins: Vec<f64>,
    /// The worst margin, without the tolerated items.
    pub(super) worst: f64,
    /// Mean of the margins.
    pub(super) mean: f64,
    /// Typical latency within a group.
    pub(super) inside: f64,
    /// Typical latency to the nearest other group.
    pub(super) outside: f64,
    /// Distance from the typical inside to the nearest outside of all items but the nearest quarter,
    /// ns.
    distance_ns: f64,
    /// Standard deviation of items from the typical.
    spread: f64,
}

impl Cut {
    /// Computes the figures of a partition; `None` if no group has two items, or if there is only one
    /// group. `are_rows`: items are single CPUs, and figures single pairs.
    pub(super) fn new(
        logs: &Logs,
        groups: Vec<Vec<usize>>,
        height: f64,
        are_rows: bool,
        tolerated: f64,
    ) -> Option<Self> {
        if groups.len() < 2 {
            return None;
        }
        let mut sides = item_sides(logs, &groups);
        sides.retain(|side| side.nearest.is_finite());
        let mut insides: Vec<f64> = sides.iter().filter_map(|side| side.typical).collect();
        let mut nearest: Vec<f64> = sides.iter().map(|side| side.nearest).collect();
        if insides.is_empty() {
            return None;
        }
        let inside_ns = mean(
            &insides
                .iter()
                .map(|value| value.exp())
                .collect::<Vec<f64>>(),
        );
        let inside = median(&mut insides);
        let outside = median(&mut nearest);
        let margins: Vec<f64> = sides
            .iter()
            .map(|side| side.nearest - side.farthest_mate.unwrap_or(inside))
            .collect();
        Some(Self {
            worst: worst_margin(margins.clone(), are_rows, tolerated),
            distance_ns: quantile(&mut nearest, 0.25).exp() - inside_ns,
            mean: mean(
                &margins
                    .iter()
                    .map(|m| m.min(MAX_MARGIN))
                    .collect::<Vec<f64>>(),
            ),
            spread: robust_deviation(insides, inside).max(robust_deviation(nearest, outside)),
            groups,
            height,
            margins,
            inside,
            outside,
        })
    }

    /// Number of groups with two or more items.
    pub(super) fn shared_count(&self) -> usize {
        self.groups.iter().filter(|group| group.len() > 1).count()
    }

    /// Is this cut a level? Figures within a step of the clock are not known to differ.
    fn is_level(&self, criteria: &Criteria) -> bool {
        let Thresholds {
            ratio, fine_gap, ..
        } = criteria.thresholds;
        if self.distance_ns < MIN_CLOCK_STEPS * criteria.step_ns {
            return false;
        }
        let is_fine = self.margins.len() >= MIN_FINE_ITEMS && self.worst >= fine_gap * self.spread;
        self.worst >= if is_fine { MIN_FINE_RATIO } else { ratio }.ln()
    }

    /// Does this cut complete the level of another? It keeps its groups, and only single items have
    /// joined, at a distance that is not much larger.
    fn completes(&self, other: &Self, logs: &Logs, criteria: &Criteria) -> bool {
        let shared = |cut: &Self| -> Vec<Vec<usize>> {
            let groups = cut.groups.iter().filter(|group| group.len() > 1);
            groups.cloned().collect()
        };
        let kept = shared(other);
        let largest = kept.iter().map(Vec::len).max().unwrap_or(0);
        let slow_ns = criteria.thresholds.slow_mates * other.inside.exp();
        let limit_ns = slow_ns + criteria.step_ns;
        let groups = shared(self);
        kept.iter().all(|group| groups.contains(group))
            && groups
                .iter()
                .filter(|group| !kept.contains(group))
                .all(|new| new.len() <= largest && logs.median_within(new).exp() <= limit_ns)
    }

    /// Does this cut continue the level of another? Groups that disturbed pairs kept apart until now
    /// are no farther from each other than the level's own width.
    fn continues(&self, other: &Self, criteria: &Criteria) -> bool {
        let wide_ns = criteria.thresholds.width * other.inside.exp();
        self.height.exp() <= wide_ns + criteria.step_ns
    }
}

/// Limit on margins in their mean: above a ratio of four, all are certain.
const MAX_MARGIN: f64 = 1.4;

/// The smallest margin, without the tolerated ones.
fn worst_margin(mut values: Vec<f64>, are_rows: bool, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let mut tolerated = whole_usize((share * count(values.len())).floor());
    if are_rows && values.len() >= MIN_CPUS_TO_TOLERATE_PAIR {
        tolerated = tolerated.max(2);
    }
    values[tolerated]
}

/// A robust standard deviation: 1.4826 times the median distance from the
/// centre.
fn robust_deviation(values: Vec<f64>, centre: f64) -> f64 {
    let mut distances: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
    1.4826 * median(&mut distances)
}

/// An item's figures on both sides of a cut.
struct Side {
    /// Typical distance of an item with mates.
    typical: Option<f64>,
    /// The far mates' distance: the 80th percentile, since disturbances only add time.
    farthest_mate: Option<f64>,
    /// Mean distance to the nearest other group.
    nearest: f64,
}

fn item_sides(logs: &Logs, groups: &[Vec<usize>]) -> Vec<Side> {
    let mut group_of = vec![0; logs.len()];
    for (number, group) in groups.iter().enumerate() {
        for &item in group {
            group_of[item] = number;
        }
    }
    (0..logs.len())
        .map(|item| {
            let mut sums = vec![(0.0, 0.0); groups.len()];
            let mut mates = Vec::new();
            for (&value, &group) in logs.row(item).iter().zip(&group_of) {
                if !value.is_finite() {
                    continue;
                }
                if group == group_of[item] {
                    mates.push(value);
                } else {
                    sums[group].0 += value;
                    sums[group].1 += 1.0;
                }
            }
            Side {
                typical: (!mates.is_empty()).then(|| median(&mut mates)),
                farthest_mate: (!mates.is_empty()).then(|| quantile(&mut mates, 0.8)),
                nearest: sums
                    .iter()
                    .filter(|(_, known)| *known > 0.0)
                    .map(|(sum, known)| sum / known)
                    .fold(f64::INFINITY, f64::min),
            }
        })
        .collect()
}

/// Lists the cuts at the widest gaps, lowest first.
pub(super) fn list_cuts(logs: &Logs, tree: &Tree, are_rows: bool, tolerated: f64) -> Vec<Cut> {
    tree.widest_gaps(MAX_CUTS, MIN_GAP)
        .into_iter()
        .filter_map(|merges| {
            Cut::new(
                logs,
                tree.groups_after(merges),
                tree.height_of(merges),
                are_rows,
                tolerated,
            )
        })
        .collect()
}

/// Finds the finest level among cuts, which are ordered from low to high.
pub(super) fn find_finest_level(
    logs: &Logs,
    cuts: &[Cut],
    criteria: &Criteria,
    is_allowed: impl Fn(&Cut) -> bool,
) -> Option<Cut> {
    let mut best: Option<&Cut> = None;
    for cut in cuts {
        if !cut.is_level(criteria) || !is_allowed(cut) {
            continue;
        }
        best = match best {
            None => Some(cut),
            Some(so_far) if cut.completes(so_far, logs, criteria) => Some(cut),
            Some(so_far) if !cut.continues(so_far, criteria) => break,
            Some(so_far) if cut.mean > so_far.mean => Some(cut),
            so_far => so_far,
        };
    }
    best.cloned()
}
