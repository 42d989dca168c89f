//! Derives a test, an estimate and an interval from signed scores.
//!
//! A [`Family`] gives, for every shift θ of an arm against the baseline, one signed score per block:
//! positive if the block suggests more than θ. If θ is the truth, random signs give the distribution
//! of their sum ([`signflip`]). The estimate is the shift at which the sum changes sign; the interval
//! is all shifts that the test does not reject. So all three agree.
//!
//! They must also agree at ties. If a figure has steps, many differences are equal. At exactly that
//! θ they take no part in the test, while right next to it they all have the same sign. So there is
//! a closed test, which rejects θ only if it also rejects the shifts right beside it. Ends of
//! intervals that differ from 0 only by rounding are set to 0.
//!
//! If scores fall again far out, the set of shifts that are not rejected may have gaps. The interval
//! then reaches to the farthest such shift found.

use super::interval::Interval;
use super::signflip;

/// Resolution of interval ends and estimates, `ln(ratio)`.
const TOLERANCE: f64 = 1e-9;
/// The same with many blocks: the statistic is then a function with thousands of steps.
const COARSE_TOLERANCE: f64 = 1e-7;
/// This many blocks are many.
const MANY_BLOCKS: usize = 200;
/// Ends within this many tolerances of 0 are set to 0.
const SNAP: f64 = 4.0;
/// Beyond a rejected shift, these multiples of its distance from the estimate are tried as well.
const FARTHER: [f64; 4] = [1.25, 1.6, 2.2, 3.2];
/// Factor between the steps of a search outwards.
const GROWTH: f64 = 1.6;
/// The search for a bracket gives up after this many steps.
const MAX_STEPS: usize = 80;

/// Signed scores of blocks, as a function of the shift.
pub trait Family {
    /// Number of blocks.
    fn blocks(&self) -> usize;

    /// One signed score per block at shift `theta` (`ln(ratio)`), in the order of the blocks.
    fn scores(&self, theta: f64) -> Vec<f64>;

    /// Two shifts between which the estimate lies: below the first no score is negative, above the
    /// second none is positive. `None` without blocks.
    fn range(&self) -> Option<(f64, f64)>;

    /// A first guess of the estimate, if the sum may change its sign more than once; `None` if the
    /// sum never grows with the shift.
    fn guess(&self) -> Option<f64> {
        None
    }

    /// Two-sided p-value of "the true shift is `theta`".
    fn p_value(&self, theta: f64) -> f64 {
        signflip::two_sided_p(&self.scores(theta))
    }
}

/// Two-sided p-value of "the true shift is `theta`".
#[must_use]
pub fn p_value(family: &dyn Family, theta: f64) -> f64 {
    family.p_value(theta)
}

/// The p-value of the closed test: the largest at `theta` and right beside it, on both sides.
#[must_use]
pub fn closed_p_value(family: &dyn Family, theta: f64) -> f64 {
    let beside = tolerance(family);
    [theta - beside, theta, theta + beside]
        .map(|at| p_value(family, at))
        .into_iter()
        .fold(0.0, f64::max)
}

/// The shift at which the sum of the scores changes sign; NaN without blocks.
#[must_use]
pub fn estimate(family: &dyn Family) -> f64 {
    let Some((low, high)) = family.range() else {
        return f64::NAN;
    };
    let beside = tolerance(family);
    let sums = |theta: f64| -> (f64, f64) {
        let scores = family.scores(theta);
        let size = scores.iter().map(|s| s.abs()).sum::<f64>();
        (scores.iter().sum(), 1e-9 * size)
    };
    let (low, high) = match family.guess() {
        Some(guess) => find_bracket(&sums, guess, low - beside, high + beside),
        None => (low - beside, high + beside),
    };
    let is_above = |theta: f64| {
        let (sum, tiny) = sums(theta);
        sum > tiny
    };
    let is_not_below = |theta: f64| {
        let (sum, tiny) = sums(theta);
        sum >= -tiny
    };
    let last_above = bisect(low, high, beside, is_above);
    let first_below = bisect(last_above, high, beside, is_not_below);
    snap_to_zero(0.5 * (last_above + first_below), beside)
}

