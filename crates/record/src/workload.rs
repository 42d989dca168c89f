//! Surroundings of a command as a record.

use serde::{Deserialize, Serialize};

/// What a command is and how it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkloadRecord {
    /// File on standard input.
    pub input: Option<String>,
    /// Added environment.
    pub environment: Vec<(String, String)>,
    /// Run before every run.
    pub prepare: Option<String>,
    /// Run after every run.
    pub conclude: Option<String>,
    /// Time-out, seconds.
    pub timeout_s: Option<f64>,
    /// The recipe it was made from.
    pub recipe: Option<String>,
    /// Run after every run that succeeded: its failure makes the run fail.
    pub verify: Option<String>,
    /// Regular expression that the output had to match.
    pub expect: Option<String>,
    /// Hash of the command's file (FNV-1a, 64 bits, hexadecimal), which changes when the program is
    /// rebuilt; `null` if unknown, as on a simulated machine.
    pub program: Option<String>,
}
