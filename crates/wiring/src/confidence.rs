//! The probability that a level is right, calibrated on recorded machines.
//!
//! Logistic regression on observed errors. Its weights come from 55 recorded machines, varied
//! (`cargo lab wiring`, which prints how often levels of each confidence were right, and the same
//! with weights from all machines except the judged one).

use super::search::{By, LevelRows};

/// The unit of margins, a ratio: the smallest that counts as a level at all
/// (`cut`).
const MARGIN: f64 = 1.12;
/// More than the latency within one last-level cache, ns: rings and meshes of whole packages take
/// up to 57.
const ONE_CACHE_NS: f64 = 62.0;
/// Log-odds: of any level, for its margin, for leftover CPUs, for uneven groups beyond a cache, for
/// contention, home, inverse.
const WEIGHTS: Weights = [1.54, 2.01, -3.04, -5.07, 3.42, 1.84, 0.84];

/// A weight for each of [`ConfidenceFactors::features`].
pub type Weights = [f64; 7];

/// The factors of the confidence in a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceFactors {
    by: By,
    /// The margin of the worst members except those that may be disturbed, as logarithm.
    margin: f64,
    /// Some CPUs are in no group: disturbed pairs, or a machine that is only visible in part.
    is_partial: bool,
    /// CPUs too far apart for a cache that form three groups or more, or one next to single CPUs:
    /// remnants of packages if few of their CPUs are visible, or if the line has one home.
    is_uneven: bool,
}

impl ConfidenceFactors {
    pub(super) fn from_level(level: &LevelRows) -> Self {
        let shared = level.shared().count();
        let has_alone = level.groups.len() > shared;
        let is_far = level.inside_ns > ONE_CACHE_NS;
        let is_gap = level.by == By::Gap;
        let is_uneven = is_gap && is_far && (has_alone || shared > 2);
        Self {
            by: level.by,
            margin: level.worst.max(0.0),
            is_partial: is_gap && has_alone && !is_uneven,
            is_uneven,
        }
    }

    /// The regression's terms. Margins count only if gaps are the argument.
    #[must_use]
    pub fn features(&self) -> Weights {
        let is = |holds: bool| f64::from(u8::from(holds));
        let margin = is(self.by == By::Gap) * (self.margin / MARGIN.ln()).ln_1p();
        [
            1.0,
            margin,
            is(self.is_partial),
            is(self.is_uneven),
            is(self.by == By::Contention),
            is(self.by == By::Home),
            is(self.by == By::Inverse),
        ]
    }

    /// The probability that the groups are exactly right.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        self.confidence_by(&WEIGHTS)
    }

    /// The same by other weights.
    #[must_use]
    pub fn confidence_by(&self, weights: &Weights) -> f64 {
        let terms = self.features();
        let odds: f64 = terms.iter().zip(weights).map(|(x, w)| x * w).sum();
        1.0 / (1.0 + (-odds).exp())
    }
}
