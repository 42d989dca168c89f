//! A comparison of arms as a record.

use pinwise_format::shell;
use serde::{Deserialize, Serialize};

use super::command_line::CommandRecord;
use super::contrast::ContrastRecord;
use super::header::Header;
use super::host::HostRecord;
use super::joint::JointRecord;
use super::metric::{HeadlineRecord, MetricRecord};
use super::named::open_enum;
use super::run::{RunRecord, ThreadTime};
use super::service::ServiceRecord;
use super::setting::{
    CompanionEffectRecord, CompanionFigureRecord, CompanionRecord, SettingRecord,
};
use super::tier::TraceTier;
use super::trace::TraceFigures;
use super::workload::WorkloadRecord;
use pinwise_placement::MemoryPolicy;
use pinwise_stats::confirm::Score;

open_enum! {
    /// The purpose of a comparison.
    ComparisonStudy {
        /// The comparison itself.
        Compare = "compare",
        /// To show noise: all arms are the same (A/A).
        Noise = "aa",
        /// Part of a bench.
        Bench = "bench",
        /// Part of a reproduction.
        Reproduce = "reproduce",
        /// A joint plan of several programs, found by a search.
        Joint = "joint",
    }
}

/// A comparison: plan, runs, analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.comparison/1")]
pub struct Comparison {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// Its purpose.
    pub study: ComparisonStudy,
    /// The arguments of the command line that started it, without the store; empty if there was
    /// none.
    pub argv: Vec<String>,
    /// The command that repeats it with the same seed; `null` if no command line started it.
    pub again: Option<String>,
    /// The machine it ran on.
    pub host: HostRecord,
    /// Seed of the order of runs (and of a simulated machine's noise).
    pub seed: u64,
    /// What is compared.
    pub metric: MetricRecord,
    /// How it was planned.
    pub plan: PlanRecord,
    /// Name of the arm that others are compared with.
    pub baseline: String,
    /// What was compared.
    pub arms: Vec<Arm>,
    /// Arm against baseline; only arms that were confirmed on fresh blocks.
    pub contrasts: Vec<ContrastRecord>,
    /// Name of the best arm, if there is a verdict for one. Whether it is recommended is in
    /// `verdict.not_recommended`.
    pub best: Option<String>,
    /// The result.
    pub verdict: VerdictRecord,
    /// Why it ended; `null` while it runs or if it was killed.
    pub stopped: Option<Stopped>,
    /// Why it ended, in words, or that it has not.
    pub ended: String,
    /// Whole blocks that the contrasts are based on.
    pub blocks: usize,
    /// Time from start to end, seconds.
    pub elapsed_s: f64,
    /// The service that was already running and was placed in turns; `null` if every run started a
    /// command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceRecord>,
    /// The programs that share the machine, if joint placements were searched; `null` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<JointRecord>,
    /// Figures of commands that ran beside arms, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<CompanionFigureRecord>,
    /// What companions change for each arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companion_effects: Vec<CompanionEffectRecord>,
}

open_enum! {
    /// How blocks enter the test.
    BlockScore from Score {
        /// By redescending signed ranks, weighted by load.
        Weighted = "weighted",
        /// By plain signed ranks.
        Rank = "rank",
    }
}

/// How a comparison was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanRecord {
    /// Family-wise two-sided error.
    pub alpha: f64,
    /// Smallest effect of interest, as a share: 0.01 is 1 %.
    pub min_effect: f64,
    /// Requested half-width, as a share.
    pub precision: Option<f64>,
    /// Budget in seconds.
    pub budget_s: Option<f64>,
    /// Budget in runs per arm.
    pub max_runs: Option<usize>,
    /// Was there no limit, so that it runs until the answer is known?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open_ended: bool,
    /// Whole blocks discarded at the start.
    pub warmup_blocks: usize,
    /// The statistic of the runs that is judged: `typical`, `mean` or a percentile, `p90`.
    pub judge: String,
    /// How blocks are weighted if the typical run is judged.
    pub score: BlockScore,
    /// Arms screened before the confirmation; 0 without screening.
    pub screened_arms: usize,
}

