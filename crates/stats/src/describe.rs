//! Centre and spread of one arm's runs.

use pinwise_format::whole_usize;

/// Centre and spread of a sample, in its own unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Description {
    /// Number of values.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Standard deviation with n − 1; 0 for fewer than two values.
    pub sd: f64,
    /// Interquartile range.
    pub iqr: f64,
    /// Coefficient of variation, sd / mean.
    pub cv: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// 90th percentile.
    pub p90: f64,
}

/// Describes a sample; `None` if it is empty.
#[must_use]
pub fn describe(values: &[f64]) -> Option<Description> {
    if values.is_empty() {
        return None;
    }
    let mean = mean(values);
    let sd = sd(values);
    Some(Description {
        count: values.len(),
        mean,
        median: quantile(values, 0.5),
        sd,
        iqr: quantile(values, 0.75) - quantile(values, 0.25),
        cv: if mean > 0.0 { sd / mean } else { 0.0 },
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        p90: quantile(values, 0.9),
    })
}

/// Arithmetic mean; NaN if empty.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / count(values)
}

/// Standard deviation with n − 1; 0 for fewer than two values.
#[must_use]
pub fn sd(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (squares / (count(values) - 1.0)).sqrt()
}

/// The middle value, or the mean of the two in the middle; `None` if empty.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| quantile(values, 0.5))
}

/// Sample quantile by linear interpolation (type 7 of Hyndman and Fan 1996, R's
/// default); NaN if empty.
#[must_use]
pub fn quantile(values: &[f64], probability: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&sorted, probability)
}

pub(super) fn quantile_of_sorted(sorted: &[f64], probability: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = probability.clamp(0.0, 1.0) * last as f64;
    let below = whole_usize(place.floor()).min(last);
    let above = (below + 1).min(last);
    let fraction = place - place.floor();
    sorted[below] + fraction * (sorted[above] - sorted[below])
}

/// Distribution-free interval for the median at the given confidence: order statistics whose
/// coverage the binomial distribution gives (the sign test inverted). `None` if there are too few
/// values.
#[must_use]
pub fn median_interval(values: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let n = values.len();
    let tail = 0.5 * (1.0 - confidence);
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // The largest k with P(Binomial(n, 1/2) < k) ≤ tail.
    let mut k = 0;
    let mut cumulative = 0.0;
    let mut term = 0.5f64.powi(i32::try_from(n).ok()?);
    if term <= 0.0 {
        return median_interval_of_many(&sorted, tail);
    }
    while cumulative + term <= tail {
        cumulative += term;
        term *= (n - k) as f64 / (k as f64 + 1.0);
        k += 1;
    }
    (k > 0).then(|| (sorted[k - 1], sorted[n - k]))
}

/// The same by a normal approximation, for so many values that `2⁻ⁿ` is 0 as a double.
fn median_interval_of_many(sorted: &[f64], tail: f64) -> Option<(f64, f64)> {
    let n = sorted.len() as f64;
    let half = super::normal::upper_quantile(tail) * n.sqrt() / 2.0;
    let k = whole_usize((n / 2.0 - half).floor()).max(1);
    Some((*sorted.get(k - 1)?, *sorted.get(sorted.len() - k)?))
}

/// 1.4826 × the median distance from the median. This is the standard deviation if the values are
/// normal, and is hardly affected by a few extreme values.
#[must_use]
pub fn robust_sd(values: &[f64]) -> f64 {
    let centre = quantile(values, 0.5);
    let distances: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
    1.4826 * quantile(&distances, 0.5)
}

/// Weighted centre that values far from the others affect little: an M-estimate with Cauchy weights
/// `1 / (1 + (distance / scale)²)`, iterated from the weighted median (Huber and Ronchetti 2009,
/// section 4.8). NaN if empty.
#[must_use]
pub fn robust_location(values: &[f64], weights: &[f64], scale: f64) -> f64 {
    let mut centre = weighted_median(values, weights);
    if scale <= 0.0 {
        return centre;
    }
    for _ in 0..8 {
        let (sum, total) = values.iter().zip(weights).fold((0.0, 0.0), |acc, (v, w)| {
            let distance = (v - centre) / scale;
            let pull = w / (1.0 + distance * distance);
            (acc.0 + pull * v, acc.1 + pull)
        });
        centre = sum / total;
    }
    centre
}

/// The value at which half of the weight is reached; NaN if empty.
fn weighted_median(values: &[f64], weights: &[f64]) -> f64 {
    let mut pairs: Vec<(f64, f64)> = values
        .iter()
        .copied()
        .zip(weights.iter().copied())
        .collect();
    pairs.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = 0.5 * weights.iter().sum::<f64>();
    let mut reached = 0.0;
    for (value, weight) in pairs {
        reached += weight;
        if reached >= half {
            return value;
        }
    }
    f64::NAN
}

pub(super) fn count(values: &[f64]) -> f64 {
    values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(actual: f64, expected: f64) {
        assert!(
            (actual - expected).abs() < 1e-9,
            "{actual} instead of {expected}"
        );
    }

    #[test]
    fn quantiles_are_those_of_r() {
        let values = [3.0, 1.0, 2.0, 10.0];
        check(quantile(&values, 0.5), 2.5);
        check(quantile(&values, 0.25), 1.75);
        check(quantile(&values, 0.9), 7.9);
        check(quantile(&[4.0], 0.3), 4.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn spread_is_described_as_in_r() {
        let described = describe(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        check(described.mean, 5.0);
        check(described.sd, (32.0f64 / 7.0).sqrt());
        check(described.iqr, 1.5);
        assert_eq!(describe(&[]), None);
        check(robust_sd(&[1.0, 2.0, 3.0, 4.0, 100.0]), 1.4826);
    }

    #[test]
    fn an_extreme_value_hardly_moves_the_robust_location() {
        let values = [1.0, 1.1, 0.9, 1.05, 9.0];
        let location = robust_location(&values, &[1.0; 5], 0.2);
        assert!((location - 1.01).abs() < 0.03, "{location}");
        check(robust_location(&values, &[1.0; 5], 0.0), 1.05);
        assert!(robust_location(&[], &[], 1.0).is_nan());
    }

    #[test]
    fn median_intervals_follow_the_binomial_distribution() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        // P(Bin(10) < 2) = 0.0107, P(Bin(10) < 3) = 0.0547: the 2nd and 9th.
        assert_eq!(median_interval(&values, 0.95), Some((2.0, 9.0)));
        assert_eq!(median_interval(&values[..5], 0.95), None);
        let many: Vec<f64> = (0..2000).map(f64::from).collect();
        let (low, high) = median_interval(&many, 0.95).unwrap();
        assert!((low - 955.0).abs() < 2.0 && (high - 1044.0).abs() < 2.0);
    }
}
