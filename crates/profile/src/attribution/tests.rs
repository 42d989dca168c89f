use super::*;
use proptest::prelude::*;

/// Seconds per unit of a run, by part.
#[derive(Debug, Clone, Copy)]
struct Truth {
    hints_s: f64,
    accesses_s: f64,
    other_s: f64,
    kernel_s: f64,
    idle_s: f64,
    pause_ns: f64,
    cycle_ns: f64,
}

const A: Truth = Truth {
    hints_s: 0.9,
    accesses_s: 2.0,
    other_s: 4.0,
    kernel_s: 0.5,
    idle_s: 1.0,
    pause_ns: 3.6,
    cycle_ns: 0.4,
};

/// Runs that take exactly these times, with a sample for each millisecond.
fn repeat_runs(truth: Truth, runs: usize) -> Repeats {
    let cpu_s = truth.hints_s + truth.accesses_s + truth.other_s + truth.kernel_s;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some thousand samples"
    )]
    let repeat = Repeat {
        units: 1.0,
        wall_s: Some(cpu_s + truth.idle_s),
        cpu_s,
        samples: (1000.0 * cpu_s) as u64,
        hints: truth.hints_s / cpu_s,
        accesses: Some(truth.accesses_s / cpu_s),
        unread: truth.kernel_s / cpu_s,
    };
    let fact = |value: f64| {
        Some(Figure {
            value,
            error: 0.002 * value,
        })
    };
    Repeats {
        repeats: vec![repeat; runs],
        facts: Facts {
            pause_ns: fact(truth.pause_ns),
            cycle_ns: fact(truth.cycle_ns),
            memory_ns: fact(90.0),
            ..Facts::default()
        },
    }
}

fn attribute_difference(a: Truth, b: Truth, basis: Basis) -> Attribution {
    attribute(&repeat_runs(a, 3), &repeat_runs(b, 3), basis).unwrap()
}

fn find_part(found: &Attribution, kind: PartKind) -> &Part {
    let mut parts = found.parts.iter();
    parts.find(|part| part.kind == kind).unwrap()
}

#[track_caller]
fn check_part(found: &Attribution, kind: PartKind, expected_s: f64) {
    let time = find_part(found, kind).time_s.unwrap();
    assert!((time.value - expected_s).abs() < 1e-9, "{kind:?} {time:?}");
    assert!(time.low <= time.value && time.value <= time.high);
}

#[test]
fn a_longer_pause_is_a_part_of_its_own() {
    let b = Truth {
        hints_s: A.hints_s * 43.0 / 3.6,
        idle_s: 1.4,
        pause_ns: 43.0,
        ..A
    };
    let found = attribute_difference(A, b, Basis::Wall);
    let longer = 0.9 * (43.0 / 3.6 - 1.0);
    check_part(&found, PartKind::HintLength, longer);
    check_part(&found, PartKind::HintCount, 0.0);
    check_part(&found, PartKind::Waiting, 0.4);
    check_part(&found, PartKind::Memory, 0.0);
    check_part(&found, PartKind::Unexplained, 0.0);
    let sentence = found.sentence("run");
    let expected = "B takes 2.22 times as long per run: 96 % (95 to 97) of the difference is longer \
                    spin-waits (PAUSE 43.0 ns against 3.6 ns), 4 % (4 to 4) waiting, 0 % (";
    assert!(sentence.starts_with(expected), "{sentence}");
}

#[test]
fn clock_memory_and_work_are_attributed_separately() {
    let slower = Truth {
        other_s: 5.0,
        accesses_s: 2.5,
        kernel_s: 0.625,
        cycle_ns: 0.5,
        ..A
    };
    let clock = attribute_difference(A, slower, Basis::Cpu);
    check_part(&clock, PartKind::Frequency, 1.625);
    check_part(&clock, PartKind::Unexplained, 0.0);
    let memory = attribute_difference(
        A,
        Truth {
            accesses_s: 5.0,
            ..A
        },
        Basis::Cpu,
    );
    check_part(&memory, PartKind::Memory, 3.0);
    check_part(&memory, PartKind::Frequency, 0.0);
    // Twice the instructions: neither memory nor the clock explains that.
    let work = attribute_difference(
        A,
        Truth {
            accesses_s: 4.0,
            other_s: 8.0,
            ..A
        },
        Basis::Cpu,
    );
    check_part(&work, PartKind::Memory, 0.0);
    check_part(&work, PartKind::Unexplained, 6.0);
    // The same figures also allow the other extreme: memory explains all of its time.
    let time = find_part(&work, PartKind::Memory).time_s.unwrap();
    assert!(time.high > 1.99 && time.low > -0.5, "{time:?}");
}

#[test]
fn equal_sides_have_nothing_to_explain() {
    for basis in [Basis::Wall, Basis::Cpu] {
        let found = attribute_difference(A, A, basis);
        assert!(!found.is_difference);
        assert!(found.parts.iter().all(|part| part.share.is_none()));
        let sentence = found.sentence("run");
        assert!(sentence.contains("no difference to explain"), "{sentence}");
    }
    // With one run each, some per cent are chance.
    let b = Truth { other_s: 4.2, ..A };
    let alone = attribute(&repeat_runs(A, 1), &repeat_runs(b, 1), Basis::Cpu).unwrap();
    assert!(!alone.is_difference, "{alone:?}");
    assert!(attribute_difference(A, b, Basis::Cpu).is_difference);
}

