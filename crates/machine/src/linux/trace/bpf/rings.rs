//! Reads the rings that the program writes, one per CPU, laid out as in `sched.bpf.c`: slots of 16
//! bytes, in whose words one bit, the phase, alternates from lap to lap.
//!
//! It reads records in the order of a ring, and says up to which time all of them are read. It
//! trusts nothing: a malformed word counts as a lost record.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use pinwise_sched::{Event, EventKind, LeaveReason, Tid};

/// Words of a CPU's cursor: one cache line for its writers, one for its reader.
pub(super) const CURSOR_WORDS: usize = 16;
/// Words of a slot.
pub(super) const SLOT_WORDS: usize = 2;

/// Word of a cursor: the number of slots that writers have reserved.
const HEAD: usize = 0;
/// Word of a cursor: the number of records for which there was no room.
const DROPPED: usize = 1;
/// Word of a cursor: the number of slots that the reader has read.
const TAIL: usize = 8;

/// One CPU's memory, shared with the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring<'a> {
    /// [`CURSOR_WORDS`] words.
    pub(super) cursor: &'a [AtomicU64],
    /// [`SLOT_WORDS`] words for each slot; a power of two of slots.
    pub(super) slots: &'a [AtomicU64],
}

/// Reads the ring of a CPU.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    cpu: u32,
    /// Slots read so far.
    place: u64,
    /// Time of the newest record read.
    newest_ns: u64,
}

/// How far a ring was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    /// All records older than this have been read.
    pub(super) until_ns: u64,
    /// Is a record being written at this moment?
    pub(super) is_unfinished: bool,
}

impl Ring<'_> {
    fn slot_count(&self) -> u64 {
        (self.slots.len() / SLOT_WORDS) as u64
    }

    /// Reads the words of a slot without their phase; `None` while they are being written.
    fn read_words(&self, place: u64) -> Option<[u64; SLOT_WORDS]> {
        let count = self.slot_count();
        let lap = place / count;
        let start = usize::try_from(place % count).ok()? * SLOT_WORDS;
        let expected = !lap & 1;
        let mut words = [0; SLOT_WORDS];
        for (word, shared) in words.iter_mut().zip(&self.slots[start..]) {
            let found = shared.load(Ordering::Relaxed);
            if found & 1 != expected {
                return None;
            }
            *word = found >> 1;
        }
        Some(words)
    }
}

impl Reader {
    pub(super) fn new(cpu: u32) -> Self {
        Self {
            cpu,
            place: 0,
            newest_ns: 0,
        }
    }

    /// Appends new events; `now_ns` is a time that was read before the call.
    pub(super) fn read(
        &mut self,
        ring: Ring<'_>,
        now_ns: u64,
        events: &mut Vec<Event>,
    ) -> Progress {
        // A writer that reserves a slot after this fence gets a time after `now_ns`.
        fence(Ordering::SeqCst);
        let head = ring.cursor[HEAD].load(Ordering::Acquire);
        if head.wrapping_sub(self.place) > ring.slot_count() {
            self.skip_overwritten(head, now_ns, events);
        }
        while self.place < head {
            let Some(used) = self.read_one(ring, events) else {
                break;
            };
            self.place += used;
        }
        ring.cursor[TAIL].store(self.place, Ordering::Release);
        let is_unfinished = self.place < head;
        Progress {
            until_ns: if is_unfinished {
                self.newest_ns
            } else {
                now_ns
            },
            is_unfinished,
        }
    }

    /// Reports the records that were lost since the last report or never finished. Call it when the
    /// program has stopped.
    pub(super) fn close(&mut self, ring: Ring<'_>, now_ns: u64, events: &mut Vec<Event>) {
        let head = ring.cursor[HEAD].load(Ordering::Acquire);
        let unfinished = head.saturating_sub(self.place);
        let records = unfinished + ring.cursor[DROPPED].swap(0, Ordering::AcqRel);
        self.place = head;
        if records > 0 {
            self.push(now_ns, EventKind::Lost { records }, events);
        }
    }

