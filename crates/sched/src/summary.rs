//! The result of an analysis. Times are in ns; values that the source does not report are `None`.

use super::other_programs::OtherProgram;
use super::{BlockedProcess, LeaveReason, Migrations, Tid};
use pinwise_topology::CpuSet;

/// An analysed trace. Unless stated otherwise, figures are those of the followed threads.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// First moment.
    pub from_ns: u64,
    /// Last moment.
    pub to_ns: u64,
    /// Number of events.
    pub events: u64,
    /// Number of followed threads.
    pub threads: u64,
    /// Number of their processes.
    pub processes: u64,
    /// Of those, processes that were started during the trace.
    pub started_processes: u64,
    /// Times a thread left its CPU.
    pub switches: Option<u64>,
    /// Of those, preemptions.
    pub preemptions: Option<u64>,
    /// Times a thread became runnable.
    pub wakeups: Option<u64>,
    /// Moves between CPUs.
    pub migrations: Migrations,
    /// Sum of the threads' lifetimes, without idle threads: they do not influence the trace.
    pub life_ns: u64,
    /// Divisor of [`ThreadSummary::is_idle`]; `u64::MAX` if no thread was idle.
    pub idle_divisor: u64,
    /// Time on CPUs.
    pub cpu_ns: u64,
    /// Time with two or more threads on CPUs at once; `None` if the source does not see switches.
    pub parallel_ns: Option<u64>,
    /// CPU time of all other threads.
    pub foreign_ns: Option<u64>,
    /// Idle time of all CPUs together.
    pub idle_ns: Option<u64>,
    /// Switches of all CPUs.
    pub all_switches: Option<u64>,
    /// Time in run queues.
    pub waits: Waits,
    /// CPU time while an SMT sibling was busy; `None` without SMT or switches.
    pub sharing: Option<Sharing>,
    /// Other programs that ran where followed threads were queued; empty if not all CPUs are seen.
    pub other_programs: Vec<OtherProgram>,
    /// Time queued while CPUs idled, in episodes of [`EPISODE_NS`] and more.
    pub idle_waiting: Option<IdleWaiting>,
    /// What threads were blocked in, the most often blocked process first; empty if not polled.
    pub blocked: Vec<BlockedProcess>,
    /// What the trace does not show.
    pub unknown: Unknown,
    /// Threads, the busiest first.
    pub by_thread: Vec<ThreadSummary>,
    /// Threads left out of `by_thread`.
    pub threads_left_out: u64,
    /// Each CPU with events.
    pub by_cpu: Vec<CpuSummary>,
    /// Each core of the machine that has several CPUs or was used.
    pub by_core: Vec<CoreSummary>,
    /// Which threads ran where and when.
    pub timeline: Timeline,
}

/// Time from which queuing while a CPU idles counts as an episode. Shorter times are normal for
/// wake-ups and load balancing (the wasted cores of Lozi et al. 2016 lasted 100 ms and more).
pub const EPISODE_NS: u64 = 1_000_000;

/// Time in run queues.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Waits {
    /// The sum of all waits.
    pub total_ns: Option<u64>,
    /// Is `total_ns` the kernel's own total, instead of the sum of known waits?
    pub is_from_kernel: bool,
    /// `total_ns` is a lower bound: ends of threads or of waits were not seen.
    pub is_lower_bound: bool,
    /// After a preemption.
    pub after_preemption_ns: Option<u64>,
    /// After being woken.
    pub after_wakeup_ns: Option<u64>,
    /// Finished waits.
    pub count: Option<u64>,
    /// Median.
    pub p50_ns: Option<u64>,
    /// 99th percentile.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub longest_ns: Option<u64>,
    /// CPU time of others where followed threads were queued; 0 if not all CPUs are seen.
    pub occupied_cpu_ns: u64,
    /// Why they waited; sums to `total_ns`.
    pub causes: Option<WaitCauseTotals>,
}

