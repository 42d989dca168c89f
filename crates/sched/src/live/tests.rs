//! Events with known answers, and arbitrary events.

use super::*;
use crate::Tier;
use pinwise_topology::CpuSet;
use proptest::prelude::*;

/// Two packages of two caches of two cores of two CPUs; CPU n and n + 1 are
/// siblings.
fn make_machine() -> Topology {
    Topology::from_synthetic("package:2 l3:2 core:2 pu:2").unwrap()
}

fn start_live(tier: Tier, is_everything: bool) -> Live {
    let watching = Watching {
        scope: tier.scope(),
        is_everything,
        observer: None,
    };
    let mut live = Live::new(&make_machine(), watching);
    live.begin(0);
    live
}

const MS: u64 = 1_000_000;

fn make_event(ms: u64, cpu: u32, what: EventKind) -> Event {
    Event {
        time_ns: ms * MS,
        cpu,
        what,
    }
}

fn make_switch(ms: u64, cpu: u32, prev: Tid, left: LeaveReason, next: Tid) -> Event {
    make_event(ms, cpu, EventKind::Switch { prev, left, next })
}

fn make_arrival(ms: u64, cpu: u32, next: Tid) -> Event {
    make_switch(ms, cpu, IDLE, LeaveReason::Preempted, next)
}

fn make_departure(ms: u64, cpu: u32, prev: Tid) -> Event {
    make_switch(ms, cpu, prev, LeaveReason::Blocked, IDLE)
}

fn find_thread(frame: &Frame, tid: Tid) -> &ThreadFrame {
    frame.threads.iter().find(|t| t.thread == tid).unwrap()
}

