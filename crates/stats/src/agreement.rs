//! Do two scores speak of the same shift?
//!
//! A score that gives some blocks less weight is sharper only if every block has the same
//! difference. If a placement costs most in the blocks with less weight, the score answers another
//! question: next to background load a pinned program is 5 % slower over all blocks, and 1 % over
//! those that count. So a sharper score is used only while its estimate agrees with the one from
//! all blocks, within what chance allows between the two (Hausman 1978).
//!
//! The choice looks at the data. This does not bias the sharp score: the error of an efficient
//! estimate is uncorrelated with its distance from another one. It does bias the plain score, which
//! is used when it happens to differ; that bias is computed and removed ([`PlainRanks`]).

use super::inversion::Family;
use super::paired::Paired;
use super::{inversion, normal};

/// The sharp score is not used if the estimates are more standard deviations apart. Below 1.96 its
/// estimate lies within the plain one's 95 % interval whatever the data are, since the two differ
/// by less than either errs.
pub const APART: f64 = 1.9;
/// Steps of the bisection that finds one standard deviation.
const STEPS: usize = 24;
/// Steps and limits of the integral over the disagreement.
const GRID: u32 = 48;
const FARTHEST: f64 = 6.0;

/// Standard normal if `other` is 0 at the same shift as `plain`, whose sum falls with the shift;
/// positive if `other` has the higher estimate. `None` if both are the same, or without blocks.
#[must_use]
pub fn z(plain: &dyn Family, other: &dyn Family) -> Option<f64> {
    let scores_at = |shift: f64| (plain.scores(shift), other.scores(shift));
    let (least, most) = plain.range()?;
    compare_scores(least, most, inversion::estimate(plain), scores_at)
}

/// The same for the scores of both at a shift, from the plain estimate.
///
/// The plain sum is 0 at its estimate. What the estimate is off moves the other
/// sum, too: by the ratio of their slopes, taken over one standard deviation of
/// the plain sum on either side.
pub(super) fn compare_scores(
    least: f64,
    most: f64,
    centre: f64,
    scores_at: impl Fn(f64) -> (Vec<f64>, Vec<f64>),
) -> Option<f64> {
    let (plain, other) = scores_at(centre);
    let sd = sd_under_random_signs(&plain);
    let sums_at = |shift: f64| {
        let (plain, other) = scores_at(shift);
        (sum(&plain), sum(&other))
    };
    let ends = [least, most].map(|outmost| {
        let (mut within, mut beyond) = (centre, outmost);
        for _ in 0..STEPS {
            let middle = 0.5 * (within + beyond);
            match sums_at(middle).0.abs() < sd {
                true => within = middle,
                false => beyond = middle,
            }
        }
        sums_at(beyond)
    });
    let fall = ends[0].0 - ends[1].0;
    let ratio = if fall > 0.0 {
        (ends[0].1 - ends[1].1) / fall
    } else {
        0.0
    };
    let parts: Vec<f64> = other
        .iter()
        .zip(&plain)
        .map(|(other, plain)| other - ratio * plain)
        .collect();
    let error = sd_under_random_signs(&parts);
    (error > 1e-6 * sd_under_random_signs(&other)).then(|| sum(&other) / error)
}

fn sum(scores: &[f64]) -> f64 {
    scores.iter().sum()
}

/// Standard deviation of the sum under random signs.
fn sd_under_random_signs(scores: &[f64]) -> f64 {
    scores.iter().map(|s| s * s).sum::<f64>().sqrt()
}

