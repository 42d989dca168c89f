//! Tests whether a difference changes during the experiment.

use super::{JudgedContrast, MIN_SHARE, Split, estimate_typical};
use crate::interaction;

/// Chance of a false alarm, over all arms. It is larger than that of the other tests because a
/// warm-up of a few runs is hard to detect and makes the verdict wrong.
const ALARM_OF_TIME: f64 = 0.025;

impl JudgedContrast {
    /// The difference in the first and the last third; `None` unless the test shows a change.
    ///
    /// Warming up, filling caches and throttling happen mostly early, so the covariate is the
    /// logarithm of time. A change contradicts the verdict if the second half alone would not give
    /// it, or if the same number of further blocks would undo it should the change go on.
    pub(super) fn split_by_time(&self, differences: &[f64]) -> Option<Split> {
        let count = differences.len();
        if !self.is_beyond(
            interaction::z_of_dependence(differences, &ln_time(count))?,
            ALARM_OF_TIME,
        ) {
            return None;
        }
        let third = count / 3;
        let late = differences[count / 2..].to_vec();
        let first = estimate_typical(differences[..third].to_vec())?;
        let second = estimate_typical(differences[count - third..].to_vec())?;
        let matters = (1.0 - MIN_SHARE) * self.estimate.abs().max(self.delta);
        // Two thirds of the blocks lie between the middles of the two thirds.
        let after_as_many = second + 1.5 * (second - first);
        let is_undone = after_as_many * self.estimate <= 0.0;
        Some(Split {
            first,
            second,
            contradicts: (second - first).abs() > matters
                && (is_undone || self.decide_by(late) != self.decision),
        })
    }
}

/// Logarithms of the blocks' numbers.
pub(super) fn ln_time(blocks: usize) -> Vec<f64> {
    (1..=blocks).map(|block| (block as f64).ln()).collect()
}
