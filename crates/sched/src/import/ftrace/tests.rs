//! Lines of ftrace, in all their forms.

use std::io::Cursor;

use crate::import::{Import, ImportError, Imported, TraceSubject};
use crate::{Event, EventKind, LeaveReason, Tid};
use pinwise_topology::Topology;

fn import(text: &[u8], whom: TraceSubject) -> Result<(Vec<Event>, Imported), ImportError> {
    let mut events: Vec<Event> = Vec::new();
    let import = Import::open(Cursor::new(text))?;
    let imported = import.read(whom, &mut |batch| events.extend_from_slice(batch))?;
    Ok((events, imported))
}

/// The events of a line without names, after a first switch that makes it a trace.
#[track_caller]
fn check(arguments: &str, expected: &[EventKind]) {
    let line = |time, rest: &str| format!("            bash-317     [001] d..2. {time}: {rest}\n");
    let first = "sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120";
    let text = line("1.000000", first) + &line("2.000000", arguments);
    let (events, _) = import(text.as_bytes(), TraceSubject::Default).unwrap();
    let later = events
        .into_iter()
        .filter(|event| event.time_ns == 2_000_000_000);
    let is_name = |what: &EventKind| matches!(what, EventKind::Name { .. });
    let found: Vec<EventKind> = later
        .map(|event| event.what)
        .filter(|w| !is_name(w))
        .collect();
    assert_eq!(found, expected, "{arguments}");
}

#[track_caller]
fn check_refusal(line: &str, part: &str) {
    let text = format!("# tracer: nop\n#\n            bash-317     [001] d..2. 1.000000: {line}\n");
    let error = import(text.as_bytes(), TraceSubject::Default)
        .unwrap_err()
        .to_string();
    assert!(error.contains(part), "{error}");
    assert!(!error.contains('\n'), "{error}");
}

fn make_switch(prev: Tid, left: LeaveReason, next: Tid) -> EventKind {
    EventKind::Switch { prev, left, next }
}

#[test]
fn switches_are_parsed_in_all_styles() {
    for (state, left) in [
        ("S", LeaveReason::Blocked),
        ("R", LeaveReason::Preempted),
        ("R+", LeaveReason::Preempted),
        ("D|K", LeaveReason::Blocked),
        ("0x100", LeaveReason::Preempted),
        ("1", LeaveReason::Blocked),
    ] {
        check(
            &format!(
                "sched_switch: prev_comm=a b prev_pid=7 prev_prio=120 prev_state={state} ==> next_comm=swapper/1 next_pid=0 next_prio=120"
            ),
            &[make_switch(7, left, 0)],
        );
        check(
            &format!("sched_switch:         a b:7 [120] {state} ==> swapper/1:0 [120]"),
            &[make_switch(7, left, 0)],
        );
    }
    check(
        "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=Z ==> next_comm=b next_pid=8 next_prio=120",
        &[
            make_switch(7, LeaveReason::Ended, 8),
            EventKind::Exit { thread: 7 },
        ],
    );
}

/// A call chain follows each event if one was recorded.
#[test]
fn output_of_perf_script_is_parsed() {
    let text = "            perf 10358 [001] 44289.602113:       sched:sched_wakeup: comm=perf-exec pid=10360 prio=120 target_cpu=001
\tffffffff810c8d1a ttwu_do_activate+0xba ([kernel.kallsyms])

            a-1  10358 [001] 44289.602168:       sched:sched_switch: prev_comm=a-1 prev_pid=10358 prev_prio=120 prev_state=S ==> next_comm=perf-exec next_pid=10360 next_prio=120
";
    let (events, imported) = import(text.as_bytes(), TraceSubject::Default).unwrap();
    let seen: Vec<_> = events
        .iter()
        .map(|event| (event.time_ns, event.cpu, &event.what))
        .collect();
    assert!(
        seen.contains(&(
            44_289_602_168_000,
            1,
            &make_switch(10358, LeaveReason::Blocked, 10360)
        )),
        "{seen:?}"
    );
    assert_eq!(imported.notes, Vec::<String>::new());
    let import = Import::open(Cursor::new(text.as_bytes())).unwrap();
    assert_eq!(import.facts().format, "perf script");
}

