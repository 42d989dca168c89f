//! Pairs of threads: one makes messages of a cache line each and puts them into a ring, the other
//! takes them out, verifies and sums them.
//!
//! A message and the word that announces it share a line, so a message costs one transfer. With one
//! thread, the same thread plays both parts, a ring full at a time. If one of a pair fails, the
//! other is told and does not wait for ever.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::work::{Group, Job, Kernel, KernelError, Random, Setup, Worker, Wrong, bind_digest};

pub(in crate::work) const PRODUCER_CONSUMER: Kernel = Kernel {
    name: "producer-consumer",
    group: Group::Sharing,
    about: "pairs of threads pass messages of 64 bytes through a ring of 64 KiB; one thread alone plays both parts",
    source: "Lamport 1983, a queue of one producer and one consumer; flags in the slots as Giacomoni, Moseley and Vachharajani 2008 (FastForward)",
    operation: "messages",
    size: None,
    has_versions: false,
    footprint_bytes: |_, threads| (threads as u64).div_ceil(2) * size_of::<Ring>() as u64,
    prepare: |setup: &Setup| {
        Ok(Box::new(Pairs {
            rings: (0..setup.threads.div_ceil(2))
                .map(|_| OnceLock::new())
                .collect(),
            is_alone: setup.threads == 1,
        }))
    },
};

/// Messages of a unit: about 10 ms for a thread that plays both parts.
const MESSAGES: u64 = 1 << 20;
/// Messages that a ring holds.
const SLOTS: usize = 1024;
/// The consumer publishes its position after this many messages.
const PUBLISH_EVERY: u64 = SLOTS as u64 / 4;
/// Words of a message, without its number.
const WORDS: usize = 7;
/// Polls of a line before the CPU is yielded.
const SPINS: u32 = 1_000;

type Message = [u64; WORDS];

/// One message and its number, counted from 1, in its own line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot {
    words: [AtomicU64; WORDS],
    number: AtomicU64,
}

/// Alone on two lines, because some CPUs fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

#[derive(Debug)]
struct Ring {
    slots: Box<[Slot]>,
    /// Messages that the consumer has taken, published periodically.
    taken: Line<AtomicU64>,
    /// One of the two has ended, by an error or a panic.
    is_abandoned: Line<AtomicBool>,
}

impl Ring {
    fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            taken: Line::default(),
            is_abandoned: Line::default(),
        }
    }

    /// The slot of a message.
    fn slot(&self, number: u64) -> &Slot {
        &self.slots[usize::try_from(number % SLOTS as u64).unwrap_or(0)]
    }

    /// Waits until `is_so`; false if the other one has gone.
    #[inline]
    fn wait(&self, is_so: impl Fn() -> bool) -> bool {
        let mut looks = 0u32;
        while !is_so() {
            std::hint::spin_loop();
            looks = looks.saturating_add(1);
            if looks < SPINS {
                continue;
            }
            if self.is_abandoned.0.load(Ordering::Acquire) {
                // Its last writes may be unread.
                return is_so();
            }
            std::thread::yield_now();
        }
        true
    }
}

const ABANDONED: Wrong = "the other thread of the pair has gone";

/// The producer's end of a ring.
struct Sender<'a> {
    ring: &'a Ring,
    /// Number of the next message, from 1.
    next: u64,
    /// Known number of messages that the consumer has taken.
    taken: u64,
}

impl<'a> Sender<'a> {
    const fn new(ring: &'a Ring) -> Self {
        Self {
            ring,
            next: 1,
            taken: 0,
        }
    }

    #[inline]
    fn put(&mut self, message: Message) -> Result<(), Wrong> {
        while self.next > self.taken + SLOTS as u64 {
            let known = self.taken;
            let taken = &self.ring.taken.0;
            if !self.ring.wait(|| taken.load(Ordering::Acquire) != known) {
                return Err(ABANDONED);
            }
            self.taken = taken.load(Ordering::Acquire);
        }
        let slot = self.ring.slot(self.next);
        for (there, word) in slot.words.iter().zip(message) {
            there.store(word, Ordering::Relaxed);
        }
        slot.number.store(self.next, Ordering::Release);
        self.next += 1;
        Ok(())
    }
}

