//! Judges whether an arm is slower by more than a limit.
//!
//! "Slower" alone only excludes a difference of 0, and if the truth lies exactly at a limit, every
//! second estimate exceeds it. So the interval, which is valid at every look, is compared with the
//! limit itself: it lies above the limit, or not, or includes it, and then more runs may help.

use super::decision::Decision;
use super::look::Contrast;

/// How an arm compares with a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitVerdict {
    /// Certainly slower by more than the limit.
    Slower,
    /// Certainly not slower by more than the limit.
    Passed,
    /// Neither is certain.
    Undecided,
}

/// Compares a contrast with `limit`, `ln(ratio)`, caveats considered.
#[must_use]
pub fn judge(contrast: &Contrast, limit: f64) -> LimitVerdict {
    if is_slower(contrast, limit) {
        LimitVerdict::Slower
    } else if is_passed(contrast, limit) {
        LimitVerdict::Passed
    } else {
        LimitVerdict::Undecided
    }
}

/// Is an arm certainly slower by more than the limit?
#[must_use]
pub fn is_slower(contrast: &Contrast, limit: f64) -> bool {
    contrast.decision == Decision::Slower && contrast.interval.low > limit
}

/// Is an arm certainly not slower by more than the limit? Only caveats that suggest a slow-down of
/// that size withhold the answer.
#[must_use]
pub fn is_passed(contrast: &Contrast, limit: f64) -> bool {
    contrast.interval.high <= limit && !contrast.caveats.only_slower(limit).withholds()
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
