use super::*;
use crate::confirm::Score;
use crate::judge::Judge;
use crate::resolution::Figure;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const DELTA: f64 = 0.02;

fn question() -> Question {
    Question {
        judge: Judge::Typical,
        score: Score::Weighted,
        alpha: 0.05,
        delta: DELTA,
        figure: Figure::Measured,
        is_rate: false,
        is_open_ended: false,
    }
}

/// Draws an almost normal number with a standard deviation of 1: a sum of twelve uniform numbers.
fn draw_normal(chance: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| chance.random::<f64>()).sum::<f64>() - 6.0
}

/// Judges one benchmark of `benchmarks` with this true effect over at most `most` pairs, whose
/// differences have the standard deviation `sd`.
fn judge_benchmark(
    effect: f64,
    sd: f64,
    benchmarks: usize,
    most: usize,
    chance: &mut ChaCha8Rng,
) -> Standing {
    let mut regression = Regression::new(question(), benchmarks);
    let mut data = Responses::new(2);
    let mut around = Circumstances::default();
    for _ in 0..most {
        let level = 0.02 * draw_normal(chance);
        let slot = usize::from(chance.random::<bool>());
        let row = [
            level + sd * draw_normal(chance),
            level + effect + sd * draw_normal(chance),
        ];
        assert!(data.push(&row));
        around.slots.push(vec![slot, 1 - slot]);
        around.before.push(vec![None, None]);
        around.load.push(None);
        let look = regression.look_if_due(&data, &around, most);
        if let Some(look) = look
            && look.standing != Standing::Undecided
        {
            return look.standing;
        }
    }
    Standing::Undecided
}

#[test]
fn suites_without_a_change_rarely_raise_an_alarm() {
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    let gates = 120;
    let alarms = (0..gates).filter(|_| {
        let standings: Vec<Standing> = (0..6)
            .map(|_| judge_benchmark(0.0, 0.02, 6, 40, &mut chance))
            .collect();
        standings.contains(&Standing::Slower)
    });
    // At most 2.5 % are expected; 9 of 120 then have a probability of 0.3 %.
    assert!(alarms.count() < 9);
}

#[test]
fn a_slow_down_rarely_passes_and_is_found() {
    let mut chance = ChaCha8Rng::seed_from_u64(2);
    let judge_hundred = |effect: f64, chance: &mut ChaCha8Rng| -> Vec<Standing> {
        (0..100)
            .map(|_| judge_benchmark(effect, 0.02, 6, 60, chance))
            .collect()
    };
    let count = |all: &[Standing], wanted: Standing| all.iter().filter(|s| **s == wanted).count();
    let at_limit = judge_hundred(DELTA, &mut chance);
    assert!(count(&at_limit, Standing::Passed) < 10, "{at_limit:?}");
    // An estimate beyond the limit is not certain.
    assert!(count(&at_limit, Standing::Slower) < 10, "{at_limit:?}");
    let slow = judge_hundred(2.0 * DELTA, &mut chance);
    assert!(count(&slow, Standing::Slower) > 90, "{slow:?}");
    assert_eq!(count(&slow, Standing::Passed), 0);
    let same = judge_hundred(0.0, &mut chance);
    assert!(count(&same, Standing::Passed) > 80, "{same:?}");
    let fast = judge_hundred(-2.0 * DELTA, &mut chance);
    let good = count(&fast, Standing::Faster) + count(&fast, Standing::Passed);
    assert!(good > 95, "{fast:?}");
}

#[test]
fn the_pairs_still_needed_do_not_depend_on_the_direction() {
    let mut chance = ChaCha8Rng::seed_from_u64(4);
    let mut rows: Vec<[f64; 2]> = Vec::new();
    for _ in 0..24 {
        let level = 0.02 * draw_normal(&mut chance);
        rows.push([level, level + 0.02 + 0.05 * draw_normal(&mut chance)]);
    }
    let factor = |swapped: bool| {
        let mut data = Responses::new(2);
        let mut around = Circumstances::default();
        for (number, [base, head]) in rows.iter().enumerate() {
            assert!(data.push(&if swapped {
                [*head, *base]
            } else {
                [*base, *head]
            }));
            let slot = usize::from((number % 2 == 0) != swapped);
            around.slots.push(vec![slot, 1 - slot]);
            around.before.push(vec![None, None]);
            around.load.push(None);
        }
        let mut regression = Regression::new(question(), 3);
        let look = regression.look(&data, &around, 40).unwrap();
        assert!(look.has_interval());
        look.work_factor(DELTA)
    };
    assert!((factor(false) / factor(true) - 1.0).abs() < 1e-6);
}

