//! A small model of arms with features: predicts all arms from a few runs of some, and how certain
//! that is.
//!
//! The response of a run of arm `a` in block `b` is
//!
//! ```text
//! y = m(a) + c + Σ βj φj(a) + g(a) + u(a) + B(b) + e
//! ```
//!
//! with a given mean m, a constant c, effects βj of features (normal around 0), a smooth function g
//! of the features that takes up saturation and interaction (Gaussian process, Rasmussen and
//! Williams 2006, chapter 2; as a model's discrepancy: Kennedy and O'Hagan 2001), a part u of each
//! arm's own, one of each block, and noise. All are normal, so that the posterior is exact. Five
//! scales are unknown: of everything that placements do, of u relative to it, of noise, of the
//! noise of loose arms relative to it, of blocks. They are not guessed but averaged over: every
//! point of a grid counts by its marginal likelihood (Bayesian model averaging, Hoeting et al.
//! 1999). If features predict nothing, points with a large u win, and what was never run becomes
//! uncertain without any special rule.
//!
//! Nothing here knows what arms are; random numbers come from the caller.

mod belief;
mod cholesky;
mod design;
mod grid;

pub use belief::{
    Belief, Coefficient, Loss, Normal, interval, mean_of, probability_below, sd_of, shortfall,
};
pub use design::choose_informative;

use std::sync::Arc;

use cholesky::Cholesky;
use grid::{Scales, grid};

/// Variance of the constant: whatever a run takes.
const CONSTANT_VARIANCE: f64 = 100.0;
/// Length over which the smooth part changes, in units of features, and its
/// standard deviation over the scale of effects.
const LENGTH: f64 = 1.0;
const SMOOTH_SD: f64 = 0.6;
/// Points of the grid with less than this of the best one's weight count for
/// nothing.
const MIN_WEIGHT: f64 = 1e-2;
/// The whole grid is looked at again once there are this many times as many readings as at the last
/// time.
const LOOK_AGAIN: f64 = 1.25;

/// The prior knowledge about arms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arms {
    /// Features of each arm, about 0 to 1 each.
    pub features: Vec<Vec<f64>>,
    /// Standard deviation of each feature's effect on y, relative to the scale
    /// of all effects.
    pub relative_sd: Vec<f64>,
    /// The same in units of y, whatever that scale is.
    pub absolute_sd: Vec<f64>,
    /// Mean of each arm.
    pub mean: Vec<f64>,
    /// Arms that may vary more from run to run than the others.
    pub loose: Vec<usize>,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Its arm.
    pub arm: usize,
    /// Its block: runs of one block share what disturbed them.
    pub block: usize,
    /// ln(cost).
    pub y: f64,
}

/// The model of some arms.
#[derive(Debug, Clone)]
pub struct Surrogate {
    arms: Arc<Arms>,
    /// Of `arms`, computed once something is learnt of them, and of those that were added since: doing
    /// so for each added arm would cost the cube of their number.
    prior: Arc<Prior>,
    grid: Vec<Scales>,
    /// Points that counted at the last look, and after how many readings all
    /// were looked at.
    active: Vec<usize>,
    looked_at: usize,
}

/// Covariances of arms before any is run.
#[derive(Debug, Default)]
struct Prior {
    arms: usize,
    /// Per unit of squared scale of effects, row by row.
    scaled: Vec<f64>,
    /// The part that does not depend on that scale.
    fixed: Vec<f64>,
}

/// A point of the grid with its weight and the factored covariance of the
/// readings.
struct Candidate {
    point: usize,
    log_weight: f64,
    factor: Cholesky,
    /// L⁻¹ (y − m).
    whitened: Vec<f64>,
}

impl Surrogate {
    /// A model of these arms.
    #[must_use]
    pub fn new(arms: Arms) -> Self {
        let grid = grid();
        Self {
            active: (0..grid.len()).collect(),
            looked_at: 0,
            prior: Arc::default(),
            arms: Arc::new(arms),
            grid,
        }
    }

    /// Its arms.
    #[must_use]
    pub fn arms(&self) -> &Arms {
        &self.arms
    }

    /// Adds an arm; its number.
    pub fn add(&mut self, features: Vec<f64>, mean: f64) -> usize {
        let arms = Arc::make_mut(&mut self.arms);
        arms.features.push(features);
        arms.mean.push(mean);
        self.arms.mean.len() - 1
    }

    /// What the readings say. Readings of unknown arms and NaN readings are left out; without any
    /// the answer is the prior.
    pub fn learn(&mut self, readings: &[Reading]) -> Belief {
        if self.prior.arms < self.arms.features.len() {
            self.prior = Arc::new(self.prior.extend(&self.arms));
        }
        let prior = Arc::clone(&self.prior);
        let known = self.arms.mean.len();
        let readings: Vec<Reading> = readings
            .iter()
            .copied()
            .filter(|reading| reading.arm < known && reading.y.is_finite())
            .collect();
        // Points that counted come first: most of the others are then soon seen to
        // count for nothing.
        let mut points = self.active.clone();
        let is_due = readings.len() as f64 > LOOK_AGAIN * self.looked_at as f64;
        if is_due || readings.len() < self.looked_at {
            points.extend((0..self.grid.len()).filter(|point| !self.active.contains(point)));
            self.looked_at = readings.len();
        }
        // The constant is hardly known: without this it would take up all digits.
        let level = mean(readings.iter().map(|r| r.y - self.arms.mean[r.arm]));
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut best = f64::NEG_INFINITY;
        for point in points {
            let least = best + MIN_WEIGHT.ln();
            let candidate = self.weigh(&prior, point, &readings, level, least);
            let Some(candidate) = candidate else { continue };
            if candidate.log_weight > best {
                best = candidate.log_weight;
                candidates.retain(|c| c.log_weight - best > MIN_WEIGHT.ln());
            }
            if candidate.log_weight - best > MIN_WEIGHT.ln() {
                candidates.push(candidate);
            }
        }
        candidates.sort_by_key(|candidate| candidate.point);
        self.active = candidates.iter().map(|c| c.point).collect();
        let parts = candidates.iter().map(|candidate| {
            let weight = (candidate.log_weight - best).exp();
            self.part(&prior, candidate, weight, level, &readings)
        });
        Belief::new(parts.collect(), Arc::clone(&self.arms), Arc::clone(&prior))
    }

