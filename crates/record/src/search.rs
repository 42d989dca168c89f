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
    /// How well the features explain the costs.
    ModelJudgement {
        /// Features explain the costs of placements.
        Fits = "fits",
        /// Features leave part of the costs unexplained.
        Misfits = "misfits",
        /// Features leave most of the costs unexplained.
        Useless = "useless",
    }
}

/// A search: candidates, every run, the model, the answer. It is stored as it grows. If it was
/// interrupted, `stopped` is `null` and `pinwise search --resume` continues it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.search/1")]
pub struct SearchRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The arguments of the command line that started it, without the store; empty if there was
    /// none.
    pub argv: Vec<String>,
    /// The command that repeats it with the same seed; `null` if no command line started it.
    pub again: Option<String>,
    /// The machine it ran on.
    pub host: HostRecord,
    /// The command's arguments; `{threads}` is replaced by the number of threads.
    pub command: Vec<String>,
    /// Surroundings of the command.
    pub workload: WorkloadRecord,
    /// The metric whose cost is minimised.
    pub metric: MetricRecord,
    /// Seed of the order of runs (and of a simulated machine's noise).
    pub seed: u64,
    /// How it was planned.
    pub plan: SearchPlanRecord,
    /// Number of placements, for each number of threads.
    pub space: Vec<SpaceRecord>,
    /// The candidates: `os-default` first, then shapes, then placements that were derived by moving
    /// one thread.
    pub arms: Vec<SearchArm>,
    /// Every run, in order of time.
    pub runs: Vec<SearchRun>,
    /// The prediction for every arm; `[]` before the first runs.
    pub predictions: Vec<PredictedArm>,
    /// The leader after each block.
    pub progress: Vec<ProgressPoint>,
    /// The model at the end; `null` before the first runs.
    pub model: Option<SearchModelRecord>,
    /// Name of the best arm; `null` if none is known.
    pub best: Option<String>,
    /// Runs needed to find it: profiling, search and refinement, including those of `os-default`,
    /// without warm-up and confirmation.
    pub runs_used: usize,
    /// The best arm compared with `os-default` in fresh runs; `null` if that was not done.
    pub confirmation: Option<ConfirmationRecord>,
    /// The best shape on other CPUs, compared in pairs with the CPUs that it was found on; empty
    /// without an answer or without `confirmation_pairs`.
    pub other_cpus: Vec<OtherCpusRecord>,
    /// The smallest placement that is nearly as good; `null` if unknown, and if CPUs of one shape
    /// differ.
    pub least: Option<LeastRecord>,
    /// The result.
    pub verdict: SearchVerdict,
    /// The indifference zone that was used: `plan.within`, or if larger, half the standard
    /// deviation of a run, but at most 3 %.
    pub zone: f64,
    /// On a simulated machine: the true cost of `best` divided by that of the true best, minus 1;
    /// `null` elsewhere and without a best arm.
    pub true_regret: Option<f64>,
    /// On a simulated machine: the true best.
    pub truth: Option<TruthRecord>,
    /// Why it ended; `null` while it runs or if it was cut off.
    pub stopped: Option<Stopped>,
    /// Why it ended, in words, or that it has not.
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
    /// Threads of `os-default` if that was set; `null` if the program decides.
    pub default_threads: Option<usize>,
    /// Threads of `os-default` as counted in a run before the search; `null` if they were set.
    pub counted_threads: Option<usize>,
    /// Is the number of threads set by the environment of each run?
    pub sets_threads: bool,
    /// The indifference zone, as a share: a placement that is better by less may be missed. If runs
    /// vary much, the zone grows with their noise, see [`SearchRecord::zone`].
    pub within: f64,
    /// How much worse the smallest placement may be, as a share.
    pub least_within: f64,
    /// The search may end while the probability that another arm is better by three times `within`
    /// is at most this, and the expected loss at most `within`.
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
    /// The use of the command's output: `discard`, `keep`, `inherit`, or the folder that it is
    /// written to.
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
    /// Number of placements that are spread evenly: the search's candidates.
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
    /// Its features for the model, in the order of [`SearchModelRecord::features`].
    pub features: Vec<f64>,
    /// The arm from which it was derived by moving one thread; `null` for others.
    pub refined_from: Option<String>,
    /// Why its runs do not count, if they do not.
    pub invalid: Option<String>,
}

