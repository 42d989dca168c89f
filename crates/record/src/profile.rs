//! CPU time by function, as a record: enough for tables, a flame graph, annotated instructions, and
//! the difference from another profile.

use serde::{Deserialize, Serialize};

pub use super::amount::AmountRecord;
use super::host::HostRecord;
use super::named::open_enum;
use super::profile_parts::build_function;
use super::stacks::StacksRecord;
use super::trace::TraceSource;
use super::{Answer, Entry, Header, StoredRecord};
use pinwise_profile::{Amount, Event, FunctionTime, Kind, Profile};

open_enum! {
    /// The event that triggers samples.
    SampleEvent from Event {
        /// Core cycles.
        Cycles = "cycles",
        /// The kernel's clock of CPU time.
        CpuClock = "cpu-clock",
        /// None: only the CPU time of threads was read, from `/proc`.
        Proc = "proc",
    }
}

open_enum! {
    /// What a function belongs to.
    FunctionKind from Kind {
        /// The program or its libraries.
        User = "user",
        /// The kernel.
        Kernel = "kernel",
        /// Not a function: waiting in a spin hint.
        Pause = "pause",
        /// Not a function: stacks that are not listed one by one.
        LeftOut = "left_out",
        /// Not a function: callers that are missing.
        Broken = "broken",
    }
}

/// A profile of a command or a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.profile/1")]
pub struct ProfileRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The machine it ran on.
    pub host: HostRecord,
    /// What was profiled.
    pub source: TraceSource,
    /// The event that triggered samples.
    pub event: SampleEvent,
    /// Samples per second of a thread's CPU time.
    pub hz: u32,
    /// Duration of sampling over all runs, seconds.
    pub wall_s: f64,
    /// CPU time that pinwise itself used while sampling, seconds.
    pub own_cpu_s: f64,
    /// Samples that the kernel had to drop.
    pub lost: u64,
    /// The work that was done while sampling.
    pub work: WorkRecord,
    /// Cost of a PAUSE on this machine; `null` if it was not measured.
    pub pause: Option<ProfilePause>,
    /// Other properties of the machine, measured right afterwards; `null` if they were not.
    pub machine: Option<ProfileMachine>,
    /// The runs of the command; one entry for a process.
    pub runs: Vec<ProfileRun>,
    /// The figures.
    #[serde(flatten)]
    pub figures: ProfileFigures,
    /// Where most of the CPU time is spent, and what to do next.
    pub answer: Answer,
    /// How the last command ended: exit status, or 128 + signal; `null` if none was started, and if
    /// `--for` ended it.
    pub exit: Option<i32>,
}

/// The work that times are divided by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorkRecord {
    /// `run`, `second`, or the user's name for the unit.
    pub unit: String,
    /// Number of units done.
    pub count: f64,
    /// The metric that read `count` from the program's output; `null` if none did.
    pub metric: Option<String>,
}

/// The cost of a PAUSE.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfilePause {
    /// The CPU on which it was measured.
    pub cpu: usize,
    /// The median, ns.
    pub ns: f64,
    /// Lower end of its interval, ns; `null` if there are too few batches for one.
    pub low_ns: Option<f64>,
    /// Upper end.
    pub high_ns: Option<f64>,
}

/// Properties of the machine, for comparing profiles of different machines. Measured on the CPU of
/// [`ProfilePause`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfileMachine {
    /// A core cycle, ns.
    pub cycle_ns: Option<ProbedFigure>,
    /// A load from memory, ns.
    pub memory_ns: Option<ProbedFigure>,
    /// Bandwidth of one CPU reading memory, 1e9 bytes per second.
    pub gb_per_s: Option<ProbedFigure>,
    /// The largest cache of the CPU as reported, bytes.
    pub cache_bytes: Option<u64>,
}

/// A median with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProbedFigure {
    /// The median.
    pub value: f64,
    /// Lower end of its 95 % interval; `null` if there are too few batches for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfileRun {
    /// Wall-clock time, seconds.
    pub wall_s: f64,
    /// Number of samples.
    pub samples: u64,
    /// CPU time that the samples represent, seconds.
    pub cpu_s: f64,
    /// Units of work done.
    pub units: f64,
    /// CPU time of all its processes as the kernel counts it, seconds; `null` for a process that
    /// was already running.
    pub used_cpu_s: Option<f64>,
    /// CPU time spent waiting in spin hints, estimated from samples, seconds.
    pub waits_s: Option<f64>,
    /// CPU time seen at memory accesses, seconds.
    pub accesses_s: Option<f64>,
    /// CPU time in code that could not be read, such as the kernel's, seconds.
    pub unread_s: Option<f64>,
    /// Exit status, or 128 + signal; `null` for a process, and if `--for` ended it.
    pub exit: Option<i32>,
}