/// All shifts around an estimate that a two-sided test at `level` does not reject.
#[must_use]
pub fn interval_around(family: &dyn Family, estimate: f64, level: f64) -> Interval {
    let Some((low, high)) = family.range() else {
        return Interval::UNBOUNDED;
    };
    let far = (high - low) + 1.0;
    let is_rejected = |theta: f64| p_value(family, theta) <= level;
    if !is_rejected(low - far) || !is_rejected(high + far) {
        return Interval::UNBOUNDED;
    }
    let beside = tolerance(family);
    let end = |outmost: f64| {
        let (rejected, accepted) = match family.guess() {
            Some(_) => find_last_accepted(&is_rejected, estimate, outmost),
            None => (outmost, estimate),
        };
        snap_to_zero(bisect(rejected, accepted, beside, is_rejected), beside)
    };
    Interval {
        low: end(low - far),
        high: end(high + far),
    }
}

/// Searches from the estimate to `outmost`. Returns a rejected shift beyond which no accepted one was
/// found, and the last accepted one before it.
fn find_last_accepted(
    is_rejected: &impl Fn(f64) -> bool,
    estimate: f64,
    outmost: f64,
) -> (f64, f64) {
    let whole = outmost - estimate;
    let mut accepted = 0.0;
    let mut rejected = 1.0;
    let mut share = 1e-4;
    while share < 1.0 {
        if is_rejected(estimate + share * whole) {
            rejected = share;
            let farther = FARTHER.iter().map(|factor| factor * share);
            let beyond = farther
                .filter(|&at| at < 1.0 && !is_rejected(estimate + at * whole))
                .fold(accepted, f64::max);
            if beyond <= accepted {
                break;
            }
            share = beyond;
        }
        accepted = share;
        share *= GROWTH;
        rejected = 1.0;
    }
    (estimate + rejected * whole, estimate + accepted * whole)
}

/// Finds two shifts around the guess between which the sum changes sign.
fn find_bracket(
    sums: &impl Fn(f64) -> (f64, f64),
    guess: f64,
    least: f64,
    most: f64,
) -> (f64, f64) {
    let mut step = 1e-3 * (most - least);
    let is_above = |theta: f64| sums(theta).0 > 0.0;
    let from = guess.clamp(least, most);
    let started_above = is_above(from);
    let mut before = from;
    for _ in 0..MAX_STEPS {
        let at = if started_above {
            (before + step).min(most)
        } else {
            (before - step).max(least)
        };
        let is_at_end = at <= least || at >= most;
        if is_at_end || is_above(at) != started_above {
            return (before.min(at), before.max(at));
        }
        before = at;
        step *= GROWTH;
    }
    (least, most)
}

fn tolerance(family: &dyn Family) -> f64 {
    if family.blocks() < MANY_BLOCKS {
        TOLERANCE
    } else {
        COARSE_TOLERANCE
    }
}

fn snap_to_zero(value: f64, tolerance: f64) -> f64 {
    if value.abs() <= SNAP * tolerance {
        0.0
    } else {
        value
    }
}

/// Finds where `holds` changes between `from`, at which it is true, and `to`, at which it is false.
fn bisect(mut from: f64, mut to: f64, tolerance: f64, holds: impl Fn(f64) -> bool) -> f64 {
    while (to - from).abs() > tolerance {
        let middle = 0.5 * (from + to);
        let is_stuck = middle <= from.min(to) || middle >= from.max(to);
        if is_stuck {
            break;
        }
        if holds(middle) {
            from = middle;
        } else {
            to = middle;
        }
    }
    0.5 * (from + to)
}
