use std::collections::BTreeMap;
use std::io::Write as _;

use super::*;
use pinwise_sched::{LeaveReason, Tid};

/// A recorder with this many slots per CPU, as a power of two; `None` and a message if not
/// permitted here.
fn open_recorder(slots_log2: u32) -> Option<Live> {
    if let Some(refusal) = BpfConditions::read().find_obstacle() {
        report_skip(&refusal.reason);
        return None;
    }
    match Live::load(slots_log2) {
        Ok(live) => Some(live),
        Err(error) => {
            let refusal = explain_refusal(&error);
            assert!(refusal.reason.contains("os error 1)"), "{}", refusal.reason);
            report_skip(&refusal.reason);
            None
        }
    }
}

/// Bypasses the harness, which captures the output of passing tests.
fn report_skip(reason: &str) {
    let line = format!("SKIPPED recording with BPF: {reason}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The kernel's counts of a running thread.
struct KernelCounts {
    thread: Tid,
    switches: u64,
    /// `CLOCK_MONOTONIC` of these counts, ns. Threads sharing the CPU may switch it out and in
    /// before it ends.
    until_ns: u64,
}

impl KernelCounts {
    /// For the calling thread.
    fn read() -> Self {
        loop {
            let switches = count_own_switches();
            let until_ns = now_ns();
            if switches == count_own_switches() {
                // SAFETY: the call has no preconditions.
                let thread = unsafe { libc::gettid() };
                return Self {
                    thread,
                    switches,
                    until_ns,
                };
            }
        }
    }
}

fn count_own_switches() -> u64 {
    // SAFETY: the usage is plain integers, and this thread's own is always there.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    u64::try_from(usage.ru_nvcsw + usage.ru_nivcsw).unwrap()
}

/// Two threads on one CPU pass a byte back and forth this many times; returns the kernel's counts
/// of the first.
fn pass_bytes(times: usize) -> KernelCounts {
    let (ping_read, ping_write) = sys::pipe(0).unwrap();
    let (pong_read, pong_write) = sys::pipe(0).unwrap();
    let cpu = sys::affinity().unwrap().first().unwrap();
    let pin = move || sys::set_affinity(&pinwise_topology::CpuSet::single(cpu)).unwrap();
    let other = std::thread::spawn(move || {
        pin();
        while sys::read_some(&ping_read, &mut [0]) == 1 {
            pass_byte(&pong_write);
        }
    });
    let first = std::thread::Builder::new().name("first of a pair".to_owned());
    let first = first
        .spawn(move || {
            pin();
            for _ in 0..times {
                pass_byte(&ping_write);
                sys::read_some(&pong_read, &mut [0]);
            }
            KernelCounts::read()
        })
        .unwrap();
    let counted = first.join().unwrap();
    other.join().unwrap();
    counted
}

fn pass_byte(to: &std::os::fd::OwnedFd) {
    // SAFETY: the buffer holds the one byte passed.
    unsafe { libc::write(to.as_raw_fd(), [1u8].as_ptr().cast(), 1) };
}

/// Reads until the thread was seen to leave its CPU for good: that comes after the wake-up of a
/// thread that joins it, on a busy machine some time after.
fn drain_until_end(live: &mut Live, thread: Tid, events: &mut Vec<Event>) {
    let is_last = |event: &Event| matches!(&event.what, EventKind::Switch { prev, left: LeaveReason::Ended, .. } if *prev == thread);
    while !events.iter().any(is_last) {
        std::thread::sleep(Duration::from_millis(1));
        live.drain(events);
    }
}

fn count_lost(events: &[Event]) -> u64 {
    let lost = events.iter().map(|event| match event.what {
        EventKind::Lost { records } => records,
        _ => 0,
    });
    lost.sum()
}

/// How often a CPU switched from a thread of another process without reporting that it left. Linux
/// 6.18 calls no tracepoint while certain threads are on the CPU (`perf record` sees neither switch
/// nor wake-up either), so the arrival of the next thread is missing. Such a thread may have been
/// there from the start. For this process's threads every switch counts.
fn count_unseen_leaves(events: &[Event]) -> u64 {
    let process = Tid::try_from(std::process::id()).unwrap();
    let mut own = vec![process];
    let mut on_cpu: BTreeMap<u32, Tid> = BTreeMap::new();
    let mut unseen = 0;
    for event in events {
        match event.what {
            EventKind::Fork {
                child, process: p, ..
            } if p == process => own.push(child),
            EventKind::Switch { prev, next, .. } => {
                let before = on_cpu.insert(event.cpu, next);
                let is_unseen = before.is_none_or(|last| last != prev && !own.contains(&last));
                unseen += u64::from(is_unseen);
            }
            _ => {}
        }
    }
    unseen
}

#[test]
fn a_pair_of_threads_has_the_switches_that_the_kernel_counts() {
    const TIMES: usize = 5000;
    let Some(mut live) = open_recorder(MAX_SLOTS_LOG2) else {
        return;
    };
    let mut events = Vec::new();
    let counted = pass_bytes(TIMES);
    let thread = counted.thread;
    drain_until_end(&mut live, thread, &mut events);
    live.finish(&mut events);

    assert!(events.is_sorted_by_key(|event| event.time_ns));
    assert_eq!(count_lost(&events), 0);
    let count = |is_wanted: &dyn Fn(&EventKind) -> bool| {
        let wanted = events.iter().filter(|event| is_wanted(&event.what));
        wanted.count() as u64
    };
    let has_left =
        |event: &Event| matches!(event.what, EventKind::Switch { prev, .. } if prev == thread);
    let by_then = events
        .iter()
        .filter(|event| has_left(event) && event.time_ns <= counted.until_ns);
    assert_eq!(by_then.count() as u64, counted.switches);
    let left = events.iter().filter(|event| has_left(event)).count() as u64;
    let came = count(&|what| matches!(what, EventKind::Switch { next, .. } if *next == thread));
    let unseen = count_unseen_leaves(&events);
    assert!(
        came <= left && left - came <= unseen,
        "came {came} times, left {left} times, {unseen} others left unseen"
    );
    let woken = count(&|what| matches!(what, EventKind::Wake { thread: t, .. } if *t == thread));
    let blocked = count(
        &|what| matches!(what, EventKind::Switch { prev, left: LeaveReason::Blocked, .. } if *prev == thread),
    );
    // Its first wake-up is that of a new thread.
    assert_eq!(woken, blocked + 1);
}

#[test]
fn a_thread_is_reported_from_start_to_exit() {
    let Some(mut live) = open_recorder(MAX_SLOTS_LOG2) else {
        return;
    };
    let mut events = Vec::new();
    let thread = pass_bytes(10).thread;
    drain_until_end(&mut live, thread, &mut events);
    live.finish(&mut events);
    let about: Vec<&EventKind> = events
        .iter()
        .map(|event| &event.what)
        .filter(|what| match what {
            EventKind::Fork { child, .. } => *child == thread,
            EventKind::Name { thread: t, .. } | EventKind::Exit { thread: t } => *t == thread,
            EventKind::Switch { prev, left, .. } => *prev == thread && *left == LeaveReason::Ended,
            _ => false,
        })
        .collect();
    let process = Tid::try_from(std::process::id()).unwrap();
    assert!(
        matches!(about[0], EventKind::Fork { process: p, .. } if *p == process),
        "{about:?}"
    );
    let name = EventKind::Name {
        thread,
        name: "first of a pair".into(),
    };
    assert_eq!(about[1], &name);
    assert!(matches!(about[2], EventKind::Switch { .. }), "{about:?}");
    assert_eq!(about[3..], [&EventKind::Exit { thread }]);
}

#[test]
fn a_full_ring_reports_the_number_of_lost_records() {
    const TIMES: usize = 20_000;
    let Some(mut live) = open_recorder(MIN_SLOTS_LOG2) else {
        return;
    };
    let mut events = Vec::new();
    let KernelCounts {
        thread, switches, ..
    } = pass_bytes(TIMES);
    live.finish(&mut events);
    let seen = events
        .iter()
        .filter(|event| matches!(event.what, EventKind::Switch { prev, .. } if prev == thread));
    let seen = seen.count() as u64;
    assert!(seen < switches, "the ring took everything");
    // Each missing exchange was a switch away, a switch back and a wake-up.
    let lacking = switches - seen;
    assert!(
        count_lost(&events) >= 2 * lacking,
        "{} of {lacking}",
        count_lost(&events)
    );
}

#[test]
fn the_reader_is_woken_before_the_ring_is_full() {
    let Some(mut live) = open_recorder(MIN_SLOTS_LOG2) else {
        return;
    };
    let bell = live.descriptors()[0];
    let mut events = Vec::new();
    live.drain(&mut events);
    pass_bytes(2000);
    assert_eq!(sys::poll([bell], Some(Duration::from_secs(60))), [true]);
    live.drain(&mut events);
    live.finish(&mut events);
}

#[test]
fn rings_are_smaller_with_many_cpus() {
    assert_eq!(slots_log2(1), MAX_SLOTS_LOG2);
    assert_eq!(slots_log2(32), 17);
    assert_eq!(slots_log2(33), 16);
    assert_eq!(slots_log2(8192), MIN_SLOTS_LOG2);
}

#[test]
fn missed_calls_are_read_from_fdinfo() {
    assert_eq!(
        parse_misses("prog_type:\t26\nrecursion_misses:\t12\nverified_insns:\t9"),
        12
    );
    assert_eq!(parse_misses("prog_type:\t26\n"), 0);
}
