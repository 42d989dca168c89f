//! A loop that only reads the clock and records when it was interrupted.
//!
//! It allocates nothing and calls nothing while it runs: gaps go into a buffer that was touched
//! before, which another thread empties. It does not know the causes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::clock::{Clock, system_ns};

/// Time between two readings of the clock, ns of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When the loop continued.
    pub end_ns: u64,
    /// The duration of the gap.
    pub length_ns: u64,
}

/// A ring of gaps: the loop writes, one other thread reads.
#[derive(Debug)]
pub struct GapBuffer {
    slots: Box<[[AtomicU64; 2]]>,
    written: AtomicU64,
    taken: AtomicU64,
}

impl GapBuffer {
    /// With room for this many gaps, at least one. Everything is written to, so that the loop causes
    /// no page fault.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let empty = || [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)];
        Self {
            slots: (0..capacity.max(1)).map(|_| empty()).collect(),
            written: AtomicU64::new(0),
            taken: AtomicU64::new(0),
        }
    }

    /// Moves all written gaps to the end of `into`.
    pub fn take(&self, into: &mut Vec<Gap>) {
        // Acquire: makes the counted gaps visible.
        let written = self.written.load(Ordering::Acquire);
        let taken = self.taken.load(Ordering::Relaxed);
        into.extend((taken..written).map(|number| {
            let [end, length] = self.slot(number);
            Gap {
                end_ns: end.load(Ordering::Relaxed),
                length_ns: length.load(Ordering::Relaxed),
            }
        }));
        // Release: the loop may overwrite only read gaps.
        self.taken.store(written, Ordering::Release);
    }

    /// False if there is no room.
    fn put(&self, gap: Gap) -> bool {
        let written = self.written.load(Ordering::Relaxed);
        let taken = self.taken.load(Ordering::Acquire);
        if written - taken >= self.slots.len() as u64 {
            return false;
        }
        let [end, length] = self.slot(written);
        end.store(gap.end_ns, Ordering::Relaxed);
        length.store(gap.length_ns, Ordering::Relaxed);
        self.written.store(written + 1, Ordering::Release);
        true
    }

    fn slot(&self, number: u64) -> &[AtomicU64; 2] {
        let index = number % self.slots.len() as u64;
        &self.slots[usize::try_from(index).unwrap_or(0)]
    }
}

/// The figures of the loop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GapLoopFigures {
    /// First reading, ns of `CLOCK_MONOTONIC`.
    pub from_ns: u64,
    /// Last reading.
    pub to_ns: u64,
    /// Readings of the clock.
    pub readings: u64,
    /// Gaps that the full buffer could not take.
    pub lost_gaps: u64,
}

/// Reads the clock until a moment of `CLOCK_MONOTONIC` or until it is stopped. Two readings more
/// than `threshold_ns` apart are a gap.
pub fn watch(
    clock: &Clock,
    threshold_ns: u64,
    until_ns: u64,
    stop: &AtomicBool,
    buffer: &GapBuffer,
) -> GapLoopFigures {
    let from_ns = system_ns();
    let start = clock.ticks();
    let threshold = clock.ticks_in(threshold_ns as f64).max(1);
    let time = clock.ticks_in(until_ns.saturating_sub(from_ns) as f64);
    let mut watched = GapLoopFigures {
        from_ns,
        ..GapLoopFigures::default()
    };
    let mut last = start;
    loop {
        let now = clock.ticks();
        let step = now.wrapping_sub(last);
        last = now;
        watched.readings += 1;
        // A counter that went back slightly is not a gap of centuries.
        if step > threshold && step < u64::MAX / 2 {
            let gap = Gap {
                end_ns: clock.system_ns_at(now),
                length_ns: to_whole_ns(clock.ns(step)),
            };
            watched.lost_gaps += u64::from(!buffer.put(gap));
        }
        if now.wrapping_sub(start) >= time || stop.load(Ordering::Relaxed) {
            break;
        }
    }
    watched.to_ns = clock.system_ns_at(last);
    watched
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time between two readings is positive and far below 2^63 ns"
)]
const fn to_whole_ns(ns: f64) -> u64 {
    ns as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(number: u64) -> Gap {
        Gap {
            end_ns: number,
            length_ns: 10 * number,
        }
    }

    #[test]
    fn a_full_buffer_refuses_gaps_until_it_is_emptied() {
        let buffer = GapBuffer::new(2);
        assert!(buffer.put(gap(1)) && buffer.put(gap(2)));
        assert!(!buffer.put(gap(3)));
        let mut found = Vec::new();
        buffer.take(&mut found);
        assert!(buffer.put(gap(4)));
        buffer.take(&mut found);
        buffer.take(&mut found);
        assert_eq!(found, [gap(1), gap(2), gap(4)]);
    }

    #[test]
    fn gaps_lie_within_the_time_watched() {
        let clock = Clock::calibrate();
        let buffer = GapBuffer::new(16);
        let until_ns = system_ns() + 20_000_000;
        let watched = watch(&clock, 1, until_ns, &AtomicBool::new(false), &buffer);
        let mut found = Vec::new();
        buffer.take(&mut found);
        // Every reading is a gap of more than 1 ns: the buffer is full at once.
        assert_eq!(found.len(), 16);
        assert!(watched.lost_gaps > 0 && watched.readings > 16);
        assert!(watched.to_ns >= until_ns - 100_000, "{watched:?}");
        for gap in &found {
            let from_ns = gap.end_ns - gap.length_ns;
            assert!(from_ns + 1000 >= watched.from_ns, "{gap:?} {watched:?}");
            assert!(gap.end_ns <= watched.to_ns + 1000, "{gap:?} {watched:?}");
        }
    }

    #[test]
    fn watching_ends_when_stopped() {
        let buffer = GapBuffer::new(1);
        let stop = AtomicBool::new(true);
        let watched = watch(&Clock::system(), 1_000_000_000, u64::MAX, &stop, &buffer);
        assert_eq!(watched.readings, 1);
    }
}
