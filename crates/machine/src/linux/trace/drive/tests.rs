//! Events from before a trace began.

use super::*;
use pinwise_sched::LeaveReason;

fn make_event(time_ns: u64, cpu: u32, what: EventKind) -> Event {
    Event { time_ns, cpu, what }
}

fn make_switch(prev: Tid, next: Tid) -> EventKind {
    EventKind::Switch {
        prev,
        left: LeaveReason::Blocked,
        next,
    }
}

#[track_caller]
fn check(events: &[Event], from_ns: u64, expected: &[Event]) {
    let mut cut = events.to_vec();
    cut_beginning(&mut cut, from_ns);
    assert_eq!(cut, expected);
}

#[test]
fn only_the_state_at_the_start_is_kept() {
    let fork = EventKind::Fork {
        parent: 1,
        child: 2,
        process: 2,
    };
    let wake = EventKind::Wake {
        thread: 3,
        target: 0,
    };
    let events = [
        make_event(1, 0, make_switch(0, 5)),
        make_event(2, 1, make_switch(0, 6)),
        make_event(3, 0, fork.clone()),
        make_event(4, 0, wake.clone()),
        make_event(5, 0, make_switch(5, 7)),
        make_event(6, 1, EventKind::Lost { records: 1 }),
        make_event(10, 0, make_switch(7, 0)),
        make_event(11, 0, wake.clone()),
    ];
    let expected = [
        make_event(10, 1, make_switch(0, 6)),
        make_event(10, 0, fork),
        make_event(10, 0, make_switch(5, 7)),
        make_event(10, 0, make_switch(7, 0)),
        make_event(11, 0, wake),
    ];
    check(&events, 10, &expected);
}

#[test]
fn a_thread_that_left_before_is_not_on_the_cpu() {
    let left = EventKind::Out {
        thread: 5,
        left: LeaveReason::Preempted,
    };
    let events = [
        make_event(1, 0, EventKind::In { thread: 5 }),
        make_event(2, 0, left),
    ];
    check(&events, 10, &[]);
    check(
        &events[..1],
        10,
        &[make_event(10, 0, EventKind::In { thread: 5 })],
    );
    check(&[], 10, &[]);
}
