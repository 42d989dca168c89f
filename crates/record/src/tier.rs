//! How a trace was made, and which ways a machine permits. What was traced is elsewhere.

use serde::{Deserialize, Serialize};

use super::named::open_enum;
use pinwise_sched::Tier;

open_enum! {
    /// How a trace was made.
    TraceTier {
        /// By polling `/proc`.
        Proc = "proc",
        /// By switch records of the program's threads.
        Switch = "switch",
        /// By switch records of all CPUs.
        CpuWide = "cpu-wide",
        /// By the scheduler's tracepoints.
        Tracepoint = "tracepoint",
        /// By a BPF program.
        Bpf = "bpf",
        /// Imported from a file of `perf record`.
        PerfData = "perf.data",
        /// Imported from the output of `perf script`.
        PerfScript = "perf script",
        /// Imported from the text of ftrace.
        Ftrace = "ftrace",
        /// By a simulated machine.
        Simulated = "simulated",
    }
}

impl From<Tier> for TraceTier {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Proc => Self::Proc,
            Tier::Switch => Self::Switch,
            Tier::CpuWide => Self::CpuWide,
            Tier::Tracepoint => Self::Tracepoint,
            Tier::Bpf => Self::Bpf,
        }
    }
}

/// Whether a tier is available on this machine, and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierRecord {
    /// Its name.
    pub tier: TraceTier,
    /// Was it available?
    pub available: bool,
    /// Why not; `null` if it was.
    pub reason: Option<String>,
    /// The command that would permit it; `null` if none would.
    pub remedy: Option<String>,
    /// Extra CPU time per switch of a traced thread, ns; `null` if it was not measured.
    pub cost_ns_per_switch: Option<f64>,
    /// Lower end of its 95 % interval.
    pub cost_low_ns: Option<f64>,
    /// Upper end.
    pub cost_high_ns: Option<f64>,
}
