//! Judges a claim of a report by the result of an experiment.
//!
//! A figure that set a parameter of the simulation is *given*: it is shown beside the result but not
//! counted. Everything else is judged by its direction, and by its size if the report is accurate
//! enough for that.

use pinwise_format::signed_percent;
use pinwise_record::{ClaimRecord, ClaimVerdict, ExperimentRecord};

/// Smaller changes have no direction.
const SAME_PERCENT: f64 = 0.5;

/// An experiment with its claims.
pub(super) fn experiment(name: &str, question: &str, claims: Vec<ClaimRecord>) -> ExperimentRecord {
    ExperimentRecord {
        name: name.to_owned(),
        question: question.to_owned(),
        claims,
    }
}

/// The measured figure with its interval, in the claim's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClaimResult {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl ClaimResult {
    /// A computed figure, without an interval.
    pub(super) const fn exactly(value: f64) -> Self {
        Self {
            value,
            low: value,
            high: value,
        }
    }
}

/// When a claim counts as reproduced.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Judge {
    /// The direction is the same, and the figure is off by at most this many units.
    Size(f64),
    /// The direction is the same: up, down, or no change.
    Direction,
    /// The figure is off by at most this many units.
    Within(f64),
}

/// A claim as a report makes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim {
    record: ClaimRecord,
    /// Does the report give no exact figure?
    is_vague: bool,
}

impl Claim {
    /// A claim, and what the report says about it.
    pub(super) fn new(claim: impl Into<String>, reported: impl Into<String>) -> Self {
        Self {
            record: ClaimRecord {
                claim: claim.into(),
                reported: reported.into(),
                measured: None,
                reported_value: None,
                measured_value: None,
                measured_low: None,
                measured_high: None,
                unit: String::new(),
                tolerance: None,
                verdict: ClaimVerdict::NotHere,
                why: String::new(),
            },
            is_vague: false,
        }
    }

    /// A claim for which the report gives no exact figure, such as `about 1.2 s`.
    pub(super) fn vague(claim: impl Into<String>, reported: impl Into<String>) -> Self {
        Self {
            is_vague: true,
            ..Self::new(claim, reported)
        }
    }

    /// A claim about a change in per cent.
    pub(super) fn change(claim: impl Into<String>, percent: f64) -> Self {
        Self::new(claim, signed(percent)).with_figure(percent, "%")
    }

    /// Adds the reported figure.
    pub(super) fn with_figure(mut self, value: f64, unit: &str) -> Self {
        self.record.reported_value = Some(value);
        unit.clone_into(&mut self.record.unit);
        self
    }

    /// Sets the unit of a change for which the report has no figure.
    pub(super) fn in_percent(mut self) -> Self {
        "%".clone_into(&mut self.record.unit);
        self
    }

    /// Shows the result without judging it: the claim set a parameter, or nothing predicts it.
    pub(super) fn show_given(mut self, result: Option<ClaimResult>, why: &str) -> ClaimRecord {
        if let Some(result) = result {
            self.add_result(result);
        }
        self.finish(ClaimVerdict::Given, why)
    }

    /// Records that the claim cannot be tested on this machine, for this reason.
    pub(super) fn mark_untestable(self, why: &str) -> ClaimRecord {
        self.finish(ClaimVerdict::NotHere, why)
    }

    /// Judges the claim by its figure.
    pub(super) fn judge_figure(mut self, result: ClaimResult, judge: Judge) -> ClaimRecord {
        self.add_result(result);
        let reported = self.record.reported_value.unwrap_or(f64::NAN);
        let difference = (result.value - reported).abs();
        let unit = self.record.unit.clone();
        let distance = match unit.as_str() {
            "%" => format!("{} points off", round_figure(difference)),
            unit => format!("{} {unit} off", round_figure(difference)),
        };
        let allowed = |most: f64| match unit.as_str() {
            "%" => format!("{most} points"),
            unit => format!("{most} {unit}"),
        };
        self.record.tolerance = Some(match judge {
            Judge::Within(most) => allowed(most),
            Judge::Size(most) => format!("{}, same direction", allowed(most)),
            Judge::Direction => "direction".to_owned(),
        });
        let is_same_direction = direction(result.value) == direction(reported);
        let (holds, why) = match judge {
            Judge::Within(most) => (difference <= most, format!("{distance}, {most} allowed")),
            Judge::Size(most) => {
                let words = if is_same_direction {
                    format!("{distance}, {most} allowed")
                } else {
                    "the other direction".to_owned()
                };
                (is_same_direction && difference <= most, words)
            }
            Judge::Direction if is_same_direction => (
                true,
                format!("by its direction; {distance}, and the report states no error"),
            ),
            Judge::Direction => (false, "another direction".to_owned()),
        };
        self.decide(holds, &why)
    }