/// Why threads waited, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitCauseTotals {
    /// Another CPU that the thread may use idled; one thread for each CPU.
    pub scheduler: u64,
    /// Only CPUs idled that its mask forbids.
    pub mask: u64,
    /// No CPU idled for it; another program's thread ran where it was queued.
    pub others: u64,
    /// No CPU idled for it; a followed thread ran where it was queued.
    pub own: u64,
    /// Its CPU was idle and about to start it.
    pub starting: u64,
    /// The budget of `SCHED_DEADLINE`, the limit of real-time classes, the rank of `SCHED_IDLE`.
    pub class: u64,
}

/// CPU time of followed threads while an SMT sibling was busy, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sharing {
    /// All of it.
    pub shared: u64,
    /// The part during which a core idled for each shared one; `None`: `shared` is a lower bound.
    pub avoidable: Option<AvoidableTotals>,
}

/// Avoidable sharing by cause, ns of CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AvoidableTotals {
    /// The idle core was in the threads' mask.
    pub scheduler: u64,
    /// The idle core was forbidden by the threads' mask.
    pub mask: u64,
    /// The sibling ran another program's thread.
    pub others: u64,
}

impl AvoidableTotals {
    /// The sum of all causes.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.scheduler + self.mask + self.others
    }
}

/// Time queued while CPUs idled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IdleWaiting {
    /// Episodes in which an allowed CPU idled, ns.
    pub scheduler: u64,
    /// Episodes in which only forbidden CPUs idled, ns.
    pub mask: u64,
    /// Number of episodes.
    pub episodes: u64,
    /// The longest, ns.
    pub longest: u64,
}

/// What a trace does not show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Records lost.
    pub records: u64,
    /// Intervals on a CPU in which records were lost.
    pub windows: u64,
    /// Sum of these intervals, ns.
    pub lost_ns: u64,
    /// Events earlier than their predecessor.
    pub backwards: u64,
    /// Events that contradict the known state.
    pub contradictions: u64,
    /// Online CPUs without a single event, if all CPUs are seen: whether they idled is unknown.
    pub silent_cpus: u64,
    /// CPUs whose idle task's events are missing: threads left them that had never arrived.
    pub idle_task_unseen: Vec<u32>,
    /// Threads whose events lack more than 3 % of the CPU time counted by the kernel.
    pub hidden_threads: u64,
    /// Of those, threads whose switches the kernel did not report, either.
    pub hidden_uncounted: u64,
    /// Ended threads: events may lack their last part.
    pub ended_threads: u64,
    /// CPU time of the hidden threads that events lack, ns.
    pub hidden_cpu_ns: u64,
    /// CPU time by which events exceed the kernel's count for threads from before the trace, ns:
    /// they ran before their first poll, or the event of their leaving a CPU is missing.
    pub doubtful_cpu_ns: u64,
}

/// A thread.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadSummary {
    /// Its number.
    pub thread: Tid,
    /// Its process.
    pub process: Option<Tid>,
    /// Its name.
    pub name: String,
    /// Time from its start, or its first event, to its end, or the end of the trace.
    pub life_ns: u64,
    /// Time on CPUs.
    pub cpu_ns: u64,
    /// Time queued.
    pub wait_ns: Option<u64>,
    /// `wait_ns` is a lower bound: the thread ended before it was polled.
    pub is_wait_lower_bound: bool,
    /// Times it left its CPU.
    pub switches: Option<u64>,
    /// Of those, preemptions.
    pub preemptions: Option<u64>,
    /// Moves between CPUs.
    pub migrations: Migrations,
    /// CPU time while an SMT sibling was busy.
    pub shared_ns: Option<u64>,
    /// CPUs and the time on them, the longest first.
    pub cpus: Vec<(u32, u64)>,
    /// The CPUs that it could use, as last reported.
    pub allowed: Option<CpuSet>,
    /// Its niceness, as last polled, if that is above 0.
    pub nice: Option<u8>,
    /// Who woke it.
    pub wakers: Wakers,
}

