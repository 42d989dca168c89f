//! An arm against the baseline as a record.

use serde::{Deserialize, Serialize};

use super::metric::EffectRecord;
use super::named::open_enum;
use super::outcome::GateOutcome;

open_enum! {
    /// How an arm compares with the baseline.
    ContrastVerdict {
        /// It costs less.
        Faster = "faster",
        /// It costs more.
        Slower = "slower",
        /// They differ by less than matters.
        Same = "same",
        /// Not decided.
        Undecided = "undecided",
    }
}

/// One arm against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContrastRecord {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub baseline: String,
    /// The judged statistic (`plan.judge`) of the arm's cost, divided by the baseline's: below 1 is
    /// better.
    pub ratio: f64,
    /// Lower end of the interval; `null` if there are too few runs for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of the interval, valid at all looks together.
    pub confidence: f64,
    /// p-value adjusted for arms and looks; at most `plan.alpha` exactly when the interval excludes
    /// 1.
    pub p_adjusted: f64,
    /// The verdict; a lower cost is `faster` whatever the metric.
    pub verdict: ContrastVerdict,
    /// `ratio` as a change of the metric.
    pub effect: EffectRecord,
    /// Whole blocks after which the arm was dropped as clearly behind the best; this contrast is
    /// based on them. `null` if it took part to the end.
    pub dropped_after: Option<usize>,
    /// The verdict in words, with its interval.
    pub sentence: String,
    /// A further note, as a sentence; `null` without one.
    pub beside: Option<String>,
    /// Further time until the interval is ±`min_effect`, if undecided.
    pub more_time_s: Option<f64>,
    /// CPU time (user and system). It does not include waiting, so on a busy machine its interval
    /// is narrower than that of wall time. `null` if a run did not report it.
    pub cpu_time: Option<ComponentRecord>,
    /// Wall time per CPU time: waiting, and threads that run in parallel. The product of this ratio
    /// and that of CPU time is about the ratio of wall time.
    pub wall_per_cpu_time: Option<ComponentRecord>,
    /// Ready time per CPU time: how long threads ran or were queued for a CPU, per CPU time. `null`
    /// if a run does not say how long it was queued.
    pub ready_per_cpu_time: Option<ComponentRecord>,
    /// Wall time per ready time: changes if threads are blocked or run in parallel. The product of
    /// this and `ready_per_cpu_time` is about `wall_per_cpu_time`.
    pub wall_per_ready_time: Option<ComponentRecord>,
    /// Ratios of total and tail.
    pub totals: Option<TotalsRecord>,
    /// How it compares with the slow-down that was allowed (`--fail-if-slower`); `null` if none
    /// was.
    pub limit: Option<LimitRecord>,
    /// The same contrast by the other statistics, each with its own interval at the same level.
    pub others: Vec<JudgedRecord>,
    /// Does the ratio's sign depend on load, or does its size change by more than itself? Then no
    /// arm is recommended.
    pub depends_on_load: bool,
    /// Does another statistic show the opposite? Then there is no verdict.
    pub depends_on_tail: bool,
    /// Does the result depend on which arm ran before? Then there is no verdict.
    pub depends_on_order: bool,
    /// Does only the first half support the result? Then there is no verdict.
    pub depends_on_time: bool,
    /// The typical ratio under light and heavy load, if it differs; `null` if that is not shown.
    pub by_load: Option<SplitRecord>,
    /// The typical ratio under light, medium and heavy load, whether it differs or not; `null` if
    /// the load is unknown or did not vary.
    pub load_levels: Option<LoadLevelsRecord>,
    /// The typical ratio after the same predecessor and after others; as `by_load` otherwise.
    pub by_order: Option<SplitRecord>,
    /// The typical ratio early and late; as `by_load` otherwise.
    pub by_time: Option<SplitRecord>,
    /// Spread of the arm's runs around their local level, divided by the baseline's: below 1 varies
    /// less. `null` with too few blocks.
    pub spread_ratio: Option<f64>,
    /// Lower end of its interval; `null` with too few blocks.
    pub spread_low: Option<f64>,
    /// Upper end.
    pub spread_high: Option<f64>,
    /// p-value adjusted for the arms; as `p_adjusted` otherwise.
    pub spread_p_adjusted: Option<f64>,
}

impl ContrastRecord {
    /// Is the arm shown to differ from the baseline?
    #[must_use]
    pub const fn is_decided(&self) -> bool {
        matches!(
            self.verdict,
            ContrastVerdict::Faster | ContrastVerdict::Slower
        )
    }

    /// CPU time, if it decides what the figure leaves open.
    #[must_use]
    pub fn deciding_cpu_time(&self) -> Option<&ComponentRecord> {
        self.cpu_time.as_ref().filter(|cpu_time| cpu_time.decides)
    }

    /// Does something other than the interval forbid a verdict?
    #[must_use]
    pub const fn is_withheld(&self) -> bool {
        self.depends_on_load
            || self.depends_on_tail
            || self.depends_on_order
            || self.depends_on_time
    }

