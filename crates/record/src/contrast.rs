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
        /// None of these is shown.
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
    /// What is judged (`plan.judge`) of the arm's cost over that of the
    /// baseline's: below 1 is better.
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
    /// Number of whole blocks, on which this is based, after which the arm was dropped as clearly
    /// behind the best; `null` if it took part to the end.
    pub dropped_after: Option<usize>,
    /// The verdict in words, with its interval.
    pub sentence: String,
    /// A further note, as a sentence; `null` without one.
    pub beside: Option<String>,
    /// Further time until the interval is ±`min_effect`, if undecided.
    pub more_time_s: Option<f64>,
    /// CPU time (user and system): blind to waiting, and so tighter than wall time if others want
    /// the CPUs. `null` if a run did not report it.
    pub cpu_time: Option<ComponentRecord>,
    /// The rest of wall time: waiting, and threads that run at once. The product
    /// of both ratios is about that of wall time.
    pub wall_per_cpu_time: Option<ComponentRecord>,
    /// Of that rest, time queued: how long threads were ready to run, on a CPU or queued for one,
    /// per CPU time. `null` if a run does not say how long it was queued.
    pub ready_per_cpu_time: Option<ComponentRecord>,
    /// The rest: wall time per time ready, which changes if threads are blocked or run at once. The
    /// product of both is about `wall_per_cpu_time`.
    pub wall_per_ready_time: Option<ComponentRecord>,
    /// Ratios of total and tail.
    pub totals: Option<TotalsRecord>,
    /// How it compares with the slow-down that was allowed (`--fail-if-slower`); `null` if none
    /// was.
    pub limit: Option<LimitRecord>,
    /// The same contrast by the other judges, each with an interval of its own at the same level.
    pub others: Vec<JudgedRecord>,
    /// Does the ratio depend on load, in sign or by more than its size? Then
    /// there is no advice to run anything.
    pub depends_on_load: bool,
    /// Does another judge say the opposite? Then there is no verdict.
    pub depends_on_tail: bool,
    /// Whether the verdict depends on which arm ran before. Then there is none.
    pub depends_on_order: bool,
    /// Whether only the first half supports the verdict. Then there is none.
    pub depends_on_time: bool,
    /// The typical ratio under light and heavy load, if it differs; `null` if that is not shown.
    pub by_load: Option<SplitRecord>,
    /// The typical ratio under light, medium and heavy load, whether it differs or not; `null` if
    /// the load is unknown or did not vary.
    pub load_levels: Option<LoadLevelsRecord>,
    /// After the same predecessor and elsewhere, as `by_load`.
    pub by_order: Option<SplitRecord>,
    /// Early and late, as `by_load`.
    pub by_time: Option<SplitRecord>,
    /// Spread of the arm's runs around their local level over that of the
    /// baseline's: below 1 repeats better. `null` with too few blocks.
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

    /// Does something other than its interval contradict a verdict?
    #[must_use]
    pub const fn is_withheld(&self) -> bool {
        self.depends_on_load
            || self.depends_on_tail
            || self.depends_on_order
            || self.depends_on_time
    }

    /// What withholds the verdict that its interval might give, in a word; the first that the
    /// sentence would name. `None` if nothing does, or if there is no interval yet. `is_coarse`: the
    /// figure comes in large steps.
    #[must_use]
    pub(crate) fn withheld_by(&self, is_coarse: bool) -> Option<&'static str> {
        let is_open = self.verdict == ContrastVerdict::Undecided;
        let has_interval = self.low.is_some() && self.high.is_some();
        let is_by_cpu_time = self.cpu_time.as_ref().is_some_and(|cpu| cpu.decides);
        if !is_open || !has_interval || is_by_cpu_time {
            return None;
        }
        // Load that changes the size alone withholds no verdict.
        let turns = |split: SplitRecord| (split.first > 1.0) != (split.second > 1.0);
        match () {
            () if self.depends_on_order => Some("order"),
            () if self.depends_on_time => Some("time"),
            () if self.depends_on_load && self.by_load.is_some_and(turns) => Some("load"),
            () if self.depends_on_tail => Some("tail"),
            () if is_coarse => Some("steps"),
            () => None,
        }
    }

    /// What makes up the difference, in words: CPU time, and the rest: queueing and blocking if
    /// they are known apart.
    pub(crate) fn components(&self) -> Option<String> {
        let words = |part: &ComponentRecord| part.effect.describe_with_interval();
        let mut text = format!("CPU time {}", words(self.cpu_time.as_ref()?));
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
            text.push_str(&format!(", {name} {}", words(part)));
        }
        Some(format!("{text}."))
    }
}

/// How an arm compares with the slow-down that was allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LimitRecord {
    /// That slow-down, as a share of the cost.
    pub limit: f64,
    /// As of a benchmark of a gate: `slower` by more, `passed`, or `undecided`.
    pub outcome: GateOutcome,
    /// In words.
    pub sentence: String,
}

/// Ratios of the mean and of the 90th percentile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TotalsRecord {
    /// Mean of the arm's cost over that of the baseline.
    pub mean_ratio: f64,
    /// 90th percentile over that of the baseline.
    pub p90_ratio: f64,
    /// The first as a change of the metric, in words.
    pub mean: String,
    /// The second as a change of the metric, in words.
    pub p90: String,
}

/// A contrast as another judge sees it.
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

/// A part of a difference, in the typical run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComponentRecord {
    /// The arm's over that of the baseline.
    pub ratio: f64,
    /// Lower end of its interval, at the level of the contrast; `null` if there are too few runs
    /// for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Is it the verdict on the arm, which wall-clock time leaves open?
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
    /// Under the lightest third of the load; after the same predecessor; in the
    /// first third.
    pub first: f64,
    /// Under the heaviest third; after different ones; in the last third.
    pub second: f64,
}

/// A typical ratio by the CPUs that others used, each of a third of the blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadLevelsRecord {
    /// While others used least.
    pub light: LoadLevelRecord,
    /// Between the two; `null` if the load had only two states.
    pub medium: Option<LoadLevelRecord>,
    /// While others used most.
    pub heavy: LoadLevelRecord,
}

/// A typical ratio under some load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LoadLevelRecord {
    /// CPUs that others used, median of the blocks.
    pub foreign_cpus: f64,
    /// The arm's cost over that of the baseline.
    pub ratio: f64,
    /// `ratio` as a change of the metric, in words.
    pub change: String,
}

impl LoadLevelsRecord {
    /// The existing levels, the lightest first.
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
