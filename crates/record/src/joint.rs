//! The programs of a joint plan, whose placement is compared with no placement.

use serde::{Deserialize, Serialize};

use super::metric::MetricRecord;
use super::named::open_enum;

/// Programs that share a machine, and the joint placement that a search found for them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JointRecord {
    /// The programs, in the order of the file.
    pub programs: Vec<JointProgramRecord>,
    /// Joint placements that were considered.
    pub plans: usize,
    /// Rounds of the search, without those of the confirmation.
    pub rounds: usize,
    /// The placements that the search ran.
    pub tried: Vec<JointTrialRecord>,
}

/// A program of a joint plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JointProgramRecord {
    /// Its name.
    pub name: String,
    /// Its arguments, the program first.
    pub command: Vec<String>,
    /// The command that uses the service and gives its figure; `null` if the program itself ends.
    pub load: Option<Vec<String>>,
    /// Its figure.
    pub metric: MetricRecord,
    /// Its share of the joint cost.
    pub weight: f64,
    /// The worst figure that is acceptable; `null` without a limit.
    pub limit: Option<f64>,
    /// The placement that was found, as on the command line.
    pub placement: String,
    /// Its CPUs, as a list.
    pub cpus: String,
    /// Median figure of the confirming rounds without placement; `null` if there are none.
    pub default_value: Option<f64>,
    /// The same with the placement.
    pub placed_value: Option<f64>,
    /// The change of the figure, in words; empty if unknown.
    pub change: String,
    /// Is the figure within the limit without placement? `null` without a limit.
    pub default_limit: Option<LimitState>,
    /// The same with the placement.
    pub placed_limit: Option<LimitState>,
}

open_enum! {
    /// Is the median figure within a limit, judged by its 95 % interval?
    LimitState {
        /// It is.
        Held = "held",
        /// It is not.
        Broken = "broken",
        /// The limit lies within the interval.
        Open = "open",
    }
}

/// A joint placement that a search ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JointTrialRecord {
    /// The CPUs of each program, as lists.
    pub cpus: Vec<String>,
    /// The figures of each program, round by round.
    pub figures: Vec<Vec<f64>>,
}
