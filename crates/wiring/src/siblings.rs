//! Finds SMT siblings by contention, supported by latency.
//!
//! Two threads of one core slow each other down (1.3 to 2 times); others do not (Chatzopoulos et
//! al., MCTOP, `EuroSys` 2017, time a spin loop this way). Single ratios can be wrong: another
//! program's work may turn 1.0 into 1.5, a pause 1.6 into 1.1. Latency excludes pairs that are farther
//! than others and identifies siblings on most machines; on Zen 5 and on clusters of small cores
//! contention decides alone.

use super::cut::Cut;
use super::figures::{Logs, count, median};
use super::linkage::Tree;
use super::search::{By, LevelRows};
use super::{PairMatrix, Thresholds};

/// The contention ratio that is no evidence: between those of siblings (1.3 to 2) and of others (0.95
/// to 1.1).
const NEUTRAL_RATIO: f64 = 1.2;
/// Difference from `NEUTRAL_RATIO` per unit of evidence, ln(odds).
const RATIO_PER_UNIT: f64 = 0.05;
/// Limit on the evidence of one contention figure, ln(odds): one in fifty is wrong.
const MAX_LOG_ODDS: f64 = 4.0;
/// ln(odds) of siblings a priori: a pair more likely is not.
const PRIOR_LOG_ODDS: f64 = -1.0;
/// Minimum ln(odds) of a latency that at most one pair in ten has.
const RARE_LOG_ODDS: f64 = 2.2;
/// Siblings of one machine have latencies within this ratio of the typical.
const MAX_SIBLING_RATIO: f64 = 1.15;
/// Siblings are not farther from each other than the nearest other CPU by more than this ratio, which
/// allows for disturbances.
const MAX_NEAREST_RATIO: f64 = 1.3;

/// Siblings by contention.
pub(super) enum Siblings {
    /// Unknown: too little was measured.
    Unknown,
    /// There are no siblings.
    None,
    /// The groups found.
    Groups(LevelRows),
}

/// Finds the groups of siblings among `rows`.
pub(super) fn find_siblings(
    contention: &PairMatrix,
    rows: &[usize],
    logs: &Logs,
    step_ns: f64,
) -> Siblings {
    let ratios = Ratios::from_contention(contention, rows);
    if ratios.known < rows.len() {
        return Siblings::Unknown;
    }
    let latencies = LatencyEvidence::new(&ratios, logs, step_ns);
    // Evidence for siblings becomes nearness: the tree merges the smallest.
    let mut distances = Logs::new(rows.len());
    for i in 0..rows.len() {
        for j in 0..i {
            let evidence = PRIOR_LOG_ODDS + ratios.evidence(i, j) + latencies.evidence(logs, i, j);
            distances.set(i, j, -evidence);
        }
    }
    let groups = Tree::from_logs(&distances).groups_below(0.0);
    let groups = swap_partners(trim_groups(groups, &distances), &distances);
    let groups = drop_disturbances(groups, &latencies);
    if groups.iter().all(|group| group.len() == 1) {
        return Siblings::None;
    }
    let found = to_level(&groups, &distances, logs);
    if !found.inside_ns.is_finite() {
        return Siblings::Unknown;
    }
    Siblings::Groups(LevelRows {
        contention: ratios.medians(&groups),
        ..found
    })
}

/// Drops members that a single disturbed pair added: all cores of a machine with SMT have equally
/// many threads, so a group larger than the most common size loses its weakest members.
fn trim_groups(mut groups: Vec<Vec<usize>>, distances: &Logs) -> Vec<Vec<usize>> {
    let sizes = groups.iter().map(Vec::len).filter(|size| *size > 1);
    let mut sizes: Vec<f64> = sizes.map(count).collect();
    let common_size = median(&mut sizes);
    let mut dropped = Vec::new();
    for group in &mut groups {
        while count(group.len()) > common_size {
            let weakness = |item: &usize| {
                let others = group.iter().filter(|other| *other != item);
                others.map(|&other| distances.at(*item, other)).sum::<f64>()
            };
            let weakest = (0..group.len())
                .max_by(|&a, &b| weakness(&group[a]).total_cmp(&weakness(&group[b])));
            dropped.extend(weakest.map(|place| vec![group.remove(place)]));
        }
    }
    groups.extend(dropped);
    groups
}

