use proptest::prelude::*;

use super::*;
use crate::table::{CORECLR_MONITOR, NETFX_AWARELOCK};

fn wait_on(algorithm: &Algorithm, cpus: u64, hint_ns: f64) -> Wait {
    let setting = Setting { cpus, hint_ns };
    algorithm.compute_wait(&setting, Case::Typical).unwrap()
}

#[track_caller]
fn check_total_ms(cpus: u64, cycles: f64, ghz: f64, expected: f64) {
    let hint_ns = cycles / ghz;
    let total = wait_on(&NETFX_AWARELOCK, cpus, hint_ns)
        .total(hint_ns)
        .unwrap();
    let found = total.as_secs_f64() * 1e3;
    assert!((found - expected).abs() < 0.005, "{found} for {expected}");
}

#[test]
fn totals_are_those_of_the_formula() {
    check_total_ms(24, 11.0, 2.8, 19.33);
    check_total_ms(24, 140.0, 2.8, 246.03);
    check_total_ms(48, 140.0, 2.8, 246.03);
    let totals = [
        (1, 182_000),
        (8, 1_640_000),
        (49, 4_920_500),
        (50, 14_762_000),
    ];
    for (cpus, expected) in totals {
        assert_eq!(
            wait_on(&NETFX_AWARELOCK, cpus, 1.0).total_hints(),
            Some(expected)
        );
    }
    for cpus in 1..=128u64 {
        // k = ceil(log3(400 n)) rounds, ten times 50 (3^k - 1) / 2 in total.
        let k = (0..).find(|&k| 3u64.pow(k) >= 400 * cpus).unwrap();
        let wait = wait_on(&NETFX_AWARELOCK, cpus, 1.0);
        let total = 10 * 50 * (3u64.pow(k) - 1) / 2;
        assert_eq!(wait.total_hints(), Some(total), "{cpus}");
        assert_eq!(wait.blind_gap_hints(), 50 * 3u64.pow(k - 1), "{cpus}");
        assert_eq!(wait.looks().count(), 10 * k as usize);
        assert_eq!(wait.looks().last(), Some(total));
    }
}

#[test]
fn normalised_units_are_rounded_as_the_runtime_does() {
    let wait = wait_on(&CORECLR_MONITOR, 8, 37.0);
    assert_eq!(wait.total_hints(), Some(196));
    assert_eq!(wait.blind_gap_hints(), 7);
    assert_eq!(wait.total(37.0), Some(Duration::from_nanos(7_252)));
    // 50 ns a hint: one is closest to a unit, five to the maximum between looks.
    let slow = wait_on(&CORECLR_MONITOR, 8, 50.0);
    assert_eq!(slow.total_hints(), Some(1 + 2 + 4 + 27 * 5));
    // 3 ns: twelve to a unit, eight units between looks.
    let fast = wait_on(&CORECLR_MONITOR, 8, 3.0);
    assert_eq!(fast.blind_gap_hints(), 8 * 12);
    assert_eq!(fast.total_hints(), Some((1 + 2 + 4 + 27 * 8) * 12));
}

#[test]
fn a_parked_waiter_sees_nothing() {
    let wait = wait_on(&NETFX_AWARELOCK, 1, 1.0);
    assert_eq!(
        wait.notices_release_after(1.0, Duration::from_secs(1)),
        None
    );
    assert_eq!(
        wait.notices_release_after(1.0, Duration::ZERO),
        Some(Duration::ZERO)
    );
}

#[test]
fn an_endless_waiter_always_sees() {
    let wait = Wait {
        runs: vec![Runs { times: 1, hints: 3 }],
        is_endless: true,
    };
    assert_eq!(wait.total_hints(), None);
    assert_eq!(wait.looks().take(3).collect::<Vec<u64>>(), [3, 6, 9]);
    let seen = wait.notices_release_after(10.0, Duration::from_nanos(95));
    assert_eq!(seen, Some(Duration::from_nanos(120)));
}

proptest! {
    #[test]
    fn the_first_look_is_found_without_going_through_all(
        runs in prop::collection::vec((0u64..5, 0u64..40), 1..8),
        hint_ns in 0.3f64..200.0,
        free_ns in 1u64..40_000,
    ) {
        let runs = runs.into_iter().map(|(times, hints)| Runs { times, hints }).collect();
        let wait = Wait { runs, is_endless: false };
        let free_after = Duration::from_nanos(free_ns);
        let expected = wait.looks().map(|hints| hints_to_time(hints, hint_ns)).find(|&t| t >= free_after);
        prop_assert_eq!(wait.notices_release_after(hint_ns, free_after), expected);
    }
}
