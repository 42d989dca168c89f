use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::*;

fn arms_on_a_line(arms: usize) -> Arms {
    Arms {
        features: (0..arms)
            .map(|arm| vec![arm as f64 / (arms - 1) as f64])
            .collect(),
        relative_sd: vec![1.0],
        absolute_sd: vec![0.0],
        mean: vec![0.0; arms],
        loose: Vec::new(),
    }
}

fn reading(arm: usize, block: usize, y: f64) -> Reading {
    Reading { arm, block, y }
}

/// Small numbers that look random: a linear congruential generator.
fn noise(state: &mut u64) -> f64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    let uniform = |bits: u64| (bits & 0xffff) as f64 / 65_536.0 - 0.5;
    (uniform(*state >> 48) + uniform(*state >> 32) + uniform(*state >> 16)) * 2.0
}

#[test]
fn arms_between_those_that_ran_are_predicted() {
    let mut model = Surrogate::new(arms_on_a_line(9));
    let readings: Vec<Reading> = [0, 2, 4, 6, 8, 0, 8]
        .iter()
        .enumerate()
        .map(|(block, &arm)| reading(arm, block, 1.0 + 0.05 * arm as f64))
        .collect();
    let belief = model.learn(&readings);
    for arm in [1, 3, 5, 7] {
        let estimate = belief.arm(arm);
        let truth = 1.0 + 0.05 * arm as f64;
        assert!((estimate.mean - truth).abs() < 0.02, "{arm}: {estimate:?}");
        assert!(estimate.sd < 0.06, "{arm}: {estimate:?}");
    }
    let effect = belief.effect(0);
    assert!((effect.mean - 0.4).abs() < 0.12, "{effect:?}");
}

#[test]
fn if_features_predict_nothing_unmeasured_arms_are_uncertain() {
    let mut model = Surrogate::new(arms_on_a_line(20));
    let mut state = 7;
    let readings: Vec<Reading> = (0..12)
        .map(|arm| reading(arm, arm, 0.3 * noise(&mut state)))
        .chain((0..12).map(|arm| reading(arm, 20 + arm, 0.0)))
        .collect();
    // Each arm twice with the same value: no noise, and no line.
    let readings: Vec<Reading> = readings
        .iter()
        .map(|r| reading(r.arm, r.block, readings[r.arm].y))
        .collect();
    let belief = model.learn(&readings);
    assert!(belief.own_sd() > 0.1, "{}", belief.own_sd());
    assert!(belief.arm(15).sd > 0.1, "{:?}", belief.arm(15));
    assert!(belief.arm(3).sd < 0.02, "{:?}", belief.arm(3));
}

#[test]
fn a_program_that_placement_does_nothing_to_is_recognised() {
    let mut model = Surrogate::new(arms_on_a_line(30));
    let mut state = 11;
    let arm_of = |run: usize| {
        if run.is_multiple_of(4) {
            0
        } else {
            (run * 7) % 30
        }
    };
    let readings: Vec<Reading> = (0..80)
        .map(|run| reading(arm_of(run), run / 4, 0.02 * noise(&mut state)))
        .collect();
    let belief = model.learn(&readings);
    assert!(belief.own_sd() < 0.01, "{}", belief.own_sd());
    let all: Vec<usize> = (0..30).collect();
    let loss = belief.estimate_loss(
        0,
        &all,
        [0.01, 0.03],
        1.0,
        &mut ChaCha8Rng::seed_from_u64(1),
    );
    assert!(loss.expected < 0.015 && loss.exceeds[1] < 0.15, "{loss:?}");
}

#[test]
fn a_loss_is_what_the_best_of_all_would_have_saved() {
    let mut model = Surrogate::new(arms_on_a_line(3));
    let readings: Vec<Reading> = (0..30)
        .flat_map(|block| {
            [
                reading(0, block, 0.1),
                reading(1, block, 0.0),
                reading(2, block, 0.2),
            ]
        })
        .collect();
    let belief = model.learn(&readings);
    let loss = |arm: usize| {
        let mut chance = ChaCha8Rng::seed_from_u64(1);
        belief.estimate_loss(arm, &[0, 1, 2], [0.05, 0.15], 1.0, &mut chance)
    };
    assert!((loss(0).expected - 0.1).abs() < 0.01, "{:?}", loss(0));
    assert!((loss(2).expected - 0.2).abs() < 0.01, "{:?}", loss(2));
    assert!(loss(1).expected < 0.005, "{:?}", loss(1));
    assert!(loss(2).exceeds[1] > 0.95 && loss(0).exceeds[1] < 0.05 && loss(0).exceeds[0] > 0.95);
    let difference = belief.difference(2, 1);
    let (low, high) = interval(&difference, 0.05, 1.0);
    assert!(low < 0.2 && 0.2 < high && high - low < 0.05, "{low} {high}");
    let (wide_low, wide_high) = interval(&difference, 0.05, 4.0);
    assert!((1.5..2.5).contains(&((wide_high - wide_low) / (high - low))));
}

