//! The interface to the host: one trait for each kind of thing that a machine can do.
//!
//! [`Host`] discovers a machine and has its clock. A [`CommandRunner`] runs commands on given CPUs,
//! a [`Prober`] measures the machine itself, a [`Tracer`] and a [`Sampler`] watch what runs, a
//! [`Replayer`] executes ways of waiting for a lock, a [`GapWatcher`] looks for jitter. Callers
//! take the smallest trait that they need; [`Machine`] joins them for the command line, which opens
//! one object for all.
//!
//! Everything above runs on a real Linux host ([`linux`]) and on a simulated machine
//! (`pinwise-sim`) alike; the method is tested on known truth through the same code that users run.
//! A running service ([`linux::live`]) is a [`CommandRunner`] only, whose runs are samples of it.
//!
//! ```no_run
//! use pinwise_machine::linux::{CycleCounting, LinuxMachine};
//! use pinwise_machine::{CommandRunner, Host, MachineError, Request};
//! use pinwise_workload::{Command, Counts, Workload};
//!
//! let mut machine = LinuxMachine::open(CycleCounting::IfCheap)?;
//! let (topology, _) = machine.topology()?;
//! let workload = Workload::new(Command::from_line("make -j4").expect("a command"));
//! let run = machine.run(&Request::new(&workload, &topology.allowed))?;
//! println!("{:?}, by CPU time {:?}", run.wall, run.user);
//! # Ok::<(), MachineError>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

mod busy;
pub mod jitter;
pub mod linux;
pub mod probe;
pub mod processes;
pub mod replay;
pub mod sample;
mod setting;
pub mod trace;

use std::path::PathBuf;
use std::time::Duration;

pub use busy::BusyThreads;
pub use jitter::{GapListener, GapWatcher, Isolation, JitterOrder, WatchedCpu, WatchedCpus};
pub use probe::{Batches, Hint, Port, Probe, Prober, Stream};
pub use replay::{
    ContendOrder, Contender, ContentionResult, HandOver, HandOverOrder, HandOverResult, HintKind,
    HintSummary, Replayer, Waiter,
};
pub use sample::{CountedTime, SampleOrder, Sampler, SamplingResult};
pub use setting::{Companion, FigureSource, OwnGroup, RunSetting};
pub use trace::{
    CpuQuota, Listener, MemoryLimit, PagesSeen, Subject, Throttling, TierCost, TraceOrder,
    TraceResult, Tracer,
};

use pinwise_placement::{Kind, MemoryBinding, Realised};
use pinwise_topology::{CpuSet, Topology, Warning};
use pinwise_workload::{Command, Counts, Workload};

/// A machine that can be inspected, and its clock.
pub trait Host {
    /// `local`, or the text after `sim:`.
    fn label(&self) -> String;

    /// The simulation's own interface; `None` on a real machine.
    fn simulation(&self) -> Option<&dyn Simulation> {
        None
    }

    /// Is every figure simulated?
    fn is_simulated(&self) -> bool {
        self.simulation().is_some()
    }

    /// The machine as its system reports it, with warnings.
    ///
    /// # Errors
    /// [`MachineError`] if not even the CPUs can be found.
    fn topology(&mut self) -> Result<(Topology, Vec<Warning>), MachineError>;

    /// Time since some fixed moment; only differences are meaningful.
    fn now(&self) -> Duration;

    /// Identifies the file of a workload's command by a word that is equal for equal contents;
    /// `None` if unknown, as on a simulated machine.
    fn program(&self, _workload: &Workload) -> Option<String> {
        None
    }

    /// CPU time used on the whole machine so far; `None` if unknown.
    fn usage(&mut self) -> Option<Usage>;

    /// Processes that use CPUs right now, the busiest first, from two samples a moment apart;
    /// empty if unknown.
    fn busiest(&mut self) -> Vec<BusyProcess> {
        Vec::new()
    }

    /// Waits for this long.
    ///
    /// # Errors
    /// [`MachineError::Interrupted`] if the user interrupts.
    fn wait(&mut self, time: Duration) -> Result<(), MachineError>;
}

