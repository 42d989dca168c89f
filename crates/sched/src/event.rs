//! What a scheduler does, one event at a time.
//!
//! Every source (a live tier, an imported file, a simulated machine) speaks in
//! these events; whoever listens need not know where they came from.

use super::BlockedIn;
use pinwise_topology::CpuSet;

/// The number of a thread, as the kernel numbers it. [`IDLE`] is no thread.
pub type Tid = i32;

/// What a CPU runs while it has nothing to do.
pub const IDLE: Tid = 0;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When, ns of the source's clock.
    pub time_ns: u64,
    /// The CPU it happened on; of no meaning for threads' names and masks.
    pub cpu: u32,
    /// What happened.
    pub what: EventKind,
}

/// How a thread left its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// It waits for something: it must be woken.
    Blocked,
    /// It could go on and was preempted: it is queued.
    Preempted,
    /// It ended.
    Ended,
    /// The source does not say.
    Unreported,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// The CPU went from one thread (or [`IDLE`]) to another.
    Switch {
        /// Who left.
        prev: Tid,
        /// How it left.
        left: Left,
        /// Who came.
        next: Tid,
    },
    /// A thread came on the CPU: half a switch, from sources that see only
    /// their own threads.
    In {
        /// Who came.
        thread: Tid,
    },
    /// A thread left the CPU: the other half.
    Out {
        /// Who left.
        thread: Tid,
        /// How it left.
        left: Left,
    },
    /// A thread became runnable and was queued on the CPU `target`.
    Wake {
        /// Who.
        thread: Tid,
        /// Where it was queued.
        target: u32,
    },
    /// A thread began. A child of a thread that is followed is followed too.
    Fork {
        /// Who made it.
        parent: Tid,
        /// The new thread.
        child: Tid,
        /// The process it belongs to.
        process: Tid,
    },
    /// A thread ended; its number may come again for another one.
    Exit {
        /// Who.
        thread: Tid,
    },
    /// A thread that exists when the trace begins, or is first seen.
    Known {
        /// Who.
        thread: Tid,
        /// The process it belongs to.
        process: Tid,
    },
    /// From now on this thread and all that it starts are what the trace is
    /// about.
    Follow {
        /// Who.
        thread: Tid,
    },
    /// A thread's name (`comm`).
    Name {
        /// Who.
        thread: Tid,
        /// At most 15 bytes in the kernel; hostile input where it is shown.
        name: Box<str>,
    },
    /// The CPUs that a thread may use.
    Mask {
        /// Who.
        thread: Tid,
        /// Its affinity mask, cut down to its cpuset.
        cpus: Box<CpuSet>,
    },
    /// This many records of this CPU were lost between the CPU's last event and
    /// this one.
    Lost {
        /// How many; at least one where the source does not count.
        records: u64,
    },
    /// A thread as it was seen by polling: cumulative figures of its life.
    Sample(Box<Sample>),
    /// CPU time of all CPUs so far, by polling.
    Usage {
        /// Busy time of this CPU so far, ns.
        busy_ns: u64,
    },
}

/// How a thread is scheduled (`sched(7)`), as far as it matters for why it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulingClass {
    /// `SCHED_OTHER`, `SCHED_BATCH` and others that take turns.
    Normal,
    /// `SCHED_IDLE`: whoever is in another class goes first.
    Idle,
    /// `SCHED_FIFO` and `SCHED_RR`: the kernel keeps some CPU time for others.
    RealTime,
    /// `SCHED_DEADLINE`: it has a budget of CPU time in each period.
    Deadline,
}

/// A thread as polling sees it (`/proc/PID/task/TID`). What could not be read
/// is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Who.
    pub thread: Tid,
    /// The CPU it last ran on.
    pub cpu: u32,
    /// Was it runnable (running or queued)?
    pub is_runnable: bool,
    /// What it waited for; `None`: it was not blocked, or nobody asked.
    pub blocked_in: Option<BlockedIn>,
    /// How it is scheduled.
    pub class: Option<SchedulingClass>,
    /// Time on CPUs so far, ns.
    pub run_ns: u64,
    /// Time queued so far, ns.
    pub wait_ns: Option<u64>,
    /// Moves between CPUs so far.
    pub migrations: Option<u64>,
    /// Switches because it waited, so far.
    pub voluntary: Option<u64>,
    /// Switches because it was preempted, so far.
    pub involuntary: Option<u64>,
    /// How long it had lived, where the kernel reported it on its way out: it may run and
    /// wait a little more.
    pub life_ns: Option<u64>,
    /// Nothing of its life in the trace comes after this look.
    pub is_last: bool,
}
