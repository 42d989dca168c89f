//! Sums the ratios of successive experiments, and finds where they changed.
//!
//! Each link is the `ln(ratio)` of one experiment. Its estimate must not depend on when the
//! experiment stopped ([`fixed_width`](super::fixed_width)): small biases add up to a large one.
//! Links are taken as independent and normal. The degrees of freedom of their errors follow from
//! their pairs (Student), those of sums from Satterthwaite (1946).
//!
//! A change is a range of neighbouring links whose sum differs from 0 at the level `α / (k s)`, with
//! `k` links in the range and `s = Σ (n − k + 1) / k` over all lengths. That holds the error over
//! all ranges together (weighted Bonferroni). Long ranges get less of it than short ones: there are
//! many of them and they share most of their links (Dümbgen and Spokoiny 2001 weigh scales for the
//! same reason). First the most significant range is found, then those on either side of it (binary
//! segmentation: Vostrikova 1981). A range is narrowed to its shortest part that is a change by itself,
//! if the rest of it may be chance. A sudden step is a range of one link; a creep of many small steps
//! is significant only as a whole.

use super::normal;

/// What is nearer to 0 than this many standard deviations may be chance.
const CHANCE: f64 = 2.0;
/// Smaller standard errors count as this.
const MIN_ERROR: f64 = 1e-9;

/// The measured ratio of two neighbours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// `ln(ratio)`.
    pub estimate: f64,
    /// Standard error.
    pub error: f64,
    /// Degrees of freedom of the error; infinite if it is known.
    pub freedom: f64,
}

impl Link {
    /// A link whose standard error is known exactly.
    #[must_use]
    pub const fn exact(estimate: f64, error: f64) -> Self {
        Self {
            estimate,
            error,
            freedom: f64::INFINITY,
        }
    }

    /// A link whose standard error was estimated from this many pairs.
    #[must_use]
    pub const fn from_pairs(estimate: f64, error: f64, pairs: usize) -> Self {
        let freedom = pairs.saturating_sub(1);
        Self {
            estimate,
            error,
            freedom: if freedom > 1 { freedom as f64 } else { 1.0 },
        }
    }

    /// A link whose interval at this nominal level was estimated from this many pairs.
    #[must_use]
    pub fn from_interval(estimate: f64, half_width: f64, level: f64, pairs: usize) -> Self {
        let link = Self::from_pairs(estimate, half_width, pairs);
        let errors = normal_to_student(normal::upper_quantile(0.5 * level), link.freedom);
        Self {
            error: half_width / errors,
            ..link
        }
    }

    /// Pools several experiments (other sessions, hosts, builds) on the same ratio, which differ by
    /// more than their own errors. Returns their mean, weighted by precision, and the standard
    /// deviation between them; `None` without experiments.
    ///
    /// That variance is estimated by the method of moments (`DerSimonian` and Laird 1986). From few
    /// experiments the estimate is rough, so that intervals are too narrow (with two experiments,
    /// intervals of 95 % cover about 78 % if its root is 2.5 times their own errors); from one
    /// experiment it is 0.
    #[must_use]
    pub fn pool(links: &[Self]) -> Option<(Self, f64)> {
        let between = Self::variance_between(links);
        let weight = |link: &Self| (link.variance() + between).recip();
        Some((Self::weighted_mean(links, weight)?, between.sqrt()))
    }

    /// Variance between experiments beyond their own errors.
    fn variance_between(links: &[Self]) -> f64 {
        let precision = |link: &Self| link.variance().recip();
        let Some(fixed) = Self::weighted_mean(links, precision) else {
            return 0.0;
        };
        let sum = |of: &dyn Fn(&Self) -> f64| links.iter().map(of).sum::<f64>();
        let q = sum(&|link| precision(link) * (link.estimate - fixed.estimate).powi(2));
        let whole = sum(&precision);
        let scale = whole - sum(&|link| precision(link).powi(2)) / whole;
        match scale > 0.0 {
            true => ((q - (links.len() - 1) as f64) / scale).max(0.0),
            false => 0.0,
        }
    }

    fn weighted_mean(links: &[Self], weight: impl Fn(&Self) -> f64) -> Option<Self> {
        let whole: f64 = links.iter().map(&weight).sum();
        let sum: f64 = links.iter().map(|link| weight(link) * link.estimate).sum();
        let uncertainty = |link: &Self| weight(link).powi(2) / link.freedom;
        (whole > 0.0).then(|| Self {
            estimate: sum / whole,
            error: whole.powf(-0.5),
            freedom: whole * whole / links.iter().map(uncertainty).sum::<f64>(),
        })
    }

    fn variance(&self) -> f64 {
        self.error.max(MIN_ERROR).powi(2)
    }

    /// The sum of links: the ratio of the last to the first.
    #[must_use]
    pub fn sum(links: &[Self]) -> Self {
        let variance: f64 = links.iter().map(|link| link.error.powi(2)).sum();
        let uncertainty = |link: &Self| link.error.powi(4) / link.freedom;
        Self {
            estimate: links.iter().map(|link| link.estimate).sum(),
            error: variance.sqrt(),
            freedom: variance * variance / links.iter().map(uncertainty).sum::<f64>(),
        }
    }