/// A simulated machine with known true costs.
pub trait Simulation {
    /// The mean cost of a run without noise, over all that its scheduler may do, s of wall-clock
    /// time; `None` if it always fails. Asking does not change later runs.
    fn true_cost(&self, request: &Request<'_>) -> Option<f64>;
}

/// A machine that runs commands.
pub trait CommandRunner: Host {
    /// Runs a command to its end, on the CPUs of the request.
    ///
    /// # Errors
    /// [`MachineError`] if the run could not be started or was interrupted. A command that fails is
    /// not an error here: see [`Run::end`].
    fn run(&mut self, request: &Request<'_>) -> Result<Run, MachineError>;

    /// Runs a preparation or clean-up command, unplaced and unmeasured.
    ///
    /// # Errors
    /// [`MachineError`] if it could not be started, was interrupted, or failed.
    fn run_helper(&mut self, role: &'static str, command: &Command) -> Result<(), MachineError>;
}

/// The machine that the command line opens: the host, or a simulated machine, which refuses what
/// requires executing code.
pub trait Machine: Prober + Tracer + Sampler + Replayer + GapWatcher {}

impl<M: Prober + Tracer + Sampler + Replayer + GapWatcher> Machine for M {}

/// The destination of the command's output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Output {
    /// Standard output is discarded; the end of standard error is kept for error messages.
    #[default]
    Discard,
    /// Both are kept in memory (bounded), to read a metric from.
    Keep,
    /// Both go to files `STEM.stdout` and `STEM.stderr`.
    Files(PathBuf),
    /// Both go to pinwise's own.
    Inherit,
}

/// A run that a machine should make.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The affinity mask that all threads start with.
    pub cpus: &'a CpuSet,
    /// Memory policy.
    pub memory: Option<&'a MemoryBinding>,
    /// The destination of the output.
    pub output: Output,
    /// Bytes by which the environment is padded: its size moves the stack and
    /// with it alignments (Mytkowicz et al. 2009), so every run of every arm
    /// draws another one from the same distribution.
    pub environment_padding: usize,
    /// Sample the number of threads often (costs the run a little).
    pub count_threads_closely: bool,
    /// One CPU for each thread, in creation order, round robin; `None`: all threads share the mask.
    pub bound: Option<&'a Binding>,
    /// Settings in force only while it runs.
    pub settings: &'a [RunSetting],
}

impl<'a> Request<'a> {
    /// A run on these CPUs that discards its output and has no further options.
    #[must_use]
    pub const fn new(workload: &'a Workload, cpus: &'a CpuSet) -> Self {
        Self {
            workload,
            cpus,
            memory: None,
            output: Output::Discard,
            environment_padding: 0,
            count_threads_closely: false,
            bound: None,
            settings: &[],
        }
    }
}

/// How the threads of a command are bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The CPU of each thread, in creation order, round robin. Never empty.
    pub order: Vec<usize>,
    /// Time after the start at which binding stops: later threads are not bound. `None`: all are.
    pub settle: Option<Duration>,
}

impl Binding {
    /// The binding of a placement; `None` if the placement only restricts threads to its CPUs.
    #[must_use]
    pub fn for_place(place: &Realised, settle: Option<Duration>) -> Option<Self> {
        (place.placement.kind == Kind::Bound).then(|| Self {
            order: place.order.clone(),
            settle,
        })
    }
}

/// How much of the CPU time of bound threads was used on the CPUs they were bound to. Threads that
/// moved themselves count as moved from their start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Bound threads that were seen until their end, or until binding ended.
    pub threads: u64,
    /// Of these, threads whose mask had changed by then.
    pub moved: u64,
    /// CPU time of all bound threads.
    pub cpu: Duration,
    /// CPU time of threads that had not moved.
    pub where_bound: Duration,
    /// The first few programs whose threads had moved.
    pub movers: Vec<Mover>,
}

/// A program that places its own threads.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mover {
    /// Name of its executable file.
    pub program: String,
    /// The setting by which it does so, if known.
    pub knob: Option<String>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// With this exit status.
    Status(i32),
    /// By a signal.
    Signal(i32),
    /// It took longer than its time-out and was killed.
    TimedOut,
    /// The user interrupted a trace or a profile of it, and it was killed.
    Interrupted,
    /// Its main process ended and left others running, which were killed; their names.
    LeftBehind(Vec<String>),
    /// A running service could not be measured; the reason as text.
    NoFigure(String),
}

impl Default for End {
    fn default() -> Self {
        Self::Status(0)
    }
}

