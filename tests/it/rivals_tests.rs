//! Tests of the algorithms that the search is compared with, on arms whose true costs are known.

use pinwise_stats::normal;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::rivals::{
    Arms, Choice, Goal, run_exhaustive, run_racing, run_random_search, run_successive_halving,
    run_thompson,
};

const GOAL: Goal = Goal {
    within: 0.01,
    error: 0.05,
    most_runs: 2_000,
};
const TRIALS: u64 = 60;

/// Arms with known true costs and normal noise.
struct NormalArms {
    truths: Vec<f64>,
    noise: f64,
    chance: ChaCha8Rng,
    /// Runs of each arm so far.
    runs: Vec<usize>,
}

impl Arms for NormalArms {
    fn count(&self) -> usize {
        self.truths.len()
    }

    fn run(&mut self, arm: usize) -> f64 {
        self.runs[arm] += 1;
        let share = self.chance.random_range(1e-12..1.0 - 1e-12);
        self.truths[arm] + self.noise * normal::upper_quantile(share)
    }
}

/// Twenty arms whose true costs have a standard deviation of 25 %.
fn draw_arms(noise: f64, seed: u64) -> NormalArms {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let truths: Vec<f64> = (0..20)
        .map(|_| 0.25 * normal::upper_quantile(chance.random_range(1e-6..1.0 - 1e-6)))
        .collect();
    NormalArms {
        runs: vec![0; truths.len()],
        truths,
        noise,
        chance,
    }
}

fn regret(arms: &NormalArms, best: usize) -> f64 {
    let lowest = arms.truths.iter().copied().fold(f64::INFINITY, f64::min);
    arms.truths[best] - lowest
}

/// Regrets, lowest first, and the median number of runs.
fn run_trials(rival: impl Fn(&mut NormalArms, &mut ChaCha8Rng) -> Choice) -> (Vec<f64>, usize) {
    let mut results: Vec<(f64, usize)> = (0..TRIALS)
        .map(|seed| {
            let mut arms = draw_arms(0.03, seed);
            let mut chance = ChaCha8Rng::seed_from_u64(seed + 1_000);
            let choice = rival(&mut arms, &mut chance);
            assert_eq!(choice.runs, arms.runs.iter().sum::<usize>());
            (regret(&arms, choice.best), choice.runs)
        })
        .collect();
    results.sort_by_key(|result| result.1);
    let runs = results[results.len() / 2].1;
    let mut regrets: Vec<f64> = results.into_iter().map(|result| result.0).collect();
    regrets.sort_by(f64::total_cmp);
    (regrets, runs)
}

/// Checks that 95 % of regrets are at most this; returns the median number of runs.
#[track_caller]
fn check_regret(rival: impl Fn(&mut NormalArms, &mut ChaCha8Rng) -> Choice, max: f64) -> usize {
    let (regrets, runs) = run_trials(rival);
    let high = regrets[regrets.len() * 95 / 100];
    assert!(high <= max, "95 % of regrets lie below {high}");
    runs
}

#[test]
fn five_runs_of_every_arm_find_a_good_one() {
    let runs = check_regret(|arms, chance| run_exhaustive(arms, 5, chance), 0.03);
    assert_eq!(runs, 100);
}

#[test]
fn racing_takes_fewer_runs_than_exhaustive_search() {
    let runs = check_regret(|arms, chance| run_racing(arms, GOAL, chance), 0.03);
    assert!((60..100).contains(&runs), "{runs}");
}

#[test]
fn thompson_sampling_has_low_regret_in_few_runs() {
    let runs = check_regret(|arms, chance| run_thompson(arms, GOAL, chance), 0.015);
    assert!((20..60).contains(&runs), "{runs}");
}

#[test]
fn halving_finds_a_good_arm() {
    let runs = check_regret(run_successive_halving, 0.03);
    // Two blocks each of 19, 10 and 5 arms and the default, then eight of three arms and it.
    assert_eq!(runs, 2 * (20 + 11 + 6) + 8 * 4);
}

#[test]
fn random_search_gets_better_with_runs() {
    let mean_regret = |runs: usize| {
        let (regrets, _) = run_trials(|arms, chance| {
            let leaders = run_random_search(arms, runs, chance);
            assert_eq!(leaders.len(), runs);
            let best = leaders[runs - 1];
            Choice { best, runs }
        });
        regrets.iter().sum::<f64>() / regrets.len() as f64
    };
    let (few, all, more) = (mean_regret(5), mean_regret(20), mean_regret(40));
    assert!(few > 0.1, "{few}");
    assert!(all < 0.01, "{all}");
    assert!(more <= all, "{more} after {all}");
}

#[test]
fn all_rivals_end_with_equal_arms_and_with_one() {
    let flat = || NormalArms {
        truths: vec![0.0; 8],
        noise: 0.03,
        chance: ChaCha8Rng::seed_from_u64(1),
        runs: vec![0; 8],
    };
    let mut chance = ChaCha8Rng::seed_from_u64(2);
    for runs in [
        run_racing(&mut flat(), GOAL, &mut chance).runs,
        run_thompson(&mut flat(), GOAL, &mut chance).runs,
    ] {
        assert!((16..=2_010).contains(&runs), "{runs}");
    }
    let mut one = flat();
    one.truths.truncate(1);
    assert_eq!(run_racing(&mut one, GOAL, &mut chance).runs, 1);
    assert_eq!(run_thompson(&mut one, GOAL, &mut chance).best, 0);
    assert_eq!(run_successive_halving(&mut one, &mut chance).best, 0);
    assert_eq!(run_random_search(&mut one, 3, &mut chance), [0, 0, 0]);
}

#[test]
fn without_noise_all_rivals_find_the_best_arm() {
    for seed in 0..10 {
        let mut chance = ChaCha8Rng::seed_from_u64(seed);
        let best = run_exhaustive(&mut draw_arms(0.0, seed), 1, &mut chance).best;
        assert_eq!(
            run_racing(&mut draw_arms(0.0, seed), GOAL, &mut chance).best,
            best
        );
        let choice = run_successive_halving(&mut draw_arms(0.0, seed), &mut chance);
        assert_eq!(choice.best, best);
    }
}
