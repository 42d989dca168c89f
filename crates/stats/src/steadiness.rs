//! Compares how much the runs of two arms spread. This is independent of which arm is faster, and is
//! computed once, at the end.
//!
//! Let `y'` be the responses, those of the arm shifted by the typical difference between the arms. A
//! block's *local level* is the median of both arms' `y'` in the blocks around it, without the block
//! itself. Each run has a distance `z = |y' − level|`, as in the tests of Levene (1960) and of Brown
//! and Forsythe (1974), but from a local level: drift and long bursts move the level, but not the
//! distances.
//!
//! Let ρ be the true ratio of spreads. If a block's labels are exchanged, `z(arm)/√ρ` and
//! `z(baseline)·√ρ` are exchanged, while the level, which ignores labels, stays. So random signs give
//! the null distribution of the signed ranks of their differences (Wilcoxon 1945; on aligned
//! responses: Hodges and Lehmann 1962). As ρ grows every difference falls, so that the test can be
//! inverted: the estimate is the ρ at which it is balanced, the interval is all ρ that it does not
//! reject.
//!
//! The level itself is uncertain, which biases the ratio towards 1: with 80 blocks of normal noise a
//! true factor of 2 is estimated as 1.9. If both arms are alike there is no such bias.

use super::Responses;
use super::describe::{quantile, robust_location};
use super::inversion::Family;
use super::paired::{Interval, Paired};

/// Blocks on either side whose runs give the local level.
const REACH: usize = 4;
/// Share of the error level that is used. The rest makes up for the estimated shift between the
/// arms, which makes the test slightly inexact if noise is skewed.
const GUARD: f64 = 0.8;
/// Spreads are not compared with fewer blocks.
pub const MIN_BLOCKS: usize = 10;
/// Shorter distances may only be errors of the estimated shift.
const MIN_DISTANCE: f64 = 1e-9;
/// Largest `ln` of a ratio of spreads that is considered: a factor of 400.
const MAX_LN_RATIO: f64 = 6.0;
/// Resolution of estimate and interval, in `ln(ratio)`.
const TOLERANCE: f64 = 1e-6;

/// The spread of an arm's runs compared with the baseline's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// Column of the arm.
    pub arm: usize,
    /// Estimate of `ln(spread of the arm / spread of the baseline)`.
    pub estimate: f64,
    /// Interval of it, at the level at which Holm judged it.
    pub interval: Interval,
    /// Confidence of the interval.
    pub confidence: f64,
    /// p-value adjusted for all arms: at most α if the interval excludes 0.
    pub p_adjusted: f64,
}

/// Compares every arm's spread with the baseline's, with a family-wise error of `alpha` over the arms
/// (Holm 1979). Empty if there are too few blocks, or if runs do not differ at all.
#[must_use]
pub fn compare_with_baseline(data: &Responses, baseline: usize, alpha: f64) -> Vec<Steadiness> {
    if data.blocks() < MIN_BLOCKS {
        return Vec::new();
    }
    let arms: Vec<usize> = (0..data.arms()).filter(|&arm| arm != baseline).collect();
    let pairs: Vec<(usize, Distances)> = arms
        .into_iter()
        .map(|arm| (arm, Distances::from_responses(data, arm, baseline)))
        .filter(|(_, distances)| distances.is_usable())
        .collect();
    let p_values: Vec<f64> = pairs.iter().map(|(_, pair)| pair.p_value(0.0)).collect();
    let used = GUARD * alpha;
    let steps = holm_steps(&p_values, used);
    let mut largest = 0.0f64;
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; pairs.len()];
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max((p_values[index] / GUARD * (pairs.len() - rank) as f64).min(1.0));
        adjusted[index] = largest;
    }
    let judged = pairs.iter().enumerate().map(|(index, (arm, pair))| {
        let share = 1.0 / steps[index] as f64;
        let estimate = pair.estimate();
        Steadiness {
            arm: *arm,
            estimate,
            interval: pair.interval(estimate, used * share),
            confidence: 1.0 - alpha * share,
            p_adjusted: adjusted[index],
        }
    });
    judged.collect()
}

