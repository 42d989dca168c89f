//! Whole analyses of small scripts with obvious results.

use proptest::prelude::*;

use super::{
    Analysis, Event, EventKind, IDLE, LeaveReason, Sample, SchedulingClass, Scope, SharingCause,
    Summary, Tid, Tier, Wait, WaitCause, WaitCauseTotals, Wakers, take_varint,
};
use pinwise_topology::{CpuSet, Topology};

const MS: u64 = 1_000_000;
/// 4 cores of 2 CPUs in two packages.
const SMT: &str = "package:2 l3:1 core:2 pu:2";

fn summary(machine: &str, scope: Scope, events: &[Event], to_ms: u64) -> Summary {
    let topology = Topology::from_synthetic(machine).unwrap();
    let mut analysis = Analysis::new(&topology, scope);
    for event in events {
        analysis.take(event);
    }
    analysis.finish(Some((0, to_ms * MS)))
}

fn at(ms: u64, cpu: u32, what: EventKind) -> Event {
    Event {
        time_ns: ms * MS,
        cpu,
        what,
    }
}

fn switch(ms: u64, cpu: u32, prev: Tid, next: Tid) -> Event {
    let left = LeaveReason::Blocked;
    at(ms, cpu, EventKind::Switch { prev, left, next })
}

fn preempt(ms: u64, cpu: u32, prev: Tid, next: Tid) -> Event {
    let left = LeaveReason::Preempted;
    at(ms, cpu, EventKind::Switch { prev, left, next })
}

fn wake(ms: u64, thread: Tid, target: u32) -> Event {
    at(ms, 0, EventKind::Wake { thread, target })
}

fn mask(thread: Tid, cpus: &str) -> Event {
    let cpus = Box::new(CpuSet::parse_list(cpus).unwrap());
    at(0, 0, EventKind::Mask { thread, cpus })
}

fn known(thread: Tid, process: Tid) -> Event {
    at(0, 0, EventKind::Known { thread, process })
}

fn follow(thread: Tid) -> Event {
    at(0, 0, EventKind::Follow { thread })
}

fn fork_at(ms: u64, parent: Tid, child: Tid, process: Tid) -> Event {
    let what = EventKind::Fork {
        parent,
        child,
        process,
    };
    at(ms, 0, what)
}

/// The first thread comes to a CPU.
fn came(ms: u64, cpu: u32) -> Event {
    at(ms, cpu, EventKind::In { thread: 1 })
}

/// The first thread leaves a CPU.
fn out(ms: u64, cpu: u32, left: LeaveReason) -> Event {
    at(ms, cpu, EventKind::Out { thread: 1, left })
}

/// Every CPU idles from the start.
fn idle(cpus: u32) -> Vec<Event> {
    let tick = |cpu| [switch(0, cpu, IDLE, 900), switch(0, cpu, 900, IDLE)];
    (0..cpus).flat_map(tick).collect()
}

fn analyse_on_smt(events: Vec<Event>, to_ms: u64) -> Summary {
    let all = [idle(8), events].concat();
    summary(SMT, Tier::Bpf.scope(), &all, to_ms)
}

#[test]
fn time_is_credited_to_the_right_thread() {
    let result = analyse_on_smt(
        vec![
            follow(1),
            switch(10, 0, IDLE, 1),
            switch(30, 0, 1, 7),
            switch(40, 0, 7, IDLE),
            switch(50, 2, IDLE, 1),
        ],
        100,
    );
    assert_eq!(result.cpu_ns, 70 * MS);
    assert_eq!(result.foreign_ns, Some(10 * MS));
    assert_eq!(result.idle_ns, Some((800 - 80) * MS));
    assert_eq!(result.switches, Some(1));
    assert_eq!(result.migrations.core, 1);
    assert_eq!(result.migrations.total(), 1);
    assert_eq!(result.by_thread[0].cpus, [(2, 50 * MS), (0, 20 * MS)]);
    assert_eq!(
        slices(&result),
        [(1, 10 * MS, 30 * MS), (1, 50 * MS, 100 * MS)]
    );
}

#[test]
fn the_first_switch_of_a_cpu_names_its_earlier_thread() {
    let events = [follow(1), switch(0, 1, IDLE, 9), switch(60, 0, 1, IDLE)];
    let result = summary("core:2 pu:1", Tier::CpuWide.scope(), &events, 100);
    assert_eq!(result.cpu_ns, 60 * MS);
    assert_eq!(result.idle_ns, Some(40 * MS));
}

#[test]
fn moves_are_counted_by_the_outermost_boundary() {
    let mut events = vec![follow(1)];
    for (step, pair) in [0, 1, 2, 4, 4].windows(2).enumerate() {
        let ms = step as u64 * 10;
        events.push(switch(ms + 1, pair[0], IDLE, 1));
        events.push(switch(ms + 2, pair[0], 1, IDLE));
        events.push(switch(ms + 3, pair[1], IDLE, 1));
        events.push(switch(ms + 4, pair[1], 1, IDLE));
    }
    let moves = analyse_on_smt(events, 50).migrations;
    assert_eq!(moves.smt, 1);
    assert_eq!(moves.core, 1);
    assert_eq!(moves.package, 1);
    assert_eq!(moves.total(), 3);
}

