use proptest::prelude::*;

use super::*;
use crate::algorithm::{Case, Runs, Setting};
use crate::table::{CORECLR_MONITOR, NETFX_AWARELOCK};

const COSTS: Costs = Costs {
    hint_ns: 43.0,
    wake_ns: Some(50_000.0),
    yield_ns: Some(400.0),
};

fn netfx_wait() -> Wait {
    let setting = Setting {
        cpus: 24,
        hint_ns: 43.0,
    };
    NETFX_AWARELOCK
        .compute_wait(&setting, Case::Typical)
        .unwrap()
}

fn experiment_with_delay(delay_ms: u64) -> ProducerConsumer {
    ProducerConsumer {
        items: 100,
        hold: Duration::from_millis(10),
        delay: Duration::from_millis(delay_ms),
    }
}

#[test]
fn items_wait_for_the_first_look_after_the_release() {
    let wait = netfx_wait();
    let expected = [2.22, 2.32, 1.01, 1.11, 1.21, 1.31, 1.41, 1.03, 1.13];
    for (delay, expected) in (1..=9).zip(expected) {
        let taking = experiment_with_delay(delay)
            .total_when_spinning(&wait, 43.0)
            .as_secs_f64();
        assert!((taking - expected).abs() < 0.006, "{delay}: {taking}");
    }
}

#[test]
fn a_waiter_that_parks_is_late_by_a_wake_up() {
    let setting = Setting {
        cpus: 24,
        hint_ns: 37.0,
    };
    let wait = CORECLR_MONITOR
        .compute_wait(&setting, Case::Typical)
        .unwrap();
    let spin = wait.total(37.0).unwrap();
    let time = experiment_with_delay(4).total_when_parking(spin, Duration::from_micros(50));
    assert_eq!(time, Duration::from_micros(100 * 10_050));
}

#[track_caller]
fn check_lateness(delay_ms: u32, late_ms: f64, cliff_percent: f64) {
    let free_after_ns = 1e6 * f64::from(10 - delay_ms);
    let found = netfx_wait().compute_lateness(Ending::Parks, &COSTS, free_after_ns);
    let late = found.late_ns.unwrap() * 1e-6;
    assert_eq!(found.seen, ReleaseNotice::Spinning);
    assert!((late - late_ms).abs() < 0.005, "{delay_ms}: {late}");
    let cliff = 100.0 * found.cliff_share.unwrap();
    assert!((cliff - cliff_percent).abs() < 0.1, "{delay_ms}: {cliff} %");
}

#[test]
fn the_curve_of_the_field_report_has_its_cliffs() {
    // Looks at 2.35, 7.05 and 21.16 ms.
    check_lateness(1, 12.157, 27.6);
    check_lateness(2, 13.157, 13.4);
    check_lateness(3, 0.052, 0.7);
    check_lateness(4, 1.052, 14.9);
    check_lateness(5, 2.052, 29.1);
    check_lateness(7, 4.052, 27.6);
    check_lateness(8, 0.350, 14.9);
}

#[test]
fn a_change_of_the_latency_beyond_the_cliff_flips_the_result() {
    let wait = netfx_wait();
    let free_after_ns = 7e6;
    let late = |hint_ns: f64| {
        let costs = Costs { hint_ns, ..COSTS };
        let found = wait.compute_lateness(Ending::Parks, &costs, free_after_ns);
        found.late_ns.unwrap()
    };
    let found = wait.compute_lateness(Ending::Parks, &COSTS, free_after_ns);
    let cliff = found.cliff_share.unwrap();
    assert!(late(43.0 * (1.0 - 0.9 * cliff)) < 1e5);
    assert!(late(43.0 * (1.0 - 1.1 * cliff)) > 1e7);
}

#[test]
fn a_parked_waiter_is_late_by_a_wake_up_or_half_a_yield() {
    let setting = Setting {
        cpus: 24,
        hint_ns: 43.0,
    };
    let wait = CORECLR_MONITOR
        .compute_wait(&setting, Case::Typical)
        .unwrap();
    let parked = wait.compute_lateness(Ending::Parks, &COSTS, 5e6);
    assert_eq!(
        (parked.seen, parked.late_ns),
        (ReleaseNotice::Parked, Some(50_000.0))
    );
    assert_eq!(parked.hints, wait.total_hints().unwrap());
    // The lock is free long after it has parked.
    assert_eq!(parked.cliff_share, None);
    let yielding = wait.compute_lateness(Ending::Yields, &COSTS, 5e6);
    assert_eq!(
        (yielding.seen, yielding.late_ns),
        (ReleaseNotice::Yielding, Some(200.0))
    );
    let unknown = Costs {
        wake_ns: None,
        ..COSTS
    };
    assert_eq!(
        wait.compute_lateness(Ending::Parks, &unknown, 5e6).late_ns,
        None
    );
}

#[test]
fn dense_looks_have_no_cliffs_and_an_endless_wait_no_end() {
    let wait = Wait {
        runs: vec![Runs { times: 1, hints: 1 }],
        is_endless: true,
    };
    let found = wait.compute_lateness(Ending::Parks, &COSTS, 9e6);
    assert_eq!(
        (found.seen, found.cliff_share),
        (ReleaseNotice::Spinning, None)
    );
    assert!(found.late_ns.unwrap() < 43.0);
    let free = wait.compute_lateness(Ending::Parks, &COSTS, 0.0);
    assert_eq!((free.hints, free.late_ns), (0, Some(0.0)));
}

#[test]
fn the_ending_is_parsed_from_an_algorithms_description() {
    for (then, ending) in [
        ("futex_wait (and spins again after wake)", Ending::Parks),
        (
            "SwitchToThread between repetitions, then event wait",
            Ending::Parks,
        ),
        ("sched_yield", Ending::Yields),
        ("Thread.Yield, Sleep(0) every 5 yields", Ending::Yields),
    ] {
        assert_eq!(Ending::parse(then), ending, "{then}");
    }
}

fn any_wait() -> impl Strategy<Value = Wait> {
    let runs = proptest::collection::vec((1u64..50, 1u64..2000), 1..6);
    (runs, any::<bool>()).prop_map(|(runs, is_endless)| Wait {
        runs: runs
            .into_iter()
            .map(|(times, hints)| Runs { times, hints })
            .collect(),
        is_endless,
    })
}

proptest! {
    /// For any runs, the found look is the first one at or after the release, by exhaustive search.
    #[test]
    fn the_look_is_the_first_at_or_after_the_release(
        wait in any_wait(),
        free_after in 1u64..400_000,
    ) {
        let costs = Costs { hint_ns: 1.0, wake_ns: None, yield_ns: None };
        let found = wait.compute_lateness(Ending::Parks, &costs, free_after as f64);
        let expected = wait.looks().find(|&look| look >= free_after);
        match expected {
            Some(look) => {
                prop_assert_eq!(found.hints, look);
                prop_assert_eq!(found.late_ns, Some((look - free_after) as f64));
            }
            None => prop_assert_eq!(found.seen, ReleaseNotice::Parked),
        }
        if let Some(share) = found.cliff_share {
            prop_assert!((0.0..1.0).contains(&share));
        }
    }
}
