//! Plans looks at the data before the end that do not raise the error rate.
//!
//! This is a group-sequential design with an error-spending function (Lan and DeMets 1983). At each
//! look the nominal level is found by recursive integration of the statistic's density over the
//! continuation region (Armitage, McPherson and Rowe 1969), with the actual correlation between
//! looks, from the scores.
//!
//! With `n` of `n_max` pairs done, `t = n / n_max`, error has been spent up to
//! `α (¾ e + ¼ t^1.5)`. The second part, of the power family, keeps most of its error for the end.
//! The first part, `e = (1 − (6/n)^¼) / (1 − (6/n_max)^¼)`, hardly depends on the budget and leaves
//! error for every doubling of the pairs. So an effect that ten pairs show is claimed after about
//! ten pairs, and there is still error left for one that takes two hundred of six hundred.
//!
//! Without a planned end, `1 − √(6/n)` of the error has been spent after n pairs: half of it after
//! 24, and never all. With noise of 3 % a run, true differences of 10, 5 and 2 % take 9, 12 and 45
//! pairs in the median, as they do with budgets of 40, 40 and 130. The slowest tenth takes 16, 19
//! and 106 pairs instead of 16, 18 and 90, of which 1 % were undecided at the end of the budget (400
//! simulated comparisons each). Of the exponents ¼, ½, ¾ and 1 of `6/n`, ½ was never the slowest.
//!
//! A look is cheap if it only tests whether all arms can be claimed, so there is one after each of
//! the first 64 pairs; intervals are computed at fewer looks.

use super::normal;
use pinwise_format::whole_usize;

/// Factor between the numbers of pairs of two looks with intervals.
const VERDICT_GROWTH: f64 = 1.45;
/// Up to this many pairs there is a look for claims after every pair.
const EVERY_PAIR: usize = 64;
/// Afterwards, the factor between the numbers of pairs of two looks for claims.
const CLAIM_GROWTH: f64 = 1.05;
/// No claim is made on fewer pairs.
pub const MIN_PAIRS: usize = 6;
/// If at most this many pairs are possible, the only look is at the end.
const SINGLE_LOOK: usize = 12;
/// A look is left out if the end is less than this factor away.
const CLOSE_TO_END: f64 = 1.2;
/// Share of the error that is spent early, almost regardless of the budget.
const EARLY_SHARE: f64 = 0.75;
/// Exponent of the early part; a larger one spends more on the first pairs.
const EARLY_EXPONENT: f64 = 0.25;
/// Exponent of the late part, of the power family.
const LATE_EXPONENT: f64 = 1.5;
/// Standard deviations beyond which a normal density is taken as 0.
const REACH: f64 = 7.0;
/// Points of the grid over the continuation region.
const GRID: usize = 161;

/// The error that may be spent, and when.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spending {
    /// Two-sided error in total.
    pub alpha: f64,
    /// How it is spread over the experiment.
    pub pace: Pace,
}

/// How error is spread over an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// The number of pairs is limited.
    Planned {
        /// Share of the error that is spent early, almost regardless of the budget.
        early: f64,
    },
    /// The number of pairs is not limited, so that no error is kept for an end.
    OpenEnded {
        /// Nothing is spent up to this number of pairs.
        from_pairs: usize,
    },
}

impl Spending {
    /// Spends three quarters of the error early, the rest by `t^1.5`.
    #[must_use]
    pub const fn new(alpha: f64) -> Self {
        Self {
            alpha,
            pace: Pace::Planned { early: EARLY_SHARE },
        }
    }

    /// Spends all error by `t^1.5`: for statistics that a few runs may dominate.
    #[must_use]
    pub const fn late(alpha: f64) -> Self {
        Self {
            alpha,
            pace: Pace::Planned { early: 0.0 },
        }
    }

    /// Spends error by `1 − (from_pairs / n)^½`, for an experiment without a planned end.
    #[must_use]
    pub const fn open_ended(alpha: f64, from_pairs: usize) -> Self {
        Self {
            alpha,
            pace: Pace::OpenEnded { from_pairs },
        }
    }

