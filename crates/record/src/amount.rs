//! An amount of samples with the CPU time that they represent.

use serde::{Deserialize, Serialize};

/// Samples and the CPU time that they represent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AmountRecord {
    /// Number of samples.
    pub samples: u64,
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// CPU time per unit of work, seconds; `null` if the amount of work is unknown.
    pub cpu_s_per_unit: Option<f64>,
}
