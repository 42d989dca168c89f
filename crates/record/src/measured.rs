//! Probe results of a machine, and what they imply for the system's report.
//!
//! Part of [`super::TopologyRecord`]. CPU lists are written `0,2-4`; names include the units; what
//! was not measured is `null` or missing from its list, never 0.

mod answer;

use serde::{Deserialize, Serialize};

use super::named::open_enum;
use pinwise_wiring::LevelKind;
use pinwise_wiring::ladder::Inclusion;

/// Results of the probes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Measured {
    /// When, on what machine and how it was measured.
    pub survey: SurveyRecord,
    /// CPUs of the rows and columns of the matrices, in order.
    pub cpus: Vec<usize>,
    /// Median one-way time of a cache line between two CPUs, ns. `null` on the diagonal and if a
    /// pair was skipped and could not be inferred from its groups.
    pub latency_ns: Vec<Vec<Option<f64>>>,
    /// Was this entry measured (`true`) or taken from leaders of its groups?
    pub is_measured: Vec<Vec<bool>>,
    /// Every pair that was measured, with intervals.
    pub pairs: Vec<PairRecord>,
    /// Pairs of SMT siblings.
    pub smt_pairs: Vec<[usize; 2]>,
    /// CPUs that share a last-level cache or a cluster, as lists.
    pub llc_groups: Vec<String>,
    /// CPUs of a package, as lists.
    pub packages: Vec<String>,
    /// All levels that were found, smallest groups first.
    pub levels: Vec<MeasuredLevel>,
    /// Is there no level that divides the CPUs?
    pub flat: bool,
    /// Why the levels are unknown; `null` if they are known.
    pub cannot_tell: Option<String>,
    /// Anomalies, as full sentences.
    pub notes: Vec<String>,
    /// The system's report compared with the probes: one verdict per level; for cache sizes one for
    /// all that agree, one for all that are contradicted, and so on.
    pub verdicts: Vec<LevelVerdict>,
    /// Is the system's report right? As a sentence; empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// Cost of a spin-wait hint per CPU.
    pub pause: Vec<PauseRecord>,
    /// Load latency over working-set size.
    pub ladder: Option<LadderRecord>,
    /// Bandwidth of memory.
    pub bandwidth: Vec<BandwidthRecord>,
    /// Latency of memory while other CPUs load it.
    pub loaded_latency: Vec<LoadedLatencyRecord>,
    /// Clocks.
    pub clock: Option<ClockRecord>,
    /// Costs of switching and waking.
    pub scheduling: Option<SchedulingRecord>,
    /// How long the measured levels stay valid; `null` if they were not watched.
    pub drift: Option<DriftRecord>,
    /// The cost of the measurement.
    pub effort: EffortRecord,
}

/// The circumstances of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SurveyRecord {
    /// `local`, or the simulated machine.
    pub machine_spec: String,
    /// The kernel's name for this boot; `null` if unknown. Measured values hold for one boot at
    /// most.
    pub boot_id: Option<String>,
    /// Seed of the pairs that were chosen at random.
    pub seed: u64,
}

/// A median with its interval, in the unit of the field's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Median {
    /// Median of the batches.
    pub value: f64,
    /// Lower end of the 95 % interval; `null` for too few batches.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Batches that it is based on.
    pub batches: usize,
    /// Batches discarded because a thread was preempted.
    pub switched: usize,
    /// Batches discarded because the hypervisor took the CPU.
    pub stolen: usize,
}

/// A measured pair.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PairRecord {
    /// One CPU.
    pub a: usize,
    /// The other CPU.
    pub b: usize,
    /// One-way time, ns, for each home of the line that was tried.
    pub latency_ns: Vec<HomeLatency>,
    /// Time of a spin loop while the other CPU is busy, divided by its time alone; `null` if not
    /// measured.
    pub contention_spin: Option<Median>,
    /// The same ratio for integer arithmetic.
    pub contention_integer: Option<Median>,
    /// The same ratio for floating-point arithmetic.
    pub contention_float: Option<Median>,
}

/// Latency of a pair with the line's memory on one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HomeLatency {
    /// NUMA node; `null` if there is only one.
    pub home_node: Option<usize>,
    /// One-way time, ns.
    #[serde(flatten)]
    pub median: Median,
}

