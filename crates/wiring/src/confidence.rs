//! The probability that a level is right, calibrated on recorded machines.
//!
//! It is a logistic regression of observed errors on 55 recorded machines and variations of them.
//! `cargo lab wiring` computes the weights, and prints how often levels of each confidence were right
//! (also with weights from all machines except the judged one).

use super::search::{By, LevelRows};

/// The unit of margins: the smallest ratio that counts as a level (see `cut`).
const MARGIN: f64 = 1.12;
/// Latencies within one last-level cache are below this, ns: rings and meshes of whole packages take
/// up to 57.
const ONE_CACHE_NS: f64 = 62.0;
/// Weights in log-odds: of any level, for its margin, for leftover CPUs, for uneven groups beyond a
/// cache, for contention, home, inverse.
const WEIGHTS: Weights = [1.54, 2.01, -3.04, -5.07, 3.42, 1.84, 0.84];

/// A weight for each of [`ConfidenceFactors::features`].
pub type Weights = [f64; 7];

/// The factors of the confidence in a level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ConfidenceFactors {
    by: By,
    /// The margin of the worst members except those that may be disturbed, as logarithm.
    margin: f64,
    /// Are some CPUs in no group? There may be disturbed pairs, or only a part of the machine is
    /// visible.
    is_partial: bool,
    /// Do CPUs too far apart for a cache form three groups or more, or groups next to single CPUs? They
    /// may be remnants of packages of which few CPUs are visible, or the line has one home.
    is_uneven: bool,
}

impl ConfidenceFactors {
    pub(super) fn from_level(level: &LevelRows) -> Self {
        let shared = level.shared_groups().count();
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

    /// The regression's terms. Margins count only for levels found by gaps.
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
        self.confidence_with(&WEIGHTS)
    }

    /// The probability by other weights.
    #[must_use]
    pub fn confidence_with(&self, weights: &Weights) -> f64 {
        let terms = self.features();
        let odds: f64 = terms.iter().zip(weights).map(|(x, w)| x * w).sum();
        1.0 / (1.0 + (-odds).exp())
    }
}
