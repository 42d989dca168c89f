//! The versioned schema of results: the only types that are written down.
//!
//! JSON in UTF-8, `snake_case`, units in the names. Fields may be added; the
//! meaning of existing ones does not change within a version. Every output reads
//! these types and nothing else, so that text, JSON, CSV and pages agree.
//! `docs/records.md` describes them field by field.
//!
//! ```
//! use pinwise_record::TopologyRecord;
//! use pinwise_topology::Topology;
//!
//! let machine = Topology::from_synthetic("core:2 pu:2")?;
//! let json = serde_json::to_string(&TopologyRecord::new(&machine, &[]))?;
//! let again: TopologyRecord = serde_json::from_str(&json)?;
//! assert_eq!(again.to_topology().units(pinwise_topology::Level::Core).len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use files"))]

mod amount;
mod attribution;
mod bench;
mod blocked;
mod bound;
mod change;
mod command_line;
mod comparison;
mod conclusion;
mod contrast;
mod coverage;
mod device;
mod device_paths;
mod diff;
mod ending;
mod finding;
mod fleet;
mod gate;
mod gate_history;
mod header;
mod host;
mod interrupts;
mod jitter;
mod joint;
mod kernel;
mod kind;
mod machine;
mod measured;
mod memory;
mod metric;
mod named;
mod outcome;
mod placements;
mod prediction;
mod profile;
mod profile_diff;
mod profile_parts;
mod recipe;
mod replay;
mod reproduction;
mod rules;
mod run;
mod search;
mod service;
mod setting;
mod spin;
mod stacks;
mod summary;
mod tags;
mod tier;
mod timeline;
mod top;
mod topology;
mod trace;
mod workload;

