//! Other ways to find the best of many arms, against which the search is held:
//! random search, everything five times, everything with early stopping,
//! Thompson sampling without a prior, sequential halving. They know no model of
//! placements. Used by the tests here and by `lab`.

use pinwise_stats::{halving, normal};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// What can be run; the first arm is what one has without a search.
pub(crate) trait Arms {
    /// How many there are.
    fn count(&self) -> usize;

    /// Runs one; `ln(cost)`.
    fn run(&mut self, arm: usize) -> f64;
}

/// A rival's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The arm that it takes for the best.
    pub(crate) best: usize,
    /// Runs that it took.
    pub(crate) runs: usize,
}

/// When is enough known?
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    /// Arms that are better by less, in `ln(ratio)`, are not looked for.
    pub(crate) within: f64,
    /// Probability that may be left that another is better by more.
    pub(crate) error: f64,
    /// Runs after which it ends in any case.
    pub(crate) most_runs: usize,
}

/// Responses arm by arm.
#[derive(Debug, Clone)]
struct ArmResponses {
    values: Vec<Vec<f64>>,
}

impl ArmResponses {
    fn new(arms: usize) -> Self {
        Self {
            values: vec![Vec::new(); arms],
        }
    }

    fn run(&mut self, arms: &mut impl Arms, arm: usize) {
        let value = arms.run(arm);
        self.values[arm].push(value);
    }

    fn runs(&self) -> usize {
        self.values.iter().map(Vec::len).sum()
    }

    fn mean(&self, arm: usize) -> Option<f64> {
        let values = &self.values[arm];
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// The arm of `open` with the lowest mean.
    fn lowest(&self, open: &[usize]) -> usize {
        let means = open.iter().map(|&arm| (self.mean(arm), arm));
        let known = means.filter_map(|(mean, arm)| Some((mean?, arm)));
        known.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(0, |b| b.1)
    }
}

/// Draws arms without replacement, each once; then runs again whichever looks
/// best, until it no longer does. The leader after each of `runs`.
pub(crate) fn random_search(
    arms: &mut impl Arms,
    runs: usize,
    chance: &mut impl Rng,
) -> Vec<usize> {
    let all: Vec<usize> = (0..arms.count()).collect();
    let mut drawn = all.clone();
    drawn.shuffle(chance);
    let mut seen = ArmResponses::new(arms.count());
    (0..runs)
        .map(|run| {
            let next = drawn.get(run).copied();
            let arm = next.unwrap_or_else(|| seen.lowest(&all));
            seen.run(arms, arm);
            seen.lowest(&all)
        })
        .collect()
}

/// Every arm this many times, in rounds of random order; the lowest median.
pub(crate) fn exhaustive(arms: &mut impl Arms, rounds: usize, chance: &mut impl Rng) -> Choice {
    let mut order: Vec<usize> = (0..arms.count()).collect();
    let mut seen = ArmResponses::new(arms.count());
    for _ in 0..rounds {
        order.shuffle(chance);
        for &arm in &order {
            seen.run(arms, arm);
        }
    }
    let medians = seen.values.iter().map(|values| {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        0.5 * (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2])
    });
    let best = medians.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    Choice {
        best: best.map_or(0, |(arm, _)| arm),
        runs: seen.runs(),
    }
}

/// Rounds before anything is dropped: with fewer, an interval of pairs is wide.
const MIN_ROUNDS: usize = 3;

/// Rounds of all survivors. After each, arms are dropped whose paired 95 % interval against the
/// leader (Student's t) lies above 0; it ends when one is left, or when no interval leaves room for
/// one that is better by more than the goal.
pub(crate) fn racing(arms: &mut impl Arms, goal: Goal, chance: &mut impl Rng) -> Choice {
    let mut open: Vec<usize> = (0..arms.count()).collect();
    let mut seen = ArmResponses::new(arms.count());
    loop {
        open.shuffle(chance);
        for &arm in &open {
            seen.run(arms, arm);
        }
        let best = seen.lowest(&open);
        let lows: Vec<(usize, f64)> = open
            .iter()
            .filter(|&&arm| arm != best)
            .map(|&arm| (arm, lowest_difference(&seen, arm, best)))
            .collect();
        let is_clear = lows.iter().all(|(_, low)| *low > -goal.within);
        if is_clear || seen.runs() >= goal.most_runs {
            let runs = seen.runs();
            return Choice { best, runs };
        }
        let kept = lows.iter().filter(|(_, low)| *low <= 0.0);
        open = kept.map(|&(arm, _)| arm).chain([best]).collect();
    }
}

