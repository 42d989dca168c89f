//! How a trace was made, and what of that a machine permits. Says nothing of
//! what was traced.

use serde::{Deserialize, Serialize};

use super::named::open_enum;
use pinwise_sched::Tier;

open_enum! {
    /// How a trace was made.
    TraceTier {
        /// By polling of `/proc`.
        Proc = "proc",
        /// By switch records of the program's threads.
        Switch = "switch",
        /// By switch records of all CPUs.
        CpuWide = "cpu-wide",
        /// By the scheduler's tracepoints.
        Tracepoint = "tracepoint",
        /// By a BPF program.
        Bpf = "bpf",
        /// By perf: a file was read.
        PerfData = "perf.data",
        /// By perf: what `perf script` printed was read.
        PerfScript = "perf script",
        /// By ftrace: its text was read.
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

/// A tier on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TierRecord {
    /// Its name.
    pub tier: TraceTier,
    /// Was it available?
    pub available: bool,
    /// Why not.
    pub reason: Option<String>,
    /// The command that would permit it.
    pub remedy: Option<String>,
    /// Extra CPU time per switch of a traced thread, ns; `null` if it was not measured.
    pub cost_ns_per_switch: Option<f64>,
    /// Interval of that.
    pub cost_low_ns: Option<f64>,
    /// See `cost_low_ns`.
    pub cost_high_ns: Option<f64>,
}
