//! Nested, incomplete and lost reports, and threads that are known later.

use proptest::prelude::*;

use super::ReportKind::{Enter, Leave, Lost, Was};
use super::*;

const OWN: Tid = 7;
const OTHER: Tid = 8;

fn card() -> Cause {
    let name = "eth0-rx-1".into();
    Cause::Interrupt { number: 38, name }
}

/// A device's interrupt has no name at its end.
fn card_ended() -> ReportKind {
    let name = "".into();
    Leave(Cause::Interrupt { number: 38, name })
}

fn net() -> Cause {
    Cause::Softirq("NET_RX".into())
}

fn tick() -> Cause {
    Cause::Vector("local_timer".into())
}

fn summarise(steps: &[(u64, Tid, ReportKind)]) -> InterruptSummary {
    let mut account = InterruptAccount::default();
    for (time_ns, thread, what) in steps {
        let what = what.clone();
        let time_ns = *time_ns;
        account.add_report(1, *thread, &Report { time_ns, what });
    }
    account.finish(&|thread| thread == OWN)
}

/// Causes with their count, their time, and the part taken from our thread.
#[track_caller]
fn check(steps: &[(u64, Tid, ReportKind)], expected: &[(Cause, u64, u64, u64)], unmatched: u64) {
    let summary = summarise(steps);
    let shares = summary.shares.iter().map(|share| {
        assert_eq!(share.cpu, 1);
        let took = share.took;
        (share.cause.clone(), took.count, took.time_ns, took.own_ns)
    });
    assert_eq!(shares.collect::<Vec<_>>(), expected);
    assert_eq!(summary.unmatched, unmatched);
    assert_eq!(summary.reports, steps.len() as u64);
}

#[test]
fn an_interrupt_is_subtracted_from_the_softirq_it_interrupts() {
    check(
        &[
            (1_000, OWN, Enter(net())),
            (4_000, OWN, Enter(card())),
            (4_500, OWN, card_ended()),
            (9_000, OWN, Leave(net())),
        ],
        &[(net(), 1, 7_500, 7_500), (card(), 1, 500, 500)],
        0,
    );
}

#[test]
fn an_nmi_is_subtracted_from_what_it_interrupts() {
    check(
        &[
            (1_000, OWN, Enter(tick())),
            (3_000, OWN, Was(Cause::Nmi, 500)),
            (5_000, OWN, Leave(tick())),
        ],
        &[(tick(), 1, 3_500, 3_500), (Cause::Nmi, 1, 500, 500)],
        0,
    );
}

#[test]
fn time_of_other_threads_and_of_idling_is_not_own() {
    check(
        &[
            (1_000, OWN, Enter(tick())),
            (2_000, OWN, Leave(tick())),
            (3_000, OTHER, Enter(tick())),
            (6_000, OTHER, Leave(tick())),
            (7_000, crate::IDLE, Enter(tick())),
            (8_000, crate::IDLE, Leave(tick())),
        ],
        &[(tick(), 3, 5_000, 1_000)],
        0,
    );
}

#[test]
fn activities_without_start_or_end_are_not_counted() {
    check(&[(1_000, OWN, Leave(net()))], &[], 1);
    check(&[(1_000, OWN, Enter(net()))], &[], 0);
    // It cannot nest in itself: the first has ended unseen.
    check(
        &[
            (1_000, OWN, Enter(tick())),
            (5_000_000, OWN, Enter(tick())),
            (5_002_000, OWN, Leave(tick())),
        ],
        &[(tick(), 1, 2_000, 2_000)],
        1,
    );
    // So has what was nested in something that ended.
    check(
        &[
            (1_000, OWN, Enter(net())),
            (2_000, OWN, Enter(card())),
            (4_000, OWN, Leave(net())),
        ],
        &[(net(), 1, 1_000, 1_000)],
        1,
    );
    // A running thread did not leave an interrupt unfinished.
    check(
        &[
            (1_000, OWN, Enter(net())),
            (9_000, OTHER, Enter(tick())),
            (9_500, OTHER, Leave(tick())),
        ],
        &[(tick(), 1, 500, 0)],
        1,
    );
}

#[test]
fn activities_with_lost_reports_are_not_counted() {
    let summary = summarise(&[
        (1_000, OWN, Enter(net())),
        (2_000, OWN, Lost),
        (90_000, OWN, Leave(net())),
        (91_000, OWN, Enter(net())),
        (92_000, OWN, Leave(net())),
    ]);
    assert_eq!(summary.gaps, 1);
    let took = InterruptTime {
        count: 1,
        time_ns: 1_000,
        own_ns: 1_000,
    };
    assert_eq!(summary.shares[0].took, took);
}

#[test]
fn threads_may_be_known_one_call_later() {
    let mut account = InterruptAccount::default();
    for (time_ns, what) in [(1_000, Enter(tick())), (3_000, Leave(tick()))] {
        account.add_report(0, OWN, &Report { time_ns, what });
    }
    account.assign_threads(&|_| false);
    account.assign_threads(&|thread| thread == OWN);
    let summary = account.finish(&|_| false);
    assert_eq!(summary.shares[0].took.own_ns, 2_000);
}

fn any_report() -> impl Strategy<Value = ReportKind> {
    let cause = prop_oneof![Just(card()), Just(net()), Just(tick())];
    prop_oneof![
        4 => cause.clone().prop_map(Enter),
        4 => cause.prop_map(Leave),
        1 => (0u64..5_000).prop_map(|length_ns| Was(Cause::Nmi, length_ns)),
        1 => Just(Lost),
    ]
}

proptest! {
    /// In any order of reports, no moment counts twice and no thread loses more than there was.
    #[test]
    fn no_time_counts_twice(
        steps in prop::collection::vec((1u64..9_000, 7i32..9, any_report()), 0..200),
    ) {
        let mut now_ns = 0;
        let mut nmi_ns = 0;
        let mut all = Vec::new();
        for (after_ns, thread, what) in steps {
            now_ns += after_ns;
            if let Was(_, length_ns) = &what {
                nmi_ns += length_ns;
            }
            all.push((now_ns, thread, what));
        }
        let summary = summarise(&all);
        let rest = summary.shares.iter().filter(|share| share.cause != Cause::Nmi);
        let sum: u64 = rest.map(|share| share.took.time_ns).sum();
        prop_assert!(sum <= now_ns);
        let nmi = summary.shares.iter().find(|share| share.cause == Cause::Nmi);
        prop_assert_eq!(nmi.map_or(0, |share| share.took.time_ns), nmi_ns);
        for share in &summary.shares {
            prop_assert!(share.took.own_ns <= share.took.time_ns);
        }
    }
}
