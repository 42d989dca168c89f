//! Makes two threads run at the same time on a busy machine.
//!
//! A thread that does not meet its partner sleeps until the next full millisecond, and so does the
//! partner. Both timers fire at once, each on its own CPU, and the scheduler prefers a thread that
//! has slept to those that have not. A thread spins for at most [`MAX_SPIN_NS`], so that it does
//! not keep its partner from running if that needs the same CPU.

use std::sync::atomic::{AtomicU64, Ordering};

use super::calls;
use pinwise_kernels::loops::clock::{Clock, system_ns};

/// Longest spin for the partner: longer than a wake-up takes (about 50 µs in a virtual machine),
/// far shorter than a time slice.
pub(super) const MAX_SPIN_NS: f64 = 150_000.0;
/// Sleeps end at multiples of this.
const PERIOD_NS: u64 = 1_000_000;
/// Shortest sleep.
const MIN_NAP_NS: u64 = 200_000;

/// Sleeps until a moment at which a sleeping partner wakes, too.
pub(super) fn nap() {
    let now = system_ns();
    calls::sleep_until((now + MIN_NAP_NS).next_multiple_of(PERIOD_NS));
}

/// Where two threads meet before every part of a batch.
///
/// The word holds a number that grows with each meeting and, while a thread waits, its side and the
/// part. A thread that stops waiting removes these, unless the other has come meanwhile. So both
/// always agree on whether they met.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Meeting(AtomicU64);

/// Bits of the word for the part, above one bit for the side.
const PART_BITS: u32 = 4;
/// Set while a thread waits.
const WAITING: u64 = 1 << (PART_BITS + 1);
/// The lowest bit of the number of meetings.
const NUMBER: u64 = WAITING << 1;

impl Meeting {
    /// Waits for the other thread at this part. False if it did not come, or if it waits at another
    /// part and this is not the first one.
    pub(super) fn meet(&self, side: u64, part: u64, clock: &Clock) -> bool {
        let max_ticks = clock.ticks_in(MAX_SPIN_NS);
        let start = clock.ticks();
        let is_late = || clock.ticks().wrapping_sub(start) > max_ticks;
        loop {
            let now = self.0.load(Ordering::Acquire);
            if now & WAITING == 0 {
                let mine = now | WAITING | (part << 1) | side;
                if self.swap(now, mine) {
                    return self.wait_for_partner(mine, is_late);
                }
                continue;
            }
            let next = (now & !(NUMBER - 1)) + NUMBER;
            let their_part = (now & (WAITING - 1)) >> 1;
            if their_part == part && now & 1 != side {
                if self.swap(now, next) {
                    return true;
                }
            } else if part != 0 || is_late() {
                return false;
            }
            relax();
        }
    }

    /// Waits until the other thread has advanced the number; resets the word if it does not come.
    fn wait_for_partner(&self, mine: u64, is_late: impl Fn() -> bool) -> bool {
        loop {
            relax();
            if self.0.load(Ordering::Acquire) != mine {
                return true;
            }
            if is_late() {
                return !self.swap(mine, mine & !(NUMBER - 1));
            }
        }
    }

    fn swap(&self, from: u64, to: u64) -> bool {
        let swapped = self
            .0
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire);
        swapped.is_ok()
    }
}

/// Spins with as few resources as possible: a waiting SMT sibling should not slow the working one
/// down.
fn relax() {
    for _ in 0..8 {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_partner_there_is_no_meeting() {
        let (meeting, clock) = (Meeting::default(), Clock::system());
        assert!(!meeting.meet(0, 0, &clock));
        assert!(!meeting.meet(0, 2, &clock));
        assert_eq!(meeting.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_partner_in_another_part_is_not_met() {
        let (meeting, clock) = (Meeting::default(), Clock::system());
        meeting.0.store(WAITING | (2 << 1) | 1, Ordering::Relaxed);
        assert!(!meeting.meet(0, 3, &clock));
        assert!(!meeting.meet(0, 0, &clock));
        assert!(meeting.meet(0, 2, &clock));
    }

    #[test]
    fn both_agree_on_whether_they_met() {
        let (meeting, clock) = (Meeting::default(), Clock::calibrate());
        let times_met = |side: u64| (0..300).filter(|_| meeting.meet(side, 0, &clock)).count();
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(|| times_met(1));
            (times_met(0), other.join().unwrap())
        });
        assert_eq!(one, other);
    }
}
