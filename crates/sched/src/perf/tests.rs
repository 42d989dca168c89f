//! Records as the kernel writes them, truncated, and arbitrary bytes.

use proptest::prelude::*;

use super::*;

const WITH_THREAD: Layout = Layout::from_sample_type(TID | TIME);
const PLAIN: Layout = Layout::from_sample_type(TIME | RAW);
const TASK: Task = Task {
    process: 1,
    parent_process: 2,
    thread: 3,
    parent: 4,
    time_ns: 9,
};

/// A record of this kind, flags and body.
fn record(kind: u32, flags: u16, body: &[&[u8]]) -> Vec<u8> {
    let body = body.concat();
    let size = u16::try_from(HEADER + body.len()).unwrap();
    [
        &kind.to_ne_bytes()[..],
        &flags.to_ne_bytes(),
        &size.to_ne_bytes(),
        &body,
    ]
    .concat()
}

fn ints(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

/// Process 7, thread 8, and a time.
fn trailer(time_ns: u64) -> Vec<u8> {
    [ints(&[7, 8]), time_ns.to_ne_bytes().to_vec()].concat()
}

#[track_caller]
fn check(bytes: &[u8], layout: Layout, expected: &[(u64, Record<'_>)]) {
    let read: Vec<_> = Records::new(bytes, layout).collect();
    let mut intact = read.iter().filter(|read| read.record != Record::Damaged);
    let thread = if layout == WITH_THREAD { 8 } else { 0 };
    assert!(intact.all(|read| read.thread == thread));
    let read: Vec<_> = read
        .iter()
        .map(|read| (read.time_ns, read.record))
        .collect();
    assert_eq!(read, expected);
}

#[test]
fn switches_are_decoded() {
    let own = |flags| record(14, flags, &[&trailer(5)]);
    let switch = |is_out, is_preempted| Record::Switch {
        other: None,
        is_out,
        is_preempted,
    };
    check(&own(0), WITH_THREAD, &[(5, switch(false, false))]);
    check(&own(1 << 13), WITH_THREAD, &[(5, switch(true, false))]);
    check(&own(3 << 13), WITH_THREAD, &[(5, switch(true, true))]);
    let wide = record(15, 1 << 13, &[&ints(&[3, 4]), &trailer(6)]);
    let expected = Record::Switch {
        other: Some(4),
        is_out: true,
        is_preempted: false,
    };
    check(&wide, WITH_THREAD, &[(6, expected)]);
}

#[test]
fn forks_exits_and_names_are_decoded() {
    let task = [ints(&[1, 2, 3, 4]), 9u64.to_ne_bytes().to_vec()].concat();
    let fork = Record::Fork(TASK);
    check(
        &record(7, 0, &[&task, &trailer(9)]),
        WITH_THREAD,
        &[(9, fork)],
    );
    let exit = Record::Exit(TASK);
    check(
        &record(4, 0, &[&task, &trailer(9)]),
        WITH_THREAD,
        &[(9, exit)],
    );
    let name = Record::Comm {
        process: 7,
        thread: 8,
        is_exec: true,
        name: b"prog\xff",
    };
    let comm = [ints(&[7, 8]), b"prog\xff\0\0\0".to_vec()].concat();
    let bytes = record(3, 1 << 13, &[&comm, &9u64.to_ne_bytes()]);
    check(&bytes, PLAIN, &[(9, name)]);
}

#[test]
fn losses_are_decoded() {
    let numbers = [1u64.to_ne_bytes(), 42u64.to_ne_bytes()].concat();
    let lost = |records| Record::Lost { records };
    check(
        &record(2, 0, &[&numbers, &trailer(3)]),
        WITH_THREAD,
        &[(3, lost(42))],
    );
    let samples = record(13, 0, &[&42u64.to_ne_bytes(), &trailer(3)]);
    check(&samples, WITH_THREAD, &[(3, lost(42))]);
    let throttled = record(5, 0, &[&numbers, &8u64.to_ne_bytes(), &trailer(3)]);
    check(&throttled, WITH_THREAD, &[(3, Record::Throttle)]);
}

#[test]
fn samples_keep_the_bytes_of_the_tracepoint() {
    let time = 4u64.to_ne_bytes();
    let raw = Record::Sample { raw: b"abcd" };
    let body: [&[u8]; 3] = [&time, &4u32.to_ne_bytes(), b"abcd"];
    check(&record(9, 0, &body), PLAIN, &[(4, raw)]);
    let long: [&[u8]; 3] = [&time, &5u32.to_ne_bytes(), b"abcd"];
    check(&record(9, 0, &long), PLAIN, &[(0, Record::Damaged)]);
}

#[test]
fn other_kinds_are_skipped() {
    let mapped = record(1, 0, &[b"whatever"]);
    let exit = record(4, 0, &[&[0; 24], &2u64.to_ne_bytes()]);
    let nobody = Task {
        process: 0,
        parent_process: 0,
        thread: 0,
        parent: 0,
        time_ns: 0,
    };
    let expected = (2, Record::Exit(nobody));
    check(&[mapped, exit].concat(), PLAIN, &[expected]);
}

#[test]
fn nothing_is_decoded_after_an_invalid_record() {
    let good = record(14, 0, &[&trailer(5)]);
    let switch = Record::Switch {
        other: None,
        is_out: false,
        is_preempted: false,
    };
    for rest in [
        // A size below the header's, one beyond the end, a body too short.
        vec![14, 0, 0, 0, 0, 0, 7, 0],
        vec![14, 0, 0, 0, 0, 0, 200, 0],
        record(14, 0, &[&[1, 2, 3]]),
        vec![1, 2, 3],
        // An unterminated name.
        record(3, 0, &[&[1; 24], &trailer(4)[..0]]),
    ] {
        let bytes = [good.clone(), rest].concat();
        check(&bytes, WITH_THREAD, &[(5, switch), (5, Record::Damaged)]);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_and_end(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        has_thread: bool,
    ) {
        let records = Records::new(&bytes, if has_thread { WITH_THREAD } else { PLAIN });
        prop_assert!(records.count() <= bytes.len());
    }

    #[test]
    fn any_body_of_a_known_kind_is_decoded_or_refused(
        kind in 0u32..20,
        flags: u16,
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8),
    ) {
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| record(kind, flags, &[body])).collect();
        let read: Vec<_> = Records::new(&bytes, WITH_THREAD).collect();
        let damaged = read.iter().filter(|r| r.record == Record::Damaged).count();
        prop_assert!(damaged <= 1 && read.len() <= bodies.len());
    }
}
