//! Verdicts on simulated arms.

use super::*;
use crate::normal;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The question of most tests.
const QUESTION: Question = Question {
    judge: Judge::Typical,
    score: Score::Weighted,
    alpha: 0.05,
    delta: 0.01,
    figure: Figure::Measured,
    is_rate: false,
    is_open_ended: false,
};

/// One look, at the end.
fn last_look(data: &Responses, question: Question) -> Look {
    let around = Circumstances {
        slots: vec![vec![0, 1]; data.blocks()],
        ..Circumstances::default()
    };
    let most = data.blocks() as f64;
    Confirmation::new(2, 0, question)
        .look(data, &around, most, Depth::Verdicts)
        .expect("verdicts were asked for")
}

#[track_caller]
fn check_steps(p_values: &[f64], expected: &[usize]) {
    let levels: Vec<f64> = (1..=p_values.len()).map(|m| 0.05 / m as f64).collect();
    assert_eq!(holm_steps(p_values, &levels, 0), expected);
}

#[test]
fn holm_divides_by_the_arms_still_open() {
    check_steps(&[0.5], &[1]);
    check_steps(&[0.001, 0.5, 0.5], &[3, 2, 2]);
    check_steps(&[0.03, 0.001, 0.02], &[1, 3, 2]);
    check_steps(&[0.03, 0.03, 0.03], &[3, 3, 3]);
    check_steps(&[], &[]);
    // An arm that was dropped without a claim stays open.
    let levels = [0.05, 0.025, 0.05 / 3.0];
    assert_eq!(holm_steps(&[0.001, 0.03], &levels, 1), [3, 2]);
}

/// The second is 0.5 % off the first, the third 20 % faster, the last 30 % slower.
fn four_arms(blocks: u32) -> Responses {
    let mut data = Responses::new(4);
    for block in 0..blocks {
        let noise = |arm: u32| 0.01 * (f64::from((block * 37 + arm * 17) % 11) - 5.0) / 5.0;
        data.push(&[noise(0), 0.005 + noise(1), -0.2 + noise(2), 0.3 + noise(3)]);
    }
    data
}

#[test]
fn arms_behind_the_best_are_found_and_left_out() {
    let data = four_arms(12);
    let around = Circumstances::default();
    let mut confirmation = Confirmation::new(4, 0, QUESTION);
    let look = confirmation
        .look(&data, &around, 100.0, Depth::Verdicts)
        .unwrap();
    let behind: Vec<Contrast> = look.clearly_behind(0.01).cloned().collect();
    let arms: Vec<usize> = behind.iter().map(|contrast| contrast.arm).collect();
    assert_eq!(arms, [1, 3]);
    let kept = [0, 2];
    let look = look.with_columns(&kept, 0.01);
    assert_eq!(look.winner, 1);
    assert_eq!(look.contrasts.len(), 1);
    assert_eq!(look.contrasts[0].arm, 1);
    assert!((look.behind[1]).abs() < 1e-12);
    assert!(look.is_settled);
    // The arm that may be as good as the first keeps its share of the error.
    confirmation.drop_arms(&behind, &kept);
    let mut pairs = Responses::new(2);
    for row in four_arms(14).rows() {
        pairs.push(&[row[0], row[2]]);
    }
    let look = confirmation
        .look(&pairs, &around, 100.0, Depth::Verdicts)
        .unwrap();
    assert_eq!(look.contrasts[0].decision, Decision::Faster);
    assert!((look.contrasts[0].confidence - 0.975).abs() < 1e-12);
}

fn simulate_effect(effect: f64, blocks: u32) -> Responses {
    let mut data = Responses::new(2);
    for block in 0..blocks {
        let load = if block % 7 == 0 { 0.8 } else { 0.0 };
        let wiggle = 0.004 * (f64::from(block * 37 % 11) - 5.0) / 5.0;
        data.push(&[load, load + effect + wiggle]);
    }
    data
}

#[test]
fn a_clear_effect_is_found_and_its_direction_named() {
    for (effect, expected) in [
        (0.03, Decision::Slower),
        (-0.03, Decision::Faster),
        (0.001, Decision::Same),
    ] {
        let data = simulate_effect(effect, 30);
        let look = last_look(&data, QUESTION);
        assert_eq!(look.contrasts[0].decision, expected, "{look:?}");
        assert!((look.contrasts[0].estimate - effect).abs() < 0.002);
        assert!(look.is_settled);
    }
}

#[test]
fn an_effect_only_under_load_is_not_called_same() {
    let mut data = Responses::new(2);
    for block in 0..60 {
        let wiggle = 0.004 * (f64::from(block * 37 % 11) - 5.0) / 5.0;
        let lost = if block % 3 == 0 { 0.7 } else { 0.0 };
        data.push(&[0.0, lost + wiggle]);
    }
    let look = last_look(&data, QUESTION);
    assert_ne!(look.contrasts[0].decision, Decision::Same, "{look:?}");
    assert_ne!(look.contrasts[0].decision, Decision::Faster, "{look:?}");
}

