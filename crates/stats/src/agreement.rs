//! Tests whether two scores estimate the same shift, and chooses between them.
//!
//! A score that gives some blocks less weight is more precise ("sharp"), but only if all blocks have
//! the same difference. If a placement costs most in the blocks with less weight, the score answers
//! another question: beside background load a pinned program may be 5 % slower over all blocks, but
//! 1 % over those with most weight. So the sharp score is used only while its estimate agrees with
//! the plain one, up to chance (Hausman 1978).
//!
//! This choice depends on the data. It does not bias the sharp score: the error of an efficient
//! estimate is uncorrelated with its distance from another estimate. But it biases the plain score,
//! which is used only if it happens to differ; [`PlainRanks`] corrects its p-values for that.

use super::inversion::Family;
use super::paired::Paired;
use super::{inversion, normal};

/// The sharp score is used while the estimates are at most this many standard deviations apart.
/// Below 1.96 the sharp estimate always lies within the plain one's 95 % interval.
pub const MAX_DISAGREEMENT: f64 = 1.9;
/// Steps of the bisection that finds one standard deviation.
const STEPS: usize = 24;
/// Points of the integral over the disagreement.
const INTEGRAL_POINTS: u32 = 48;
/// The integral ends at this disagreement, in standard deviations.
const MAX_INTEGRATED: f64 = 6.0;

/// Tests whether two scores estimate the same shift. The result is standard normal if they do, and
/// positive if `other` has the higher estimate; `None` if both scores are the same, or without
/// blocks. The sum of the plain scores must fall with the shift.
#[must_use]
pub fn z_of_disagreement(plain: &dyn Family, other: &dyn Family) -> Option<f64> {
    let scores_at = |shift: f64| (plain.scores(shift), other.scores(shift));
    let (least, most) = plain.range()?;
    compare_scores(least, most, inversion::estimate(plain), scores_at)
}

/// The same for any scores: `scores_at` gives both at a shift, `centre` is the plain estimate, and
/// all shifts that matter lie between `least` and `most`.
///
/// The plain sum is 0 at the plain estimate. The error of that estimate moves the other sum, too, by
/// the ratio of both sums' slopes, which are taken over one standard deviation of the plain sum on
/// either side. What remains of the other sum without that is compared with its error.
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

/// Standard deviation of the scores' sum under random signs.
fn sd_under_random_signs(scores: &[f64]) -> f64 {
    scores.iter().map(|s| s * s).sum::<f64>().sqrt()
}

/// Chooses the sharp score if it agrees with plain ranks, else those.
#[must_use]
pub fn choose_score(plain: Paired, sharp: Paired) -> Box<dyn Family> {
    let z = z_of_disagreement(&plain, &sharp);
    if z.is_none_or(|z| z.abs() < MAX_DISAGREEMENT) {
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

/// Plain ranks that were chosen because the sharp score disagreed.
#[derive(Debug, Clone, PartialEq)]
pub struct PlainRanks {
    ranks: Paired,
    /// Correlation with the sharp score.
    correlation: f64,
}

impl PlainRanks {
    /// Corrects a p-value for the choice. With `T` the plain statistic, `S` the sharp one and `D`
    /// the disagreement, `T = ρ S + √(1 − ρ²) D`; plain ranks are chosen only if `|D|` is beyond
    /// [`MAX_DISAGREEMENT`].
    fn correct_for_choice(&self, p: f64) -> f64 {
        let own = (1.0 - self.correlation * self.correlation).sqrt();
        if own < 1e-3 || p >= 1.0 {
            return p;
        }
        let bound = normal::upper_quantile(0.5 * p);
        let step = (MAX_INTEGRATED - MAX_DISAGREEMENT) / f64::from(INTEGRAL_POINTS);
        let (mut beyond, mut all) = (0.0, 0.0);
        for index in 0..INTEGRAL_POINTS {
            let disagreement = MAX_DISAGREEMENT + (f64::from(index) + 0.5) * step;
            let weight = normal::density(disagreement);
            let tail = |bound: f64| normal::upper_tail(bound / self.correlation.max(1e-3));
            let shift = own * disagreement;
            beyond += weight * (tail(bound - shift) + tail(bound + shift));
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
        self.correct_for_choice(self.ranks.p_value(theta))
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
        assert_eq!(z_of_disagreement(&pairs, &pairs), None);
        assert_eq!(
            z_of_disagreement(&Paired::without_weights(vec![]), &pairs),
            None
        );
    }

    #[test]
    fn plain_ranks_are_chosen_if_weights_hide_the_difference() {
        let differs = |index: u32| f64::from(u8::from(index.is_multiple_of(2)));
        let differences: Vec<f64> = (0..80).map(|i| 0.1 * noise(i) + 0.2 * differs(i)).collect();
        let weights = (0..80).map(|i| 1.0 - 0.9 * differs(i)).collect();
        let plain = Paired::without_weights(differences.clone());
        let cut = Paired::with_weights(differences, weights);
        assert!(z_of_disagreement(&plain, &cut).unwrap() < -4.0);
        let chosen = choose_score(plain.clone(), cut);
        assert_eq!(chosen.scores(0.0), plain.scores(0.0));
    }

    #[test]
    fn corrected_p_values_agree_with_an_integral() {
        // Correlation 0.8: of pairs of normal numbers with |D| > 1.9, this share has
        // |T| > 1.96 (numerical integral in Python).
        let ranks = |correlation| PlainRanks {
            ranks: Paired::without_weights(vec![]),
            correlation,
        };
        let p = 2.0 * normal::upper_tail(1.959_964);
        let after = ranks(0.8).correct_for_choice(p);
        assert!((after - 0.2372).abs() < 0.002, "{after}");
        assert!((ranks(1.0).correct_for_choice(p) - p).abs() < 1e-12);
        assert!(ranks(0.8).correct_for_choice(1e-9) >= 1e-9);
    }
}