#[track_caller]
fn check_sharing(events: Vec<Event>, shared_ms: u64, avoidable_ms: [u64; 3]) {
    let result = analyse_on_smt(events, 100).sharing.unwrap();
    assert_eq!(result.shared / MS, shared_ms);
    let causes = result.avoidable.unwrap();
    let causes = [causes.scheduler, causes.mask, causes.others].map(|ns| ns / MS);
    assert_eq!(causes, avoidable_ms);
}

#[test]
fn avoidable_sharing_is_blamed() {
    let fork = fork_at(0, 1, 2, 1);
    let both = |extra: Vec<Event>| {
        let run = vec![switch(10, 0, IDLE, 1), switch(20, 1, IDLE, 2)];
        [vec![follow(1), fork.clone()], extra, run].concat()
    };
    check_sharing(both(vec![]), 160, [160, 0, 0]);
    check_sharing(both(vec![mask(1, "0-1"), mask(2, "0-1")]), 160, [0, 160, 0]);
    let full = |cpu| switch(5, cpu, IDLE, 50 + i32::try_from(cpu).unwrap());
    check_sharing(both(vec![full(2), full(4), full(6)]), 160, [0, 0, 0]);
    check_sharing(
        vec![follow(1), switch(10, 0, IDLE, 1), switch(20, 1, IDLE, 7)],
        80,
        [0, 0, 80],
    );
}

#[track_caller]
fn check_waits(events: Vec<Event>, causes_ms: [u64; 5]) -> Summary {
    let result = analyse_on_smt(events, 100);
    let causes = result.waits.causes.unwrap();
    let list = [
        causes.scheduler,
        causes.mask,
        causes.others,
        causes.own,
        causes.starting,
    ];
    assert_eq!(list.map(|ns| ns / MS), causes_ms);
    assert_eq!(result.waits.total_ns, Some(list.iter().sum()));
    result
}

#[test]
fn waits_have_causes() {
    let result = check_waits(
        vec![
            follow(1),
            switch(10, 0, IDLE, 1),
            preempt(20, 0, 1, 7),
            preempt(50, 0, 7, 1),
        ],
        [30, 0, 0, 0, 0],
    );
    assert_eq!(result.idle_waiting.unwrap().scheduler, 30 * MS);
    assert_eq!(result.waits.longest_ns, Some(30 * MS));
    check_waits(
        vec![
            follow(1),
            mask(1, "0"),
            switch(10, 0, IDLE, 1),
            preempt(20, 0, 1, 7),
            preempt(50, 0, 7, 1),
        ],
        [0, 30, 0, 0, 0],
    );
}

#[test]
fn a_wake_up_on_an_idle_cpu_is_latency_not_waste() {
    let result = check_waits(
        vec![follow(1), wake(10, 1, 3), switch(14, 3, IDLE, 1)],
        [0, 0, 0, 0, 4],
    );
    assert_eq!(result.wakeups, Some(1));
    assert_eq!(result.idle_waiting.unwrap().episodes, 0);
    // Another thread was taken first: from then on it is queued behind it.
    check_waits(
        vec![
            follow(1),
            wake(10, 1, 3),
            switch(14, 3, IDLE, 7),
            switch(20, 3, 7, 1),
        ],
        [6, 0, 0, 0, 4],
    );
}

/// A thread of this class waits 30 ms after a preemption behind another program, with idle CPUs or
/// without.
#[track_caller]
fn check_class(class: SchedulingClass, others_idle: bool, expected: WaitCauseTotals) {
    let busy = (1..8).map(|cpu| switch(1, cpu, IDLE, Tid::try_from(100 + cpu).unwrap()));
    let busy = busy.filter(|_| !others_idle);
    let mut events = vec![follow(1), poll_in_class(class)];
    events.extend(busy);
    events.extend([
        switch(10, 0, IDLE, 1),
        preempt(20, 0, 1, 7),
        preempt(50, 0, 7, 1),
    ]);
    let result = analyse_on_smt(events, 100);
    assert_eq!(result.waits.causes, Some(expected), "{class:?}");
    let idle = result.idle_waiting.unwrap();
    assert_eq!(idle.scheduler, expected.scheduler, "{class:?}");
    assert_eq!(idle.episodes, u64::from(expected.scheduler > 0));
}

fn poll_in_class(class: SchedulingClass) -> Event {
    let EventKind::Sample(mut sample) = poll_event(0, 0, 0, false).what else {
        unreachable!()
    };
    sample.class = Some(class);
    at(0, 0, EventKind::Sample(sample))
}

#[test]
fn the_limits_of_a_class_are_a_cause_of_their_own() {
    let none = WaitCauseTotals::default();
    let class = WaitCauseTotals {
        class: 30 * MS,
        ..none
    };
    let scheduler = WaitCauseTotals {
        scheduler: 30 * MS,
        ..none
    };
    let others = WaitCauseTotals {
        others: 30 * MS,
        ..none
    };
    for others_idle in [true, false] {
        check_class(SchedulingClass::Deadline, others_idle, class);
        check_class(SchedulingClass::RealTime, others_idle, class);
    }
    check_class(SchedulingClass::Idle, true, scheduler);
    check_class(SchedulingClass::Idle, false, class);
    check_class(SchedulingClass::Normal, true, scheduler);
    check_class(SchedulingClass::Normal, false, others);
}

