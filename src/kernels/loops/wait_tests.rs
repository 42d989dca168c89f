//! Waits by count, and hints of other lengths than this processor's.

use std::cell::Cell;

use super::*;

/// Looks at hints executed so far, and how many there were when it was seen.
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
        (runs, is_endless),
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
    let waited = wait(&mut hints, &clock, (&[(1, 1)], true), || false, || true);
    assert!(!waited.is_seen && waited.hints > 0);
}

/// The median of a few measurements, each on a machine where others work: one
/// good one of several is enough to show that the length can be had.
fn found_ns(hints: &mut Hints, clock: &Clock) -> f64 {
    let wanted = hints.wanted_ns();
    let found: Vec<f64> = (0..40).map(|_| hints.correct(clock)).collect();
    let nearest = |a: &f64, b: &f64| (a - wanted).abs().total_cmp(&(b - wanted).abs());
    found.into_iter().min_by(nearest).unwrap()
}

#[test]
fn hints_are_stretched_and_shortened_to_the_length_asked_for() {
    let clock = Clock::calibrate();
    let own_ns = Hints::own(&clock).wanted_ns();
    for (factor, made) in [(3.0, Made::Stretched), (30.0, Made::Stretched)] {
        let wanted_ns = factor * own_ns.max(20.0);
        let mut hints = Hints::lasting(wanted_ns, &clock).unwrap();
        assert_eq!(hints.made(), made);
        let found = found_ns(&mut hints, &clock);
        assert!(
            (found / wanted_ns - 1.0).abs() < 0.05,
            "{found} for {wanted_ns}"
        );
    }
    if own_ns > 20.0 {
        let mut hints = Hints::lasting(8.0, &clock).unwrap();
        assert_eq!(hints.made(), Made::Shortened);
        let found = found_ns(&mut hints, &clock);
        assert!((found / 8.0 - 1.0).abs() < 0.05, "{found} for 8");
    }
    assert_eq!(Hints::lasting(0.01, &clock), None);
}
