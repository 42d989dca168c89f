//! The state of a fleet's nodes, as printed; it is not stored.

use serde::{Deserialize, Serialize};

/// The progress of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.fleet-status/1")]
pub struct FleetStatus {
    /// The fleet's id.
    pub fleet: String,
    /// When the state was read, RFC 3339.
    pub at: String,
    /// Requested nodes.
    pub asked: usize,
    /// Steps per node.
    pub steps: usize,
    /// Nodes whose steps all have their record.
    pub done: usize,
    /// Nodes that run.
    pub running: usize,
    /// Nodes that wait for their job.
    pub queued: usize,
    /// Nodes that ended without all records.
    pub failed: usize,
    /// Requested nodes that have no job and never began, including those that a scheduler would
    /// have chosen.
    pub missing: usize,
    /// The known nodes.
    pub nodes: Vec<NodeStatus>,
    /// Further notes, as full sentences.
    pub notes: Vec<String>,
}

/// The progress of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeStatus {
    /// The node.
    pub node: String,
    /// Its state.
    pub state: NodeState,
    /// Steps that have their record.
    pub done: usize,
    /// The step that runs, or that failed; `null` for others.
    pub step: Option<String>,
    /// When its newest attempt began, RFC 3339, by its own clock.
    pub since: Option<String>,
    /// Why it failed, or what its job waits for.
    pub why: Option<String>,
    /// Id of its newest job in the scheduler.
    pub job: Option<String>,
    /// Number of attempts.
    pub attempts: u32,
    /// How far its clock is ahead of the shared folder's, seconds.
    pub clock_ahead_s: Option<f64>,
}

/// The state of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum NodeState {
    /// Its job waits.
    Queued,
    /// It runs.
    Running,
    /// Every step has its record.
    Done,
    /// It ended without all records.
    Failed,
    /// It has no job and never began.
    Missing,
}

impl NodeState {
    /// The word for the state.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }
}
