//! What the scheduler did, as a record.

mod limits;
mod migrations;

use pinwise_format::shell;
use serde::{Deserialize, Serialize};

use super::blocked::BlockedRecord;
use super::host::HostRecord;
use super::interrupts::InterruptsRecord;
use super::memory::MemoryRecord;
use super::named::open_enum;
use super::tier::{TierRecord, TraceTier};
use super::timeline::TimelineRecord;
use super::{Answer, Entry, Header, StoredRecord};
pub use limits::{CpuQuotaRecord, MemoryLimitRecord, ThrottledRecord};
pub use migrations::MigrationCounts;

/// A trace: how it was made, its figures, and their meaning. What the source
/// did not report is `null`, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.trace/1")]
pub struct TraceRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The machine it ran on; for an imported file, the machine it was read as.
    pub host: HostRecord,
    /// What was traced.
    pub source: TraceSource,
    /// How it was made.
    pub tier: TraceTier,
    /// All tiers, and why some were not available.
    pub tiers: Vec<TierRecord>,
    /// Time from the first to the last moment, seconds.
    pub elapsed_s: f64,
    /// The cost of tracing.
    pub cost: Option<TraceCost>,
    /// The figures.
    #[serde(flatten)]
    pub figures: TraceFigures,
    /// Where the time of the program's threads went, and why; `null` if unknown, and of a whole
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// What threads were blocked in, by process, most often seen first; empty if this was not
    /// watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedRecord>,
    /// Threads that the trace is about, the busiest first.
    pub threads: Vec<ThreadRecord>,
    /// Threads left out of `threads`, beyond the largest number kept.
    pub threads_left_out: u64,
    /// Time of each CPU.
    pub cpus: Vec<CpuTimeRecord>,
    /// Time of each core.
    pub cores: Vec<CoreTimeRecord>,
    /// Time taken by interrupts and softirqs (`--interrupts`); `null` if not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<InterruptsRecord>,
    /// Which thread ran where and when.
    pub timeline: TimelineRecord,
    /// How the command ended: exit status, or 128 + signal; `null` if none was started, and if
    /// `--for` ended it.
    pub exit: Option<i32>,
}

/// What a trace is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TraceSource {
    /// A command that was started.
    Command {
        /// Its arguments.
        command: Vec<String>,
        /// The placement it was asked to run on.
        placement: String,
        /// The CPUs of that placement.
        cpus: String,
    },
    /// A process that ran already.
    Process {
        /// Its id.
        pid: i32,
        /// Its name.
        name: String,
    },
    /// The whole machine.
    Machine,
    /// A file.
    Import {
        /// Its path as given.
        path: String,
        /// The requested process; `null`: all of it.
        pid: Option<i32>,
    },
}

impl TraceSource {
    /// What names it to another command, such as `--pid 7` or `-- ./prog`; `None` if it is no single
    /// program.
    #[must_use]
    pub fn target(&self) -> Option<String> {
        match self {
            Self::Process { pid, .. } => Some(format!("--pid {pid}")),
            Self::Command { command, .. } => Some(format!("-- {}", shell::line(command))),
            Self::Machine | Self::Import { .. } => None,
        }
    }

    /// The title of its record, for the command `study` that made it.
    pub(crate) fn title(&self, study: &str) -> String {
        match self {
            Self::Command { command, .. } => format!("{study} {}", shell::line(command)),
            Self::Process { pid, name } => format!("{study} of {name} ({pid})"),
            Self::Machine => format!("{study} of the machine"),
            Self::Import { path, .. } => format!("{study} import {path}"),
        }
    }
}

/// The cost of tracing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceCost {
    /// Extra CPU time per switch, ns, measured on this machine before the trace.
    pub ns_per_switch: f64,
    /// An estimate: `ns_per_switch` times the switches, over the CPU time of the traced threads,
    /// per cent.
    pub percent_of_cpu: f64,
    /// CPU time that pinwise used for collecting, seconds.
    pub own_cpu_s: f64,
}

/// The figures of a trace. A comparison keeps them for each arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceFigures {
    /// Counts and sums.
    pub totals: TraceTotals,
    /// Time in run queues.
    pub waits: WaitRecord,
    /// Time on CPUs whose SMT sibling was busy, if that could be avoided.
    pub avoidable_smt_sharing: SmtSharingRecord,
    /// Time in run queues while an allowed CPU idled.
    pub idle_while_waiting: IdleWaitingRecord,
    /// What the trace does not know.
    pub lost: LostRecord,
    /// Figures that are lower bounds, since the source did not see everything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_bounds: Vec<LowerBound>,
    /// Time taken by a quota on CPU time; `null` if there is none, or if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled: Option<ThrottledRecord>,
    /// The memory limit that it hit; `null` if there is none, or if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<MemoryLimitRecord>,
    /// Location of its memory; `null` if not observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryRecord>,
}

/// Names a figure of which the trace gives only a lower bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LowerBound {
    /// `totals.cpu_s`, and that of threads.
    CpuTime,
    /// `totals.switches` and `totals.preemptions`.
    Switches,
    /// `totals.threads` and `totals.processes`.
    Threads,
    /// `totals.migrations`.
    Migrations,
    /// `waits.total_s`.
    Queued,
    /// A word that this version does not know.
    #[serde(other)]
    Other,
}