open_enum! {
    /// What CPUs share, or another property that is judged.
    LevelName {
        /// A core.
        Smt = "smt",
        /// A last-level cache or a cluster.
        Llc = "llc",
        /// NUMA nodes.
        Numa = "numa",
        /// A package, or a die of one.
        Package = "package",
        /// Sizes of caches.
        Cache = "cache",
        /// One hardware thread in turns: two virtual CPUs on the same thread.
        Stacked = "stacked",
        /// Whether CPUs stay in place.
        Placement = "placement",
        /// A level that none of these words describes.
        Unnamed = "other",
    }
}

impl LevelName {
    /// The word for several of them.
    #[must_use]
    pub fn noun(&self) -> &str {
        match self {
            Self::Smt => "SMT siblings",
            Self::Llc => "last-level caches",
            Self::Numa => "NUMA nodes",
            Self::Package => "packages",
            Self::Cache => "cache sizes",
            Self::Unnamed => "other groups",
            other => other.as_str(),
        }
    }
}

impl From<LevelKind> for LevelName {
    fn from(kind: LevelKind) -> Self {
        match kind {
            LevelKind::Smt => Self::Smt,
            LevelKind::Llc => Self::Llc,
            LevelKind::Package => Self::Package,
            LevelKind::Other => Self::Unnamed,
        }
    }
}

/// A level that was found.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasuredLevel {
    /// What is shared.
    pub kind: LevelName,
    /// Its groups of two or more CPUs, as lists.
    pub groups: Vec<String>,
    /// Typical latency within, ns.
    pub inside_ns: f64,
    /// Typical latency to the nearest CPU outside, ns.
    pub outside_ns: Option<f64>,
    /// How sure, from 0 to 1.
    pub confidence: f64,
    /// The evidence, as a sentence.
    pub evidence: String,
}

/// Is the report of a level right?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The probes found the same.
    Agrees,
    /// The probes found something else.
    Contradicted,
    /// The probes are inconclusive.
    CannotTell,
}

/// The verdict on what the system reports of one level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LevelVerdict {
    /// The level.
    pub level: LevelName,
    /// The verdict.
    pub verdict: Agreement,
    /// The verdict of this map alone, if earlier maps of the same boot disagree and `verdict` is
    /// based on all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alone: Option<Agreement>,
    /// What the system says, as a sentence.
    pub claim: String,
    /// What the probes say, as a sentence with its figures.
    pub measured: String,
    /// How sure, from 0 to 1.
    pub confidence: f64,
    /// What to do; empty if there is nothing to do.
    pub advice: String,
}

/// A contradiction: the part of a [`LevelVerdict`] that scripts rely on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Contradiction {
    /// The level, as in [`LevelVerdict::level`].
    pub level: LevelName,
    /// What the system says.
    pub claim: String,
    /// What the probes say.
    pub measured: String,
    /// How sure, from 0 to 1.
    pub confidence: f64,
    /// What to do.
    pub advice: String,
}

/// Cost of the spin-wait hint on a CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PauseRecord {
    /// The CPU.
    pub cpu: usize,
    /// One PAUSE (YIELD, ISB), ns.
    pub pause_ns: Median,
    /// One hint in core cycles; `null` if unknown.
    pub pause_cycles: Option<Median>,
    /// Two costs, if batches fall into two clusters: ns of each, and the share of the first.
    pub modes: Option<Modes>,
}

/// Two clusters of figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Modes {
    /// Centre of the lower one, ns.
    pub low_ns: f64,
    /// Centre of the upper one, ns.
    pub high_ns: f64,
    /// Share of the lower one, 0 to 1.
    pub low_share: f64,
}

open_enum! {
    /// Does the outermost cache contain the content of the cache before it?
    CacheInclusion from Inclusion {
        /// Yes.
        Inclusive = "inclusive",
        /// No.
        Exclusive = "exclusive",
    }
}

/// Load latency over working-set size, on one CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LadderRecord {
    /// The CPU.
    pub cpu: usize,
    /// Sizes in ascending order.
    pub points: Vec<LadderPoint>,
    /// Plateaus: what a program sees as caches, and memory last.
    pub plateaus: Vec<PlateauRecord>,
    /// What the capacities suggest about the outermost cache; `null` if nothing.
    pub hint: Option<CacheInclusion>,
}

/// One size of the ladder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LadderPoint {
    /// Working set, bytes.
    pub bytes: usize,
    /// One load, ns.
    pub latency_ns: Median,
}

/// A plateau of the ladder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlateauRecord {
    /// 1 for L1 and so on; `null` for memory.
    pub level: Option<u8>,
    /// One load, ns.
    pub latency_ns: f64,
    /// Capacity as a program sees it, bytes; `null` for memory.
    pub effective_bytes: Option<u64>,
    /// Capacity that the system reports; `null` if it reports none.
    pub reported_bytes: Option<u64>,
}