/// The result and cost of a run. Unmeasured values are `None`, never 0.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// Wall-clock time until the last process of the tree ended.
    pub wall: Duration,
    /// CPU time in user mode of the whole tree.
    pub user: Option<Duration>,
    /// CPU time in the kernel of the whole tree.
    pub system: Option<Duration>,
    /// Largest resident set of any process of the tree, bytes.
    pub max_rss_bytes: Option<u64>,
    /// Page faults served without I/O.
    pub minor_faults: Option<u64>,
    /// Page faults that waited for I/O.
    pub major_faults: Option<u64>,
    /// Context switches because the program waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches because it was preempted.
    pub involuntary_switches: Option<u64>,
    /// Events that the kernel counted.
    pub counts: Counts,
    /// Largest number of threads seen at once, over the whole tree.
    pub threads: Option<u32>,
    /// As `threads`, but without threads that hardly ran, such as one that waits for the others.
    pub threads_at_work: Option<u32>,
    /// Time the threads of the whole tree were ready but had no CPU; `None` if the kernel does not
    /// keep it, or too many threads ended unseen.
    pub queued: Option<Duration>,
    /// The mask that the kernel granted.
    pub granted: CpuSet,
    /// How much ran where it was bound; `None` if no threads were bound.
    pub coverage: Option<Coverage>,
    /// CPU time of all other processes during the run.
    pub foreign_cpu: Option<Duration>,
    /// CPU time that the hypervisor gave to other virtual machines during the run.
    pub steal: Option<Duration>,
    /// What the cgroup's limit on CPU time held back during the run.
    pub throttled: Option<Throttling>,
    /// The active `sched_ext` scheduler, if any.
    pub sched_ext: Option<String>,
    /// Processes that the command left running and that still run.
    pub left_running: Vec<String>,
    /// How it ended.
    pub end: End,
    /// Standard output and standard error, if kept.
    pub output: Option<Vec<u8>>,
    /// The end of standard error.
    pub stderr_tail: Vec<u8>,
    /// What a companion printed from the start of the run to its own end, if kept.
    pub companion_output: Option<Vec<u8>>,
}

impl Run {
    /// A run of which only time and end are known.
    #[must_use]
    pub fn ended(wall: Duration, end: End) -> Self {
        Self {
            wall,
            end,
            ..Self::default()
        }
    }
}

/// A process and the CPUs that it keeps busy.
#[derive(Debug, Clone, PartialEq)]
pub struct BusyProcess {
    /// Its number.
    pub process: i32,
    /// Its name.
    pub name: String,
    /// CPU time divided by elapsed time.
    pub cpus: f64,
}

/// Cumulative CPU time of the whole machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    /// When it was read, by [`Host::now`].
    pub at: Duration,
    /// Busy time per CPU: (CPU, time).
    pub busy: Vec<(usize, Duration)>,
    /// Time that the hypervisor gave to other virtual machines, over all CPUs.
    pub steal: Duration,
}

/// Why a machine could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The program does not exist.
    #[error("{program}: no such program{}", parenthesise(.hint.as_deref()))]
    NotFound {
        /// As the user wrote it.
        program: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The program exists but cannot be executed.
    #[error("{program}: cannot be executed: {reason}")]
    NotExecutable {
        /// As the user wrote it.
        program: String,
        /// The system's error.
        reason: String,
    },
    /// The file for standard input cannot be opened.
    #[error("--input {path}: {reason}")]
    Input {
        /// The file.
        path: String,
        /// The system's error.
        reason: String,
    },
    /// The kernel refused the mask or the memory policy.
    #[error("the kernel refuses {what}: {reason}")]
    Refused {
        /// What was requested.
        what: String,
        /// The system's error.
        reason: String,
    },
    /// A tier of tracing is not available.
    #[error("tier '{tier}' is not available here: {reason}{}", or_try(.remedy.as_deref()))]
    Untraceable {
        /// The tier.
        tier: &'static str,
        /// Why not.
        reason: String,
        /// The command that would permit it.
        remedy: Option<String>,
    },
    /// Interrupts cannot be read.
    #[error("--interrupts is not available here: {reason}{}", or_try(.remedy.as_deref()))]
    InterruptsUnseen {
        /// Why not.
        reason: String,
        /// The command that would permit it.
        remedy: Option<String>,
    },
    /// The process to trace does not exist any more.
    #[error("process {pid}: {reason}")]
    Process {
        /// Its id.
        pid: i32,
        /// What is wrong.
        reason: String,
    },
    /// A preparation or clean-up command failed.
    #[error("--{role} '{command}' failed: {reason}")]
    Helper {
        /// `prepare` or `conclude`.
        role: &'static str,
        /// The command.
        command: String,
        /// How it ended, and its last output.
        reason: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// Another error of the system.
    #[error("{action}: {reason}")]
    System {
        /// The failed action.
        action: String,
        /// The system's error.
        reason: String,
    },
    /// A simulated machine's description is wrong.
    #[error(transparent)]
    Description(Box<dyn std::error::Error + Send + Sync>),
}

fn or_try(remedy: Option<&str>) -> String {
    remedy
        .map(|command| format!(" (permit it with: {command})"))
        .unwrap_or_default()
}

fn parenthesise(hint: Option<&str>) -> String {
    hint.map(|text| format!(" ({text})")).unwrap_or_default()
}
