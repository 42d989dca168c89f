//! The unknown scales, as a grid with prior weights.

/// A point of the grid: standard deviations of `ln(cost)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scales {
    /// Scale of all effects: that of a feature with a relative deviation of 1.
    pub(super) effects: f64,
    /// Each arm's own residual, relative to `effects`.
    pub(super) own: f64,
    /// Noise from run to run.
    pub(super) noise: f64,
    /// Noise of loose arms, relative to `noise`.
    pub(super) loose: f64,
    /// Disturbance of a block, relative to `noise`.
    pub(super) block: f64,
    pub(super) log_prior: f64,
}

impl Scales {
    pub(super) fn own_variance(&self) -> f64 {
        (self.own * self.effects).powi(2)
    }

    /// Variance of a run of an arm that is loose or not.
    pub(super) fn noise_variance(&self, is_loose: bool) -> f64 {
        let factor = if is_loose { self.loose } else { 1.0 };
        (factor * self.noise).powi(2)
    }

    pub(super) fn block_variance(&self) -> f64 {
        (self.block * self.noise).powi(2)
    }
}

/// Scales of effects, each with its prior weight. The first is for programs on which placement has
/// no effect; a quarter of them are expected to be such.
const EFFECTS: [(f64, f64); 7] = [
    (0.001, 0.25),
    (0.006, 0.05),
    (0.02, 0.10),
    (0.06, 0.15),
    (0.15, 0.20),
    (0.35, 0.15),
    (0.9, 0.10),
];
/// Scales of an arm's residual, relative to effects: features explain all, most, half, or little.
const OWN: [(f64, f64); 4] = [(0.03, 0.35), (0.15, 0.35), (0.6, 0.2), (2.0, 0.1)];
/// Scales of noise from run to run.
const NOISE: [(f64, f64); 7] = [
    (0.002, 0.10),
    (0.006, 0.15),
    (0.014, 0.25),
    (0.025, 0.20),
    (0.045, 0.15),
    (0.09, 0.10),
    (0.2, 0.05),
];
/// Scales of noise of loose arms, relative to that of others: runs of a program without a placement
/// also differ by where the scheduler puts it.
const LOOSE: [(f64, f64); 3] = [(1.0, 0.6), (3.0, 0.25), (8.0, 0.15)];
/// Scales of a block's disturbance, relative to noise.
const BLOCK: [(f64, f64); 4] = [(0.1, 0.5), (1.0, 0.25), (3.0, 0.15), (10.0, 0.1)];

/// All points of the grid.
pub(super) fn list_points() -> Vec<Scales> {
    let mut points = Vec::new();
    for (effects, effects_weight) in EFFECTS {
        for (own, own_weight) in OWN {
            for (noise, noise_weight) in NOISE {
                for (loose, loose_weight) in LOOSE {
                    for (block, block_weight) in BLOCK {
                        let weights = [effects_weight, own_weight, noise_weight];
                        let weight: f64 = weights.into_iter().product();
                        points.push(Scales {
                            effects,
                            own,
                            noise,
                            loose,
                            block,
                            log_prior: (weight * loose_weight * block_weight).ln(),
                        });
                    }
                }
            }
        }
    }
    points
}
