//! A search for the best placement as a record.

mod answer;
mod conclusion;

use pinwise_format::shell;
use serde::{Deserialize, Serialize};

pub use self::answer::{
    ConfirmationRecord, LeastRecord, OtherCpusRecord, PairsVerdict, SearchAnswer, SearchVerdict,
    TruthRecord,
};
use super::metric::EffectRecord;
use super::named::open_enum;
use super::{
    Entry, Estimate, Header, HostRecord, MetricRecord, RunRecord, Stopped, StoredRecord,
    WorkloadRecord,
};

open_enum! {
    /// What predictions were worth.
    ModelJudgement {
        /// Features explain what placements cost.
        Fits = "fits",
        /// They leave part of it unexplained.
        Misfits = "misfits",
        /// They leave most of it unexplained.
        Useless = "useless",
    }
}

/// A search: candidates, every run, what the model makes of them, the answer.
/// It is stored as it grows; of one that was cut off `stopped` is `null`, and
/// `pinwise search --resume` goes on with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.search/1")]
pub struct SearchRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The arguments that made it, without the store; empty if no command line did.
    pub argv: Vec<String>,
    /// The command that makes it again with the same seed; `null` if no command line made it.
    pub again: Option<String>,
    /// The machine it ran on.
    pub host: HostRecord,
    /// The command's arguments; `{threads}` is replaced by the number of threads.
    pub command: Vec<String>,
    /// Surroundings of the command.
    pub workload: WorkloadRecord,
    /// What is searched for the least cost of.
    pub metric: MetricRecord,
    /// Seed of what is run when (and of a simulated machine's noise).
    pub seed: u64,
    /// How it was planned.
    pub plan: SearchPlanRecord,
    /// Number of placements, for each number of threads.
    pub space: Vec<SpaceRecord>,
    /// What could be run: `os-default` first, then shapes, then placements that
    /// were made on the way by moving one thread.
    pub arms: Vec<SearchArm>,
    /// Every run, in order of time.
    pub runs: Vec<SearchRun>,
    /// What is expected of every arm; `[]` before the first runs.
    pub predictions: Vec<PredictedArm>,
    /// The leader after each block: best so far against runs.
    pub progress: Vec<ProgressPoint>,
    /// The model at the end; `null` before the first runs.
    pub model: Option<SearchModelRecord>,
    /// Name of the best arm; `null` if none is known.
    pub best: Option<String>,
    /// Runs that it took to find it: profiling, search and refinement, those
    /// of `os-default` among them; not the warm-up and the confirmation.
    pub runs_used: usize,
    /// The best arm against `os-default`, measured afresh; `null` without.
    pub confirmation: Option<ConfirmationRecord>,
    /// The best shape on other CPUs, in pairs beside those that it was found
    /// on; without an answer or `confirmation_pairs` nothing.
    pub other_cpus: Vec<OtherCpusRecord>,
    /// The least resource that is nearly as good; `null` if unknown, and if CPUs of one shape
    /// differ.
    pub least: Option<LeastRecord>,
    /// The result.
    pub verdict: SearchVerdict,
    /// Indifference zone that was used: `plan.within`, or half the standard deviation of a run if
    /// that is more, but at most 3 % because of that.
    pub zone: f64,
    /// On a simulated machine: true cost of `best` over the true best, minus
    /// 1; `null` elsewhere and without a best arm.
    pub true_regret: Option<f64>,
    /// On a simulated machine: the true best.
    pub truth: Option<TruthRecord>,
    /// Why it ended; `null` while it runs or if it was cut off.
    pub stopped: Option<Stopped>,
    /// In words, or that it has not ended.
    pub ended: String,
    /// Time from start to end, s; without pauses between interruption and
    /// resumption.
    pub elapsed_s: f64,
}

