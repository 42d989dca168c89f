//! The interface for jitter: threads that only read the clock show how long they were interrupted,
//! and by what.

use std::time::Duration;

use super::{Host, MachineError};
use pinwise_sched::Refusal;
use pinwise_sched::jitter::ExplainedGap;
use pinwise_topology::CpuSet;

/// A machine that can be watched for jitter.
pub trait GapWatcher: Host {
    /// Measures how long threads that only read the clock are interrupted, and by what.
    ///
    /// # Errors
    /// [`MachineError`] if threads cannot be started or placed, a CPU does not run its thread, or
    /// code is not executed (a simulated machine). A user who interrupts ends it without an error:
    /// see [`WatchedCpus::was_interrupted`].
    fn watch_gaps(
        &mut self,
        order: &JitterOrder<'_>,
        listener: &mut dyn GapListener,
    ) -> Result<WatchedCpus, MachineError>;
}

/// The request to watch CPUs.
#[derive(Debug, Clone, Copy)]
pub struct JitterOrder<'a> {
    /// The CPUs, all at the same time.
    pub cpus: &'a CpuSet,
    /// How long to watch.
    pub time: Duration,
    /// A longer time between two readings of the clock is a gap.
    pub threshold: Duration,
}

/// Receives gaps as they are found.
pub trait GapListener {
    /// Gaps of a CPU, in order.
    fn take(&mut self, cpu: usize, gaps: &[ExplainedGap]);
}

/// The result of watching.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WatchedCpus {
    /// Each CPU, in order.
    pub cpus: Vec<WatchedCpu>,
    /// Start of the first thread, ns of the gaps' clock.
    pub from_ns: u64,
    /// Why the kernel does not report causes; `None` if it does.
    pub unreported: Option<Refusal>,
    /// Did the user interrupt it?
    pub was_interrupted: bool,
    /// Further notes, as full sentences.
    pub notes: Vec<String>,
}

/// A watched CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchedCpu {
    /// The CPU.
    pub cpu: usize,
    /// Time from its first reading of the clock to its last.
    pub time: Duration,
    /// Readings of the clock.
    pub readings: u64,
    /// The usual time to enter and leave the kernel; `None` if the kernel reported too few gaps.
    pub entry: Option<Duration>,
    /// Gaps that the full buffer could not take: only their number is known.
    pub lost_gaps: u64,
    /// How long the thread was queued behind others; `None` if unknown.
    pub queued: Option<Duration>,
    /// Time the hypervisor gave to others, in steps of a tick; `None` if unknown.
    pub steal: Option<Duration>,
    /// Interrupts that the system counted during the measurement.
    pub interrupts: Vec<SystemCounter>,
    /// Softirqs that it counted.
    pub softirqs: Vec<SystemCounter>,
}

/// A counter of the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemCounter {
    /// The number of an interrupt, or letters such as `LOC`.
    pub label: String,
    /// What it counts, as the system describes it.
    pub name: String,
    /// Its count.
    pub count: u64,
}

/// How a system is configured to keep CPUs free of interrupts and other threads. Sets of CPUs that
/// are kept free are empty if there are none; `kernel_threads`, `irq_default` and `irq_cpus` are
/// the settings now in force, empty or `None` if they cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Isolation {
    /// CPUs on which the scheduler balances nothing (`isolcpus`).
    pub isolated: CpuSet,
    /// CPUs without a tick while they run one thread (`nohz_full`).
    pub nohz_full: CpuSet,
    /// CPUs whose RCU callbacks other CPUs run (`rcu_nocbs`).
    pub rcu_nocbs: CpuSet,
    /// CPUs on which kernel threads and workers that belong to no CPU may run.
    pub kernel_threads: CpuSet,
    /// Are interrupts that the kernel places itself kept off isolated CPUs?
    pub has_managed_irq: bool,
    /// CPUs that interrupts may use by default (`irqaffinity`).
    pub irq_default: Option<CpuSet>,
    /// CPUs that may take each interrupt, by its number.
    pub irq_cpus: Vec<(u32, CpuSet)>,
}
