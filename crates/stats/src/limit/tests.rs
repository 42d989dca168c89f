use super::*;
use crate::Responses;
use crate::caveats::{Caveats, Circumstances, Split};
use crate::confirm::{Confirmation, Question, Score};
use crate::interval::Interval;
use crate::judge::Judge;
use crate::resolution::Figure;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const LIMIT: f64 = 0.02;

const QUESTION: Question = Question {
    judge: Judge::Typical,
    score: Score::Weighted,
    alpha: 0.05,
    delta: 0.01,
    is_rate: false,
    figure: Figure::Measured,
    is_open_ended: false,
};

fn contrast(low: f64, high: f64, caveats: Caveats) -> Contrast {
    let interval = Interval { low, high };
    let decision = match caveats.withholds() {
        true => Decision::Undecided,
        false => crate::decision::decide(interval, 0.01),
    };
    Contrast {
        arm: 1,
        baseline: 0,
        estimate: 0.5 * (low + high),
        interval,
        confidence: 0.95,
        p_adjusted: 0.5,
        nominal_level: 0.05,
        decision,
        caveats,
    }
}

#[track_caller]
fn check(low: f64, high: f64, expected: LimitVerdict) {
    let contrast = contrast(low, high, Caveats::default());
    assert_eq!(judge(&contrast, LIMIT), expected);
}

#[test]
fn the_interval_must_lie_on_one_side_of_the_limit() {
    check(0.021, 0.03, LimitVerdict::Slower);
    // It is certainly slower, but only the estimate exceeds the limit.
    check(0.001, 0.06, LimitVerdict::Undecided);
    check(0.001, 0.019, LimitVerdict::Passed);
    check(-0.03, -0.02, LimitVerdict::Passed);
    check(-0.01, 0.021, LimitVerdict::Undecided);
    check(f64::NEG_INFINITY, f64::INFINITY, LimitVerdict::Undecided);
    // Counts have no spread: a value at the limit does not exceed it.
    check(LIMIT, LIMIT, LimitVerdict::Passed);
}

#[test]
fn only_caveats_that_suggest_a_slow_down_withhold_a_pass() {
    let by_order = |second: f64| Caveats {
        order: Some(Split {
            first: 0.0,
            second,
            contradicts: true,
        }),
        ..Caveats::default()
    };
    let judge_caveat = |second: f64, high: f64| {
        let contrast = contrast(high - 0.01, high, by_order(second));
        judge(&contrast, LIMIT)
    };
    assert_eq!(judge_caveat(-0.05, 0.01), LimitVerdict::Passed);
    assert_eq!(judge_caveat(0.05, 0.01), LimitVerdict::Undecided);
    assert_eq!(judge_caveat(0.05, 0.10), LimitVerdict::Undecided);
}

#[test]
fn the_blocks_still_needed_follow_from_the_distance_to_the_limit() {
    let factor = |low, high| work_factor(&contrast(low, high, Caveats::default()), LIMIT);
    assert!((factor(-0.01, 0.03) - 4.0).abs() < 1e-9);
    assert!((factor(0.025, 0.03) - 1.0).abs() < 1e-9);
    assert!(factor(0.0, 0.04).is_infinite());
}

/// Draws an almost normal number with a standard deviation of 1: a sum of twelve uniform numbers.
fn draw_normal(chance: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| chance.random::<f64>()).sum::<f64>() - 6.0
}

/// The final verdict on an arm with this true effect and standard deviation, and the number of
/// blocks that it took, at most `most`.
fn judge_arm(effect: f64, sd: f64, most: usize, chance: &mut ChaCha8Rng) -> (LimitVerdict, usize) {
    let mut confirmation = Confirmation::new(2, 0, QUESTION).with_limit(Some(LIMIT));
    let mut schedule = QUESTION.schedule(1);
    let mut data = Responses::new(2);
    let mut around = Circumstances::default();
    for block in 1..=most {
        let level = 0.02 * draw_normal(chance);
        let slot = usize::from(chance.random::<bool>());
        let noise = [sd * draw_normal(chance), sd * draw_normal(chance)];
        assert!(data.push(&[level + noise[0], level + effect + noise[1]]));
        around.slots.push(vec![slot, 1 - slot]);
        around.before.push(vec![None, None]);
        around.load.push(None);
        let due = schedule.next_due(block, most);
        let look = due.and_then(|depth| confirmation.look(&data, &around, most as f64, depth));
        if let Some(look) = look {
            let verdict = judge(&look.contrasts[0], LIMIT);
            if verdict != LimitVerdict::Undecided {
                return (verdict, block);
            }
        }
    }
    (LimitVerdict::Undecided, most)
}

/// Judges `number` arms: how many are slower, passed and undecided, and their blocks in total.
fn count_verdicts(effect: f64, number: usize, sd: f64, most: usize, seed: u64) -> [usize; 4] {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut counts = [0; 4];
    for _ in 0..number {
        let (verdict, blocks) = judge_arm(effect, sd, most, &mut chance);
        counts[verdict as usize] += 1;
        counts[3] += blocks;
    }
    counts
}

#[test]
fn an_arm_at_the_limit_rarely_fails_and_rarely_passes() {
    let [slower, passed, undecided, _] = count_verdicts(LIMIT, 80, 0.03, 60, 1);
    // At most 2.5 % of each: more than 6 of 80 have a probability of 0.3 %.
    assert!(slower <= 6 && passed <= 6, "{slower} and {passed}");
    assert!(undecided >= 68, "{undecided}");
}

#[test]
fn an_arm_slower_by_less_than_the_limit_does_not_fail() {
    let [slower, ..] = count_verdicts(0.015, 60, 0.03, 60, 2);
    assert!(slower <= 2, "{slower}");
}

#[test]
fn arms_away_from_the_limit_are_decided() {
    let [slower, passed, ..] = count_verdicts(0.06, 30, 0.03, 100, 3);
    assert!(slower >= 28 && passed == 0, "{slower} and {passed}");
    let [slower, passed, ..] = count_verdicts(-0.02, 30, 0.03, 100, 4);
    assert!(passed >= 28 && slower == 0, "{passed} and {slower}");
}
