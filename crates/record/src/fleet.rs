//! Fleets of machines: the studies that they run, what each node did, and comparisons between them.

mod diff;
mod node;
mod report;
mod status;

use serde::{Deserialize, Serialize};

pub use diff::{FleetAttribution, FleetDiff, FleetFigureChange, FleetSettingChange, FleetSide};
pub use node::{
    CLOCK_TOLERANCE_S, FleetNode, NodeFigure, NodeStep, StepChange, StepResult, StepState,
};
pub use report::{FleetCommon, FleetFigure, FleetGroup, FleetOutlier, FleetReport, OutlierKind};
pub use status::{FleetStatus, NodeState, NodeStatus};

use super::{Entry, Header, StoredRecord};

/// The plan for running the same studies on many machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.fleet/1")]
pub struct FleetRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The host it was submitted from.
    pub host: String,
    /// The number of the user who submitted it; `null` if it was not recorded. It only decides what
    /// `last` means and grants no rights, because anyone who can write to the store can write it.
    pub user: Option<u32>,
    /// What starts the nodes: `slurm`, a template's name, or `simulated`.
    pub launcher: String,
    /// What every node runs, in this order.
    pub steps: Vec<FleetStep>,
    /// Requested nodes by name; empty if the scheduler chooses.
    pub nodes: Vec<String>,
    /// Number of requested nodes.
    pub asked: usize,
    /// The folder that submitter and nodes share; `null` for a simulated fleet.
    pub folder: Option<String>,
    /// Submitted jobs; those of resumptions come last.
    pub jobs: Vec<FleetJob>,
    /// One sentence per node that was left out: its name and why.
    pub left_out: Vec<String>,
    /// Faults of a simulated fleet; empty for a real one.
    pub planted: Vec<PlantedFault>,
}

/// One study of a fleet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetStep {
    /// Its unique name, of letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Arguments of pinwise, such as `["topology", "--measure"]`.
    pub arguments: Vec<String>,
    /// Time-out, seconds; `null` without one.
    pub timeout_s: Option<f64>,
}

/// A job as the scheduler knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetJob {
    /// Its id in the scheduler.
    pub id: String,
    /// The node it is bound to; `null` if the scheduler chooses.
    pub node: Option<String>,
    /// When it was submitted, RFC 3339.
    pub submitted: String,
}

/// A fault that a simulated node has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlantedFault {
    /// The node.
    pub node: String,
    /// What is wrong with it.
    pub fault: String,
}

impl FleetRecord {
    /// The tag that all records of a fleet have.
    #[must_use]
    pub fn tag(id: &str) -> String {
        format!("fleet:{id}")
    }
}

impl StoredRecord for FleetRecord {
    fn entry(&self) -> Entry {
        let names: Vec<&str> = self.steps.iter().map(|step| step.name.as_str()).collect();
        self.header.to_entry::<Self>(
            self.host.clone(),
            format!("fleet: {}", names.join(", ")),
            format!(
                "{} requested via {}",
                pinwise_format::count(self.asked, "node"),
                self.launcher
            ),
        )
    }
}