/// Splits pairs that a disturbance joined: if two single rows each fit one member of a pair, two new
/// pairs are more likely.
fn swap_partners(mut groups: Vec<Vec<usize>>, distances: &Logs) -> Vec<Vec<usize>> {
    let is_near = |a: usize, b: usize| distances.at(a, b) < 0.0;
    while let Some((place, a, b)) = groups.iter().enumerate().find_map(|(place, pair)| {
        let [p, q] = pair[..] else { return None };
        let alone = |with: usize, but: usize| {
            let rows = groups.iter().filter(|group| group.len() == 1);
            rows.map(|group| group[0])
                .find(|&row| row != but && is_near(row, with))
        };
        let a = alone(p, usize::MAX)?;
        Some((place, a, alone(q, a)?))
    }) {
        let (p, q) = (groups[place][0], groups[place][1]);
        groups[place] = vec![a.min(p), a.max(p)];
        groups.retain(|group| *group != [a] && *group != [b]);
        groups.push(vec![b.min(q), b.max(q)]);
    }
    groups
}

/// Drops groups that look like disturbances: few, and with common latencies.
fn drop_disturbances(groups: Vec<Vec<usize>>, latencies: &LatencyEvidence) -> Vec<Vec<usize>> {
    let all: usize = groups.iter().map(Vec::len).sum();
    let alone = groups.iter().filter(|group| group.len() == 1).count();
    let is_rule = 2 * alone <= all;
    if is_rule || latencies.near >= RARE_LOG_ODDS {
        return groups;
    }
    (0..all).map(|row| vec![row]).collect()
}

fn to_level(groups: &[Vec<usize>], distances: &Logs, logs: &Logs) -> LevelRows {
    let mut within: Vec<f64> = Vec::new();
    let (mut supporters, mut examined) = (0, 0);
    for group in groups.iter().filter(|group| group.len() > 1) {
        for (&i, &j) in group
            .iter()
            .flat_map(|i| group.iter().map(move |j| (i, j)))
            .filter(|(i, j)| i > j)
        {
            within.push(logs.at(i, j));
            examined += 1;
            supporters += usize::from(distances.at(i, j) < 0.0);
        }
    }
    within.retain(|value| value.is_finite());
    let cut = Cut::new(
        logs,
        groups.to_vec(),
        0.0,
        true,
        Thresholds::default().tolerated,
    );
    LevelRows {
        groups: groups.to_vec(),
        inside_ns: median(&mut within).exp(),
        outside_ns: cut.as_ref().map_or(f64::NAN, |cut| cut.outside.exp()),
        worst: cut.as_ref().map_or(0.0, |cut| cut.worst),
        supporters,
        examined,
        by: By::Contention,
        contention: None,
    }
}

/// Contention figures of rows.
struct Ratios {
    size: usize,
    values: Vec<f64>,
    known: usize,
}

impl Ratios {
    fn from_contention(contention: &PairMatrix, rows: &[usize]) -> Self {
        let values: Vec<f64> = rows
            .iter()
            .flat_map(|&i| rows.iter().map(move |&j| contention.at(i, j)))
            .map(|v| {
                if v.is_finite() && v > 0.0 {
                    v
                } else {
                    f64::NAN
                }
            })
            .collect();
        let known = values.iter().filter(|v| v.is_finite()).count() / 2;
        Self {
            size: rows.len(),
            values,
            known,
        }
    }

