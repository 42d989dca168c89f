//! Figures that come in steps: a clock that ticks every 10 ms or 60 times a second, a program that
//! prints two digits.
//!
//! *Finding the step.* The distinct values of all arms differ by whole multiples of the step,
//! wherever its zero is: the search is for their greatest common divisor, up to the last digit that
//! they have. Two values that occur again and again differ by one step at least. A single value of
//! several digits does not show its step: that may be as long as the value. Counts are exact and
//! have none ([`Figure`]).
//!
//! *What it costs.* Rounding hides where in a step a value was. While an arm's runs vary by half a
//! step and more, roundings cancel over the runs; if they vary less, its centre may be anywhere in
//! the step, and the other arm, which may vary more, says nothing about that. For normal noise of
//! standard deviation σ the mean of rounded values is off by at most `s/π exp(−2π²σ²/s²)` (Widrow
//! and Kollár 2008, chapter 9), and without noise by half a step: `s/2 exp(−2π²σ²/s²)` covers both.
//! Intervals are widened by this much for either arm. σ is that of a normal distribution with as
//! many runs beyond the middle step or the middle two, on the side that has fewer (delays by others
//! lie on one side), at the lower end of that share's 68 % interval (Wilson 1927). If no run is
//! beyond, nothing shows that the arm varies at all.
//!
//! A percentile is off by twice as much, and spreading values over a step moves it outwards by
//! about `z s²/(12σ)`, z its normal quantile.
//!
//! *Ties.* Values are spread evenly over the step that they represent, by a number that depends on
//! the run's place in time alone and so does not depend on labels.

use super::describe::quantile;
use super::judge::Judge;
use super::{Responses, normal};

/// A step below this share of the typical value does not matter.
const FINE: f64 = 1e-4;
/// Remainders below this share of a value are rounding.
const ROUNDING: f64 = 1e-7;
/// Values closer than this share are the same one.
const SAME: f64 = 1e-12;
/// If every value came this often on average, there are no values between.
const OFTEN: usize = 3;
/// Digits of a value that are looked at.
const DIGITS: i32 = 12;
/// Equal values whose last digit is coarser than this share of them need no other
/// explanation.
const PLAIN: f64 = 0.01;
/// The smallest difference is taken for up to this many steps.
const MAX_STEPS: u32 = 4;
/// A step must be this many times its uncertainty.
const CLEAR: f64 = 4.0;
/// A step is accepted if values without steps would fit it this rarely.
const CHANCE: f64 = 0.05;
/// A centre is no nearer to 0 than this share of it.
const MAX_SHARE: f64 = 0.9;

/// What kind of figure it is, which says whether it may have been rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Figure {
    /// Measured: what shows it may tick.
    #[default]
    Measured,
    /// Counted: exact, however few values it takes.
    Counted,
    /// Unknown: whole numbers then count as counts.
    Unknown,
}

impl Figure {
    fn is_exact(self, values: &[f64]) -> bool {
        match self {
            Self::Measured => false,
            Self::Counted => true,
            Self::Unknown => {
                let is_whole = |v: &f64| (v - v.round()).abs() <= SAME * v.abs().max(1.0);
                values.iter().all(is_whole)
            }
        }
    }
}

/// The step of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// In the unit of the figure.
    pub step: f64,
    /// Over the typical value, as `ln(ratio)`.
    pub relative: f64,
}

/// The step by multiples of which the values of all arms differ; `None` if it is too fine to matter
/// or there is none. Values must be positive.
#[must_use]
pub fn find_step(columns: &[Vec<f64>], figure: Figure) -> Option<Resolution> {
    let all = columns.concat();
    let mut distinct = all.clone();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup_by(|b, a| *b - *a <= SAME * *b);
    if figure.is_exact(&distinct) {
        return None;
    }
    let step = step(&distinct, all.len() >= OFTEN * distinct.len())?;
    let relative = (step / quantile(&all, 0.5)).ln_1p();
    (relative > FINE && relative.is_finite()).then_some(Resolution { step, relative })
}

/// The step of distinct values, ascending; `None` without any.
fn step(distinct: &[f64], came_often: bool) -> Option<f64> {
    let digits = distinct.iter().map(|&value| last_digit(value));
    let unit = digits.fold(f64::INFINITY, f64::min);
    let first = *distinct.first()?;
    let differences: Vec<f64> = distinct.iter().map(|v| v - first).skip(1).collect();
    Some(match *differences {
        [] if came_often && unit < PLAIN * first => first,
        [only] if came_often => only,
        [] | [_] => unit,
        _ => common_step(distinct, &differences, unit),
    })
}

/// The step of three values and more, each of them rounded to `unit`.
fn common_step(distinct: &[f64], differences: &[f64], unit: f64) -> f64 {
    let gaps = distinct.windows(2).map(|pair| pair[1] - pair[0]);
    let smallest = gaps.fold(f64::INFINITY, f64::min);
    let fitted = (1..=MAX_STEPS).find_map(|parts| fitted_step(differences, smallest, parts, unit));
    fitted.unwrap_or_else(|| {
        let common = |step: f64, &value: &f64| divisor(step, value, 0.5 * unit);
        differences.iter().fold(0.0, common).max(unit)
    })
}

