//! Other algorithms that find the best of many arms, with which the search is compared: random
//! search, exhaustive search, racing, Thompson sampling, sequential halving. They know no model of
//! placements. Used by the tests and by `lab`.

use pinwise_stats::{halving, normal};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Arms to run; the first is the default without a search.
pub(crate) trait Arms {
    fn count(&self) -> usize;

    /// Runs an arm; returns `ln(cost)`.
    fn run(&mut self, arm: usize) -> f64;
}

/// A rival's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The arm that it considers the best.
    pub(crate) best: usize,
    /// Runs that it took.
    pub(crate) runs: usize,
}

/// When an algorithm may stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Goal {
    /// Smallest gain of interest, as `ln(ratio)`.
    pub(crate) within: f64,
    /// Accepted probability that another arm is better by more than that.
    pub(crate) error: f64,
    /// Runs after which it stops in any case.
    pub(crate) most_runs: usize,
}

/// Responses of each arm.
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

/// Runs each arm once in random order; then always the one with the lowest mean. Returns the leader
/// after each run.
pub(crate) fn run_random_search(
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

/// Runs every arm this many times, in rounds of random order; chooses the lowest median.
pub(crate) fn run_exhaustive(arms: &mut impl Arms, rounds: usize, chance: &mut impl Rng) -> Choice {
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

/// Rounds before an arm is dropped: with fewer, intervals are wide.
const MIN_ROUNDS: usize = 3;

/// Runs rounds of all open arms. After each round, arms are dropped whose paired 95 % interval
/// against the leader (Student's t) lies above 0. It ends when one is left, or when no interval
/// allows for a gain beyond the goal.
pub(crate) fn run_racing(arms: &mut impl Arms, goal: Goal, chance: &mut impl Rng) -> Choice {
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

/// Lower end of the interval of the difference between two arms, from the rounds with both.
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
/// Assumed standard deviation of a run, and its weight in runs.
const PRIOR_NOISE_SD: f64 = 0.05;
const PRIOR_NOISE_WEIGHT: f64 = 2.0;
/// Draws of a second arm before the most promising one is taken.
const MAX_DRAWS: usize = 20;

/// Top-two Thompson sampling (Russo 2016) of independent normal arms with one estimated noise. It
/// stops when the probabilities that another arm is better by more than the goal sum up to less
/// than the accepted error.
pub(crate) fn run_thompson(arms: &mut impl Arms, goal: Goal, chance: &mut impl Rng) -> Choice {
    let mut seen = ArmResponses::new(arms.count());
    seen.run(arms, 0);
    loop {
        let beliefs = infer_beliefs(&seen);
        let leader = index_of_lowest(beliefs.iter().map(|belief| belief.0));
        let risk: f64 = (0..beliefs.len())
            .filter(|&arm| arm != leader)
            .map(|arm| probability_better(beliefs[arm], beliefs[leader], goal.within))
            .sum();
        if risk < goal.error || seen.runs() >= goal.most_runs {
            let runs = seen.runs();
            return Choice { best: leader, runs };
        }
        let arm = draw_of_top_two(&beliefs, chance);
        seen.run(arms, arm);
    }
}

/// Mean and variance of the posterior of each arm.
fn infer_beliefs(seen: &ArmResponses) -> Vec<(f64, f64)> {
    let means: Vec<Option<f64>> = (0..seen.values.len()).map(|arm| seen.mean(arm)).collect();
    let mut weight = PRIOR_NOISE_WEIGHT;
    let mut squares = PRIOR_NOISE_WEIGHT * PRIOR_NOISE_SD.powi(2);
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
fn probability_better(arm: (f64, f64), other: (f64, f64), within: f64) -> f64 {
    normal::upper_tail((arm.0 + within - other.0) / (arm.1 + other.1).sqrt())
}

fn draw_of_top_two(beliefs: &[(f64, f64)], chance: &mut impl Rng) -> usize {
    let first = draw_lowest(beliefs, chance);
    if beliefs.len() < 2 || chance.random::<bool>() {
        return first;
    }
    let mut draws = (0..MAX_DRAWS).map(|_| draw_lowest(beliefs, chance));
    draws.find(|&arm| arm != first).unwrap_or_else(|| {
        index_of_lowest((0..beliefs.len()).map(|arm| match arm == first {
            true => f64::INFINITY,
            false => -probability_better(beliefs[arm], beliefs[first], 0.0),
        }))
    })
}

fn draw_lowest(beliefs: &[(f64, f64)], chance: &mut impl Rng) -> usize {
    index_of_lowest(beliefs.iter().map(|(mean, variance)| {
        let share = chance.random_range(1e-12..1.0 - 1e-12);
        mean + variance.sqrt() * normal::upper_quantile(share)
    }))
}

fn index_of_lowest(values: impl Iterator<Item = f64>) -> usize {
    let least = values.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
    least.map_or(0, |(index, _)| index)
}

/// Blocks of the last round, of the finalists.
const LAST_BLOCKS: usize = 8;

/// Sequential halving, as in the screening of `compare`: after each round the better half goes on;
/// at last, blocks of the finalists.
pub(crate) fn run_successive_halving(arms: &mut impl Arms, chance: &mut impl Rng) -> Choice {
    let mut open: Vec<usize> = (1..arms.count()).collect();
    let mut runs = Vec::new();
    let mut run_blocks = |open: &[usize], count: usize, runs: &mut Vec<(usize, f64)>| {
        let mut order: Vec<usize> = open.iter().copied().chain([0]).collect();
        for _ in 0..count {
            order.shuffle(chance);
            runs.extend(order.iter().map(|&arm| (arm, arms.run(arm))));
        }
    };
    while open.len() > halving::FINALISTS {
        run_blocks(&open, halving::MIN_BLOCKS, &mut runs);
        open = halving::select_survivors(&runs, &open);
    }
    let first = runs.len();
    run_blocks(&open, LAST_BLOCKS, &mut runs);
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