    /// The evidence that two rows are siblings, ln(odds); 0 if not measured.
    fn evidence(&self, i: usize, j: usize) -> f64 {
        let ratio = self.values[i * self.size + j];
        if ratio.is_nan() {
            return 0.0;
        }
        ((ratio - NEUTRAL_RATIO) / RATIO_PER_UNIT).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS)
    }

    /// The median within groups and between them.
    fn medians(&self, groups: &[Vec<usize>]) -> Option<(f64, f64)> {
        let mut group_of = vec![0; self.size];
        for (number, group) in groups.iter().enumerate() {
            for &row in group {
                group_of[row] = number;
            }
        }
        let (mut within, mut outside) = (Vec::new(), Vec::new());
        for i in 0..self.size {
            for j in 0..i {
                let ratio = self.values[i * self.size + j];
                if ratio.is_finite() && group_of[i] == group_of[j] {
                    within.push(ratio);
                } else if ratio.is_finite() {
                    outside.push(ratio);
                }
            }
        }
        let typical = (median(&mut within), median(&mut outside));
        (typical.0.is_finite() && typical.1.is_finite()).then_some(typical)
    }

    /// Pairs in which each member is the most likely sibling of the other.
    fn mutual_best(&self) -> Vec<(usize, usize)> {
        let best: Vec<Option<usize>> = (0..self.size)
            .map(|i| {
                (0..self.size)
                    .filter(|&j| self.evidence(i, j) > 0.0)
                    .max_by(|&a, &b| self.evidence(i, a).total_cmp(&self.evidence(i, b)))
            })
            .collect();
        (0..self.size)
            .filter_map(|i| {
                best[i]
                    .filter(|&j| j < i && best[j] == Some(i))
                    .map(|j| (i, j))
            })
            .collect()
    }
}

/// Evidence from latency for siblings.
struct LatencyEvidence {
    /// The typical latency of siblings, as logarithm; `None` if there is no likely pair.
    typical: Option<f64>,
    /// Step of the clock, ns.
    step_ns: f64,
    /// The evidence of a latency near the typical one.
    near: f64,
    /// Every row's smallest latency.
    nearest: Vec<f64>,
}

impl LatencyEvidence {
    fn new(ratios: &Ratios, logs: &Logs, step_ns: f64) -> Self {
        let pairs = ratios.mutual_best();
        let mut siblings: Vec<f64> = pairs
            .iter()
            .map(|&(i, j)| logs.at(i, j))
            .filter(|value| value.is_finite())
            .collect();
        let typical = (!siblings.is_empty()).then(|| median(&mut siblings));
        let all = logs.pair_values();
        let alike = typical.map_or(0, |typical| {
            let is_alike = |v: &&f64| are_alike(**v, typical, step_ns);
            all.iter().filter(is_alike).count()
        });
        // The rarer such latencies are, the more evidence one is.
        let share = count(alike.max(1)) / count(all.len().max(1));
        Self {
            typical,
            step_ns,
            near: (0.95 / share).ln().clamp(0.0, MAX_LOG_ODDS),
            nearest: (0..logs.len())
                .map(|i| logs.row(i).iter().copied().fold(f64::INFINITY, f64::min))
                .collect(),
        }
    }

    fn evidence(&self, logs: &Logs, i: usize, j: usize) -> f64 {
        let latency = logs.at(i, j);
        if latency.is_nan() {
            return 0.0;
        }
        let nearest = self.nearest[i].max(self.nearest[j]);
        if latency > nearest + MAX_NEAREST_RATIO.ln() {
            return -MAX_LOG_ODDS - 1.0;
        }
        match self.typical {
            Some(typical) if are_alike(latency, typical, self.step_ns) => self.near,
            Some(_) => -MAX_LOG_ODDS / 2.0,
            None => 0.0,
        }
    }
}

fn are_alike(a: f64, b: f64, step_ns: f64) -> bool {
    (a - b).abs() <= MAX_SIBLING_RATIO.ln() || (a.exp() - b.exp()).abs() <= 1.1 * step_ns
}