#[test]
fn waits_behind_others_and_behind_own_threads_are_distinguished() {
    let busy: Vec<Event> = (0..8).map(|cpu| switch(1, cpu, IDLE, 100)).collect();
    let busy: Vec<Event> = (100..)
        .zip(busy)
        .map(|(tid, event)| switch(1, event.cpu, IDLE, tid))
        .collect();
    let fork = fork_at(0, 1, 102, 1);
    let waits = vec![
        wake(10, 1, 0),
        preempt(20, 0, 100, 1),
        switch(30, 0, 1, 100),
        wake(40, 1, 2),
        preempt(50, 2, 102, 1),
    ];
    check_waits(
        [vec![follow(1), fork], busy, waits].concat(),
        // 102 was preempted at 50 and waits behind thread 1 to the end.
        [0, 0, 10, 60, 0],
    );
}

#[test]
fn who_wakes_a_thread_is_known_if_a_thread_ran_there() {
    let result = analyse_on_smt(
        vec![
            follow(1),
            follow(2),
            follow(3),
            known(1, 1),
            known(2, 1),
            known(900, 900),
            switch(10, 0, IDLE, 2),
            wake(20, 1, 3),
            switch(21, 3, IDLE, 1),
            switch(31, 3, 1, IDLE),
            // By an interrupt, on a CPU that idles.
            at(
                40,
                5,
                EventKind::Wake {
                    thread: 1,
                    target: 3,
                },
            ),
            switch(41, 3, IDLE, 1),
            switch(42, 3, 1, IDLE),
            // By a timer, while another program ran there.
            switch(50, 6, IDLE, 900),
            at(
                51,
                6,
                EventKind::Wake {
                    thread: 1,
                    target: 3,
                },
            ),
        ],
        100,
    );
    let woken = result.by_thread.iter().find(|t| t.thread == 1).unwrap();
    assert_eq!(
        (woken.wakers.wakes, &woken.wakers.threads[..]),
        (3, &[(2, 1)][..])
    );
    // Thread 3 slept: what the others waited is no smaller share for that.
    assert_eq!(result.life_ns, 200 * MS);
}

#[test]
fn the_most_frequent_wakers_of_many_are_kept() {
    let mut wakers = Wakers::default();
    for tid in 0..1_000 {
        wakers.add(Some(100 + tid));
        wakers.add(Some(7));
    }
    assert_eq!(wakers.wakes, 2_000);
    let most = wakers
        .threads
        .iter()
        .max_by_key(|(_, times)| *times)
        .unwrap();
    assert!(
        most.0 == 7 && most.1 > 500 && wakers.threads.len() <= 8,
        "{wakers:?}"
    );
}

#[test]
fn lost_time_counts_for_no_thread() {
    let result = analyse_on_smt(
        vec![
            follow(1),
            switch(10, 0, IDLE, 1),
            at(40, 0, EventKind::Lost { records: 5 }),
            switch(50, 0, 7, 1),
            switch(60, 0, 1, IDLE),
        ],
        100,
    );
    assert_eq!(result.cpu_ns, 10 * MS);
    assert_eq!(result.unknown.records, 5);
    assert_eq!(result.unknown.lost_ns, 30 * MS);
    assert_eq!(result.unknown.contradictions, 0);
}

#[test]
fn more_lost_records_than_can_be_counted_are_the_most() {
    let lost = |ms| at(ms, 0, EventKind::Lost { records: u64::MAX });
    let result = analyse_on_smt(vec![follow(1), lost(10), lost(20)], 100);
    assert_eq!(result.unknown.records, u64::MAX);
}

#[test]
fn a_cpu_without_events_of_its_idle_task_is_reported() {
    let leaves = |ms| switch(ms, 0, 1, IDLE);
    let comes = |ms| switch(ms, 0, IDLE, 1);
    let on = |events: Vec<Event>| analyse_on_smt([vec![follow(1)], events].concat(), 100).unknown;
    let silent = on((1..8).map(|k| leaves(10 * k)).collect());
    assert_eq!(silent.idle_task_unseen, [0]);
    // Once may be chance, and lost records are known to be lost.
    let once = on(vec![
        comes(5),
        leaves(10),
        leaves(20),
        comes(30),
        leaves(40),
    ]);
    assert_eq!(once.contradictions, 1);
    assert!(once.idle_task_unseen.is_empty());
    let lost = |ms| at(ms, 0, EventKind::Lost { records: 1 });
    let lossy = on((1..8)
        .flat_map(|k| [lost(10 * k - 5), leaves(10 * k)])
        .collect());
    assert!(lossy.idle_task_unseen.is_empty());
}

#[test]
fn a_number_that_comes_again_is_another_thread() {
    let fork = |ms| fork_at(ms, 1, 2, 1);
    let result = analyse_on_smt(
        vec![
            follow(1),
            fork(1),
            switch(10, 0, IDLE, 2),
            at(20, 0, EventKind::Exit { thread: 2 }),
            switch(20, 0, 2, IDLE),
            fork(30),
            switch(40, 4, IDLE, 2),
            switch(45, 4, 2, IDLE),
        ],
        100,
    );
    assert_eq!(result.threads, 3);
    assert_eq!(
        result.migrations.total(),
        0,
        "two threads, not one that moved"
    );
    assert_eq!(result.cpu_ns, 15 * MS);
}

/// The first switch of a CPU credits the leaving thread with all the time before, but a thread that
/// ended elsewhere has had that time already.
#[test]
fn a_thread_that_ended_elsewhere_was_not_here_since_the_beginning() {
    let ended = EventKind::Switch {
        prev: 4,
        left: LeaveReason::Ended,
        next: IDLE,
    };
    let events = vec![
        switch(0, 0, IDLE, IDLE),
        at(10, 1, ended),
        switch(20, 2, 4, IDLE),
    ];
    let result = summary(SMT, Tier::Bpf.scope(), &events, 30);
    assert_eq!(result.cpu_ns, 10 * MS);
    check_timeline(&result);
}

