//! Checks the written bytes with a reader of their own.

use super::{TraceCsv, TracePerfetto};
use pinwise_sched::{Event, EventKind, LeaveReason, Sample};

/// A field of a message: its number and what is in it.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(u64),
    Bytes(Vec<u8>),
}

/// Splits a message; every byte must belong to a field.
fn parse_fields(mut bytes: &[u8]) -> Vec<(u64, Value)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let (first, rest) = bytes.split_first().unwrap();
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return value;
            }
        }
        panic!("a number without end");
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)),
            2 => {
                let length = usize::try_from(varint(&mut bytes)).unwrap();
                let (inside, rest) = bytes.split_at(length);
                bytes = rest;
                Value::Bytes(inside.to_vec())
            }
            wire => panic!("wire type {wire}"),
        };
        found.push((key >> 3, value));
    }
    found
}

fn find_messages(fields: &[(u64, Value)], wanted: u64) -> Vec<Vec<u8>> {
    let read_field = |(field, value): &(u64, Value)| match value {
        Value::Bytes(bytes) if *field == wanted => Some(bytes.clone()),
        _ => None,
    };
    fields.iter().filter_map(read_field).collect()
}

fn find_number(fields: &[(u64, Value)], wanted: u64) -> Option<u64> {
    let read_field = |(field, value): &(u64, Value)| match value {
        Value::Number(number) if *field == wanted => Some(*number),
        _ => None,
    };
    fields.iter().find_map(read_field)
}

fn example_events() -> Vec<Event> {
    let (thread, process, left) = (7, 7, LeaveReason::Preempted);
    let name = "=1+1\n\"".into();
    let (parent, child) = (7, 8);
    let sample = Sample {
        thread,
        cpu: 2,
        is_runnable: true,
        run_ns: 5,
        migrations: Some(1),
        ..Sample::default()
    };
    let ended = EventKind::Out {
        thread: child,
        left: LeaveReason::Ended,
    };
    let (prev, next, target) = (0, 7, 3);
    let fork = EventKind::Fork {
        parent,
        child,
        process,
    };
    let all = [
        (1000, 0, EventKind::Known { thread, process }),
        (1000, 0, EventKind::Name { thread, name }),
        (1000, 0, EventKind::Switch { prev, left, next }),
        (1500, 0, fork),
        (1600, 0, EventKind::Wake { thread: 8, target }),
        (1700, 3, EventKind::In { thread: 8 }),
        (1800, 3, ended),
        (1800, 3, EventKind::Exit { thread: 8 }),
        (1900, 0, EventKind::Lost { records: 4 }),
        (1900, 0, EventKind::Sample(Box::new(sample))),
        (900, 0, EventKind::Usage { busy_ns: 12 }),
    ];
    let event = |(time_ns, cpu, what)| Event { time_ns, cpu, what };
    all.map(event).into()
}

#[test]
fn csv_has_a_line_for_each_event() {
    let mut written = Vec::new();
    let mut writer = TraceCsv::new(&mut written).unwrap();
    writer.write(&example_events()).unwrap();
    writer.finish().unwrap();
    let text = String::from_utf8(written).unwrap();
    let expected = r#"time_ns,cpu,event,thread,name,detail
0,0,known,7,,process=7
0,0,name,7,"'=1+1\n""",
0,0,switch,7,"'=1+1\n""",prev=0 left=preempted
500,0,fork,8,"'=1+1\n""",parent=7 process=7
600,0,wake,8,"'=1+1\n""",target=3
700,3,in,8,"'=1+1\n""",
800,3,out,8,"'=1+1\n""",left=ended
800,3,exit,8,"'=1+1\n""",
900,0,lost,,,records=4
900,0,sample,7,"'=1+1\n""",runnable=true run_ns=5 migrations=1
0,0,usage,,,busy_ns=12
"#;
    assert_eq!(text, expected);
}

