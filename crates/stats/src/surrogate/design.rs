//! Which arms to run first: those that say most about effects.

use super::Arms;
use super::cholesky::dot;

/// Noise of a run over the standard deviation of an effect that is typical of
/// programs which placement matters to.
const NOISE: f64 = 0.1;

/// `count` different arms, beginning with `first`, then one after the other the arm that reduces
/// the volume of uncertainty about the effects most: sequential D-optimal design (Wynn, Ann. Math.
/// Statist. 1970; with prior variances: Chaloner and Verdinelli, Statist. Sci. 1995). Arms that
/// `may` refuses are left out.
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
        // Of equals the first: the answer must not depend on rounding.
        let next = first.find(|arm| !chosen.contains(arm));
        let best = next.or_else(|| {
            left.map(|arm| (design.unknown(arm), arm))
                .fold(None, |best: Option<(f64, usize)>, one| match best {
                    Some(held) if held.0 * (1.0 + 1e-9) >= one.0 => Some(held),
                    _ => Some(one),
                })
                .map(|(_, arm)| arm)
        });
        let Some(arm) = best else { break };
        design.run(arm);
        chosen.push(arm);
    }
    chosen
}

/// Covariance of constant and effects.
struct Design<'a> {
    arms: &'a Arms,
    size: usize,
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
    fn unknown(&self, arm: usize) -> f64 {
        let row = self.row(arm);
        dot(&self.gain(&row), &row)
    }

    /// What a run of it leaves unknown.
    fn run(&mut self, arm: usize) {
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