/// The consumer's end of a ring.
struct Receiver<'a> {
    ring: &'a Ring,
    next: u64,
}

impl<'a> Receiver<'a> {
    const fn new(ring: &'a Ring) -> Self {
        Self { ring, next: 1 }
    }

    #[inline]
    fn take(&mut self) -> Result<Message, Wrong> {
        let (slot, next) = (self.ring.slot(self.next), self.next);
        if !self
            .ring
            .wait(|| slot.number.load(Ordering::Acquire) == next)
        {
            return Err(ABANDONED);
        }
        let mut message = Message::default();
        for (word, there) in message.iter_mut().zip(&slot.words) {
            *word = there.load(Ordering::Relaxed);
        }
        if self.next.is_multiple_of(PUBLISH_EVERY) {
            self.ring.taken.0.store(self.next, Ordering::Release);
        }
        self.next += 1;
        Ok(message)
    }
}

/// The message before those of a unit; the other words are 0.
fn make_heading(unit: u64) -> Message {
    [UNIT, unit, 0, 0, 0, 0, 0]
}

const UNIT: u64 = 1;
/// No more units.
const END: Message = [2, 0, 0, 0, 0, 0, 0];

/// A message of a unit: random numbers and their seal.
#[inline]
fn draw_message(random: &mut Random) -> Message {
    let (one, other) = (random.next(), random.next());
    let words = [
        one,
        other,
        one ^ other,
        one.wrapping_add(other),
        one.rotate_left(17),
        other.rotate_left(31),
    ];
    let [a, b, c, d, e, f] = words;
    [a, b, c, d, e, f, seal(&words)]
}

/// The required last word of a message.
#[inline]
fn seal(words: &[u64]) -> u64 {
    words
        .iter()
        .fold(0, |seal: u64, word| seal.rotate_left(9).wrapping_add(*word))
}

/// Sums messages in order; reports a wrong one.
#[derive(Debug, Default)]
struct Digest(u64);

impl Digest {
    #[inline]
    fn add(&mut self, message: &Message) -> Result<(), Wrong> {
        let [words @ .., sealed] = message;
        if seal(words) != *sealed {
            return Err("a message came out of the ring changed");
        }
        self.0 = self.0.rotate_left(1).wrapping_add(*sealed);
        Ok(())
    }
}

struct Pairs {
    /// Made by the producers, so that a ring's memory is local to them.
    rings: Vec<OnceLock<Ring>>,
    is_alone: bool,
}

impl Job for Pairs {
    fn operations_per_unit(&self) -> u64 {
        MESSAGES
    }

    fn working_set_bytes(&self) -> u64 {
        (SLOTS * size_of::<Slot>()) as u64
    }

    fn team(&self) -> usize {
        2
    }

    fn worker(&self, thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        let ring = &self.rings[thread / 2];
        if !thread.is_multiple_of(2) {
            return Ok(Box::new(Consumer { ring }));
        }
        let ring = ring.get_or_init(Ring::new);
        if self.is_alone {
            return Ok(Box::new(Both {
                sender: Sender::new(ring),
                receiver: Receiver::new(ring),
            }));
        }
        Ok(Box::new(Producer {
            sender: Sender::new(ring),
        }))
    }
}

/// Notifies the other one of a pair when this one ends, in whatever way. After a normal end nothing
/// is left to wait for.
struct AbandonGuard<'a>(&'a Ring);

impl Drop for AbandonGuard<'_> {
    fn drop(&mut self) {
        self.0.is_abandoned.0.store(true, Ordering::Release);
    }
}

struct Producer<'a> {
    sender: Sender<'a>,
}

