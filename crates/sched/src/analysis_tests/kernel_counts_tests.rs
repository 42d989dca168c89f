//! The kernel's counts, which complement events and replace missing ones.

use super::*;

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
    let result = analyse(SMT, Tier::Proc.scope(), &events, 20);
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
fn moves_seen_by_polls_are_not_counted_again() {
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
    let result = analyse(SMT, Tier::Proc.scope(), &events, 50);
    assert_eq!(result.migrations.package, 4);
    assert_eq!(result.migrations.unknown, 1);
}

/// Ending threads can run again after they seemed to have ended: they are the same threads. A new
/// thread with a reused id is another one.
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
    let result = analyse(SMT, Tier::CpuWide.scope(), &events, 20);
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
    let result = analyse(SMT, Tier::CpuWide.scope(), &events, 30);
    assert_eq!(result.threads, 3);
    assert_eq!(of_one(&result), [(13 * MS, Some(2)), (5 * MS, Some(1))]);
}

/// The command's first child may exist when the command is polled, before the stream reports its
/// beginning.
#[test]
fn a_thread_polled_before_its_start_is_reported_once() {
    let make_known = |thread| {
        let process = thread;
        at(0, 0, EventKind::Known { thread, process })
    };
    let fork = |ms| fork_at(ms, 1, 2, 2);
    let switch = |ms, prev, left, next| at(ms, 0, EventKind::Switch { prev, left, next });
    let mut events = vec![
        make_known(1),
        follow(1),
        make_known(2),
        follow(2),
        fork(3),
        switch(5, 0, LeaveReason::Unreported, 2),
        switch(9, 2, LeaveReason::Blocked, 0),
    ];
    let result = analyse(SMT, Tier::CpuWide.scope(), &events, 20);
    assert_eq!((result.threads, result.by_thread.len()), (2, 2));
    // A thread that has run is another one.
    events.push(fork(12));
    let result = analyse(SMT, Tier::CpuWide.scope(), &events, 20);
    assert_eq!((result.threads, result.by_thread.len()), (3, 3));
}

/// If wake-ups are not seen, the kernel's last report before a thread's end may be incomplete.
#[test]
fn waits_of_threads_that_ended_unpolled_are_lower_bounds() {
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
        let result = analyse(SMT, Tier::Switch.scope(), events, 200);
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
        arrive(0, 0),
        leave(10, 0, LeaveReason::Preempted),
        arrive(40, 0),
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
        let result = analyse(SMT, tier.scope(), &events, 20 * times);
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
fn waits_never_exceed_the_kernels_report() {
    let waited_ns = |reported_ms| {
        let mut events = preempt_often(200, reported_ms, false);
        for event in &mut events {
            // 10 us instead of 10 ms.
            event.time_ns /= 1_000;
        }
        let result = analyse(SMT, Tier::Switch.scope(), &events, 4);
        result.waits.total_ns.unwrap()
    };
    // Events have 2 ms.
    assert_eq!(waited_ns(1), MS);
    assert_eq!(waited_ns(2), 2 * MS);
}

#[test]
fn a_wrong_guess_of_a_cpus_thread_is_no_contradiction() {
    let mut runnable = poll_event(0, 500, 70, false);
    if let EventKind::Sample(sample) = &mut runnable.what {
        sample.is_runnable = true;
    }
    let events = vec![follow(1), runnable, switch(0, 0, 7, 8), switch(5, 0, 8, 1)];
    let result = analyse(SMT, Tier::Bpf.scope(), &events, 10);
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
fn waits_after_the_kernels_report_of_an_end_make_a_lower_bound() {
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
            arrive(20, 0),
            at(90, 0, EventKind::Out { thread: 1, left }),
            report,
            at(90, 0, EventKind::Exit { thread: 1 }),
        ];
        let waits = analyse(SMT, Tier::Switch.scope(), &events, 100).waits;
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
fn cpu_time_excludes_stolen_time() {
    let arrive_at = |ms| arrive(ms, 0);
    let went = |ms| leave(ms, 0, LeaveReason::Blocked);
    let fork = || vec![follow(9), fork_at(0, 9, 1, 1)];
    let check = |events: &[Event], expected_ms: u64| {
        let all = [&fork()[..], events].concat();
        let result = analyse(SMT, Tier::Switch.scope(), &all, 100);
        assert_eq!(result.cpu_ns, expected_ms * MS);
    };
    check(&[arrive_at(10), went(90), poll_event(90, 60, 0, true)], 60);
    // The kernel's figure may be slightly old.
    check(&[arrive_at(10), went(90), poll_event(90, 60, 0, false)], 80);
    check(&[arrive_at(10), went(90), poll_event(90, 79, 0, true)], 80);
    // The kernel reports before the very end.
    let end = at(95, 0, EventKind::Exit { thread: 1 });
    check(&[arrive_at(10), poll_event(90, 60, 0, true), end], 65);
    // A thread from before the trace may have run a while before its first poll.
    let there = |last_ms, expected_ms, doubtful_ms| {
        let events = [
            follow(1),
            poll_event(0, 30, 0, false),
            arrive_at(0),
            went(90),
            poll_event(90, last_ms, 0, true),
        ];
        let result = analyse(SMT, Tier::Switch.scope(), &events, 100);
        assert_eq!(result.cpu_ns, expected_ms * MS);
        assert_eq!(result.unknown.doubtful_cpu_ns, doubtful_ms * MS);
    };
    there(75, 90, 45);
    there(65, 35, 0);
    there(120, 90, 0);
}

/// A switch is missing: the thread next seen leaving the CPU was on it, for an unknown time.
#[test]
fn waits_with_an_unseen_end_make_the_total_a_lower_bound() {
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
