//! The levels inferred from a recorded latency matrix.
//!
//! CPU lists are written `0,2-4`; names include the units.

use serde::{Deserialize, Serialize};

use super::MeasuredLevel;
use pinwise_topology::CpuSet;
use pinwise_wiring::{LevelKind, Wiring, WiringLevel};

/// The levels found in a matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.replay/1")]
pub struct ReplayRecord {
    /// Number of rows of the matrix.
    pub cpus: usize,
    /// Levels, smallest groups first. Groups hold two CPUs or more; the level `smt`, which lists
    /// the cores, also has those with one CPU.
    pub levels: Vec<MeasuredLevel>,
    /// Is there no level that divides the CPUs?
    pub flat: bool,
    /// Why levels are unknown; `null` if all are known.
    pub cannot_tell: Option<String>,
    /// Anomalies, as full sentences.
    pub notes: Vec<String>,
}

impl ReplayRecord {
    /// The record of an inference over this many CPUs.
    #[must_use]
    pub fn new(cpus: &[usize], wiring: &Wiring) -> Self {
        Self {
            cpus: cpus.len(),
            levels: wiring
                .levels
                .iter()
                .map(|level| to_measured_level(level, cpus))
                .collect(),
            flat: wiring.is_flat,
            cannot_tell: wiring.cannot_tell.clone(),
            notes: wiring.notes.clone(),
        }
    }
}

fn to_measured_level(level: &WiringLevel, cpus: &[usize]) -> MeasuredLevel {
    let mut groups = level.groups.clone();
    if level.kind == LevelKind::Smt {
        // The groups of this level are the cores, so a core with a single CPU is added.
        let in_group = |cpu: &usize| level.groups.iter().any(|group| group.contains(*cpu));
        let alone = cpus.iter().copied().filter(|cpu| !in_group(cpu));
        groups.extend(alone.map(CpuSet::single));
        groups.sort_by_key(CpuSet::first);
    }
    MeasuredLevel {
        kind: level.kind.into(),
        groups: groups.iter().map(ToString::to_string).collect(),
        inside_ns: level.inside_ns,
        outside_ns: level.outside_ns,
        confidence: level.confidence,
        evidence: level.evidence.clone(),
    }
}
