//! One arm against another: weighted signed ranks and Hodges–Lehmann.
//!
//! With differences `d` and weights `w`, the statistic at shift θ is
//! `T(θ) = Σ_{i≤j} w_i w_j sign((d_i + d_j)/2 − θ)`: the weighted count of
//! Walsh averages above θ minus those below. It equals a sum of signed scores
//! `±a_i`, `a_i = w_i × (weighted rank of |d_i − θ|)`, whose null distribution
//! random signs give. The estimate is where `T` changes sign (the weighted
//! median of the Walsh averages), the interval all θ that the test does not
//! reject: test, estimate and interval are one object and never disagree. With
//! equal weights this is Wilcoxon's signed-rank test and the Hodges–Lehmann
//! estimate (Wilcoxon 1945; Hodges and Lehmann 1963; Tukey 1949).

use super::signflip;

/// Resolution of interval ends and estimates, in units of `ln(ratio)`.
const TOLERANCE: f64 = 1e-10;

/// Differences of one contrast with the weights of their blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    differences: Vec<f64>,
    weights: Vec<f64>,
}

/// An interval; the ends are infinite where too few pairs allow no bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Half of its width.
    #[must_use]
    pub fn half_width(self) -> f64 {
        0.5 * (self.high - self.low)
    }

    /// Does it lie strictly between `−delta` and `+delta`?
    #[must_use]
    pub fn is_within(self, delta: f64) -> bool {
        self.low > -delta && self.high < delta
    }
}

impl Paired {
    /// Differences that all count alike.
    #[must_use]
    pub fn unweighted(differences: Vec<f64>) -> Self {
        let weights = vec![1.0; differences.len()];
        Self {
            differences,
            weights,
        }
    }

    /// Differences with the weights of their blocks, which must be positive
    /// and as many.
    #[must_use]
    pub fn weighted(differences: Vec<f64>, weights: Vec<f64>) -> Self {
        debug_assert_eq!(differences.len(), weights.len());
        Self {
            differences,
            weights,
        }
    }

    /// The same differences, all counting alike.
    #[must_use]
    pub fn without_weights(&self) -> Self {
        Self::unweighted(self.differences.clone())
    }

    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.differences.len()
    }

    /// True without any pair.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.differences.is_empty()
    }

    /// Sizes and signs of the scores at shift `theta`, in block order.
    #[must_use]
    pub fn signed_scores(&self, theta: f64) -> Vec<f64> {
        let mut order: Vec<(f64, usize)> = self
            .differences
            .iter()
            .enumerate()
            .map(|(index, d)| ((d - theta).abs(), index))
            .collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let mut scores = vec![0.0; order.len()];
        let mut below = 0.0;
        let mut start = 0;
        while start < order.len() {
            let size = order[start].0;
            let tied = order[start..]
                .iter()
                .take_while(|(s, _)| *s <= size)
                .count();
            let group = &order[start..start + tied];
            let sum: f64 = group.iter().map(|&(_, i)| self.weights[i]).sum();
            for &(_, index) in group {
                let weight = self.weights[index];
                let rank = below + 0.5 * (sum - weight) + weight;
                scores[index] = weight * rank * sign(self.differences[index] - theta);
            }
            below += sum;
            start += tied;
        }
        scores
    }

    /// Two-sided p-value of "the true difference is `theta`".
    #[must_use]
    pub fn p_value(&self, theta: f64) -> f64 {
        signflip::two_sided_p(&self.signed_scores(theta))
    }

    /// The weighted Hodges–Lehmann estimate; NaN without any pair.
    #[must_use]
    pub fn estimate(&self) -> f64 {
        if self.is_empty() {
            return f64::NAN;
        }
        let (least, most) = self.range();
        let statistic = |theta: f64| self.signed_scores(theta).iter().sum::<f64>();
        let tiny = 1e-9 * self.weights.iter().sum::<f64>();
        let last_above = bisect(least - TOLERANCE, most + TOLERANCE, |t| statistic(t) > tiny);
        let first_below = bisect(least - TOLERANCE, most + TOLERANCE, |t| {
            statistic(t) >= -tiny
        });
        0.5 * (last_above + first_below)
    }

    /// All shifts that a two-sided test at `level` does not reject.
    #[must_use]
    pub fn interval(&self, level: f64) -> Interval {
        let (least, most) = self.range();
        let estimate = self.estimate();
        let unbounded = Interval {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
        };
        if self.is_empty() || self.p_value(least - 1.0) > level {
            return unbounded;
        }
        let is_rejected = |theta: f64| self.p_value(theta) <= level;
        Interval {
            low: bisect(least - TOLERANCE, estimate, is_rejected),
            high: bisect(most + TOLERANCE, estimate, is_rejected),
        }
    }

    fn range(&self) -> (f64, f64) {
        self.differences
            .iter()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &d| {
                (low.min(d), high.max(d))
            })
    }
}

/// The point between `from`, where `holds` is true, and `to`, where it is
/// false, at which it changes.
fn bisect(mut from: f64, mut to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..80 {
        if (to - from).abs() <= TOLERANCE {
            break;
        }
        let middle = 0.5 * (from + to);
        if holds(middle) {
            from = middle;
        } else {
            to = middle;
        }
    }
    0.5 * (from + to)
}

fn sign(value: f64) -> f64 {
    if value > 0.0 {
        1.0
    } else if value < 0.0 {
        -1.0
    } else {
        0.0
    }
}

#[cfg(test)]
#[path = "paired_tests.rs"]
mod tests;
