//! The posterior of all arms after some runs: a mixture of normal distributions.

use std::sync::Arc;

use rand::{Rng, RngExt};

use super::cholesky::{Cholesky, dot};
use super::grid::Scales;
use super::{Arms, Prior};
use crate::normal;

/// The posterior of all arms and effects.
#[derive(Debug, Clone)]
pub struct Belief {
    /// One for each point of the grid.
    parts: Vec<Part>,
    arms: Arc<Arms>,
    prior: Arc<Prior>,
}

/// The normal distribution at one point of the grid; its quantities are the arms, then the effects.
#[derive(Debug, Clone)]
pub(super) struct Part {
    weight: f64,
    scales: Scales,
    /// Number of readings.
    readings: usize,
    /// Covariances k with the readings, whitened: a row L⁻¹ k for each quantity.
    projected: Vec<f64>,
    mean: Vec<f64>,
    variance: Vec<f64>,
}

impl Part {
    pub(super) const fn new(weight: f64, scales: Scales, readings: usize) -> Self {
        Self {
            weight,
            scales,
            readings,
            projected: Vec::new(),
            mean: Vec::new(),
            variance: Vec::new(),
        }
    }

    /// Adds a quantity with its prior variance and mean. `projected` are its covariances with the
    /// readings, whitened; `whitened` are the readings, whitened.
    pub(super) fn add(&mut self, projected: Vec<f64>, whitened: &[f64], prior: f64, mean: f64) {
        self.mean.push(mean + dot(&projected, whitened));
        let left = prior - dot(&projected, &projected);
        self.variance.push(left.max(1e-15));
        self.projected.extend(projected);
    }

    fn row(&self, quantity: usize) -> &[f64] {
        &self.projected[quantity * self.readings..(quantity + 1) * self.readings]
    }
}

/// A mean with its standard deviation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Coefficient {
    /// Posterior mean.
    pub mean: f64,
    /// Posterior standard deviation.
    pub sd: f64,
}

/// One normal distribution of a mixture: of an arm's y, or of the difference of two arms, at one
/// point of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normal {
    /// Weight of the point; all weights sum to 1.
    pub weight: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub sd: f64,
}

impl Belief {
    pub(super) fn new(mut parts: Vec<Part>, arms: Arc<Arms>, prior: Arc<Prior>) -> Self {
        let total: f64 = parts.iter().map(|part| part.weight).sum();
        for part in &mut parts {
            part.weight /= total;
        }
        Self { parts, arms, prior }
    }

    /// Number of arms.
    #[must_use]
    pub fn arms(&self) -> usize {
        self.arms.mean.len()
    }

    /// Mean and standard deviation of a quantity, whose mean and variance `of` gives at each point.
    fn moments(&self, of: impl Fn(&Part) -> (f64, f64)) -> Coefficient {
        let (mut mean, mut square) = (0.0, 0.0);
        for part in &self.parts {
            let (m, variance) = of(part);
            mean += part.weight * m;
            square += part.weight * (variance + m * m);
        }
        Coefficient {
            mean,
            sd: (square - mean * mean).max(0.0).sqrt(),
        }
    }

    /// Predicts y of an arm, without noise.
    #[must_use]
    pub fn arm(&self, arm: usize) -> Coefficient {
        // Subtracting the level, which is far larger than differences, keeps precision.
        let base = self.parts.first().map_or(0.0, |part| part.mean[arm]);
        let moments = self.moments(|part| (part.mean[arm] - base, part.variance[arm]));
        Coefficient {
            mean: moments.mean + base,
            sd: moments.sd,
        }
    }

    /// The distribution of y of an arm, without noise, as a mixture.
    #[must_use]
    pub fn distribution(&self, arm: usize) -> Vec<Normal> {
        let parts = self.parts.iter();
        parts
            .map(|part| Normal {
                weight: part.weight,
                mean: part.mean[arm],
                sd: part.variance[arm].sqrt(),
            })
            .collect()
    }

    /// Standard deviation of the prediction of a single run of an arm.
    #[must_use]
    pub fn run_sd(&self, arm: usize) -> f64 {
        let noise = self.noise_sd_of(arm);
        let block = self.block_sd();
        let own = self.arm(arm).sd;
        (own * own + noise * noise + block * block).sqrt()
    }

    /// The effect of a feature.
    #[must_use]
    pub fn effect(&self, feature: usize) -> Coefficient {
        let at = self.arms() + feature;
        self.moments(|part| (part.mean[at], part.variance[at]))
    }

