//! Names some of very many things, so that few of those named are named by chance.
//!
//! The unit of the error rate is the member of a population, not the figure. A member's figures
//! give one p-value (Simes 1986), members are selected by Benjamini and Hochberg (1995), and
//! figures within the selected members at a level that allows for the selection (Benjamini and
//! Bogomolov 2014). Simes holds for figures that depend on each other positively, as those of one
//! machine do.

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

/// p-values adjusted by Benjamini and Hochberg: the rate of false discoveries
/// at which each is just among those named. NaN stays NaN and does not count.
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

/// p-values of one selected member's figures, adjusted for `selected` of `members` having been
/// selected: at a rate of `q`, name those of at most `q` (Benjamini and Bogomolov 2014). NaN becomes 1.
#[must_use]
pub fn adjusted_within(p: &[f64], selected: usize, members: usize) -> Vec<f64> {
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
    fn simes_is_the_least_adjusted_p() {
        check(simes([0.01, 0.04, f64::NAN, 0.03].into_iter()), 0.03);
        check(simes([0.5].into_iter()), 0.5);
        check(simes(std::iter::empty()), 1.0);
        check(simes([0.02, 0.02, 0.02].into_iter()), 0.02);
    }

    #[test]
    fn adjusted_as_in_r() {
        // p.adjust(c(0.01, 0.02, 0.03, 0.5), "BH")
        let found = adjust_p_values(&[0.03, 0.01, f64::NAN, 0.5, 0.02]);
        for (at, expected) in [(0, 0.04), (1, 0.04), (3, 0.5), (4, 0.04)] {
            check(found[at], expected);
        }
        assert!(found[2].is_nan());
    }

    #[test]
    fn selection_is_paid_for() {
        let found = adjusted_within(&[0.001, 0.5], 2, 100);
        check(found[0], 0.1);
        check(found[1], 1.0);
    }
}
