//! The test that other tools use: a t-test of two series of runs that are assumed to be independent.
//! pinwise only shows its result and decides nothing by it.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::describe::{mean, sd};

/// Two-sided p-value of Welch's test (Welch 1947) of two samples with at least two values each; 1
/// if neither varies.
#[must_use]
pub fn two_sided_p(a: &[f64], b: &[f64]) -> f64 {
    let variance_of_mean = |x: &[f64]| sd(x).powi(2) / x.len() as f64;
    let (va, vb) = (variance_of_mean(a), variance_of_mean(b));
    let t = (mean(a) - mean(b)) / (va + vb).sqrt();
    let freedom =
        (va + vb).powi(2) / (va * va / (a.len() as f64 - 1.0) + vb * vb / (b.len() as f64 - 1.0));
    match StudentsT::new(0.0, 1.0, freedom) {
        Ok(student) if t.is_finite() => 2.0 * student.sf(t.abs()),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_are_those_of_scipy() {
        // scipy 1.17.1: ttest_ind(a, b, equal_var=False)
        let a = [1.0, 1.2, 0.9, 1.1, 1.3];
        let b = [1.4, 1.6, 1.5, 1.2, 1.9];
        assert!((two_sided_p(&a, &b) - 0.018691066840085244).abs() < 1e-9);
        assert!((two_sided_p(&[1.0, 1.0], &[1.0, 1.0]) - 1.0).abs() < 1e-12);
    }
}
