//! Figures that come in steps: a clock that ticks every 10 ms, a program that
//! prints two digits.
//!
//! *Finding the step.* Values that are all whole multiples of something have a
//! greatest common divisor; Euclid's algorithm on an arm's distinct values finds
//! it, up to rounding. Where its runs gave one value or two, the last digit that
//! they have is taken: nothing finer could have been seen.
//!
//! *What it costs.* Rounding hides where in a step a value was. While runs vary
//! by half a step and more, roundings cancel over the runs; where they vary less,
//! two arms can differ by most of a step and look equal, or by nothing and look
//! different. For normal noise of standard deviation σ the mean of rounded
//! values is off by at most `s/π exp(−2π²σ²/s²)` (Widrow and Kollár 2008, chapter
//! 9); without noise a difference of two is off by up to a step. Both are met by
//! `s exp(−2π²σ²/s²)`, by which intervals are widened.
//!
//! *Ties.* Values are spread evenly over the step that they stand for, by a
//! number that depends on the run's place in time alone and so knows no labels.

use super::Responses;
use super::describe::quantile;

/// A step below this share of the typical value is no concern.
const FINE: f64 = 1e-4;
/// Remainders below this share of the smallest value are rounding.
const ROUNDING: f64 = 1e-7;
/// Fewer different values than this do not show a step by what divides them.
const SEVERAL: usize = 3;
/// Digits of a value that are looked at.
const DIGITS: i32 = 12;
/// Differences beyond this many steps say nothing more about noise within one.
const MOST_STEPS: f64 = 2.0;

/// The step of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolution {
    /// In the unit of the figure.
    pub step: f64,
    /// Over the typical value, as `ln(ratio)`.
    pub relative: f64,
}

/// The step that the values of every arm are multiples of; `None` where it is too
/// fine to matter or there is none. Values must be positive.
///
/// What one arm shows to be finer is finer: arms that give 100 and 150 in every
/// run have no step of 50.
#[must_use]
pub fn of_columns(columns: &[Vec<f64>]) -> Option<Resolution> {
    let steps = columns.iter().filter_map(|column| step(column));
    let step = steps.fold(f64::INFINITY, f64::min);
    let typical = quantile(&columns.concat(), 0.5);
    let relative = (step / typical).ln_1p();
    (relative > FINE && relative.is_finite()).then_some(Resolution { step, relative })
}

/// The step of one arm's values; `None` without any.
fn step(values: &[f64]) -> Option<f64> {
    let mut distinct = values.to_vec();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup();
    let least = *distinct.first()?;
    if distinct.len() < SEVERAL {
        let digits = distinct.iter().map(|&value| last_digit(value));
        return Some(digits.fold(f64::INFINITY, f64::min));
    }
    let limit = ROUNDING * least;
    Some(
        distinct
            .iter()
            .fold(0.0, |step, &value| divisor(step, value, limit)),
    )
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
    /// Responses whose values are spread over the step that they stand for.
    /// `slots[b][arm]` is the arm's place in block `b`; `is_rate`: the figure is
    /// the inverse of the cost.
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

    /// By how much a typical difference may be off, `ln(ratio)`, for
    /// differences (`ln(ratio)`, as measured) that vary this much.
    #[must_use]
    pub fn bias(self, differences: &[f64]) -> f64 {
        let centre = quantile(differences, 0.5);
        let in_steps: Vec<f64> = differences
            .iter()
            .map(|d| ((d - centre).abs() / self.relative).min(MOST_STEPS))
            .collect();
        // The mean distance of two normal draws is 2σ/√π.
        let mean = in_steps.iter().sum::<f64>() / in_steps.len().max(1) as f64;
        let sd = 0.5 * std::f64::consts::PI.sqrt() * mean;
        let exponent = 2.0 * (std::f64::consts::PI * sd).powi(2);
        self.relative * (-exponent).exp()
    }
}

/// A number in [0, 1) for a run's place in time, as good as random (the mixing
/// function of Steele, Lea and Flood's `SplitMix64`, 2014).
fn evenly(block: usize, slot: usize) -> f64 {
    let place = (block as u64) << 16 | slot as u64;
    let mut mixed = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], step: Option<f64>) {
        let found = of_columns(&[values.to_vec()]).map(|resolution| resolution.step);
        match (found, step) {
            (Some(found), Some(step)) => {
                assert!(
                    (found / step - 1.0).abs() < 1e-6,
                    "{found} instead of {step}"
                );
            }
            (found, step) => assert_eq!(found, step),
        }
    }

    #[test]
    fn steps_are_found() {
        check(&[0.10, 0.11, 0.13, 0.10], Some(0.01));
        check(&[0.3, 0.1, 0.7], Some(0.1));
        check(&[0.104, 0.112, 0.1, 0.12], Some(0.004));
        check(&[5.0, 6.0, 5.0], Some(1.0));
        check(&[5.0, 7.3], Some(0.1));
        check(&[0.12; 9], Some(0.01));
        check(&[1_000_000.0; 9], None);
        check(&[], None);
    }

    #[test]
    fn arms_that_never_vary_are_no_steps() {
        let steady = |value: f64| vec![value; 9];
        assert_eq!(of_columns(&[steady(1e8), steady(1.5e8)]), None);
        // One arm's figures are finer than the other's seem.
        assert_eq!(
            of_columns(&[steady(0.1), vec![0.100_013, 0.100_029, 0.1]]),
            None
        );
        assert!(of_columns(&[steady(0.1), steady(0.11)]).is_some());
    }

    #[test]
    fn a_fine_clock_has_no_step_that_matters() {
        let values: Vec<f64> = (0..40u32)
            .map(|i| f64::from(66_000_000 + i * 7919 % 4_000_003) * 1e-9)
            .collect();
        check(&values, None);
    }

    #[test]
    fn values_are_spread_over_their_step_and_no_farther() {
        let mut data = Responses::new(2);
        let slots = vec![vec![0, 1]; 50];
        for _ in 0..50 {
            data.push(&[0.1f64.ln(), 0.11f64.ln()]);
        }
        let resolution = of_columns(&[vec![0.1, 0.11]]).unwrap();
        let spread = resolution.spread(&data, &slots, false);
        for row in spread.rows() {
            assert!((row[0].exp() - 0.1).abs() <= 0.005 + 1e-12);
            assert!((row[1].exp() - 0.11).abs() <= 0.005 + 1e-12);
        }
        let mean = spread.column(0).iter().map(|y| y.exp()).sum::<f64>() / 50.0;
        assert!((mean - 0.1).abs() < 0.002, "{mean}");
        let rates = resolution.spread(&data, &slots, true);
        for row in rates.rows() {
            let value = (-row[0]).exp();
            assert!((value - 10.0).abs() <= 0.005 + 1e-9, "{value}");
        }
    }

    #[test]
    fn noise_of_a_step_leaves_no_bias_and_none_leaves_a_step() {
        let resolution = Resolution {
            step: 0.01,
            relative: 0.1,
        };
        assert!((resolution.bias(&[0.0; 20]) - 0.1).abs() < 1e-12);
        let wide: Vec<f64> = (0..20).map(|i| 0.1 * f64::from(i % 5 - 2)).collect();
        assert!(resolution.bias(&wide) < 1e-4);
    }
}