/// How a search was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchPlanRecord {
    /// Numbers of threads that were searched.
    pub threads: Vec<usize>,
    /// Threads of `os-default` if that was set; `null`: as the program does.
    pub default_threads: Option<usize>,
    /// Threads of `os-default` as counted in a run before the search; `null` if they were set.
    pub counted_threads: Option<usize>,
    /// Is the number of threads set by the environment of each run?
    pub sets_threads: bool,
    /// Indifference zone: a placement that is better by less may be missed. If runs vary much the
    /// zone follows their noise, see [`SearchRecord::zone`].
    pub within: f64,
    /// How much worse the least resource may be.
    pub least_within: f64,
    /// Probability that may be left that another is better by three times
    /// `within`; the expected loss may be `within`.
    pub error: f64,
    /// Maximum number of runs of profiling, search and refinement.
    pub max_runs: Option<usize>,
    /// Maximum number of pairs of the confirmation.
    pub confirmation_pairs: usize,
    /// Time for everything, s.
    pub budget_s: Option<f64>,
    /// Runs of `os-default` discarded at the start.
    pub warmup: usize,
    /// Does any exit status count as success?
    pub any_status: bool,
    /// What happened to the command's output: `discard`, `keep`, `inherit`, or the folder that got
    /// it.
    pub output: String,
}

/// Number of placements of this many threads, one CPU each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SpaceRecord {
    /// Threads.
    pub threads: usize,
    /// Placements that differ by more than the exchange of equal units, as a
    /// decimal number: it may have dozens of digits.
    pub placements: String,
    /// Those that are spread evenly: the search's candidates.
    pub shapes: usize,
}

/// A candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchArm {
    /// Its name as `--place` takes it, with ` @ N threads` if several numbers are searched; unique.
    pub name: String,
    /// Its common name, such as `8 cores in one LLC`; the placement, if that is a word.
    pub label: String,
    /// The placement alone.
    pub placement: String,
    /// Equal for equal placements on machines of equal trees; `null` for `os-default`.
    pub place_id: Option<String>,
    /// Threads; `null` for `os-default` if the program decides.
    pub threads: Option<usize>,
    /// Requested CPUs, as a list.
    pub cpus: String,
    /// Packages used.
    pub packages: usize,
    /// NUMA nodes used.
    pub numa_nodes: usize,
    /// Last-level caches used.
    pub llcs: usize,
    /// Cores used.
    pub cores: usize,
    /// CPUs used.
    pub cpu_count: usize,
    /// What the model sees of it, in the order of
    /// [`SearchModelRecord::features`].
    pub features: Vec<f64>,
    /// Was it made by moving one thread of another arm?
    pub refined_from: Option<String>,
    /// Why its runs do not count, if they do not.
    pub invalid: Option<String>,
}

/// One run of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchRun {
    /// Number of its arm in [`SearchRecord::arms`].
    pub arm: usize,
    /// What for.
    pub step: SearchStep,
    /// The run.
    #[serde(flatten)]
    pub run: RunRecord,
}

/// What a run of a search is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchStep {
    /// Thrown away.
    Warmup,
    /// To learn what the program is sensitive to.
    Profiling,
    /// To find the best arm.
    Search,
    /// To try moves of one thread.
    Refinement,
    /// Best against `os-default`, after the choice was made.
    Confirmation,
    /// The best shape on other CPUs against those of the confirmation.
    OtherCpus,
    /// The least resource against the best, after that.
    Least,
}

impl SearchStep {
    /// Is it for finding the best arm?
    #[must_use]
    pub const fn is_search(self) -> bool {
        matches!(self, Self::Profiling | Self::Search | Self::Refinement)
    }

    /// Is it a fresh comparison after the choice?
    #[must_use]
    pub const fn is_confirmation(self) -> bool {
        matches!(self, Self::Confirmation | Self::OtherCpus | Self::Least)
    }
}

