//! The answer of a trace, in a sentence.

use serde::{Deserialize, Serialize};

/// Why a program took its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceAnswer {
    /// The largest cause, then the shares of the threads' time: running, waiting for a CPU or a
    /// lock, blocked otherwise.
    pub sentence: String,
    /// How to reduce the largest; empty if nothing is known to help.
    pub advice: String,
}
