//! Handles figures that come in steps: from a clock that ticks every 10 ms or 60 times a second, or
//! from a program that prints two digits.
//!
//! *Finding the step.* The distinct values of all arms differ by whole multiples of the step, so
//! their differences' greatest common divisor is searched, up to the last digit that they have. If
//! there are only two values, each many times, the step may be as long as their difference; a single
//! value does not show its step, which may be as long as the value. Counts are exact and have no
//! step ([`Figure`]).
//!
//! *Widening intervals.* Rounding hides where in a step a value was. If an arm's runs vary by half a
//! step or more, rounding errors cancel over the runs. If they vary less, the arm's centre may be
//! anywhere in the step, whatever the other arm does. For normal noise of standard deviation σ the
//! mean of rounded values is off by at most `s/π exp(−2π²σ²/s²)` (Widrow and Kollár 2008, chapter
//! 9), and without noise by half a step: `s/2 exp(−2π²σ²/s²)` covers both. Intervals are widened by
//! this much for each arm.
//!
//! σ is estimated with caution from the runs beyond the middle step (or the middle two): from the
//! side with fewer of them, as delays by other programs all lie on one side, and from the lower end
//! of the 68 % interval of their share (Wilson 1927). If there are none, σ is 0.
//!
//! A percentile is off by twice as much, and spreading values over a step moves it outwards by
//! about `z s²/(12σ)`, with z its normal quantile.
//!
//! *Ties.* Each value is spread over the step that it represents, by a number that depends only on
//! the run's place in time, and so not on the arm.

use super::describe::quantile;
use super::judge::Judge;
use super::{Responses, normal};

/// A step below this share of the typical value is ignored.
const MIN_RELATIVE_STEP: f64 = 1e-4;
/// Remainders below this share of a value are errors of floating-point rounding.
const ROUNDING: f64 = 1e-7;
/// Values that differ by less than this share are equal.
const EQUAL: f64 = 1e-12;
/// If each distinct value came this often on average, no values between them are possible.
const OFTEN: usize = 3;
/// Decimal digits of a value that are considered.
const MAX_DIGITS: i32 = 12;
/// If all values are equal and their last digit is finer than this share of them, the step may be
/// as long as the value; else it is that digit.
const COARSE_DIGIT: f64 = 0.01;
/// The smallest difference may be up to this many steps long.
const MAX_STEPS: u32 = 4;
/// A step must be at least this many times its uncertainty.
const MIN_CLARITY: f64 = 4.0;
/// A step is accepted if values without steps would fit it with at most this probability.
const MAX_CHANCE: f64 = 0.05;
/// The error of a centre is at most this share of it.
const MAX_SHARE: f64 = 0.9;

/// The kind of a figure, which tells whether it may have been rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Figure {
    /// Measured: the clock may tick, the program may print few digits.
    #[default]
    Measured,
    /// Counted: exact, however few distinct values there are.
    Counted,
    /// Unknown: whole numbers are taken for counts.
    Unknown,
}

impl Figure {
    fn is_exact(self, values: &[f64]) -> bool {
        match self {
            Self::Measured => false,
            Self::Counted => true,
            Self::Unknown => {
                let is_whole = |v: &f64| (v - v.round()).abs() <= EQUAL * v.abs().max(1.0);
                values.iter().all(is_whole)
            }
        }
    }
}

/// The step of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// The step, in the unit of the figure.
    pub step: f64,
    /// The step relative to the typical value, as `ln(ratio)`.
    pub relative: f64,
}

/// Finds the step by multiples of which the values of all arms differ. `None` if there is none, or
/// if it is too small to matter. Values must be positive.
#[must_use]
pub fn find_step(columns: &[Vec<f64>], figure: Figure) -> Option<Resolution> {
    let all = columns.concat();
    let mut distinct = all.clone();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup_by(|b, a| *b - *a <= EQUAL * *b);
    if figure.is_exact(&distinct) {
        return None;
    }
    let step = step_of_distinct(&distinct, all.len() >= OFTEN * distinct.len())?;
    let relative = (step / quantile(&all, 0.5)).ln_1p();
    (relative > MIN_RELATIVE_STEP && relative.is_finite()).then_some(Resolution { step, relative })
}

/// The step of distinct values, which are ascending; `None` without any.
fn step_of_distinct(distinct: &[f64], came_often: bool) -> Option<f64> {
    let digits = distinct.iter().map(|&value| last_digit(value));
    let unit = digits.fold(f64::INFINITY, f64::min);
    let first = *distinct.first()?;
    let differences: Vec<f64> = distinct.iter().map(|v| v - first).skip(1).collect();
    Some(match *differences {
        [] if came_often && unit < COARSE_DIGIT * first => first,
        [only] if came_often => only,
        [] | [_] => unit,
        _ => common_step(distinct, &differences, unit),
    })
}

/// The step of three or more distinct values, each of them rounded to `unit`.
fn common_step(distinct: &[f64], differences: &[f64], unit: f64) -> f64 {
    let gaps = distinct.windows(2).map(|pair| pair[1] - pair[0]);
    let smallest = gaps.fold(f64::INFINITY, f64::min);
    let fitted = (1..=MAX_STEPS).find_map(|parts| fit_step(differences, smallest, parts, unit));
    fitted.unwrap_or_else(|| {
        let common = |step: f64, &value: &f64| common_divisor(step, value, 0.5 * unit);
        differences.iter().fold(0.0, common).max(unit)
    })
}

