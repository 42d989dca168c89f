//! Two fleets, or two groups of machines, compared.

use serde::{Deserialize, Serialize};

use crate::AttributionRecord;

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
    /// Which part of the difference of a profiled workload comes from what.
    pub attributions: Vec<FleetAttribution>,
    /// Figures that one of them lacks.
    pub only_one: Vec<String>,
    /// The answer in one sentence.
    pub sentence: String,
}

/// A step's difference, taken apart.
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
    /// Nodes.
    pub nodes: usize,
}

/// A setting that two groups have otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetSettingChange {
    /// The setting.
    pub name: String,
    /// What most nodes of the first have.
    pub a: Option<String>,
    /// What most nodes of the second have.
    pub b: Option<String>,
}

/// A figure of two groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FleetFigureChange {
    /// The step it comes from.
    pub step: String,
    /// What it is of.
    pub name: String,
    /// Unit.
    pub unit: String,
    /// Median of the first.
    pub a: f64,
    /// Median of the second.
    pub b: f64,
    /// Typical second over typical first.
    pub ratio: f64,
    /// 95 % interval of the ratio, over nodes; `null` if there are too few.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// p-value of "the ratio is 1", adjusted for the number of figures
    /// (Benjamini and Hochberg 1995); `null` as the interval.
    pub p_adjusted: Option<f64>,
    /// Found to differ: by 1 % or more, at a rate of false discoveries of 5 %.
    pub differs: bool,
}