/// The step that divides `smallest`, the smallest difference of neighbours, into
/// `parts`, if all differences fit it. Each of them makes it more precise.
fn fitted_step(differences: &[f64], smallest: f64, parts: u32, unit: f64) -> Option<f64> {
    let mut step = smallest / f64::from(parts);
    let mut error = unit / f64::from(parts);
    // One of them was chosen so that it fits.
    let mut chance = step / (4.0 * unit).max(f64::MIN_POSITIVE);
    for &difference in differences {
        let steps = (difference / step).round();
        let unsure = unit + steps * error;
        let is_off = (difference - steps * step).abs() > unsure;
        if is_off || CLEAR * unsure > step {
            return None;
        }
        chance *= (2.0 * unsure / step).min(1.0);
        if unit / steps < error {
            step = difference / steps;
            error = unit / steps;
        }
    }
    (chance <= CHANCE).then_some(step)
}

/// Greatest common divisor of two lengths, of which less than `limit` is
/// rounding.
fn divisor(a: f64, b: f64, limit: f64) -> f64 {
    let (mut a, mut b) = (a.max(b), a.min(b));
    while b > limit {
        let rest = a % b;
        // 0.3 % 0.1 leaves almost 0.1.
        let rest = rest.min(b - rest);
        (a, b) = (b, rest);
    }
    a
}

/// The unit of the last decimal digit that a value has.
fn last_digit(value: f64) -> f64 {
    (0..DIGITS)
        .map(|digit| 10f64.powi(-digit))
        .find(|unit| {
            let units = value / unit;
            (units - units.round()).abs() <= ROUNDING * units.abs().max(1.0)
        })
        .unwrap_or(0.0)
}

impl Resolution {
    /// Did every run give the same value? Then only an upper bound of the step is
    /// known.
    #[must_use]
    pub fn is_unknown(self) -> bool {
        self.relative >= std::f64::consts::LN_2 - SAME
    }

    /// Responses whose values are spread over the step that they represent. `slots[b][arm]` is the
    /// arm's place in block `b`; `is_rate`: the figure is the inverse of the cost.
    #[must_use]
    pub fn spread(self, data: &Responses, slots: &[Vec<usize>], is_rate: bool) -> Responses {
        let mut spread = Responses::new(data.arms());
        for (block, (row, places)) in data.rows().zip(slots).enumerate() {
            let moved: Vec<f64> = row
                .iter()
                .zip(places)
                .map(|(&response, &slot)| {
                    let offset = self.step * (evenly(block, slot) - 0.5);
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

    /// By how much the judged statistic of an arm may be off, `ln(ratio)`, from its values as
    /// measured.
    #[must_use]
    pub fn bias(self, values: &[f64], judge: Judge) -> f64 {
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

    /// Standard deviation of an arm in steps: the least that its values prove; 0 if they prove
    /// none.
    fn sd_in_steps(self, values: &[f64]) -> f64 {
        let middle = quantile_below(values);
        let beyond = |least: f64, most: f64| {
            let steps = values.iter().map(|v| (v - middle) / self.step);
            let (below, above) = steps.fold((0usize, 0usize), |(below, above), at| {
                let is_below = usize::from(at < least - 0.5);
                (below + is_below, above + usize::from(at > most + 0.5))
            });
            let share = low_share(below.min(above), values.len());
            let width = most - least + 1.0;
            width / (2.0 * normal::upper_quantile(share))
        };
        [(0.0, 0.0), (-1.0, 0.0), (0.0, 1.0)]
            .map(|(least, most)| beyond(least, most))
            .into_iter()
            .fold(0.0, f64::max)
    }

    /// Do both arms give the same value in every run, and not the same one? Then
    /// rounding has not changed their order.
    #[must_use]
    pub fn is_ordered(self, arm: &[f64], baseline: &[f64]) -> bool {
        let ends = |values: &[f64]| (quantile(values, 0.0), quantile(values, 1.0));
        let ((least, most), (least_of_baseline, most_of_baseline)) = (ends(arm), ends(baseline));
        let some = 0.5 * self.step;
        most - least < some
            && most_of_baseline - least_of_baseline < some
            && (least - least_of_baseline).abs() > some
    }
}

/// The middle value, the lower one of two.
fn quantile_below(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len().saturating_sub(1) / 2;
    sorted.get(middle).copied().unwrap_or(f64::NAN)
}

/// Lower end of Wilson's 68 % interval of a share.
fn low_share(count: usize, of: usize) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let n = of as f64;
    let share = count as f64 / n;
    let half = (share * (1.0 - share) / n + 0.25 / (n * n)).sqrt();
    (share + 0.5 / n - half) / (1.0 + 1.0 / n)
}

/// A number in [0, 1) for a run's place in time, as good as random (the mixing function of Steele,
/// Lea and Flood's `SplitMix64`, 2014).
fn evenly(block: usize, slot: usize) -> f64 {
    let place = (block as u64) << 16 | slot as u64;
    let mut mixed = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