/// The last look may come when more pairs still seem possible.
#[test]
fn a_pass_that_waits_for_pairs_holds_if_none_follow() {
    let mut regression = Regression::new(question(), 1);
    let mut data = Responses::new(2);
    let mut around = Circumstances::default();
    let mut chance = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..20 {
        let row = [0, 1].map(|_| 0.002 * draw_normal(&mut chance));
        assert!(data.push(&row));
        around.slots.push(vec![0, 1]);
        around.before.push(vec![None, None]);
        around.load.push(None);
    }
    let waiting = regression.look(&data, &around, 200).unwrap();
    assert_eq!(waiting.standing, Standing::Undecided);
    assert!(waiting.shared.interval.high < DELTA);
    let pairs = waiting.work_factor(DELTA) * 20.0;
    assert!((pairs - 22.0).abs() < 1e-9, "{pairs}");
    assert_eq!(regression.look(&data, &around, 200), None);
    let last = regression.look(&data, &around, 20).unwrap();
    assert_eq!(last.standing, Standing::Passed);
}

#[test]
fn a_sure_but_small_slow_down_passes() {
    let mut chance = ChaCha8Rng::seed_from_u64(3);
    let standings: Vec<Standing> = (0..20)
        .map(|_| judge_benchmark(0.25 * DELTA, 0.002, 3, 60, &mut chance))
        .collect();
    let passed = standings.iter().filter(|s| **s == Standing::Passed);
    assert_eq!(passed.count(), 20, "{standings:?}");
}

/// Counts, of 20 gates with 60 pairs of equal builds, those that decide that the head is not slower.
/// One of five runs of the base and of the head takes this much longer.
fn count_not_slower_with_tails(tails: [f64; 2]) -> usize {
    let mut chance = ChaCha8Rng::seed_from_u64(5);
    let passes = |_: &usize| {
        let mut regression = Regression::new(question(), 1);
        let mut data = Responses::new(2);
        let mut around = Circumstances::default();
        for _ in 0..60 {
            let level = 0.02 * draw_normal(&mut chance);
            let row = tails.map(|tail| {
                let is_long = chance.random::<f64>() < 0.2;
                level + 0.01 * draw_normal(&mut chance) + if is_long { tail } else { 0.0 }
            });
            assert!(data.push(&row));
            let slot = usize::from(chance.random::<bool>());
            around.slots.push(vec![slot, 1 - slot]);
            around.before.push(vec![None, None]);
            around.load.push(None);
        }
        let look = regression.look(&data, &around, 60).unwrap();
        matches!(look.standing, Standing::Passed | Standing::Faster)
    };
    (0..20).filter(passes).count()
}

#[test]
fn a_slower_tail_withholds_a_pass() {
    let [faster, slower] = [[0.2, 0.0], [0.0, 0.2]];
    assert!(count_not_slower_with_tails(faster) >= 16);
    assert!(count_not_slower_with_tails(slower) <= 4);
}

/// Judges wall-clock time and CPU time, which has less noise, of a benchmark that is slower by
/// `shift`, `ln(ratio)`, until one of them decides: does it pass?
fn passes_beside_cpu(shift: f64, chance: &mut ChaCha8Rng) -> bool {
    let [mut wall, mut cpu] = [(); 2].map(|()| {
        let mut regression = Regression::new(question(), 2);
        regression.split_passing();
        regression
    });
    let [mut wall_data, mut cpu_data] = [(); 2].map(|()| Responses::new(2));
    let mut around = Circumstances::default();
    let (mut wall_look, mut cpu_look) = (None, None);
    for _ in 0..200 {
        let slot = usize::from(chance.random::<bool>());
        around.slots.push(vec![slot, 1 - slot]);
        around.before.push(vec![None, None]);
        around.load.push(None);
        let mut draw = |noise: f64| [(); 2].map(|()| noise * draw_normal(chance));
        let ([base, head], [base_cpu, head_cpu]) = (draw(0.03), draw(0.01));
        wall_data.push(&[base, head + shift]);
        cpu_data.push(&[base_cpu, head_cpu + shift]);
        wall_look = wall.look_if_due(&wall_data, &around, 200).or(wall_look);
        cpu_look = cpu.look_if_due(&cpu_data, &around, 200).or(cpu_look);
        let (Some(of_wall), Some(of_cpu)) = (&wall_look, &cpu_look) else {
            continue;
        };
        if wall.is_passed_by_cpu(of_wall, of_cpu) {
            return true;
        }
        if of_wall.standing != Standing::Undecided {
            return of_wall.standing != Standing::Slower;
        }
    }
    false
}

#[test]
fn either_figure_passes_what_has_not_changed_and_rarely_what_is_slower_by_the_limit() {
    let mut chance = ChaCha8Rng::seed_from_u64(3);
    let mut count_passed = |shift: f64| {
        let passed = (0..100).filter(|_| passes_beside_cpu(shift, &mut chance));
        passed.count()
    };
    let unchanged = count_passed(0.0);
    assert!(unchanged >= 95, "{unchanged} of 100");
    let at_limit = count_passed(question().delta);
    // One in forty.
    assert!(at_limit <= 7, "{at_limit} of 100");
}
