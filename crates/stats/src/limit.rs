//! Is an arm slower by more than a limit?
//!
//! "Slower" only excludes 0, and if the truth lies exactly at a limit, every second estimate is
//! beyond it. So the limit itself is the tested value: the interval, valid at every look, lies
//! above it, or not above it, or the question is open and more runs are worth their time.

use super::decision::Decision;
use super::look::Contrast;

/// How an arm compares with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitStanding {
    /// Surely slower by more.
    Slower,
    /// Surely not slower by more.
    Passed,
    /// Neither is sure.
    Undecided,
}

/// Compares a contrast with `limit`, `ln(ratio)`, caveats considered.
#[must_use]
pub fn standing(contrast: &Contrast, limit: f64) -> LimitStanding {
    if is_slower(contrast, limit) {
        LimitStanding::Slower
    } else if is_passed(contrast, limit) {
        LimitStanding::Passed
    } else {
        LimitStanding::Undecided
    }
}

/// Is it surely slower by more?
#[must_use]
pub fn is_slower(contrast: &Contrast, limit: f64) -> bool {
    contrast.decision == Decision::Slower && contrast.interval.low > limit
}

/// Is it certainly not slower by more? This question has one side: only caveats that speak for a
/// slow-down of that size withhold the answer.
#[must_use]
pub fn is_passed(contrast: &Contrast, limit: f64) -> bool {
    contrast.interval.high <= limit && !contrast.caveats.of_slower(limit).withholds()
}

/// How many times the present number of blocks is needed until the interval excludes `limit`;
/// infinite if more blocks would not help.
#[must_use]
pub fn work_factor(contrast: &Contrast, limit: f64) -> f64 {
    if contrast.caveats.withholds() {
        return f64::INFINITY;
    }
    let distance = (contrast.estimate - limit).abs();
    (contrast.interval.half_width() / distance).powi(2).max(1.0)
}

#[cfg(test)]
mod tests;
