//! Selects the conspicuous ones among very many members and figures, such that only a small share of
//! those selected is selected by chance.
//!
//! The error rate counts members of a population, not figures. A member's figures are combined into
//! one p-value (Simes 1986), members are selected by Benjamini and Hochberg (1995), and then figures
//! within selected members at a level that allows for the selection (Benjamini and Bogomolov 2014).
//! Simes is valid for figures that depend on each other positively, as those of one machine do.

/// One p-value for the hypothesis that none of a member's figures is an outlier (Simes 1986). NaN
/// is left out; 1 if there are none.
#[must_use]
pub fn simes(p: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = p.filter(|p| p.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let ranked = sorted.iter().zip(1..);
    ranked
        .map(|(p, rank)| p * count / f64::from(rank))
        .fold(1.0, f64::min)
}

/// Adjusts p-values by Benjamini and Hochberg: each becomes the lowest rate of false discoveries at
/// which it is selected. NaN stays NaN and does not count.
#[must_use]
pub fn adjust_p_values(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).filter(|at| p[*at].is_finite()).collect();
    order.sort_unstable_by(|a, b| p[*b].total_cmp(&p[*a]));
    let count = order.len() as f64;
    let mut adjusted = vec![f64::NAN; p.len()];
    let mut least = 1.0f64;
    for (from_last, at) in order.iter().enumerate() {
        let rank = count - from_last as f64;
        least = least.min(p[*at] * count / rank);
        adjusted[*at] = least;
    }
    adjusted
}

/// Adjusts the p-values of one selected member's figures for the selection of `selected` out of
/// `members`: at a rate of `q`, those of at most `q` are selected (Benjamini and Bogomolov 2014).
/// NaN becomes 1.
#[must_use]
pub fn adjust_within_member(p: &[f64], selected: usize, members: usize) -> Vec<f64> {
    let factor = members as f64 / selected.max(1) as f64;
    let within = adjust_p_values(p);
    within.iter().map(|p| (p * factor).min(1.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(actual: f64, expected: f64) {
        assert!(
            (actual - expected).abs() < 1e-12,
            "{actual} instead of {expected}"
        );
    }

    #[test]
    fn simes_is_the_smallest_adjusted_p_value() {
        check(simes([0.01, 0.04, f64::NAN, 0.03].into_iter()), 0.03);
        check(simes([0.5].into_iter()), 0.5);
        check(simes(std::iter::empty()), 1.0);
        check(simes([0.02, 0.02, 0.02].into_iter()), 0.02);
    }

    #[test]
    fn adjusted_p_values_are_those_of_r() {
        // p.adjust(c(0.01, 0.02, 0.03, 0.5), "BH")
        let found = adjust_p_values(&[0.03, 0.01, f64::NAN, 0.5, 0.02]);
        for (at, expected) in [(0, 0.04), (1, 0.04), (3, 0.5), (4, 0.04)] {
            check(found[at], expected);
        }
        assert!(found[2].is_nan());
    }

    #[test]
    fn p_values_within_a_member_allow_for_the_selection() {
        let found = adjust_within_member(&[0.001, 0.5], 2, 100);
        check(found[0], 0.1);
        check(found[1], 1.0);
    }
}