#[test]
fn unknown_parts_count_as_unexplained() {
    let b = Truth {
        hints_s: 5.0,
        accesses_s: 3.0,
        other_s: 5.0,
        pause_ns: 43.0,
        cycle_ns: 0.5,
        ..A
    };
    let mut after = repeat_runs(b, 3);
    after.facts = Facts::default();
    for repeat in &mut after.repeats {
        repeat.accesses = None;
    }
    let found = attribute(&repeat_runs(A, 3), &after, Basis::Cpu).unwrap();
    check_part(&found, PartKind::Hints, 4.1);
    check_part(&found, PartKind::Unexplained, 2.0);
    for kind in [PartKind::Memory, PartKind::Frequency] {
        let part = find_part(&found, kind);
        assert!(part.time_s.is_none() && part.share.is_none());
        assert!(part.detail.as_ref().unwrap().contains("not"));
    }
    // A record without elapsed times.
    after.repeats[0].wall_s = None;
    assert_eq!(attribute(&repeat_runs(A, 3), &after, Basis::Wall), None);
    after.repeats.clear();
    assert_eq!(attribute(&repeat_runs(A, 3), &after, Basis::Cpu), None);
}

#[test]
fn threads_side_by_side_count_as_lanes() {
    let mut sides = [repeat_runs(A, 3), repeat_runs(A, 3)];
    for (side, wall_s) in sides.iter_mut().zip([1.85, 3.7]) {
        side.repeats
            .iter_mut()
            .for_each(|r| r.wall_s = Some(wall_s));
    }
    let found = attribute(&sides[0], &sides[1], Basis::Wall).unwrap();
    assert!((found.lanes - 4.0).abs() < 1e-9, "{}", found.lanes);
    assert!((found.after_s - 3.7).abs() < 1e-9);
    check_part(&found, PartKind::Waiting, 1.85);
}

fn any_truth() -> impl Strategy<Value = Truth> {
    let time = || prop_oneof![Just(0.0), 1e-3f64..100.0];
    (
        time(),
        time(),
        time(),
        time(),
        time(),
        1.0f64..200.0,
        0.1f64..2.0,
    )
        .prop_map(|all| Truth {
            hints_s: all.0,
            accesses_s: all.1,
            other_s: all.2 + 1e-3,
            kernel_s: all.3,
            idle_s: all.4,
            pause_ns: all.5,
            cycle_ns: all.6,
        })
}

proptest! {
    #[test]
    fn parts_add_up_and_change_sign_when_sides_are_swapped(
        a in any_truth(), b in any_truth(), has_facts in any::<bool>(), has_accesses in any::<bool>(),
    ) {
        let mut sides = [repeat_runs(a, 2), repeat_runs(b, 4)];
        for side in &mut sides {
            if !has_facts {
                side.facts = Facts::default();
            }
            for repeat in &mut side.repeats {
                repeat.accesses = repeat.accesses.filter(|_| has_accesses);
            }
        }
        for basis in [Basis::Wall, Basis::Cpu] {
            let there = attribute(&sides[0], &sides[1], basis).unwrap();
            let back = attribute(&sides[1], &sides[0], basis).unwrap();
            let size = there.before_s + there.after_s;
            let time = |part: &Part| part.time_s.map_or(0.0, |time| time.value);
            let sum: f64 = there.parts.iter().map(time).sum();
            prop_assert!((sum - there.total.value).abs() <= 1e-9 * size);
            let whole = there.after_s - there.before_s;
            prop_assert!((whole - there.total.value).abs() <= 1e-9 * size);
            for (x, y) in there.parts.iter().zip(&back.parts) {
                prop_assert!((time(x) + time(y)).abs() <= 1e-6 * size, "{x:?} {y:?}");
            }
            if there.is_difference {
                let shares = there.parts.iter().filter_map(|part| part.share);
                let sum: f64 = shares.map(|share| share.value).sum();
                prop_assert!((sum - 1.0).abs() < 1e-6, "{sum}");
            }
            prop_assert!(!there.sentence("run").contains("NaN"));
        }
    }

}

proptest! {
    // A case is 60 experiments.
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Varying samples, clocks and elapsed times: at least nine of ten 95 % intervals contain the
    /// truth.
    #[test]
    fn nine_of_ten_intervals_contain_the_truth(seed in any::<u64>()) {
        use rand::{RngExt, SeedableRng};
        let mut chance = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let b = Truth { hints_s: 9.0, accesses_s: 3.0, idle_s: 1.5, pause_ns: 30.0, ..A };
        let exact = attribute_difference(A, b, Basis::Cpu);
        let (mut covered, mut all) = (0, 0);
        for _ in 0..60 {
            let mut draw = |truth: Truth| {
                let mut side = repeat_runs(truth, 1);
                let repeat = &mut side.repeats[0];
                let (mut hints, mut accesses, mut unread) = (0.0, 0.0, 0.0);
                for _ in 0..repeat.samples {
                    let at: f64 = chance.random();
                    let ends = [repeat.hints, repeat.hints + repeat.accesses.unwrap()];
                    if at < ends[0] {
                        hints += 1.0;
                    } else if at < ends[1] {
                        accesses += 1.0;
                    } else if at < ends[1] + repeat.unread {
                        unread += 1.0;
                    }
                }
                let many = repeat.samples as f64;
                repeat.hints = hints / many;
                repeat.accesses = Some(accesses / many);
                repeat.unread = unread / many;
                side
            };
            let found = attribute(&draw(A), &draw(b), Basis::Cpu).unwrap();
            for (found, exact) in found.parts.iter().zip(&exact.parts) {
                let (time, truth) = (found.time_s.unwrap(), exact.time_s.unwrap().value);
                covered += usize::from((time.low - 1e-9..=time.high + 1e-9).contains(&truth));
                all += 1;
            }
        }
        prop_assert!(covered * 10 >= all * 9, "{covered} of {all}");
    }
}
