//! Infers levels from figures: calls the steps, which are the other modules, in order, and assembles
//! the result.

use super::cut::Criteria;
use super::figures::{Logs, usable};
use super::search::{self, By, LevelRows};
use super::siblings::{self, Siblings};
use super::{ConfidenceFactors, Evidence, LevelKind, PairMatrix, Thresholds, Wiring, WiringLevel};
use super::{NO_CONTENTION, clock, clusters, few, kinds, leftovers, words};
use pinwise_topology::CpuSet;

/// Finds the levels that the figures show.
#[must_use]
pub fn infer(evidence: &Evidence) -> Wiring {
    infer_with(evidence, Thresholds::default())
}

/// Finds the levels with other thresholds, to choose these.
#[must_use]
pub fn infer_with(evidence: &Evidence, thresholds: Thresholds) -> Wiring {
    let latency = &evidence.latency_ns;
    let rows = measured_rows(latency);
    if rows.len() < 2 {
        return inconclusive("No pair of CPUs was measured.");
    }
    if rows.len() <= few::MAX_CPUS {
        return few::infer_few(evidence, &rows);
    }
    let logs = Logs::from_matrix(latency, &rows);
    if logs.pair_values().len() < 2 * rows.len().min(logs.len() - 2) {
        return inconclusive("Too few pairs were measured to see levels among them.");
    }
    let step_ns = clock::find_step_ns(&list_figures(latency));
    let criteria = Criteria {
        step_ns: step_ns.unwrap_or(0.0),
        thresholds,
    };
    let (siblings, may_be_smt) = find_siblings(evidence, &rows, &logs, criteria.step_ns);
    let contention = evidence.contention.as_ref();
    let are_apart = |a: usize, b: usize| {
        contention.is_some_and(|ratios| ratios.at(rows[a], rows[b]) <= NO_CONTENTION)
    };
    let may_be = |a, b| !are_apart(a, b);
    let found = find_levels(&logs, &criteria, siblings, may_be_smt, may_be);
    let kinds = kinds::name_levels(&found, may_be_smt);
    let cpus: Vec<usize> = rows.iter().map(|&row| latency.cpus()[row]).collect();
    let levels: Vec<WiringLevel> = found
        .iter()
        .zip(kinds)
        .map(|(level, kind)| describe_level(level, kind, &cpus))
        .collect();
    let is_flat = levels.is_empty();
    Wiring {
        is_flat,
        levels,
        cannot_tell: (is_flat && words::is_noise(&logs)).then(|| words::NOISE.to_owned()),
        notes: list_notes(step_ns, &found),
    }
}

fn inconclusive(why: &str) -> Wiring {
    Wiring {
        cannot_tell: Some(why.to_owned()),
        ..Wiring::default()
    }
}

fn list_notes(step_ns: Option<f64>, found: &[LevelRows]) -> Vec<String> {
    let clock = step_ns.map(words::describe_coarse_clock);
    let home = found.iter().any(|level| level.by == By::Home);
    clock
        .into_iter()
        .chain(home.then(|| words::HOME.to_owned()))
        .collect()
}

/// Finds siblings by contention; also returns whether latency may still decide.
fn find_siblings(
    evidence: &Evidence,
    rows: &[usize],
    logs: &Logs,
    step_ns: f64,
) -> (Option<LevelRows>, bool) {
    let Some(contention) = &evidence.contention else {
        return (None, true);
    };
    match siblings::find_siblings(contention, rows, logs, step_ns) {
        Siblings::Unknown => (None, true),
        Siblings::None => (None, false),
        Siblings::Groups(level) => (Some(level), false),
    }
}

/// Finds all levels, lowest first.
fn find_levels(
    logs: &Logs,
    criteria: &Criteria,
    siblings: Option<LevelRows>,
    may_be_smt: bool,
    may_be_siblings: impl Fn(usize, usize) -> bool,
) -> Vec<LevelRows> {
    let mut items: Vec<Vec<usize>> = (0..logs.len()).map(|row| vec![row]).collect();
    let threads = siblings.or_else(|| {
        let lowest = search::find_next_level(logs, criteria, &items);
        lowest.filter(|level| may_be_smt && kinds::is_smt(level))
    });
    let mut found = Vec::new();
    if let Some(threads) = threads {
        let threads = leftovers::pair_leftovers(logs, threads, may_be_siblings);
        items.clone_from(&threads.groups);
        found.push(threads);
    }
    let (alone, others): (Vec<&Vec<usize>>, Vec<&Vec<usize>>) =
        items.iter().partition(|group| group.len() == 1);
    let alone: Vec<usize> = alone.into_iter().flatten().copied().collect();
    let others: Vec<usize> = others.into_iter().flatten().copied().collect();
    if let Some(clusters) = clusters::find_clusters(logs, &alone, &others) {
        items.retain(|group| group.len() > 1 || !clusters.is_shared(group[0]));
        items.extend(clusters.shared_groups().cloned());
        found.push(clusters);
    }
    found.extend(search::find_levels(logs, criteria, items));
    found
}

fn list_figures(matrix: &PairMatrix) -> Vec<f64> {
    (0..matrix.len())
        .flat_map(|i| (0..i).filter_map(move |j| usable(matrix.at(i, j))))
        .collect()
}

/// The rows with at least one figure.
fn measured_rows(matrix: &PairMatrix) -> Vec<usize> {
    let n = matrix.len();
    (0..n)
        .filter(|&i| (0..n).any(|j| i != j && usable(matrix.at(i, j)).is_some()))
        .collect()
}

fn describe_level(level: &LevelRows, kind: LevelKind, cpus: &[usize]) -> WiringLevel {
    let mut groups: Vec<CpuSet> = level
        .shared_groups()
        .map(|rows| rows.iter().map(|&row| cpus[row]).collect())
        .collect();
    groups.sort_by_key(CpuSet::first);
    let factors = ConfidenceFactors::from_level(level);
    WiringLevel {
        kind,
        groups,
        inside_ns: level.inside_ns,
        outside_ns: Some(level.outside_ns).filter(|ns| ns.is_finite()),
        confidence: factors.confidence(),
        factors: Some(factors),
        evidence: words::describe_evidence(level, kind),
    }
}

#[cfg(test)]
mod tests;