impl ThreadSummary {
    /// Was it awake for less than one part in this many of its life?
    #[must_use]
    pub fn is_idle(&self, divisor: u64) -> bool {
        self.awake_ns() < self.life_ns / divisor
    }

    /// Time on CPUs and queued.
    #[must_use]
    pub fn awake_ns(&self) -> u64 {
        self.cpu_ns.saturating_add(self.wait_ns.unwrap_or(0))
    }

    /// The time in which it was blocked.
    #[must_use]
    pub fn blocked_ns(&self) -> u64 {
        self.life_ns.saturating_sub(self.awake_ns())
    }

    /// Adds later figures of the same thread.
    pub(super) fn merge(&mut self, later: Self) {
        let sum =
            |a: &mut Option<u64>, b: Option<u64>| *a = b.map_or(*a, |b| Some(b + a.unwrap_or(0)));
        self.life_ns += later.life_ns;
        self.cpu_ns += later.cpu_ns;
        self.wakers.merge(later.wakers);
        sum(&mut self.wait_ns, later.wait_ns);
        self.is_wait_lower_bound |= later.is_wait_lower_bound;
        sum(&mut self.switches, later.switches);
        sum(&mut self.preemptions, later.preemptions);
        sum(&mut self.shared_ns, later.shared_ns);
        self.migrations.merge(&later.migrations);
        for (cpu, ns) in later.cpus {
            match self.cpus.iter_mut().find(|(other, _)| *other == cpu) {
                Some((_, sum)) => *sum += ns,
                None => self.cpus.push((cpu, ns)),
            }
        }
        self.cpus.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        self.process = self.process.or(later.process);
        if self.name.is_empty() {
            self.name = later.name;
        }
        self.allowed = later.allowed.or(self.allowed.take());
        self.nice = later.nice.or(self.nice);
    }
}

/// Who woke a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wakers {
    /// Times it was woken.
    pub wakes: u64,
    /// Threads of its process that ran on the CPU it was woken from, and at least how often.
    /// Threads of other processes are left out: timers and other interrupts wake threads, too,
    /// whatever runs.
    pub threads: Vec<(Tid, u64)>,
}

impl Wakers {
    /// Limits the wakers that are kept of a thread.
    const MAX_KEPT: usize = 8;

    /// Adds a wake-up by a thread, if it is known. Of many wakers those are kept that wake it most
    /// often (Misra and Gries 1982).
    pub(super) fn add(&mut self, by: Option<Tid>) {
        self.wakes += 1;
        let Some(by) = by else { return };
        if !self.add_times(by, 1) {
            self.threads.iter_mut().for_each(|(_, times)| *times -= 1);
            self.threads.retain(|(_, times)| *times > 0);
        }
    }

    fn merge(&mut self, later: Self) {
        self.wakes += later.wakes;
        for (waker, times) in later.threads {
            self.add_times(waker, times);
        }
    }

    /// Returns false if the waker is new and the list is full.
    fn add_times(&mut self, waker: Tid, times: u64) -> bool {
        if let Some((_, sum)) = self.threads.iter_mut().find(|(known, _)| *known == waker) {
            *sum += times;
            return true;
        }
        let has_room = self.threads.len() < Self::MAX_KEPT;
        if has_room {
            self.threads.push((waker, times));
        }
        has_room
    }
}

/// A CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuSummary {
    /// Its number.
    pub cpu: u32,
    /// Time with followed threads.
    pub own_ns: u64,
    /// Time with other threads.
    pub foreign_ns: Option<u64>,
    /// Idle time.
    pub idle_ns: Option<u64>,
    /// Switches on it.
    pub switches: Option<u64>,
}

/// A core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreSummary {
    /// Its index among the machine's cores.
    pub core: usize,
    /// CPU time of followed threads.
    pub own_ns: u64,
    /// Time with at least one busy CPU.
    pub busy_ns: Option<u64>,
    /// Time with two or more.
    pub shared_ns: Option<u64>,
}