    /// The interval that misses the truth with this probability.
    #[must_use]
    pub fn interval(&self, level: f64) -> (f64, f64) {
        let width =
            self.error * normal_to_student(normal::upper_quantile(0.5 * level), self.freedom);
        (self.estimate - width, self.estimate + width)
    }

    /// The estimate's distance from 0, in standard deviations of a normal distribution.
    fn z(&self) -> f64 {
        match self.error > 0.0 {
            true => student_to_normal(self.estimate.abs() / self.error, self.freedom),
            false => 0.0,
        }
    }
}

/// The normal deviate with the same tail as this deviate of Student's t, within 1 % from eight
/// degrees of freedom on (Wallace 1959).
fn student_to_normal(t: f64, freedom: f64) -> f64 {
    match freedom.is_finite() {
        true => wallace(freedom) * (freedom * (t * t / freedom).ln_1p()).sqrt(),
        false => t,
    }
}

/// The deviate of Student's t with the same tail as this normal deviate.
fn normal_to_student(z: f64, freedom: f64) -> f64 {
    match freedom.is_finite() {
        true => (freedom * ((z / wallace(freedom)).powi(2) / freedom).exp_m1()).sqrt(),
        false => z,
    }
}

/// The factor in Wallace's approximation.
fn wallace(freedom: f64) -> f64 {
    (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)
}

/// A range of links over which the ratio changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The first link of the range.
    pub first: usize,
    /// The last link of the range.
    pub last: usize,
    /// The sum of the links.
    pub whole: Link,
    /// The level at which its interval just excludes 0 if this is a change.
    pub level: f64,
}

/// Finds all changes, in order. If nothing changed, any is found with a probability of at most
/// `alpha`.
#[must_use]
pub fn find_changes(links: &[Link], alpha: f64) -> Vec<Change> {
    let count = links.len();
    let shares = (1..=count).map(|length| (count - length + 1) as f64 / length as f64);
    let level_of_one = alpha / shares.sum::<f64>().max(1.0);
    let mut found = Vec::new();
    let mut open = vec![(0, count)];
    while let Some((from, to)) = open.pop() {
        let Some(change) = find_clearest(&links[from..to], from, level_of_one) else {
            continue;
        };
        let change = narrow(links, change, level_of_one);
        open.push((from, change.first));
        open.push((change.last + 1, to));
        found.push(change);
    }
    found.sort_by_key(|change| change.first);
    found
}

/// Finds the most significant change among these links, the first of which has the number `from`.
fn find_clearest(links: &[Link], from: usize, level_of_one: f64) -> Option<Change> {
    let bounds: Vec<f64> = (1..=links.len())
        .map(|length| normal::upper_quantile(0.5 * level_of_one / length as f64))
        .collect();
    let mut best: Option<(f64, Change)> = None;
    for first in 0..links.len() {
        let mut whole = Link::exact(0.0, 0.0);
        for (last, link) in links.iter().enumerate().skip(first) {
            whole = Link::sum(&[whole, *link]);
            let bound = bounds[last - first];
            let z = whole.z();
            // About the logarithm of the level over the p-value.
            let margin = z * z - bound * bound;
            if z > bound && best.is_none_or(|(most, _)| margin > most) {
                let change = Change {
                    first: from + first,
                    last: from + last,
                    whole,
                    level: level_of_one / (last - first + 1) as f64,
                };
                best = Some((margin, change));
            }
        }
    }
    best.map(|(_, change)| change)
}

