//! Records of a CPU, one after the other, and their events.

use super::*;
use pinwise_sched::perf::Task;

/// A record, with the thread that was running.
type Written = (Tid, Record<'static>);

const fn own(thread: Tid, is_out: bool, is_preempted: bool) -> Written {
    let record = Record::Switch {
        other: None,
        is_out,
        is_preempted,
    };
    (thread, record)
}

const fn wide(thread: Tid, other: Tid, is_out: bool, is_preempted: bool) -> Written {
    let record = Record::Switch {
        other: Some(other),
        is_out,
        is_preempted,
    };
    (thread, record)
}

const fn gone(thread: Tid) -> Written {
    let task = Task {
        process: thread,
        parent_process: 1,
        thread,
        parent: 1,
        time_ns: 0,
    };
    (thread, Record::Exit(task))
}

fn make_switch(prev: Tid, left: LeaveReason, next: Tid) -> EventKind {
    EventKind::Switch { prev, left, next }
}

fn make_departure(thread: Tid, left: LeaveReason) -> EventKind {
    EventKind::Out { thread, left }
}

fn make_arrival(thread: Tid) -> EventKind {
    EventKind::In { thread }
}

#[track_caller]
fn check(format: SwitchFormat, records: &[(Tid, Record<'_>)], expected: &[EventKind]) {
    let mut lane = Lane::new(3, format);
    let mut events = Vec::new();
    for (time_ns, &(thread, record)) in (1..).zip(records) {
        lane.take(time_ns, thread, record, &mut events);
    }
    assert!(events.iter().all(|event| event.cpu == 3));
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    let kinds: Vec<EventKind> = events.into_iter().map(|event| event.what).collect();
    assert_eq!(kinds, expected);
}

#[test]
fn half_switches_of_own_threads_are_reported_unchanged() {
    let records = [
        own(7, false, false),
        own(7, true, true),
        own(8, false, false),
        own(8, true, false),
    ];
    let expected = [
        make_arrival(7),
        make_departure(7, LeaveReason::Preempted),
        make_arrival(8),
        make_departure(8, LeaveReason::Blocked),
    ];
    check(SwitchFormat::OwnThreads, &records, &expected);
}

/// A thread that was attached to twice reports everything twice.
#[test]
fn duplicate_reports_count_once() {
    let records = [
        own(7, false, false),
        own(7, false, false),
        own(7, true, true),
        own(7, true, true),
        own(7, false, false),
        own(7, false, false),
    ];
    let expected = [
        make_arrival(7),
        make_departure(7, LeaveReason::Preempted),
        make_arrival(7),
    ];
    check(SwitchFormat::OwnThreads, &records, &expected);
}

#[test]
fn an_own_thread_that_ends_leaves_its_cpu() {
    let records = [own(7, false, false), gone(7), gone(9)];
    let exit = |thread| EventKind::Exit { thread };
    let expected = [
        make_arrival(7),
        make_departure(7, LeaveReason::Ended),
        exit(7),
        exit(9),
    ];
    check(SwitchFormat::OwnThreads, &records, &expected);
}

/// The command's first record is the name of its program: it is on the CPU.
#[test]
fn a_thread_that_executes_a_program_is_on_the_cpu() {
    let comm = Record::Comm {
        process: 7,
        thread: 7,
        is_exec: true,
        name: b"prog",
    };
    let comm = (7, comm);
    let name = EventKind::Name {
        thread: 7,
        name: "prog".into(),
    };
    let expected = [
        make_arrival(7),
        name.clone(),
        make_departure(7, LeaveReason::Blocked),
    ];
    check(
        SwitchFormat::OwnThreads,
        &[comm, own(7, true, false)],
        &expected,
    );
    check(SwitchFormat::CpuWide, &[comm], &[name]);
}

#[test]
fn two_halves_make_one_switch_of_a_cpu() {
    let records = [
        wide(7, 8, true, true),
        wide(8, 7, false, false),
        wide(8, 0, true, false),
        wide(0, 8, false, false),
    ];
    let expected = [
        make_switch(7, LeaveReason::Preempted, 8),
        make_switch(8, LeaveReason::Blocked, 0),
    ];
    check(SwitchFormat::CpuWide, &records, &expected);
}

#[test]
fn a_second_half_alone_is_reported() {
    let records = [
        wide(8, 7, false, false),
        (0, Record::Lost { records: 5 }),
        wide(9, 8, false, false),
    ];
    let expected = [
        make_switch(7, LeaveReason::Unreported, 8),
        EventKind::Lost { records: 5 },
        make_switch(8, LeaveReason::Unreported, 9),
    ];
    check(SwitchFormat::CpuWide, &records, &expected);
}

/// A thread that has ended has no id when it leaves for the last time. One that still has an id may
/// run again: since Linux 6.16 the end is reported before memory is freed.
#[test]
fn an_ended_thread_is_identified_by_its_cpu() {
    let records = [
        wide(0, 7, true, false),
        gone(7),
        wide(-1, 8, true, false),
        wide(8, -1, false, false),
        gone(8),
        wide(8, 0, true, false),
        wide(0, 9, true, false),
        wide(9, 0, true, false),
    ];
    let exit = |thread| EventKind::Exit { thread };
    let expected = [
        make_switch(0, LeaveReason::Blocked, 7),
        exit(7),
        make_switch(7, LeaveReason::Ended, 8),
        exit(8),
        make_switch(8, LeaveReason::Blocked, 0),
        make_switch(0, LeaveReason::Blocked, 9),
        make_switch(9, LeaveReason::Blocked, 0),
    ];
    check(SwitchFormat::CpuWide, &records, &expected);
}

/// Small formats, and what such tracepoints write.
fn parse_offsets() -> TracepointOffsets {
    let states = "print fmt: { 0x1, \"S\" }, { 0x10, \"X\" }, { 0x20, \"Z\" }";
    let switch = format!(
        "name: sched_switch\nID: 5\nfield:u16 common_type;offset:0;size:2;signed:0;\n\
         field:pid_t prev_pid;offset:2;size:4;signed:1;\n\
         field:long prev_state;offset:6;size:8;signed:1;\n\
         field:pid_t next_pid;offset:14;size:4;signed:1;\n{states}\n"
    );
    let wake = |id: u16| {
        let text = format!(
            "name: sched_wakeup\nID: {id}\nfield:pid_t pid;offset:2;size:4;signed:1;\n\
             field:int target_cpu;offset:6;size:4;signed:1;\n"
        );
        TracepointFormat::parse(&text).unwrap()
    };
    let switch = TracepointFormat::parse(&switch).unwrap();
    TracepointOffsets::new(&switch, [&wake(6), &wake(7)]).unwrap()
}

fn encode_raw(id: u16, numbers: &[&[u8]]) -> Vec<u8> {
    [&id.to_ne_bytes(), &numbers.concat()[..]].concat()
}

#[test]
fn leave_reasons_follow_from_the_tracepoints_state() {
    let left = |state: i64| {
        let bytes = [
            &7i32.to_ne_bytes()[..],
            &state.to_ne_bytes(),
            &8i32.to_ne_bytes(),
        ];
        encode_raw(5, &bytes)
    };
    for (state, expected) in [
        (0, LeaveReason::Preempted),
        (0x100, LeaveReason::Preempted),
        (1, LeaveReason::Blocked),
        (0x10, LeaveReason::Ended),
        (0x20, LeaveReason::Ended),
    ] {
        let raw = left(state);
        let records = [(0, Record::Sample { raw: &raw })];
        let expected = [make_switch(7, expected, 8)];
        check(
            SwitchFormat::Tracepoints(Box::new(parse_offsets())),
            &records,
            &expected,
        );
    }
}

#[test]
fn wakeups_have_a_target_and_damaged_samples_are_skipped() {
    let wake = encode_raw(7, &[&9i32.to_ne_bytes(), &4i32.to_ne_bytes()]);
    let nowhere = encode_raw(7, &[&9i32.to_ne_bytes(), &(-1i32).to_ne_bytes()]);
    let unknown = encode_raw(8, &[&[0; 8]]);
    let samples = [&wake[..], &wake[..9], &nowhere, &unknown, &[]];
    let records = samples.map(|raw| (0, Record::Sample { raw }));
    let expected = EventKind::Wake {
        thread: 9,
        target: 4,
    };
    check(
        SwitchFormat::Tracepoints(Box::new(parse_offsets())),
        &records,
        &[expected],
    );
}