/// Which threads ran where and when.
#[derive(Debug, Clone, PartialEq)]
pub struct Timeline {
    /// All slices of followed threads; `None` if there were more than [`MAX_PACKED`].
    pub packed: Option<PackedSlices>,
    /// The longest waits; `None` if the source does not see switches.
    pub waits: Option<WaitSpans>,
    /// When threads shared cores needlessly; `None` if unknown.
    pub sharing: Option<SharingSpans>,
    /// Length of a bucket: the trace is divided into intervals of this length.
    pub bucket_ns: u64,
    /// The busy time in each bucket, by CPU.
    pub buckets: Vec<CpuBuckets>,
}

/// Limits the slices; each needs about 7 bytes.
pub const MAX_PACKED: usize = 2_000_000;

/// Shorter waits are not kept individually.
pub const SHORTEST_WAIT_NS: u64 = 10_000;

/// Slices in few bytes. Each slice of a CPU, in time order, has three numbers in the encoding of
/// [`super::put_varints`]: ns since the CPU's last slice ended (for the first, since the trace
/// began), its length in ns, and its thread's index in `threads` times 4 plus why it ended, as
/// [`LeaveReason`] is numbered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackedSlices {
    /// Threads in the order in which they first ran; a reused id is there once for each.
    pub threads: Vec<Tid>,
    /// The CPUs that any of them ran on.
    pub cpus: Vec<CpuSlices>,
}

/// Slices of a CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuSlices {
    /// The CPU.
    pub cpu: u32,
    /// The number of slices.
    pub count: u64,
    /// The slices in their encoding.
    pub bytes: Vec<u8>,
}

/// The longest waits, ordered by their beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitSpans {
    /// The longest waits.
    pub waits: Vec<Wait>,
    /// The shorter waits.
    pub left_out: LeftOut,
}

/// Spans that are not kept individually.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Their number.
    pub count: u64,
    /// Their sum.
    pub ns: u64,
}

/// A thread in a run queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The thread.
    pub thread: Tid,
    /// Its last CPU.
    pub cpu: u32,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// The main cause.
    pub cause: WaitCause,
}

/// Why a thread waited, as in [`WaitCauseTotals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitCause {
    /// Another CPU that it may use idled.
    Scheduler,
    /// Only CPUs idled that its mask forbids.
    Mask,
    /// Another program's thread ran where it was queued.
    Others,
    /// A followed thread ran where it was queued.
    Own,
    /// The CPU was about to start it.
    Starting,
    /// Its scheduling class held it back.
    Class,
    /// The source does not say.
    Unreported,
}

/// When threads shared cores needlessly, in time order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharingSpans {
    /// The longest spans.
    pub spans: Vec<SharingSpan>,
    /// The shorter spans; their sum counts each thread.
    pub left_out: LeftOut,
}

/// A time in which threads shared a core needlessly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharingSpan {
    /// The core's index among the machine's.
    pub core: usize,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Followed threads that could have run alone.
    pub threads: u32,
    /// The cause.
    pub cause: SharingCause,
}

/// The cause of avoidable sharing, as in [`AvoidableTotals`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharingCause {
    /// The idle core was allowed.
    Scheduler,
    /// It was forbidden.
    Mask,
    /// The sibling ran another program's thread.
    Others,
}

/// A thread on a CPU from one switch to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slice {
    /// The thread.
    pub thread: Tid,
    /// The CPU.
    pub cpu: u32,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Why the thread left the CPU.
    pub ended_by: LeaveReason,
}

/// Time of a CPU in each bucket, ns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuBuckets {
    /// The CPU.
    pub cpu: u32,
    /// Time with followed threads.
    pub own_ns: Vec<u64>,
    /// Time with other threads.
    pub foreign_ns: Vec<u64>,
}
