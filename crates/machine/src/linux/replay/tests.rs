//! Replays on this machine. No test checks a duration, only what was executed and what must be
//! restored.

use std::time::Duration;

use super::*;
use crate::Waiter;
use crate::{ContendOrder, HandOverOrder};
use pinwise_spin::algorithm::{Runs, Wait};
use pinwise_spin::lateness::{Ending, ReleaseNotice};

fn two_cpus(test: &str) -> Option<(usize, usize)> {
    let mask = sys::affinity().unwrap();
    let mut allowed = mask.iter();
    let both = allowed.next().zip(allowed.next());
    if both.is_none() {
        println!("SKIPPED {test}: it takes two CPUs");
    }
    both
}

fn make_wait(runs: &[(u64, u64)], is_endless: bool) -> Wait {
    let runs = runs.iter().map(|&(times, hints)| Runs { times, hints });
    Wait {
        runs: runs.collect(),
        is_endless,
    }
}

fn make_order<'a>(wait: &'a Wait, ending: Ending, cpus: (usize, usize)) -> HandOverOrder<'a> {
    HandOverOrder {
        waiter: Waiter {
            wait,
            ending,
            hint_ns: None,
        },
        holder_cpu: cpus.0,
        waiter_cpu: cpus.1,
        hold: Duration::from_millis(2),
        delay: Duration::from_millis(1),
        items: 3,
        limit: Duration::from_secs(10),
        is_realtime: false,
    }
}

/// Checks the undisturbed items, if the machine allowed any.
#[track_caller]
fn check(runs: &[(u64, u64)], is_endless: bool, ending: Ending, seen: ReleaseNotice) {
    let Some(cpus) = two_cpus("handing over") else {
        return;
    };
    let before = sys::affinity().unwrap();
    let wait = make_wait(runs, is_endless);
    let result = hand_over(&make_order(&wait, ending, cpus), &mut || false).unwrap();
    assert_eq!(sys::affinity().unwrap(), before);
    let total: u64 = runs.iter().map(|(times, hints)| times * hints).sum();
    for item in &result.items {
        assert_eq!(item.seen, seen, "{item:?}");
        assert!(item.item_ns >= 2e6, "{item:?}");
        assert!(
            seen == ReleaseNotice::Spinning || item.hints == total,
            "{item:?}"
        );
    }
    if result.items.is_empty() {
        println!("SKIPPED {seen:?}: all items were disturbed, {result:?}");
    }
}

#[test]
fn a_spinning_waiter_notices_the_release() {
    check(&[(1, 10)], true, Ending::Parks, ReleaseNotice::Spinning);
}

#[test]
fn a_waiter_parks_or_yields_after_its_hints() {
    check(&[(2, 5)], false, Ending::Parks, ReleaseNotice::Parked);
    check(&[], false, Ending::Parks, ReleaseNotice::Parked);
    check(&[(1, 5)], false, Ending::Yields, ReleaseNotice::Yielding);
}

#[test]
fn hints_that_no_processor_can_have_are_refused() {
    let Some(cpus) = two_cpus("impossible hints") else {
        return;
    };
    let wait = make_wait(&[(1, 10)], true);
    let mut order = make_order(&wait, Ending::Parks, cpus);
    order.waiter.hint_ns = Some(0.01);
    let error = hand_over(&order, &mut || false).unwrap_err();
    assert!(
        error.to_string().contains("no hint can be that short"),
        "{error}"
    );
}

#[test]
fn a_replay_ends_at_an_interrupt_or_at_its_limit() {
    let Some(cpus) = two_cpus("interrupting") else {
        return;
    };
    let wait = make_wait(&[(1, 10)], true);
    let order = HandOverOrder {
        items: usize::MAX,
        limit: Duration::from_millis(300),
        ..make_order(&wait, Ending::Parks, cpus)
    };
    let error = hand_over(&order, &mut || true).unwrap_err();
    assert!(matches!(error, MachineError::Interrupted));
    assert!(hand_over(&order, &mut || false).is_ok());
}

#[test]
fn all_contending_threads_get_the_lock_and_end() {
    let Some((a, b)) = two_cpus("contending") else {
        return;
    };
    let waits = [make_wait(&[(1, 10)], true), make_wait(&[(3, 10)], false)];
    for wait in &waits {
        let order = ContendOrder {
            waiter: Waiter {
                wait,
                ending: Ending::Parks,
                hint_ns: None,
            },
            cpus: vec![a, b, a],
            section_cycles: 100,
            time: Duration::from_millis(30),
        };
        let result = contend(&order, &mut || false).unwrap();
        assert_eq!(result.threads.len(), 3);
        assert!(result.threads.iter().all(|thread| thread.operations > 0));
    }
}
