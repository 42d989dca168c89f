//! The interface for traces: the request, the listener for events, and the result.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CommandRunner, MachineError, Request, Run};
use pinwise_sched::{Availability, Event, InterruptSummary, Scope, Tid, Tier};

/// A machine that can trace its scheduler.
pub trait Tracer: CommandRunner {
    /// The tiers of tracing, and why some are not available here.
    fn tiers(&mut self) -> Vec<Availability>;

    /// Traces the scheduler while a command runs, or a running process, or everything.
    ///
    /// # Errors
    /// [`MachineError`] if the requested tier is not available, requested interrupts cannot be
    /// read, the process is gone, the command cannot be started, or the user interrupts before it
    /// begins (afterwards an interrupt ends the trace, and a command is
    /// [`End::Interrupted`](crate::End)).
    fn trace(
        &mut self,
        order: &TraceOrder<'_>,
        listener: &mut dyn Listener,
    ) -> Result<TraceResult, MachineError>;

    /// The name of the process of a living thread, as the kernel has cut it; `None` if there is none.
    fn process_name(&self, _thread: Tid) -> Option<Box<str>> {
        None
    }

    /// Measures the cost of each tier per context switch, for about `time` each, alternating with
    /// untraced switches. Unavailable tiers are left out; the result is empty on a machine with
    /// simulated time, or if measuring takes far longer than requested.
    ///
    /// # Errors
    /// [`MachineError`] if threads cannot be started, or the user interrupts.
    fn tracing_cost(
        &mut self,
        tiers: &[Tier],
        time: Duration,
    ) -> Result<Vec<TierCost>, MachineError>;
}

/// The threads that are traced or sampled.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A command, started for the trace, and its descendants.
    Command(&'a Request<'a>),
    /// A running process and its descendants.
    Process(i32),
    /// Every thread of the machine.
    Everything,
}

/// The request for a trace.
#[derive(Debug, Clone, Copy)]
pub struct TraceOrder<'a> {
    /// What to trace.
    pub subject: Subject<'a>,
    /// The tier; `None` for the richest one permitted.
    pub tier: Option<Tier>,
    /// Longest time to trace; `None` for no limit. At the end a process is left running, and a
    /// command is killed as if it had timed out.
    pub limit: Option<Duration>,
    /// How long events may be buffered: short for a live view, long to disturb little.
    pub round: Duration,
    /// Are interrupts and softirqs summed up as well? Each adds a little cost.
    pub interrupts: bool,
    /// May processes that the command leaves running continue? Otherwise they are ended a moment
    /// after it.
    pub leaves_daemons: bool,
}

/// Receives the events of a trace.
pub trait Listener {
    /// Events, in time order over all CPUs and all calls. A thread's
    /// [`Known`](pinwise_sched::EventKind::Known) or `Fork` comes before its `Follow`.
    fn events(&mut self, events: &[Event]);

    /// Called after each round; `now_ns` is the time on the events' clock. Returns whether the
    /// trace continues; if not, a traced command is ended.
    fn round(&mut self, now_ns: u64) -> bool {
        let _ = now_ns;
        true
    }
}

/// Throttling by a cgroup's quota on CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which something ran.
    pub periods: u64,
    /// Of those, periods in which the quota was used up.
    pub times: u64,
    /// CPU time for which threads were throttled, over all CPUs.
    pub held: Duration,
}

impl Throttling {
    /// Adds the figures of a sibling cgroup, which throttles other threads.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            periods: self.periods + other.periods,
            times: self.times + other.times,
            held: self.held + other.held,
        }
    }

    /// Combines two nested cgroups. Both throttle the same threads, often at the same time, and the
    /// kernel counts that time in each: the larger figure is used for both.
    pub(crate) fn merge_nested(self, other: Self) -> Self {
        Self {
            periods: self.periods.max(other.periods),
            times: self.times.max(other.times),
            held: self.held.max(other.held),
        }
    }
}

/// A quota on CPU time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuQuota {
    /// The file that sets it, in the cgroup's folder.
    pub file: String,
    /// CPU time in each period.
    pub quota: Duration,
    /// The period.
    pub period: Duration,
}

/// What the memory limit of a cgroup did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryLimit {
    /// The file that sets it, in the cgroup's folder.
    pub file: String,
    /// Its bytes.
    pub bytes: u64,
    /// How often the limit was hit.
    pub hits: u64,
    /// Pages that were read again soon after the kernel had freed them.
    pub refaults: u64,
    /// How long all tasks of the cgroup waited for memory at once; `None` if the kernel does not say.
    pub stalled: Option<Duration>,
}

/// The NUMA nodes of the traced processes' pages at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesSeen {
    /// Time of the sample, ns of the trace's clock.
    pub time_ns: u64,
    /// Bytes of their pages by NUMA node; shared pages count once per process.
    pub nodes: BTreeMap<usize, u64>,
    /// Bytes in huge pages, transparent and reserved ones.
    pub huge: u64,
}

/// The result of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceResult {
    /// The tier used.
    pub tier: Tier,
    /// What its events can show: less than usual where the system permits only a part.
    pub scope: Scope,
    /// First moment of the trace, ns of the events' clock.
    pub from_ns: u64,
    /// Last moment of the trace, ns of the events' clock.
    pub to_ns: u64,
    /// How the command ran, if one was started.
    pub run: Option<Run>,
    /// CPU time of pinwise itself for collecting.
    pub own_cpu: Duration,
    /// What quotas on CPU time took from the subject; `None` if their cgroups cannot be seen.
    pub throttled: Option<Throttling>,
    /// The quota that took the most of it.
    pub quota: Option<CpuQuota>,
    /// The memory limit that the subject hit.
    pub memory_limit: Option<MemoryLimit>,
    /// Samples of the NUMA nodes of its pages, in time order; empty if not sampled.
    pub pages: Vec<PagesSeen>,
    /// What interrupts and softirqs took; `None` if not requested.
    pub interrupts: Option<InterruptSummary>,
    /// Does the kernel move pages to the node that uses them? `None` if unknown.
    pub numa_balancing: Option<bool>,
    /// Further notes, as full sentences.
    pub notes: Vec<String>,
}

/// The cost of a tier, measured on this machine: two threads pass a byte back and forth on one CPU,
/// alternately traced and untraced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierCost {
    /// The tier.
    pub tier: Tier,
    /// Additional CPU time of the traced threads per switch, ns; the median of pairs.
    pub ns_per_switch: f64,
    /// Lower end of the median's confidence interval, ns.
    pub low_ns: f64,
    /// Upper end of the interval, ns.
    pub high_ns: f64,
    /// Time of an untraced context switch, ns.
    pub untraced_ns: f64,
}