#[test]
fn few_blocks_decide_nothing() {
    let data = simulate_effect(0.5, 5);
    let plain = Question {
        score: Score::Rank,
        ..QUESTION
    };
    let look = last_look(&data, plain);
    assert_eq!(look.contrasts[0].decision, Decision::Undecided);
}

/// A reproducible pseudo-random number from −1 to 1.
fn noise(index: u32) -> f64 {
    let mixed = index.wrapping_mul(2_654_435_761) >> 8;
    f64::from(mixed % 20_001) / 10_000.0 - 1.0
}

#[test]
fn a_noisier_arm_of_the_same_centre_is_not_faster() {
    // Few of 60 experiments with 130 blocks and spreads of 1 to 5 make a claim. With weights by the
    // block's own level most of them did.
    let claims = (0..60u32)
        .filter(|experiment| {
            let mut data = Responses::new(2);
            for block in 0..130 {
                let at = 2 * (experiment * 130 + block);
                data.push(&[0.01 * noise(at), 0.05 * noise(at + 1)]);
            }
            let decision = last_look(&data, QUESTION).contrasts[0].decision;
            matches!(decision, Decision::Faster | Decision::Slower)
        })
        .count();
    assert!(claims <= 7, "{claims} of 60");
}

#[test]
fn ties_make_no_claim() {
    // A clock of 10 ms, arms alike: most differences are 0.
    let claims = (0..60u32)
        .filter(|experiment| {
            let mut data = Responses::new(2);
            for block in 0..40 {
                let at = 2 * (experiment * 40 + block);
                let tick = |at: u32| ((10.4 + 0.3 * noise(at)).round() * 0.01).ln();
                data.push(&[tick(at), tick(at + 1)]);
            }
            let look = last_look(&data, QUESTION);
            assert!(look.resolution.is_some());
            let contrast = &look.contrasts[0];
            let is_claim = matches!(contrast.decision, Decision::Faster | Decision::Slower);
            assert!(!is_claim || contrast.p_adjusted <= 0.05);
            assert_ne!(contrast.decision, Decision::Same, "the step is 10 %");
            is_claim
        })
        .count();
    assert!(claims <= 6, "{claims} of 60");
}

#[test]
fn a_difference_within_a_step_is_not_the_same() {
    // 105 and 107 ms are both shown as 110 ms: whether they differ is unknown.
    let mut data = Responses::new(2);
    for block in 0..40u32 {
        let tick = |value: f64| ((value * 100.0).round() * 0.01).ln();
        data.push(&[tick(0.1055 + 1e-4 * noise(block)), tick(0.1076)]);
    }
    let look = last_look(&data, QUESTION);
    assert_eq!(look.contrasts[0].decision, Decision::Undecided, "{look:?}");
    assert!(look.contrasts[0].interval.holds(0.02));
}

#[test]
fn verdict_interval_and_p_value_agree() {
    for experiment in 0..40u32 {
        let mut data = Responses::new(2);
        for block in 0..25 {
            let at = 2 * (experiment * 25 + block);
            data.push(&[0.02 * noise(at), 0.02 * noise(at + 1) + 0.008]);
        }
        for score in [Score::Weighted, Score::Rank] {
            let question = Question { score, ..QUESTION };
            let contrast = &last_look(&data, question).contrasts[0];
            let excludes = !contrast.interval.holds(0.0);
            assert_eq!(excludes, contrast.p_adjusted <= 0.05, "{contrast:?}");
        }
    }
}

/// Simulates a placement that costs time only beside other programs. There are three states of load
/// that last for some blocks, each with its own noise and loss.
fn simulate_under_load(seed: u64, lost: [f64; 3]) -> Responses {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut data = Responses::new(2);
    let mut state = 0;
    for _ in 0..120 {
        if chance.random::<f64>() < 0.1 {
            state = chance.random_range(0..3);
        }
        let (level, sd) = [(0.0, 0.02), (0.35, 0.15), (0.7, 0.25)][state];
        let mut run = || {
            let uniform: f64 = chance.random_range(1e-9..1.0);
            let delayed: f64 = chance.random_range(1e-9..1.0);
            level + sd * (0.7 * normal::upper_quantile(uniform) - 0.5 * delayed.ln())
        };
        data.push(&[run(), lost[state] + run()]);
    }
    data
}

#[test]
fn the_estimate_covers_all_blocks_if_the_effect_depends_on_load() {
    let within = (0..40)
        .filter(|&seed| {
            let data = simulate_under_load(seed, [0.002, 0.10, 0.13]);
            let all = Paired::without_weights(data.differences(1, 0)).interval(0.05);
            let contrast = &last_look(&data, QUESTION).contrasts[0];
            all.holds(contrast.estimate)
        })
        .count();
    assert!(within >= 38, "{within} of 40");
}