pub use attribution::{
    AccountRecord, AttributedPart, AttributedTime, AttributionRecord, PartRecord,
};
pub use bench::{
    Bench, BenchCell, BenchKernel, GroupScore, PlacementDifference, Question, SmtRecord, SmtState,
};
pub use blocked::{
    BlockedIn, BlockedPart, BlockedPlace, BlockedRecord, BlockedThread, WakerRecord,
};
pub use bound::Bound;
pub use change::{
    ArmShift, ChangeVerdict, ComparedArm, ComparedRecord, DiffRecord, FigureChange, MachineChange,
    MachineFact,
};
pub use command_line::{
    CommandRecord, remove_options, renew_command, renew_command_with, repeat_command,
    replace_effort, to_comparison_command,
};
pub use comparison::{
    Arm, ArmTrace, BlockScore, Comparison, ComparisonStudy, Estimate, NotRecommended,
    PlacementKind, PlacementMemory, PlacementRecord, PlanRecord, Spread, Stopped, TimedOutRecord,
    VerdictKind, VerdictRecord,
};
pub use contrast::{
    ComponentRecord, ContrastRecord, ContrastVerdict, JudgedRecord, LimitRecord, LoadLevelRecord,
    LoadLevelsRecord, SplitRecord, TotalsRecord,
};
pub use coverage::{CoverageRecord, MoverRecord};
pub use device::{DeviceClass, DeviceRecord, InterruptRecord, QueueRecord};
pub use device_paths::{DevicePathRecord, PathClass};
pub use diff::{Difference, TopologyDiff};
pub use ending::{NOT_ENDED, no_verdict_yet};
pub use finding::{Answer, Doctor, Finding, Severity};
pub use fleet::{
    CLOCK_TOLERANCE_S, FleetAttribution, FleetCommon, FleetDiff, FleetFigure, FleetFigureChange,
    FleetGroup, FleetJob, FleetNode, FleetOutlier, FleetRecord, FleetReport, FleetSettingChange,
    FleetSide, FleetStatus, FleetStep, NodeFigure, NodeState, NodeStatus, NodeStep, OutlierKind,
    PlantedFault, StepChange, StepResult, StepState,
};
pub use gate::{
    BuildRecord, GateBenchmark, GateCpuTime, GateDecision, GateLink, GatePair, GatePlanRecord,
    GateRecord, GateVerdict,
};
pub use gate_history::{GateHistory, HistoryChange, HistoryStep};
pub use header::Header;
pub use host::{HostRecord, RestrictedRecord};
pub use interrupts::{InterruptCauseRecord, InterruptCpuRecord, InterruptsRecord};
pub use jitter::{
    CountedRecord, GapCause, GapPartRecord, GapRecord, IsolationRecord, JitterCauseRecord,
    JitterCpuRecord, JitterRecord,
};
pub use joint::{JointProgramRecord, JointRecord, JointTrialRecord, LimitState};
pub use kernel::{KernelRecord, KernelSplit};
pub use kind::{AnyRecord, Kind, Record, StoredRecord, read};
pub use machine::MachineRecord;
pub use measured::{
    Agreement, BandwidthRecord, CacheInclusion, ClockRecord, Contradiction, DriftPair, DriftRecord,
    DriftState, EffortRecord, HomeLatency, LadderPoint, LadderRecord, LevelName, LevelVerdict,
    LoadedLatencyRecord, Measured, MeasuredLevel, Median, MemoryStream, Modes, PairRecord,
    PauseRecord, PlateauRecord, SchedulingRecord, SurveyRecord,
};
pub use memory::{LocalShare, MemoryRecord, NodePagesRecord};
pub use metric::{Direction, EffectRecord, HeadlineRecord, MetricRecord};
pub use outcome::GateOutcome;
pub use placements::{PlacementsRecord, ShapeRecord, ThreadPlacements};
pub use prediction::{PlacementPrediction, PredictedPlacement, label_placement};
pub use profile::{
    AmountRecord, CallRecord, CalledRecord, CallsRecord, FunctionKind, FunctionRecord,
    LeftOutRecord, LineRecord, ProbedFigure, ProfileFigures, ProfileMachine, ProfilePause,
    ProfileRecord, ProfileRun, ProfileThread, SampleEvent, SpotRecord, WorkRecord,
    check_sampled_time,
};
pub use profile_diff::{
    CallChangeRecord, ChangeRecord, DiffError, DiffSide, FunctionChangeRecord, PausingRecord,
    ProfileDiff, SeenIn,
};
pub use recipe::{RecipeEntry, RecipeList, RecipeMissing, RecipeParameter};
pub use replay::ReplayRecord;
pub use reproduction::{
    ClaimCounts, ClaimRecord, ClaimVerdict, ExperimentRecord, ReportRecord, Reproduction,
};
pub use rules::{RuleChange, RuleChangeKind, RuleProcess, RuleRecord, RulesRecord};
pub use run::{MetricReading, Phase, RunRecord, ThreadTime};
pub use search::{
    ConfirmationRecord, FeatureRecord, FirstPredictionRecord, LeastRecord, ModelJudgement,
    OtherCpusRecord, PairsVerdict, PredictedArm, ProgressPoint, SearchAnswer, SearchArm,
    SearchModelRecord, SearchPlanRecord, SearchRecord, SearchRun, SearchStep, SearchVerdict,
    SpaceRecord, TruthRecord,
};
pub use service::{Applied, AppliedInterrupt, AppliedMemory, AppliedNode, ServiceRecord};
pub use setting::{
    AloneRecord, CompanionCostRecord, CompanionEffectRecord, CompanionFigureRecord,
    CompanionRecord, CpuLimitRecord, SettingRecord,
};
pub use spin::{
    AdviceRecord, ChipRecord, CliffsRecord, CodeArch, ContentionCell, CpuPauseRecord, CycleMethod,
    GapOnChip, HintCostRecord, HintRecipe, LevelRecord, MatchStrength, MatchedAlgorithm,
    MoveRecord, OuterLoop, PauseCheckRecord, PredictionRecord, ProcessorRecord, ReleaseSeen,
    ReplayCell, ReplayExperiment, ReplayHint, ReplayMeasured, ReplayPrediction, ReplayedAlgorithm,
    ScanChip, ScannedBinary, ScannedLoop, SkippedFile, SpinAdviceRecord, SpinAttachRecord,
    SpinCaller, SpinEvidence, SpinKind, SpinMatch, SpinPauseRecord, SpinPlace, SpinPredictRecord,
    SpinReplayRecord, SpinScan, SpinShares, SpinThread, SpinUnit, TooLongRecord, TunableRecord,
    UnknownGaps, WaitEnd,
};
pub use stacks::{StackMethod, StacksRecord};
pub use summary::{BaselineChange, Figure, PER_UNIT, PER_UNIT_FACTS, Summary};
pub use tags::{check_tag, read_id, replace_id, replace_tags};
pub use tier::{TierRecord, TraceTier};
pub use top::{
    Busiest, CpuState, MoveRates, ThreadState, TopCpu, TopRecord, TopSharing, TopThread, UsedCpu,
};
pub use topology::{
    CacheKind, CacheRecord, CountsRecord, CpuRecord, KindRecord, NodeRecord, QuotaRecord,
    RestrictionRecord, TopologyRecord,
};