    /// Error spent once `pairs` of `most` are done.
    #[must_use]
    pub fn spent(&self, pairs: f64, most: f64) -> f64 {
        match self.pace {
            // If it is ended after all, that does not depend on the results.
            Pace::OpenEnded { .. } if pairs >= most => self.alpha,
            Pace::OpenEnded { from_pairs } => {
                let from = from_pairs as f64;
                self.alpha * (1.0 - (from / pairs.max(from)).sqrt())
            }
            Pace::Planned { early } => self.alpha * planned_share(early, pairs, most),
        }
    }
}

/// Share of the error spent once `pairs` of `most` are done.
fn planned_share(share_early: f64, pairs: f64, most: f64) -> f64 {
    let least = MIN_PAIRS as f64;
    let t = (pairs / most.max(1.0)).clamp(0.0, 1.0);
    let spent = |pairs: f64| 1.0 - (least / pairs.max(least)).powf(EARLY_EXPONENT);
    let early = if most > least {
        (spent(pairs) / spent(most)).min(1.0)
    } else {
        t
    };
    share_early * early + (1.0 - share_early) * t.powf(LATE_EXPONENT)
}

/// The levels of one contrast over its looks.
#[derive(Debug, Clone)]
pub struct GroupSequential {
    spending: Spending,
    spent: f64,
    /// Variance of the statistic, which is 1 at the first look.
    variance: f64,
    /// Distribution of the statistic among experiments that were not ended: values, ascending, with
    /// their probabilities.
    going_on: Vec<(f64, f64)>,
}

impl GroupSequential {
    /// A design without looks so far.
    #[must_use]
    pub const fn new(spending: Spending) -> Self {
        Self {
            spending,
            spent: 0.0,
            variance: 1.0,
            going_on: Vec::new(),
        }
    }

    /// Adds a look at `pairs` of `most` and returns its nominal two-sided level. `correlation` is
    /// that of the statistic with the one at the look before (ignored at the first look).
    pub fn add_look(&mut self, pairs: f64, most: f64, correlation: f64) -> f64 {
        let increment = (self.spending.spent(pairs, most) - self.spent).max(0.0);
        self.spent += increment;
        if self.going_on.is_empty() {
            let bound = normal::upper_quantile(0.5 * increment.max(f64::MIN_POSITIVE));
            self.going_on = grid(bound, 1.0)
                .map(|(s, weight)| (s, weight * normal::density(s)))
                .collect();
            return increment;
        }
        let shared = (correlation * correlation).clamp(0.05, 0.995);
        let variance = self.variance / shared;
        let step = (variance - self.variance).sqrt();
        let bound = self.find_bound(increment, variance.sqrt(), step);
        let before = std::mem::take(&mut self.going_on);
        self.going_on = grid(bound, variance.sqrt())
            .map(|(s, weight)| {
                // Only points within reach contribute.
                let first = before.partition_point(|(from, _)| *from < s - REACH * step);
                let near = before[first..]
                    .iter()
                    .take_while(|(from, _)| *from <= s + REACH * step);
                let density: f64 = near
                    .map(|(from, mass)| mass * normal::density((s - from) / step) / step)
                    .sum();
                (s, weight * density)
            })
            .collect();
        self.variance = variance;
        2.0 * normal::upper_tail(bound)
    }

