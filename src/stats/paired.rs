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
const TOLERANCE: f64 = 1e-9;
/// The same where the statistic is a step function of thousands of steps.
const COARSE_TOLERANCE: f64 = 1e-7;
/// From so many pairs on.
const MANY: usize = 200;

/// Differences of one contrast with the weights of their blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Paired {
    /// Difference, weight and block, by difference.
    sorted: Vec<(f64, f64, usize)>,
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
    /// Nothing is known.
    pub const UNBOUNDED: Self = Self {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };

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
        Self::weighted(differences, weights)
    }

    /// Differences with the weights of their blocks, which must be positive
    /// and as many.
    #[must_use]
    pub fn weighted(differences: Vec<f64>, weights: Vec<f64>) -> Self {
        debug_assert_eq!(differences.len(), weights.len());
        let both = differences.into_iter().zip(weights).enumerate();
        let mut sorted: Vec<(f64, f64, usize)> =
            both.map(|(block, (d, w))| (d, w, block)).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
        Self { sorted }
    }

    /// The same differences, all counting alike.
    #[must_use]
    pub fn without_weights(&self) -> Self {
        let sorted = self.sorted.iter().map(|&(d, _, b)| (d, 1.0, b)).collect();
        Self { sorted }
    }

    /// Number of pairs.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.sorted.len()
    }

    /// True without any pair.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// Sizes and signs of the scores at shift `theta`, in block order.
    #[must_use]
    pub fn signed_scores(&self, theta: f64) -> Vec<f64> {
        let mut scores = vec![0.0; self.len()];
        self.each_score(theta, |block, score| scores[block] = score);
        scores
    }

    /// Calls `take` with block and signed score, smallest distance from
    /// `theta` first. The differences are sorted, so the distances are two
    /// sorted halves that only need to be merged.
    fn each_score(&self, theta: f64, mut take: impl FnMut(usize, f64)) {
        let mut above = self.sorted.partition_point(|pair| pair.0 < theta);
        let mut below = above;
        let mut weight_below = 0.0;
        let mut tied: Vec<(f64, f64, usize)> = Vec::new();
        while below > 0 || above < self.len() {
            let low = below.checked_sub(1).map(|i| theta - self.sorted[i].0);
            let high = self.sorted.get(above).map(|pair| pair.0 - theta);
            let distance = low
                .unwrap_or(f64::INFINITY)
                .min(high.unwrap_or(f64::INFINITY));
            tied.clear();
            while below > 0 && theta - self.sorted[below - 1].0 <= distance {
                below -= 1;
                tied.push(self.sorted[below]);
            }
            while above < self.len() && self.sorted[above].0 - theta <= distance {
                tied.push(self.sorted[above]);
                above += 1;
            }
            let sum: f64 = tied.iter().map(|pair| pair.1).sum();
            for &(difference, weight, block) in &tied {
                let rank = weight_below + 0.5 * (sum - weight) + weight;
                take(block, weight * rank * sign(difference - theta));
            }
            weight_below += sum;
        }
    }

    /// Two-sided p-value of "the true difference is `theta`".
    #[must_use]
    pub fn p_value(&self, theta: f64) -> f64 {
        let mut scores = Vec::with_capacity(self.len());
        self.each_score(theta, |_, score| scores.push(score));
        signflip::two_sided_p(&scores)
    }

    /// The weighted Hodges–Lehmann estimate; NaN without any pair.
    #[must_use]
    pub fn estimate(&self) -> f64 {
        let (Some(first), Some(last)) = (self.sorted.first(), self.sorted.last()) else {
            return f64::NAN;
        };
        let statistic = |theta: f64| {
            let mut sum = 0.0;
            self.each_score(theta, |_, score| sum += score);
            sum
        };
        let total: f64 = self.sorted.iter().map(|pair| pair.1).sum();
        let tiny = 1e-9 * total;
        let (low, high) = (first.0 - TOLERANCE, last.0 + TOLERANCE);
        let last_above = self.bisect(low, high, |t| statistic(t) > tiny);
        let first_below = self.bisect(last_above, high, |t| statistic(t) >= -tiny);
        0.5 * (last_above + first_below)
    }

    /// All shifts that a two-sided test at `level` does not reject.
    #[must_use]
    pub fn interval(&self, level: f64) -> Interval {
        self.interval_around(self.estimate(), level)
    }

    /// The same where the estimate is known already.
    #[must_use]
    pub fn interval_around(&self, estimate: f64, level: f64) -> Interval {
        let (Some(first), Some(last)) = (self.sorted.first(), self.sorted.last()) else {
            return Interval::UNBOUNDED;
        };
        if self.p_value(first.0 - 1.0) > level {
            return Interval::UNBOUNDED;
        }
        let is_rejected = |theta: f64| self.p_value(theta) <= level;
        Interval {
            low: self.bisect(first.0 - TOLERANCE, estimate, is_rejected),
            high: self.bisect(last.0 + TOLERANCE, estimate, is_rejected),
        }
    }

    /// The point between `from`, where `holds` is true, and `to`, where it is
    /// false, at which it changes.
    fn bisect(&self, mut from: f64, mut to: f64, holds: impl Fn(f64) -> bool) -> f64 {
        let tolerance = if self.len() < MANY {
            TOLERANCE
        } else {
            COARSE_TOLERANCE
        };
        while (to - from).abs() > tolerance {
            let middle = 0.5 * (from + to);
            let is_stuck = middle <= from.min(to) || middle >= from.max(to);
            if is_stuck {
                break;
            }
            if holds(middle) {
                from = middle;
            } else {
                to = middle;
            }
        }
        0.5 * (from + to)
    }
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
