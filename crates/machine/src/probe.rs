//! Probes: measurements of the machine itself.
//!
//! A probe is requested in batches; each batch gives one figure. `study::probe` turns figures into
//! a result (median, interval, when to stop): a machine only measures, and says which batches it
//! had to discard.

use std::time::Duration;

use super::{Host, MachineError};
pub use pinwise_kernels::loops::stream::Stream;
use pinwise_topology::CpuSet;

/// A machine that can measure itself by probes.
pub trait Prober: Host {
    /// Makes these probes, all at the same time, until each has this many undisturbed batches or
    /// `limit` has passed. They must not share a CPU. The result has one entry per probe, in order.
    ///
    /// # Errors
    /// [`MachineError`] if threads cannot be started or placed, or the user interrupted. A probe
    /// that this machine cannot make is not an error: see [`Batches::unavailable`].
    fn probe(
        &mut self,
        probes: &[Probe],
        batches: usize,
        limit: Duration,
    ) -> Result<Vec<Batches>, MachineError>;
}

/// What two CPUs compete for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    /// A spin loop, as MCTOP's SMT test (Chatzopoulos et al. 2017).
    Spin,
    /// Integer arithmetic, with as much parallelism as a core allows.
    Integer,
    /// Floating-point multiply-adds, likewise.
    Float,
}

/// An instruction that says "I am waiting", other than the one that spin loops use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hint {
    /// arm64's YIELD.
    Yield,
    /// TPAUSE until a moment that has passed.
    TimedPause,
    /// UMONITOR and UMWAIT until a moment that has passed.
    MonitoredWait,
}

impl Hint {
    /// All variants.
    pub const ALL: [Self; 3] = [Self::Yield, Self::TimedPause, Self::MonitoredWait];

    /// The word used in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Yield => "YIELD",
            Self::TimedPause => "TPAUSE",
            Self::MonitoredWait => "UMWAIT",
        }
    }
}

/// A thing to measure; each variant names the unit of its figures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Probe {
    /// One-way time of a cache line between two CPUs that compare-and-swap it
    /// in turn: half a round trip, ns.
    Transfer {
        /// One CPU.
        a: usize,
        /// The other CPU.
        b: usize,
        /// NUMA node of the line's memory; `None`: wherever the first CPU's allocation falls.
        home: Option<usize>,
    },
    /// Time of some work on one CPU while the other CPU does the same, divided by its time alone:
    /// the larger ratio of the two CPUs.
    Contention {
        /// One CPU.
        a: usize,
        /// The other CPU.
        b: usize,
        /// What they compete for.
        port: Port,
    },
    /// One PAUSE (YIELD or ISB on arm64, as in spin loops there), ns.
    Pause {
        /// Where it runs.
        cpu: usize,
    },
    /// As `Pause`, in core cycles, calibrated within the batch.
    PauseCycles {
        /// Where it runs.
        cpu: usize,
    },
    /// As `Pause`, in core cycles that the CPU's own counter counts.
    PauseCounted {
        /// Where it runs.
        cpu: usize,
    },
    /// Another hint, at its minimum cost, ns.
    Hint {
        /// Where it runs.
        cpu: usize,
        /// The hint.
        hint: Hint,
    },
    /// One core cycle, ns: a chain of dependent additions.
    Cycle {
        /// Where it runs.
        cpu: usize,
    },
    /// One tick of the CPU's time-stamp counter, ns.
    Tick {
        /// Where it runs.
        cpu: usize,
    },
    /// The smallest step of the clock that times probes, ns.
    TimerStep {
        /// Where it runs.
        cpu: usize,
    },
    /// One load of a chain of dependent loads through this many bytes, which visits each cache line
    /// once in random order, ns.
    Chase {
        /// Where it runs.
        cpu: usize,
        /// Size of the working set.
        bytes: usize,
        /// NUMA node of the memory; `None` for the default policy.
        node: Option<usize>,
    },
    /// Bandwidth of all these CPUs together, 1e9 bytes per second, counted as in STREAM: bytes
    /// named by the program, without write-allocate.
    Bandwidth {
        /// One thread on each.
        cpus: CpuSet,
        /// The access pattern.
        stream: Stream,
        /// Bytes of each array of each thread.
        bytes: usize,
        /// NUMA node of the memory; `None`: each thread's own.
        node: Option<usize>,
    },
    /// As [`Probe::Chase`], while `loaders` read memory; their bandwidth goes to
    /// [`Batches::background`].
    LoadedLatency {
        /// Where the chain runs.
        cpu: usize,
        /// The CPUs that load the memory; must not hold `cpu`.
        loaders: CpuSet,
        /// Size of the chain's working set.
        bytes: usize,
    },
    /// A switch from one thread to another on one CPU, ns: half a round trip
    /// through futexes.
    ContextSwitch {
        /// Where it runs.
        cpu: usize,
    },
    /// From `FUTEX_WAKE` on one CPU until the woken thread runs on the other, ns; if both are the
    /// same CPU, until the kernel has switched to it.
    FutexWake {
        /// The CPU of the waking thread.
        waker: usize,
        /// The CPU of the sleeping thread.
        sleeper: usize,
    },
}

impl Probe {
    /// The CPUs of its threads.
    #[must_use]
    pub fn cpus(&self) -> Vec<usize> {
        match self {
            Self::Transfer { a, b, .. } | Self::Contention { a, b, .. } => vec![*a, *b],
            Self::FutexWake { waker, sleeper } => vec![*waker, *sleeper],
            Self::Bandwidth { cpus, .. } => cpus.iter().collect(),
            Self::LoadedLatency { cpu, loaders, .. } => {
                std::iter::once(*cpu).chain(loaders.iter()).collect()
            }
            Self::Pause { cpu }
            | Self::PauseCycles { cpu }
            | Self::PauseCounted { cpu }
            | Self::Hint { cpu, .. }
            | Self::Cycle { cpu }
            | Self::Tick { cpu }
            | Self::TimerStep { cpu }
            | Self::Chase { cpu, .. }
            | Self::ContextSwitch { cpu } => vec![*cpu],
        }
    }

    /// The NUMA node requested for its memory.
    #[must_use]
    pub const fn node(&self) -> Option<usize> {
        match self {
            Self::Transfer { home: node, .. }
            | Self::Chase { node, .. }
            | Self::Bandwidth { node, .. } => *node,
            _ => None,
        }
    }
}

/// The result of a probe.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batches {
    /// One figure per batch, in time order, without discarded batches.
    pub values: Vec<f64>,
    /// For [`Probe::LoadedLatency`], the loaders' bandwidth during each batch, 1e9 bytes per
    /// second; empty otherwise.
    pub background: Vec<f64>,
    /// Batches discarded because a thread was preempted.
    pub switched: usize,
    /// Batches discarded because the hypervisor gave the CPU to others.
    pub stolen: usize,
    /// Did every thread run where it was pinned, according to `getcpu` after every batch? Some
    /// systems ignore affinity.
    pub was_in_place: bool,
    /// Why the probe cannot be made here, as a full sentence.
    pub unavailable: Option<String>,
}

impl Batches {
    /// The result of a probe that this machine cannot make.
    #[must_use]
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self {
            unavailable: Some(reason.into()),
            was_in_place: true,
            ..Self::default()
        }
    }
}
