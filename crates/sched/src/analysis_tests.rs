//! Analyses short lists of events whose results are obvious.

mod invariants_tests;
mod kernel_counts_tests;

use super::{
    Analysis, Event, EventKind, IDLE, LeaveReason, OtherProgram, Sample, SchedulingClass, Scope,
    SharingCause, Summary, Tid, Tier, Wait, WaitCause, WaitCauseTotals, Wakers, take_varint,
};
use pinwise_topology::{CpuSet, Topology};

const MS: u64 = 1_000_000;
/// 4 cores of 2 CPUs in two packages.
const SMT: &str = "package:2 l3:1 core:2 pu:2";

fn analyse(machine: &str, scope: Scope, events: &[Event], to_ms: u64) -> Summary {
    let topology = Topology::from_synthetic(machine).unwrap();
    let mut analysis = Analysis::new(&topology, scope);
    for event in events {
        analysis.add_event(event);
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

/// Thread 1 arrives on a CPU.
fn arrive(ms: u64, cpu: u32) -> Event {
    at(ms, cpu, EventKind::In { thread: 1 })
}

/// Thread 1 leaves a CPU.
fn leave(ms: u64, cpu: u32, left: LeaveReason) -> Event {
    at(ms, cpu, EventKind::Out { thread: 1, left })
}

/// Events after which these CPUs are known to be idle.
fn idle(cpus: u32) -> Vec<Event> {
    let tick = |cpu| [switch(0, cpu, IDLE, 900), switch(0, cpu, 900, IDLE)];
    (0..cpus).flat_map(tick).collect()
}

fn analyse_on_smt(events: Vec<Event>, to_ms: u64) -> Summary {
    let all = [idle(8), events].concat();
    analyse(SMT, Tier::Bpf.scope(), &all, to_ms)
}

#[test]
fn processes_that_existed_before_the_trace_were_not_started_in_it() {
    let events = [
        known(1, 1),
        follow(1),
        known(5, 5),
        follow(5),
        fork_at(1, 1, 2, 1),
        fork_at(2, 1, 3, 3),
        fork_at(3, 3, 4, 4),
        // Of another program.
        fork_at(4, 9, 10, 10),
    ];
    let summary = analyse(SMT, Tier::Bpf.scope(), &events, 10);
    assert_eq!((summary.processes, summary.started_processes), (4, 2));
}

#[test]
fn time_counts_for_the_thread_on_the_cpu() {
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
        unpack_slices(&result),
        [(1, 10 * MS, 30 * MS), (1, 50 * MS, 100 * MS)]
    );
}

#[test]
fn the_first_switch_of_a_cpu_reveals_its_earlier_thread() {
    let events = [follow(1), switch(0, 1, IDLE, 9), switch(60, 0, 1, IDLE)];
    let result = analyse("core:2 pu:1", Tier::CpuWide.scope(), &events, 100);
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
fn avoidable_sharing_has_a_cause() {
    let fork = fork_at(0, 1, 2, 1);
    let run_both = |extra: Vec<Event>| {
        let run = vec![switch(10, 0, IDLE, 1), switch(20, 1, IDLE, 2)];
        [vec![follow(1), fork.clone()], extra, run].concat()
    };
    check_sharing(run_both(vec![]), 160, [160, 0, 0]);
    check_sharing(
        run_both(vec![mask(1, "0-1"), mask(2, "0-1")]),
        160,
        [0, 160, 0],
    );
    let full = |cpu| switch(5, cpu, IDLE, 50 + i32::try_from(cpu).unwrap());
    check_sharing(run_both(vec![full(2), full(4), full(6)]), 160, [0, 0, 0]);
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
fn a_wait_for_an_idle_cpu_to_start_is_no_episode() {
    let result = check_waits(
        vec![follow(1), wake(10, 1, 3), switch(14, 3, IDLE, 1)],
        [0, 0, 0, 0, 4],
    );
    assert_eq!(result.wakeups, Some(1));
    assert_eq!(result.idle_waiting.unwrap().episodes, 0);
    // The CPU runs another thread first: from then on thread 1 is queued behind it.
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
fn limits_of_a_scheduling_class_are_a_cause() {
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
fn wakers_are_threads_of_the_same_process_that_ran_there() {
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
    // Thread 3 slept: its lifetime does not count.
    assert_eq!(result.life_ns, 200 * MS);
}

/// How long threads lived that were not idle, and which of 1, 2 and 3 were.
fn find_idle(mut events: Vec<Event>) -> (u64, Vec<Tid>) {
    events.sort_by_key(|event| event.time_ns);
    let threads = [follow(1), follow(2), follow(3)];
    let result = analyse_on_smt([threads.to_vec(), events].concat(), 1_000);
    let idle = result.by_thread.iter();
    let idle = idle.filter(|thread| thread.is_idle(result.idle_divisor));
    let mut idle: Vec<Tid> = idle.map(|thread| thread.thread).collect();
    idle.sort_unstable();
    (result.life_ns / MS, idle)
}

#[test]
fn no_thread_is_idle_beside_others_that_are_hardly_awake() {
    let run = |thread, from_ms, to_ms| {
        let cpu = u32::try_from(thread).unwrap();
        [
            switch(from_ms, cpu, IDLE, thread),
            switch(to_ms, cpu, thread, IDLE),
        ]
    };
    // A busy thread: what others do for half a per cent of the time does not matter.
    assert_eq!(
        find_idle([run(1, 10, 900), run(2, 10, 15)].concat()),
        (1_000, vec![2, 3])
    );
    // Two that work for that long are all there is.
    assert_eq!(
        find_idle([run(1, 10, 15), run(2, 10, 14)].concat()),
        (2_000, vec![3])
    );
    // One of them was awake for a hundredth: the other one still did half as much.
    assert_eq!(
        find_idle([run(1, 10, 21), run(2, 10, 17)].concat()),
        (2_000, vec![3])
    );
    // One of them was queued for long, behind another program.
    let queued = [
        switch(5, 1, IDLE, 7),
        wake(10, 1, 1),
        switch(100, 1, 7, 1),
        switch(102, 1, 1, IDLE),
    ];
    assert_eq!(
        find_idle([&queued[..], &run(2, 10, 12)].concat()),
        (2_000, vec![3])
    );
    // Nothing happens: that is what all threads do.
    assert_eq!(find_idle(Vec::new()), (3_000, Vec::new()));
}

#[test]
fn a_thread_that_waits_between_short_lives_is_not_idle() {
    let mut events = vec![switch(1, 1, IDLE, 1), switch(4, 1, 1, IDLE)];
    for child in 10..13 {
        let start_ms = 100 * u64::try_from(child).unwrap() - 900;
        let end = EventKind::Switch {
            prev: child,
            left: LeaveReason::Ended,
            next: IDLE,
        };
        events.extend([
            fork_at(start_ms, 1, child, child),
            switch(start_ms, 4, IDLE, child),
            at(start_ms + 20, 4, end),
        ]);
    }
    assert_eq!(find_idle(events), (1_060, vec![2, 3]));
}

#[test]
fn threads_that_run_at_once_are_parallel() {
    let result = analyse_on_smt(
        vec![
            follow(1),
            follow(2),
            switch(10, 0, IDLE, 1),
            switch(20, 2, IDLE, 2),
            // Another program's thread.
            switch(22, 4, IDLE, 7),
            switch(25, 0, 1, IDLE),
            switch(30, 2, 2, 8),
            switch(30, 0, IDLE, 1),
        ],
        100,
    );
    assert_eq!(result.parallel_ns, Some(5 * MS));
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
fn time_with_lost_records_counts_for_no_thread() {
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
fn the_count_of_lost_records_saturates() {
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
    // Once can be chance, and lost records are counted as lost.
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
fn a_reused_id_is_another_thread() {
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
fn a_thread_that_ended_elsewhere_was_not_here_before() {
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
    let result = analyse(SMT, Tier::Bpf.scope(), &events, 30);
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
        arrive(10, 0),
    ];
    let result = analyse(SMT, Tier::Bpf.scope(), &events, 20);
    assert_eq!(result.waits.total_ns, Some(0));
    check_timeline(&result);
}

#[test]
fn without_a_follow_event_all_threads_are_followed() {
    let result = analyse_on_smt(vec![switch(10, 0, IDLE, 1), switch(30, 0, 1, IDLE)], 100);
    assert_eq!(result.cpu_ns, 20 * MS);
    assert_eq!(result.foreign_ns, Some(0));
}

#[test]
fn half_switches_give_times_of_followed_threads() {
    let events = [
        follow(1),
        leave(10, 0, LeaveReason::Preempted),
        arrive(14, 1),
        leave(20, 1, LeaveReason::Blocked),
    ];
    let result = analyse(SMT, Tier::Switch.scope(), &events, 30);
    assert_eq!(result.cpu_ns, 16 * MS, "on a CPU since it was named");
    assert_eq!(result.switches, Some(2));
    assert_eq!(result.waits.after_preemption_ns, Some(4 * MS));
    assert_eq!(result.waits.total_ns, None, "wake-ups are not seen");
    assert_eq!(result.idle_ns, None);
    assert_eq!(result.migrations.smt, 1);
    assert_eq!(result.sharing.unwrap().avoidable, None);
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

/// Threads can be queued on a CPU that runs none of the program's threads, as under a quota.
#[test]
fn time_of_other_threads_on_cpus_with_queued_threads_is_counted() {
    let switch = |ms, prev, left, next| at(ms, 0, EventKind::Switch { prev, left, next });
    let events = [
        follow(1),
        follow(2),
        at(
            0,
            0,
            EventKind::Name {
                thread: 7,
                name: "other".into(),
            },
        ),
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
    let result = analyse(SMT, Tier::Bpf.scope(), &events, 60);
    assert_eq!(result.waits.occupied_cpu_ns, 35 * MS);
    // In 5 of them the CPU was idle.
    let other = OtherProgram {
        name: "other".into(),
        cpu_ns: 30 * MS,
    };
    assert_eq!(result.other_programs, [other]);
}

/// A CPU runs a compiler's processes one after the other while a thread is queued there, and then
/// while none is.
#[test]
fn programs_of_one_name_are_one() {
    let switch = |ms, prev, next| {
        let left = match prev {
            1 => LeaveReason::Preempted,
            _ => LeaveReason::Ended,
        };
        at(ms, 0, EventKind::Switch { prev, left, next })
    };
    let name = |thread, name: &str| {
        let name = name.into();
        at(0, 0, EventKind::Name { thread, name })
    };
    let events = [
        follow(1),
        name(7, "cc1plus"),
        name(8, "cc1plus"),
        name(9, "as"),
        name(10, "optimise"),
        at(
            0,
            0,
            EventKind::Known {
                thread: 10,
                process: 9,
            },
        ),
        switch(0, 0, 1),
        switch(10, 1, 7),
        switch(20, 7, 8),
        switch(40, 8, 10),
        switch(45, 10, 1),
        at(
            50,
            0,
            EventKind::Switch {
                prev: 1,
                left: LeaveReason::Blocked,
                next: 10,
            },
        ),
        switch(60, 10, 0),
    ];
    let result = analyse(SMT, Tier::Bpf.scope(), &events, 70);
    let programs = result.other_programs.iter();
    let programs: Vec<(&str, u64)> = programs.map(|one| (&*one.name, one.cpu_ns / MS)).collect();
    assert_eq!(programs, [("cc1plus", 30), ("as", 5)]);
}

/// Threads with their unpacked slices: start and end.
fn unpack_slices(result: &Summary) -> Vec<(Tid, u64, u64)> {
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

/// Checks the timeline: no thread is at two places at once, and the parts sum to the totals.
#[track_caller]
fn check_timeline(result: &Summary) {
    let timeline = &result.timeline;
    let mut stays = unpack_slices(result);
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
        let sum = |cause: SharingCause| -> u64 {
            let spans = sharing.spans.iter().filter(|span| span.cause == cause);
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
fn waits_and_sharing_are_in_the_timeline() {
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
            cause: WaitCause::Scheduler,
        }]
    );
    let spans = result.timeline.sharing.unwrap().spans;
    let spans: Vec<_> = spans
        .iter()
        .map(|s| (s.core, s.start_ns / MS, s.end_ns / MS, s.threads, s.cause))
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