/// One thing that is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Arm {
    /// Its name, unique in the comparison.
    pub name: String,
    /// The command's arguments.
    pub command: Vec<String>,
    /// Surroundings of the command.
    pub workload: WorkloadRecord,
    /// The CPUs it ran on.
    pub placement: PlacementRecord,
    /// Settings of its runs besides the placement.
    #[serde(default, skip_serializing_if = "SettingRecord::is_empty")]
    pub setting: SettingRecord,
    /// The requested CPUs, as a list.
    pub cpus: String,
    /// Other requested placements that mean the same CPUs here.
    pub same_as: Vec<String>,
    /// Runs that do not count: warm-up, and blocks that were dropped.
    pub other_runs: Vec<RunRecord>,
    /// Runs of whole blocks, in time order.
    pub runs: Vec<RunRecord>,
    /// Typical value of the metric, with a 95 % interval for the median.
    pub estimate: Option<Estimate>,
    /// Spread of the metric over the runs.
    pub spread: Option<Spread>,
    /// What its threads did during the runs; `null` unless the time queued of every run is known.
    pub threads: Option<ThreadTime>,
    /// Was it dropped by the screening?
    pub eliminated: bool,
    /// Why its runs do not count, if they do not.
    pub invalid: Option<String>,
    /// Lower bound of its slow-down, if its runs were killed at the time-out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<TimedOutRecord>,
    /// Its result, in a word of the metric: `faster`, `baseline`, `failed`; empty before there is a
    /// verdict.
    pub standing: String,
    /// What the scheduler did in one additional, traced run; `null` if there was none.
    pub trace: Option<ArmTrace>,
}

/// An arm whose runs all hit the time-out: only a bound is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TimedOutRecord {
    /// The time-out, seconds.
    pub limit_s: f64,
    /// The time-out divided by the typical run of the baseline.
    pub at_least: f64,
    /// `at_least` as a change, in words: `≥ 270×`.
    pub change: String,
    /// In words.
    pub sentence: String,
}

/// What the scheduler did with an arm in one additional, traced run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArmTrace {
    /// How it was traced, as in a trace's record.
    pub tier: TraceTier,
    /// Length of the trace, seconds.
    pub elapsed_s: f64,
    /// The figures in words, as a full sentence.
    pub sentence: String,
    /// Further notes, as full sentences.
    pub notes: Vec<String>,
    /// The figures.
    #[serde(flatten)]
    pub figures: TraceFigures,
}

open_enum! {
    /// How threads are held to a placement.
    PlacementKind {
        /// Not at all.
        OsDefault = "os-default",
        /// All of them to all of its CPUs.
        Confined = "confined",
        /// Each of them to one CPU.
        Bound = "bound",
    }
}

open_enum! {
    /// Which nodes memory should come from.
    PlacementMemory from MemoryPolicy {
        /// The node of the CPU that touches it first.
        Local = "local",
        /// Only the nodes listed.
        Bind = "bind",
        /// Page by page over the nodes listed.
        Interleave = "interleave",
        /// Over the nodes listed, by weight.
        Weighted = "weighted",
        /// The nodes listed, and others if they are full.
        Preferred = "preferred",
    }
}

/// A placement and what it means on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlacementRecord {
    /// As on the command line.
    pub name: String,
    /// How threads are held to it.
    pub kind: PlacementKind,
    /// Memory policy, `null` for the inherited one.
    pub memory: Option<PlacementMemory>,
    /// NUMA nodes of the memory policy.
    pub memory_nodes: Vec<usize>,
    /// Packages touched.
    pub packages: usize,
    /// NUMA nodes touched.
    pub numa_nodes: usize,
    /// Last-level-cache domains touched.
    pub llcs: usize,
    /// Cores touched.
    pub cores: usize,
}

/// A value with an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Median over the runs.
    pub value: f64,
    /// Lower end; `null` with too few runs.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Spread of an arm's runs in the metric's unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spread {
    /// Standard deviation.
    pub sd: f64,
    /// Interquartile range.
    pub iqr: f64,
    /// Standard deviation over mean.
    pub cv: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
}

/// Kinds of overall verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// One arm is best.
    Best,
    /// All are the same within the smallest effect of interest.
    Same,
    /// No arm is better than the default.
    LeaveAlone,
    /// There is only one arm: it was timed, and nothing compared.
    Timed,
    /// None of these.
    Undecided,
}

