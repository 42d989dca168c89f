//! A claim of a report against the result.
//!
//! A figure that set a parameter is *given*: it is shown beside the result and never counted.
//! Everything else is judged by its direction, and by its size if the report's own accuracy allows
//! that.

use pinwise_format::signed_percent;
use pinwise_record::{ClaimRecord, ClaimVerdict, ExperimentRecord};

/// Changes below this are no direction.
const SAME_PERCENT: f64 = 0.5;

/// An experiment with its claims.
pub(super) fn experiment(name: &str, question: &str, claims: Vec<ClaimRecord>) -> ExperimentRecord {
    ExperimentRecord {
        name: name.to_owned(),
        question: question.to_owned(),
        claims,
    }
}

/// A result: a figure with its interval, in the claim's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ClaimResult {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl ClaimResult {
    /// A figure that is computed, not measured.
    pub(super) const fn exactly(value: f64) -> Self {
        Self {
            value,
            low: value,
            high: value,
        }
    }
}

/// How a claim is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Judge {
    /// Same direction, and off by at most this many units.
    Size(f64),
    /// Same direction: up, down, or the same.
    Direction,
    /// At most this many units off.
    Within(f64),
}

/// A claim as a report makes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Claim {
    record: ClaimRecord,
}

impl Claim {
    /// A claim in words: `reported` is what the report says.
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
                verdict: ClaimVerdict::NotHere,
                why: String::new(),
            },
        }
    }

    /// A claim of a change in per cent.
    pub(super) fn change(claim: impl Into<String>, percent: f64) -> Self {
        Self::new(claim, signed(percent)).figure(percent, "%")
    }

    /// With its figure.
    pub(super) fn figure(mut self, value: f64, unit: &str) -> Self {
        self.record.reported_value = Some(value);
        unit.clone_into(&mut self.record.unit);
        self
    }

    /// For a change that the report gives in words only.
    pub(super) fn state_in_percent(mut self) -> Self {
        "%".clone_into(&mut self.record.unit);
        self
    }

    /// It set a parameter, or nothing predicts it; the result is shown.
    pub(super) fn show_given(mut self, found: Option<ClaimResult>, why: &str) -> ClaimRecord {
        if let Some(found) = found {
            self.note(found);
        }
        self.end(ClaimVerdict::Given, why)
    }

    /// It cannot be tried, since …
    pub(super) fn not_here(self, why: &str) -> ClaimRecord {
        self.end(ClaimVerdict::NotHere, why)
    }

    /// Judged by its figure.
    pub(super) fn judge_claim(mut self, found: ClaimResult, judge: Judge) -> ClaimRecord {
        self.note(found);
        let reported = self.record.reported_value.unwrap_or(f64::NAN);
        let off = (found.value - reported).abs();
        let unit = self.record.unit.clone();
        let distance = match unit.as_str() {
            "%" => format!("{} points off", to_digits(off)),
            unit => format!("{} {unit} off", to_digits(off)),
        };
        let is_same_way = way(found.value) == way(reported);
        let (holds, why) = match judge {
            Judge::Within(most) => (off <= most, format!("{distance}, {most} allowed")),
            Judge::Size(most) => {
                let words = if is_same_way {
                    format!("{distance}, {most} allowed")
                } else {
                    "the other direction".to_owned()
                };
                (is_same_way && off <= most, words)
            }
            Judge::Direction if is_same_way => (
                true,
                format!("by its direction; {distance}, and the report states no error"),
            ),
            Judge::Direction => (false, "another direction".to_owned()),
        };
        self.end(verdict(holds), &why)
    }

    /// Judged by a condition on the result.
    pub(super) fn judge_condition(
        mut self,
        measured: impl Into<String>,
        holds: bool,
        why: &str,
    ) -> ClaimRecord {
        self.record.measured = Some(measured.into());
        self.end(verdict(holds), why)
    }

    fn note(&mut self, found: ClaimResult) {
        let record = &mut self.record;
        record.measured = Some(if record.unit == "%" {
            signed(found.value)
        } else {
            format!("{} {}", to_digits(found.value), record.unit)
        });
        record.measured_value = Some(found.value);
        record.measured_low = Some(found.low);
        record.measured_high = Some(found.high);
    }

    fn end(mut self, verdict: ClaimVerdict, why: &str) -> ClaimRecord {
        self.record.verdict = verdict;
        why.clone_into(&mut self.record.why);
        self.record
    }
}

const fn verdict(holds: bool) -> ClaimVerdict {
    if holds {
        ClaimVerdict::Reproduced
    } else {
        ClaimVerdict::Contradicted
    }
}

/// -1, 0 or 1.
fn way(percent: f64) -> i8 {
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

fn to_digits(value: f64) -> String {
    let digits = if value.abs() < 10.0 { 2 } else { 1 };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reported: f64, found: f64, judge: Judge, expected: ClaimVerdict) {
        let claim = Claim::change("x", reported).judge_claim(ClaimResult::exactly(found), judge);
        assert_eq!(claim.verdict, expected, "{reported} {found}: {}", claim.why);
    }

    #[test]
    fn sizes_and_directions() {
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
    fn given_figures_are_never_judged() {
        let claim =
            Claim::change("x", 20.0).show_given(Some(ClaimResult::exactly(99.0)), "set the yield");
        assert_eq!(claim.verdict, ClaimVerdict::Given);
        assert_eq!(claim.measured.as_deref(), Some("+99.0 %"));
        assert_eq!(signed(-3.5), "−3.5 %");
    }
}