#[test]
fn names_that_look_like_fields_are_parsed_as_names() {
    for name in [
        "x prev_pid=9 ",
        " ==> next_comm=",
        "a=b",
        "",
        ":1 [2] R ==>",
        "\u{1b}[31m",
    ] {
        check(
            &format!(
                "sched_switch: prev_comm={name} prev_pid=7 prev_prio=120 prev_state=S ==> next_comm={name} next_pid=8 next_prio=120"
            ),
            &[make_switch(7, LeaveReason::Blocked, 8)],
        );
        check(
            &format!("sched_wakeup: comm={name} pid=7 prio=120 target_cpu=003"),
            &[EventKind::Wake {
                thread: 7,
                target: 3,
            }],
        );
    }
    for (name, next) in [("a:1 [2", "b:5 ["), ("a", "b:5 [0"), ("a b:", ":0")] {
        check(
            &format!("sched_switch: {name}:7 [0] R ==> {next}:8 [0]"),
            &[make_switch(7, LeaveReason::Preempted, 8)],
        );
    }
}

#[test]
fn wakeups_forks_and_exits_are_parsed() {
    let wake = [EventKind::Wake {
        thread: 7,
        target: 3,
    }];
    check(
        "sched_wakeup: comm=a pid=7 prio=120 success=1 target_cpu=003",
        &wake,
    );
    check("sched_wakeup_new: a:7 [120] CPU:003", &wake);
    check("sched_wakeup: a:7 [120] success=1 CPU:003", &wake);
    check("sched_waking: comm=a pid=7 prio=120 target_cpu=003", &wake);
    let fork = |process| EventKind::Fork {
        parent: 1,
        child: 9,
        process,
    };
    check(
        "sched_process_fork: comm=a pid=1 child_comm=a child_pid=9",
        &[fork(9)],
    );
    // The process of an executing thread is news.
    check(
        "sched_process_exec: filename=/bin/a pid=1 b pid=9 old_pid=9",
        &[EventKind::Known {
            thread: 9,
            process: 9,
        }],
    );
    check("sched_stat_runtime: comm=a pid=7 runtime=9 [ns]", &[]);
    check(
        "sched_migrate_task: comm=a pid=7 prio=120 orig_cpu=0 dest_cpu=1",
        &[],
    );
}

#[test]
fn task_newtask_distinguishes_threads_from_processes() {
    let line =
        |time: u32, rest: &str| format!("            bash-317     [001] d..2. {time}.0: {rest}\n");
    let text = [
        line(1, "sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120"),
        line(2, "task_newtask: pid=9 comm=b clone_flags=3d0f00 oom_score_adj=0"),
        line(2, "sched_process_fork: comm=b pid=2 child_comm=b child_pid=9"),
    ]
    .concat();
    let (events, _) = import(text.as_bytes(), TraceSubject::Default).unwrap();
    let fork = EventKind::Fork {
        parent: 2,
        child: 9,
        process: 2,
    };
    assert!(events.iter().any(|event| event.what == fork), "{events:?}");
    assert!(
        !events
            .iter()
            .any(|event| matches!(event.what, EventKind::Exit { .. }))
    );
}

#[test]
fn a_waking_thread_is_queued_on_the_cpu_to_which_it_is_moved() {
    let line =
        |time: u32, rest: &str| format!("            bash-317     [001] d..2. {time}.0: {rest}\n");
    let text = [
        line(1, "sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120"),
        line(2, "sched_waking: comm=a pid=1 prio=120 target_cpu=001"),
        line(3, "sched_migrate_task: comm=a pid=1 prio=120 orig_cpu=1 dest_cpu=5"),
        line(4, "sched_migrate_task: comm=a pid=1 prio=120 orig_cpu=5 dest_cpu=6"),
    ]
    .concat();
    let (events, _) = import(text.as_bytes(), TraceSubject::Default).unwrap();
    let wakes: Vec<_> = events
        .iter()
        .filter(|e| matches!(e.what, EventKind::Wake { .. }))
        .collect();
    assert_eq!(wakes.len(), 1);
    assert_eq!(
        (wakes[0].time_ns, &wakes[0].what),
        (
            2_000_000_000,
            &EventKind::Wake {
                thread: 1,
                target: 5
            }
        )
    );
}

