//! Does a difference change while the experiment goes on?

use super::{JudgedContrast, MIN_SHARE, Split, typical};
use crate::interaction;

/// Chance of a false alarm, over all arms. A warm-up of a few runs is hard to see, and a verdict
/// caused by it is wrong, so it is larger than that of the other tests.
const ALARM_OF_TIME: f64 = 0.025;

impl JudgedContrast {
    /// Warming up, filling caches, throttling: most happens early, so time counts by its logarithm.
    /// A claim that as many blocks again would undo, if the change went on, is not an answer even
    /// if the second half still supports it.
    pub(super) fn time(&self, differences: &[f64]) -> Option<Split> {
        let count = differences.len();
        if !self.is_beyond(interaction::z(differences, &ln_time(count))?, ALARM_OF_TIME) {
            return None;
        }
        let third = count / 3;
        let late = differences[count / 2..].to_vec();
        let first = typical(differences[..third].to_vec())?;
        let second = typical(differences[count - third..].to_vec())?;
        let matters = (1.0 - MIN_SHARE) * self.estimate.abs().max(self.delta);
        // Two thirds of the blocks lie between the middles of the two.
        let after_as_many = second + 1.5 * (second - first);
        let is_undone = after_as_many * self.estimate <= 0.0;
        Some(Split {
            first,
            second,
            contradicts: (second - first).abs() > matters
                && (is_undone || self.decision_of(late) != self.decision),
        })
    }
}

/// Logarithms of the blocks' numbers.
pub(super) fn ln_time(blocks: usize) -> Vec<f64> {
    (1..=blocks).map(|block| (block as f64).ln()).collect()
}
