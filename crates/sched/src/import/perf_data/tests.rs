//! Builds files record by record, in both byte orders, and imports them.

use std::io::Cursor;

use crate::import::{Import, ImportError, Imported, TraceSubject};
use crate::{Event, EventKind, LeaveReason, Tid};

/// `TID | TIME | CPU`, and flags: `task`, `sample_id_all`, `context_switch`.
const SAMPLE_TYPE: u64 = 1 << 1 | 1 << 2 | 1 << 7;
const FLAGS: u64 = 1 << 13 | 1 << 18 | 1 << 26;

/// A file under construction.
#[derive(Clone)]
struct File {
    bytes: Vec<u8>,
    is_big_endian: bool,
}

impl File {
    fn new(is_big_endian: bool) -> Self {
        let bytes = Vec::new();
        Self {
            bytes,
            is_big_endian,
        }
    }

    fn push_number(&mut self, value: u64, size: usize) {
        match self.is_big_endian {
            true => self.bytes.extend(&value.to_be_bytes()[8 - size..]),
            false => self.bytes.extend(&value.to_le_bytes()[..size]),
        }
    }

    fn push_words(&mut self, values: &[u64]) {
        values.iter().for_each(|value| self.push_number(*value, 8));
    }

    fn push_halves(&mut self, values: &[i32]) {
        let unsigned = values.iter().map(|value| value.cast_unsigned());
        unsigned.for_each(|value| self.push_number(value.into(), 4));
    }

    /// Appends a record, with the running thread, time and CPU at its end.
    fn push_record(
        &mut self,
        kind: u64,
        misc: u64,
        inside: &Self,
        who: (i32, i32),
        at: u64,
        cpu: u64,
    ) {
        self.push_number(kind, 4);
        self.push_number(misc, 2);
        self.push_number(8 + inside.bytes.len() as u64 + 24, 2);
        self.bytes.extend(&inside.bytes);
        self.push_halves(&[who.0, who.1]);
        self.push_number(at, 8);
        self.push_number(cpu, 4);
        self.push_number(0, 4);
    }

    fn new_part(&self) -> Self {
        Self::new(self.is_big_endian)
    }

    /// Appends a switch record; with `other`, one of a whole CPU.
    fn push_switch(&mut self, at: u64, cpu: u64, thread: Tid, misc: u64, other: Option<Tid>) {
        let mut inside = self.new_part();
        if let Some(other) = other {
            inside.push_halves(&[other, other]);
        }
        let kind = if other.is_some() { 15 } else { 14 };
        self.push_record(kind, misc, &inside, (thread, thread), at, cpu);
    }

    /// The bytes of the file: header and records.
    fn finish(&self) -> Vec<u8> {
        let mut file = self.new_part();
        file.bytes.extend(match self.is_big_endian {
            true => b"2ELIFREP",
            false => b"PERFILE2",
        });
        let data = 104 + 80;
        let length = self.bytes.len() as u64;
        file.push_words(&[104, 80, 104, 80, data, length, 0, 0, 0, 0, 0, 0]);
        file.push_halves(&[1, 64]);
        let flags = match self.is_big_endian {
            true => FLAGS.reverse_bits(),
            false => FLAGS,
        };
        file.push_words(&[9, 0, SAMPLE_TYPE, 0, flags, 0, 0, 0, 0]);
        file.bytes.truncate(104 + 64);
        file.push_words(&[0, 0]);
        file.bytes.extend(&self.bytes);
        file.bytes
    }
}

const OUT: u64 = 1 << 13;
const PREEMPTED: u64 = 1 << 14;

fn import(bytes: &[u8]) -> Result<(Vec<Event>, Imported), ImportError> {
    let mut events: Vec<Event> = Vec::new();
    let import = Import::open(Cursor::new(bytes))?;
    let imported = import.read(TraceSubject::Default, &mut |batch| {
        events.extend_from_slice(batch)
    })?;
    Ok((events, imported))
}

fn read_events(bytes: &[u8]) -> Vec<(u64, u32, EventKind)> {
    let (events, _) = import(bytes).unwrap();
    let parts = events.into_iter().map(|e| (e.time_ns, e.cpu, e.what));
    parts.collect()
}

