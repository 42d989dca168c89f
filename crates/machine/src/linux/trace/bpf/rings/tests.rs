use proptest::prelude::*;

use super::*;

const SLOT_COUNT: usize = 64;
const SLOTS: u64 = SLOT_COUNT as u64;
const SPARE: u64 = 16;

/// A ring, and a writer that imitates `sched.bpf.c`.
struct Shared {
    cursor: Vec<AtomicU64>,
    slots: Vec<AtomicU64>,
}

impl Shared {
    fn new() -> Self {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self {
            cursor: zeros(CURSOR_WORDS),
            slots: zeros(SLOT_COUNT * SLOT_WORDS),
        }
    }

    fn open_ring(&self) -> Ring<'_> {
        Ring {
            cursor: &self.cursor,
            slots: &self.slots,
        }
    }

    fn reserve(&self, count: u64) -> Option<u64> {
        let head = self.cursor[HEAD].load(Ordering::Relaxed);
        let tail = self.cursor[TAIL].load(Ordering::Relaxed);
        if head - tail + count + SPARE > SLOTS {
            self.cursor[DROPPED].fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.cursor[HEAD].fetch_add(count, Ordering::Relaxed))
    }

    fn write(&self, place: u64, words: [u64; 2]) {
        let phase = !(place / SLOTS) & 1;
        let start = usize::try_from(place % SLOTS).unwrap() * SLOT_WORDS;
        for (slot, word) in self.slots[start..].iter().zip(words) {
            slot.store(word << 1 | phase, Ordering::Relaxed);
        }
    }

    fn note(&self, time_ns: u64, packed: u64, more: Option<[u64; 2]>) {
        if let Some(place) = self.reserve(1 + u64::from(more.is_some())) {
            self.write(place, [time_ns, packed]);
            if let Some(more) = more {
                self.write(place + 1, more);
            }
        }
    }
}

fn pack_record(kind: u64, left: u64, one: u64, other: u64) -> u64 {
    kind | left << 3 | one << 5 | other << 29
}

fn pack_switch(prev: u64, left: u64, next: u64) -> u64 {
    pack_record(1, left, prev, next)
}

fn check(write: impl Fn(&Shared), expected: &[EventKind]) {
    let shared = Shared::new();
    write(&shared);
    let mut events = Vec::new();
    let progress = Reader::new(3).read(shared.open_ring(), 1000, &mut events);
    assert_eq!(progress.until_ns, 1000);
    assert!(events.iter().all(|event| event.cpu == 3));
    let found: Vec<EventKind> = events.into_iter().map(|event| event.what).collect();
    assert_eq!(found, expected);
}

#[test]
fn records_are_read_as_written() {
    let encode_name = |text: &[u8; 15]| {
        let word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[1..].copy_from_slice(bytes);
            u64::from_le_bytes(word) >> 1
        };
        (u64::from(text[7]), [word(&text[..7]), word(&text[8..])])
    };
    check(
        |ring| ring.note(5, pack_switch(4_194_304, 1, 0), None),
        &[EventKind::Switch {
            prev: 4_194_304,
            left: LeaveReason::Preempted,
            next: 0,
        }],
    );
    check(
        |ring| ring.note(5, pack_switch(7, 2, 8), None),
        &[
            EventKind::Switch {
                prev: 7,
                left: LeaveReason::Ended,
                next: 8,
            },
            EventKind::Exit { thread: 7 },
        ],
    );
    check(
        |ring| ring.note(5, pack_record(2, 0, 7, 8191), None),
        &[EventKind::Wake {
            thread: 7,
            target: 8191,
        }],
    );
    check(
        |ring| ring.note(5, pack_record(3, 0, 7, 9), Some([6, 0])),
        &[EventKind::Fork {
            parent: 7,
            child: 9,
            process: 6,
        }],
    );
    let (eighth, more) = encode_name(b"fifteen letters");
    check(
        |ring| ring.note(5, pack_record(4, 0, 7, eighth), Some(more)),
        &[EventKind::Name {
            thread: 7,
            name: "fifteen letters".into(),
        }],
    );
    let (eighth, more) = encode_name(b"sh\0\0\0\0\0old rest");
    check(
        |ring| ring.note(5, pack_record(4, 0, 7, eighth), Some(more)),
        &[EventKind::Name {
            thread: 7,
            name: "sh".into(),
        }],
    );
    check(
        |ring| ring.note(5, 5 | 12 << 5, None),
        &[EventKind::Lost { records: 12 }],
    );
    check(
        |ring| ring.note(5, 7, None),
        &[EventKind::Lost { records: 1 }],
    );
}

