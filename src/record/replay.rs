//! What the inference says of a recorded latency matrix.
//!
//! CPU lists are written `0,2-4`; units stand in the names.

use serde::{Deserialize, Serialize};

use super::MeasuredLevel;
use crate::topology::wiring::{Wiring, WiringLevel};

/// Schema of [`ReplayRecord`].
pub const REPLAY_SCHEMA: &str = "pinwise.replay/1";

/// The levels found in a matrix.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayRecord {
    /// [`REPLAY_SCHEMA`].
    pub schema: String,
    /// Rows of the matrix.
    pub cpus: usize,
    /// Levels, smallest groups first. Groups hold two CPUs or more.
    pub levels: Vec<MeasuredLevel>,
    /// No level divides the CPUs.
    pub flat: bool,
    /// Why nothing, or nothing more, can be said; `null` where all could.
    pub cannot_tell: Option<String>,
    /// What was odd, as full sentences.
    pub notes: Vec<String>,
}

impl ReplayRecord {
    /// The record of an inference over so many CPUs.
    #[must_use]
    pub fn new(cpus: usize, wiring: &Wiring) -> Self {
        Self {
            schema: REPLAY_SCHEMA.to_owned(),
            cpus,
            levels: wiring.levels.iter().map(level).collect(),
            flat: wiring.is_flat,
            cannot_tell: wiring.cannot_tell.clone(),
            notes: wiring.notes.clone(),
        }
    }
}

fn level(level: &WiringLevel) -> MeasuredLevel {
    MeasuredLevel {
        kind: level.kind.name().to_owned(),
        groups: level.groups.iter().map(ToString::to_string).collect(),
        inside_ns: level.inside_ns,
        outside_ns: level.outside_ns,
        confidence: level.confidence,
        evidence: level.evidence.clone(),
    }
}