    /// What forbids the verdict that the interval would allow, in a word: the first reason that the
    /// sentence names. `None` if nothing does, or if there is no interval yet. `is_coarse` says
    /// that the figure has large steps.
    #[must_use]
    pub(crate) fn find_withholding_reason(&self, is_coarse: bool) -> Option<&'static str> {
        let is_open = self.verdict == ContrastVerdict::Undecided;
        let has_interval = self.low.is_some() && self.high.is_some();
        if !is_open || !has_interval || self.deciding_cpu_time().is_some() {
            return None;
        }
        // Load that changes only the size does not forbid a verdict.
        let changes_sign = |split: SplitRecord| (split.first > 1.0) != (split.second > 1.0);
        match () {
            () if self.depends_on_order => Some("order"),
            () if self.depends_on_time => Some("time"),
            () if self.depends_on_load && self.by_load.is_some_and(changes_sign) => Some("load"),
            () if self.depends_on_tail => Some("tail"),
            () if is_coarse => Some("steps"),
            () => None,
        }
    }

    /// What makes up the difference, in words: CPU time, and the rest: queueing and blocking if
    /// they are known apart.
    pub(crate) fn describe_components(&self) -> Option<String> {
        let describe = |part: &ComponentRecord| part.effect.describe_with_interval();
        let mut text = format!("CPU time {}", describe(self.cpu_time.as_ref()?));
        let rest = match (&self.ready_per_cpu_time, &self.wall_per_ready_time) {
            (Some(queued), Some(blocked)) => {
                vec![
                    ("queueing for CPUs", queued),
                    ("blocking and parallelism", blocked),
                ]
            }
            _ => self
                .wall_per_cpu_time
                .iter()
                .map(|rest| ("wall per CPU time", rest))
                .collect(),
        };
        for (name, part) in rest.into_iter().filter(|(_, part)| part.differs()) {
            text.push_str(&format!(", {name} {}", describe(part)));
        }
        Some(format!("{text}."))
    }
}

/// How an arm compares with the slow-down that was allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LimitRecord {
    /// The allowed slow-down, as a share of the cost.
    pub limit: f64,
    /// As for a benchmark of a gate: `slower` by more than the limit, `passed`, or `undecided`.
    pub outcome: GateOutcome,
    /// In words.
    pub sentence: String,
}

/// Ratios of the mean and of the 90th percentile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TotalsRecord {
    /// Mean of the arm's cost, divided by the baseline's.
    pub mean_ratio: f64,
    /// 90th percentile of the arm's cost, divided by the baseline's.
    pub p90_ratio: f64,
    /// `mean_ratio` as a change of the metric, in words.
    pub mean: String,
    /// `p90_ratio` as a change of the metric, in words.
    pub p90: String,
}

/// A contrast by another statistic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JudgedRecord {
    /// `typical`, `mean` or a percentile such as `p90`.
    pub judge: String,
    /// Cost of the arm over that of the baseline.
    pub ratio: f64,
    /// Lower end of its interval; `null` if there are too few runs for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// `ratio` as a change of the metric.
    pub effect: EffectRecord,
}

/// A component of a difference, in the typical run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComponentRecord {
    /// The arm's component, divided by the baseline's.
    pub ratio: f64,
    /// Lower end of its interval, at the level of the contrast; `null` if there are too few runs
    /// for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Does this component decide the verdict, because wall-clock time leaves it open?
    pub decides: bool,
    /// `ratio` as a change.
    pub effect: EffectRecord,
}

impl ComponentRecord {
    /// A ratio within these ends.
    #[must_use]
    pub fn new(ratio: f64, low: Option<f64>, high: Option<f64>) -> Self {
        let percent = |ratio: f64| 100.0 * (ratio - 1.0);
        Self {
            ratio,
            low,
            high,
            decides: false,
            effect: EffectRecord::from_percent(percent(ratio), low.map(percent), high.map(percent)),
        }
    }

    /// Does its interval exclude "no difference"?
    fn differs(&self) -> bool {
        let is_higher = self.low.is_some_and(|low| low > 1.0);
        is_higher || self.high.is_some_and(|high| high < 1.0)
    }
}

/// A typical ratio in two parts of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SplitRecord {
    /// Under the lightest third of the load, after the same predecessor, or in the first third of
    /// the time.
    pub first: f64,
    /// Under the heaviest third of the load, after other predecessors, or in the last third.
    pub second: f64,
}

/// A typical ratio by the CPUs that other processes used, for each third of the blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadLevelsRecord {
    /// While other processes used the fewest CPUs.
    pub light: LoadLevelRecord,
    /// Between the two; `null` if the load had only two states.
    pub medium: Option<LoadLevelRecord>,
    /// While other processes used the most CPUs.
    pub heavy: LoadLevelRecord,
}

/// A typical ratio under some load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadLevelRecord {
    /// CPUs that other processes used, median of the blocks.
    pub foreign_cpus: f64,
    /// The arm's cost over that of the baseline.
    pub ratio: f64,
    /// `ratio` as a change of the metric, in words.
    pub change: String,
}

impl LoadLevelsRecord {
    /// The existing levels, the lightest first.
    pub fn all(&self) -> impl Iterator<Item = &LoadLevelRecord> {
        [Some(&self.light), self.medium.as_ref(), Some(&self.heavy)]
            .into_iter()
            .flatten()
    }

    /// The same, to be changed.
    pub(crate) fn all_mut(&mut self) -> impl Iterator<Item = &mut LoadLevelRecord> {
        [
            Some(&mut self.light),
            self.medium.as_mut(),
            Some(&mut self.heavy),
        ]
        .into_iter()
        .flatten()
    }
}
