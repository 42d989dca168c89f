//! The rings that the program writes, one per CPU, as `sched.bpf.c` lays them
//! out: 16-byte records whose words carry the phase of their lap.
//!
//! It takes records in the order of a ring, and says up to which moment all are reported. It trusts
//! nothing: a malformed word counts as a lost record.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use pinwise_sched::{Event, EventKind, LeaveReason, Tid};

/// Words of a CPU's cursor: one cache line of its writers, one of its reader.
pub(super) const CURSOR_WORDS: usize = 16;
/// Words of a slot.
pub(super) const SLOT_WORDS: usize = 2;

const HEAD: usize = 0;
const DROPPED: usize = 1;
const TAIL: usize = 8;

/// One CPU's memory, shared with the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ring<'a> {
    /// [`CURSOR_WORDS`] words.
    pub(super) cursor: &'a [AtomicU64],
    /// [`SLOT_WORDS`] words for each slot; a power of two of slots.
    pub(super) slots: &'a [AtomicU64],
}

/// The position of a CPU's reader.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    cpu: u32,
    place: u64,
    newest_ns: u64,
}

/// How far a ring was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    /// All records older than this have been taken.
    pub(super) until_ns: u64,
    /// A record is being written at this moment.
    pub(super) is_unfinished: bool,
}

impl Ring<'_> {
    fn count(&self) -> u64 {
        (self.slots.len() / SLOT_WORDS) as u64
    }

    /// The words at a place without their phase; `None` while they are being written.
    fn words(&self, place: u64) -> Option<[u64; SLOT_WORDS]> {
        let count = self.count();
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

    /// Appends new records; `now_ns` must have been read before.
    pub(super) fn read(
        &mut self,
        ring: Ring<'_>,
        now_ns: u64,
        events: &mut Vec<Event>,
    ) -> Progress {
        // A writer that reserves a place after this reads a time after `now_ns`.
        fence(Ordering::SeqCst);
        let head = ring.cursor[HEAD].load(Ordering::Acquire);
        if head.wrapping_sub(self.place) > ring.count() {
            self.give_up(head, now_ns, events);
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

    /// Reports records lost since the last one and, if the ring is idle, those never finished.
    pub(super) fn close(&mut self, ring: Ring<'_>, now_ns: u64, events: &mut Vec<Event>) {
        let head = ring.cursor[HEAD].load(Ordering::Acquire);
        let unfinished = head.saturating_sub(self.place);
        let records = unfinished + ring.cursor[DROPPED].swap(0, Ordering::AcqRel);
        self.place = head;
        if records > 0 {
            self.push(now_ns, EventKind::Lost { records }, events);
        }
    }

    /// Writers have overtaken the reader. The spare places prevent this unless the kernel
    /// interrupts a writer a dozen times.
    fn give_up(&mut self, head: u64, now_ns: u64, events: &mut Vec<Event>) {
        let records = head.saturating_sub(self.place).max(1);
        self.place = head;
        self.push(now_ns, EventKind::Lost { records }, events);
    }

    /// Takes the record at the reader's position, and returns its number of slots.
    fn read_one(&mut self, ring: Ring<'_>, events: &mut Vec<Event>) -> Option<u64> {
        let [time_ns, packed] = ring.words(self.place)?;
        let kind = Kind::from_packed(packed);
        let more = if kind.has_two_slots() {
            ring.words(self.place + 1)?
        } else {
            [0; SLOT_WORDS]
        };
        self.newest_ns = self.newest_ns.max(time_ns);
        self.push(time_ns, what(kind, packed, more), events);
        // A thread's last switch is its end: the kernel's own notice comes earlier, while the
        // thread still runs.
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
enum Kind {
    Switch,
    Wake,
    Fork,
    Name,
    Lost,
    Unknown,
}

impl Kind {
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

/// The second word of a record, without its phase: kind 3 bits, manner of
/// leaving 2 bits, two numbers of 24 bits.
fn what(kind: Kind, packed: u64, more: [u64; SLOT_WORDS]) -> EventKind {
    let one = number(packed >> 5);
    let other = number(packed >> 29);
    match kind {
        Kind::Switch => EventKind::Switch {
            prev: one,
            left: match packed >> 3 & 3 {
                0 => LeaveReason::Blocked,
                1 => LeaveReason::Preempted,
                2 => LeaveReason::Ended,
                _ => LeaveReason::Unreported,
            },
            next: other,
        },
        Kind::Wake => EventKind::Wake {
            thread: one,
            target: other.unsigned_abs(),
        },
        Kind::Fork => EventKind::Fork {
            parent: one,
            child: other,
            process: number(more[0]),
        },
        Kind::Name => EventKind::Name {
            thread: one,
            name: name(packed >> 29, more).into(),
        },
        Kind::Lost => EventKind::Lost {
            records: (packed >> 5).max(1),
        },
        Kind::Unknown => EventKind::Lost { records: 1 },
    }
}

/// The lowest 24 bits, which hold any thread or CPU number.
fn number(bits: u64) -> Tid {
    Tid::try_from(bits & 0xff_ffff).unwrap_or(0)
}

/// Seven bytes in each word of the second slot, above a byte with the phase, and the eighth byte in
/// the first slot.
fn name(eighth: u64, more: [u64; SLOT_WORDS]) -> String {
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