    /// The distribution of y of one arm minus y of another, as a mixture.
    #[must_use]
    pub fn difference(&self, arm: usize, other: usize) -> Vec<Normal> {
        let parts = self.parts.iter();
        parts
            .map(|part| {
                let shared = self.prior.covariance(&part.scales, arm, other);
                let covariance = shared - dot(part.row(arm), part.row(other));
                let variance = part.variance[arm] + part.variance[other] - 2.0 * covariance;
                Normal {
                    weight: part.weight,
                    mean: part.mean[arm] - part.mean[other],
                    sd: variance.max(1e-15).sqrt(),
                }
            })
            .collect()
    }

    /// Standard deviation of y from run to run, for arms that are not loose.
    #[must_use]
    pub fn noise_sd(&self) -> f64 {
        self.mean_sd(|part| part.scales.noise.powi(2))
    }

    /// Standard deviation of y of one arm, which may be loose, from run to run.
    #[must_use]
    pub fn noise_sd_of(&self, arm: usize) -> f64 {
        let is_loose = self.arms.loose.contains(&arm);
        self.mean_sd(|part| part.scales.noise_variance(is_loose))
    }

    /// Standard deviation of y from run to run, for arms that are not loose, as a geometric mean over
    /// the grid: a small probability of much noise hardly matters.
    #[must_use]
    pub fn typical_noise_sd(&self) -> f64 {
        let parts = self.parts.iter();
        let mean: f64 = parts.map(|part| part.weight * part.scales.noise.ln()).sum();
        mean.exp()
    }

    /// Standard deviation of a block's disturbance.
    #[must_use]
    pub fn block_sd(&self) -> f64 {
        self.mean_sd(|part| part.scales.block_variance())
    }

    /// Standard deviation of each arm's residual, which no feature predicts.
    #[must_use]
    pub fn own_sd(&self) -> f64 {
        self.mean_sd(|part| part.scales.own_variance())
    }

    /// The standard deviation that follows from the mean variance over the grid.
    fn mean_sd(&self, variance: impl Fn(&Part) -> f64) -> f64 {
        let parts = self.parts.iter();
        let mean: f64 = parts.map(|part| part.weight * variance(part)).sum();
        mean.sqrt()
    }

    /// Standard deviation over arms of what the effects of features predict.
    #[must_use]
    pub fn explained_sd(&self) -> f64 {
        let features = self.arms.relative_sd.len();
        let effects: Vec<f64> = (0..features).map(|f| self.effect(f).mean).collect();
        let values = self.arms.features.iter();
        let values: Vec<f64> = values.map(|features| dot(features, &effects)).collect();
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / count).sqrt()
    }
}

/// The loss by choosing an arm that may not be the best: its y minus the lowest of all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// The expected loss, in y.
    pub expected: f64,
    /// Probability that the loss exceeds each of the requested bounds.
    pub exceeds: [f64; 2],
}

impl Belief {
    /// Estimates the loss by choosing `arm` among `rivals`; variances are multiplied by `widening`.
    /// It is drawn from the joint distribution, so that several arms that are known to be alike count
    /// as one chance to be wrong. (In the sum over pairs of Branke, Chick and Schmidt, Management
    /// Science 2007, they count as several.)
    pub fn estimate_loss(
        &self,
        arm: usize,
        rivals: &[usize],
        bounds: [f64; 2],
        widening: f64,
        chance: &mut impl Rng,
    ) -> Loss {
        let mut loss = Loss {
            expected: 0.0,
            exceeds: [0.0; 2],
        };
        let rivals: Vec<usize> = rivals
            .iter()
            .copied()
            .filter(|&rival| rival != arm)
            .collect();
        for part in &self.parts {
            // Heavier parts get more draws, every part at least one.
            let wanted = part.weight * f64::from(DRAWS);
            let draws = (1..=DRAWS).find(|&n| f64::from(n) >= wanted);
            let draws = draws.unwrap_or(DRAWS);
            let share = part.weight / f64::from(draws);
            let joint = self.join_differences(part, arm, &rivals, widening);
            for _ in 0..draws {
                let lost = joint.draw_loss(chance);
                loss.expected += share * lost;
                for (exceeds, bound) in loss.exceeds.iter_mut().zip(bounds) {
                    *exceeds += if lost > bound { share } else { 0.0 };
                }
            }
        }
        loss
    }

