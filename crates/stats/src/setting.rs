//! What sentences on a comparison need to know: names, words, units, and the number of blocks.

use std::fmt;
use std::time::Duration;

use super::judge::Judge;
use super::paired::Interval;
use super::resolution::Resolution;
use pinwise_format::{count, percent, percent_range, signed_percent, three_digits};

/// A larger relative change is given as a factor.
const MAX_PERCENT_CHANGE: f64 = 2.0;

/// The words for a lower and a higher cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// The word for a lower cost.
    pub better: &'static str,
    /// The word for a higher cost.
    pub worse: &'static str,
}

impl Words {
    /// For times and rates.
    pub const SPEED: Self = Self {
        better: "faster",
        worse: "slower",
    };
    /// For CPU time and other work.
    pub const WORK: Self = Self {
        better: "cheaper",
        worse: "costlier",
    };
    /// For memory.
    pub const MEMORY: Self = Self {
        better: "smaller",
        worse: "larger",
    };
    /// For a user-defined figure.
    pub const OWN: Self = Self {
        better: "better",
        worse: "worse",
    };
}

/// What sentences on a comparison need to know.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Names of the columns.
    pub names: &'a [String],
    /// Column of the baseline.
    pub baseline: usize,
    /// Smallest effect of interest, `ln(ratio)`.
    pub delta: f64,
    /// The words for the metric.
    pub words: Words,
    /// Is the metric the inverse of the cost?
    pub is_rate: bool,
    /// The statistic of the runs that is judged.
    pub judge: Judge,
    /// The name of a figure that the program prints; `None` of those that pinwise measures.
    pub figure: Option<&'a str>,
    /// The step size of the figure, if it is coarse.
    pub resolution: Option<Resolution>,
    /// The fewest blocks that allow a claim.
    pub least: usize,
    /// Time spent on the blocks so far.
    pub spent: Duration,
}

impl Setting<'_> {
    /// The relative change of the metric that follows from a change of the cost, `ln(ratio)`.
    pub(super) fn metric_change(&self, log_ratio: f64) -> f64 {
        relative_change(if self.is_rate { -log_ratio } else { log_ratio })
    }

    /// Formats the range of a change without its sign: `2.1–3.0 %`.
    pub(super) fn format_sizes(&self, low: f64, high: f64) -> String {
        let (a, b) = (
            self.metric_change(low).abs(),
            self.metric_change(high).abs(),
        );
        percent_range(a.min(b), a.max(b))
    }

    /// Formats the range of a change with `by`: `by 2.1–3.0 %`. Large changes become factors, which
    /// are easier to read than 1,612 %.
    pub(super) fn format_by_sizes(&self, low: f64, high: f64) -> String {
        let (a, b) = (
            self.metric_change(low).abs(),
            self.metric_change(high).abs(),
        );
        if a.max(b) <= MAX_PERCENT_CHANGE {
            return format!("by {}", self.format_sizes(low, high));
        }
        let [a, b] = [a.min(b), a.max(b)].map(|change| three_digits(1.0 + change));
        match a == b {
            true => format!("by a factor of {a}"),
            false => format!("by a factor of {a}–{b}"),
        }
    }

    /// Formats one size as [`format_by_sizes`](Self::format_by_sizes) does.
    pub(super) fn format_size(size: f64) -> String {
        match size > MAX_PERCENT_CHANGE {
            true => format!("a factor of {}", three_digits(1.0 + size)),
            false => percent(size),
        }
    }

    /// Formats both ends of an interval as changes of the metric, the lower first.
    pub(super) fn format_ends(&self, low: f64, high: f64) -> (String, String) {
        let (a, b) = (self.metric_change(low), self.metric_change(high));
        (signed_percent(a.min(b)), signed_percent(a.max(b)))
    }

    /// What is judged, behind a size: `in the typical run`, `in p99 of the typical run`.
    pub(super) fn describe_judge(&self) -> String {
        match (self.figure, self.judge) {
            (None, judge) => judge.phrase(),
            (Some(figure), Judge::Typical) => format!("in {figure} of the typical run"),
            (Some(figure), judge) => format!("in {figure} {}", judge.phrase()),
        }
    }

    /// Describes an interval: `between −2.0 % and +3.0 % in the typical run`.
    pub(super) fn describe_bounds(&self, interval: Interval) -> String {
        let (low, high) = self.format_ends(interval.low, interval.high);
        format!("between {low} and {high} {}", self.describe_judge())
    }
}

/// The blocks that a contrast is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    /// Number of whole blocks.
    pub blocks: usize,
    /// Was the arm dropped after them because it was clearly behind the best?
    pub is_dropped: bool,
}

impl fmt::Display for Basis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dropped = if self.is_dropped {
            "dropped after "
        } else {
            ""
        };
        write!(out, "{dropped}{}", count(self.blocks, "block"))
    }
}

/// Converts `ln(ratio)` to a relative change: 0.02 is two per cent more.
#[must_use]
pub fn relative_change(log_ratio: f64) -> f64 {
    log_ratio.exp_m1()
}
