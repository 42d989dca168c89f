//! Records as the kernel writes them, cut short, and no records at all.

use super::*;
use crate::linux::perf_record::HEADER;

/// A record of this kind, flags and body.
fn encode_record(kind: u32, flags: u16, body: &[&[u8]]) -> Vec<u8> {
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

fn encode_ints(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

fn encode_longs(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_ne_bytes()).collect()
}

/// Process 7, thread 8, time 5, event 9.
fn encode_trailer() -> Vec<u8> {
    [encode_ints(&[7, 8]), encode_longs(&[5, 9])].concat()
}

fn encode_sample(flags: u16, chain: &[u64], registers: &[u64]) -> Vec<u8> {
    let chain = [&[chain.len() as u64][..], chain].concat();
    let head = [
        encode_longs(&[9, 0x1234]),
        encode_ints(&[7, 8]),
        encode_longs(&[5]),
    ]
    .concat();
    encode_record(
        9,
        flags,
        &[&head, &encode_longs(&chain), &encode_longs(registers)],
    )
}

#[test]
fn samples_have_chains_of_both_modes() {
    let bytes = encode_sample(
        1,
        &[CONTEXT_KERNEL, 0xffff_0001, CONTEXT_USER, 0x10, 0x20],
        &[0],
    );
    let (time_ns, read) = Records::new(&bytes).next().unwrap();
    let Record::Sample {
        id,
        pid,
        tid,
        chain,
        registers,
        stack,
    } = read
    else {
        unreachable!("{read:?}")
    };
    assert_eq!((time_ns, id, pid, tid), (5, 9, 7, 8));
    let frames: Vec<_> = chain.frames().collect();
    assert_eq!(frames, [(0xffff_0001, true), (0x10, false), (0x20, false)]);
    assert_eq!((registers.values().count(), stack.len()), (0, 0));
    assert!(!registers.are_wide());
    // Without a chain the instruction itself is known.
    let bytes = encode_sample(2, &[], &[0]);
    let (_, Record::Sample { chain, .. }) = Records::new(&bytes).next().unwrap() else {
        unreachable!()
    };
    assert_eq!(chain.frames().collect::<Vec<_>>(), [(0x1234, false)]);
}

#[test]
fn registers_follow_the_chain() {
    let count = u64::from(REGISTER_MASK.count_ones());
    let values: Vec<u64> = (100..100 + count).collect();
    let bytes = encode_sample(2, &[CONTEXT_USER, 0x10], &[&[2][..], &values].concat());
    let (_, Record::Sample { registers, .. }) = Records::new(&bytes).next().unwrap() else {
        unreachable!()
    };
    assert_eq!(registers.values().collect::<Vec<_>>(), values);
    assert!(registers.are_wide());
}

#[test]
fn the_stack_follows_the_registers() {
    let check = |rest: &[u64], expected: &[u64]| {
        let count = REGISTER_MASK.count_ones() as usize;
        let registers = [&[2][..], &vec![0; count], rest].concat();
        let bytes = encode_sample(2, &[CONTEXT_USER, 0x10], &registers);
        let (_, Record::Sample { stack, .. }) = Records::new(&bytes).next().unwrap() else {
            unreachable!()
        };
        assert_eq!(stack, encode_longs(expected), "{rest:?}");
    };
    check(&[8, 0x5555, 8], &[0x5555]);
    // The end of the stack was reached.
    check(&[24, 1, 2, 3, 16], &[1, 2]);
    // An unreadable stack, a thread without one, and a false length.
    check(&[8, 0, 0], &[]);
    check(&[0], &[]);
    check(&[], &[]);
    check(&[16, 1, 8], &[]);
    check(&[8, 1, 16], &[]);
    check(&[u64::MAX, 1, 8], &[]);
}

#[test]
fn mappings_names_and_lives_are_read() {
    let mapped = encode_record(
        1,
        2,
        &[
            &encode_ints(&[7, 8]),
            &encode_longs(&[0x1000, 0x200, 0x30]),
            b"/a b\0\0\0\0",
            &encode_trailer(),
        ],
    );
    let named = encode_record(
        3,
        2 | 1 << 13,
        &[&encode_ints(&[7, 8]), b"prog\0\0\0\0", &encode_trailer()],
    );
    let fork = encode_record(
        7,
        0,
        &[
            &encode_ints(&[10, 7, 11, 8]),
            &encode_longs(&[5]),
            &encode_trailer(),
        ],
    );
    let lost = encode_record(2, 0, &[&encode_longs(&[9, 3]), &encode_trailer()]);
    let exit = encode_record(
        4,
        0,
        &[
            &encode_ints(&[10, 7, 11, 8]),
            &encode_longs(&[5]),
            &encode_trailer(),
        ],
    );
    let all = [mapped, named, exit, fork, lost].concat();
    let read: Vec<_> = Records::new(&all).map(|(_, record)| record).collect();
    let expected = [
        Record::Mapped {
            pid: 7,
            start: 0x1000,
            length: 0x200,
            offset: 0x30,
            path: b"/a b",
        },
        Record::Named {
            pid: 7,
            tid: 8,
            is_exec: true,
            name: b"prog",
        },
        Record::Fork {
            pid: 10,
            parent: 7,
            tid: 11,
            parent_tid: 8,
        },
        Record::Lost(3),
    ];
    assert_eq!(read, expected);
}

#[test]
fn nothing_is_read_after_a_malformed_record() {
    let good = encode_record(2, 0, &[&encode_longs(&[9, 3]), &encode_trailer()]);
    for bad in [
        encode_record(1, 0, &[&encode_ints(&[7, 8])]),
        encode_sample(2, &[], &[]),
        vec![1, 2, 3],
        encode_record(9, 0, &[&encode_longs(&[9, 1, 8, 5, u64::MAX])]),
    ] {
        let bytes = [&good[..], &bad, &good].concat();
        let read: Vec<_> = Records::new(&bytes).map(|(_, record)| record).collect();
        assert_eq!(read, [Record::Lost(3), Record::Damaged], "{bad:?}");
    }
}