pub use timeline::{
    CpuSpans, LeftOutSpans, LossCause, PackedCpuRecord, PackedError, PackedSharingRecord,
    PackedSlice, PackedSlicesRecord, PackedSpan, PackedWaitsRecord, SliceEnd, TimelineRecord,
};
pub use trace::{
    CoreTimeRecord, CpuQuotaRecord, CpuTimeRecord, IdleWaitingRecord, LostRecord, LowerBound,
    MemoryLimitRecord, MigrationCounts, OtherProgramRecord, SharingCauses, SmtSharingRecord,
    ThreadCpu, ThreadRecord, ThrottledRecord, TraceCost, TraceFigures, TraceRecord, TraceSource,
    TraceTotals, WaitBasis, WaitCauses, WaitRecord,
};
pub use workload::WorkloadRecord;

/// A record's line of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The record's id.
    pub id: String,
    /// Its schema.
    pub schema: String,
    /// When it was made, RFC 3339; the history is sorted by it.
    pub time: String,
    /// The machine it was made on.
    pub host: String,
    /// Its title: what was measured.
    pub title: String,
    /// The result, in words; empty while unfinished.
    pub verdict: String,
    /// Has it ended?
    pub is_complete: bool,
}

impl StoredRecord for TopologyRecord {
    fn entry(&self) -> Entry {
        let title = match self.measured {
            Some(_) => "topology --measure",
            None => "topology",
        };
        self.header
            .to_entry::<Self>(self.host_name(), title.to_owned(), self.summary())
    }
}

impl StoredRecord for Comparison {
    fn entry(&self) -> Entry {
        let (host, sentence) = (self.host_name(), &self.verdict.sentence);
        self.header.to_growing_entry::<Self>(
            self.stopped.as_ref(),
            host,
            self.title_in_lists(),
            sentence,
        )
    }
}

impl StoredRecord for Reproduction {
    fn entry(&self) -> Entry {
        self.header
            .to_entry::<Self>(self.host.clone(), self.title(), self.verdict())
    }
}

/// Its time is its end: so the bench that the user requested is newer than its comparisons, which
/// began after it.
impl StoredRecord for Bench {
    fn entry(&self) -> Entry {
        Entry {
            time: self.ended.clone(),
            is_complete: self.stopped.is_some(),
            ..self.header.to_entry::<Self>(
                self.host_name(),
                self.title(),
                self.conclusions.first().cloned().unwrap_or_default(),
            )
        }
    }
}

/// The `schema` field of any record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaName<'a> {
    /// `pinwise.comparison`
    pub name: &'a str,
    /// 1
    pub version: u32,
}

impl<'a> SchemaName<'a> {
    /// Splits `pinwise.comparison/1`; `None` if it has another form.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, version) = text.split_once('/')?;
        Some(Self {
            name,
            version: version.parse().ok()?,
        })
    }
}

/// Why a record could not be read. The messages include those of the cause, so there is no source
/// that would be printed a second time.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or fields missing or of the wrong type.
    #[error("the record is damaged: {0}")]
    Damaged(serde_json::Error),
    /// Another kind of record.
    #[error("the record is a {found}, not a {wanted}")]
    OtherKind {
        /// Name of the kind that it is.
        found: &'static str,
        /// Name of the kind that was expected.
        wanted: &'static str,
    },
    /// Not a record, or of an unknown schema.
    #[error("unknown schema '{found}': not a record of pinwise, or one of a newer version")]
    Unknown {
        /// The schema that it names.
        found: String,
    },
    /// Of a kind that is printed and never stored.
    #[error("a {kind} is only printed, not stored")]
    NotStored {
        /// Its kind.
        kind: &'static str,
    },
    /// Written by a newer pinwise.
    #[error("the record has schema {found}, this pinwise reads {known}; use a newer pinwise")]
    Newer {
        /// Its schema.
        found: String,
        /// The newest known.
        known: &'static str,
    },
}

impl From<serde_json::Error> for RecordError {
    fn from(error: serde_json::Error) -> Self {
        Self::Damaged(error)
    }
}

#[cfg(any(test, feature = "examples"))]
pub mod examples;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod search_tests;
#[cfg(test)]
mod tests;