#[track_caller]
fn check(found: Option<f64>, expected: f64) {
    let found = found.expect("it is reported");
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

#[test]
fn shares_of_threads_and_cpus_are_counted() {
    let mut live = start_live(Tier::Bpf, true);
    live.add_events(&[
        make_arrival(10, 0, 7),
        make_switch(40, 0, 7, LeaveReason::Preempted, 8),
        make_switch(60, 0, 8, LeaveReason::Blocked, 7),
    ]);
    let frame = live.frame(100 * MS);
    check(find_thread(&frame, 7).busy, 0.7);
    check(find_thread(&frame, 7).wait, 0.2);
    check(find_thread(&frame, 8).busy, 0.2);
    check(find_thread(&frame, 8).wait, 0.0);
    assert_eq!(find_thread(&frame, 7).doing, Doing::Running);
    assert_eq!(find_thread(&frame, 8).doing, Doing::Waiting);
    assert_eq!(find_thread(&frame, 7).used, [(0, 0.7)]);
    let cpu = &frame.cpus[0];
    assert_eq!(cpu.now, Occupant::Thread(7));
    check(cpu.busy, 0.9);
    check(cpu.own, 0.9);
    check(cpu.switches_per_s, 30.0);
    assert_eq!(cpu.busiest.as_ref().map(|b| b.0), Some(7));
    // The others had no events: they are unknown, not idle.
    assert_eq!(frame.cpus[1].now, Occupant::Unknown);
    assert_eq!(frame.cpus[1].busy, None);
    // The next interval starts from 0.
    live.add_events(&[make_departure(150, 0, 7)]);
    let frame = live.frame(200 * MS);
    check(find_thread(&frame, 7).busy, 0.5);
    check(frame.cpus[0].busy, 0.5);
    assert_eq!(frame.cpus[0].now, Occupant::Idle);
}

/// A CPU without an earlier event did what its first event says.
#[test]
fn the_first_event_of_a_cpu_shows_its_earlier_state() {
    let mut live = start_live(Tier::CpuWide, true);
    live.add_events(&[make_departure(80, 3, 9)]);
    let frame = live.frame(100 * MS);
    check(find_thread(&frame, 9).busy, 0.8);
    check(frame.cpus[3].busy, 0.8);
}

#[test]
fn waits_after_waking_count_if_reported() {
    let wake = EventKind::Wake {
        thread: 5,
        target: 2,
    };
    let mut live = start_live(Tier::Tracepoint, true);
    live.add_events(&[
        make_departure(10, 2, 5),
        make_event(30, 2, wake),
        make_arrival(50, 2, 5),
    ]);
    let frame = live.frame(100 * MS);
    check(find_thread(&frame, 5).wait, 0.2);
    // Threads that still wait have waited until now.
    live.add_events(&[make_switch(150, 2, 5, LeaveReason::Preempted, IDLE)]);
    let frame = live.frame(200 * MS);
    check(find_thread(&frame, 5).wait, 0.5);
    assert_eq!(find_thread(&frame, 5).doing, Doing::Queued);
    check(find_thread(&live.frame(300 * MS), 5).wait, 1.0);
}

#[test]
fn moves_are_counted_by_the_boundary_crossed() {
    let mut live = start_live(Tier::Bpf, true);
    let mut at = 0;
    for cpu in [0, 1, 2, 4, 8, 0, 0] {
        at += 2;
        live.add_events(&[make_arrival(at, cpu, 7), make_departure(at + 1, cpu, 7)]);
    }
    let frame = live.frame(1000 * MS);
    let moves = frame.moves;
    assert_eq!((moves.smt, moves.core, moves.llc), (1, 1, 1));
    assert_eq!((moves.numa, moves.package, moves.unknown), (0, 2, 0));
    check(find_thread(&frame, 7).migrations_per_s, 5.0);
    assert_eq!(live.frame(2000 * MS).moves, Migrations::default());
}

#[test]
fn sharing_while_other_cores_idle_is_avoidable() {
    let mut live = start_live(Tier::Bpf, true);
    for cpu in 0..16 {
        live.add_events(&[make_departure(0, cpu, 100)]);
    }
    // Siblings 0 and 1 together from 20 to 100 ms, 2 alone.
    live.add_events(&[
        make_arrival(0, 0, 7),
        make_arrival(20, 1, 8),
        make_arrival(20, 2, 9),
    ]);
    let frame = live.frame(100 * MS);
    let sharing = frame.sharing.unwrap();
    assert_eq!(sharing.basis, SharingBasis::Switches);
    assert_eq!((sharing.shared_now, sharing.idle_now), (Some(1), Some(6)));
    assert_eq!((sharing.cores, sharing.unknown_cpus), (8, 0));
    check(Some(sharing.shared), 0.8);
    check(sharing.avoidable, 0.8);
    check(Some(sharing.idle), 6.2);
}

/// The thread that draws the frame runs at that moment, which is not interesting.
#[test]
fn the_observers_cpu_is_shown_as_idle() {
    let watching = Watching {
        scope: Tier::Bpf.scope(),
        is_everything: true,
        observer: Some(8),
    };
    let mut live = Live::new(&make_machine(), watching);
    live.add_events(&[make_arrival(0, 0, 7), make_arrival(0, 1, 8)]);
    let sharing = live.frame(100 * MS).sharing.unwrap();
    assert_eq!(sharing.shared_now, Some(0));
    check(Some(sharing.shared), 1.0);
}

#[test]
fn sharing_is_absent_if_unknown() {
    let mut own = start_live(Tier::Switch, false);
    own.add_events(&[make_event(5, 0, EventKind::In { thread: 7 })]);
    assert_eq!(own.frame(100 * MS).sharing, None);
    let plain = Topology::from_synthetic("core:4 pu:1").unwrap();
    let watching = Watching {
        scope: Tier::Bpf.scope(),
        is_everything: true,
        observer: None,
    };
    assert_eq!(Live::new(&plain, watching).frame(100).sharing, None);
}

/// Switch records of a program's own threads do not show other programs.
#[test]
fn records_of_own_threads_do_not_show_others() {
    let mut live = start_live(Tier::Switch, false);
    let out = EventKind::Out {
        thread: 7,
        left: LeaveReason::Preempted,
    };
    live.add_events(&[
        make_event(
            0,
            0,
            EventKind::Known {
                thread: 7,
                process: 7,
            },
        ),
        make_event(0, 0, EventKind::Follow { thread: 7 }),
        make_event(10, 3, EventKind::In { thread: 7 }),
        make_event(60, 3, out),
        make_event(80, 4, EventKind::In { thread: 7 }),
    ]);
    let frame = live.frame(100 * MS);
    check(find_thread(&frame, 7).busy, 0.7);
    check(find_thread(&frame, 7).wait, 0.2);
    assert_eq!(frame.moves.package + frame.moves.llc + frame.moves.core, 1);
    assert_eq!(frame.cpus[3].now, Occupant::Unknown);
    assert_eq!(frame.cpus[4].now, Occupant::Thread(7));
    assert_eq!(frame.cpus[3].busy, None);
    check(frame.cpus[3].own, 0.5);
}

#[test]
fn only_followed_threads_and_their_children_are_shown() {
    let mut live = start_live(Tier::Bpf, false);
    live.add_events(&[
        make_event(0, 0, EventKind::Follow { thread: 7 }),
        make_event(
            0,
            0,
            EventKind::Name {
                thread: 7,
                name: "seven".into(),
            },
        ),
        make_event(
            0,
            0,
            EventKind::Fork {
                parent: 7,
                child: 8,
                process: 7,
            },
        ),
        make_arrival(0, 0, 8),
        make_arrival(0, 1, 9),
    ]);
    let frame = live.frame(100 * MS);
    let tids: Vec<Tid> = frame.threads.iter().map(|t| t.thread).collect();
    assert_eq!(tids, [7, 8]);
    assert_eq!(find_thread(&frame, 8).name.as_deref(), Some("seven"));
    check(frame.cpus[1].own, 0.0);
    check(frame.cpus[1].busy, 1.0);
    assert_eq!(frame.cpus[1].busiest.as_ref().map(|b| b.0), Some(9));
}

#[test]
fn ended_threads_are_shown_once_and_their_ids_can_return() {
    let mut live = start_live(Tier::Bpf, true);
    live.add_events(&[
        make_arrival(0, 0, 7),
        make_event(10, 0, EventKind::Exit { thread: 7 }),
        make_switch(11, 0, 7, LeaveReason::Ended, IDLE),
    ]);
    let frame = live.frame(100 * MS);
    assert_eq!(find_thread(&frame, 7).doing, Doing::Ended);
    check(find_thread(&frame, 7).busy, 0.11);
    assert!(live.frame(200 * MS).threads.is_empty());
    let fork = EventKind::Fork {
        parent: 1,
        child: 7,
        process: 7,
    };
    live.add_events(&[make_event(210, 0, fork), make_arrival(220, 5, 7)]);
    let frame = live.frame(300 * MS);
    check(find_thread(&frame, 7).migrations_per_s, 0.0);
}

/// Ten thousand threads a second do not accumulate.
#[test]
fn short_lived_threads_take_no_memory() {
    let mut live = start_live(Tier::Bpf, true);
    for second in 0..5u64 {
        for n in 0..10_000 {
            let tid = 100 + n;
            let fork = EventKind::Fork {
                parent: 1,
                child: tid,
                process: tid,
            };
            let at = 1000 * second + 1;
            live.add_events(&[
                make_event(at, 0, fork),
                make_arrival(at, 0, tid),
                make_event(at, 0, EventKind::Exit { thread: tid }),
                make_switch(at, 0, tid, LeaveReason::Ended, IDLE),
            ]);
        }
        let frame = live.frame(1000 * MS * (second + 1));
        assert_eq!(frame.threads.len(), 10_000);
    }
    assert!(live.threads.is_empty());
}

#[test]
fn time_with_lost_records_counts_for_no_thread() {
    let mut live = start_live(Tier::Bpf, true);
    live.add_events(&[
        make_arrival(0, 0, 7),
        make_switch(20, 0, 7, LeaveReason::Preempted, 8),
        make_event(80, 0, EventKind::Lost { records: 3 }),
        make_arrival(90, 0, 9),
    ]);
    let frame = live.frame(100 * MS);
    assert_eq!(frame.lost, 3);
    check(find_thread(&frame, 7).busy, 0.2);
    // It may have run the whole time.
    assert_eq!(find_thread(&frame, 8).busy, None);
    assert_eq!(find_thread(&frame, 8).doing, Doing::Unreported);
    // The CPU's state is known for 30 ms, and it was busy.
    check(frame.cpus[0].busy, 1.0);
}

fn make_sample(thread: Tid, cpu: u32, run_ms: u64, migrations: Option<u64>) -> EventKind {
    EventKind::Sample(Box::new(Sample {
        thread,
        cpu,
        is_runnable: true,
        class: None,
        life_ns: None,
        blocked_in: None,
        blocked_at: None,
        run_ns: run_ms * MS,
        wait_ns: (run_ms > 0).then_some(2 * MS * (run_ms / 50)),
        migrations,
        voluntary: Some(run_ms),
        involuntary: Some(0),
        is_last: false,
    }))
}

#[test]
fn polling_gives_rates_from_the_second_poll_on() {
    let mut live = start_live(Tier::Proc, true);
    live.add_events(&[make_event(0, 0, make_sample(7, 0, 0, Some(3)))]);
    let first = live.frame(50 * MS);
    assert_eq!(find_thread(&first, 7).busy, None);
    assert_eq!(find_thread(&first, 7).doing, Doing::Runnable);
    live.add_events(&[
        make_event(100, 0, make_sample(7, 0, 50, Some(3))),
        make_event(200, 0, make_sample(7, 4, 100, Some(4))),
        make_event(300, 0, make_sample(7, 0, 150, Some(9))),
        make_event(300, 0, make_sample(8, 0, 150, None)),
    ]);
    let frame = live.frame(310 * MS);
    check(find_thread(&frame, 7).busy, 0.5);
    check(find_thread(&frame, 7).migrations_per_s, 20.0);
    check(find_thread(&frame, 7).switches_per_s, 500.0);
    // The first poll did not show how long it had been queued.
    assert_eq!(find_thread(&frame, 7).wait, None);
    assert_eq!((frame.moves.llc, frame.moves.unknown), (1, 5));
    assert_eq!(find_thread(&frame, 8).busy, None);
    assert_eq!(frame.cpus[0].now, Occupant::Unknown);
}

#[test]
fn busy_times_give_a_lower_bound_of_sharing() {
    let mut live = start_live(Tier::Proc, true);
    let usage = |ms: u64, cpu: u32, busy_ms: u64| {
        make_event(
            ms,
            cpu,
            EventKind::Usage {
                busy_ns: busy_ms * MS,
            },
        )
    };
    for cpu in 0..16 {
        let busy = [90, 80, 40, 40].get(cpu as usize).copied().unwrap_or(0);
        live.add_events(&[usage(0, cpu, 1000), usage(100, cpu, 1000 + busy)]);
    }
    let frame = live.frame(100 * MS);
    check(frame.cpus[0].busy, 0.9);
    let sharing = frame.sharing.unwrap();
    assert_eq!(sharing.basis, SharingBasis::BusyTimes);
    assert_eq!(sharing.shared_now, None);
    check(Some(sharing.shared), 0.7);
    check(Some(sharing.idle), 6.2);
}

/// A clock that jumps ahead affects one frame only.
#[test]
fn a_leap_of_the_clock_affects_one_interval_only() {
    let mut live = start_live(Tier::Bpf, true);
    let far = Event {
        time_ns: u64::MAX,
        ..make_arrival(0, 0, 7)
    };
    live.add_events(&[far]);
    let _ = live.frame(100 * MS);
    live.add_events(&[make_arrival(100, 0, 8)]);
    check(find_thread(&live.frame(200 * MS), 8).busy, 1.0);
}

fn any_event() -> impl Strategy<Value = Event> {
    let tid = || prop_oneof![8 => 0i32..12, 1 => any::<i32>()];
    let left = prop_oneof![
        Just(LeaveReason::Blocked),
        Just(LeaveReason::Preempted),
        Just(LeaveReason::Ended),
        Just(LeaveReason::Unreported)
    ];
    let number = || prop_oneof![8 => 0u64..1000, 1 => any::<u64>()];
    let what = prop_oneof![
        6 => (tid(), left.clone(), tid()).prop_map(|(prev, left, next)| EventKind::Switch { prev, left, next }),
        1 => (tid()).prop_map(|thread| EventKind::In { thread }),
        1 => (tid(), left).prop_map(|(thread, left)| EventKind::Out { thread, left }),
        1 => (tid(), any::<u32>()).prop_map(|(thread, target)| EventKind::Wake { thread, target }),
        1 => (tid(), tid(), tid()).prop_map(|(parent, child, process)| EventKind::Fork { parent, child, process }),
        1 => tid().prop_map(|thread| EventKind::Exit { thread }),
        1 => (tid(), tid()).prop_map(|(thread, process)| EventKind::Known { thread, process }),
        1 => tid().prop_map(|thread| EventKind::Follow { thread }),
        1 => (tid(), "\\PC{0,20}").prop_map(|(thread, name)| EventKind::Name { thread, name: name.into() }),
        1 => (tid(), prop::collection::vec(0usize..20, 0..4)).prop_map(|(thread, cpus)| EventKind::Mask {
            thread,
            cpus: Box::new(cpus.into_iter().collect::<CpuSet>())
        }),
        1 => number().prop_map(|records| EventKind::Lost { records }),
        1 => number().prop_map(|busy_ns| EventKind::Usage { busy_ns }),
        1 => (tid(), any::<u32>(), number(), prop::option::of(number()), prop::option::of(number())).prop_map(
            |(thread, cpu, run_ns, wait_ns, migrations)| EventKind::Sample(Box::new(Sample {
                thread, cpu, is_runnable: run_ns % 2 == 0, class: None, life_ns: None, blocked_in: None, blocked_at: None, run_ns, wait_ns, migrations,
                voluntary: wait_ns, involuntary: migrations, is_last: run_ns % 3 == 0,
            }))
        ),
    ];
    let cpu = prop_oneof![8 => 0u32..18, 1 => any::<u32>()];
    (number(), cpu, what).prop_map(|(time_ns, cpu, what)| Event { time_ns, cpu, what })
}

proptest! {
    /// For any events, shares are shares, and memory is bounded.
    #[test]
    fn any_events_give_plausible_frames(
        events in prop::collection::vec(any_event(), 0..80),
        tier in prop::sample::select(Tier::ALL.to_vec()),
        is_everything: bool,
        frames in prop::collection::vec(any::<u16>(), 1..4),
    ) {
        let mut live = start_live(tier, is_everything);
        for now in frames {
            live.add_events(&events);
            let frame = live.frame(u64::from(now));
            let is_share = |share: f64| (0.0..=1.0).contains(&share);
            for thread in &frame.threads {
                prop_assert!(thread.busy.is_none_or(is_share));
                prop_assert!(thread.wait.is_none_or(is_share));
                prop_assert!(thread.used.iter().all(|(_, share)| is_share(*share)));
            }
            for cpu in &frame.cpus {
                prop_assert!(cpu.busy.is_none_or(is_share) && cpu.own.is_none_or(is_share));
            }
            if let Some(sharing) = frame.sharing {
                prop_assert!(sharing.shared_now.unwrap_or(0) <= sharing.cores);
                prop_assert!(sharing.shared >= 0.0 && sharing.idle >= 0.0);
            }
        }
        prop_assert!(live.threads.len() <= 81);
    }
}
