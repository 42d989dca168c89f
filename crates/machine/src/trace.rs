//! The seam for traces: what is asked of a machine, who listens, what comes
//! back.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{CommandRunner, MachineError, Request, Run};
use pinwise_sched::{Availability, Event, InterruptSummary, Scope, Tier};

/// A machine that traces its scheduler.
pub trait Tracer: CommandRunner {
    /// The ways of tracing the scheduler, and why some are not available here.
    fn tiers(&mut self) -> Vec<Availability>;

    /// Traces the scheduler while a command runs, or a process that runs
    /// already, or everything.
    ///
    /// # Errors
    /// [`MachineError`] where the tier asked for is not available, interrupts that were
    /// asked for cannot be read, the process is gone, the command cannot be started, or the
    /// user interrupts before it begins (a trace ends by it, and a command is then
    /// [`End::Interrupted`](crate::End)).
    fn trace(
        &mut self,
        order: &TraceOrder<'_>,
        listener: &mut dyn Listener,
    ) -> Result<Traced, MachineError>;

    /// What tiers cost a switch, measured for about this long each, in turns
    /// with untraced switches. Tiers that are not available are left out, and so
    /// is everything on a machine with simulated time, or where it takes far longer than
    /// asked for.
    ///
    /// # Errors
    /// [`MachineError`] where threads cannot be started, or the user
    /// interrupts.
    fn tracing_cost(
        &mut self,
        tiers: &[Tier],
        time: Duration,
    ) -> Result<Vec<TierCost>, MachineError>;
}

/// Whom a trace is about.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    /// A command, started for the trace, and all that it starts.
    Command(&'a Request<'a>),
    /// A process that runs already, and all that it starts.
    Process(i32),
    /// Every thread of the machine.
    Everything,
}

/// A trace to be made.
#[derive(Debug, Clone, Copy)]
pub struct TraceOrder<'a> {
    /// Whom it is about.
    pub subject: Subject<'a>,
    /// How; `None`: the richest tier that is permitted.
    pub tier: Option<Tier>,
    /// For how long at most; a process is then left as it was, a command is
    /// killed as by its time-out. `None`: to the end.
    pub limit: Option<Duration>,
    /// How long events may be held back before the listener gets them: short
    /// for a live view, long to disturb little.
    pub round: Duration,
    /// Are interrupts and softirqs added up, too? Each costs what is traced a little.
    pub interrupts: bool,
    /// May processes that the command leaves running run on? Otherwise they are
    /// ended a moment after it.
    pub leaves_daemons: bool,
}

/// Who listens to a trace.
pub trait Listener {
    /// Events, in the order of time over all CPUs and all calls. A thread's
    /// [`Known`](pinwise_sched::EventKind::Known) or `Fork` comes before its
    /// `Follow`.
    fn events(&mut self, events: &[Event]);

    /// A round is over; `now_ns` is the trace's clock, of the events. Returns
    /// whether the trace goes on; a command is then ended.
    fn round(&mut self, now_ns: u64) -> bool {
        let _ = now_ns;
        true
    }
}

/// What a cgroup's quota on CPU time did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which something ran.
    pub periods: u64,
    /// Of those in which the quota was used up.
    pub times: u64,
    /// Time of CPUs on which threads were held back, all together.
    pub held: Duration,
}

impl Throttling {
    /// That of two cgroups beside each other, which hold back different threads.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            periods: self.periods + other.periods,
            times: self.times + other.times,
            held: self.held + other.held,
        }
    }

    /// That of two cgroups, one within the other. Both hold the same threads back, often at
    /// the same time, and the kernel counts that time in each: the tighter one has it all.
    pub(crate) fn merge_nested(self, other: Self) -> Self {
        Self {
            periods: self.periods.max(other.periods),
            times: self.times.max(other.times),
            held: self.held.max(other.held),
        }
    }
}

/// Where pages of the traced processes were at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PagesSeen {
    /// When, ns of the trace's clock.
    pub time_ns: u64,
    /// Bytes of their pages by NUMA node; what two of them map counts for each.
    pub nodes: BTreeMap<usize, u64>,
    /// Bytes of it in huge pages, transparent and reserved ones.
    pub huge: u64,
}

/// How a trace went.
#[derive(Debug, Clone, PartialEq)]
pub struct Traced {
    /// How it was made.
    pub tier: Tier,
    /// What its events can show; a tier may show less than usual.
    pub scope: Scope,
    /// First and last moment of the trace, ns of the events' clock.
    pub from_ns: u64,
    /// See `from_ns`.
    pub to_ns: u64,
    /// How the command ran, where one was started.
    pub run: Option<Run>,
    /// CPU time that pinwise itself used for collecting.
    pub own_cpu: Duration,
    /// What quotas on CPU time took from whom it is about; `None` where their cgroups
    /// cannot be seen.
    pub throttled: Option<Throttling>,
    /// Where its pages were, in the order of time; empty where nobody looked.
    pub pages: Vec<PagesSeen>,
    /// What interrupts and softirqs took; `None` where nobody asked.
    pub interrupts: Option<InterruptSummary>,
    /// Does the kernel move pages to who uses them? `None` where unknown.
    pub numa_balancing: Option<bool>,
    /// What else should be known of it, as full sentences.
    pub notes: Vec<String>,
}

/// What a tier costs, measured on this machine: a pair of threads that hand a
/// byte to and fro on one CPU, with and without it, in turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TierCost {
    /// Which.
    pub tier: Tier,
    /// CPU time that the traced threads take more per switch, ns; the median
    /// of pairs.
    pub ns_per_switch: f64,
    /// Interval of the median, ns.
    pub low_ns: f64,
    /// See `low_ns`.
    pub high_ns: f64,
    /// Time of an untraced context switch, ns.
    pub untraced_ns: f64,
}