#[test]
fn equal_arms_beside_load_rarely_differ() {
    let claims = (0..100)
        .filter(|&seed| {
            let data = simulate_under_load(1000 + seed, [0.0; 3]);
            !last_look(&data, QUESTION).contrasts[0].interval.holds(0.0)
        })
        .count();
    // 5 %, plus three standard deviations of chance.
    assert!(claims <= 11, "{claims} of 100");
}

#[test]
fn an_effect_that_is_the_same_under_any_load_keeps_the_sharper_score() {
    let width = |score: Score| -> f64 {
        let question = Question { score, ..QUESTION };
        let widths = (0..20).map(|seed| {
            let data = simulate_under_load(seed, [0.05; 3]);
            last_look(&data, question).contrasts[0]
                .interval
                .half_width()
        });
        widths.sum::<f64>() / 20.0
    };
    let (sharp, plain) = (width(Score::Weighted), width(Score::Rank));
    assert!(sharp < 0.8 * plain, "{sharp} beside {plain}");
}

/// Simulates a second arm of which four runs in ten cost a fifth more, the others 1 % less.
fn simulate_two_modes(seed: u64, blocks: usize) -> Responses {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut data = Responses::new(2);
    for _ in 0..blocks {
        let mut run = || 0.002 * normal::upper_quantile(chance.random_range(1e-9..1.0));
        let (a, b) = (run(), run());
        let is_slow = chance.random::<f64>() < 0.4;
        data.push(&[a, b + if is_slow { 1.2f64.ln() } else { 0.99f64.ln() }]);
    }
    data
}

#[test]
fn medians_outside_the_interval_withhold_the_verdict() {
    let looks: Vec<Look> = (0..30)
        .map(|seed| last_look(&simulate_two_modes(seed, 199), QUESTION))
        .collect();
    let contrasts = || looks.iter().map(|look| &look.contrasts[0]);
    let decided = contrasts().filter(|c| c.decision != Decision::Undecided);
    // By chance so many runs are slow that the median is slow, too.
    assert!(decided.count() <= 7);
    // It says what each of them says.
    let centres = contrasts().find_map(|c| c.caveats.centres).unwrap();
    assert!((centres.median - 0.99f64.ln()).abs() < 0.005, "{centres:?}");
    assert!((centres.mean - 1.074f64.ln()).abs() < 0.02, "{centres:?}");
}

#[test]
fn arms_that_differ_by_a_factor_have_medians_that_agree() {
    let withheld = (0..100)
        .filter(|&seed| {
            let data = simulate_under_load(2000 + seed, [0.05; 3]);
            let contrast = &last_look(&data, QUESTION).contrasts[0];
            contrast.caveats.centres.is_some()
        })
        .count();
    assert!(withheld <= 8, "{withheld} of 100");
}

#[test]
fn arms_compete_only_with_those_of_their_group() {
    // Beside a neighbour (columns 2 and 3) everything costs more, and column 3 nothing less than
    // its baseline; without it, column 1 is faster than column 0.
    let mut data = Responses::new(4);
    for block in 0..30u32 {
        let wiggle = |step: u32| 0.004 * (f64::from(block * step % 11) - 5.0) / 5.0;
        data.push(&[0.0, -0.1 + wiggle(37), 0.6 + wiggle(23), 0.601 + wiggle(7)]);
    }
    let pair = |arm, baseline| Pair { arm, baseline };
    let pairs = vec![pair(1, 0), pair(2, 0), pair(3, 2), pair(3, 1)];
    let rivals = vec![vec![2, 3], vec![0, 1]];
    let mut confirmation = Confirmation::with_pairs(pairs, rivals.clone(), QUESTION);
    let around = Circumstances::default();
    let look = confirmation.look(&data, &around, 30.0, Depth::Verdicts);
    let look = look.unwrap();
    let decisions: Vec<Decision> = look.contrasts.iter().map(|c| c.decision).collect();
    let (faster, slower) = (Decision::Faster, Decision::Slower);
    assert_eq!(decisions, [faster, slower, Decision::Same, slower]);
    assert_eq!(look.winner, 2);
    assert!(look.is_settled, "{:?}", look.behind);
    // Column 0 is behind column 1, not ahead of the noisy ones.
    assert!((look.behind[0] - 0.1).abs() < 0.01, "{:?}", look.behind);
    let quiet = look.clone().among(&rivals[1]);
    assert_eq!((quiet.winner, quiet.contrasts.len()), (1, 1));
    // Without its baseline, an arm is compared with what is left.
    confirmation.keep_columns(&[0, 1, 3]);
    let mut fewer = Responses::new(3);
    for row in data.rows() {
        fewer.push(&[row[0], row[1], row[3]]);
    }
    let look = confirmation.look(&fewer, &around, 30.0, Depth::Verdicts);
    let left: Vec<_> = look.unwrap().contrasts;
    let left: Vec<_> = left.iter().map(|c| (c.arm, c.baseline)).collect();
    assert_eq!(left, [(1, 0), (2, 1)]);
}