/// A thread that leaves a CPU did not wait on another one, whatever was reported before; and losses
/// of that CPU do not concern it.
#[test]
fn a_thread_that_leaves_a_cpu_waits_on_no_other() {
    let events = vec![
        switch(0, 7, IDLE, 2),
        switch(0, 7, 2, IDLE),
        wake(0, 1, 7),
        switch(5, 1, 1, 1),
        at(5, 7, EventKind::Lost { records: 3 }),
        came(10, 0),
    ];
    let result = summary(SMT, Tier::Bpf.scope(), &events, 20);
    assert_eq!(result.waits.total_ns, Some(0));
    check_timeline(&result);
}

#[test]
fn without_a_named_thread_all_are_followed() {
    let result = analyse_on_smt(vec![switch(10, 0, IDLE, 1), switch(30, 0, 1, IDLE)], 100);
    assert_eq!(result.cpu_ns, 20 * MS);
    assert_eq!(result.foreign_ns, Some(0));
}

#[test]
fn halves_of_switches_are_reported_for_followed_threads_only() {
    let events = [
        follow(1),
        out(10, 0, LeaveReason::Preempted),
        came(14, 1),
        out(20, 1, LeaveReason::Blocked),
    ];
    let result = summary(SMT, Tier::Switch.scope(), &events, 30);
    assert_eq!(result.cpu_ns, 16 * MS, "on a CPU since it was named");
    assert_eq!(result.switches, Some(2));
    assert_eq!(result.waits.after_preemption_ns, Some(4 * MS));
    assert_eq!(result.waits.total_ns, None, "wake-ups are not seen");
    assert_eq!(result.idle_ns, None);
    assert_eq!(result.migrations.smt, 1);
    assert_eq!(result.sharing.unwrap().avoidable, None);
}

#[test]
fn polling_reports_the_kernels_counts() {
    let sample = |ms, cpu, run_ms, migrations| {
        let sample = Sample {
            thread: 1,
            cpu,
            is_runnable: true,
            run_ns: run_ms * MS,
            wait_ns: Some(run_ms * MS / 10),
            migrations: Some(migrations),
            voluntary: Some(3),
            involuntary: Some(migrations),
            ..Sample::default()
        };
        at(ms, cpu, EventKind::Sample(Box::new(sample)))
    };
    let events = [
        follow(1),
        sample(0, 0, 50, 1),
        sample(10, 0, 60, 1),
        sample(20, 4, 70, 5),
    ];
    let result = summary(SMT, Tier::Proc.scope(), &events, 20);
    assert_eq!(result.cpu_ns, 20 * MS);
    assert_eq!(result.switches, Some(4));
    assert_eq!(result.waits.total_ns, Some(2 * MS));
    assert!(result.waits.is_from_kernel);
    assert_eq!(result.migrations.package, 1);
    assert_eq!(result.migrations.unknown, 3);
    assert_eq!(result.sharing, None);
}

/// The kernel's count of moves is read at every tenth poll: it includes moves that were seen in
/// between.
#[test]
fn moves_that_were_seen_are_not_counted_again() {
    let sample = |ms, cpu, migrations| {
        let sample = Sample {
            thread: 1,
            cpu,
            is_runnable: true,
            run_ns: ms * MS,
            wait_ns: Some(0),
            migrations: Some(migrations),
            voluntary: Some(0),
            involuntary: Some(0),
            ..Sample::default()
        };
        at(ms, cpu, EventKind::Sample(Box::new(sample)))
    };
    let events = [
        follow(1),
        sample(0, 0, 10),
        sample(10, 4, 10),
        sample(20, 0, 10),
        sample(30, 4, 10),
        // Three of these were seen; a fourth happened between two polls.
        sample(40, 4, 14),
        sample(50, 0, 15),
    ];
    let result = summary(SMT, Tier::Proc.scope(), &events, 50);
    assert_eq!(result.migrations.package, 4);
    assert_eq!(result.migrations.unknown, 1);
}

/// Ending threads come back after they seemed to be gone, and polls may be late: they are the same
/// threads. A new thread with a reused id is another.
#[test]
fn a_returning_thread_is_reported_once() {
    let switch = |ms, prev, left, next| at(ms, 0, EventKind::Switch { prev, left, next });
    let name = || {
        let (thread, name) = (1, "one".into());
        at(16, 0, EventKind::Name { thread, name })
    };
    let mut events = vec![
        follow(1),
        at(0, 0, EventKind::Follow { thread: 9 }),
        switch(0, 0, LeaveReason::Unreported, 1),
        switch(10, 1, LeaveReason::Ended, 0),
        switch(15, 0, LeaveReason::Unreported, 1),
        name(),
        switch(18, 1, LeaveReason::Ended, 0),
        name(),
    ];
    let result = summary(SMT, Tier::CpuWide.scope(), &events, 20);
    assert_eq!(result.threads, 2);
    let of_one = |result: &Summary| -> Vec<(u64, Option<u64>)> {
        let ones = result.by_thread.iter().filter(|thread| thread.thread == 1);
        ones.map(|thread| (thread.cpu_ns, thread.switches))
            .collect()
    };
    assert_eq!(of_one(&result), [(13 * MS, Some(2))]);
    assert_eq!(result.by_thread[0].name, "one");
    events.extend([
        fork_at(20, 9, 1, 1),
        switch(20, 0, LeaveReason::Unreported, 1),
        switch(25, 1, LeaveReason::Ended, 0),
    ]);
    let result = summary(SMT, Tier::CpuWide.scope(), &events, 30);
    assert_eq!(result.threads, 3);
    assert_eq!(of_one(&result), [(13 * MS, Some(2)), (5 * MS, Some(1))]);
}

