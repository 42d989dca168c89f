//! Checks whether median and mean agree with the typical run.
//!
//! The typical ratio is the middle of all pairs of blocks. If arms differ by one factor, median and
//! mean give that factor as well. If the shapes of their distributions differ, the three separate:
//! for an arm that is 1 % faster in six runs of ten and 20 % slower in the others, the median block
//! gives −1 %, the means +7 %, and the middle of all pairs +8 %. None of these is wrong, and a
//! verdict could mean any of them.
//!
//! The median is the median of the blocks' ratios. The ratio of the arms' medians is useless next
//! to load: if runs have a few states that whole blocks share, it jumps from one to the next (it
//! reported a contradiction in 27 % of the arms that differ by 5 %).

use super::JudgedContrast;
use crate::decision::Decision;
use crate::inversion::{Family, estimate};
use crate::judge::{Judge, Means};
use crate::paired::{Interval, Paired};
use crate::{Responses, agreement};

/// Chance of a false alarm by the median block, over all arms, if arms differ by one factor. It is
/// large because a second mode with few runs is hard to detect. The median must lie outside the
/// interval as well, so that fewer verdicts are withheld (`docs/method.md`).
const ALARM_OF_MEDIAN: f64 = 0.1;
/// The same by the means. It is small because means vary so much beside load that lying outside the
/// interval says little.
const ALARM_OF_MEAN: f64 = 0.02;

/// Median and mean, as `ln(ratio)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Centres {
    /// The median of the blocks' ratios.
    pub median: f64,
    /// The ratio of the arms' means.
    pub mean: f64,
}

impl JudgedContrast {
    /// Median and mean, if one of them lies outside the interval of the typical run by more than the
    /// smallest effect of interest.
    pub(super) fn find_other_centres(
        &self,
        data: &Responses,
        interval: Interval,
    ) -> Option<Centres> {
        if self.judge != Judge::Typical || self.decision == Decision::Undecided {
            return None;
        }
        let typical = Paired::without_weights(data.differences(self.arm, self.baseline));
        let medians = Signs(data.differences(self.arm, self.baseline));
        let means = Means::new(data, self.arm, self.baseline);
        let centres = Centres {
            median: estimate(&medians),
            mean: estimate(&means),
        };
        let contradicts = |value: f64, family: &dyn Family, alarm: f64| {
            let is_outside =
                value > interval.high + self.delta || value < interval.low - self.delta;
            is_outside
                && agreement::z_of_disagreement(&typical, family)
                    .is_some_and(|z| self.is_beyond(z, alarm))
        };
        let is_contradicted = contradicts(centres.median, &medians, ALARM_OF_MEDIAN)
            || contradicts(centres.mean, &means, ALARM_OF_MEAN);
        is_contradicted.then_some(centres)
    }
}

/// Differences whose scores are their signs: the sum is 0 at their median.
struct Signs(Vec<f64>);

impl Family for Signs {
    fn blocks(&self) -> usize {
        self.0.len()
    }

    fn scores(&self, theta: f64) -> Vec<f64> {
        let sign = |d: &f64| f64::from(i8::from(*d > theta) - i8::from(*d < theta));
        self.0.iter().map(sign).collect()
    }

    fn range(&self) -> Option<(f64, f64)> {
        let low = self.0.iter().copied().reduce(f64::min)?;
        Some((low, self.0.iter().copied().fold(low, f64::max)))
    }
}
