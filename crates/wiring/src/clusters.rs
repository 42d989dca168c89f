//! Clusters of small cores on hybrid chips, whose latencies are inverted.
//!
//! The four E-cores of a cluster share an L2 and one stop of the ring. A line that one of them
//! changed still reaches a mate through the ring, and queues at the stop in both directions: 53 ns
//! on a 12600K, where an E-core and a P-core exchange it in 37 to 41. Distance cannot explain cores
//! that are farther from each other than from all others: on a ring or mesh, cores far from the
//! same place are near each other. So such a group, unless it is a pair, is one stop.

use super::figures::{Logs, count, mean, median, quantile};
use super::linkage::Tree;
use super::search::{By, LevelRows};

/// Minimum latency between mates over latency to others: it is 1.25 and 1.29 on 12700K and 12600K, 1.2
/// on a busy 14700K.
const MIN_RATIO: f64 = 1.08;
/// Minimum share of the cores with this ratio.
const MIN_SUPPORT: f64 = 0.9;
/// Minimum latency between mates over latency to cores of another cluster.
const MIN_SEPARATION: f64 = 1.05;
/// A pair may be far from each other by chance.
const MIN_CLUSTER: usize = 3;
/// Gracemont to Skymont come in clusters of four.
const MAX_CLUSTER: usize = 4;
/// Minimum share of the cores without SMT siblings that are in clusters: all are of one design.
const MIN_COVERAGE: f64 = 0.8;
/// Chips have clusters of one size; clusters of several sizes, as in a guest with only some of the
/// cores, must explain this much more of the variance.
const MIN_GAIN: f64 = 0.2;
/// Values above this quantile are clipped to it: disturbances add time just as being mates does.
const CLIPPED_QUANTILE: f64 = 0.8;

/// Finds clusters among `alone`, the rows without SMT siblings; `others` have siblings.
pub(super) fn find_clusters(logs: &Logs, alone: &[usize], others: &[usize]) -> Option<LevelRows> {
    if alone.len() < MIN_CLUSTER || others.is_empty() {
        return None;
    }
    let excess = Excess::new(logs, alone, others);
    let equal = excess.find_best(
        (MIN_CLUSTER..=MAX_CLUSTER)
            .filter(|&size| size < alone.len() && alone.len().is_multiple_of(size))
            .map(|size| excess.partition_into_equal_sizes(size)),
    );
    let any = excess.find_best(excess.partitions_of_tree().into_iter());
    let best = match (equal, any) {
        (Some(equal), Some(any)) if any.0 > equal.0 + MIN_GAIN => Some(any.1),
        (equal, any) => equal.or(any).map(|(_, groups)| groups),
    };
    let one = (alone.len() <= MAX_CLUSTER).then(|| vec![(0..alone.len()).collect::<Vec<usize>>()]);
    let clusters: Vec<Vec<usize>> = best
        .or(one)?
        .iter()
        .map(|group| group.iter().map(|&item| alone[item]).collect())
        .collect();
    to_level(logs, alone, others, &clusters)
}

/// The excess latency of pairs of small cores over their latency to all others. Without that common
/// part, a core that was always busy looks like the others.
struct Excess {
    logs: Logs,
}

impl Excess {
    fn new(logs: &Logs, alone: &[usize], others: &[usize]) -> Self {
        let usual: Vec<f64> = alone
            .iter()
            .map(|&row| median(&mut values_between(logs, row, others)))
            .collect();
        let mut excess = Logs::new(alone.len());
        for i in 0..alone.len() {
            for j in 0..i {
                let own = (usual[i] + usual[j]) / 2.0;
                excess.set(i, j, logs.at(alone[i], alone[j]) - own);
            }
        }
        let limit = quantile(&mut excess.pair_values(), CLIPPED_QUANTILE);
        for i in 0..alone.len() {
            for j in 0..i {
                excess.set(i, j, excess.at(i, j).min(limit));
            }
        }
        Self { logs: excess }
    }