#[test]
fn perfetto_has_switches_processes_and_findings() {
    let mut written = Vec::new();
    let mut writer = TracePerfetto::new(&mut written);
    for event in example_events().chunks(4) {
        writer.write(event).unwrap();
    }
    writer.finish(["a finding"].into_iter()).unwrap();
    let trace = parse_fields(&written);
    assert!(trace.iter().all(|(field, _)| *field == 1));
    let packets = find_messages(&trace, 1);
    let packets: Vec<_> = packets.iter().map(|packet| parse_fields(packet)).collect();
    assert!(packets.iter().all(|p| find_number(p, 10).is_some()));

    // FtraceEventBundle: CPU, then events with their time and what happened.
    let mut seen = Vec::new();
    let mut lost = 0;
    for bundle in packets.iter().flat_map(|packet| find_messages(packet, 1)) {
        let bundle = parse_fields(&bundle);
        let cpu = find_number(&bundle, 1).unwrap();
        lost += find_number(&bundle, 3).unwrap_or(0);
        for event in find_messages(&bundle, 2) {
            let event = parse_fields(&event);
            let time = find_number(&event, 1).unwrap();
            let kind = event.last().unwrap().0;
            let body = parse_fields(&find_messages(&event, kind)[0]);
            seen.push((time, cpu, find_number(&event, 2).unwrap(), kind, body));
        }
    }
    assert_eq!(lost, 1);
    let order: Vec<_> = seen.iter().map(|s| (s.0, s.1, s.2, s.3)).collect();
    let (switch, waking, new, rename, exit) = (4, 20, 235, 236, 238);
    assert_eq!(
        order,
        [
            (1000, 0, 7, rename),
            (1000, 0, 0, switch),
            (1500, 0, 7, new),
            (1600, 0, 7, waking),
            (1700, 3, 0, switch),
            (1800, 3, 8, switch),
            (1800, 3, 8, exit),
        ]
    );
    let name = Value::Bytes(b"=1+1\n\"".to_vec());
    assert_eq!(seen[1].4[0], (1, Value::Bytes(b"swapper".to_vec())));
    assert_eq!(seen[1].4[4], (5, name.clone()));
    assert_eq!(find_number(&seen[1].4, 6), Some(7));
    assert_eq!(find_number(&seen[2].4, 3), Some(0x10000));
    assert_eq!(find_number(&seen[3].4, 5), Some(3));
    assert_eq!(find_number(&seen[5].4, 4), Some(16));

    // ProcessTree: thread 8 is of process 7.
    let trees = packets.iter().flat_map(|packet| find_messages(packet, 2));
    let tree = parse_fields(&trees.last().unwrap());
    let thread = parse_fields(&find_messages(&tree, 2)[0]);
    assert_eq!(
        (find_number(&thread, 1), find_number(&thread, 3)),
        (Some(8), Some(7))
    );
    assert_eq!(thread[1], (2, name));

    // A counter with a track of its own, and a finding on another one.
    let tracks = packets.iter().flat_map(|packet| find_messages(packet, 60));
    let tracks: Vec<_> = tracks
        .map(|track| find_number(&parse_fields(&track), 1))
        .collect();
    assert_eq!(tracks, [Some((1 << 32) + 7), Some(1)]);
    let drawn: Vec<_> = packets
        .iter()
        .flat_map(|packet| find_messages(packet, 11))
        .collect();
    let (counter, finding) = (parse_fields(&drawn[0]), parse_fields(&drawn[1]));
    assert_eq!(
        (find_number(&counter, 11), find_number(&counter, 30)),
        (tracks[0], Some(2))
    );
    assert_eq!(find_messages(&finding, 23), [b"a finding".to_vec()]);
}

#[test]
fn negative_numbers_take_ten_bytes() {
    let mut message = super::proto::Message::default();
    message.put_signed(4, -1);
    assert_eq!(
        parse_fields(message.bytes()),
        [(4, Value::Number(u64::MAX))]
    );
    assert_eq!(message.bytes().len(), 11);
}
