//! Two fleets, or two groups of machines, compared.

use serde::{Deserialize, Serialize};

use crate::{AttributionRecord, Direction};

/// One group of machines against another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.fleet-diff/1")]
pub struct FleetDiff {
    /// The first side.
    pub a: FleetSide,
    /// The second side.
    pub b: FleetSide,
    /// Settings that differ.
    pub settings: Vec<FleetSettingChange>,
    /// Figures that both have.
    pub figures: Vec<FleetFigureChange>,
    /// The causes of the differences of profiled workloads.
    pub attributions: Vec<FleetAttribution>,
    /// Figures that only one side has.
    pub only_one: Vec<String>,
    /// The answer in one sentence.
    pub sentence: String,
}

/// The causes of a step's difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetAttribution {
    /// The step: a profile.
    pub step: String,
    /// The difference and its parts.
    #[serde(flatten)]
    pub attribution: AttributionRecord,
}

/// One of two groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetSide {
    /// The fleet's id.
    pub fleet: String,
    /// The group's name.
    pub group: String,
    /// Number of nodes.
    pub nodes: usize,
}

/// A setting that differs between two groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetSettingChange {
    /// The setting.
    pub name: String,
    /// The value of most nodes of A; `null` if unknown.
    pub a: Option<String>,
    /// The value of most nodes of B; `null` if unknown.
    pub b: Option<String>,
}

/// A figure of two groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetFigureChange {
    /// The step it comes from.
    pub step: String,
    /// The subject of the figure.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Is less of it better, or more? `null` if its unit does not say.
    #[serde(default)]
    pub better: Option<Direction>,
    /// Median of A.
    pub a: f64,
    /// Median of B.
    pub b: f64,
    /// Typical value of B divided by that of A.
    pub ratio: f64,
    /// Lower end of the ratio's 95 % interval, over nodes; `null` if there are too few nodes.
    pub low: Option<f64>,
    /// Upper end of the ratio's interval.
    pub high: Option<f64>,
    /// p-value of "the ratio is 1", adjusted for the number of figures
    /// (Benjamini and Hochberg 1995); `null` as the interval.
    pub p_adjusted: Option<f64>,
    /// Does it differ by 1 % or more, at a false-discovery rate of 5 %?
    pub differs: bool,
}