open_enum! {
    /// A pattern of streaming memory.
    MemoryStream {
        /// Reading an array.
        Read = "read",
        /// Filling an array.
        Write = "write",
        /// `a[i] = b[i]`
        Copy = "copy",
        /// `a[i] = b[i] + s * c[i]`
        Triad = "triad",
    }
}

/// Bandwidth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BandwidthRecord {
    /// How it was streamed.
    pub stream: MemoryStream,
    /// CPUs with a thread each, as a list.
    pub cpus: String,
    /// NUMA node of the memory; `null` for each thread's own.
    pub node: Option<usize>,
    /// 1e9 bytes per second, all threads together.
    pub gb_per_s: Median,
}

/// Latency under load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadedLatencyRecord {
    /// The CPU on which latency was measured.
    pub cpu: usize,
    /// CPUs that loaded the memory, as a list; empty if none did.
    pub loaders: String,
    /// Their bandwidth, 1e9 bytes per second.
    pub background_gb_per_s: f64,
    /// One load, ns.
    pub latency_ns: Median,
}

/// Clocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClockRecord {
    /// Ticks of the time-stamp counter, 1e9 per second.
    pub tick_ghz: Option<f64>,
    /// Core clock while it was measured, 1e9 cycles per second.
    pub core_ghz: Option<f64>,
    /// Smallest step of the clock that probes are timed with, ns.
    pub step_ns: Option<f64>,
}

/// Costs of the scheduler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SchedulingRecord {
    /// Switch from one thread to another on one CPU, ns.
    pub context_switch_ns: Option<Median>,
    /// From the wake-up on one CPU until the woken thread runs on another, ns.
    pub futex_wake_ns: Option<Median>,
}

/// Changes of the measured levels over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriftRecord {
    /// How long it was watched, s.
    pub watched_s: f64,
    /// Pairs that were repeated.
    pub pairs: Vec<DriftPair>,
    /// Number of changes of any pair.
    pub changes: usize,
    /// Median time between two changes, s; `null` for fewer than two.
    pub median_dwell_s: Option<f64>,
    /// The longest time without a change, s.
    pub longest_dwell_s: f64,
    /// How long measured levels stay valid, s; `null` if no change was seen.
    pub valid_s: Option<f64>,
    /// As a sentence.
    pub sentence: String,
}

/// A pair that was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriftPair {
    /// One CPU.
    pub a: usize,
    /// The other CPU.
    pub b: usize,
    /// The states in which it was seen.
    pub states: Vec<DriftState>,
    /// One entry per repetition: seconds since the start, one-way time in ns, contention ratio
    /// (`null` if not measured), index of the state.
    pub samples: Vec<(f64, f64, Option<f64>, usize)>,
}

/// A state of a pair.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DriftState {
    /// What the CPUs seem to share in this state.
    pub kind: LevelName,
    /// Typical one-way time, ns.
    pub latency_ns: f64,
    /// Typical contention ratio.
    pub contention: Option<f64>,
    /// Share of the repetitions, 0 to 1.
    pub share: f64,
    /// Number of visits.
    pub visits: usize,
    /// Median length of a visit, s.
    pub median_dwell_s: f64,
}

/// The cost of the measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EffortRecord {
    /// Budget, s.
    pub budget_s: f64,
    /// Time used, s.
    pub spent_s: f64,
    /// Pairs measured.
    pub pairs_measured: usize,
    /// Pairs taken from the leaders of their groups.
    pub pairs_skipped: usize,
    /// Skipped pairs measured after all, as a check.
    pub pairs_verified: usize,
    /// How many of them disagreed with their leaders' results.
    pub pairs_disagreed: usize,
    /// Pairs measured at the same time; 1 if parallel measurements would have disturbed each other.
    pub parallel_pairs: usize,
    /// Batches measured.
    pub batches: usize,
    /// Batches discarded because a thread was preempted.
    pub batches_switched: usize,
    /// Batches discarded because the hypervisor took the CPU.
    pub batches_stolen: usize,
    /// CPU time that the hypervisor gave to other guests during the measurement, as a share of the
    /// time of all CPUs; `null` if unknown.
    pub steal_share: Option<f64>,
    /// Parts that were left out, and why, as full sentences.
    pub left_out: Vec<String>,
}