    /// Judges the claim by a condition on the result.
    pub(super) fn judge_condition(
        mut self,
        measured: impl Into<String>,
        holds: bool,
        why: &str,
    ) -> ClaimRecord {
        self.record.measured = Some(measured.into());
        self.decide(holds, why)
    }

    fn add_result(&mut self, result: ClaimResult) {
        let record = &mut self.record;
        record.measured = Some(if record.unit == "%" {
            signed(result.value)
        } else {
            format!("{} {}", round_figure(result.value), record.unit)
        });
        record.measured_value = Some(result.value);
        record.measured_low = Some(result.low);
        record.measured_high = Some(result.high);
    }

    fn decide(self, holds: bool, why: &str) -> ClaimRecord {
        let verdict = match holds {
            true if self.is_vague => ClaimVerdict::Consistent,
            true => ClaimVerdict::Reproduced,
            false => ClaimVerdict::Contradicted,
        };
        self.finish(verdict, why)
    }

    fn finish(mut self, verdict: ClaimVerdict, why: &str) -> ClaimRecord {
        self.record.verdict = verdict;
        why.clone_into(&mut self.record.why);
        self.record
    }
}

/// -1, 0 or 1.
fn direction(percent: f64) -> i8 {
    if percent.abs() < SAME_PERCENT {
        0
    } else if percent < 0.0 {
        -1
    } else {
        1
    }
}

/// `+1.2 %`, `−3.5 %`, from per cent.
pub(super) fn signed(percent: f64) -> String {
    signed_percent(percent / 100.0)
}

fn round_figure(value: f64) -> String {
    let digits = if value.abs() < 10.0 { 2 } else { 1 };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reported: f64, measured: f64, judge: Judge, expected: ClaimVerdict) {
        let result = ClaimResult::exactly(measured);
        let claim = Claim::change("x", reported).judge_figure(result, judge);
        assert_eq!(
            claim.verdict, expected,
            "{reported} {measured}: {}",
            claim.why
        );
    }

    #[test]
    fn claims_are_judged_by_size_direction_or_distance() {
        use ClaimVerdict::{Contradicted, Reproduced};
        check(-3.5, -2.4, Judge::Size(3.0), Reproduced);
        check(-3.5, -8.0, Judge::Size(3.0), Contradicted);
        check(-1.5, 1.1, Judge::Size(3.0), Contradicted);
        check(-30.0, -2.0, Judge::Direction, Reproduced);
        check(0.2, -0.1, Judge::Direction, Reproduced);
        check(-0.8, -15.0, Judge::Direction, Reproduced);
        check(5.0, 0.4, Judge::Direction, Contradicted);
        check(-0.5, 0.5, Judge::Within(3.0), Reproduced);
    }

    #[test]
    fn a_vague_figure_is_at_most_consistent() {
        let judged = |value| {
            let claim = Claim::vague("x", "about 1.2 s").with_figure(1.2, "s");
            let result = ClaimResult::exactly(value);
            claim.judge_figure(result, Judge::Within(0.2)).verdict
        };
        assert_eq!(judged(1.2), ClaimVerdict::Consistent);
        assert_eq!(judged(1.5), ClaimVerdict::Contradicted);
    }

    #[test]
    fn given_figures_are_never_judged() {
        let claim =
            Claim::change("x", 20.0).show_given(Some(ClaimResult::exactly(99.0)), "set the yield");
        assert_eq!(claim.verdict, ClaimVerdict::Given);
        assert_eq!(claim.measured.as_deref(), Some("+99.0 %"));
        assert_eq!(signed(-3.5), "−3.5 %");
    }
}
