//! From figures to levels: the order of the steps.
//!
//! Each step stands in its own module with its reasons; this one knows what
//! comes after what, and puts the answer together.

use super::figures::{Logs, usable};
use super::search::{self, Found};
use super::siblings::{self, Siblings};
use super::{Evidence, LevelKind, PairMatrix, Wiring, WiringLevel, kinds};
use super::{clock, words};
use crate::topology::CpuSet;

/// Finds the levels that the figures show.
#[must_use]
pub fn infer(evidence: &Evidence) -> Wiring {
    let latency = &evidence.latency_ns;
    let rows = measured_rows(latency);
    let logs = Logs::of(latency, &rows);
    let step_ns = clock::step_ns(&figures(latency)).unwrap_or(0.0);
    let siblings = evidence.contention.as_ref().map_or(Siblings::Unknown, |c| {
        siblings::find(c, &rows, &logs, step_ns)
    });
    let (mut found, may_be_smt) = match siblings {
        Siblings::Unknown => (Vec::new(), true),
        Siblings::None => (Vec::new(), false),
        Siblings::Groups(level) => (vec![level], false),
    };
    let start = found.first().map_or_else(
        || (0..rows.len()).map(|row| vec![row]).collect(),
        |level: &Found| level.groups.clone(),
    );
    found.extend(search::levels(&logs, step_ns, start));
    let kinds = kinds::name(&found, may_be_smt);
    let cpus: Vec<usize> = rows.iter().map(|&row| latency.cpus()[row]).collect();
    let levels: Vec<WiringLevel> = found
        .iter()
        .zip(kinds)
        .map(|(level, kind)| describe(level, kind, &cpus))
        .collect();
    Wiring {
        is_flat: levels.is_empty(),
        levels,
        cannot_tell: None,
        notes: Vec::new(),
    }
}

fn figures(matrix: &PairMatrix) -> Vec<f64> {
    (0..matrix.len())
        .flat_map(|i| (0..i).filter_map(move |j| usable(matrix.at(i, j))))
        .collect()
}

/// Rows with any figure.
fn measured_rows(matrix: &PairMatrix) -> Vec<usize> {
    let n = matrix.len();
    (0..n)
        .filter(|&i| (0..n).any(|j| i != j && usable(matrix.at(i, j)).is_some()))
        .collect()
}

fn describe(level: &Found, kind: LevelKind, cpus: &[usize]) -> WiringLevel {
    let mut groups: Vec<CpuSet> = level
        .shared()
        .map(|rows| rows.iter().map(|&row| cpus[row]).collect())
        .collect();
    groups.sort_by_key(CpuSet::first);
    WiringLevel {
        kind,
        groups,
        inside_ns: level.inside_ns,
        outside_ns: Some(level.outside_ns).filter(|ns| ns.is_finite()),
        confidence: words::confidence(level),
        evidence: words::evidence(level, kind),
    }
}
