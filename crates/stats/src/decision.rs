//! Decides by an interval whether an arm is faster, slower or the same.

use super::paired::Interval;

/// What an interval says about an arm against the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The cost is lower: the interval lies below 0.
    Faster,
    /// The cost is higher: the interval lies above 0.
    Slower,
    /// The interval holds 0 and lies within ±δ.
    Same,
    /// None of these.
    Undecided,
}

/// Decides by an interval: by its sign if it excludes 0, else by whether it lies within ±`delta`.
pub fn decide(interval: Interval, delta: f64) -> Decision {
    if interval.high < 0.0 {
        Decision::Faster
    } else if interval.low > 0.0 {
        Decision::Slower
    } else if interval.is_within(delta) {
        Decision::Same
    } else {
        Decision::Undecided
    }
}