/// The figures of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfileFigures {
    /// All samples.
    pub total: AmountRecord,
    /// Part of `total` in the kernel; `null` if the kernel was not sampled.
    pub kernel: Option<AmountRecord>,
    /// Part of `total` waiting in spin hints: samples on a hint, or right after one.
    pub waits: AmountRecord,
    /// Part of `total`, without `waits`, at memory accesses: on an instruction that reads or writes
    /// memory other than the stack, or right after one; `null` if unknown.
    pub accesses: Option<AmountRecord>,
    /// Part of `total` in code that could not be read, such as the kernel's; `null` if unknown.
    pub unread: Option<AmountRecord>,
    /// How complete the stacks are; `null` if there are none.
    pub stacks: Option<StacksRecord>,
    /// Functions, those with the longest own time first.
    pub functions: Vec<FunctionRecord>,
    /// Functions that are not in the list.
    pub functions_left_out: LeftOutRecord,
    /// Threads, the busiest first.
    pub threads: Vec<ProfileThread>,
    /// Threads that are not in the list.
    pub threads_left_out: LeftOutRecord,
    /// The hottest instructions, each with the code around it.
    pub instructions: Vec<SpotRecord>,
    /// Time at instructions that are not shown.
    pub instructions_left_out: AmountRecord,
    /// All stacks as a tree of calls.
    pub calls: CallsRecord,
}

/// Functions or threads that are not listed one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOutRecord {
    /// Number of functions or threads.
    pub count: u64,
    /// Their own time.
    pub own: AmountRecord,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FunctionRecord {
    /// Its symbol, or its first address followed by `+` if it has none.
    pub name: String,
    /// Path of its module; `null` if unknown.
    pub module: Option<String>,
    /// `user` or `kernel`.
    pub kind: FunctionKind,
    /// Time in its own code.
    pub own: AmountRecord,
    /// Standard error of its own CPU time, from the number of samples, seconds.
    pub own_error_s: f64,
    /// Time in it and in the functions that it called; recursive calls count once.
    pub total: AmountRecord,
    /// Part of its own time spent waiting in spin hints.
    pub waits: AmountRecord,
}

/// A thread, or all threads of one name if there were several runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProfileThread {
    /// Its name.
    pub name: String,
    /// Its thread id; `null` for several threads.
    pub thread: Option<i32>,
    /// The number of threads.
    pub threads: u64,
    /// The time that its samples represent.
    pub sampled: AmountRecord,
    /// Part of `sampled` spent waiting in spin hints.
    pub waits: AmountRecord,
    /// CPU time as the kernel counts it, seconds. If the thread ended before the command, this is
    /// the larger of the last polled value, which may be too small, and the sampled time.
    pub cpu_s: Option<f64>,
}

/// A hot instruction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpotRecord {
    /// Its function.
    pub function: String,
    /// Path of its module; `null` if unknown.
    pub module: Option<String>,
    /// `user` or `kernel`.
    pub kind: FunctionKind,
    /// Bytes from the function's beginning.
    pub offset: Option<u64>,
    /// `file:line`.
    pub source: Option<String>,
    /// Its address, as the file has it.
    pub address: u64,
    /// Time seen at it.
    pub own: AmountRecord,
    /// Time seen at all of `lines`.
    pub shown: AmountRecord,
    /// The code around it; empty if its bytes could not be read.
    pub lines: Vec<LineRecord>,
}

/// An instruction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LineRecord {
    /// Its address, as the file has it.
    pub address: u64,
    /// Its disassembly.
    pub text: String,
    /// Time seen at it; 0 if it is counted at another spot.
    pub own: AmountRecord,
    /// Is it a spin hint?
    pub is_hint: bool,
    /// Was the time seen at it spent waiting in a spin hint?
    pub waits: bool,
}

/// A tree of calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallsRecord {
    /// The functions in it.
    pub functions: Vec<CalledRecord>,
    /// Its nodes, callers before callees.
    pub nodes: Vec<CallRecord>,
    /// Time in stacks that are not listed one by one. The tree has it as `[left out]`, below their
    /// callers.
    pub left_out: AmountRecord,
}

/// A function of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CalledRecord {
    /// Its name.
    pub name: String,
    /// Path of its module.
    pub module: Option<String>,
    /// What it belongs to.
    pub kind: FunctionKind,
}