/// The sharp score while it agrees with plain ranks, else those.
#[must_use]
pub fn sharp_while_it_agrees(plain: Paired, sharp: Paired) -> Box<dyn Family> {
    let agrees = z(&plain, &sharp).is_none_or(|z| z.abs() < APART);
    if agrees {
        return Box::new(sharp);
    }
    let centre = plain.estimate();
    let (of_plain, of_sharp) = (plain.scores(centre), sharp.scores(centre));
    let shared: f64 = of_plain.iter().zip(&of_sharp).map(|(a, b)| a * b).sum();
    let correlation =
        shared / (sd_under_random_signs(&of_plain) * sd_under_random_signs(&of_sharp));
    Box::new(PlainRanks {
        ranks: plain,
        correlation: correlation.clamp(0.0, 1.0),
    })
}

/// Plain ranks that were chosen because another score disagreed.
#[derive(Debug, Clone, PartialEq)]
pub struct PlainRanks {
    ranks: Paired,
    /// With the score that was not chosen.
    correlation: f64,
}

impl PlainRanks {
    /// What `p` is worth after the choice: with `T` the plain statistic, `S` the
    /// sharp one and `D` the disagreement, `T = ρ S + √(1 − ρ²) D`, of which only
    /// those with `|D|` beyond [`APART`] come here.
    fn after_choice(&self, p: f64) -> f64 {
        let own = (1.0 - self.correlation * self.correlation).sqrt();
        if own < 1e-3 || p >= 1.0 {
            return p;
        }
        let bound = normal::upper_quantile(0.5 * p);
        let step = (FARTHEST - APART) / f64::from(GRID);
        let (mut beyond, mut all) = (0.0, 0.0);
        for index in 0..GRID {
            let off = APART + (f64::from(index) + 0.5) * step;
            let weight = normal::density(off);
            let tail = |bound: f64| normal::upper_tail(bound / self.correlation.max(1e-3));
            beyond += weight * (tail(bound - own * off) + tail(bound + own * off));
            all += weight;
        }
        (beyond / all).clamp(p, 1.0)
    }
}

impl Family for PlainRanks {
    fn blocks(&self) -> usize {
        self.ranks.blocks()
    }

    fn scores(&self, theta: f64) -> Vec<f64> {
        self.ranks.scores(theta)
    }

    fn range(&self) -> Option<(f64, f64)> {
        self.ranks.range()
    }

    fn p_value(&self, theta: f64) -> f64 {
        self.after_choice(self.ranks.p_value(theta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(index: u32) -> f64 {
        f64::from(index.wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 23) - 1.0
    }

    #[test]
    fn a_score_agrees_with_itself() {
        let pairs = Paired::without_weights((0..40).map(noise).collect());
        assert_eq!(z(&pairs, &pairs), None);
        assert_eq!(z(&Paired::without_weights(vec![]), &pairs), None);
    }

    #[test]
    fn what_cuts_the_blocks_that_differ_disagrees() {
        let differs = |index: u32| f64::from(u8::from(index.is_multiple_of(2)));
        let differences: Vec<f64> = (0..80).map(|i| 0.1 * noise(i) + 0.2 * differs(i)).collect();
        let weights = (0..80).map(|i| 1.0 - 0.9 * differs(i)).collect();
        let plain = Paired::without_weights(differences.clone());
        let cut = Paired::with_weights(differences, weights);
        assert!(z(&plain, &cut).unwrap() < -4.0);
        let chosen = sharp_while_it_agrees(plain.clone(), cut);
        assert_eq!(chosen.scores(0.0), plain.scores(0.0));
    }

    #[test]
    fn p_after_the_choice_by_simulation() {
        // Correlation 0.8: of pairs of normal numbers with |D| > 1.9, this share has
        // |T| > 1.96 (numerical integral in Python).
        let ranks = |correlation| PlainRanks {
            ranks: Paired::without_weights(vec![]),
            correlation,
        };
        let p = 2.0 * normal::upper_tail(1.959_964);
        let after = ranks(0.8).after_choice(p);
        assert!((after - 0.2372).abs() < 0.002, "{after}");
        assert!((ranks(1.0).after_choice(p) - p).abs() < 1e-12);
        assert!(ranks(0.8).after_choice(1e-9) >= 1e-9);
    }
}
