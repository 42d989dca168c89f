//! Rounds in which all candidates take turns, and statistics of them.

use anyhow::Result;
use pinwise_stats::describe;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// Lets `count` candidates take turns, each round starting with the next one; returns the results of
/// each in the order of the rounds.
pub(crate) fn take_turns<T>(
    rounds: usize,
    count: usize,
    mut run: impl FnMut(usize) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let order = |round| (0..count).map(move |step| (round + step) % count).collect();
    run_rounds(rounds, count, order, &mut run)
}

/// The same in a new random order in each round.
pub(crate) fn take_random_turns<T>(
    rounds: usize,
    count: usize,
    seed: u64,
    mut run: impl FnMut(usize) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut all: Vec<usize> = (0..count).collect();
    let order = |_| {
        all.shuffle(&mut chance);
        all.clone()
    };
    run_rounds(rounds, count, order, &mut run)
}

fn run_rounds<T>(
    rounds: usize,
    count: usize,
    mut order: impl FnMut(usize) -> Vec<usize>,
    run: &mut dyn FnMut(usize) -> Result<T>,
) -> Result<Vec<Vec<T>>> {
    let mut results: Vec<Vec<T>> = (0..count).map(|_| Vec::new()).collect();
    for round in 0..rounds {
        for index in order(round) {
            results[index].push(run(index)?);
        }
    }
    Ok(results)
}

/// One series over another, round by round.
pub(crate) fn ratios(own: &[f64], other: &[f64]) -> Vec<f64> {
    own.iter()
        .zip(other)
        .map(|(own, other)| own / other)
        .collect()
}

/// The middle value; NaN if empty.
pub(crate) fn median(values: &[f64]) -> f64 {
    describe::quantile(values, 0.5)
}

/// First and third quartile.
pub(crate) fn quartiles(values: &[f64]) -> (f64, f64) {
    let at = |share| describe::quantile(values, share);
    (at(0.25), at(0.75))
}

/// Median with quartiles, to this many decimals.
pub(crate) fn format_quartiles(values: &[f64], decimals: usize) -> String {
    let (low, high) = quartiles(values);
    format!(
        "{:.decimals$} ({low:.decimals$}–{high:.decimals$})",
        median(values)
    )
}