/// A node: a function and the calls that lead to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallRecord {
    /// Index into `functions`.
    pub function: usize,
    /// Index of its caller in `nodes`; `null` at the root.
    pub parent: Option<usize>,
    /// Samples in its own code, without what it called.
    pub samples: u64,
    /// CPU time of those samples, seconds.
    pub cpu_s: f64,
}

impl ProfileFigures {
    /// The figures of a profile, divided by this many units of work.
    #[must_use]
    pub fn new(profile: &Profile, units: f64) -> Self {
        let amount = |amount| AmountRecord::new(amount, units);
        let left_out = |(count, own)| LeftOutRecord {
            count,
            own: amount(own),
        };
        let functions = profile.functions.iter();
        let threads = profile.threads.iter();
        let spots = profile.spots.iter();
        Self {
            total: amount(profile.total),
            kernel: profile.kernel.map(amount),
            waits: amount(profile.waits),
            accesses: profile.accesses.map(amount),
            unread: profile.accesses.map(|_| amount(profile.unread)),
            stacks: profile.stacks.map(|it| StacksRecord::new(it, units)),
            functions: functions.map(|f| FunctionRecord::new(f, units)).collect(),
            functions_left_out: left_out(profile.functions_left_out),
            threads: threads.map(|t| ProfileThread::new(t, units)).collect(),
            threads_left_out: left_out(profile.threads_left_out),
            instructions: spots.map(|spot| SpotRecord::new(spot, units)).collect(),
            instructions_left_out: amount(profile.spots_left_out),
            calls: CallsRecord::new(&profile.tree, profile.tree_left_out, units),
        }
    }

    /// Restores the profile, without its threads and instructions; `None` if the call tree is
    /// damaged.
    #[must_use]
    pub fn to_profile(&self) -> Option<Profile> {
        let to_function_time = |record: &FunctionRecord| FunctionTime {
            function: build_function(&record.name, record.module.as_deref(), &record.kind),
            own: record.own.to_amount(),
            total: record.total.to_amount(),
            waits: record.waits.to_amount(),
        };
        let left_out = self.functions_left_out;
        Some(Profile {
            total: self.total.to_amount(),
            kernel: self.kernel.as_ref().map(AmountRecord::to_amount),
            waits: self.waits.to_amount(),
            accesses: self.accesses.as_ref().map(AmountRecord::to_amount),
            unread: self
                .unread
                .map_or(Amount::default(), |unread| unread.to_amount()),
            functions: self.functions.iter().map(to_function_time).collect(),
            functions_left_out: (left_out.count, left_out.own.to_amount()),
            tree: self.calls.to_tree()?,
            tree_left_out: self.calls.left_out.to_amount(),
            ..Profile::default()
        })
    }
}

/// Samples that represent less than this share of the time that the kernel counted have missed
/// something. A little is always missed: a thread is first sampled when it has run for a period.
const MIN_SAMPLED_SHARE: f64 = 0.97;
/// Smaller differences are ignored, seconds: the kernel counts in ticks.
const MIN_MISSED_S: f64 = 0.02;

/// Returns the CPU time that the kernel counted, seconds, if samples represent clearly less.
#[must_use]
pub fn check_sampled_time(sampled_s: f64, counted_s: Option<f64>) -> Option<f64> {
    counted_s.filter(|counted_s| {
        sampled_s < MIN_SAMPLED_SHARE * counted_s && counted_s - sampled_s > MIN_MISSED_S
    })
}

impl ProfileRecord {
    /// The CPU time of all runs that the kernel counted, seconds, if samples represent clearly less.
    /// `None` as well if the kernel was not sampled: its part is unknown then.
    #[must_use]
    pub fn check_sampled_time(&self) -> Option<f64> {
        self.figures.kernel.as_ref()?;
        let counted: Option<f64> = self.runs.iter().map(|run| run.used_cpu_s).sum();
        check_sampled_time(self.figures.total.cpu_s, counted)
    }

    /// Its title, in one line.
    #[must_use]
    pub fn title(&self) -> String {
        self.source.title("profile")
    }

    /// Path or name of the program.
    #[must_use]
    pub fn program(&self) -> &str {
        match &self.source {
            TraceSource::Command { command, .. } => command.first().map_or("", String::as_str),
            TraceSource::Process { name, .. } => name,
            TraceSource::Machine | TraceSource::Import { .. } => "",
        }
    }
}

impl StoredRecord for ProfileRecord {
    fn entry(&self) -> Entry {
        self.header
            .to_entry::<Self>(self.host.name(), self.title(), self.answer.sentence.clone())
    }
}