/// The command's first child may exist when the command is polled, before the stream reports its
/// beginning.
#[test]
fn a_thread_that_is_known_before_it_begins_is_reported_once() {
    let know = |thread| {
        let process = thread;
        at(0, 0, EventKind::Known { thread, process })
    };
    let fork = |ms| fork_at(ms, 1, 2, 2);
    let switch = |ms, prev, left, next| at(ms, 0, EventKind::Switch { prev, left, next });
    let mut events = vec![
        know(1),
        follow(1),
        know(2),
        follow(2),
        fork(3),
        switch(5, 0, LeaveReason::Unreported, 2),
        switch(9, 2, LeaveReason::Blocked, 0),
    ];
    let result = summary(SMT, Tier::CpuWide.scope(), &events, 20);
    assert_eq!((result.threads, result.by_thread.len()), (2, 2));
    // A thread that has run is another one.
    events.push(fork(12));
    let result = summary(SMT, Tier::CpuWide.scope(), &events, 20);
    assert_eq!((result.threads, result.by_thread.len()), (3, 3));
}

/// If wake-ups are not seen, the kernel's last report before a thread's end may be incomplete.
#[test]
fn waits_of_threads_that_ended_unseen_are_lower_bounds() {
    let look = |ms, wait_ms: u64, is_last| {
        let sample = Sample {
            thread: 1,
            is_runnable: true,
            wait_ns: Some(wait_ms * MS),
            is_last,
            ..Sample::default()
        };
        at(ms, 0, EventKind::Sample(Box::new(sample)))
    };
    let end = |ms| at(ms, 0, EventKind::Exit { thread: 1 });
    #[track_caller]
    fn check(events: &[Event], total_ms: Option<u64>, is_bound: bool) {
        let result = summary(SMT, Tier::Switch.scope(), events, 200);
        assert_eq!(result.waits.total_ns, total_ms.map(|ms| ms * MS));
        assert_eq!(result.waits.is_lower_bound, is_bound);
        assert_eq!(result.by_thread[0].is_wait_lower_bound, is_bound);
    }
    let whole = [follow(1), look(0, 5, false), look(90, 45, true), end(90)];
    check(&whole, Some(40), false);
    check(&[follow(1), look(0, 5, false), end(90)], Some(0), true);
    check(&[follow(1), end(90)], None, true);
    // The last poll was a moment before the end.
    let late = [follow(1), look(0, 5, false), look(90, 65, false), end(91)];
    check(&late, Some(60), false);
    // A wait after a preemption was seen, which is longer.
    let seen = [
        follow(1),
        look(0, 5, false),
        came(0, 0),
        out(10, 0, LeaveReason::Preempted),
        came(40, 0),
        end(90),
    ];
    check(&seen, Some(30), true);
}

/// A thread that perf reports, preempted several times for 10 ms each; then the kernel's report of
/// its time queued, ms.
fn preempt_often(times: u64, reported_ms: u64, ends: bool) -> Vec<Event> {
    let (thread, left) = (1, LeaveReason::Preempted);
    let mut events = vec![follow(1), poll_event(0, 0, 0, false)];
    for turn in 0..times {
        events.push(at(20 * turn, 0, EventKind::In { thread }));
        events.push(at(20 * turn + 10, 0, EventKind::Out { thread, left }));
    }
    events.push(at(20 * times, 0, EventKind::In { thread }));
    let last = poll_event(20 * times, 10 * times, reported_ms, true);
    events.push(last);
    if ends {
        let left = LeaveReason::Ended;
        events.push(at(20 * times, 0, EventKind::Out { thread, left }));
        events.push(at(20 * times, 0, EventKind::Exit { thread }));
    }
    events
}

/// Perf's records of a thread stop before it has torn down its memory: it may be queued once more.
#[test]
fn waits_after_the_last_record_of_a_thread_are_unseen() {
    let check = |tier: Tier, times: u64, ends: bool, is_bound: bool| {
        let events = preempt_often(times, 10 * times, ends);
        let result = summary(SMT, tier.scope(), &events, 20 * times);
        assert_eq!(result.waits.total_ns, Some(10 * times * MS));
        assert_eq!(result.waits.is_lower_bound, is_bound, "{tier} {times}");
        assert_eq!(result.by_thread[0].is_wait_lower_bound, is_bound);
    };
    check(Tier::Switch, 10, true, true);
    check(Tier::Switch, 10, false, false);
    // One more wait would be little.
    check(Tier::Switch, 100, true, false);
    check(Tier::CpuWide, 10, true, false);
}

/// A thread that yields all the time seems queued while it is switched, and so does one with a
/// missing arrival until its next one.
#[test]
fn events_have_no_more_waits_than_the_kernel_reported() {
    let waited_ns = |reported_ms| {
        let mut events = preempt_often(200, reported_ms, false);
        for event in &mut events {
            // 10 us instead of 10 ms.
            event.time_ns /= 1_000;
        }
        let result = summary(SMT, Tier::Switch.scope(), &events, 4);
        result.waits.total_ns.unwrap()
    };
    // Events have 2 ms.
    assert_eq!(waited_ns(1), MS);
    assert_eq!(waited_ns(2), 2 * MS);
}

