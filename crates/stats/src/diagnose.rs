//! Finds what disturbed an experiment (drift, position effects, outliers, tails), and projects
//! whether the budget will suffice.
//!
//! None of it changes a verdict: randomised blocks keep the comparison valid. But disturbances make
//! intervals wider, and the user should know why.

use super::Responses;
use super::describe::{count, describe, mean, quantile, robust_sd};

/// `ln` of how much slower the last third of the blocks ran than the first.
#[must_use]
pub fn drift(data: &Responses) -> f64 {
    let levels: Vec<f64> = data.rows().map(mean).collect();
    let third = levels.len() / 3;
    if third == 0 {
        return 0.0;
    }
    quantile(&levels[levels.len() - third..], 0.5) - quantile(&levels[..third], 0.5)
}

/// How much more a run costs in a block's last slot than in its first, `ln(ratio)`. `None` if the
/// estimate is less than three standard errors from 0. `positions[b][arm]` is the arm's slot in
/// block `b`.
#[must_use]
pub fn position_effect(data: &Responses, positions: &[Vec<usize>]) -> Option<f64> {
    let last = data.arms().checked_sub(1).filter(|&last| last > 0)?;
    let centres: Vec<f64> = (0..data.arms())
        .map(|arm| quantile(&data.column(arm), 0.5))
        .collect();
    let residual_at = |slot: usize, row: &[f64], places: &[usize]| -> Option<f64> {
        let arm = places.iter().position(|&place| place == slot)?;
        Some(row[arm] - centres[arm])
    };
    let differences: Vec<f64> = data
        .rows()
        .zip(positions)
        .filter_map(|(row, places)| {
            Some(residual_at(last, row, places)? - residual_at(0, row, places)?)
        })
        .collect();
    if differences.len() < 10 {
        return None;
    }
    let estimate = quantile(&differences, 0.5);
    let standard_error = 1.2533 * robust_sd(&differences) / count(&differences).sqrt();
    (estimate.abs() > 3.0 * standard_error && standard_error > 0.0).then_some(estimate)
}

/// Number of runs more than five robust standard deviations from their arm's
/// median.
#[must_use]
pub fn outliers(values: &[f64]) -> usize {
    let centre = quantile(values, 0.5);
    let limit = 5.0 * robust_sd(values);
    if limit <= 0.0 {
        return 0;
    }
    values
        .iter()
        .filter(|v| (*v - centre).abs() > limit)
        .count()
}

/// Ratios of the mean and of the 90th percentile of two samples of costs. The mean ratio is also
/// that of the totals, the other shows the tail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Totals {
    /// Mean of the arm divided by that of the baseline.
    pub mean_ratio: f64,
    /// 90th percentile of the arm divided by that of the baseline.
    pub p90_ratio: f64,
}

/// Compares totals and tails; `None` without runs or if costs are zero.
#[must_use]
pub fn compare_totals(arm: &[f64], baseline: &[f64]) -> Option<Totals> {
    let (arm, baseline) = (describe(arm)?, describe(baseline)?);
    (baseline.mean > 0.0 && baseline.p90 > 0.0).then(|| Totals {
        mean_ratio: arm.mean / baseline.mean,
        p90_ratio: arm.p90 / baseline.p90,
    })
}

/// The expected half-width of an interval after `planned` blocks, if it is `now` after `done`: it
/// shrinks with the square root.
#[must_use]
pub fn projected_half_width(now: f64, done: usize, planned: usize) -> f64 {
    now * (done as f64 / planned.max(1) as f64).sqrt()
}

/// How many times the work so far is needed in total to make the half-width `wanted`; at least 1.
#[must_use]
pub fn work_factor(now: f64, wanted: f64) -> f64 {
    (now / wanted).powi(2).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(blocks: u32, change: impl Fn(u32) -> [f64; 2]) -> Responses {
        let mut data = Responses::new(2);
        for block in 0..blocks {
            data.push(&change(block));
        }
        data
    }

    #[test]
    fn drift_is_last_third_over_first() {
        let data = steady(9, |b| [f64::from(b / 3) * 0.1; 2]);
        assert!((drift(&data) - 0.2).abs() < 1e-12);
        assert!(drift(&steady(2, |_| [0.0; 2])).abs() < 1e-12);
    }

    #[test]
    fn a_slow_first_slot_is_seen() {
        let places: Vec<Vec<usize>> = (0..40)
            .map(|b| if b % 2 == 0 { vec![0, 1] } else { vec![1, 0] })
            .collect();
        let data = steady(40, |b| {
            let noise = 0.001 * f64::from(b * 7 % 5);
            let slow = |is_first: bool| if is_first { 0.05 } else { 0.0 };
            [slow(b % 2 == 0) + noise, slow(b % 2 == 1)]
        });
        let effect = position_effect(&data, &places).unwrap();
        assert!((effect + 0.05).abs() < 0.01, "{effect}");
        let even = steady(40, |b| {
            [0.001 * f64::from(b * 7 % 5), 0.001 * f64::from(b * 11 % 5)]
        });
        assert_eq!(position_effect(&even, &places), None);
    }

    #[test]
    fn runs_far_from_the_median_are_counted() {
        let mut values: Vec<f64> = (0..20).map(f64::from).collect();
        values.push(1000.0);
        assert_eq!(outliers(&values), 1);
        assert_eq!(outliers(&[1.0; 5]), 0);
    }

    #[test]
    fn work_grows_with_the_square() {
        assert!((work_factor(0.04, 0.01) - 16.0).abs() < 1e-9);
        assert!((projected_half_width(0.04, 20, 80) - 0.02).abs() < 1e-12);
    }
}