    /// The bound, in standard deviations, that the statistic crosses for the first time with
    /// probability `increment`.
    fn find_bound(&self, increment: f64, sd: f64, step: f64) -> f64 {
        // Both sides have the same probability.
        let crossing = |bound: f64| -> f64 {
            let edge = bound * sd;
            let within = self
                .going_on
                .partition_point(|(from, _)| *from < edge - REACH * step);
            let up: f64 = self.going_on[within..]
                .iter()
                .map(|(from, mass)| mass * normal::upper_tail((edge - from) / step))
                .sum();
            2.0 * up
        };
        let (mut low, mut high) = (0.0, 12.0);
        for _ in 0..26 {
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

/// Points and trapezoid weights over ±`bound` standard deviations. (Simpson's alternating weights
/// would need twice the points if looks follow each other closely.)
fn grid(bound: f64, sd: f64) -> impl Iterator<Item = (f64, f64)> {
    let width = 2.0 * bound * sd / (GRID - 1) as f64;
    (0..GRID).map(move |index| {
        let is_end = index == 0 || index == GRID - 1;
        let weight = if is_end { 0.5 } else { 1.0 };
        (-bound * sd + index as f64 * width, weight * width)
    })
}

/// What a look is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only to find out whether every arm can be claimed.
    Claims,
    /// For verdicts with their intervals.
    Verdicts,
}

/// Says when to look.
#[derive(Debug, Clone)]
pub struct Schedule {
    spending: Spending,
    least: usize,
    /// Pairs at the next look for claims.
    next_claims: usize,
    /// Pairs at the next look for verdicts.
    next_verdicts: Option<usize>,
}

impl Schedule {
    /// A schedule of looks, none of which but the last comes before `least` pairs.
    #[must_use]
    pub const fn new(spending: Spending, least: usize) -> Self {
        Self {
            spending,
            least,
            next_claims: 0,
            next_verdicts: None,
        }
    }

    /// The look that is due now, with `pairs` done of `most` possible; `None` if none is.
    pub fn next_due(&mut self, pairs: usize, most: usize) -> Option<Depth> {
        let planned = first_look(most, self.spending).max(self.least).min(most);
        let next = *self.next_verdicts.get_or_insert(planned);
        let first = planned.min(next);
        if pairs >= next.min(most) {
            self.next_verdicts = Some(next_verdicts(pairs, most));
            self.next_claims = next_claims(pairs);
            return Some(Depth::Verdicts);
        }
        if pairs >= first && pairs >= self.next_claims {
            self.next_claims = next_claims(pairs);
            return Some(Depth::Claims);
        }
        None
    }
}

fn next_claims(pairs: usize) -> usize {
    if pairs < EVERY_PAIR {
        pairs + 1
    } else {
        whole_usize((pairs as f64 * CLAIM_GROWTH).ceil())
    }
}

/// The first number of pairs worth a look if `most` are possible.
fn first_look(most: usize, spending: Spending) -> usize {
    if most <= SINGLE_LOOK {
        return most;
    }
    (MIN_PAIRS..most)
        .find(|&n| smallest_p(n) <= spending.spent(n as f64, most as f64))
        .map_or(most, |n| skip_to_end_if_close(n, most))
}

/// The number of pairs at the look for verdicts after that at `n` pairs; at most `most`.
fn next_verdicts(n: usize, most: usize) -> usize {
    skip_to_end_if_close(whole_usize((n as f64 * VERDICT_GROWTH).ceil()), most)
}

fn skip_to_end_if_close(n: usize, most: usize) -> usize {
    if n as f64 * CLOSE_TO_END > most as f64 {
        most
    } else {
        n
    }
}

/// The smallest two-sided p-value that `n` pairs can give.
fn smallest_p(n: usize) -> f64 {
    2.0f64.powi(1 - i32::try_from(n).unwrap_or(i32::MAX))
}

/// The fewest pairs that allow a claim at a two-sided error of `alpha`.
#[must_use]
pub fn least_pairs(alpha: f64) -> usize {
    (MIN_PAIRS..64)
        .find(|&n| smallest_p(n) <= alpha)
        .unwrap_or(64)
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
                let level = design.add_look(n, last, (before / n).sqrt());
                before = n;
                level
            })
            .collect()
    }

    const LATE: Spending = Spending {
        alpha: 0.05,
        pace: Pace::Planned { early: 0.0 },
    };

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
        check(
            &levels(LATE, &[1.0, 2.0, 3.0, 4.0, 5.0]),
            &RPACT_FIVE_LOOKS,
            2e-5,
        );
    }

    #[test]
    fn uneven_looks_against_rpact() {
        let looks = [8.0, 12.0, 18.0, 27.0, 40.0, 60.0, 90.0];
        check(&levels(LATE, &looks), &RPACT_SEVEN_LOOKS, 2e-5);
    }

    #[test]
    fn one_look_spends_all() {
        check(&levels(LATE, &[20.0]), &[0.05], 1e-12);
        check(&levels(Spending::new(0.05), &[20.0]), &[0.05], 1e-12);
    }

    #[test]
    fn a_walk_that_is_looked_at_after_every_step_crosses_as_often_as_planned() {
        // Sixty-four looks at a random walk of fair coins: as often as the
        // design says, to the resolution of this many walks.
        let looks: Vec<f64> = (9..=64u32).map(f64::from).collect();
        let bounds: Vec<f64> = levels(Spending::new(0.05), &looks)
            .into_iter()
            .map(|level| normal::upper_quantile(0.5 * level))
            .collect();
        let mut state = 1u64;
        let mut normal_draw = || {
            let mut sum = -6.0;
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                sum += (state >> 40) as f64 / f64::from(1u32 << 24);
            }
            sum
        };
        let walks = 20_000;
        let crossed = (0..walks)
            .filter(|_| {
                let mut walk = 0.0;
                let mut has_crossed = false;
                for step in 1..=64usize {
                    walk += normal_draw();
                    if let Some(bound) = step.checked_sub(9).map(|look| bounds[look]) {
                        has_crossed |= walk.abs() > bound * (step as f64).sqrt();
                    }
                }
                has_crossed
            })
            .count();
        let share = crossed as f64 / f64::from(walks);
        assert!((share - 0.05).abs() < 0.006, "{share}");
    }

    #[test]
    fn every_doubling_of_the_pairs_finds_error_left() {
        let planned = Spending::new(1.0);
        let doublings =
            [9.4, 18.8, 37.5, 75.0, 150.0, 300.0, 600.0].map(|n| planned.spent(n, 600.0));
        for pair in doublings.windows(2) {
            assert!(pair[1] - pair[0] > 0.1, "{doublings:?}");
        }
        check(&doublings[6..], &[1.0], 1e-12);
    }

    #[test]
    fn without_an_end_some_error_is_always_left() {
        let open = Spending::open_ended(0.04, MIN_PAIRS);
        let spent = |pairs: f64| open.spent(pairs, f64::INFINITY);
        check(
            &[spent(6.0), spent(24.0), spent(600.0)],
            &[0.0, 0.02, 0.036],
            1e-12,
        );
        assert!(spent(1e9) < 0.04);
        // A budget may end it after all.
        check(&[open.spent(100.0, 100.0)], &[0.04], 1e-12);
    }

    #[track_caller]
    fn check_plan(most: usize, verdicts: &[usize], claims: &[usize]) {
        let mut schedule = Schedule::new(Spending::new(0.04), MIN_PAIRS);
        let mut seen = (Vec::new(), Vec::new());
        for pairs in 1..=most {
            match schedule.next_due(pairs, most) {
                Some(Depth::Verdicts) => seen.0.push(pairs),
                Some(Depth::Claims) => seen.1.push(pairs),
                None => {}
            }
        }
        assert_eq!((seen.0.as_slice(), seen.1.as_slice()), (verdicts, claims));
    }

    #[test]
    fn looks_are_planned_over_the_budget() {
        check_plan(10, &[10], &[]);
        check_plan(20, &[8, 12, 20], &[9, 10, 11, 13, 14, 15, 16, 17, 18, 19]);
        let mut schedule = Schedule::new(Spending::new(0.04), MIN_PAIRS);
        let verdicts: Vec<usize> = (1..=130)
            .filter(|&n| schedule.next_due(n, 130) == Some(Depth::Verdicts))
            .collect();
        assert_eq!(verdicts, [9, 14, 21, 31, 45, 66, 96, 130]);
    }

    #[test]
    fn more_arms_need_more_pairs() {
        let least = |arms: u32| least_pairs(0.04 / f64::from(arms - 1));
        assert_eq!([2, 3, 4, 5, 6].map(least), [6, 7, 8, 8, 8]);
    }
}
