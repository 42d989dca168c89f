//! The result of a search: fresh pairs, the smallest placement that is nearly as good, the verdict.

use serde::{Deserialize, Serialize};

use crate::command_line::CommandRecord;
use crate::comparison::NotRecommended;
use crate::metric::HeadlineRecord;
use crate::named::open_enum;
use pinwise_format::percent;

open_enum! {
    /// What fresh pairs show about an arm.
    PairsVerdict {
        /// It costs less.
        Faster = "faster",
        /// It costs more.
        Slower = "slower",
        /// They differ by less than the indifference zone.
        Same = "same",
        /// It does not cost more by the indifference zone.
        NotSlower = "not_slower",
        /// It does not cost less by the indifference zone.
        NotFaster = "not_faster",
        /// Undecided.
        Undecided = "undecided",
    }
}

/// The best arm compared with `os-default`, in pairs of runs after the choice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConfirmationRecord {
    /// The arm.
    pub arm: String,
    /// Number of pairs of runs.
    pub pairs: usize,
    /// Number of runs: two per pair.
    pub runs: usize,
    /// Typical cost divided by that of `os-default`.
    pub ratio: f64,
    /// Lower end of the interval; `null` if there are too few pairs for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of the interval, valid at any time.
    pub confidence: f64,
    /// The verdict.
    pub verdict: PairsVerdict,
    /// In words, with the interval.
    pub sentence: String,
}

/// The best shape on other CPUs: are all CPUs of a shape equally good?
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OtherCpusRecord {
    /// The arm on other CPUs.
    pub arm: String,
    /// The arm with the same shape that it is compared with.
    pub against: String,
    /// Pairs.
    pub pairs: usize,
    /// Typical cost divided by that of `against`.
    pub ratio: f64,
    /// Lower end of the interval; `null` if there are too few pairs for one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Confidence of the interval, valid at any time.
    pub confidence: f64,
    /// The verdict against that arm, as in a confirmation.
    pub verdict: PairsVerdict,
    /// In words.
    pub sentence: String,
}

/// The smallest placement that is nearly as good as the best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeastRecord {
    /// The arm.
    pub arm: String,
    /// Expected performance divided by that of the best arm: 0.98 is 98 % of it.
    pub of_best: f64,
    /// Lower end of the 90 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Was it run, or only predicted?
    pub measured: bool,
    /// Number of fresh pairs with the best arm, including those of a smaller placement that they
    /// did not confirm.
    pub pairs: usize,
    /// Do those pairs confirm that it is within the limit, at an error of 5 %? If so, the interval
    /// is theirs.
    pub confirmed: bool,
    /// In words: "4 cores of one LLC: 98 % of the best".
    pub sentence: String,
    /// The evidence for it, in words; empty if it is the best arm itself.
    pub basis: String,
    /// Commands that run it, if it is not the best arm itself.
    pub commands: Vec<CommandRecord>,
}

impl LeastRecord {
    pub(super) fn describe_basis(&self) -> String {
        let known = match (self.confirmed, self.measured) {
            (true, _) => format!("{} fresh pairs", self.pairs),
            (false, true) => "measured, not confirmed".to_owned(),
            (false, false) => "predicted, not confirmed".to_owned(),
        };
        let (low, high) = (percent(self.low), percent(self.high));
        format!("{known}, 90 % interval {low} to {high}")
    }
}

/// Kinds of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchAnswer {
    /// One placement is best, and better than `os-default`.
    Best,
    /// Nothing beats `os-default` by more than the indifference zone, although placements differ.
    LeaveAlone,
    /// No placement differs from `os-default` by more than the indifference zone.
    DoesNotMatter,
    /// Undecided.
    Undecided,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SearchVerdict {
    /// The kind of verdict.
    pub kind: SearchAnswer,
    /// In words.
    pub sentence: String,
    /// The most informative figure; `null` without a confirmation.
    pub headline: Option<HeadlineRecord>,
    /// Further results, as sentences.
    pub beside: Vec<String>,
    /// What to do, or what is missing for an answer.
    pub advice: String,
    /// Commands that run the best arm; empty if that is `os-default`.
    pub commands: Vec<CommandRecord>,
    /// Why the best arm has no commands although it could be run; `advice` says it in
    /// words. `null` otherwise.
    pub not_recommended: Option<NotRecommended>,
    /// The conditions under which it holds.
    pub condition: String,
}

/// The truth of a simulated machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TruthRecord {
    /// The arm that is truly best.
    pub best: String,
    /// Its cost.
    pub cost: f64,
    /// The cost of `os-default` divided by that cost.
    pub default_ratio: f64,
    /// Median error of the predictions of arms that were never run, as a share; `null` if all were
    /// run.
    pub prediction_error: Option<f64>,
    /// Share of the true costs that lie inside their 90 % intervals, both relative to the bound arm
    /// with the most runs.
    pub coverage: f64,
}
