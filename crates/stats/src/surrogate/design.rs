//! Chooses which arms to run first: those that tell most about effects.

use super::Arms;
use super::cholesky::dot;

/// Noise of a run over the standard deviation of an effect, typical of programs that depend on
/// placement.
const NOISE: f64 = 0.1;

/// Chooses `count` different arms that `may` allows: the arms of `first`, then repeatedly the arm
/// that reduces the volume of uncertainty about the effects most. This is a sequential D-optimal
/// design (Wynn, Ann. Math. Statist. 1970; with prior variances: Chaloner and Verdinelli, Statist.
/// Sci. 1995).
#[must_use]
pub fn choose_informative(
    arms: &Arms,
    first: &[usize],
    count: usize,
    may: &dyn Fn(usize) -> bool,
) -> Vec<usize> {
    let mut design = Design::new(arms);
    let mut chosen = Vec::new();
    let usable = |arm: &usize| *arm < arms.features.len() && may(*arm);
    let mut first = first.iter().copied().filter(usable);
    while chosen.len() < count {
        let left = (0..arms.features.len()).filter(|arm| may(*arm) && !chosen.contains(arm));
        // The first of equally good arms, so that the choice does not depend on rounding.
        let next = first.find(|arm| !chosen.contains(arm));
        let best = next.or_else(|| {
            left.map(|arm| (design.variance_of(arm), arm))
                .fold(None, |best: Option<(f64, usize)>, one| match best {
                    Some(held) if held.0 * (1.0 + 1e-9) >= one.0 => Some(held),
                    _ => Some(one),
                })
                .map(|(_, arm)| arm)
        });
        let Some(arm) = best else { break };
        design.add_run(arm);
        chosen.push(arm);
    }
    chosen
}

/// The uncertainty left after some runs.
struct Design<'a> {
    arms: &'a Arms,
    size: usize,
    /// Covariance of constant and effects, row by row.
    covariance: Vec<f64>,
}

impl<'a> Design<'a> {
    fn new(arms: &'a Arms) -> Self {
        let size = arms.relative_sd.len() + 1;
        let mut covariance = vec![0.0; size * size];
        covariance[0] = 1.0;
        for (feature, &sd) in arms.relative_sd.iter().enumerate() {
            let sd = sd.max(arms.absolute_sd[feature]);
            covariance[(feature + 1) * (size + 1)] = sd * sd;
        }
        Self {
            arms,
            size,
            covariance,
        }
    }

    fn row(&self, arm: usize) -> Vec<f64> {
        let features = self.arms.features[arm].iter().copied();
        std::iter::once(1.0).chain(features).collect()
    }

    fn gain(&self, row: &[f64]) -> Vec<f64> {
        let lines = self.covariance.chunks_exact(self.size);
        lines.map(|line| dot(line, row)).collect()
    }

    /// Variance of the prediction of an arm.
    fn variance_of(&self, arm: usize) -> f64 {
        let row = self.row(arm);
        dot(&self.gain(&row), &row)
    }

    /// Reduces the uncertainty by a run of an arm.
    fn add_run(&mut self, arm: usize) {
        let row = self.row(arm);
        let gain = self.gain(&row);
        let variance = dot(&gain, &row) + NOISE * NOISE;
        for a in 0..self.size {
            for b in 0..self.size {
                self.covariance[a * self.size + b] -= gain[a] * gain[b] / variance;
            }
        }
    }
}
