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
fn check(low: f64, high: f64, expected: LimitStanding) {
    let contrast = contrast(low, high, Caveats::default());
    assert_eq!(standing(&contrast, LIMIT), expected);
}

#[test]
fn the_interval_must_lie_on_one_side_of_the_limit() {
    check(0.021, 0.03, LimitStanding::Slower);
    // Certainly slower, and by more according to the estimate.
    check(0.001, 0.06, LimitStanding::Undecided);
    check(0.001, 0.019, LimitStanding::Passed);
    check(-0.03, -0.02, LimitStanding::Passed);
    check(-0.01, 0.021, LimitStanding::Undecided);
    check(f64::NEG_INFINITY, f64::INFINITY, LimitStanding::Undecided);
    // Counts have no spread: just at the limit is not beyond it.
    check(LIMIT, LIMIT, LimitStanding::Passed);
}

#[test]
fn only_what_speaks_of_a_slow_down_withholds_a_pass() {
    let by_order = |second: f64| Caveats {
        order: Some(Split {
            first: 0.0,
            second,
            contradicts: true,
        }),
        ..Caveats::default()
    };
    let stands = |second: f64, high: f64| {
        let contrast = contrast(high - 0.01, high, by_order(second));
        standing(&contrast, LIMIT)
    };
    assert_eq!(stands(-0.05, 0.01), LimitStanding::Passed);
    assert_eq!(stands(0.05, 0.01), LimitStanding::Undecided);
    assert_eq!(stands(0.05, 0.10), LimitStanding::Undecided);
}

#[test]
fn the_blocks_still_needed_follow_from_the_distance_to_the_limit() {
    let factor = |low, high| work_factor(&contrast(low, high, Caveats::default()), LIMIT);
    assert!((factor(-0.01, 0.03) - 4.0).abs() < 1e-9);
    assert!((factor(0.025, 0.03) - 1.0).abs() < 1e-9);
    assert!(factor(0.0, 0.04).is_infinite());
}

/// Sum of twelve uniform numbers: near enough to normal, standard deviation 1.
fn normal(chance: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| chance.random::<f64>()).sum::<f64>() - 6.0
}

/// The final standing of an arm of this true effect, and after how many of `most`
/// blocks; runs vary by `sd`.
fn judge_arm(effect: f64, sd: f64, most: usize, chance: &mut ChaCha8Rng) -> (LimitStanding, usize) {
    let mut confirmation = Confirmation::new(2, 0, QUESTION).with_limit(Some(LIMIT));
    let mut schedule = QUESTION.schedule(1);
    let mut data = Responses::new(2);
    let mut around = Circumstances::default();
    for block in 1..=most {
        let level = 0.02 * normal(chance);
        let slot = usize::from(chance.random::<bool>());
        let noise = [sd * normal(chance), sd * normal(chance)];
        assert!(data.push(&[level + noise[0], level + effect + noise[1]]));
        around.slots.push(vec![slot, 1 - slot]);
        around.before.push(vec![None, None]);
        around.load.push(None);
        let due = schedule.due(block, most);
        let look = due.and_then(|depth| confirmation.look(&data, &around, most as f64, depth));
        if let Some(look) = look {
            let standing = standing(&look.contrasts[0], LIMIT);
            if standing != LimitStanding::Undecided {
                return (standing, block);
            }
        }
    }
    (LimitStanding::Undecided, most)
}

/// How many of `number` are slower, passed and undecided, and their blocks in total.
fn count_standings(effect: f64, number: usize, sd: f64, most: usize, seed: u64) -> [usize; 4] {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut counts = [0; 4];
    for _ in 0..number {
        let (standing, blocks) = judge_arm(effect, sd, most, &mut chance);
        counts[standing as usize] += 1;
        counts[3] += blocks;
    }
    counts
}

#[test]
fn an_arm_at_the_limit_rarely_fails_and_rarely_passes() {
    let [slower, passed, undecided, _] = count_standings(LIMIT, 80, 0.03, 60, 1);
    // At most 2.5 % of each: more than 6 of 80 have a probability of 0.3 %.
    assert!(slower <= 6 && passed <= 6, "{slower} and {passed}");
    assert!(undecided >= 68, "{undecided}");
}

#[test]
fn what_is_slower_by_less_does_not_fail() {
    let [slower, ..] = count_standings(0.015, 60, 0.03, 60, 2);
    assert!(slower <= 2, "{slower}");
}

#[test]
fn what_is_off_the_limit_is_decided_while_there_are_runs() {
    let [slower, passed, ..] = count_standings(0.06, 30, 0.03, 100, 3);
    assert!(slower >= 28 && passed == 0, "{slower} and {passed}");
    let [slower, passed, ..] = count_standings(-0.02, 30, 0.03, 100, 4);
    assert!(passed >= 28 && slower == 0, "{passed} and {slower}");
}