/// Holm's step-down: for each p-value, the number of arms that α was divided by.
fn holm_steps(p_values: &[f64], alpha: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut open = p_values.len();
    let mut steps = vec![1; p_values.len()];
    let mut is_rejecting = true;
    for index in order {
        steps[index] = open.max(1);
        is_rejecting &= p_values[index] <= alpha / open.max(1) as f64;
        if is_rejecting && open > 1 {
            open -= 1;
        }
    }
    steps
}

/// The distances of two arms' runs from the local level, block by block.
struct Distances {
    arm: Vec<f64>,
    baseline: Vec<f64>,
}

impl Distances {
    fn from_responses(data: &Responses, arm: usize, baseline: usize) -> Self {
        let shift = estimate_shift(&data.differences(arm, baseline));
        let aligned: Vec<(f64, f64)> = data
            .rows()
            .map(|row| (row[arm] - shift, row[baseline]))
            .collect();
        let level = |block: usize| {
            let first = block.saturating_sub(REACH);
            let last = (block + REACH).min(aligned.len() - 1);
            let around: Vec<f64> = (first..=last)
                .filter(|&other| other != block)
                .flat_map(|other| [aligned[other].0, aligned[other].1])
                .collect();
            quantile(&around, 0.5)
        };
        let distances = aligned.iter().enumerate().map(|(block, both)| {
            let level = level(block);
            ((both.0 - level).abs(), (both.1 - level).abs())
        });
        let (arm, baseline) = distances.unzip();
        Self { arm, baseline }
    }

    /// Do the runs of both arms vary, so that there is a ratio of spreads?
    fn is_usable(&self) -> bool {
        let moves = |distances: &[f64]| distances.iter().filter(|&&z| z > MIN_DISTANCE).count();
        moves(&self.arm) >= MIN_BLOCKS && moves(&self.baseline) >= MIN_BLOCKS
    }

    /// Differences of the distances, corrected for a ratio of spreads `theta`, as `ln`.
    fn differences(&self, theta: f64) -> Paired {
        let (down, up) = ((-0.5 * theta).exp(), (0.5 * theta).exp());
        let both = self.arm.iter().zip(&self.baseline);
        Paired::without_weights(both.map(|(a, b)| a * down - b * up).collect())
    }

    fn p_value(&self, theta: f64) -> f64 {
        self.differences(theta).p_value(0.0)
    }

    /// The middle of all ratios at which the ranks are balanced.
    fn estimate(&self) -> f64 {
        let sum = |theta: f64| -> f64 {
            let scores = self.differences(theta).scores(0.0);
            scores.iter().sum()
        };
        let last_above = bisect(-MAX_LN_RATIO, MAX_LN_RATIO, |theta| sum(theta) > 0.25);
        let first_below = bisect(last_above, MAX_LN_RATIO, |theta| sum(theta) > -0.25);
        0.5 * (last_above + first_below)
    }

    fn interval(&self, estimate: f64, level: f64) -> Interval {
        let is_rejected = |theta: f64| self.p_value(theta) <= level;
        let end = |far: f64| match is_rejected(far) {
            true => bisect(far, estimate, is_rejected),
            false => far * f64::INFINITY,
        };
        Interval {
            low: end(-MAX_LN_RATIO),
            high: end(MAX_LN_RATIO),
        }
    }
}

/// The typical difference, robust against extreme ones. If a few slow runs moved it, the arm that
/// happens to have more of them would be shifted too far, and its other runs would seem to spread.
/// (With every fourth run 40 % slower, the Hodges–Lehmann estimate gives 15 % false alarms at a level
/// of 5 %.)
fn estimate_shift(differences: &[f64]) -> f64 {
    let centre = quantile(differences, 0.5);
    let away: Vec<f64> = differences.iter().map(|d| (d - centre).abs()).collect();
    let weights = vec![1.0; differences.len()];
    robust_location(differences, &weights, quantile(&away, 0.25))
}

