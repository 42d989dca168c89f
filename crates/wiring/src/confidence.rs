//! How sure a level is: a probability, calibrated on recorded machines.
//!
//! Logistic regression on what was seen to go wrong. Its weights come from 55
//! recorded machines, varied (`cargo lab wiring`, which prints how often
//! levels of each confidence were right, and the same with weights from all
//! machines but the one judged).

use super::search::{By, Found};

/// The unit of margins, a ratio: the smallest that counts as a level at all
/// (`cut`).
const MARGIN: f64 = 1.12;
/// Beyond what is within one last-level cache, ns: rings and meshes of whole
/// packages take up to 57.
const ONE_CACHE_NS: f64 = 62.0;
/// Odds as logarithms: of any level, for its margin, where CPUs are left over,
/// where groups beyond a cache are uneven, by contention, home, inverse.
const WEIGHTS: Weights = [1.54, 2.01, -3.04, -5.07, 3.42, 1.84, 0.84];

/// A weight for each of [`ConfidenceFactors::features`].
pub type Weights = [f64; 7];

/// What the confidence in a level rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceFactors {
    by: By,
    /// Of the worst members but those that may be disturbed, as logarithm.
    margin: f64,
    /// Some CPUs are in no group: pairs that went wrong, or a machine that is
    /// only seen in part.
    is_partial: bool,
    /// CPUs farther from each other than those of any cache make three groups
    /// or more, or one beside single CPUs: what is left of packages where few
    /// of their CPUs are seen, or where the line has one home.
    is_uneven: bool,
}

impl ConfidenceFactors {
    pub(super) fn from_level(level: &Found) -> Self {
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

    /// The regression's terms. Margins count where gaps are the argument.
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