open_enum! {
    /// Why the placement of the best arm is not recommended.
    NotRecommended {
        /// The difference depends on what else runs.
        DependsOnLoad = "depends_on_load",
        /// The estimated gain is below the smallest effect of interest.
        SmallGain = "small_gain",
        /// Runs are mostly process start-up.
        ShortRuns = "short_runs",
        /// Others used more than a fifth of the machine.
        BusyMachine = "busy_machine",
        /// All of its runs exited with another status than 0.
        Failed = "failed",
        /// It leaves the program no core to move to, and its small gain was seen on a
        /// quiet machine only.
        QuietOnly = "quiet_only",
    }
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerdictRecord {
    /// The kind of verdict.
    pub kind: VerdictKind,
    /// In words.
    pub sentence: String,
    /// The most informative figure; `null` if none is.
    pub headline: Option<HeadlineRecord>,
    /// What to do; empty if the commands say it.
    pub advice: String,
    /// Commands that apply it, the plainest first; empty if there is nothing to apply. For an
    /// undecided comparison: the one that repeats it with the extra effort that decides it.
    pub commands: Vec<CommandRecord>,
    /// Why the best arm has no commands although its placement could be applied;
    /// `advice` says it in words. `null` otherwise.
    pub not_recommended: Option<NotRecommended>,
    /// The conditions under which it holds.
    pub condition: String,
    /// The guaranteed error rate, and its cost in runs; `null` if nothing was judged.
    pub guarantee: Option<String>,
    /// An arm that is as good and varies less, in words; `null` if there is none.
    pub steadiness: Option<String>,
    /// What the scheduler did in one traced run each of the arms that the verdict is about, in
    /// words; `null` without traces. It accompanies the verdict and proves nothing.
    pub beside: Option<String>,
}

/// Why a comparison ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// The answer was clear, or the requested precision was reached.
    Precision,
    /// The time was used up.
    Budget,
    /// The runs were used up.
    Runs,
    /// The user stopped it.
    Interrupted,
    /// No valid arms were left to compare.
    Failed,
}

impl Comparison {
    /// Is the typical run judged, not the mean or a percentile?
    #[must_use]
    pub fn judges_typical_run(&self) -> bool {
        self.plan.judge == "typical"
    }

    /// The title, with the figure if it is the program's own: otherwise comparisons of one command
    /// by its mean and by its 99th percentile would look alike.
    #[must_use]
    pub fn title_in_lists(&self) -> String {
        let has_no_unit = self.metric.unit.is_empty() && self.metric.name.contains(':');
        let is_programs_own = has_no_unit || self.metric.name.starts_with("regex:");
        match is_programs_own && self.study == ComparisonStudy::Compare {
            true => format!("{} · {}", self.title(), self.metric.label),
            false => self.title(),
        }
    }

    /// A short title: the command, or the commands: `a against b`, `a, b, c`.
    #[must_use]
    pub fn title(&self) -> String {
        if let Some(joint) = &self.joint {
            let names = joint.programs.iter().map(|program| program.name.as_str());
            return format!("joint plan: {}", names.collect::<Vec<_>>().join(", "));
        }
        // The command is `pinwise bench kernel NAME`.
        let words = self.arms.first().map_or(&[][..], |arm| &arm.command);
        let kernel = words.iter().skip_while(|word| *word != "kernel").nth(1);
        if let (ComparisonStudy::Bench, Some(kernel)) = (&self.study, kernel) {
            return format!("part of a bench: {kernel}");
        }
        let mut commands: Vec<String> = self
            .arms
            .iter()
            .map(|arm| match &arm.workload.recipe {
                Some(recipe) => format!("recipe {recipe}"),
                None => shell::line(&arm.command),
            })
            .collect();
        commands.dedup();
        let separator = if commands.len() == 2 {
            " against "
        } else {
            ", "
        };
        let shown = commands.join(separator);
        if self.study == ComparisonStudy::Noise {
            return format!("A/A: {shown}");
        }
        shown
    }

    /// The arm to use according to the verdict: the baseline if no arm is better. `None` if it is
    /// undecided, or if nothing is recommended.
    #[must_use]
    pub fn recommended_arm(&self) -> Option<&Arm> {
        let name = match self.verdict.kind {
            _ if self.verdict.not_recommended.is_some() => None,
            VerdictKind::Best => self.best.as_ref(),
            VerdictKind::Timed => Some(&self.baseline),
            VerdictKind::Same | VerdictKind::LeaveAlone => {
                self.stopped.as_ref().map(|_| &self.baseline)
            }
            VerdictKind::Undecided => None,
        }?;
        self.arms.iter().find(|arm| arm.name == *name)
    }

    /// What ran beside an arm; arms with different companions do not compete.
    #[must_use]
    pub fn companions_of(&self, arm: &str) -> &[CompanionRecord] {
        let arm = self.arms.iter().find(|other| other.name == arm);
        arm.map_or(&[], |arm| &arm.setting.beside)
    }

    /// The name of the machine it ran on.
    #[must_use]
    pub fn host_name(&self) -> String {
        self.host.name()
    }
}
