//! Gaps with reports that explain them, do not, or are false.

use proptest::prelude::*;

use super::*;

const WATCHER: Tid = 77;
const THRESHOLD_NS: u64 = 5_000;

fn timer_interrupt() -> Cause {
    Cause::Vector("local_timer".into())
}

fn card_interrupt() -> Cause {
    Cause::Interrupt {
        number: 38,
        name: "eth0-rx-1".into(),
    }
}

fn softirq() -> Cause {
    Cause::Softirq("NET_RX".into())
}

fn run(thread: Tid, name: &str) -> ReportKind {
    let name = name.into();
    ReportKind::Run { thread, name }
}

/// Explains one gap, beginning at 1 ms.
fn explain_gap(length_ns: u64, reports: &[(u64, ReportKind)]) -> Vec<(Cause, u64)> {
    const FROM_NS: u64 = 1_000_000;
    let mut explainer = Explainer::new(WATCHER, Knowledge::Reported, THRESHOLD_NS);
    for (after_ns, what) in reports {
        explainer.add_report(Report {
            time_ns: FROM_NS + after_ns,
            what: what.clone(),
        });
    }
    explainer.add_gap(Gap {
        from_ns: FROM_NS,
        to_ns: FROM_NS + length_ns,
    });
    let mut found = Vec::new();
    explainer.explain_until(u64::MAX, &mut found);
    assert_eq!(found.len(), 1);
    found.remove(0).parts
}

#[track_caller]
fn check(length_ns: u64, reports: &[(u64, ReportKind)], expected: &[(Cause, u64)]) {
    assert_eq!(explain_gap(length_ns, reports), expected);
}

use ReportKind::{Enter, Leave, Lost, Was};

#[test]
fn entry_time_counts_for_the_main_cause() {
    check(
        7_000,
        &[
            (1_000, Enter(timer_interrupt())),
            (4_000, Leave(timer_interrupt())),
        ],
        &[(timer_interrupt(), 7_000)],
    );
}

#[test]
fn unreported_time_is_the_hypervisors_or_firmwares() {
    check(300_000, &[], &[(Cause::HypervisorOrFirmware, 300_000)]);
}

/// Parts of gaps with a tick of 3 µs and this much around it, one after the other.
fn ticks(rests_ns: &[u64]) -> Vec<Vec<(Cause, u64)>> {
    let mut explainer = Explainer::new(WATCHER, Knowledge::Reported, THRESHOLD_NS);
    for (number, rest_ns) in (1u64..).zip(rests_ns) {
        let from_ns = number * 4_000_000;
        let tick_ns = from_ns + rest_ns - 500;
        for (time_ns, what) in [
            (tick_ns, Enter(timer_interrupt())),
            (tick_ns + 3_000, Leave(timer_interrupt())),
        ] {
            explainer.add_report(Report { time_ns, what });
        }
        let to_ns = from_ns + rest_ns + 3_000;
        explainer.add_gap(Gap { from_ns, to_ns });
    }
    let mut found = Vec::new();
    explainer.explain_until(u64::MAX, &mut found);
    found.into_iter().map(|found| found.parts).collect()
}

#[test]
fn if_entries_are_slow_only_much_slower_ones_are_the_hypervisors() {
    let slow = [17_000, 17_100, 16_000, 17_000, 17_500, 16_800];
    let parts = ticks(&[&slow[..], &[25_000, 200_000]].concat());
    assert_eq!(parts[6], [(timer_interrupt(), 28_000)]);
    assert_eq!(
        parts[7],
        [
            (Cause::HypervisorOrFirmware, 200_000),
            (timer_interrupt(), 3_000)
        ]
    );
    let parts = ticks(&[&[1_000; 7][..], &[17_000]].concat());
    assert_eq!(
        parts[7],
        [
            (Cause::HypervisorOrFirmware, 17_000),
            (timer_interrupt(), 3_000)
        ]
    );
    // Too few to know what is usual.
    let parts = ticks(&slow);
    assert_eq!(
        parts[0],
        [
            (Cause::HypervisorOrFirmware, 17_000),
            (timer_interrupt(), 3_000)
        ]
    );
}

#[test]
fn a_gap_is_split_among_all_reported_activities() {
    check(
        30_000,
        &[
            (1_000, Enter(card_interrupt())),
            (6_000, Leave(card_interrupt())),
            (7_000, Enter(softirq())),
            (12_000, Enter(timer_interrupt())),
            (15_000, Leave(timer_interrupt())),
            (28_000, Leave(softirq())),
        ],
        &[
            (softirq(), 22_000),
            (card_interrupt(), 5_000),
            (timer_interrupt(), 3_000),
        ],
    );
}

#[test]
fn time_between_switches_counts_for_the_thread() {
    check(
        1_000_000,
        &[
            (2_000, run(5, "kworker/1:0")),
            (100_000, Enter(timer_interrupt())),
            (103_000, Leave(timer_interrupt())),
            (602_000, run(6, "cc1")),
            (999_000, run(WATCHER, "jitter-1")),
        ],
        &[
            (Cause::Thread("kworker/1:0".into()), 600_000),
            (Cause::Thread("cc1".into()), 397_000),
            (timer_interrupt(), 3_000),
        ],
    );
}

#[test]
fn an_idle_cpu_within_a_gap_means_a_quota() {
    let parts = explain_gap(
        90_000,
        &[(1_000, run(IDLE, "swapper/1")), (89_000, run(WATCHER, "x"))],
    );
    assert_eq!(parts, [(Cause::Quota, 90_000)]);
}

