//! The subject of sentences on a comparison: names, units, the blocks that they are based on.

use std::fmt;
use std::time::Duration;

use super::judge::Judge;
use super::paired::Interval;
use super::resolution::Resolution;
use pinwise_format::{count, percent, percent_range, signed_percent, three_digits};

/// A larger change, as a share, is given as a factor.
const LARGE: f64 = 2.0;

/// How a metric's cost is spoken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Words {
    /// A lower cost.
    pub better: &'static str,
    /// A higher cost.
    pub worse: &'static str,
}

impl Words {
    /// For times and rates.
    pub const SPEED: Self = Self {
        better: "faster",
        worse: "slower",
    };
    /// For CPU time and what else is used up at work.
    pub const WORK: Self = Self {
        better: "cheaper",
        worse: "costlier",
    };
    /// For memory.
    pub const MEMORY: Self = Self {
        better: "smaller",
        worse: "larger",
    };
    /// For a figure of the user's own.
    pub const OWN: Self = Self {
        better: "better",
        worse: "worse",
    };
}

/// Names and circumstances that sentences speak of.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Names of the columns.
    pub names: &'a [String],
    /// Column of the baseline.
    pub baseline: usize,
    /// Smallest effect of interest, `ln(ratio)`.
    pub delta: f64,
    /// How the metric is spoken of.
    pub words: Words,
    /// Is the metric the inverse of the cost?
    pub is_rate: bool,
    /// What of the runs is judged.
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
    /// What a change of cost, `ln(ratio)`, is of the metric itself, as a share.
    pub(super) fn change(&self, log_ratio: f64) -> f64 {
        gain(if self.is_rate { -log_ratio } else { log_ratio })
    }

    /// How much better or worse between these: sizes without sign.
    pub(super) fn sizes(&self, low: f64, high: f64) -> String {
        let (a, b) = (self.change(low).abs(), self.change(high).abs());
        percent_range(a.min(b), a.max(b))
    }

    /// The same behind `by`: from about three times on as a factor, since nobody reads 1,612 % as 17
    /// times.
    pub(super) fn by_sizes(&self, low: f64, high: f64) -> String {
        let (a, b) = (self.change(low).abs(), self.change(high).abs());
        if a.max(b) <= LARGE {
            return format!("by {}", self.sizes(low, high));
        }
        let [a, b] = [a.min(b), a.max(b)].map(|change| three_digits(1.0 + change));
        match a == b {
            true => format!("by a factor of {a}"),
            false => format!("by a factor of {a}–{b}"),
        }
    }

    /// A size, as [`by_sizes`](Self::by_sizes) has it.
    pub(super) fn size_in_words(size: f64) -> String {
        match size > LARGE {
            true => format!("a factor of {}", three_digits(1.0 + size)),
            false => percent(size),
        }
    }

    /// Both ends as changes of the metric, the lower first.
    pub(super) fn ends(&self, low: f64, high: f64) -> (String, String) {
        let (a, b) = (self.change(low), self.change(high));
        (signed_percent(a.min(b)), signed_percent(a.max(b)))
    }

    /// What is judged, behind a size: `in the typical run`, `in p99 of the typical run`.
    pub(super) fn judged(&self) -> String {
        match (self.figure, self.judge) {
            (None, judge) => judge.phrase(),
            (Some(figure), Judge::Typical) => format!("in {figure} of the typical run"),
            (Some(figure), judge) => format!("in {figure} {}", judge.phrase()),
        }
    }

    /// `between −2.0 % and +3.0 % in the typical run`.
    pub(super) fn describe_bounds(&self, interval: Interval) -> String {
        let (low, high) = self.ends(interval.low, interval.high);
        format!("between {low} and {high} {}", self.judged())
    }
}

/// The whole blocks that a contrast is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Basis {
    /// Their number.
    pub blocks: usize,
    /// Was the arm dropped after them, as clearly behind the best?
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

/// `ln(ratio)` as a relative change: 0.02 is two per cent more.
#[must_use]
pub fn gain(log_ratio: f64) -> f64 {
    log_ratio.exp_m1()
}