/// Lower end of the interval of an arm against another, of the rounds that
/// both were in.
fn lowest_difference(seen: &ArmResponses, arm: usize, other: usize) -> f64 {
    let both = seen.values[arm].iter().zip(&seen.values[other]);
    let differences: Vec<f64> = both.map(|(a, b)| a - b).collect();
    if differences.len() < MIN_ROUNDS {
        return f64::NEG_INFINITY;
    }
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let squares: f64 = differences.iter().map(|d| (d - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let law = StudentsT::new(0.0, 1.0, count - 1.0).expect("degrees of freedom");
    mean - law.inverse_cdf(0.975) * error
}

/// Standard deviation of the weak prior: costs within a factor of 1.6 or so.
const PRIOR_SD: f64 = 0.5;
/// Noise of a run that is assumed before any is known, with the weight of two
/// runs.
const FIRST_NOISE: (f64, f64) = (2.0, 0.05);
/// Draws in search of a second arm.
const MAX_DRAWS: usize = 20;

/// Top-two Thompson sampling (Russo 2016) of independent normal arms with one noise, which is
/// estimated; stops when the probabilities of the others to beat the leader by more than the goal
/// sum up to less than its error.
pub(crate) fn thompson(arms: &mut impl Arms, goal: Goal, chance: &mut impl Rng) -> Choice {
    let mut seen = ArmResponses::new(arms.count());
    seen.run(arms, 0);
    loop {
        let beliefs = beliefs(&seen);
        let leader = lowest(beliefs.iter().map(|belief| belief.0));
        let risk: f64 = (0..beliefs.len())
            .filter(|&arm| arm != leader)
            .map(|arm| beats(beliefs[arm], beliefs[leader], goal.within))
            .sum();
        if risk < goal.error || seen.runs() >= goal.most_runs {
            let runs = seen.runs();
            return Choice { best: leader, runs };
        }
        let arm = top_two(&beliefs, chance);
        seen.run(arms, arm);
    }
}

/// Mean and variance of what is believed of each arm.
fn beliefs(seen: &ArmResponses) -> Vec<(f64, f64)> {
    let means: Vec<Option<f64>> = (0..seen.values.len()).map(|arm| seen.mean(arm)).collect();
    let (mut weight, mut squares) = (FIRST_NOISE.0, FIRST_NOISE.0 * FIRST_NOISE.1.powi(2));
    for (values, mean) in seen.values.iter().zip(&means) {
        let mean = mean.unwrap_or(0.0);
        squares += values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        weight += values.len().saturating_sub(1) as f64;
    }
    let noise = squares / weight;
    let sum: f64 = seen.values.iter().flatten().sum();
    let centre = sum / seen.runs() as f64;
    let prior = PRIOR_SD.powi(2);
    seen.values
        .iter()
        .zip(&means)
        .map(|(values, mean)| {
            let precision = 1.0 / prior + values.len() as f64 / noise;
            let pulled = centre / prior + mean.unwrap_or(0.0) * values.len() as f64 / noise;
            (pulled / precision, 1.0 / precision)
        })
        .collect()
}

/// Probability that one arm is better than another by more than `within`.
fn beats(arm: (f64, f64), other: (f64, f64), within: f64) -> f64 {
    normal::upper_tail((arm.0 + within - other.0) / (arm.1 + other.1).sqrt())
}

fn top_two(beliefs: &[(f64, f64)], chance: &mut impl Rng) -> usize {
    let first = draw_lowest(beliefs, chance);
    if beliefs.len() < 2 || chance.random::<bool>() {
        return first;
    }
    let mut draws = (0..MAX_DRAWS).map(|_| draw_lowest(beliefs, chance));
    draws.find(|&arm| arm != first).unwrap_or_else(|| {
        lowest((0..beliefs.len()).map(|arm| {
            if arm == first {
                f64::INFINITY
            } else {
                -beats(beliefs[arm], beliefs[first], 0.0)
            }
        }))
    })
}

fn draw_lowest(beliefs: &[(f64, f64)], chance: &mut impl Rng) -> usize {
    lowest(beliefs.iter().map(|(mean, variance)| {
        let share = chance.random_range(1e-12..1.0 - 1e-12);
        mean + variance.sqrt() * normal::upper_quantile(share)
    }))
}

fn lowest(values: impl Iterator<Item = f64>) -> usize {
    let least = values.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    least.map_or(0, |(index, _)| index)
}

/// Blocks of the last round, in which the finalists meet.
const LAST_BLOCKS: usize = 8;

/// Sequential halving as `compare` screens: rounds of this many blocks, of which
/// the better half goes on; then blocks of the finalists.
pub(crate) fn successive_halving(arms: &mut impl Arms, chance: &mut impl Rng) -> Choice {
    let mut open: Vec<usize> = (1..arms.count()).collect();
    let mut runs = Vec::new();
    let mut blocks = |open: &[usize], count: usize, runs: &mut Vec<(usize, f64)>| {
        let mut order: Vec<usize> = open.iter().copied().chain([0]).collect();
        for _ in 0..count {
            order.shuffle(chance);
            runs.extend(order.iter().map(|&arm| (arm, arms.run(arm))));
        }
    };
    while open.len() > halving::FINALISTS {
        blocks(&open, halving::MIN_BLOCKS, &mut runs);
        open = halving::select_survivors(&runs, &open);
    }
    let first = runs.len();
    blocks(&open, LAST_BLOCKS, &mut runs);
    let mut seen = ArmResponses::new(arms.count());
    for &(arm, value) in &runs[first..] {
        seen.values[arm].push(value);
    }
    open.push(0);
    Choice {
        best: seen.lowest(&open),
        runs: runs.len(),
    }
}