/// Finds where `holds` changes between `from`, at which it is true, and `to`, at which it is false.
fn bisect(mut from: f64, mut to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    while (to - from).abs() > TOLERANCE {
        let middle = 0.5 * (from + to);
        if holds(middle) {
            from = middle;
        } else {
            to = middle;
        }
    }
    0.5 * (from + to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Simulates blocks of two arms with normal noise of these standard deviations, a shift between
    /// the arms, and a common drift.
    fn blocks(count: u32, sds: [f64; 2], seed: u64) -> Responses {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut data = Responses::new(2);
        for block in 0..count {
            let drift = 0.002 * f64::from(block);
            let mut normal = |sd: f64| {
                let sum: f64 = (0..12).map(|_| chance.random::<f64>()).sum();
                sd * (sum - 6.0)
            };
            data.push(&[drift + normal(sds[0]), 0.3 + drift + normal(sds[1])]);
        }
        data
    }

    #[test]
    fn a_planted_ratio_of_spreads_is_found() {
        for (sds, truth) in [([0.02, 0.01], 0.5f64), ([0.02, 0.06], 3.0)] {
            let truth = truth.ln();
            let found: Vec<Steadiness> = (0..40)
                .map(|seed| compare_with_baseline(&blocks(80, sds, seed), 0, 0.05)[0])
                .collect();
            let mean = found.iter().map(|f| f.estimate).sum::<f64>() / 40.0;
            // The uncertainty of the local level biases the ratio towards 1.
            assert!((mean - truth).abs() < 0.16, "{mean} for {truth}");
            assert!(mean.abs() < truth.abs() + 0.05, "{mean} for {truth}");
            let seen = found.iter().filter(|f| f.p_adjusted <= 0.05).count();
            assert!(seen >= 36, "{seen} of 40");
            let holds = |f: &&Steadiness| f.interval.low < truth && truth < f.interval.high;
            let held = found.iter().filter(holds).count();
            assert!(held >= 32, "{held} of 40");
        }
    }

    #[test]
    fn equal_spreads_rarely_count_as_different_despite_shift_and_drift() {
        let claims = (0..400)
            .filter(|&seed| {
                let found = compare_with_baseline(&blocks(40, [0.02, 0.02], seed), 0, 0.05)[0];
                let excludes = found.interval.low > 0.0 || found.interval.high < 0.0;
                assert_eq!(excludes, found.p_adjusted <= 0.05, "{found:?}");
                excludes
            })
            .count();
        assert!(claims <= 33, "{claims} of 400");
        assert!(claims >= 4, "{claims} of 400: the test has no power");
    }

    #[test]
    fn exchanging_the_arms_inverts_the_ratio() {
        let data = blocks(40, [0.02, 0.05], 3);
        let forth = compare_with_baseline(&data, 0, 0.05)[0];
        let back = compare_with_baseline(&data, 1, 0.05)[0];
        assert!(
            (forth.estimate + back.estimate).abs() < 0.01,
            "{forth:?} {back:?}"
        );
        assert!((forth.p_adjusted - back.p_adjusted).abs() < 1e-3);
    }

    #[test]
    fn few_blocks_and_equal_runs_are_not_compared() {
        assert!(compare_with_baseline(&blocks(9, [0.02, 0.02], 1), 0, 0.05).is_empty());
        let mut data = Responses::new(2);
        for _ in 0..30 {
            data.push(&[0.0, 0.1]);
        }
        assert!(compare_with_baseline(&data, 0, 0.05).is_empty());
    }

    #[test]
    fn holm_divides_by_the_arms_still_open() {
        assert_eq!(holm_steps(&[0.001, 0.5, 0.02], 0.05), vec![3, 1, 2]);
        assert_eq!(holm_steps(&[0.5, 0.6], 0.05), vec![2, 2]);
        assert_eq!(holm_steps(&[], 0.05), Vec::<usize>::new());
    }
}
