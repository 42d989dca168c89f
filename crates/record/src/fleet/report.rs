//! The nodes of a fleet compared: groups of similar nodes, and their outliers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Entry, Header, StoredRecord};

/// Nodes compared with their peers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.fleet-report/1")]
pub struct FleetReport {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The fleet's id.
    pub fleet: String,
    /// When the fleet was submitted, RFC 3339.
    pub submitted: String,
    /// The host on which the report was made.
    pub host: String,
    /// Number of requested nodes.
    pub asked: usize,
    /// Nodes with a record.
    pub nodes: usize,
    /// Nodes whose steps are all done.
    pub complete: usize,
    /// The largest expected share of reported nodes that are reported by chance, 0 to 1.
    pub false_discovery_rate: f64,
    /// Number of figures of nodes that were tested.
    pub judged: usize,
    /// Groups of similar nodes, the largest first.
    pub groups: Vec<FleetGroup>,
    /// Figures and settings of nodes that differ from their group; nodes that
    /// differ most first, the figures of a node together.
    pub outliers: Vec<FleetOutlier>,
    /// What outliers have in common.
    pub common: Vec<FleetCommon>,
    /// The answer in one sentence.
    pub sentence: String,
}

impl StoredRecord for FleetReport {
    fn entry(&self) -> Entry {
        self.header.to_entry::<Self>(
            self.host.clone(),
            format!("report of fleet {}", self.fleet),
            self.sentence.clone(),
        )
    }
}

/// Nodes that should be alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetGroup {
    /// Its name, such as the CPU model.
    pub name: String,
    /// Number of nodes.
    pub nodes: usize,
    /// The settings in which they are alike, with the value that most of them have.
    pub identity: BTreeMap<String, String>,
    /// Their figures.
    pub figures: Vec<FleetFigure>,
}

/// A figure over the nodes of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetFigure {
    /// The step it comes from.
    pub step: String,
    /// The subject of the figure.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Nodes that have it.
    pub nodes: usize,
    /// Median.
    pub median: f64,
    /// Robust standard deviation of the nodes' logarithms: about the relative spread of ordinary
    /// nodes; `null` if there are too few.
    pub spread: Option<f64>,
    /// 5th percentile.
    pub p5: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Smallest value.
    pub least: f64,
    /// Largest value.
    pub greatest: f64,
}

/// An anomaly of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OutlierKind {
    /// A measured figure.
    Figure,
    /// A setting that differs from its peers'.
    Setting,
}

/// A node's figure, or setting, that differs from its group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetOutlier {
    /// The node.
    pub node: String,
    /// Index of its group in `groups`.
    pub group: usize,
    /// A figure, or a setting.
    pub kind: OutlierKind,
    /// The figure, as `step · name`, or the setting.
    pub figure: String,
    /// Unit.
    pub unit: String,
    /// The node's figure; `null` for settings.
    pub value: Option<f64>,
    /// Its group's median; `null` for settings.
    pub typical: Option<f64>,
    /// `value` divided by `typical`.
    pub ratio: Option<f64>,
    /// Distance in robust standard deviations of its group.
    pub z: Option<f64>,
    /// Its adjusted p-value: the smallest false-discovery rate at which it is reported; `null` for
    /// settings.
    pub adjusted_p: Option<f64>,
    /// The node's setting; `null` for figures.
    pub setting: Option<String>,
    /// The setting of most of its group.
    pub typical_setting: Option<String>,
    /// Id of the record that contains it.
    pub record: Option<String>,
    /// All that in one sentence.
    pub sentence: String,
}

/// A setting that separates outliers from the rest of their group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetCommon {
    /// Index of the group in `groups`.
    pub group: usize,
    /// The figures in which they differ.
    pub figures: Vec<String>,
    /// The outliers.
    pub nodes: Vec<String>,
    /// The setting.
    pub setting: String,
    /// Its value among the outliers.
    pub value: String,
    /// Number of outliers with this value.
    pub outliers_with: usize,
    /// Number of other nodes of the group with this value.
    pub others_with: usize,
    /// Number of other nodes of the group.
    pub others: usize,
    /// Probability of such a clear separation by chance, adjusted for the number of settings
    /// tested.
    pub adjusted_p: f64,
    /// All that in one sentence.
    pub sentence: String,
}