/// Counts and sums over the traced threads, unless stated otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TraceTotals {
    /// Threads seen.
    pub threads: u64,
    /// Processes seen.
    pub processes: u64,
    /// Of those, processes that were started during the trace; `null` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_processes: Option<u64>,
    /// Times a thread left its CPU.
    pub switches: Option<u64>,
    /// Times a thread left its CPU because it was preempted.
    pub preemptions: Option<u64>,
    /// Times a thread became runnable.
    pub wakeups: Option<u64>,
    /// Moves between CPUs by the outermost boundary that was crossed.
    pub migrations: MigrationCounts,
    /// Lifetime of all its threads during the trace, without idle ones, which were awake for so
    /// little of theirs that they have no part in what happened, and without waiting for the end of
    /// others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life_s: Option<f64>,
    /// Time on CPUs, seconds.
    pub cpu_s: f64,
    /// `cpu_s` is an upper bound: more than the kernel counted for the command, without the time
    /// that a hypervisor took from the CPU.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cpu_is_upper_bound: bool,
    /// Time with two or more of its threads on CPUs at once, seconds; `null` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_s: Option<f64>,
    /// CPU time of all other threads, seconds.
    pub foreign_cpu_s: Option<f64>,
    /// Time that CPUs idled, all together, seconds.
    pub idle_s: Option<f64>,
    /// Switches of all CPUs, traced threads or not.
    pub all_switches: Option<u64>,
    /// Events that the figures are based on.
    pub events: u64,
}

open_enum! {
    /// The source of the sums of waits.
    WaitBasis {
        /// Each wait is known.
        Events = "events",
        /// The kernel's totals.
        Schedstat = "schedstat",
    }
}

/// Time in run queues.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaitRecord {
    /// All of it, seconds.
    pub total_s: Option<f64>,
    /// After a preemption.
    pub after_preemption_s: Option<f64>,
    /// After being woken.
    pub after_wakeup_s: Option<f64>,
    /// The source of the sums.
    pub basis: Option<WaitBasis>,
    /// `total_s` is an upper bound: waits are so short that the time from the
    /// kernel's own moments to those of events may be more than 3 % of them, or
    /// switches are missing, so that threads which ran may seem queued.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_upper_bound: bool,
    /// Waits that ended.
    pub count: Option<u64>,
    /// Half of the waits were at most this long; accurate to 4 %.
    pub p50_s: Option<f64>,
    /// 99 of 100 were at most this long.
    pub p99_s: Option<f64>,
    /// The longest.
    pub longest_s: Option<f64>,
    /// Why they waited; sums to `total_s` if events show it.
    pub because: Option<WaitCauses>,
    /// Programs that ran where threads were queued, the one with the most CPU time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<OtherProgramRecord>,
}

/// Threads of other programs that ran on CPUs where traced threads were queued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OtherProgramRecord {
    /// The name of the threads (`comm`).
    pub name: String,
    /// Their CPU time while traced threads were queued on the same CPU, seconds.
    pub cpu_s: f64,
    /// The same as a part of the time in which a CPU with queued traced threads ran none of them.
    pub share: f64,
}

/// Why threads waited, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WaitCauses {
    /// Another CPU that the thread may use idled: the scheduler left it queued. A CPU
    /// idles for one waiting thread at a time, the one that has waited longest.
    pub scheduler_s: f64,
    /// Only CPUs idled that the thread's mask forbids.
    pub mask_s: f64,
    /// No CPU was idle for it; a thread of another program ran where it was queued.
    pub other_processes_s: f64,
    /// No CPU was idle for it; a thread of the same program ran where it was queued.
    pub own_threads_s: f64,
    /// The CPU it was queued on idled and had yet to start: wake-up latency,
    /// in a virtual machine also the hypervisor.
    pub starting_s: f64,
    /// A quota on CPU time was used up.
    pub throttled_s: f64,
    /// The thread's scheduling class held it back: the budget of `SCHED_DEADLINE`, the
    /// limit of real-time classes, the rank of `SCHED_IDLE`.
    pub scheduling_class_s: f64,
}

/// Time on CPUs whose SMT sibling was busy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SmtSharingRecord {
    /// CPU time of the traced threads beside a busy sibling, seconds; `null` if cores have one CPU
    /// or the source does not report it.
    pub shared_s: Option<f64>,
    /// As a share of their CPU time, per cent.
    pub shared_percent: Option<f64>,
    /// The avoidable part, during which at least as many cores were entirely idle, seconds.
    pub seconds: Option<f64>,
    /// The avoidable part as a share of their CPU time, per cent.
    pub percent: Option<f64>,
    /// The causes of that part.
    pub by: Option<SharingCauses>,
    /// Why nothing is reported, or how far it can be trusted.
    pub note: Option<String>,
}