/// One run of a search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchRun {
    /// Index of its arm in [`SearchRecord::arms`].
    pub arm: usize,
    /// The purpose of the run.
    pub step: SearchStep,
    /// The run.
    #[serde(flatten)]
    pub run: RunRecord,
}

/// The purpose of a run of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchStep {
    /// Discarded.
    Warmup,
    /// To learn what the program is sensitive to.
    Profiling,
    /// To find the best arm.
    Search,
    /// To try moves of one thread.
    Refinement,
    /// To compare the best arm with `os-default`, after the choice.
    Confirmation,
    /// To compare other CPUs of the best shape with those of the confirmation.
    OtherCpus,
    /// To compare the smallest good placement with the best, last of all.
    Least,
}

impl SearchStep {
    /// Does it help to find the best arm?
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

/// The prediction for an arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PredictedArm {
    /// The arm's name.
    pub arm: String,
    /// Cost that the model expects from all runs, those of this arm included, in the metric's unit
    /// (inverted for rates).
    pub predicted: f64,
    /// Lower end of the 90 % interval. The interval is that of the ratio to the bound arm with the
    /// most runs, times the expected cost of that arm: so it leaves out drifts of the machine's
    /// speed over hours. For that arm itself it is the interval of its cost.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Expected cost divided by that of `os-default`.
    pub ratio: f64,
    /// `ratio` as a change of the metric, in words.
    pub change: String,
    /// Runs of the arm that count.
    pub runs: usize,
    /// The estimate from its own runs alone; `null` without any.
    pub measured: Option<Estimate>,
    /// The prediction before the arm's first run, if it had one.
    pub first_prediction: Option<FirstPredictionRecord>,
    /// Probability that it beats the best arm by more than the indifference
    /// zone.
    pub beats_best: f64,
    /// On a simulated machine: the truth, in the metric's unit.
    pub truth: Option<f64>,
}

/// The prediction for an arm before its first run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FirstPredictionRecord {
    /// Expected cost.
    pub predicted: f64,
    /// Lower end of the 90 % interval for a single run.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The measured cost of its first run.
    pub measured: f64,
}

/// The leader at a moment of the search.
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
    /// Expected loss of choosing it instead of the best, as a share of the best one's cost.
    pub expected_loss: f64,
    /// On a simulated machine: the leader's true cost divided by that of the true best, minus 1.
    pub true_regret: Option<f64>,
}

/// The model that predicts arms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchModelRecord {
    /// The features with their effects: the sensitivities of the program.
    pub features: Vec<FeatureRecord>,
    /// Standard deviation of ln(cost) from run to run.
    pub noise_sd: f64,
    /// Standard deviation of ln(cost) that blocks share.
    pub block_sd: f64,
    /// Standard deviation over placements of what features explain.
    pub explained_sd: f64,
    /// Standard deviation over placements of what features do not explain.
    pub unexplained_sd: f64,
    /// Factor by which variances were widened because first runs of arms missed their predictions;
    /// 1 if they did not.
    pub inflation: f64,
    /// Median error of predictions made before an arm's first run, as a share;
    /// `null` with fewer than three.
    pub prediction_error: Option<f64>,
    /// How well the features explain the costs.
    pub judgement: ModelJudgement,
}

/// A feature of placements and its effect on this program's cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FeatureRecord {
    /// Its name.
    pub name: String,
    /// Its meaning, in words.
    pub meaning: String,
    /// Effect on ln(cost) of one unit.
    pub effect: f64,
    /// Its standard deviation.
    pub sd: f64,
    /// The effect over the candidates' range, from the smallest value of the feature to the
    /// largest, as a change of the metric with its 90 % interval; `null` if all candidates have the
    /// same value.
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