/// The step that divides `smallest`, the smallest difference of neighbours, into `parts`; `None` if
/// some difference does not fit it. Each difference makes the step more precise.
fn fit_step(differences: &[f64], smallest: f64, parts: u32, unit: f64) -> Option<f64> {
    let mut step = smallest / f64::from(parts);
    let mut error = unit / f64::from(parts);
    // The step was made to fit one of them.
    let mut chance = step / (4.0 * unit).max(f64::MIN_POSITIVE);
    for &difference in differences {
        let steps = (difference / step).round();
        let tolerance = unit + steps * error;
        let is_off = (difference - steps * step).abs() > tolerance;
        if is_off || MIN_CLARITY * tolerance > step {
            return None;
        }
        chance *= (2.0 * tolerance / step).min(1.0);
        if unit / steps < error {
            step = difference / steps;
            error = unit / steps;
        }
    }
    (chance <= MAX_CHANCE).then_some(step)
}

/// Greatest common divisor of two lengths, with rounding errors below `limit`.
fn common_divisor(a: f64, b: f64, limit: f64) -> f64 {
    let (mut a, mut b) = (a.max(b), a.min(b));
    while b > limit {
        let rest = a % b;
        // Because of rounding, 0.3 % 0.1 is almost 0.1 instead of 0.
        let rest = rest.min(b - rest);
        (a, b) = (b, rest);
    }
    a
}

/// The unit of the last decimal digit that a value has.
fn last_digit(value: f64) -> f64 {
    (0..MAX_DIGITS)
        .map(|digit| 10f64.powi(-digit))
        .find(|unit| {
            let units = value / unit;
            (units - units.round()).abs() <= ROUNDING * units.abs().max(1.0)
        })
        .unwrap_or(0.0)
}

impl Resolution {
    /// Is only an upper bound of the step known, as every run gave the same value?
    #[must_use]
    pub fn is_unknown(self) -> bool {
        self.relative >= std::f64::consts::LN_2 - EQUAL
    }

    /// Spreads the values of responses over the step that they represent. `slots[b][arm]` is the
    /// arm's position in block `b`; `is_rate`: is the figure the inverse of the cost?
    #[must_use]
    pub fn spread(self, data: &Responses, slots: &[Vec<usize>], is_rate: bool) -> Responses {
        let mut spread = Responses::new(data.arms());
        for (block, (row, places)) in data.rows().zip(slots).enumerate() {
            let moved: Vec<f64> = row
                .iter()
                .zip(places)
                .map(|(&response, &slot)| {
                    let offset = self.step * (hash_place(block, slot) - 0.5);
                    if is_rate {
                        response - (offset * response.exp()).ln_1p()
                    } else {
                        response + (offset * (-response).exp()).ln_1p()
                    }
                })
                .collect();
            spread.push(&moved);
        }
        spread
    }

    /// By how much rounding may have moved the judged statistic of an arm, `ln(ratio)`. `values` are
    /// the arm's figures as measured.
    #[must_use]
    pub fn max_bias(self, values: &[f64], judge: Judge) -> f64 {
        let sd = self.sd_in_steps(values);
        let hidden = 0.5 * (-2.0 * (std::f64::consts::PI * sd).powi(2)).exp();
        let in_steps = match judge {
            Judge::Typical | Judge::Mean => hidden,
            Judge::Percentile(percentile) => {
                let beyond = f64::from(100 - percentile.min(99)) / 100.0;
                let outwards = normal::upper_quantile(beyond) / (12.0 * sd);
                2.0 * hidden + outwards.min(0.5)
            }
        };
        let share = in_steps * self.step / quantile(values, 0.5);
        -(-share.min(MAX_SHARE)).ln_1p()
    }

    /// A cautious estimate of an arm's standard deviation, in steps; 0 if its values show none.
    fn sd_in_steps(self, values: &[f64]) -> f64 {
        let middle = lower_median(values);
        let beyond = |least: f64, most: f64| {
            let steps = values.iter().map(|v| (v - middle) / self.step);
            let (below, above) = steps.fold((0usize, 0usize), |(below, above), at| {
                let is_below = usize::from(at < least - 0.5);
                (below + is_below, above + usize::from(at > most + 0.5))
            });
            let share = low_end_of_share(below.min(above), values.len());
            let width = most - least + 1.0;
            width / (2.0 * normal::upper_quantile(share))
        };
        [(0.0, 0.0), (-1.0, 0.0), (0.0, 1.0)]
            .map(|(least, most)| beyond(least, most))
            .into_iter()
            .fold(0.0, f64::max)
    }

    /// Is the order of two arms certain despite rounding? It is if each arm always gives one value,
    /// and the two values differ.
    #[must_use]
    pub fn is_ordered(self, arm: &[f64], baseline: &[f64]) -> bool {
        let ends = |values: &[f64]| (quantile(values, 0.0), quantile(values, 1.0));
        let ((least, most), (least_of_baseline, most_of_baseline)) = (ends(arm), ends(baseline));
        let half = 0.5 * self.step;
        most - least < half
            && most_of_baseline - least_of_baseline < half
            && (least - least_of_baseline).abs() > half
    }
}

/// The middle value; of two middle values the lower one.
fn lower_median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.get(middle).copied().unwrap_or(f64::NAN)
}

/// Lower end of Wilson's 68 % interval of a share.
fn low_end_of_share(count: usize, of: usize) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let n = of as f64;
    let share = count as f64 / n;
    let half = (share * (1.0 - share) / n + 0.25 / (n * n)).sqrt();
    (share + 0.5 / n - half) / (1.0 + 1.0 / n)
}

/// Hashes a run's place in time to a number in [0, 1) (with the mixing function of Steele, Lea and
/// Flood's `SplitMix64`, 2014).
fn hash_place(block: usize, slot: usize) -> f64 {
    let place = (block as u64) << 16 | slot as u64;
    let mut mixed = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
