//! Average linkage: a tree of the items that belong together at every height.
//!
//! Groups are merged in the order of their mean logarithm of latency (UPGMA; Sokal & Michener 1958),
//! found with chains of nearest neighbours in n² steps (Murtagh 1983). Single linkage would follow
//! the gradient of a ring or a mesh; complete linkage would follow the most disturbed pair.

use super::figures::Logs;

/// Logarithms that differ by less count as equal.
const TIE: f64 = 1e-6;

/// A merge of two groups.
#[derive(Debug, Clone, Copy)]
struct Merge {
    /// An item of each group.
    items: (usize, usize),
    height: f64,
}

/// A tree of merges.
#[derive(Debug)]
pub(super) struct Tree {
    items: usize,
    /// By ascending height.
    merges: Vec<Merge>,
}

impl Tree {
    pub(super) fn from_logs(logs: &Logs) -> Self {
        let mut merges = Clusters::new(logs).merge_all();
        merges.sort_by(|a, b| a.height.total_cmp(&b.height));
        Self {
            items: logs.len(),
            merges,
        }
    }

    /// Finds the widest gaps between the heights of consecutive merges: the numbers of merges below
    /// them, ascending. There are at most `max_gaps`, each at least `min_gap` wide.
    pub(super) fn widest_gaps(&self, max_gaps: usize, min_gap: f64) -> Vec<usize> {
        let heights: Vec<f64> = self.merges.iter().map(|merge| merge.height).collect();
        let mut gaps: Vec<(f64, usize)> = heights
            .windows(2)
            .enumerate()
            .filter(|(_, pair)| pair[0].is_finite())
            .map(|(k, pair)| (pair[1] - pair[0], k + 1))
            .filter(|(gap, _)| *gap >= min_gap)
            .collect();
        gaps.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        gaps.truncate(max_gaps);
        let mut cuts: Vec<usize> = gaps.into_iter().map(|(_, k)| k).collect();
        cuts.sort_unstable();
        cuts
    }

    /// The groups after all merges below a height.
    pub(super) fn groups_below(&self, height: f64) -> Vec<Vec<usize>> {
        self.groups_after(self.merges.partition_point(|merge| merge.height < height))
    }

    /// Height of the last of this many merges.
    pub(super) fn height_of(&self, merges: usize) -> f64 {
        let last = merges.checked_sub(1).and_then(|last| self.merges.get(last));
        last.map_or(f64::NEG_INFINITY, |merge| merge.height)
    }

    /// The groups after this many merges, ordered by their first item.
    pub(super) fn groups_after(&self, merges: usize) -> Vec<Vec<usize>> {
        let mut parent: Vec<usize> = (0..self.items).collect();
        for merge in self.merges.iter().take(merges) {
            let (a, b) = merge.items;
            let (a, b) = (find_root(&mut parent, a), find_root(&mut parent, b));
            parent[a.max(b)] = a.min(b);
        }
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut number = vec![usize::MAX; self.items];
        for item in 0..self.items {
            let root = find_root(&mut parent, item);
            if number[root] == usize::MAX {
                number[root] = groups.len();
                groups.push(Vec::new());
            }
            groups[number[root]].push(item);
        }
        groups
    }
}

/// Finds the representative of an item's group, and shortens the path to it.
fn find_root(parent: &mut [usize], mut item: usize) -> usize {
    while parent[item] != item {
        parent[item] = parent[parent[item]];
        item = parent[item];
    }
    item
}

/// Sums and counts between clusters, so that missing figures do not count.
struct Clusters {
    size: usize,
    sums: Vec<f64>,
    counts: Vec<f64>,
    members: Vec<usize>,
    alive: Vec<usize>,
}

impl Clusters {
    fn new(logs: &Logs) -> Self {
        let size = logs.len();
        let flat: Vec<f64> = (0..size).flat_map(|i| logs.row(i).to_vec()).collect();
        Self {
            size,
            sums: flat
                .iter()
                .map(|v| if v.is_finite() { *v } else { 0.0 })
                .collect(),
            counts: flat
                .iter()
                .map(|v| f64::from(u8::from(v.is_finite())))
                .collect(),
            members: vec![1; size],
            alive: (0..size).collect(),
        }
    }

    fn distance(&self, i: usize, j: usize) -> f64 {
        let at = i * self.size + j;
        if self.counts[at] > 0.0 {
            self.sums[at] / self.counts[at]
        } else {
            f64::INFINITY
        }
    }

    fn merge_all(&mut self) -> Vec<Merge> {
        let mut merges = Vec::new();
        let mut chain: Vec<usize> = Vec::new();
        while self.alive.len() > 1 {
            if chain.is_empty() {
                chain.push(self.alive[0]);
            }
            let top = chain[chain.len() - 1];
            let before = chain.len().checked_sub(2).map(|at| chain[at]);
            let (next, height) = self.find_nearest(top, before);
            // Missing figures may break the chain's order, so a cluster that is already in the chain
            // ends it as well.
            if Some(next) == before || chain.contains(&next) {
                chain.retain(|&c| c != top && c != next);
                self.merge(top, next);
                merges.push(Merge {
                    items: (top, next),
                    height,
                });
            } else {
                chain.push(next);
            }
        }
        merges
    }

    /// Finds the nearest other cluster. Of equally near ones (a coarse clock has few different figures)
    /// the smallest is taken, so that two single ones find each other, then the one before in the
    /// chain.
    fn find_nearest(&self, top: usize, before: Option<usize>) -> (usize, f64) {
        let mut best = before.map(|b| (b, self.distance(top, b)));
        for &other in self.alive.iter().filter(|&&other| other != top) {
            let distance = self.distance(top, other);
            let is_nearer = best.is_none_or(|(so_far, least)| {
                distance < least - TIE
                    || (distance <= least + TIE && self.members[other] < self.members[so_far])
            });
            if is_nearer {
                best = Some((other, distance));
            }
        }
        best.unwrap_or((top, f64::INFINITY))
    }

    /// Merges `gone` into `kept`.
    fn merge(&mut self, kept: usize, gone: usize) {
        self.alive.retain(|&cluster| cluster != gone);
        self.members[kept] += self.members[gone];
        for &other in &self.alive {
            if other == kept {
                continue;
            }
            let (to, from) = (kept * self.size + other, gone * self.size + other);
            self.sums[to] += self.sums[from];
            self.counts[to] += self.counts[from];
            self.sums[other * self.size + kept] = self.sums[to];
            self.counts[other * self.size + kept] = self.counts[to];
        }
    }
}
