//! Tests whether the difference between two arms depends on a covariate: on the load, on how long
//! the experiment has run, on what ran before.
//!
//! The differences, less their Hodges–Lehmann estimate (Hodges and Lehmann 1962), are turned into
//! signed ranks. If they do not depend on the covariate, their signs are random whatever it is. The
//! statistic is the sum of the ranks weighted by the covariate, corrected for the estimate that was
//! subtracted ([`agreement`]), over its standard deviation under random signs. This is valid for
//! noise of any shape and for blocks of unequal noise.

use super::agreement;
use super::paired::hodges_lehmann;

/// Covariates that vary less than this are not tested.
const MIN_VARIATION: f64 = 1e-12;

/// Standard normal under "the differences do not depend on `covariate`"; positive if they grow with
/// it. `None` if the covariate does not vary among the differences, or nothing differs.
#[must_use]
pub fn z_of_dependence(differences: &[f64], covariate: &[f64]) -> Option<f64> {
    let (least, most) = differences
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), d| {
            (low.min(*d), high.max(*d))
        });
    let middle = covariate.iter().sum::<f64>() / covariate.len() as f64;
    let spread = covariate.iter().map(|x| (x - middle).abs());
    if spread.fold(0.0, f64::max) < MIN_VARIATION {
        return None;
    }
    let scores_at = |shift: f64| {
        let plain = signed_ranks(differences, shift);
        let by_covariate = plain.iter().zip(covariate);
        let other = by_covariate.map(|(rank, x)| rank * (x - middle)).collect();
        (plain, other)
    };
    let centre = hodges_lehmann(differences);
    agreement::compare_scores(least, most, centre, scores_at)
}

/// Signed ranks of the differences less `shift`, over their number.
fn signed_ranks(differences: &[f64], shift: f64) -> Vec<f64> {
    let aligned: Vec<f64> = differences.iter().map(|d| d - shift).collect();
    let mut order: Vec<usize> = (0..aligned.len()).collect();
    order.sort_by(|&a, &b| aligned[a].abs().total_cmp(&aligned[b].abs()));
    let mut ranks = vec![0.0; aligned.len()];
    for (place, index) in order.into_iter().enumerate() {
        let rank = (place + 1) as f64 / aligned.len() as f64;
        ranks[index] = if aligned[index] == 0.0 {
            0.0
        } else {
            rank.copysign(aligned[index])
        };
    }
    ranks
}

/// Ranks of values from 0 to 1, the same for equal values: a covariate that no extreme value
/// dominates.
#[must_use]
pub fn relative_ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count();
    let equal = |value: f64| values.iter().filter(|other| **other <= value).count();
    let most = values.len().saturating_sub(1).max(1) as f64;
    values
        .iter()
        .map(|&value| 0.5 * (below(value) + equal(value) - 1) as f64 / most)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(index: u32) -> f64 {
        f64::from(index * 7919 % 101) / 50.0 - 1.0
    }

    #[test]
    fn a_difference_that_grows_is_seen_and_a_constant_one_is_not() {
        let covariate: Vec<f64> = (0..60).map(f64::from).collect();
        let constant: Vec<f64> = (0..60).map(|i| 3.0 + noise(i)).collect();
        let growing: Vec<f64> = (0..60).map(|i| 0.04 * f64::from(i) + noise(i)).collect();
        assert!(z_of_dependence(&constant, &covariate).unwrap().abs() < 2.0);
        assert!(z_of_dependence(&growing, &covariate).unwrap() > 4.0);
    }

    #[test]
    fn a_covariate_that_never_varies_is_not_tested() {
        let differences: Vec<f64> = (0..20).map(noise).collect();
        assert_eq!(z_of_dependence(&differences, &[1.0; 20]), None);
        assert_eq!(z_of_dependence(&[0.0; 20], &[1.0; 20]), None);
        assert_eq!(z_of_dependence(&[], &[]), None);
    }

    #[test]
    fn equal_values_have_equal_ranks() {
        assert_eq!(
            relative_ranks(&[5.0, 1.0, 5.0, 9.0, 1.0]),
            [0.625, 0.125, 0.625, 1.0, 0.125]
        );
    }
}