impl Worker for Producer<'_> {
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong> {
        self.sender.put(make_heading(unit))?;
        let mut random = Random::for_unit(unit);
        for _ in 0..MESSAGES {
            self.sender.put(draw_message(&mut random))?;
        }
        Ok(0)
    }

    /// The consumer computes the digests.
    fn work(&mut self, units: &mut dyn Iterator<Item = u64>) -> Result<u64, Wrong> {
        let _guard = AbandonGuard(self.sender.ring);
        for unit in units {
            self.run_unit(unit)?;
        }
        self.sender.put(END)?;
        Ok(0)
    }
}

struct Consumer<'a> {
    ring: &'a OnceLock<Ring>,
}

impl Worker for Consumer<'_> {
    fn run_unit(&mut self, _unit: u64) -> Result<u64, Wrong> {
        Err("a consumer has no units of its own")
    }

    fn work(&mut self, _units: &mut dyn Iterator<Item = u64>) -> Result<u64, Wrong> {
        let ring = self.ring.get().ok_or("there is no ring")?;
        let _guard = AbandonGuard(ring);
        let mut receiver = Receiver::new(ring);
        let mut sum = 0u64;
        loop {
            let unit = match receiver.take()? {
                END => return Ok(sum),
                [UNIT, unit, 0, 0, 0, 0, 0] => unit,
                _ => return Err("a unit came without a heading"),
            };
            let mut digest = Digest::default();
            for _ in 0..MESSAGES {
                digest.add(&receiver.take()?)?;
            }
            sum = sum.wrapping_add(bind_digest(unit, digest.0));
        }
    }
}

/// A single thread in both roles.
struct Both<'a> {
    sender: Sender<'a>,
    receiver: Receiver<'a>,
}

impl Worker for Both<'_> {
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong> {
        let mut random = Random::for_unit(unit);
        let mut digest = Digest::default();
        let mut left = MESSAGES;
        while left > 0 {
            let batch = left.min(PUBLISH_EVERY);
            for _ in 0..batch {
                self.sender.put(draw_message(&mut random))?;
            }
            for _ in 0..batch {
                digest.add(&self.receiver.take()?)?;
            }
            left -= batch;
        }
        Ok(digest.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_unchanged_and_in_order() {
        let ring = Ring::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut sender = Sender::new(&ring);
                for number in 0..10_000 {
                    sender.put([number; WORDS]).unwrap();
                }
            });
            let mut receiver = Receiver::new(&ring);
            for number in 0..10_000 {
                assert_eq!(receiver.take(), Ok([number; WORDS]));
            }
        });
    }

    #[test]
    fn a_thread_left_alone_does_not_wait() {
        let ring = Ring::new();
        drop(AbandonGuard(&ring));
        assert_eq!(Receiver::new(&ring).take(), Err(ABANDONED));
        let mut sender = Sender::new(&ring);
        let fits = (0..=SLOTS).map(|_| sender.put(END)).filter(Result::is_ok);
        assert_eq!(fits.count(), SLOTS);
    }

    #[test]
    fn a_changed_message_is_found() {
        let mut random = Random::for_unit(1);
        let good = draw_message(&mut random);
        assert_eq!(Digest::default().add(&good), Ok(()));
        for word in 0..WORDS {
            let mut bad = good;
            bad[word] ^= 1 << 40;
            assert!(Digest::default().add(&bad).is_err(), "word {word}");
        }
    }

    #[test]
    fn a_unit_without_heading_is_reported() {
        let pairs = Pairs {
            rings: vec![OnceLock::from(Ring::new())],
            is_alone: false,
        };
        let ring = pairs.rings[0].get().unwrap();
        Sender::new(ring).put([7; WORDS]).unwrap();
        let mut consumer = pairs.worker(1).unwrap();
        assert!(consumer.work(&mut std::iter::empty()).is_err());
        assert!(ring.is_abandoned.0.load(Ordering::Acquire));
    }
}