    /// Marginal likelihood of the readings at a point of the grid; `None` if it is below the
    /// minimum.
    fn weigh(
        &self,
        prior: &Prior,
        point: usize,
        readings: &[Reading],
        level: f64,
        least: f64,
    ) -> Option<Candidate> {
        let scales = &self.grid[point];
        let noise =
            |reading: &Reading| scales.noise_variance(self.arms.loose.contains(&reading.arm));
        // A reading that is as expected, and varies by its noise alone, counts most.
        let mut most = scales.log_prior - 0.5 * readings.iter().map(|r| noise(r).ln()).sum::<f64>();
        let mut factor = Cholesky::default();
        let mut covariances = Vec::with_capacity(readings.len());
        let mut whitened = Vec::with_capacity(readings.len());
        for (row, a) in readings.iter().enumerate() {
            covariances.clear();
            covariances.extend(readings[..=row].iter().map(|b| {
                let is_beside = a.block == b.block;
                let shared = if is_beside {
                    scales.block_variance()
                } else {
                    0.0
                };
                prior.covariance(scales, a.arm, b.arm) + shared
            }));
            covariances[row] += noise(a);
            factor.extend(&covariances)?;
            let unexpected = a.y - self.arms.mean[a.arm] - level;
            let (z, sd) = factor.whiten(&whitened, unexpected);
            whitened.push(z);
            most += 0.5 * noise(a).ln() - 0.5 * z * z - sd.ln();
            if most < least {
                return None;
            }
        }
        let fit: f64 = whitened.iter().map(|z| z * z).sum();
        Some(Candidate {
            point,
            log_weight: scales.log_prior - 0.5 * (fit + factor.log_determinant()),
            factor,
            whitened,
        })
    }

    /// The posterior at a point of the grid.
    fn part(
        &self,
        prior: &Prior,
        candidate: &Candidate,
        weight: f64,
        level: f64,
        readings: &[Reading],
    ) -> belief::Part {
        let scales = self.grid[candidate.point];
        let arms = self.arms.mean.len();
        let effects = self.arms.relative_sd.len();
        let mut part = belief::Part::new(weight, scales, readings.len());
        let project = |mut known: Vec<f64>| {
            candidate.factor.solve_lower(&mut known);
            known
        };
        for arm in 0..arms {
            let cross: Vec<f64> = readings
                .iter()
                .map(|reading| prior.covariance(&scales, arm, reading.arm))
                .collect();
            let own = prior.covariance(&scales, arm, arm);
            let mean = self.arms.mean[arm] + level;
            part.add(project(cross), &candidate.whitened, own, mean);
        }
        for feature in 0..effects {
            let variance = self.effect_variance(&scales, feature);
            let cross: Vec<f64> = readings
                .iter()
                .map(|reading| variance * self.arms.features[reading.arm][feature])
                .collect();
            part.add(project(cross), &candidate.whitened, variance, 0.0);
        }
        part
    }

    fn effect_variance(&self, scales: &Scales, feature: usize) -> f64 {
        let relative = scales.effects * self.arms.relative_sd[feature];
        let absolute = self.arms.absolute_sd[feature];
        relative * relative + absolute * absolute
    }
}

impl Prior {
    /// With those of the arms that were added.
    fn extend(&self, arms: &Arms) -> Self {
        let count = arms.features.len();
        let mut scaled = Vec::with_capacity(count * count);
        let mut fixed = Vec::with_capacity(count * count);
        for (row, a) in arms.features.iter().enumerate() {
            let known = if row < self.arms { self.arms } else { 0 };
            let own = row * self.arms..row * self.arms + known;
            scaled.extend_from_slice(self.scaled.get(own.clone()).unwrap_or_default());
            fixed.extend_from_slice(self.fixed.get(own).unwrap_or_default());
            for b in &arms.features[known..] {
                let (mut linear, mut absolute, mut distance) = (0.0, 0.0, 0.0);
                for (feature, (x, y)) in a.iter().zip(b).enumerate() {
                    linear += arms.relative_sd[feature].powi(2) * x * y;
                    absolute += arms.absolute_sd[feature].powi(2) * x * y;
                    distance += (x - y).powi(2);
                }
                let smooth = (-0.5 * distance / (LENGTH * LENGTH)).exp();
                scaled.push(linear + SMOOTH_SD * SMOOTH_SD * smooth);
                fixed.push(CONSTANT_VARIANCE + absolute);
            }
        }
        Self {
            arms: count,
            scaled,
            fixed,
        }
    }

    /// Covariance of two arms.
    fn covariance(&self, scales: &Scales, a: usize, b: usize) -> f64 {
        let at = a * self.arms + b;
        let own = if a == b { scales.own_variance() } else { 0.0 };
        scales.effects * scales.effects * self.scaled[at] + self.fixed[at] + own
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

#[cfg(test)]
mod tests;