    /// The partition that explains most, of those with separate clusters.
    fn find_best(
        &self,
        partitions: impl Iterator<Item = Vec<Vec<usize>>>,
    ) -> Option<(f64, Vec<Vec<usize>>)> {
        partitions
            .filter(|partition| self.separation(partition) >= MIN_SEPARATION.ln())
            .map(|partition| (self.explained_share(&partition), partition))
            .max_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn len(&self) -> usize {
        self.logs.len()
    }

    /// All partitions of the tree whose clusters cover enough.
    fn partitions_of_tree(&self) -> Vec<Vec<Vec<usize>>> {
        let mut inverse = Logs::new(self.len());
        for i in 0..self.len() {
            for j in 0..i {
                inverse.set(i, j, -self.logs.at(i, j));
            }
        }
        let tree = Tree::from_logs(&inverse);
        (1..self.len())
            .map(|merges| {
                let mut groups = tree.groups_after(merges);
                groups.retain(|group| (MIN_CLUSTER..=MAX_CLUSTER).contains(&group.len()));
                groups
            })
            .filter(|groups| {
                let covered = groups.iter().map(Vec::len).sum();
                count(covered) >= MIN_COVERAGE * count(self.len())
            })
            .collect()
    }

    /// The best partition into clusters of one size, as in chips: clusters grow one by one, then
    /// cores are exchanged while that helps.
    fn partition_into_equal_sizes(&self, size: usize) -> Vec<Vec<usize>> {
        let mut rest: Vec<usize> = (0..self.len()).collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        while !rest.is_empty() {
            let mut group = self.strongest_pair(&rest);
            rest.retain(|item| !group.contains(item));
            while group.len() < size && !rest.is_empty() {
                let next = item_with_most(&rest, |item| self.mean_excess(item, &group));
                rest.retain(|&item| item != next);
                group.push(next);
            }
            groups.push(group);
        }
        while self.swap_best(&mut groups) {}
        groups
    }

    fn strongest_pair(&self, items: &[usize]) -> Vec<usize> {
        if items.len() < 2 {
            return items.to_vec();
        }
        let strength = |item: usize| {
            items
                .iter()
                .filter(|&&other| other != item)
                .map(|&other| self.logs.at(item, other))
                .fold(f64::NEG_INFINITY, f64::max)
        };
        let first = item_with_most(items, strength);
        let others: Vec<usize> = items.iter().copied().filter(|&i| i != first).collect();
        vec![
            first,
            item_with_most(&others, |item| self.logs.at(item, first)),
        ]
    }

    /// Mean excess of an item over a group, without itself.
    fn mean_excess(&self, item: usize, group: &[usize]) -> f64 {
        mean(&values_between(&self.logs, item, group))
    }

    /// Swaps the two items that gain most; false if none gains.
    fn swap_best(&self, groups: &mut [Vec<usize>]) -> bool {
        let mut best: Option<(f64, [usize; 4])> = None;
        for g in 0..groups.len() {
            for h in 0..g {
                for (i, &a) in groups[g].iter().enumerate() {
                    for (j, &b) in groups[h].iter().enumerate() {
                        let gain = self.swap_gain(a, &groups[g], b, &groups[h]);
                        if gain > 1e-9 && best.is_none_or(|(most, _)| gain > most) {
                            best = Some((gain, [g, i, h, j]));
                        }
                    }
                }
            }
        }
        let Some((_, [g, i, h, j])) = best else {
            return false;
        };
        let (a, b) = (groups[g][i], groups[h][j]);
        groups[g][i] = b;
        groups[h][j] = a;
        true
    }

    fn swap_gain(&self, a: usize, of_a: &[usize], b: usize, of_b: &[usize]) -> f64 {
        let sum = |item: usize, group: &[usize], but: usize| -> f64 {
            values_between(&self.logs, item, group).iter().sum::<f64>()
                - Some(self.logs.at(item, but))
                    .filter(|v| v.is_finite() && group.contains(&but))
                    .unwrap_or(0.0)
        };
        sum(a, of_b, b) + sum(b, of_a, a) - sum(a, of_a, b) - sum(b, of_b, a)
    }

    /// The values of pairs of mates, and of all other pairs.
    fn split_pairs(&self, groups: &[Vec<usize>]) -> (Vec<f64>, Vec<f64>) {
        let group_of = |item: usize| groups.iter().position(|group| group.contains(&item));
        let (mut mates, mut rest) = (Vec::new(), Vec::new());
        for i in 0..self.len() {
            for j in (0..i).filter(|&j| self.logs.at(i, j).is_finite()) {
                let are_mates = group_of(i).is_some() && group_of(i) == group_of(j);
                let side = if are_mates { &mut mates } else { &mut rest };
                side.push(self.logs.at(i, j));
            }
        }
        (mates, rest)
    }

    /// The median of mates minus the median of other pairs.
    fn separation(&self, groups: &[Vec<usize>]) -> f64 {
        let (mut mates, mut rest) = self.split_pairs(groups);
        if mates.is_empty() || rest.is_empty() {
            return 0.0;
        }
        median(&mut mates) - median(&mut rest)
    }

    /// The share of the variance that is between mates and other pairs.
    fn explained_share(&self, groups: &[Vec<usize>]) -> f64 {
        let (mates, rest) = self.split_pairs(groups);
        let all: Vec<f64> = mates.iter().chain(&rest).copied().collect();
        let spread = |values: &[f64]| -> f64 {
            let centre = mean(values);
            values.iter().map(|v| (v - centre) * (v - centre)).sum()
        };
        1.0 - (spread(&mates) + spread(&rest)) / spread(&all).max(f64::MIN_POSITIVE)
    }
}

/// The item with the largest merit.
fn item_with_most(items: &[usize], merit: impl Fn(usize) -> f64) -> usize {
    let mut best = items[0];
    for &item in &items[1..] {
        if merit(item) > merit(best) {
            best = item;
        }
    }
    best
}

fn values_between(logs: &Logs, row: usize, columns: &[usize]) -> Vec<f64> {
    columns
        .iter()
        .filter(|column| **column != row)
        .map(|&column| logs.at(row, column))
        .filter(|value| value.is_finite())
        .collect()
}

/// Makes clusters a level if every core in them is farther from its mates than from all others.
fn to_level(
    logs: &Logs,
    alone: &[usize],
    others: &[usize],
    clusters: &[Vec<usize>],
) -> Option<LevelRows> {
    let mut margins = Vec::new();
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for cluster in clusters {
        let outsiders: Vec<usize> = alone
            .iter()
            .chain(others)
            .copied()
            .filter(|row| !cluster.contains(row))
            .collect();
        for &row in cluster {
            let mates = median(&mut values_between(logs, row, cluster));
            let rest = median(&mut values_between(logs, row, &outsiders));
            margins.push(mates - rest);
            inside.push(mates);
            outside.push(rest);
        }
    }
    let supporters = margins.iter().filter(|m| **m >= MIN_RATIO.ln()).count();
    let is_level = !margins.is_empty() && count(supporters) >= MIN_SUPPORT * count(margins.len());
    let singles = others.iter().chain(alone).copied();
    is_level.then(|| LevelRows {
        groups: singles
            .filter(|row| !clusters.iter().any(|c| c.contains(row)))
            .map(|row| vec![row])
            .chain(clusters.iter().cloned())
            .collect(),
        inside_ns: median(&mut inside).exp(),
        outside_ns: median(&mut outside).exp(),
        worst: quantile(&mut margins, 0.1),
        supporters,
        examined: margins.len(),
        by: By::Inverse,
        contention: None,
    })
}
