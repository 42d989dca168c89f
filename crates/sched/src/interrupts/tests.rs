//! Nested, incomplete and lost reports, and threads that are known later.

use proptest::prelude::*;

use super::ReportKind::{Enter, Leave, Lost, Was};
use super::*;

const OWN: Tid = 7;
const OTHER: Tid = 8;

fn card_interrupt() -> Cause {
    let name = "eth0-rx-1".into();
    Cause::Interrupt { number: 38, name }
}

/// A device's interrupt has no name at its end.
fn end_of_card_interrupt() -> ReportKind {
    let name = "".into();
    Leave(Cause::Interrupt { number: 38, name })
}

fn net_softirq() -> Cause {
    Cause::Softirq("NET_RX".into())
}

fn timer_interrupt() -> Cause {
    Cause::Vector("local_timer".into())
}

fn summarise(reports: &[(u64, Tid, ReportKind)]) -> InterruptSummary {
    let mut account = InterruptAccount::default();
    for (time_ns, thread, what) in reports {
        let what = what.clone();
        let time_ns = *time_ns;
        account.add_report(1, *thread, &Report { time_ns, what });
    }
    account.finish(&|thread| thread == OWN)
}

/// Causes with their count, their time, and the part taken from our thread.
#[track_caller]
fn check(reports: &[(u64, Tid, ReportKind)], expected: &[(Cause, u64, u64, u64)], unmatched: u64) {
    let summary = summarise(reports);
    let shares = summary.shares.iter().map(|share| {
        assert_eq!(share.cpu, 1);
        let took = share.took;
        (share.cause.clone(), took.count, took.time_ns, took.own_ns)
    });
    assert_eq!(shares.collect::<Vec<_>>(), expected);
    assert_eq!(summary.unmatched, unmatched);
    assert_eq!(summary.reports, reports.len() as u64);
}

#[test]
fn an_interrupt_is_subtracted_from_the_softirq_it_interrupts() {
    check(
        &[
            (1_000, OWN, Enter(net_softirq())),
            (4_000, OWN, Enter(card_interrupt())),
            (4_500, OWN, end_of_card_interrupt()),
            (9_000, OWN, Leave(net_softirq())),
        ],
        &[
            (net_softirq(), 1, 7_500, 7_500),
            (card_interrupt(), 1, 500, 500),
        ],
        0,
    );
}

#[test]
fn an_nmi_is_subtracted_from_what_it_interrupts() {
    check(
        &[
            (1_000, OWN, Enter(timer_interrupt())),
            (3_000, OWN, Was(Cause::Nmi, 500)),
            (5_000, OWN, Leave(timer_interrupt())),
        ],
        &[
            (timer_interrupt(), 1, 3_500, 3_500),
            (Cause::Nmi, 1, 500, 500),
        ],
        0,
    );
}

#[test]
fn time_of_other_threads_and_of_idling_is_not_own() {
    check(
        &[
            (1_000, OWN, Enter(timer_interrupt())),
            (2_000, OWN, Leave(timer_interrupt())),
            (3_000, OTHER, Enter(timer_interrupt())),
            (6_000, OTHER, Leave(timer_interrupt())),
            (7_000, crate::IDLE, Enter(timer_interrupt())),
            (8_000, crate::IDLE, Leave(timer_interrupt())),
        ],
        &[(timer_interrupt(), 3, 5_000, 1_000)],
        0,
    );
}

#[test]
fn activities_without_start_or_end_are_not_counted() {
    check(&[(1_000, OWN, Leave(net_softirq()))], &[], 1);
    check(&[(1_000, OWN, Enter(net_softirq()))], &[], 0);
    // It cannot nest in itself: the first has ended unseen.
    check(
        &[
            (1_000, OWN, Enter(timer_interrupt())),
            (5_000_000, OWN, Enter(timer_interrupt())),
            (5_002_000, OWN, Leave(timer_interrupt())),
        ],
        &[(timer_interrupt(), 1, 2_000, 2_000)],
        1,
    );
    // So has what was nested in something that ended.
    check(
        &[
            (1_000, OWN, Enter(net_softirq())),
            (2_000, OWN, Enter(card_interrupt())),
            (4_000, OWN, Leave(net_softirq())),
        ],
        &[(net_softirq(), 1, 1_000, 1_000)],
        1,
    );
    // A running thread did not leave an interrupt unfinished.
    check(
        &[
            (1_000, OWN, Enter(net_softirq())),
            (9_000, OTHER, Enter(timer_interrupt())),
            (9_500, OTHER, Leave(timer_interrupt())),
        ],
        &[(timer_interrupt(), 1, 500, 0)],
        1,
    );
}

#[test]
fn activities_with_lost_reports_are_not_counted() {
    let summary = summarise(&[
        (1_000, OWN, Enter(net_softirq())),
        (2_000, OWN, Lost),
        (90_000, OWN, Leave(net_softirq())),
        (91_000, OWN, Enter(net_softirq())),
        (92_000, OWN, Leave(net_softirq())),
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
    for (time_ns, what) in [
        (1_000, Enter(timer_interrupt())),
        (3_000, Leave(timer_interrupt())),
    ] {
        account.add_report(0, OWN, &Report { time_ns, what });
    }
    account.assign_threads(&|_| false);
    account.assign_threads(&|thread| thread == OWN);
    let summary = account.finish(&|_| false);
    assert_eq!(summary.shares[0].took.own_ns, 2_000);
}

fn any_report() -> impl Strategy<Value = ReportKind> {
    let cause = prop_oneof![
        Just(card_interrupt()),
        Just(net_softirq()),
        Just(timer_interrupt())
    ];
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
        reports in prop::collection::vec((1u64..9_000, 7i32..9, any_report()), 0..200),
    ) {
        let mut now_ns = 0;
        let mut nmi_ns = 0;
        let mut all = Vec::new();
        for (after_ns, thread, what) in reports {
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