#[test]
fn a_disturbance_of_a_block_is_no_difference_between_arms() {
    let mut model = Surrogate::new(arms_on_a_line(2));
    // Blocks differ by half, arms within a block by a tenth.
    let readings: Vec<Reading> = (0..10)
        .flat_map(|block| {
            let level = if block % 2 == 0 { 0.5 } else { 0.0 };
            [reading(0, block, level), reading(1, block, level + 0.1)]
        })
        .collect();
    let belief = model.learn(&readings);
    let slower = probability_below(&belief.difference(1, 0), 0.05, 1.0);
    assert!(slower < 0.05, "{slower}");
}

#[test]
fn the_posterior_of_two_runs_is_the_one_worked_out_by_hand() {
    // One arm, known but for its constant of variance 100: after two runs its mean is that of the
    // readings.
    let arms = Arms {
        features: vec![vec![]],
        relative_sd: vec![],
        absolute_sd: vec![],
        mean: vec![0.0],
        loose: Vec::new(),
    };
    let mut model = Surrogate::new(arms);
    let belief = model.learn(&[reading(0, 0, 1.0), reading(0, 1, 3.0)]);
    assert!(
        (belief.arm(0).mean - 2.0).abs() < 1e-3,
        "{:?}",
        belief.arm(0)
    );
}

#[test]
fn a_design_takes_the_ends_before_the_middle() {
    let chosen = choose_informative(&arms_on_a_line(9), &[4], 3, &|_| true);
    assert_eq!(chosen[0], 4);
    assert!(chosen.contains(&0) && chosen.contains(&8), "{chosen:?}");
    let without = choose_informative(&arms_on_a_line(9), &[4], 20, &|arm| arm != 0);
    assert_eq!(without.len(), 8);
    assert!(!without.contains(&0));
}

#[test]
fn added_arms_are_predicted_like_the_others() {
    let mut model = Surrogate::new(arms_on_a_line(3));
    let added = model.add(vec![0.25], 0.0);
    let belief = model.learn(&[
        reading(0, 0, 0.0),
        reading(2, 0, 0.4),
        reading(0, 1, 0.0),
        reading(2, 1, 0.4),
        reading(1, 1, 0.2),
    ]);
    assert!(
        (belief.arm(added).mean - 0.1).abs() < 0.05,
        "{:?}",
        belief.arm(added)
    );
}

#[test]
fn weigh_stops_only_below_the_minimum() {
    let mut state = 11;
    let readings: Vec<Reading> = (0..30)
        .map(|run| reading(run * 7 % 9, run / 4, 0.2 * noise(&mut state)))
        .collect();
    let arms = Arms {
        loose: vec![2],
        ..arms_on_a_line(9)
    };
    let prior = Prior::default().extend(&arms);
    let model = Surrogate::new(arms);
    for point in 0..model.grid.len() {
        let weigh = |least| model.weigh(&prior, point, &readings, 0.0, least);
        let weight = weigh(f64::NEG_INFINITY).unwrap().log_weight;
        let again = weigh(weight - 1e-9 * weight.abs()).map(|c| c.log_weight);
        assert_eq!(again, Some(weight));
        assert!(weigh(weight + 1e-9 * weight.abs() + 1e-9).is_none());
    }
}

proptest! {
    #[test]
    fn beliefs_are_finite_for_any_readings(
        readings in prop::collection::vec((0usize..7, 0usize..4, prop::num::f64::ANY), 0..20),
    ) {
        let mut model = Surrogate::new(arms_on_a_line(6));
        let readings: Vec<Reading> = readings
            .into_iter()
            .map(|(arm, block, y)| reading(arm, block, y.clamp(-1e6, 1e6)))
            .collect();
        let belief = model.learn(&readings);
        for arm in 0..6 {
            prop_assert!(belief.arm(arm).mean.is_finite() && belief.arm(arm).sd.is_finite());
            let p = probability_below(&belief.difference(arm, 0), -0.01, 1.0);
            prop_assert!((0.0..=1.0 + 1e-9).contains(&p), "{p}");
        }
    }
}
