//! Waits by count, and hints of other lengths than this processor's.

use std::cell::Cell;

use super::*;

/// Checks the number of hints before the look that succeeds.
#[track_caller]
fn check(runs: &[(u64, u64)], is_endless: bool, seen_at_look: u64, hints: u64, is_seen: bool) {
    let clock = Clock::calibrate();
    let looks = Cell::new(0);
    let look = || {
        looks.set(looks.get() + 1);
        looks.get() > seen_at_look
    };
    let waited = wait(
        &mut Hints::own(&clock),
        &clock,
        runs,
        is_endless,
        look,
        || false,
    );
    assert_eq!((waited.hints, waited.is_seen), (hints, is_seen), "{runs:?}");
}

#[test]
fn the_first_look_comes_before_any_hint() {
    check(&[(3, 50)], false, 0, 0, true);
    check(&[], false, 0, 0, true);
    check(&[], false, 1, 0, false);
}

#[test]
fn runs_are_executed_in_order_with_a_look_after_each() {
    let runs = [(1, 50), (1, 150), (2, 450)];
    check(&runs, false, 1, 50, true);
    check(&runs, false, 2, 200, true);
    check(&runs, false, 4, 1100, true);
    check(&runs, false, 5, 1100, false);
    check(&runs, true, 7, 50 + 150 + 5 * 450, true);
}

#[test]
fn an_endless_wait_is_broken_off_when_time_is_over() {
    let clock = Clock::calibrate();
    let mut hints = Hints::own(&clock);
    let waited = wait(&mut hints, &clock, &[(1, 1)], true, || false, || true);
    assert!(!waited.is_seen && waited.hints > 0);
}

/// Tries on a busy machine: one success shows that a length is possible.
const TRIES: usize = 20;

/// Whether this length is reached within 5 %, in this way.
fn is_reached(wanted_ns: f64, kind: HintKind, clock: &Clock) -> bool {
    (0..TRIES).any(|_| {
        let Some(mut hints) = Hints::lasting(wanted_ns, clock) else {
            return false;
        };
        let found = (0..10).map(|_| hints.correct(clock));
        let is_near = found
            .into_iter()
            .any(|ns| (ns / wanted_ns - 1.0).abs() < 0.05);
        hints.kind() == kind && is_near
    })
}

#[test]
fn hints_are_stretched_and_shortened_to_the_length_asked_for() {
    let clock = Clock::calibrate();
    let own_ns = (0..TRIES)
        .map(|_| Hints::own(&clock).wanted_ns)
        .min_by(f64::total_cmp)
        .unwrap();
    for factor in [3.0, 30.0] {
        let wanted_ns = factor * own_ns.max(20.0);
        assert!(
            is_reached(wanted_ns, HintKind::Stretched, &clock),
            "{wanted_ns} ns"
        );
    }
    if own_ns > 20.0 {
        assert!(is_reached(8.0, HintKind::Shortened, &clock), "8 ns");
    }
    assert_eq!(Hints::lasting(0.01, &clock), None);
}