#[test]
fn an_unfinished_record_holds_back_later_ones() {
    let shared = Shared::new();
    let mut reader = Reader::new(0);
    let mut events = Vec::new();
    shared.note(10, pack_switch(1, 0, 2), None);
    let place = shared.reserve(1).unwrap();
    shared.note(30, pack_switch(3, 0, 4), None);
    let progress = reader.read(shared.open_ring(), 100, &mut events);
    assert_eq!((progress.until_ns, progress.is_unfinished), (10, true));
    assert_eq!(events.len(), 1);
    shared.write(place, [20, pack_switch(2, 0, 3)]);
    let progress = reader.read(shared.open_ring(), 200, &mut events);
    assert_eq!((progress.until_ns, progress.is_unfinished), (200, false));
    let times: Vec<u64> = events.iter().map(|event| event.time_ns).collect();
    assert_eq!(times, [10, 20, 30]);
}

#[test]
fn unfinished_and_untaken_records_are_reported_at_the_end() {
    let shared = Shared::new();
    let mut reader = Reader::new(0);
    let mut events = Vec::new();
    for _ in 0..SLOTS {
        shared.note(10, pack_switch(1, 0, 2), None);
    }
    reader.read(shared.open_ring(), 100, &mut events);
    assert_eq!(events.len() as u64, SLOTS - SPARE);
    shared.reserve(1);
    events.clear();
    reader.close(shared.open_ring(), 200, &mut events);
    let lost = EventKind::Lost { records: SPARE + 1 };
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].time_ns, &events[0].what), (200, &lost));
}

#[test]
fn an_overtaken_reader_reports_the_loss_and_continues() {
    let shared = Shared::new();
    let mut reader = Reader::new(0);
    let mut events = Vec::new();
    shared.cursor[HEAD].store(SLOTS + 5, Ordering::Relaxed);
    reader.read(shared.open_ring(), 100, &mut events);
    shared.note(110, pack_switch(1, 0, 2), None);
    reader.read(shared.open_ring(), 200, &mut events);
    let lost = EventKind::Lost { records: SLOTS + 5 };
    assert_eq!(events[0].what, lost);
    assert!(matches!(events[1].what, EventKind::Switch { .. }));
}

proptest! {
    /// However writing and reading alternate, every record comes once and in order, or is counted
    /// as lost.
    #[test]
    fn every_record_is_read_once_or_counted_as_lost(bursts in prop::collection::vec((0u64..90, any::<bool>()), 1..40)) {
        let shared = Shared::new();
        let mut reader = Reader::new(0);
        let mut events = Vec::new();
        let mut written = 0u64;
        for (burst, has_names) in bursts {
            for _ in 0..burst {
                written += 1;
                let more = (has_names && written.is_multiple_of(3)).then_some([0, 0]);
                let kind = if more.is_some() { 4 } else { 1 };
                shared.note(written, pack_record(kind, 0, 1, 0), more);
            }
            reader.read(shared.open_ring(), written, &mut events);
        }
        reader.close(shared.open_ring(), written, &mut events);
        let lost: u64 = events.iter().map(|event| match event.what {
            EventKind::Lost { records } => records,
            _ => 0,
        }).sum();
        let taken = events.iter().filter(|event| !matches!(event.what, EventKind::Lost { .. }));
        let times: Vec<u64> = taken.map(|event| event.time_ns).collect();
        prop_assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
        prop_assert_eq!(times.len() as u64 + lost, written);
    }

    /// Whatever the memory contains, reading ends and does not panic.
    #[test]
    fn any_bytes_are_read_to_their_end(
        words in prop::collection::vec(any::<u64>(), SLOT_COUNT * SLOT_WORDS),
        head in any::<u64>(),
    ) {
        let shared = Shared::new();
        shared.cursor[HEAD].store(head, Ordering::Relaxed);
        for (slot, word) in shared.slots.iter().zip(words) {
            slot.store(word, Ordering::Relaxed);
        }
        let mut reader = Reader::new(0);
        let mut events = Vec::new();
        reader.read(shared.open_ring(), 1, &mut events);
        reader.read(shared.open_ring(), 2, &mut events);
        reader.close(shared.open_ring(), 3, &mut events);
        prop_assert!(events.len() as u64 <= 2 * SLOTS + 2);
    }
}