fn poll_event(ms: u64, run_ms: u64, wait_ms: u64, is_last: bool) -> Event {
    let sample = Sample {
        thread: 1,
        run_ns: run_ms * MS,
        wait_ns: Some(wait_ms * MS),
        is_last,
        ..Sample::default()
    };
    at(ms, 0, EventKind::Sample(Box::new(sample)))
}

#[test]
fn a_wrong_guess_of_a_cpus_thread_contradicts_nothing() {
    let mut runnable = poll_event(0, 500, 70, false);
    if let EventKind::Sample(sample) = &mut runnable.what {
        sample.is_runnable = true;
    }
    let events = vec![follow(1), runnable, switch(0, 0, 7, 8), switch(5, 0, 8, 1)];
    let result = summary(SMT, Tier::Bpf.scope(), &events, 10);
    assert_eq!(result.unknown.contradictions, 0);
    assert_eq!(result.cpu_ns, 5 * MS);
}

/// Linux 6.18 calls no tracepoint while certain threads are on a CPU.
#[test]
fn the_kernels_counts_replace_missing_events() {
    let check = |events: Vec<Event>, cpu_ms: u64, wait_ms: u64, switches: Option<u64>| {
        let result = analyse_on_smt([vec![follow(1)], events].concat(), 100);
        let thread = &result.by_thread[0];
        assert_eq!((result.cpu_ns, thread.cpu_ns), (cpu_ms * MS, cpu_ms * MS));
        assert_eq!(thread.wait_ns, Some(wait_ms * MS));
        assert_eq!(result.waits.total_ns, Some(wait_ms * MS));
        assert_eq!(thread.switches, switches);
        assert_eq!(result.waits.causes.is_some(), switches.is_some());
        assert_eq!(result.unknown.hidden_threads, u64::from(switches.is_none()));
        assert!(!thread.is_wait_lower_bound && !result.waits.is_lower_bound);
    };
    let looks = || {
        (
            poll_event(0, 500, 70, false),
            poll_event(100, 560, 75, true),
        )
    };
    let seen = || {
        vec![
            wake(10, 1, 0),
            switch(15, 0, IDLE, 1),
            switch(75, 0, 1, IDLE),
        ]
    };
    check(vec![looks().0, looks().1], 60, 5, None);
    check(
        [vec![looks().0], seen(), vec![looks().1]].concat(),
        60,
        5,
        Some(1),
    );
    // Switches without events are taken from the kernel's count.
    let counted = |mut look: Event, voluntary, involuntary| {
        if let EventKind::Sample(sample) = &mut look.what {
            sample.voluntary = Some(voluntary);
            sample.involuntary = Some(involuntary);
        }
        look
    };
    let counts = [
        follow(1),
        counted(looks().0, 100, 10),
        counted(looks().1, 140, 12),
    ];
    let result = analyse_on_smt(counts.into(), 100);
    assert_eq!((result.switches, result.preemptions), (Some(42), Some(2)));
    let unknown = &result.unknown;
    assert_eq!((unknown.hidden_threads, unknown.hidden_uncounted), (1, 0));
    // It was last polled before its end.
    let part = [
        poll_event(0, 500, 70, false),
        poll_event(60, 550, 75, false),
    ];
    let result = analyse_on_smt([vec![follow(1)], part.into()].concat(), 100);
    assert_eq!(result.cpu_ns, 50 * MS);
    assert!(result.waits.is_lower_bound && result.by_thread[0].is_wait_lower_bound);
}

/// The kernel reports a thread early during its exit: later queuing time is in no figure.
#[test]
fn waits_after_the_kernels_report_of_an_end_are_missing() {
    let check = |life_ms: u64, run_ms: u64, is_bound: bool| {
        let mut report = poll_event(90, run_ms, 20, true);
        if let EventKind::Sample(sample) = &mut report.what {
            sample.life_ns = Some(life_ms * MS);
        }
        let mut parent = poll_event(0, 0, 0, true);
        if let EventKind::Sample(sample) = &mut parent.what {
            sample.thread = 9;
        }
        let left = LeaveReason::Blocked;
        let events = [
            follow(9),
            parent,
            fork_at(10, 9, 1, 1),
            came(20, 0),
            at(90, 0, EventKind::Out { thread: 1, left }),
            report,
            at(90, 0, EventKind::Exit { thread: 1 }),
        ];
        let waits = summary(SMT, Tier::Switch.scope(), &events, 100).waits;
        assert_eq!(waits.total_ns, Some(20 * MS));
        assert_eq!(waits.is_lower_bound, is_bound, "{life_ms} {run_ms}");
    };
    check(80, 70, false);
    check(70, 70, true);
    // It ran ever since.
    check(70, 60, false);
}

