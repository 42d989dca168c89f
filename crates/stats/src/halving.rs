//! Screens many arms by sequential halving.
//!
//! Each round runs every surviving arm and the baseline in random-order blocks, scores the arms by
//! all their runs so far, and keeps the better half (Karnin, Koren and Somekh 2013, but with the
//! same number of blocks in each round). Runs are compared with their neighbours in time, so that a
//! drifting machine favours no arm. Screening has no error guarantee: the arms that it keeps are
//! confirmed on new blocks, and its estimates are never shown as results (the best of 20 equal arms
//! looks 2 to 10 % better than it is).

use super::describe::{quantile, robust_location};
use super::weights;

/// Arms that reach the confirmation, beside the baseline.
pub const FINALISTS: usize = 3;
/// From this many arms on, the baseline included, screening comes first.
pub const FROM_ARMS: usize = 8;
/// Share of the budget that screening takes.
pub const BUDGET_SHARE: f64 = 0.55;
/// Minimum number of blocks of a round.
pub const MIN_BLOCKS: usize = 2;

/// Runs on either side in time whose median is the local level.
const NEIGHBOURS: usize = 3;
/// Scale of the robust location, in median distances: runs farther away count less.
const SCALE: f64 = 2.0;

/// One run of the screening: its arm and `ln(cost)`.
pub type ScreeningRun = (usize, f64);

/// The number of arms beside the baseline in each round until the finalists are left, for example
/// 63, 32, 16, 8, 4. Every round gets the same number of blocks, so that most runs are spent while
/// there are most arms.
#[must_use]
pub fn plan_rounds(challengers: usize) -> Vec<usize> {
    std::iter::successors(Some(challengers), |&left| Some(count_survivors(left)))
        .take_while(|&left| left > FINALISTS)
        .collect()
}

/// How many of `challengers` survive a round.
#[must_use]
pub fn count_survivors(challengers: usize) -> usize {
    challengers.div_ceil(2).max(FINALISTS.min(challengers))
}

/// Selects the arms that survive a round, best first, from `open` (arms other than the baseline).
/// `runs` are all runs of the screening so far, in time order.
#[must_use]
pub fn select_survivors(runs: &[ScreeningRun], open: &[usize]) -> Vec<usize> {
    let mut scored: Vec<(f64, usize)> = score_arms(runs, open);
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    scored.truncate(count_survivors(open.len()));
    scored.into_iter().map(|(_, arm)| arm).collect()
}

/// Scores each arm by the typical distance of its runs from the local level (lower is better), with
/// less weight for runs under load. The local level is that of the neighbours in time, as the
/// machine may change during a block of many arms; the random order makes them a fair mixture of
/// arms.
fn score_arms(runs: &[ScreeningRun], open: &[usize]) -> Vec<(f64, usize)> {
    let levels: Vec<f64> = (0..runs.len()).map(|at| level_around(runs, at)).collect();
    let weights = weights::weigh_by_levels(&levels);
    let sizes: Vec<f64> = runs
        .iter()
        .zip(&levels)
        .map(|(r, l)| (r.1 - l).abs())
        .collect();
    let scale = SCALE * quantile(&sizes, 0.5);
    open.iter()
        .map(|&arm| {
            let (distances, counts): (Vec<f64>, Vec<f64>) = runs
                .iter()
                .zip(&levels)
                .zip(&weights)
                .filter(|((run, _), _)| run.0 == arm)
                .map(|((run, level), weight)| (run.1 - level, *weight))
                .unzip();
            (robust_location(&distances, &counts, scale), arm)
        })
        .collect()
}

/// Median of a run's neighbours in time, without the run itself.
fn level_around(runs: &[ScreeningRun], at: usize) -> f64 {
    let from = at
        .saturating_sub(NEIGHBOURS)
        .min(runs.len().saturating_sub(2 * NEIGHBOURS + 1));
    let to = (from + 2 * NEIGHBOURS + 1).min(runs.len());
    let around: Vec<f64> = (from..to)
        .filter(|&other| other != at)
        .map(|other| runs[other].1)
        .collect();
    quantile(&around, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_halve_the_arms_down_to_the_finalists() {
        assert_eq!(plan_rounds(3), Vec::<usize>::new());
        assert_eq!(plan_rounds(7), [7, 4]);
        assert_eq!(plan_rounds(20), [20, 10, 5]);
        assert_eq!(plan_rounds(63), [63, 32, 16, 8, 4]);
        assert_eq!(count_survivors(7), 4);
        assert_eq!(count_survivors(4), 3);
        assert_eq!(count_survivors(2), 2);
    }

    /// Simulates eight blocks of eight arms, each arm 4 % slower than the one before, on a machine
    /// that slows down by 2 % with every run.
    fn simulate_drift() -> Vec<ScreeningRun> {
        use rand::{SeedableRng, seq::SliceRandom};
        let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(5);
        let mut runs = Vec::new();
        for _ in 0..8 {
            let mut order: Vec<usize> = (0..8).collect();
            order.shuffle(&mut chance);
            for arm in order {
                let drift = 0.02 * runs.len() as f64;
                runs.push((arm, drift + 0.04 * arm as f64));
            }
        }
        runs
    }

    #[test]
    fn the_best_arms_survive_a_drift() {
        let mut kept = select_survivors(&simulate_drift(), &[7, 6, 5, 4, 3, 2, 1, 0]);
        kept.sort_unstable();
        assert_eq!(kept, [0, 1, 2, 3]);
    }

    #[test]
    fn survivors_are_selected_from_few_runs_and_from_none() {
        assert_eq!(select_survivors(&[(0, 0.1), (1, 0.2)], &[1, 0]), [0, 1]);
        assert_eq!(select_survivors(&[], &[]), Vec::<usize>::new());
    }
}