/// The shortest part of a change that is one by itself while the rest may be chance: a step whose
/// error is roughly known is clearer together with its neighbours, but lies where it lies.
fn narrow(links: &[Link], change: Change, level_of_one: f64) -> Change {
    let Change { first, last, .. } = change;
    let is_chance = |part: &[Link]| Link::sum(part).z() < CHANCE;
    for length in 1..=last - first {
        let level = level_of_one / length as f64;
        let bound = normal::upper_quantile(0.5 * level);
        for start in first..=last + 1 - length {
            let end = start + length;
            let whole = Link::sum(&links[start..end]);
            let rest = [&links[first..start], &links[end..=last]];
            if whole.z() > bound && rest.into_iter().all(is_chance) {
                return Change {
                    first: start,
                    last: end - 1,
                    whole,
                    level,
                };
            }
        }
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const ERROR: f64 = 0.005;

    /// Simulates links with these true ratios.
    fn simulate(truth: &[f64], seed: u64) -> Vec<Link> {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let mut noise = || ERROR * normal::upper_quantile(chance.random_range(1e-9..1.0));
        let link = |truth: &f64| Link::exact(truth + noise(), ERROR);
        truth.iter().map(link).collect()
    }

    /// Share of histories in which a change is found.
    fn alarm_rate(truth: &[f64]) -> f64 {
        let found = (0..400).filter(|seed| !find_changes(&simulate(truth, *seed), 0.05).is_empty());
        found.count() as f64 / 400.0
    }

    #[test]
    fn an_unchanged_history_rarely_has_a_change() {
        assert!(alarm_rate(&[0.0; 30]) <= 0.05 + 3.0 * (0.05f64 * 0.95 / 400.0).sqrt());
    }

    #[test]
    fn a_step_is_located() {
        let mut truth = [0.0; 30];
        truth[12] = 0.05;
        let right = (0..200).filter(|seed| {
            let found = find_changes(&simulate(&truth, *seed), 0.05);
            found.iter().any(|change| {
                change.first <= 12 && change.last >= 12 && change.last - change.first <= 3
            })
        });
        assert!(right.count() >= 190);
    }

    #[test]
    fn a_step_is_not_blurred_by_neighbours_that_happen_to_lean_its_way() {
        let link = |estimate| Link::from_pairs(estimate, 0.004, 8);
        let estimates = [0.001, -0.001, 0.06, 0.001, 0.005, -0.002];
        let found = find_changes(&estimates.map(link), 0.05);
        let ranges: Vec<_> = found.iter().map(|one| (one.first, one.last)).collect();
        assert_eq!(ranges, [(2, 2)]);
    }

    #[test]
    fn a_creep_is_found_as_a_whole() {
        // 0.5 % a commit, as much as its error.
        let truth = [0.005; 30];
        assert!(alarm_rate(&truth) >= 0.9, "{}", alarm_rate(&truth));
        let found = find_changes(&simulate(&[0.006; 30], 1), 0.05);
        let (first, last) = (found[0].first, found[found.len() - 1].last);
        assert!(last - first >= 15, "{found:?}");
    }

    #[test]
    fn two_steps_are_two_changes() {
        let mut truth = [0.0; 20];
        (truth[4], truth[15]) = (0.06, -0.06);
        let found = find_changes(&simulate(&truth, 3), 0.05);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].whole.estimate > 0.0 && found[1].whole.estimate < 0.0);
        for change in &found {
            let (low, high) = change.whole.interval(change.level);
            assert!(low > 0.0 || high < 0.0, "{change:?}");
        }
    }

    #[test]
    fn pooled_intervals_include_the_variance_between_experiments() {
        let mut chance = ChaCha8Rng::seed_from_u64(1);
        let mut normal = || normal::upper_quantile(chance.random_range(1e-9..1.0));
        // Sessions of ±0.2 % each that truly lie ±0.5 % apart around 2 %.
        let mut experiment = || Link::exact(0.02 + 0.005 * normal() + 0.002 * normal(), 0.002);
        let is_right = |links: &[Link]| {
            let (low, high) = Link::pool(links).unwrap().0.interval(0.05);
            low <= 0.02 && 0.02 <= high
        };
        let right = (0..400).filter(|_| is_right(&[(); 8].map(|()| experiment())));
        assert!(right.count() >= 352, "88 % of intervals hold");
        let far = [0.0206, 0.0166].map(|estimate| Link::exact(estimate, 0.0005));
        let between = |links: &[Link]| Link::pool(links).unwrap().1;
        assert!((between(&far) - 0.0028).abs() < 1e-4);
        assert!(between(&far[..1]) < 1e-12);
    }

    #[test]
    fn experiments_of_the_same_ratio_are_pooled() {
        let link = Link::exact;
        let (pooled, _) = Link::pool(&[link(0.019, 0.002), link(0.021, 0.002)]).unwrap();
        assert!((pooled.estimate - 0.02).abs() < 1e-12);
        assert!((pooled.error - 0.002 / 2.0f64.sqrt()).abs() < 1e-12);
        let (sure, _) = Link::pool(&[link(0.01, 0.0001), link(0.05, 0.1)]).unwrap();
        assert!((sure.estimate - 0.01).abs() < 1e-4);
        assert_eq!(Link::pool(&[]), None);
    }

    #[test]
    fn errors_of_few_pairs_are_known_roughly() {
        // scipy 1.17.1: t.ppf(0.975, 8), t.ppf(0.9995, 8), t.ppf(0.975, 30)
        for (level, freedom, expected) in [
            (0.05, 8.0, 2.306_004),
            (0.001, 8.0, 5.041_305),
            (0.05, 30.0, 2.042_272),
        ] {
            let z = normal::upper_quantile(0.5 * level);
            let t = normal_to_student(z, freedom);
            assert!((t / expected - 1.0).abs() < 6e-3, "{t}");
            assert!((student_to_normal(t, freedom) - z).abs() < 1e-9);
        }
        let read = Link::from_interval(0.0, 0.023_06, 0.05, 9);
        assert!((read.error - 0.01).abs() < 1e-4, "{read:?}");
        assert!((read.interval(0.05).1 - 0.023_06).abs() < 1e-9);
        // Of two alike a sum knows its error twice as well.
        assert!((Link::sum(&[read, read]).freedom - 16.0).abs() < 1e-9);
    }
}