#[test]
fn losses_come_before_the_next_event_of_their_cpu() {
    let line = |cpu: u32, time: u32| {
        format!(
            "            bash-317     [00{cpu}] d..2. {time}.0: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n"
        )
    };
    for (lost, records) in [
        ("CPU:1 [LOST 23 EVENTS]", 23),
        (" CPU:1 [23 EVENTS DROPPED]", 23),
        ("CPU:1 [LOST EVENTS]", 1),
    ] {
        let text = line(0, 1) + lost + "\n" + &line(0, 2) + &line(1, 3);
        let (events, imported) = import(text.as_bytes(), TraceSubject::Default).unwrap();
        let at = events
            .iter()
            .position(|e| e.what == EventKind::Lost { records })
            .unwrap();
        assert_eq!((events[at].cpu, events[at].time_ns), (1, 3_000_000_000));
        assert!(
            imported.notes[0].contains(&records.to_string()),
            "{:?}",
            imported.notes
        );
    }
}

#[test]
fn other_lines_are_counted_and_unreadable_ones_reported() {
    check_refusal(
        "sched_switch: prev_comm=a prev_pid=x prev_prio=120",
        "line 3: sched_switch: field 'prev_pid' is 'x', not a number",
    );
    check_refusal(
        "sched_switch: prev_comm=a prev_tid=7",
        "no field 'prev_pid'",
    );
    check_refusal(
        "sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=? ==> ",
        "'prev_state' is '?'",
    );
    check_refusal("sched_switch: garbage", "no field 'prev_pid'");
    check_refusal(
        "sched_wakeup: comm=a pid=7 prio=120 cpu=1",
        "no field 'target_cpu'",
    );
    check_refusal(
        "sched_wakeup: comm=a pid=99999999999 prio=120 target_cpu=1",
        "'pid' is '99999999999'",
    );
    check_refusal("sched_process_exit: \u{1b}[31m", "\\x1b[31m");
    let good = "            bash-317     [001] d..2. 1.0: sched_switch: prev_comm=a prev_pid=1 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n";
    let (_, imported) = import(
        format!("# tracer: nop\nwhat\n{good} => schedule\nis this").as_bytes(),
        TraceSubject::Default,
    )
    .unwrap();
    assert_eq!(
        imported.notes,
        ["2 lines are not events and were skipped; the first is line 2."]
    );
    let (events, imported) = import(
        format!("{good}{}", &good[..80]).as_bytes(),
        TraceSubject::Default,
    )
    .unwrap();
    assert_eq!(imported.notes, ["The file ends in the middle of a line."]);
    assert_eq!(events.len(), 3);
    let long = format!("{good}{}\n", "x".repeat(1 << 17));
    let error = import(long.as_bytes(), TraceSubject::Default)
        .unwrap_err()
        .to_string();
    assert_eq!(error, "line 2: it is longer than 64 KiB");
}

#[test]
fn a_requested_process_is_followed_or_reported_as_missing() {
    let text = "            bash-317     (    300) [001] d..2. 1.0: sched_switch: prev_comm=a prev_pid=317 prev_prio=120 prev_state=S ==> next_comm=b next_pid=2 next_prio=120\n";
    let (events, imported) = import(text.as_bytes(), TraceSubject::Process(300)).unwrap();
    assert_eq!(imported.root, Some(317));
    assert_eq!(
        events[0].what,
        EventKind::Known {
            thread: 317,
            process: 300
        }
    );
    assert_eq!(events[1].what, EventKind::Follow { thread: 317 });
    let error = import(text.as_bytes(), TraceSubject::Process(5)).unwrap_err();
    assert_eq!(error.to_string(), "process 5 is not in it");
}

proptest::proptest! {
    #[test]
    fn names_that_look_like_fields_do_not_confuse_the_parser(name in "[ -~]{0,15}", other in "[ -~]{0,15}", prev in 1..99_999i32, next in 1..99_999i32) {
        let long = format!("            bash-317     [001] d..2. 1.0: sched_switch: prev_comm={name} prev_pid={prev} prev_prio=120 prev_state=S ==> next_comm={other} next_pid={next} next_prio=120\n");
        let (events, _) = import(long.as_bytes(), TraceSubject::Default).unwrap();
        proptest::prop_assert!(events.iter().any(|event| event.what == make_switch(prev, LeaveReason::Blocked, next)));
    }

    #[test]
    fn any_text_is_read_without_panic(text in "(\\PC{0,30}|[ -~]{0,20}-[0-9]{1,5} +\\[[0-9]{1,3}\\] [0-9.]{1,20}: sched_(switch|wakeup|process_exec|migrate_task): [ -~]{0,60}\n){0,6}") {
        let _ = import(text.as_bytes(), TraceSubject::Default);
    }
}