#[test]
fn both_byte_orders_give_the_same_events() {
    let both = [false, true].map(|is_big_endian| {
        let mut file = File::new(is_big_endian);
        let mut comm = file.new_part();
        comm.push_halves(&[7, 7]);
        comm.bytes.extend(b"perf-exec\0\0\0\0\0\0\0");
        file.push_record(3, 0, &comm, (0, 0), 0, 0);
        comm.bytes.truncate(8);
        comm.bytes.extend(b"prog\0\0\0\0");
        file.push_record(3, OUT, &comm, (7, 7), 100, 2);
        file.push_switch(110, 2, 7, OUT | PREEMPTED, None);
        file.push_switch(130, 3, 7, 0, None);
        let mut fork = file.new_part();
        fork.push_halves(&[7, 7, 8, 7]);
        fork.push_number(140, 8);
        file.push_record(7, 0, &fork, (7, 7), 140, 3);
        let mut exit = file.new_part();
        exit.push_halves(&[7, 7, 7, 7]);
        exit.push_number(150, 8);
        file.push_record(4, 0, &exit, (7, 7), 150, 3);
        read_events(&file.finish())
    });
    let name = |thread, name: &str| EventKind::Name {
        thread,
        name: name.into(),
    };
    let fork = EventKind::Fork {
        parent: 7,
        child: 8,
        process: 7,
    };
    let expected = [
        (
            100,
            0,
            EventKind::Known {
                thread: 7,
                process: 7,
            },
        ),
        (100, 0, name(7, "perf-exec")),
        (100, 2, name(7, "prog")),
        (100, 2, EventKind::Follow { thread: 7 }),
        (
            110,
            2,
            EventKind::Out {
                thread: 7,
                left: LeaveReason::Preempted,
            },
        ),
        (130, 3, EventKind::In { thread: 7 }),
        (140, 3, fork),
        (140, 3, name(8, "prog")),
        (
            150,
            3,
            EventKind::Out {
                thread: 7,
                left: LeaveReason::Ended,
            },
        ),
        (150, 3, EventKind::Exit { thread: 7 }),
    ];
    assert_eq!(both[0], expected);
    assert_eq!(both[1], both[0]);
}

#[test]
fn switches_recorded_twice_count_once() {
    let mut file = File::new(false);
    file.push_switch(100, 0, 0, OUT | PREEMPTED, Some(7));
    file.push_switch(100, 0, 7, 0, Some(0));
    // The first half of this one was lost.
    let mut lost = file.new_part();
    lost.push_words(&[0, 5]);
    file.push_record(2, 0, &lost, (7, 7), 120, 0);
    file.push_switch(130, 0, 8, 0, Some(9));
    // A thread that is dead when it leaves.
    file.push_switch(140, 0, -1, OUT, Some(0));
    // perf's summary at the end adds nothing.
    let mut sum = file.new_part();
    sum.push_words(&[5]);
    file.push_record(13, 0, &sum, (0, 0), 0, 0);
    let switch = |prev, left, next| EventKind::Switch { prev, left, next };
    let bytes = file.finish();
    let found: Vec<_> = read_events(&bytes)
        .into_iter()
        .filter(|(_, _, what)| !matches!(what, EventKind::Known { .. }))
        .collect();
    assert_eq!(
        found,
        [
            (100, 0, switch(0, LeaveReason::Preempted, 7)),
            (120, 0, EventKind::Lost { records: 5 }),
            (130, 0, switch(9, LeaveReason::Unreported, 8)),
            (140, 0, switch(8, LeaveReason::Blocked, 0)),
        ]
    );
    let (_, imported) = import(&bytes).unwrap();
    assert_eq!(
        imported.notes,
        ["The file reports 5 records lost during recording."]
    );
}

#[test]
fn truncation_is_reported_and_earlier_records_count() {
    let mut file = File::new(false);
    for at in [100, 120, 140] {
        file.push_switch(at, 0, 7, 0, None);
        file.push_switch(at + 10, 0, 7, OUT, None);
    }
    let whole = file.finish();
    let (all, imported) = import(&whole).unwrap();
    assert_eq!((all.len(), imported.notes.len()), (7, 0));
    let (some, imported) = import(&whole[..whole.len() - 40]).unwrap();
    assert_eq!(some.len(), 5);
    assert!(
        imported.notes[0].starts_with("The file is cut off: it has"),
        "{:?}",
        imported.notes
    );
    assert!(imported.notes[1].contains("in the middle of a record, at byte"));
    // perf writes the length of its records last.
    let mut unended = whole;
    unended[48..56].fill(0);
    let (same, imported) = import(&unended).unwrap();
    assert_eq!(same, all);
    assert!(imported.notes[0].starts_with("perf record did not end properly"));
}

/// A stream's magic number, and a window of 1 KiB and of 128 KiB.
const SMALL_WINDOW: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 0];
const LARGE_WINDOW: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];