/// A hypervisor that takes the CPU from a thread is not seen in events; the kernel's own account
/// excludes that time.
#[test]
fn cpu_time_is_the_kernels_without_stolen_time() {
    let came = |ms| came(ms, 0);
    let went = |ms| out(ms, 0, LeaveReason::Blocked);
    let fork = || vec![follow(9), fork_at(0, 9, 1, 1)];
    let check = |events: &[Event], expected_ms: u64| {
        let all = [&fork()[..], events].concat();
        let result = summary(SMT, Tier::Switch.scope(), &all, 100);
        assert_eq!(result.cpu_ns, expected_ms * MS);
    };
    check(&[came(10), went(90), poll_event(90, 60, 0, true)], 60);
    // The kernel's figure may be slightly old.
    check(&[came(10), went(90), poll_event(90, 60, 0, false)], 80);
    check(&[came(10), went(90), poll_event(90, 79, 0, true)], 80);
    // The kernel reports before the very end.
    let end = at(95, 0, EventKind::Exit { thread: 1 });
    check(&[came(10), poll_event(90, 60, 0, true), end], 65);
    // A thread from before the trace may have run a while before its first poll.
    let there = |last_ms, expected_ms, doubtful_ms| {
        let events = [
            follow(1),
            poll_event(0, 30, 0, false),
            came(0),
            went(90),
            poll_event(90, last_ms, 0, true),
        ];
        let result = summary(SMT, Tier::Switch.scope(), &events, 100);
        assert_eq!(result.cpu_ns, expected_ms * MS);
        assert_eq!(result.unknown.doubtful_cpu_ns, doubtful_ms * MS);
    };
    there(75, 90, 45);
    there(65, 35, 0);
    there(120, 90, 0);
}

/// A switch is missing: the thread next seen leaving the CPU was on it, for an unknown time.
#[test]
fn waits_with_an_unseen_end_are_missing_in_the_total() {
    let check = |missing: bool, total_ms: u64, is_bound: bool| {
        let mut events = vec![
            follow(1),
            switch(10, 0, IDLE, 7),
            wake(20, 1, 0),
            switch(50, 0, 7, 1),
            preempt(60, 0, 1, 7),
            switch(70, 0, 7, 1),
        ];
        if missing {
            events.remove(3);
        }
        let result = analyse_on_smt(events, 100);
        assert_eq!(result.waits.total_ns, Some(total_ms * MS));
        assert_eq!(result.waits.is_lower_bound, is_bound);
    };
    check(false, 40, false);
    check(true, 10, true);
    // When the followed thread left is unknown: it may have been queued.
    let events = vec![
        follow(1),
        switch(10, 0, IDLE, 1),
        switch(60, 0, IDLE, 7),
        switch(70, 0, 7, 1),
    ];
    assert!(analyse_on_smt(events, 100).waits.is_lower_bound);
    // For other threads it does not matter.
    let events = vec![
        follow(1),
        switch(10, 0, IDLE, 1),
        switch(10, 1, IDLE, 7),
        switch(60, 1, 8, IDLE),
    ];
    assert!(!analyse_on_smt(events, 100).waits.is_lower_bound);
}

/// A quota may cause waits behind none of the program's threads: the CPU time for which that was
/// so.
#[test]
fn time_of_cpus_that_hold_threads_back_is_counted() {
    let switch = |ms, prev, left, next| at(ms, 0, EventKind::Switch { prev, left, next });
    let events = [
        follow(1),
        follow(2),
        switch(0, 0, LeaveReason::Unreported, 1),
        at(
            5,
            0,
            EventKind::Wake {
                thread: 2,
                target: 0,
            },
        ),
        switch(10, 1, LeaveReason::Preempted, 7),
        switch(40, 7, LeaveReason::Blocked, 2),
        switch(50, 2, LeaveReason::Blocked, 0),
        switch(55, 0, LeaveReason::Blocked, 1),
    ];
    let result = summary(SMT, Tier::Bpf.scope(), &events, 60);
    assert_eq!(result.waits.occupied_cpu_ns, 35 * MS);
}

fn any_what() -> impl Strategy<Value = EventKind> {
    let tid = || 0i32..6;
    let left = prop_oneof![
        Just(LeaveReason::Blocked),
        Just(LeaveReason::Preempted),
        Just(LeaveReason::Ended),
        Just(LeaveReason::Unreported)
    ];
    prop_oneof![
        8 => (tid(), left.clone(), tid()).prop_map(|(prev, left, next)| EventKind::Switch { prev, left, next }),
        2 => tid().prop_map(|thread| EventKind::In { thread }),
        2 => (tid(), left).prop_map(|(thread, left)| EventKind::Out { thread, left }),
        4 => (tid(), 0u32..9).prop_map(|(thread, target)| EventKind::Wake { thread, target }),
        1 => (tid(), tid(), tid()).prop_map(|(parent, child, process)| EventKind::Fork { parent, child, process }),
        1 => tid().prop_map(|thread| EventKind::Exit { thread }),
        1 => tid().prop_map(|thread| EventKind::Follow { thread }),
        1 => (tid(), 1u64..256).prop_map(|(thread, bits)| EventKind::Mask {
            thread,
            cpus: Box::new(CpuSet::from_words(vec![bits]))
        }),
        1 => (0u64..9).prop_map(|records| EventKind::Lost { records }),
    ]
}

