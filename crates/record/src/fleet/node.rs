//! One node of a fleet: its steps and its figures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Entry, Header, HostRecord, StoredRecord, Summary};

/// A difference between a node's clock and the submitter's is reported from this size on, seconds.
pub const CLOCK_TOLERANCE_S: f64 = 2.0;

/// A node of a fleet. There is one record per node and fleet, whatever the number of attempts. Its
/// id is `FLEET.NODE`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.fleet-node/1")]
pub struct FleetNode {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The fleet's id.
    pub fleet: String,
    /// The node, as the scheduler calls it.
    pub node: String,
    /// When the last step ended; `null` if steps are missing.
    pub ended: Option<String>,
    /// Number of starts: 1, and 1 for each requeue and resumption.
    pub attempts: u32,
    /// The machine; `null` if unknown.
    pub host: Option<HostRecord>,
    /// The node's settings, by name: `bios`, `memory`, `smt`, `numa-nodes-per-package`, `governor`,
    /// `boost`, `transparent-hugepages`, `kernel-command-line` … Names and microcode, kernel and
    /// hypervisor are also in `host`.
    pub settings: BTreeMap<String, String>,
    /// The steps that it ran.
    pub steps: Vec<NodeStep>,
    /// Headline figures of all records of the node.
    pub figures: Vec<NodeFigure>,
    /// How far the node's clock was ahead of the submitter's or the shared folder's, seconds;
    /// `null` if it is unknown.
    pub clock_ahead_s: Option<f64>,
}

/// A step on a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeStep {
    /// The fleet's name for it.
    pub name: String,
    /// How it ended.
    pub state: StepState,
    /// Id of its record; `null` if there is none.
    pub record: Option<String>,
    /// Number of the attempt that ran it, from 1.
    pub attempt: u32,
    /// Why it failed; `null` if it did not.
    pub why: Option<String>,
    /// How long it took, seconds.
    pub elapsed_s: Option<f64>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// It has a record.
    Done,
    /// It ended without a record that counts.
    Failed,
    /// It was not run, or the node was lost while it ran.
    Missing,
}

/// A figure of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeFigure {
    /// The step it comes from.
    pub step: String,
    /// The subject of the figure.
    pub name: String,
    /// Unit; `""` for a number without one.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
}

impl NodeFigure {
    /// The headline figures in the JSON of a step's record.
    #[must_use]
    pub fn list_from_json(step: &str, body: &str) -> Vec<Self> {
        let figures = Summary::from_json(body).figures.into_iter();
        figures
            .map(|figure| Self {
                step: step.to_owned(),
                name: figure.name,
                unit: figure.unit,
                value: figure.value,
                low: figure.low,
                high: figure.high,
            })
            .collect()
    }
}

impl FleetNode {
    /// The id of a node's record.
    #[must_use]
    pub fn join_id(fleet: &str, node: &str) -> String {
        format!("{fleet}.{node}")
    }
}

impl StoredRecord for FleetNode {
    fn entry(&self) -> Entry {
        let done = self
            .steps
            .iter()
            .filter(|step| step.state == StepState::Done);
        let verdict = format!("{} of {} steps done", done.count(), self.steps.len());
        self.header.to_entry::<Self>(
            self.node.clone(),
            format!("node of fleet {}", self.fleet),
            verdict,
        )
    }
}