    /// The joint distribution of the rivals' y minus the arm's.
    fn join_differences(&self, part: &Part, arm: usize, rivals: &[usize], widening: f64) -> Joint {
        let covariance = |a: usize, b: usize| {
            self.prior.covariance(&part.scales, a, b) - dot(part.row(a), part.row(b))
        };
        let to_arm: Vec<f64> = rivals.iter().map(|&a| covariance(a, arm)).collect();
        let own = part.variance[arm];
        let rows = rivals.iter().enumerate().map(|(row, &a)| {
            let columns = rivals[..=row].iter().enumerate();
            let between = columns.map(|(column, &b)| {
                let between = covariance(a, b) - to_arm[row] - to_arm[column] + own;
                // A little noise makes the matrix positive definite even if arms are identical.
                let trace = if row == column { 1e-10 } else { 0.0 };
                widening * between + trace
            });
            between.collect()
        });
        let mean = rivals.iter().map(|&a| part.mean[a] - part.mean[arm]);
        Joint {
            mean: mean.collect(),
            factor: Cholesky::factorise(rows),
        }
    }
}

/// Draws from the joint distribution, over all points of the grid.
const DRAWS: u32 = 400;

/// Joint normal distribution of differences from an arm.
struct Joint {
    mean: Vec<f64>,
    /// Factor of the covariance; `None` if that is 0 up to rounding.
    factor: Option<Cholesky>,
}

impl Joint {
    /// Draws all differences and returns how far the lowest rival lies below the arm; 0 if none does.
    fn draw_loss(&self, chance: &mut impl Rng) -> f64 {
        let mut drawn: Vec<f64> = self.mean.iter().map(|_| draw_normal(chance)).collect();
        if let Some(factor) = &self.factor {
            factor.multiply(&mut drawn);
        }
        let least = drawn.iter().zip(&self.mean).map(|(z, mean)| z + mean);
        -least.fold(0.0, f64::min)
    }
}

/// Draws a standard normal number (Box and Muller 1958).
fn draw_normal(chance: &mut impl Rng) -> f64 {
    let radius: f64 = chance.random_range(f64::EPSILON..1.0);
    let angle: f64 = chance.random_range(0.0..std::f64::consts::TAU);
    (-2.0 * radius.ln()).sqrt() * angle.cos()
}

/// Mean of a mixture.
#[must_use]
pub fn mean_of(mixture: &[Normal]) -> f64 {
    mixture.iter().map(|n| n.weight * n.mean).sum()
}

/// Standard deviation of a mixture.
#[must_use]
pub fn sd_of(mixture: &[Normal]) -> f64 {
    let mean = mean_of(mixture);
    let square = |n: &Normal| n.weight * (n.sd * n.sd + (n.mean - mean) * (n.mean - mean));
    mixture.iter().map(square).sum::<f64>().sqrt()
}

/// The interval of a mixture outside of which lies `tail` on either side; variances are multiplied by
/// `widening`. (A mixture has longer tails than a normal distribution with its moments.)
#[must_use]
pub fn interval(mixture: &[Normal], tail: f64, widening: f64) -> (f64, f64) {
    const FAR: f64 = 12.0;
    const STEPS: usize = 60;
    let width = FAR * widening.sqrt();
    let low = mixture.iter().map(|n| n.mean - width * n.sd);
    let high = mixture.iter().map(|n| n.mean + width * n.sd);
    let low = low.fold(f64::INFINITY, f64::min);
    let high = high.fold(f64::NEG_INFINITY, f64::max);
    let quantile = |share: f64| {
        let (mut low, mut high) = (low, high);
        for _ in 0..STEPS {
            let middle = 0.5 * (low + high);
            if probability_below(mixture, middle, widening) < share {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    };
    (quantile(tail), quantile(1.0 - tail))
}

/// Expected amount by which a difference lies below 0; variances are multiplied by `widening`.
#[must_use]
pub fn shortfall(differences: &[Normal], widening: f64) -> f64 {
    let width = widening.sqrt();
    let loss = |d: &Normal| {
        let (sd, z) = (d.sd * width, -d.mean / (d.sd * width));
        d.weight * sd * (normal::density(z) + z * normal::upper_tail(-z))
    };
    differences.iter().map(loss).sum()
}

/// Probability that a difference lies below a bound; variances are multiplied by `widening`.
#[must_use]
pub fn probability_below(differences: &[Normal], bound: f64, widening: f64) -> f64 {
    let width = widening.sqrt();
    differences
        .iter()
        .map(|d| d.weight * normal::upper_tail((d.mean - bound) / (d.sd * width)))
        .sum()
}