#[test]
fn a_trace_of_centuries_is_refused_with_its_line() {
    let switches = |time: &str| {
        let line = |cpu: u32, prev: u32| {
            format!(
                "            a-{prev}     [00{cpu}] d..2. {time}: sched_switch: prev_comm=a prev_pid={prev} prev_prio=120 prev_state=R ==> next_comm=b next_pid={} next_prio=120\n",
                11 - prev
            )
        };
        line(0, 1) + &line(1, 2) + &line(2, 3)
    };
    let text = switches("0.000001") + &switches("18446744073.000001");
    let error = import(text.as_bytes(), TraceSubject::Default).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 4: its time, 18446744073 s, is more than 13 days from that of the first event, 0 s"
    );
}

/// As printed by trace-cmd if the kernel's events have no `success` (from a report).
const WITHOUT_SUCCESS: &str = "cpus=4
          <idle>-0       [003] 100.005000: sched_switch: swapper/3:0 [120] R ==> a:101 [120]
               a-101     [003] 100.010000: sched_wakeup: b:102 [120]<CANT FIND FIELD success> CPU:003
               a-101     [003] 100.015000: sched_switch: a:101 [120] S ==> b:102 [120]
";

#[test]
fn a_wakeup_without_success_is_parsed() {
    let (events, imported) = import(WITHOUT_SUCCESS.as_bytes(), TraceSubject::Default).unwrap();
    let is_wakeup = |event: &&Event| matches!(event.what, EventKind::Wake { thread: 102, .. });
    let woken: Vec<u64> = events
        .iter()
        .filter(is_wakeup)
        .map(|event| event.time_ns)
        .collect();
    assert_eq!(woken, [100_010_000_000]);
    assert_eq!(imported.notes, Vec::<String>::new());
}

/// A target beyond any machine once took 720 GB of memory.
#[test]
fn a_wakeup_on_an_impossible_cpu_is_a_contradiction() {
    let text = WITHOUT_SUCCESS.replace("CPU:003", "CPU:4294967295");
    let machine = Topology::from_synthetic("core:4 pu:1").unwrap();
    let mut analysis = crate::Analysis::new(&machine, crate::Tier::Bpf.scope());
    let (events, _) = import(text.as_bytes(), TraceSubject::Default).unwrap();
    events.iter().for_each(|event| analysis.add_event(event));
    assert_eq!(analysis.finish(None).unknown.contradictions, 1);
}

#[test]
fn an_unreadable_field_loses_one_event() {
    let count_after = |text: String| {
        let (events, imported) = import(text.as_bytes(), TraceSubject::Default).unwrap();
        let count = |is: fn(&EventKind) -> bool| events.iter().filter(|e| is(&e.what)).count();
        let switches = count(|what| matches!(what, EventKind::Switch { .. }));
        let losses = count(|what| matches!(what, EventKind::Lost { .. }));
        (switches, losses, imported.notes)
    };
    // Who ran is known without a wake-up, and unknown without a switch.
    for target in [" nothing", " CPU:<CANT FIND FIELD target_cpu>"] {
        let odd = WITHOUT_SUCCESS.replace("<CANT FIND FIELD success> CPU:003", target);
        let (switches, losses, notes) = count_after(odd);
        assert_eq!((switches, losses, notes.len()), (2, 0, 1), "{notes:?}");
        assert!(
            notes[0].starts_with("Events lost to fields that cannot be read: 1; the first: line 3"),
            "{notes:?}"
        );
    }
    let switch =
        "               b-102     [003] 100.035000: sched_switch: b:102 [120] ? ==> a:101 [120]\n";
    let next =
        "               a-101     [003] 100.036000: sched_switch: a:101 [120] S ==> b:102 [120]\n";
    let (switches, losses, notes) = count_after(format!("{WITHOUT_SUCCESS}{switch}{next}"));
    assert_eq!((switches, losses, notes.len()), (3, 1, 1), "{notes:?}");
}

#[test]
fn a_period_before_the_event_is_skipped() {
    let line = |period: &str| {
        format!(
            "            bash   317 [001]     1.000000: {period} sched:sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=b next_pid=8 next_prio=120\n"
        )
    };
    for period in ["", "         1"] {
        let (events, _) = import(line(period).as_bytes(), TraceSubject::Default).unwrap();
        let is_read = |event: &Event| event.what == make_switch(7, LeaveReason::Blocked, 8);
        assert!(events.iter().any(is_read), "{period:?}");
    }
}
