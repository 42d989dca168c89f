//! Each caveat on noise of known truth: it is reported when present, and rarely when absent.

use super::*;
use crate::normal;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What is true of the second of two arms, beside noise of 1 %.
#[derive(Debug, Clone, Copy, Default)]
struct World {
    /// Its cost, `ln(ratio)`.
    effect: f64,
    /// What it costs whatever runs next.
    leaves: f64,
    /// What it gains after the other arm.
    gains: f64,
    /// What its first run costs more; a tenth less with each.
    cold: f64,
    /// What it costs more from no load to full load.
    under_load: f64,
    /// Share of its runs that cost this much more.
    slow: (f64, f64),
}

fn experiment(world: World, blocks: usize, seed: u64) -> (Responses, Circumstances) {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut data = Responses::new(2);
    let mut around = Circumstances::default();
    let mut last = None;
    for block in 0..blocks {
        let mut order = [0usize, 1];
        order.shuffle(&mut chance);
        let load: f64 = chance.random();
        let (mut row, mut slots, mut before) = ([0.0; 2], vec![0; 2], vec![None; 2]);
        for (slot, arm) in order.into_iter().enumerate() {
            let uniform: f64 = chance.random_range(1e-9..1.0);
            let mut y = 0.01 * normal::upper_quantile(uniform);
            y += if last == Some(1) { world.leaves } else { 0.0 };
            if arm == 1 {
                y += world.effect + world.under_load * (load - 0.5);
                y += world.cold * 0.9f64.powi(i32::try_from(block).expect("few blocks"));
                y -= if last == Some(0) { world.gains } else { 0.0 };
                y += if chance.random::<f64>() < world.slow.0 {
                    world.slow.1
                } else {
                    0.0
                };
            }
            (row[arm], slots[arm], before[arm]) = (y, slot, last.replace(arm));
        }
        data.push(&row);
        around.slots.push(slots);
        around.before.push(before);
        around.load.push(Some(load));
    }
    (data, around)
}

/// Of 200 experiments of 60 blocks, how many raise this caveat?
fn count_raised_of_200(world: World, caveat: impl Fn(&Caveats) -> bool) -> usize {
    count_raised(60, true, world, caveat)
}

/// The second arm beside the first.
fn judge(data: &Responses, is_last: bool) -> (JudgedContrast, Interval) {
    let pairs = Judge::Typical.family(data, 1, 0);
    let middle = estimate(pairs.as_ref());
    let interval = interval_around(pairs.as_ref(), middle, 0.04);
    let judged = JudgedContrast {
        arm: 1,
        baseline: 0,
        judge: Judge::Typical,
        estimate: middle,
        level: 0.04,
        delta: 0.01,
        decision: decide(interval, 0.01),
        contrasts: 1,
        blocks_left: if is_last { 0.0 } else { 100.0 },
    };
    (judged, interval)
}

/// Two arms without a difference, at the last look.
fn expect_decision(decision: Decision) -> JudgedContrast {
    JudgedContrast {
        arm: 1,
        baseline: 0,
        judge: Judge::Typical,
        estimate: 0.0,
        level: 0.04,
        delta: 0.01,
        decision,
        contrasts: 1,
        blocks_left: 0.0,
    }
}

/// Of 200 of this many blocks, at the last look or before it?
fn count_raised(
    blocks: usize,
    is_last: bool,
    world: World,
    caveat: impl Fn(&Caveats) -> bool,
) -> usize {
    (0..200)
        .filter(|&seed| {
            let (data, around) = experiment(world, blocks, seed);
            let (judged, interval) = judge(&data, is_last);
            caveat(&judged.find_caveats(&data, &around, interval))
        })
        .count()
}

#[test]
fn equal_arms_raise_few_caveats() {
    let equal = World::default();
    assert!(count_raised_of_200(equal, |d| d.order.is_some()) <= 11);
    assert!(count_raised_of_200(equal, |d| d.time.is_some()) <= 11);
    assert!(count_raised_of_200(equal, |d| d.load.is_some()) <= 11);
    let slower = World {
        effect: 0.03,
        ..World::default()
    };
    assert!(count_raised_of_200(slower, Caveats::withholds) <= 6);
}

#[test]
fn an_arm_that_slows_the_next_run_is_not_faster() {
    let messy = World {
        leaves: 0.05,
        ..World::default()
    };
    assert!(count_raised_of_200(messy, Caveats::depends_on_order) >= 190);
    let gaining = World {
        gains: 0.05,
        ..World::default()
    };
    assert!(count_raised_of_200(gaining, Caveats::depends_on_order) >= 160);
    // An answer that holds after equal predecessors, too, holds.
    let slower = World {
        effect: 0.10,
        leaves: 0.02,
        ..World::default()
    };
    assert!(count_raised_of_200(slower, Caveats::depends_on_order) <= 4);
}

#[test]
fn an_arm_that_warms_up_alone_is_not_slower() {
    let cold = World {
        cold: 0.2,
        ..World::default()
    };
    assert!(count_raised_of_200(cold, |d| d.time.is_some()) >= 190);
    let slower = World {
        effect: 0.10,
        cold: 0.05,
        ..World::default()
    };
    assert!(count_raised_of_200(slower, Caveats::depends_on_time) <= 4);
}

