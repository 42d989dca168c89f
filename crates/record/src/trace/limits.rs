//! The limits of cgroups that held a traced program back.

use serde::{Deserialize, Serialize};

/// What a cgroup's quota on CPU time did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThrottledRecord {
    /// Periods of the quota in which something ran.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub times: u64,
    /// Time of CPUs on which threads were held back, all together, seconds.
    pub seconds: f64,
    /// The quota that took the most of it; `null` if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<CpuQuotaRecord>,
}

/// A cgroup's quota on CPU time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuQuotaRecord {
    /// The file that sets it.
    pub file: String,
    /// CPUs' worth of time.
    pub cpus: f64,
    /// Its period, seconds.
    pub period_s: f64,
}

/// A cgroup's memory limit that was hit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryLimitRecord {
    /// The file that sets it.
    pub file: String,
    /// The limit, bytes.
    pub bytes: u64,
    /// How often it was hit.
    pub hits: u64,
    /// Pages of the cgroup that were read again soon after the kernel had freed them.
    pub refaults: u64,
    /// Time that all tasks of the cgroup waited for memory at once, seconds; `null` if unknown.
    pub stalled_s: Option<f64>,
}