/// The cause of avoidable SMT sharing, seconds of CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SharingCauses {
    /// The idle core was in the threads' mask.
    pub scheduler_s: f64,
    /// The idle core was forbidden by the threads' mask.
    pub mask_s: f64,
    /// The sibling ran a thread of another program.
    pub other_processes_s: f64,
}

/// Time queued while a CPU idled, in episodes of 1 ms and more, without what a quota on
/// CPU time or the thread's scheduling class explains.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IdleWaitingRecord {
    /// All episodes, seconds.
    pub seconds: Option<f64>,
    /// As a share of the time queued, per cent.
    pub percent: Option<f64>,
    /// Number of episodes; `null` if a quota caused some of them, and it is unknown which.
    pub episodes: Option<u64>,
    /// The longest, seconds; `null` as for `episodes`.
    pub longest_s: Option<f64>,
    /// Part during which an allowed CPU idled: the scheduler's doing.
    pub scheduler_s: Option<f64>,
    /// Part during which only CPUs idled that the mask forbids.
    pub mask_s: Option<f64>,
    /// Why nothing is reported.
    pub note: Option<String>,
}

/// What the trace does not know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LostRecord {
    /// Records that the kernel or the file lost.
    pub records: u64,
    /// Spans of time on a CPU in which records are missing.
    pub windows: u64,
    /// Their sum, seconds of CPUs; nothing in them is counted.
    pub seconds: f64,
    /// Events whose time was before that of their predecessor.
    pub backwards: u64,
    /// Events that contradict earlier ones (a thread on two CPUs, or leaving a CPU that it was not
    /// on); the trace is reliable again from the next event on.
    pub contradictions: u64,
    /// Online CPUs without a single event: whether they idled is unknown, so figures about idle
    /// CPUs are lower bounds.
    pub silent_cpus: u64,
    /// CPUs whose idle task's events did not arrive, so that threads left them without having
    /// arrived: CPU time and time queued are lower bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idle_task_unseen: Vec<u32>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadRecord {
    /// Its number.
    pub thread: i32,
    /// Its process.
    pub process: Option<i32>,
    /// Its name.
    pub name: String,
    /// Time on CPUs, seconds.
    pub cpu_s: f64,
    /// Time queued, seconds.
    pub wait_s: Option<f64>,
    /// It ended before the kernel could be asked: `wait_s` was more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait_is_lower_bound: bool,
    /// Times it left its CPU.
    pub switches: Option<u64>,
    /// Times it left its CPU because it was preempted.
    pub preemptions: Option<u64>,
    /// Moves between CPUs.
    pub migrations: MigrationCounts,
    /// CPU time beside a busy sibling, seconds.
    pub shared_s: Option<f64>,
    /// CPUs that it ran on with the time there, the longest first.
    pub cpus: Vec<ThreadCpu>,
    /// The CPUs it was last known to be allowed.
    pub allowed: Option<String>,
    /// Its niceness, if that is above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<u8>,
}

/// A CPU that a thread ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ThreadCpu {
    /// The CPU.
    pub cpu: usize,
    /// Its time there, seconds.
    pub cpu_s: f64,
}

/// Time of a CPU, seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CpuTimeRecord {
    /// The CPU.
    pub cpu: usize,
    /// Time with threads that the trace is about, seconds.
    pub own_s: f64,
    /// Time with other threads, seconds; `null` if unknown.
    pub foreign_s: Option<f64>,
    /// Idle time, seconds; `null` if unknown.
    pub idle_s: Option<f64>,
    /// Time in an unknown state, seconds; 0 below half a percent of the trace.
    pub unknown_s: Option<f64>,
    /// Switches on this CPU.
    pub switches: Option<u64>,
}

/// Time of a core, seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CoreTimeRecord {
    /// Number of the core, as in the topology's record.
    pub core: usize,
    /// Its CPUs.
    pub cpus: String,
    /// CPU time of the traced threads on it.
    pub own_s: f64,
    /// Time with at least one busy CPU.
    pub busy_s: Option<f64>,
    /// Time with two or more.
    pub shared_s: Option<f64>,
}

impl TraceFigures {
    /// This time as a share of the lifetime of all threads, whether running, queued or blocked.
    #[must_use]
    pub fn share_of_threads(&self, seconds: f64) -> f64 {
        let awake_s = self.totals.cpu_s + self.waits.total_s.unwrap_or(0.0);
        let life_s = self.totals.life_s.unwrap_or(0.0).max(awake_s);
        match life_s > 0.0 {
            true => (seconds / life_s).min(1.0),
            false => 0.0,
        }
    }
}

impl TraceRecord {
    /// Its subject in one line.
    #[must_use]
    pub fn title(&self) -> String {
        self.source.title("trace")
    }

    /// The result in one line: the answer, or the gravest finding.
    #[must_use]
    pub fn verdict(&self) -> String {
        let answer = self.answer.as_ref().map(|answer| &answer.sentence);
        let first = self.findings.first().map(|found| &found.sentence);
        answer.or(first).cloned().unwrap_or_default()
    }
}

impl StoredRecord for TraceRecord {
    fn entry(&self) -> Entry {
        self.header
            .to_entry::<Self>(self.host.name(), self.title(), self.verdict())
    }
}
