//! Looking at the data before the end without raising the error rate.
//!
//! Group-sequential design with an error-spending function (Lan and DeMets
//! 1983): by the time a fraction `t` of the budget is used, `α t^ρ` of the
//! error may have been spent (the power family, ρ = 1.5). At each look the
//! nominal level is found by recursive integration of the statistic's density
//! over the continuation region (Armitage, McPherson and Rowe 1969), with the
//! correlation between looks that the scores really have.

use super::normal;

/// Looks grow by this factor.
pub const GROWTH: f64 = 1.45;
/// No claim is made on fewer pairs.
pub const LEAST_PAIRS: usize = 6;
/// With no more pairs than this there is one look, at the end.
const SINGLE_LOOK: usize = 12;
/// Before this many pairs no early look is worth its error.
const FIRST_LOOK: usize = 8;
/// A look that would come this close to the last one is left out.
const CLOSE_TO_END: f64 = 1.2;
/// Points of the Simpson grid over the continuation region (odd).
const GRID: usize = 121;

/// How much error may be spent by when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spending {
    /// Two-sided error in all.
    pub alpha: f64,
    /// Exponent of the power family.
    pub exponent: f64,
}

impl Spending {
    /// `α t^1.5`.
    #[must_use]
    pub const fn new(alpha: f64) -> Self {
        Self {
            alpha,
            exponent: 1.5,
        }
    }

    /// Error spent once a fraction `t` of the budget is used.
    #[must_use]
    pub fn spent(&self, t: f64) -> f64 {
        self.alpha * t.clamp(0.0, 1.0).powf(self.exponent)
    }
}

/// One contrast followed over its looks.
#[derive(Debug, Clone)]
pub struct GroupSequential {
    spending: Spending,
    spent: f64,
    variance: f64,
    /// Sub-density of the statistic among experiments still going on.
    going_on: Vec<(f64, f64)>,
}

impl GroupSequential {
    /// A design before its first look.
    #[must_use]
    pub const fn new(spending: Spending) -> Self {
        Self {
            spending,
            spent: 0.0,
            variance: 1.0,
            going_on: Vec::new(),
        }
    }

    /// The nominal two-sided level of a look at budget fraction `t`, whose
    /// statistic correlates with that of the look before by `correlation`
    /// (ignored at the first look).
    pub fn look(&mut self, t: f64, correlation: f64) -> f64 {
        let increment = (self.spending.spent(t) - self.spent).max(0.0);
        self.spent += increment;
        if self.going_on.is_empty() {
            let bound = normal::upper_quantile(0.5 * increment.max(f64::MIN_POSITIVE));
            self.going_on = simpson(bound, 1.0)
                .map(|(s, weight)| (s, weight * normal::density(s)))
                .collect();
            return increment;
        }
        let shared = (correlation * correlation).clamp(0.05, 0.95);
        let variance = self.variance / shared;
        let step = (variance - self.variance).sqrt();
        let bound = self.bound(increment, variance.sqrt(), step);
        let before = std::mem::take(&mut self.going_on);
        self.going_on = simpson(bound, variance.sqrt())
            .map(|(s, weight)| {
                let density: f64 = before
                    .iter()
                    .map(|(from, mass)| mass * normal::density((s - from) / step) / step)
                    .sum();
                (s, weight * density)
            })
            .collect();
        self.variance = variance;
        2.0 * normal::upper_tail(bound)
    }