/// What is expected of an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PredictedArm {
    /// The arm's name.
    pub arm: String,
    /// Cost that the model expects from all runs, those of this arm included, in the metric's unit
    /// (inverted for rates).
    pub predicted: f64,
    /// Lower end of the 90 % interval. It is that of the ratio to the bound arm with most runs, times
    /// the cost expected of that arm, so it leaves out how the machine's speed wanders over hours.
    /// For that arm itself it is the interval of its cost.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Expected over that of `os-default`.
    pub ratio: f64,
    /// As a change of the metric, in words.
    pub change: String,
    /// Runs of the arm that count.
    pub runs: usize,
    /// What its own runs alone say; `null` without any.
    pub measured: Option<Estimate>,
    /// The prediction before the arm's first run, if it had one.
    pub first_prediction: Option<FirstPredictionRecord>,
    /// Probability that it beats the best arm by more than the indifference
    /// zone.
    pub beats_best: f64,
    /// On a simulated machine: the truth, in the metric's unit.
    pub truth: Option<f64>,
}

/// What was expected of an arm before it was run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FirstPredictionRecord {
    /// Expected cost.
    pub predicted: f64,
    /// Lower end of the 90 % interval for a single run.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// What its first run then cost.
    pub measured: f64,
}

/// Who led when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ProgressPoint {
    /// Runs so far, as [`SearchRecord::runs_used`] counts them.
    pub runs: usize,
    /// The leader's name.
    pub leader: String,
    /// Its expected cost.
    pub predicted: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Probability that some arm beats it by more than the indifference zone.
    pub probability_of_better: f64,
    /// What taking it is expected to lose to the best of all, as a share of
    /// the best one's cost.
    pub expected_loss: f64,
    /// On a simulated machine: the leader's true cost over the true best,
    /// minus 1.
    pub true_regret: Option<f64>,
}

/// The model that predicts arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchModelRecord {
    /// What the program is sensitive to: effects on ln(cost) of one unit of a
    /// feature.
    pub features: Vec<FeatureRecord>,
    /// Standard deviation of ln(cost) from run to run.
    pub noise_sd: f64,
    /// Standard deviation of ln(cost) that blocks share.
    pub block_sd: f64,
    /// Standard deviation over placements of what features explain.
    pub explained_sd: f64,
    /// Standard deviation of what they do not, placement by placement.
    pub unexplained_sd: f64,
    /// Factor by which variances were widened because first runs of arms missed their predictions;
    /// 1 if they did not.
    pub inflation: f64,
    /// Median error of predictions made before an arm's first run, as a share;
    /// `null` with fewer than three.
    pub prediction_error: Option<f64>,
    /// What predictions were worth.
    pub judgement: ModelJudgement,
}

/// A feature of placements and what it costs this program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FeatureRecord {
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub meaning: String,
    /// Effect on ln(cost) of one unit.
    pub effect: f64,
    /// Its standard deviation.
    pub sd: f64,
    /// The effect over the range that candidates span, from the one with the least of it to the one
    /// with the most, with its 90 % interval, as a change of the metric; `null` if they are alike.
    pub change: Option<EffectRecord>,
    /// Is it more than twice its standard deviation from 0?
    pub is_clear: bool,
}

impl SearchRecord {
    /// The arm to use according to the answer: `os-default` if nothing beats it. `None` if it is
    /// undecided, or if nothing is recommended.
    #[must_use]
    pub fn recommended_arm(&self) -> Option<&SearchArm> {
        let is_best = |arm: &&SearchArm| Some(&arm.name) == self.best.as_ref();
        match self.verdict.kind {
            _ if self.verdict.not_recommended.is_some() => None,
            SearchAnswer::Best => self.arms.iter().find(is_best),
            SearchAnswer::LeaveAlone | SearchAnswer::DoesNotMatter => self.arms.first(),
            SearchAnswer::Undecided => None,
        }
    }

    /// A short title.
    #[must_use]
    pub fn title(&self) -> String {
        format!("search: {}", shell::line(&self.command))
    }
}

impl StoredRecord for SearchRecord {
    fn entry(&self) -> Entry {
        let (host, sentence) = (self.host.name(), &self.verdict.sentence);
        self.header
            .to_growing_entry::<Self>(self.stopped.as_ref(), host, self.title(), sentence)
    }
}
