//! One cache line that two threads compare-and-swap in turn.
//!
//! Numbers on the line count up. The leader swaps even ones, the follower odd ones. A batch starts
//! at a multiple of `BATCH`, so that a late follower, or one that missed several batches, finds its
//! place from the line alone. Each side spins on the swap itself, without loading first: that is
//! the transfer that locks make, and what core-to-core-latency times. Every wait is limited.

use std::sync::atomic::{AtomicU64, Ordering};

use super::clock::Clock;
use super::laps::Laps;

/// The line, alone on two of 64 bytes: some prefetchers fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Line(AtomicU64);

/// Untimed round trips that start a batch: they show whether the other thread has started, and warm up its
/// code and data.
const LEAD_IN: u64 = 8;
/// Laps of a batch.
const LAPS: usize = 8;
/// Round trips of a lap.
const TRIPS: u64 = 16;
/// Batch n starts at n times this number, which is more than a batch counts.
const BATCH: u64 = 1 << 12;
/// On the line: the leader has ended.
const OVER: u64 = u64::MAX;
/// Swaps between two checks of the clock.
const TRIES: u32 = 512;

/// Times of one batch.
pub type Trips = Laps<LAPS>;

/// One-way time of the line, ns: half a round trip.
#[must_use]
pub fn one_way_ns(trips: &Trips, clock: &Clock) -> f64 {
    trips.total_ns(clock) / (2 * LAPS as u64 * TRIPS) as f64
}

/// The result of the follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowerResult {
    /// The leader has ended.
    Over,
    /// No partner came within its patience.
    Alone,
}

impl Line {
    /// Resets the counter. The first touch puts the line into memory of the calling CPU's NUMA
    /// node.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Tells the follower to stop.
    pub fn end(&self) {
        self.0.store(OVER, Ordering::Release);
    }

    /// The leader's first part of a batch, numbered from 1: returns once the follower has answered
    /// `LEAD_IN` times; false if it does not. `patience`: ticks of `clock` that one swap may take.
    pub fn begin(&self, batch: u64, clock: &Clock, patience: u64) -> bool {
        let first = batch * BATCH;
        self.0.store(first, Ordering::Release);
        (0..=LEAD_IN).all(|trip| self.swap(first + 2 * trip, clock, patience))
    }

    /// The leader's timed part, after [`Line::begin`]; `None` if the follower left.
    pub fn lead(&self, batch: u64, clock: &Clock, patience: u64) -> Option<Trips> {
        let mut next = batch * BATCH + 2 * LEAD_IN + 2;
        let mut laps = [0; LAPS];
        let mut last = clock.ticks();
        for lap in &mut laps {
            for _ in 0..TRIPS {
                if !self.swap(next, clock, patience) {
                    return None;
                }
                next += 2;
            }
            let now = clock.ticks();
            *lap = now.wrapping_sub(last);
            last = now;
        }
        Some(Laps::from_ticks(laps))
    }

    /// Swaps `from` for the next number as soon as the line holds it.
    #[inline(always)]
    fn swap(&self, from: u64, clock: &Clock, patience: u64) -> bool {
        for _ in 0..TRIES {
            if self.try_swap(from).is_ok() {
                return true;
            }
        }
        self.keep_swapping(from, clock, patience)
    }

    #[cold]
    fn keep_swapping(&self, from: u64, clock: &Clock, patience: u64) -> bool {
        let start = clock.ticks();
        while clock.ticks().wrapping_sub(start) < patience {
            for _ in 0..TRIES {
                if self.try_swap(from).is_ok() {
                    return true;
                }
            }
        }
        false
    }

    #[inline(always)]
    fn try_swap(&self, from: u64) -> Result<u64, u64> {
        let line = &self.0;
        line.compare_exchange(from, from + 1, Ordering::AcqRel, Ordering::Acquire)
    }

    /// The follower's side: answers until nothing comes any more. `at_batch` is called when a new
    /// batch has begun, before it is answered.
    pub fn follow(
        &self,
        clock: &Clock,
        patience: u64,
        mut at_batch: impl FnMut(),
    ) -> FollowerResult {
        // The line starts out as zero: no batch has this number.
        let mut mine = 1;
        let mut batch = 0;
        loop {
            let Some(now) = self.answer(mine, clock, patience) else {
                return FollowerResult::Alone;
            };
            if now == OVER {
                return FollowerResult::Over;
            }
            if now / BATCH != batch {
                batch = now / BATCH;
                at_batch();
            }
            mine = now | 1;
        }
    }

    /// Swaps odd numbers as they come, `mine` first, until the line holds an unexpected number,
    /// which is returned. `None` if patience ended.
    fn answer(&self, mut mine: u64, clock: &Clock, patience: u64) -> Option<u64> {
        let mut tries = 0;
        let mut since = None;
        loop {
            match self.try_swap(mine) {
                Ok(_) => {
                    mine += 2;
                    tries = 0;
                    since = None;
                }
                Err(now) if now == mine.wrapping_sub(1) => tries += 1,
                Err(now) => return Some(now),
            }
            if tries == TRIES {
                tries = 0;
                let now = clock.ticks();
                if now.wrapping_sub(*since.get_or_insert(now)) > patience {
                    return None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_without_follower_gives_up() {
        let (line, clock) = (Line::default(), Clock::system());
        assert!(!line.begin(1, &clock, 1000));
        assert!(line.lead(1, &clock, 1000).is_none());
    }

    #[test]
    fn a_follower_without_leader_gives_up() {
        let (line, clock) = (Line::default(), Clock::system());
        assert_eq!(line.follow(&clock, 1000, || ()), FollowerResult::Alone);
        line.end();
        assert_eq!(line.follow(&clock, 1000, || ()), FollowerResult::Over);
    }

    #[test]
    fn batches_are_answered_even_if_the_follower_starts_late() {
        let (line, clock) = (Line::default(), Clock::calibrate());
        let minute = clock.ticks_in(60e9);
        let batches = std::thread::scope(|scope| {
            let follower = scope.spawn(|| {
                let mut batches = 0;
                line.follow(&clock, minute, || batches += 1);
                batches
            });
            for batch in 1..=3 {
                assert!(line.begin(batch, &clock, minute));
                let trips = line.lead(batch, &clock, minute).unwrap();
                assert!(one_way_ns(&trips, &clock) > 0.0);
            }
            line.end();
            follower.join().unwrap()
        });
        assert_eq!(batches, 3);
    }
}