/// A block of a zstd stream: raw bytes, or one repeated byte.
fn block(is_repeated: bool, length: usize, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(length).unwrap();
    let head = length << 3 | u32::from(is_repeated) << 1;
    [&head.to_le_bytes()[..3], bytes].concat()
}

impl File {
    /// The same records as from `perf record -z`: blocks of one stream, which begin and end
    /// anywhere in a record.
    fn compress_blocks(&self, kind: u64) -> Self {
        let mut file = self.new_part();
        for (index, piece) in self.bytes.chunks(50).enumerate() {
            let mut packed = block(false, piece.len(), piece);
            if index == 0 {
                packed.splice(0..0, SMALL_WINDOW);
            }
            let mut inside = file.new_part();
            if kind == 83 {
                inside.push_number(packed.len() as u64, 8);
                packed.resize(packed.len().next_multiple_of(8), 0);
            }
            inside.bytes.extend(packed);
            file.push_number(kind, 4);
            file.push_number(0, 2);
            file.push_number(8 + inside.bytes.len() as u64, 2);
            file.bytes.extend(inside.bytes);
            // A mark of rounds: later records may be older than it.
            file.push_number(68, 4);
            file.push_number(0, 2);
            file.push_number(8, 2);
        }
        file
    }
}

#[test]
fn compressed_records_give_the_same_events() {
    for is_big_endian in [false, true] {
        let mut file = File::new(is_big_endian);
        for turn in 0..100 {
            file.push_switch(100 + 20 * turn, 2, 7, 0, None);
            file.push_switch(110 + 20 * turn, 2, 7, OUT, None);
        }
        let plain = read_events(&file.finish());
        assert_eq!(plain.len(), 201);
        for kind in [81, 83] {
            assert_eq!(
                read_events(&file.compress_blocks(kind).finish()),
                plain,
                "{kind}"
            );
        }
    }
}

#[test]
fn a_record_that_unpacks_to_gigabytes_is_refused() {
    let mut file = File::new(false);
    let blocks: Vec<u8> = (0..600).flat_map(|_| block(true, 1 << 17, &[0])).collect();
    file.push_number(81, 4);
    file.push_number(0, 2);
    file.push_number(8 + 6 + blocks.len() as u64, 2);
    file.bytes.extend(LARGE_WINDOW);
    file.bytes.extend(blocks);
    let error = import(&file.finish()).unwrap_err().to_string();
    assert!(error.contains("holds more than 64 MiB"), "{error}");
}

#[test]
fn contradictions_are_reported_with_their_offset() {
    let mut file = File::new(false);
    file.push_switch(100, 0, 7, 0, None);
    let whole = file.finish();
    let check = |place: usize, bytes: &[u8], part: &str| {
        let mut changed = whole.clone();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        let error = import(&changed).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    let huge = [0xff; 8];
    check(
        16,
        &huge,
        "byte 16: event descriptions of 18446744073709551615 bytes",
    );
    check(32, &huge, "byte 32: ");
    check(40, &huge, "byte 40: records are said to begin at byte");
    check(24, &huge, "byte 184: the file describes no event");
    check(
        184,
        &[14, 0, 0, 0, 0, 0, 3, 0],
        "byte 184: a record of type 14 with 3 bytes",
    );
    check(184, &[81, 0, 0, 0], "byte 184: compressed records: ");
    // Samples without a CPU.
    check(
        104 + 24,
        &[6],
        "byte 184: switch records without time, thread and CPU",
    );
    // No switches.
    check(104 + 40, &[0; 8], "it has no switches of threads");
    // Sections behind the records that are beyond the file.
    let mut far = whole.clone();
    far[72] = 1 << 1 | 1 << 3;
    far.extend([0xff; 32]);
    assert!(import(&far).is_ok());
}

#[test]
fn a_trace_of_centuries_is_refused_with_its_offset() {
    let mut file = File::new(false);
    let mut comm = file.new_part();
    comm.push_halves(&[7, 7]);
    comm.bytes.extend(b"prog\0\0\0\0");
    file.push_record(3, 0, &comm, (7, 7), 0, 0);
    let month_ns = 30 * 86_400 * 1_000_000_000;
    file.push_switch(month_ns, 2, 7, OUT, None);
    file.push_switch(month_ns + 5, 3, 7, 0, None);
    assert_eq!(read_events(&file.finish()).len(), 4);
    file.push_switch(3 * month_ns, 3, 7, OUT, None);
    let error = import(&file.finish()).unwrap_err().to_string();
    let expected =
        "its time, 7776000 s, is more than 13 days from that of the first event, 2592000 s";
    assert!(
        error.starts_with("byte ") && error.ends_with(expected),
        "{error}"
    );
}