    /// The bound in standard deviations that is newly crossed with
    /// probability `increment`.
    fn bound(&self, increment: f64, sd: f64, step: f64) -> f64 {
        let crossing = |bound: f64| -> f64 {
            self.going_on
                .iter()
                .map(|(from, mass)| {
                    let up = normal::upper_tail((bound * sd - from) / step);
                    let down = normal::upper_tail((bound * sd + from) / step);
                    mass * (up + down)
                })
                .sum()
        };
        let (mut low, mut high) = (0.0, 12.0);
        for _ in 0..30 {
            let middle = 0.5 * (low + high);
            if crossing(middle) > increment {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    }
}

/// Points and Simpson weights over ±`bound` standard deviations.
fn simpson(bound: f64, sd: f64) -> impl Iterator<Item = (f64, f64)> {
    let width = 2.0 * bound * sd / (GRID - 1) as f64;
    (0..GRID).map(move |index| {
        let weight = match index {
            0 => 1.0,
            index if index == GRID - 1 => 1.0,
            index if index % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (-bound * sd + index as f64 * width, weight * width / 3.0)
    })
}

/// The first number of pairs worth a look if `n_max` can be had.
#[must_use]
pub fn first_look(n_max: usize, alpha: f64) -> usize {
    if n_max <= SINGLE_LOOK {
        return n_max;
    }
    let spending = Spending::new(alpha);
    (FIRST_LOOK..n_max)
        .find(|&n| smallest_p(n) <= spending.spent(n as f64 / n_max as f64))
        .map_or(n_max, |n| unless_close(n, n_max))
}

/// The next number of pairs worth a look after `n`, at most `n_max`.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of pairs, far below 2^52"
)]
pub fn next_look(n: usize, n_max: usize) -> usize {
    unless_close((n as f64 * GROWTH).ceil() as usize, n_max)
}

fn unless_close(n: usize, n_max: usize) -> usize {
    if n as f64 * CLOSE_TO_END > n_max as f64 {
        n_max
    } else {
        n
    }
}

/// The smallest two-sided p-value that `n` pairs can give.
#[must_use]
pub fn smallest_p(n: usize) -> f64 {
    2.0f64.powi(1 - i32::try_from(n).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::super::golden::{RPACT_FIVE_LOOKS, RPACT_SEVEN_LOOKS};
    use super::*;

    /// Nominal levels for looks at these numbers of pairs.
    fn levels(spending: Spending, looks: &[f64]) -> Vec<f64> {
        let last = looks[looks.len() - 1];
        let mut design = GroupSequential::new(spending);
        let mut before = looks[0];
        looks
            .iter()
            .map(|&n| {
                let level = design.look(n / last, (before / n).sqrt());
                before = n;
                level
            })
            .collect()
    }

    #[track_caller]
    fn check(actual: &[f64], expected: &[f64], tolerance: f64) {
        for (a, e) in actual.iter().zip(expected) {
            assert!(
                (a - e).abs() <= tolerance,
                "{actual:?} instead of {expected:?}"
            );
        }
    }

    #[test]
    fn equal_looks_against_rpact() {
        let looks = [1.0, 2.0, 3.0, 4.0, 5.0];
        check(
            &levels(Spending::new(0.05), &looks),
            &RPACT_FIVE_LOOKS,
            2e-5,
        );
    }

    #[test]
    fn uneven_looks_against_rpact() {
        let looks = [8.0, 12.0, 18.0, 27.0, 40.0, 60.0, 90.0];
        check(
            &levels(Spending::new(0.05), &looks),
            &RPACT_SEVEN_LOOKS,
            2e-5,
        );
    }

    #[test]
    fn one_look_spends_all() {
        check(&levels(Spending::new(0.05), &[20.0]), &[0.05], 1e-12);
    }

    #[test]
    fn looks_are_planned_over_the_budget() {
        let plan = |n_max: usize| {
            let mut looks = vec![first_look(n_max, 0.05)];
            while looks[looks.len() - 1] < n_max {
                looks.push(next_look(looks[looks.len() - 1], n_max));
            }
            looks
        };
        assert_eq!(plan(10), [10]);
        assert_eq!(plan(20), [8, 12, 20]);
        assert_eq!(plan(40), [9, 14, 21, 31, 40]);
        assert_eq!(plan(130), [11, 16, 24, 35, 51, 74, 108, 130]);
    }
}