    /// Skips records because writers have overtaken the reader. The spare slots prevent this unless
    /// the kernel interrupts a writer a dozen times.
    fn skip_overwritten(&mut self, head: u64, now_ns: u64, events: &mut Vec<Event>) {
        let records = head.saturating_sub(self.place).max(1);
        self.place = head;
        self.push(now_ns, EventKind::Lost { records }, events);
    }

    /// Reads the record at the reader's position; returns its number of slots, `None` while it is
    /// being written.
    fn read_one(&mut self, ring: Ring<'_>, events: &mut Vec<Event>) -> Option<u64> {
        let [time_ns, packed] = ring.read_words(self.place)?;
        let kind = RecordKind::from_packed(packed);
        let more = if kind.has_two_slots() {
            ring.read_words(self.place + 1)?
        } else {
            [0; SLOT_WORDS]
        };
        self.newest_ns = self.newest_ns.max(time_ns);
        self.push(time_ns, decode(kind, packed, more), events);
        // A thread's last switch counts as its end: the kernel's own notice comes earlier, while
        // the thread still runs.
        if let Some(Event {
            what:
                EventKind::Switch {
                    prev,
                    left: LeaveReason::Ended,
                    ..
                },
            ..
        }) = events.last()
        {
            let thread = *prev;
            self.push(time_ns, EventKind::Exit { thread }, events);
        }
        Some(if kind.has_two_slots() { 2 } else { 1 })
    }

    fn push(&self, time_ns: u64, what: EventKind, events: &mut Vec<Event>) {
        events.push(Event {
            time_ns,
            cpu: self.cpu,
            what,
        });
    }
}

/// The numbers of `enum kind` in `sched.bpf.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordKind {
    Switch,
    Wake,
    Fork,
    Name,
    Lost,
    Unknown,
}

impl RecordKind {
    fn from_packed(packed: u64) -> Self {
        match packed & 7 {
            1 => Self::Switch,
            2 => Self::Wake,
            3 => Self::Fork,
            4 => Self::Name,
            5 => Self::Lost,
            _ => Self::Unknown,
        }
    }

    fn has_two_slots(self) -> bool {
        matches!(self, Self::Fork | Self::Name)
    }
}

/// Decodes the second word of a record, without its phase: 3 bits for the kind, 2 for the reason of
/// leaving, two numbers of 24 bits.
fn decode(kind: RecordKind, packed: u64, more: [u64; SLOT_WORDS]) -> EventKind {
    let one = decode_number(packed >> 5);
    let other = decode_number(packed >> 29);
    match kind {
        RecordKind::Switch => EventKind::Switch {
            prev: one,
            left: match packed >> 3 & 3 {
                0 => LeaveReason::Blocked,
                1 => LeaveReason::Preempted,
                2 => LeaveReason::Ended,
                _ => LeaveReason::Unreported,
            },
            next: other,
        },
        RecordKind::Wake => EventKind::Wake {
            thread: one,
            target: other.unsigned_abs(),
        },
        RecordKind::Fork => EventKind::Fork {
            parent: one,
            child: other,
            process: decode_number(more[0]),
        },
        RecordKind::Name => EventKind::Name {
            thread: one,
            name: decode_name(packed >> 29, more).into(),
        },
        RecordKind::Lost => EventKind::Lost {
            records: (packed >> 5).max(1),
        },
        RecordKind::Unknown => EventKind::Lost { records: 1 },
    }
}

/// The lowest 24 bits, which are enough for any thread id or CPU number.
fn decode_number(bits: u64) -> Tid {
    Tid::try_from(bits & 0xff_ffff).unwrap_or(0)
}

/// Decodes a name: seven bytes in each word of the second slot, above a byte with the phase, and
/// the eighth byte of the name in the first slot.
fn decode_name(eighth: u64, more: [u64; SLOT_WORDS]) -> String {
    // The phase has been shifted out already.
    let [first, second] = more.map(|word| (word >> 7).to_le_bytes());
    let bytes: Vec<u8> = first[..7]
        .iter()
        .chain(&eighth.to_le_bytes()[..1])
        .chain(&second[..7])
        .copied()
        .take_while(|&byte| byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests;