/// An arm that costs 10 % more at first, of which sixty runs leave a third.
fn fading(blocks: usize, seed: u64) -> (Responses, Circumstances) {
    let (data, around) = experiment(World::default(), blocks, seed);
    let mut fading = Responses::new(2);
    for (block, row) in data.rows().enumerate() {
        let left = (-(block as f64) / 60.0).exp();
        fading.push(&[row[0], row[1] + 0.1 * left]);
    }
    (fading, around)
}

#[test]
fn a_slow_fade_waits_while_it_still_looks_like_noise() {
    let waiting = (0..200)
        .filter(|&seed| {
            let (data, around) = fading(12, seed);
            let (judged, interval) = judge(&data, false);
            judged.find_caveats(&data, &around, interval).is_early
        })
        .count();
    assert!(waiting >= 170, "{waiting} of 200");
    // What no trend of this noise undoes does not wait for one.
    let large = World {
        effect: 0.5,
        ..World::default()
    };
    let waiting = count_raised(12, false, large, |d| d.is_early);
    assert!(waiting <= 30, "{waiting} of 200");
}

#[test]
fn a_fade_that_goes_on_contradicts_the_claim() {
    let withheld = (0..100)
        .filter(|&seed| {
            let (fading, around) = fading(90, seed);
            let (judged, interval) = judge(&fading, true);
            assert_eq!(judged.decision, Decision::Slower);
            judged
                .find_caveats(&fading, &around, interval)
                .depends_on_time()
        })
        .count();
    assert!(withheld >= 90, "{withheld} of 100");
}

#[test]
fn a_drift_that_is_small_beside_the_difference_withholds_nothing() {
    // Twenty blocks in which the ratio creeps from 4.98 to 5.06.
    let mut data = Responses::new(2);
    for block in 0..20 {
        let creep = f64::from(block) * 0.0009;
        data.push(&[0.0, 4.98f64.ln() + creep]);
    }
    let judged = JudgedContrast {
        level: 0.01,
        ..judge(&data, true).0
    };
    assert_eq!(judged.decision, Decision::Slower);
    let caveats = judged.find_caveats(&data, &Circumstances::default(), Interval::UNBOUNDED);
    assert!(caveats.time.is_some(), "it does drift");
    assert!(!caveats.withholds(), "{caveats:?}");
}

#[test]
fn an_effect_of_load_withholds_a_verdict_if_its_sign_turns() {
    let turning = World {
        under_load: 0.10,
        ..World::default()
    };
    assert!(count_raised_of_200(turning, |d| d.depends_on_load() && d.withholds()) >= 190);
    let growing = World {
        effect: 0.10,
        under_load: 0.16,
        ..World::default()
    };
    assert!(count_raised_of_200(growing, Caveats::depends_on_load) >= 120);
    assert!(count_raised_of_200(growing, Caveats::withholds) <= 20);
}

#[test]
fn arms_that_differ_little_under_every_load_are_the_same() {
    let around = Circumstances {
        load: (0..60).map(|i| Some(f64::from(i % 2))).collect(),
        ..Circumstances::default()
    };
    let judged = expect_decision(Decision::Same);
    let is_contradicted = |size: f64| {
        let noise = |i: i32| f64::from(i * 17 % 41) / 41_000.0;
        let one = |i: i32| noise(i) + if i % 2 == 0 { -size } else { size };
        let differences: Vec<f64> = (0..60).map(one).collect();
        let levels = LoadLevels::from_differences(&differences, &around).unwrap();
        let split = judged.split_by_load(&differences, &around, &levels);
        split.unwrap().contradicts
    };
    assert!(!is_contradicted(0.007));
    assert!(is_contradicted(0.02));
}

#[test]
fn a_few_very_slow_runs_contradict_many_quick_ones() {
    let slow = World {
        effect: -0.02,
        slow: (0.1, 0.5),
        ..World::default()
    };
    assert!(count_raised_of_200(slow, Caveats::depends_on_tail) >= 150);
    let even = World {
        effect: -0.02,
        ..World::default()
    };
    assert!(count_raised_of_200(even, Caveats::depends_on_tail) <= 4);
}

#[test]
fn claims_that_may_fade_wait_before_the_end() {
    let early = |world| count_raised(12, false, world, |d| d.is_early);
    let gaining = World {
        gains: 0.05,
        ..World::default()
    };
    let warming = World {
        cold: 0.05,
        ..World::default()
    };
    assert!(early(gaining) >= 120, "{}", early(gaining));
    assert!(early(warming) >= 120, "{}", early(warming));
    // Chance alone is beyond half a standard deviation in 62 of 200; 20 are three
    // deviations of that.
    let clean = early(World {
        effect: 0.02,
        ..World::default()
    });
    assert!(clean <= 82, "{clean}");
    // At the last look nothing is left to wait for.
    assert_eq!(count_raised(12, true, warming, |d| d.is_early), 0);
}

#[test]
fn two_arms_are_not_the_same_after_a_few_blocks() {
    let equal = World::default();
    let is_early = |blocks| count_raised(blocks, false, equal, |d| d.is_early);
    assert!(is_early(20) > 100);
    assert!(is_early(24) < 20);
}

#[test]
fn without_known_order_or_load_there_are_no_caveats_on_them() {
    let (data, _) = experiment(
        World {
            leaves: 0.05,
            ..World::default()
        },
        60,
        1,
    );
    let judged = expect_decision(Decision::Undecided);
    let caveats = judged.find_caveats(&data, &Circumstances::default(), Interval::UNBOUNDED);
    assert_eq!((caveats.order, caveats.load), (None, None));
    assert_eq!(caveats.others.len(), 2);
}