proptest! {
    #[test]
    fn nothing_is_counted_twice_whatever_the_events(
        whats in prop::collection::vec((0u64..3, 0u32..9, any_what()), 0..300),
        tier in 0usize..5,
    ) {
        let mut time_ns = 0;
        let mut events = Vec::new();
        for (step, cpu, what) in whats {
            time_ns += step * MS;
            events.push(Event { time_ns, cpu, what });
        }
        let scope = Tier::ALL[tier].scope();
        let result = summary(SMT, scope, &events, time_ns / MS + 5);
        let elapsed = result.to_ns - result.from_ns;
        for cpu in &result.by_cpu {
            let known = cpu.own_ns + cpu.foreign_ns.unwrap_or(0) + cpu.idle_ns.unwrap_or(0);
            prop_assert!(known <= elapsed, "CPU {} {known} of {elapsed}", cpu.cpu);
        }
        let by_cpu: u64 = result.by_cpu.iter().map(|cpu| cpu.own_ns).sum();
        prop_assert_eq!(by_cpu, result.cpu_ns);
        if let Some(causes) = result.waits.causes {
            let behind = causes.others + causes.own;
            let sum = causes.scheduler + causes.mask + behind + causes.starting + causes.class;
            prop_assert_eq!(Some(sum), result.waits.total_ns);
            let idle: u64 = result.by_cpu.iter().filter_map(|cpu| cpu.idle_ns).sum();
            let beside_idle = causes.scheduler + causes.mask;
            let is_whole = result.unknown.contradictions == 0 && result.unknown.windows == 0;
            prop_assert!(!is_whole || beside_idle <= idle, "{beside_idle} of {idle}");
            let episodes = result.idle_waiting.unwrap();
            prop_assert!(episodes.scheduler <= causes.scheduler && episodes.mask <= causes.mask);
            prop_assert!(episodes.longest <= episodes.scheduler + episodes.mask);
            prop_assert!(Some(episodes.longest) <= result.waits.longest_ns);
        }
        if let Some(sharing) = result.sharing {
            let avoidable = sharing.avoidable.map_or(0, |a| a.total());
            prop_assert!(avoidable <= sharing.shared);
            prop_assert!(sharing.shared <= result.cpu_ns);
        }
        check_timeline(&result);
    }
}

/// Threads with their unpacked slices: start and end.
fn slices(result: &Summary) -> Vec<(Tid, u64, u64)> {
    let packed = result.timeline.packed.as_ref().unwrap();
    let mut slices = Vec::new();
    for cpu in &packed.cpus {
        let mut rest = &cpu.bytes[..];
        let mut time_ns = result.from_ns;
        for _ in 0..cpu.count {
            let mut take = || take_varint(&mut rest).unwrap();
            let start_ns = time_ns + take();
            time_ns = start_ns + take();
            let thread = packed.threads[usize::try_from(take() >> 2).unwrap()];
            slices.push((thread, start_ns, time_ns));
        }
        assert!(rest.is_empty());
    }
    slices
}

/// The timeline agrees with the figures: no thread is at two places at once, and the parts sum to
/// the wholes.
#[track_caller]
fn check_timeline(result: &Summary) {
    let timeline = &result.timeline;
    let mut stays = slices(result);
    let drawn: u64 = stays.iter().map(|(_, start, end)| end - start).sum();
    // Polling counts CPU time without seeing slices.
    assert!(drawn <= result.cpu_ns);
    if let Some(waits) = &timeline.waits {
        stays.extend(waits.waits.iter().map(|w| (w.thread, w.start_ns, w.end_ns)));
        let kept: u64 = waits.waits.iter().map(|w| w.end_ns - w.start_ns).sum();
        if let Some(causes) = result.waits.causes {
            let counted =
                causes.scheduler + causes.mask + causes.others + causes.own + causes.starting;
            assert_eq!(kept + waits.left_out.ns, counted);
        }
    }
    stays.retain(|(_, start, end)| start < end);
    stays.sort_unstable();
    for pair in stays.windows(2) {
        let [(one, _, end), (other, start, _)] = pair else {
            unreachable!()
        };
        assert!(one != other || end <= start, "{pair:?}");
    }
    let avoidable = result.sharing.and_then(|sharing| sharing.avoidable);
    assert_eq!(avoidable.is_some(), timeline.sharing.is_some());
    if let (Some(avoidable), Some(sharing)) = (avoidable, &timeline.sharing) {
        let sum = |blame: SharingCause| -> u64 {
            let spans = sharing.spans.iter().filter(|span| span.blame == blame);
            let ns = spans.map(|s| (s.end_ns - s.start_ns) * u64::from(s.threads));
            ns.sum()
        };
        let drawn = [
            SharingCause::Scheduler,
            SharingCause::Mask,
            SharingCause::Others,
        ]
        .map(sum);
        assert_eq!(
            drawn,
            [avoidable.scheduler, avoidable.mask, avoidable.others]
        );
    }
}

#[test]
fn waits_and_sharing_are_drawn() {
    let fork = fork_at(0, 1, 2, 1);
    let result = analyse_on_smt(
        vec![
            follow(1),
            fork,
            switch(10, 0, IDLE, 1),
            switch(20, 1, IDLE, 2),
            preempt(40, 1, 2, 7),
            preempt(70, 1, 7, 2),
        ],
        100,
    );
    check_timeline(&result);
    let waits = result.timeline.waits.unwrap();
    assert_eq!(
        waits.waits,
        [Wait {
            thread: 2,
            cpu: 1,
            start_ns: 40 * MS,
            end_ns: 70 * MS,
            why: WaitCause::Scheduler,
        }]
    );
    let spans = result.timeline.sharing.unwrap().spans;
    let spans: Vec<_> = spans
        .iter()
        .map(|s| (s.core, s.start_ns / MS, s.end_ns / MS, s.threads, s.blame))
        .collect();
    assert_eq!(
        spans,
        [
            (0, 20, 40, 2, SharingCause::Scheduler),
            (0, 40, 70, 1, SharingCause::Others),
            (0, 70, 100, 2, SharingCause::Scheduler),
        ]
    );
}
