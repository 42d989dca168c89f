//! The events of a scheduler.
//!
//! Every source (a live tier, an imported file, a simulated machine) produces these events; what
//! analyses them need not know the source.

use super::BlockedIn;
use pinwise_topology::CpuSet;

/// The kernel's id of a thread. [`IDLE`] is not a thread.
pub type Tid = i32;

/// The id of a CPU's idle task.
pub const IDLE: Tid = 0;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// When, ns of the source's clock.
    pub time_ns: u64,
    /// The CPU it happened on; meaningless for threads' names and masks.
    pub cpu: u32,
    /// What happened.
    pub what: EventKind,
}

/// Why a thread left its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveReason {
    /// It waits and must be woken.
    Blocked,
    /// It was preempted and is queued.
    Preempted,
    /// It ended.
    Ended,
    /// The source does not say.
    Unreported,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// The CPU switched from one thread (or [`IDLE`]) to another.
    Switch {
        /// The leaving thread.
        prev: Tid,
        /// How it left.
        left: LeaveReason,
        /// The arriving thread.
        next: Tid,
    },
    /// A thread arrived on the CPU: half a switch, from sources that see only their own threads.
    In {
        /// The arriving thread.
        thread: Tid,
    },
    /// A thread left the CPU: the other half.
    Out {
        /// The leaving thread.
        thread: Tid,
        /// How it left.
        left: LeaveReason,
    },
    /// A thread became runnable and was queued on the CPU `target`.
    Wake {
        /// The thread.
        thread: Tid,
        /// The CPU it was queued on.
        target: u32,
    },
    /// A thread began. A child of a followed thread is followed too.
    Fork {
        /// Its creator.
        parent: Tid,
        /// The new thread.
        child: Tid,
        /// The process it belongs to.
        process: Tid,
    },
    /// A thread ended; its id may be reused.
    Exit {
        /// The thread.
        thread: Tid,
    },
    /// A thread that existed before the trace, or is first seen.
    Known {
        /// The thread.
        thread: Tid,
        /// The process it belongs to.
        process: Tid,
    },
    /// This thread and its descendants are followed from now on.
    Follow {
        /// The thread.
        thread: Tid,
    },
    /// A thread's name (`comm`).
    Name {
        /// The thread.
        thread: Tid,
        /// Up to 15 bytes from the kernel; untrusted when shown.
        name: Box<str>,
    },
    /// The CPUs that a thread may use.
    Mask {
        /// The thread.
        thread: Tid,
        /// Its affinity mask, restricted to its cpuset.
        cpus: Box<CpuSet>,
    },
    /// This many records of this CPU were lost since its last event.
    Lost {
        /// Their number; at least one if the source does not count.
        records: u64,
    },
    /// A poll of a thread.
    Sample(Box<Sample>),
    /// A poll of a CPU's busy time.
    Usage {
        /// Busy time of this CPU so far, ns.
        busy_ns: u64,
    },
}

/// A thread's scheduling class (`sched(7)`), as far as it affects waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulingClass {
    /// `SCHED_OTHER`, `SCHED_BATCH` and others that share the CPU by turns.
    Normal,
    /// The same with this niceness, above 0: it gets a smaller part of the CPU.
    Nice(u8),
    /// `SCHED_IDLE`: every other class goes first.
    Idle,
    /// `SCHED_FIFO` and `SCHED_RR`: the kernel reserves some CPU time for other classes.
    RealTime,
    /// `SCHED_DEADLINE`: it has a budget of CPU time in each period.
    Deadline,
}

/// A poll of a thread (`/proc/PID/task/TID`): figures since the thread's start. Unreadable values
/// are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sample {
    /// The thread.
    pub thread: Tid,
    /// The CPU it last ran on.
    pub cpu: u32,
    /// Was it runnable (running or queued)?
    pub is_runnable: bool,
    /// What it waited for; `None` if it was not blocked, or this was not polled.
    pub blocked_in: Option<BlockedIn>,
    /// Where in the program, if that is known: untrusted when shown.
    pub blocked_at: Option<Box<str>>,
    /// Its scheduling class.
    pub class: Option<SchedulingClass>,
    /// Time on CPUs so far, ns.
    pub run_ns: u64,
    /// Time queued so far, ns.
    pub wait_ns: Option<u64>,
    /// Moves between CPUs so far.
    pub migrations: Option<u64>,
    /// Voluntary switches so far.
    pub voluntary: Option<u64>,
    /// Preemptions so far.
    pub involuntary: Option<u64>,
    /// Its lifetime, ns, if the kernel reported it at the thread's end: the thread may still run
    /// and wait a little.
    pub life_ns: Option<u64>,
    /// No event of the thread follows this poll in the trace.
    pub is_last: bool,
}
