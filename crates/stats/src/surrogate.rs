//! A statistical model of arms with features: predicts all arms from a few runs of some, with the
//! uncertainty of the prediction.
//!
//! The response of a run of arm `a` in block `b` is
//!
//! ```text
//! y = m(a) + c + Σ βj φj(a) + g(a) + u(a) + B(b) + e
//! ```
//!
//! * m is a given mean of the arm, and c a constant;
//! * βj are the effects of features φj, normal around 0;
//! * g is a smooth function of the features, which models saturation and interaction (a Gaussian
//!   process: Rasmussen and Williams 2006, chapter 2; as a model's discrepancy: Kennedy and O'Hagan
//!   2001);
//! * u is each arm's own residual, B that of each block, and e is noise.
//!
//! All of them are normal, so that the posterior is exact for given scales. Five scales are unknown:
//! that of all effects, that of u relative to it, that of noise, that of the noise of loose arms
//! relative to it, and that of blocks. They are averaged over: every point of a grid is weighted by
//! its marginal likelihood (Bayesian model averaging, Hoeting et al. 1999). If features predict
//! nothing, points with a large u get the weight, which makes arms that were never run uncertain.
//!
//! The model does not depend on what arms are; random numbers come from the caller.

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
use grid::{Scales, list_points};

/// Variance of the constant c: large enough for runs of any length.
const CONSTANT_VARIANCE: f64 = 100.0;
/// Length over which the smooth part changes, in units of features.
const SMOOTH_LENGTH: f64 = 1.0;
/// Standard deviation of the smooth part, relative to the scale of effects.
const SMOOTH_SD: f64 = 0.6;
/// Points of the grid with less than this share of the best point's weight are dropped.
const MIN_WEIGHT: f64 = 1e-2;
/// All points are weighed again once the number of readings has grown by this factor.
const WEIGH_ALL_GROWTH: f64 = 1.25;

/// The prior knowledge about arms.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Arms {
    /// Features of each arm, about 0 to 1 each.
    pub features: Vec<Vec<f64>>,
    /// Standard deviation of each feature's effect on y, relative to the scale of all effects.
    pub relative_sd: Vec<f64>,
    /// Further standard deviation of each feature's effect, in units of y.
    pub absolute_sd: Vec<f64>,
    /// Mean of each arm.
    pub mean: Vec<f64>,
    /// Arms that may vary more from run to run than the others.
    pub loose: Vec<usize>,
}

/// One run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// The arm.
    pub arm: usize,
    /// The block; runs of one block share a disturbance.
    pub block: usize,
    /// `ln(cost)`.
    pub y: f64,
}

/// The model of some arms.
#[derive(Debug, Clone)]
pub struct Surrogate {
    arms: Arc<Arms>,
    /// The prior of `arms`. Added arms are included only when the model learns: including them one by
    /// one would take time with the cube of their number.
    prior: Arc<Prior>,
    grid: Vec<Scales>,
    /// Points of the grid that were kept at the last time.
    active: Vec<usize>,
    /// Number of readings when all points were last weighed.
    weighed_at: usize,
}

/// Covariances of arms before any is run.
#[derive(Debug, Default)]
struct Prior {
    arms: usize,
    /// The part that is proportional to the squared scale of effects, row by row.
    scaled: Vec<f64>,
    /// The part that does not depend on that scale, row by row.
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
        let grid = list_points();
        Self {
            active: (0..grid.len()).collect(),
            weighed_at: 0,
            prior: Arc::default(),
            arms: Arc::new(arms),
            grid,
        }
    }

    /// The arms.
    #[must_use]
    pub fn arms(&self) -> &Arms {
        &self.arms
    }

    /// Adds an arm and returns its number.
    pub fn add(&mut self, features: Vec<f64>, mean: f64) -> usize {
        let arms = Arc::make_mut(&mut self.arms);
        arms.features.push(features);
        arms.mean.push(mean);
        self.arms.mean.len() - 1
    }

    /// Computes the posterior given all readings. Readings of unknown arms and those that are not
    /// finite are left out; without readings the result is the prior.
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
        // Points with weight come first: then most of the others are soon found to have none.
        let mut points = self.active.clone();
        let is_due = readings.len() as f64 > WEIGH_ALL_GROWTH * self.weighed_at as f64;
        if is_due || readings.len() < self.weighed_at {
            points.extend((0..self.grid.len()).filter(|point| !self.active.contains(point)));
            self.weighed_at = readings.len();
        }
        // Subtracting the mean keeps precision: the constant may be far larger than differences.
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
            self.posterior_at(&prior, candidate, weight, level, &readings)
        });
        Belief::new(parts.collect(), Arc::clone(&self.arms), Arc::clone(&prior))
    }

    /// Weighs a point of the grid by the marginal likelihood of the readings; `None` if the weight's
    /// logarithm is below `least`.
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
        // An upper bound of the weight, as if the other readings were all as expected and varied only
        // by their noise.
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
    fn posterior_at(
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
    /// The prior with the arms that were added.
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
                let smooth = (-0.5 * distance / (SMOOTH_LENGTH * SMOOTH_LENGTH)).exp();
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
