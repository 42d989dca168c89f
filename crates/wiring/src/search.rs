//! Finds levels from the finest up: the groups of one level become the items of the next.
//!
//! The distance of two groups is the median of all their pairs, so single disturbed pairs count less
//! at higher levels.

use super::cut::{self, Criteria, Cut};
use super::figures::Logs;
use super::home;
use super::linkage::Tree;

/// A level as rows of the matrix.
#[derive(Debug, Clone)]
pub(super) struct LevelRows {
    /// All groups, single rows as groups of one.
    pub(super) groups: Vec<Vec<usize>>,
    /// Typical latency within, ns.
    pub(super) inside_ns: f64,
    /// Typical latency to the nearest outside, ns.
    pub(super) outside_ns: f64,
    /// The margin of the worst items, as logarithm of a ratio.
    pub(super) worst: f64,
    /// Items that are nearer to their own group than to any other.
    pub(super) supporters: usize,
    /// Items that were examined.
    pub(super) examined: usize,
    /// How the level was found.
    pub(super) by: By,
    /// Typical contention within and outside, if measured.
    pub(super) contention: Option<(f64, f64)>,
}

/// The argument for a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// A gap between latencies.
    Gap,
    /// The model of a line that is homed in one package.
    Home,
    /// Cores that are farther from each other than from all others.
    Inverse,
    /// Work on both CPUs at once is slow.
    Contention,
}

impl LevelRows {
    /// Is this row in a group of two or more?
    pub(super) fn is_shared(&self, row: usize) -> bool {
        self.shared_groups().any(|group| group.contains(&row))
    }

    /// Groups of two or more rows.
    pub(super) fn shared_groups(&self) -> impl Iterator<Item = &Vec<usize>> {
        self.groups.iter().filter(|group| group.len() > 1)
    }
}

/// Finds the levels above `items`, which are groups of rows, lowest first.
pub(super) fn find_levels(
    logs: &Logs,
    criteria: &Criteria,
    mut items: Vec<Vec<usize>>,
) -> Vec<LevelRows> {
    let mut found = Vec::new();
    while items.len() > 2 {
        let level = find_next_level(logs, criteria, &items);
        let Some(level) = level else { break };
        items.clone_from(&level.groups);
        found.push(level);
    }
    found
}

pub(super) fn find_next_level(
    logs: &Logs,
    criteria: &Criteria,
    items: &[Vec<usize>],
) -> Option<LevelRows> {
    let blocks = logs.median_between(items);
    let tree = Tree::from_logs(&blocks);
    let weights: Vec<usize> = items.iter().map(Vec::len).collect();
    let are_rows = weights.iter().all(|&weight| weight == 1);
    let cuts = cut::list_cuts(&blocks, &tree, are_rows, criteria.thresholds.tolerated);
    let is_contracted = weights.iter().any(|&w| w > 2);
    // A single group among four or more items is an effect of the line's home, not a level.
    let level = cut::find_finest_level(&blocks, &cuts, criteria, |cut| {
        cut.shared_count() > 1 || items.len() < 4 || !is_contracted
    });
    match level {
        Some(level) if level.shared_count() > 1 => Some(level_from_cut(&level, items)),
        level => find_home_level(&blocks, &tree, &weights, items)
            .or_else(|| level.map(|level| level_from_cut(&level, items))),
    }
}

fn level_from_cut(cut: &Cut, items: &[Vec<usize>]) -> LevelRows {
    LevelRows {
        groups: cut
            .groups
            .iter()
            .map(|group| join_items(group, items))
            .collect(),
        inside_ns: cut.inside.exp(),
        outside_ns: cut.outside.exp(),
        worst: cut.worst,
        supporters: cut.margins.iter().filter(|margin| **margin > 0.0).count(),
        examined: cut.margins.len(),
        by: By::Gap,
        contention: None,
    }
}

fn find_home_level(
    blocks: &Logs,
    tree: &Tree,
    weights: &[usize],
    items: &[Vec<usize>],
) -> Option<LevelRows> {
    let home = home::find_home(blocks, tree, weights)?;
    Some(LevelRows {
        groups: vec![join_items(&home.near, items), join_items(&home.far, items)],
        inside_ns: home.inside.exp(),
        outside_ns: home.outside.exp(),
        worst: (home.outside - home.inside) * home.ordered,
        supporters: home.supporters(),
        examined: home.near.len() + home.far.len(),
        by: By::Home,
        contention: None,
    })
}

fn join_items(group: &[usize], items: &[Vec<usize>]) -> Vec<usize> {
    let mut rows: Vec<usize> = group.iter().flat_map(|&i| items[i].clone()).collect();
    rows.sort_unstable();
    rows
}
