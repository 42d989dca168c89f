//! One run of an arm as a record.

use serde::{Deserialize, Serialize};

use super::coverage::CoverageRecord;
use pinwise_format::percent;

/// The part of the experiment that a run belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Discarded.
    Warmup,
    /// Used only to drop arms.
    Screening,
    /// Used for the contrasts.
    #[default]
    Confirmation,
    /// Discarded with its block: a run of the block failed, was interrupted, or was throttled by a
    /// limit on CPU time although most runs of its arm are not.
    Dropped,
}

impl Phase {
    /// Its name in records and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warmup => "warmup",
            Self::Screening => "screening",
            Self::Confirmation => "confirmation",
            Self::Dropped => "dropped",
        }
    }
}

/// One run. Values that could not be measured are `null`, never 0.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunRecord {
    /// Number of the block within its phase, from 0.
    pub block: usize,
    /// Position within the block, from 0.
    pub order: usize,
    /// Number of runs of a complete block.
    pub block_runs: usize,
    /// Part of the experiment.
    pub phase: Phase,
    /// Seconds since the experiment began.
    pub at_s: f64,
    /// Wall-clock time, seconds.
    pub wall_s: f64,
    /// CPU time in user mode, seconds.
    pub user_s: Option<f64>,
    /// CPU time in the kernel, seconds.
    pub sys_s: Option<f64>,
    /// Time that threads were ready to run but queued for a CPU, all threads together, seconds.
    pub queued_s: Option<f64>,
    /// Largest resident set of any process, bytes.
    pub max_rss_bytes: Option<u64>,
    /// Exit status; `null` if a signal or a time-out ended it.
    pub exit: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<i32>,
    /// Was it killed for taking too long?
    pub timed_out: bool,
    /// Largest number of threads seen at once.
    pub threads: Option<u32>,
    /// Moves of threads between CPUs.
    pub migrations: Option<u64>,
    /// Context switches, both kinds.
    pub context_switches: Option<u64>,
    /// Context switches in which the program was preempted.
    pub involuntary_switches: Option<u64>,
    /// Page faults without I/O.
    pub minor_faults: Option<u64>,
    /// Page faults with I/O.
    pub major_faults: Option<u64>,
    /// Core cycles.
    pub cycles: Option<u64>,
    /// Instructions.
    pub instructions: Option<u64>,
    /// CPUs that the kernel granted, as a list.
    pub granted_cpus: String,
    /// How well bound threads stayed on their CPUs; absent if none were bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<CoverageRecord>,
    /// CPU time of other processes during the run, seconds.
    pub foreign_cpu_s: Option<f64>,
    /// CPU time that the hypervisor gave to other guests during the run, seconds.
    pub steal_s: Option<f64>,
    /// How often a limit on CPU time throttled it.
    pub throttled: Option<u64>,
    /// How long it was throttled, all CPUs together, seconds.
    pub throttled_s: Option<f64>,
    /// The active `sched_ext` scheduler; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sched_ext: Option<String>,
    /// The figure of the command that ran beside it; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub companion: Option<MetricReading>,
    /// The compared figure.
    pub metric: MetricReading,
}

impl RunRecord {
    /// CPU time in user and kernel mode together, seconds; `None` unless both are known.
    #[must_use]
    pub fn cpu_s(&self) -> Option<f64> {
        Some(self.user_s? + self.sys_s?)
    }

    /// Threads that ran or waited for a CPU, on average; `None` if that is not known.
    #[must_use]
    pub fn ready_threads(&self) -> Option<f64> {
        let ready = (self.cpu_s()? + self.queued_s?) / self.wall_s;
        Some(ready).filter(|ready| ready.is_normal())
    }
}

/// What the threads of an arm did, on average over its runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadTime {
    /// Average number of threads that ran.
    pub running: f64,
    /// Average number of threads that were ready to run but queued for a CPU.
    pub queued: f64,
    /// Lower bound of the share of wall-clock time during which all threads were blocked; it is
    /// larger if threads ran in parallel.
    pub blocked: f64,
    /// In words.
    pub text: String,
}

impl ThreadTime {
    /// Averages over runs; `None` unless the time queued of every run is known.
    #[must_use]
    pub fn from_runs<'r>(runs: impl IntoIterator<Item = &'r RunRecord>) -> Option<Self> {
        let [mut wall_s, mut cpu_s, mut queued_s] = [0.0; 3];
        for run in runs {
            wall_s += run.wall_s;
            cpu_s += run.cpu_s()?;
            queued_s += run.queued_s?;
        }
        let (running, queued) = (cpu_s / wall_s, queued_s / wall_s);
        let blocked = (1.0 - running - queued).max(0.0);
        let text = format!(
            "{running:.2} running, {queued:.2} queued for a CPU, all blocked {} of the time",
            percent(blocked)
        );
        (running + queued).is_finite().then_some(Self {
            running,
            queued,
            blocked,
            text,
        })
    }
}

/// The compared figure of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MetricReading {
    /// The figure in the metric's unit; `null` if the run failed.
    pub value: Option<f64>,
    /// The cost used for ratios: the value, or its inverse if higher is better.
    pub cost: Option<f64>,
}