#[test]
fn an_nmi_counts_from_its_end_back() {
    check(
        20_000,
        &[
            (1_000, Enter(timer_interrupt())),
            (15_000, Was(Cause::Nmi, 10_000)),
            (17_000, Leave(timer_interrupt())),
        ],
        &[(Cause::Nmi, 14_000), (timer_interrupt(), 6_000)],
    );
}

#[test]
fn missing_starts_and_ends_affect_one_gap_only() {
    // irq_work_exit may not be recorded by perf.
    let work = Cause::Vector("irq_work".into());
    check(8_000, &[(1_000, Enter(work.clone()))], &[(work, 8_000)]);
    check(
        8_000,
        &[(7_000, Leave(card_interrupt()))],
        &[(card_interrupt(), 8_000)],
    );
    // Activities nested in something that ended have ended, too.
    check(
        40_000,
        &[
            (1_000, Enter(softirq())),
            (2_000, Enter(timer_interrupt())),
            (10_000, Leave(softirq())),
        ],
        &[
            (Cause::HypervisorOrFirmware, 31_000),
            (timer_interrupt(), 8_000),
            (softirq(), 1_000),
        ],
    );
}

#[test]
fn lost_reports_make_unreported_time_unknown() {
    check(50_000, &[(20_000, Lost)], &[(Cause::Unknown, 50_000)]);
    // They may have been of the gap before the report of the loss.
    check(50_000, &[(90_000, Lost)], &[(Cause::Unknown, 50_000)]);
    check(
        50_000,
        &[(51_500, run(WATCHER, "x")), (90_000, Lost)],
        &[(Cause::HypervisorOrFirmware, 50_000)],
    );
}

#[test]
fn without_reports_every_gap_is_unknown() {
    let mut explainer = Explainer::new(WATCHER, Knowledge::Nothing, THRESHOLD_NS);
    let gap = Gap {
        from_ns: 10,
        to_ns: 9_010,
    };
    explainer.add_gap(gap);
    let mut found = Vec::new();
    explainer.explain_until(gap.to_ns, &mut found);
    assert!(found.is_empty(), "reports of its end may still come");
    explainer.explain_until(u64::MAX, &mut found);
    assert_eq!(found[0].parts, [(Cause::Unknown, 9_000)]);
}

#[test]
fn each_gap_has_its_own_causes() {
    let mut explainer = Explainer::new(WATCHER, Knowledge::Reported, THRESHOLD_NS);
    let reports = [
        (10_100, Enter(timer_interrupt())),
        (19_800, Leave(timer_interrupt())),
        // Right after the first gap, before its end was written down.
        (20_050, Enter(card_interrupt())),
        (29_000, Leave(card_interrupt())),
    ];
    for (time_ns, what) in reports {
        explainer.add_report(Report { time_ns, what });
    }
    for (from_ns, to_ns) in [(10_000, 20_000), (20_000, 30_000)] {
        explainer.add_gap(Gap { from_ns, to_ns });
    }
    let mut found = Vec::new();
    explainer.explain_until(u64::MAX, &mut found);
    let parts: Vec<_> = found.into_iter().map(|found| found.parts).collect();
    assert_eq!(
        parts,
        [[(timer_interrupt(), 10_000)], [(card_interrupt(), 10_000)]]
    );
}

fn any_report() -> impl Strategy<Value = ReportKind> {
    let cause = prop_oneof![
        Just(timer_interrupt()),
        Just(card_interrupt()),
        Just(softirq()),
        Just(Cause::Nmi)
    ];
    prop_oneof![
        cause.clone().prop_map(Enter),
        cause.clone().prop_map(Leave),
        (cause, any::<u64>()).prop_map(|(cause, ns)| Was(cause, ns)),
        (-1..80i32).prop_map(|thread| run(thread, "x")),
        Just(Lost),
    ]
}

proptest! {
    /// For any reports in any order: every gap comes out, in order, and its parts sum to it.
    #[test]
    fn parts_sum_to_the_gap(
        reports in prop::collection::vec((any::<u16>(), any_report()), 0..200),
        lengths in prop::collection::vec((1u64..5_000, 1u64..20_000), 0..20),
        extremes in any::<bool>(),
    ) {
        let mut explainer = Explainer::new(WATCHER, Knowledge::Reported, THRESHOLD_NS);
        let mut gaps = Vec::new();
        let mut at_ns = 0;
        for (running_ns, length_ns) in lengths {
            let from_ns = at_ns + running_ns;
            at_ns = from_ns + length_ns;
            gaps.push(Gap { from_ns, to_ns: at_ns });
        }
        if extremes {
            gaps.push(Gap { from_ns: u64::MAX - 1, to_ns: u64::MAX });
            gaps.push(Gap { from_ns: 9, to_ns: 3 });
        }
        for (time, what) in reports {
            explainer.add_report(Report { time_ns: u64::from(time) * 4, what });
        }
        for gap in &gaps {
            explainer.add_gap(*gap);
        }
        let mut found = Vec::new();
        explainer.explain_until(u64::MAX, &mut found);
        prop_assert_eq!(found.iter().map(|found| found.gap).collect::<Vec<_>>(), gaps);
        for found in found {
            let sum: u64 = found.parts.iter().map(|(_, part)| part).sum();
            prop_assert_eq!(sum, found.gap.length_ns(), "{:?}", found);
            prop_assert!(found.parts.windows(2).all(|two| two[0].1 >= two[1].1));
        }
    }
}
