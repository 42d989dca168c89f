//! Makes two threads run at the same time on a busy machine.
//!
//! A thread that does not meet its partner naps until the next full millisecond, and so does the
//! partner: both timers ring at once, each on its own CPU, and a thread that has slept is scheduled
//! before those that have not. No spin lasts longer than [`PATIENCE_NS`], so that nobody waits for
//! a partner that needs the same CPU.

use std::sync::atomic::{AtomicU64, Ordering};

use super::calls;
use pinwise_kernels::loops::clock::{Clock, system_ns};

/// Longest spin for the other: longer than a wake-up (about 50 µs in a virtual machine), far shorter
/// than a time slice.
pub(super) const PATIENCE_NS: f64 = 150_000.0;
/// Naps end at multiples of this.
const PERIOD_NS: u64 = 1_000_000;
/// Shorter naps are not worth it.
const SHORTEST_NAP_NS: u64 = 200_000;

/// Sleeps until the next moment at which the partner wakes, too.
pub(super) fn nap() {
    let now = system_ns();
    calls::sleep_until((now + SHORTEST_NAP_NS).next_multiple_of(PERIOD_NS));
}

/// Where two threads meet before every part of a batch.
///
/// The word holds a number that grows with each meeting and, while one waits, its side and the
/// part. A thread that stops waiting takes that back, unless the other has come meanwhile: so both
/// always agree on whether they met.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Meeting(AtomicU64);

const PART_BITS: u32 = 4;
const WAITING: u64 = 1 << (PART_BITS + 1);
const NUMBER: u64 = WAITING << 1;

impl Meeting {
    /// Waits for the other at this part; false if it did not come, or is at another part and this
    /// one is not the first.
    pub(super) fn meet(&self, side: u64, part: u64, clock: &Clock) -> bool {
        let patience = clock.ticks_in(PATIENCE_NS);
        let start = clock.ticks();
        let is_late = || clock.ticks().wrapping_sub(start) > patience;
        loop {
            let now = self.0.load(Ordering::Acquire);
            if now & WAITING == 0 {
                let mine = now | WAITING | (part << 1) | side;
                if self.swap(now, mine) {
                    return self.wait(mine, is_late);
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

    /// Waits until the other has advanced the number; takes the word back if it does not come.
    fn wait(&self, mine: u64, is_late: impl Fn() -> bool) -> bool {
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

/// Waits as cheaply as possible: a waiting SMT sibling should take nothing from the working one.
fn relax() {
    for _ in 0..8 {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_partner_means_no_meeting() {
        let (meeting, clock) = (Meeting::default(), Clock::system());
        assert!(!meeting.meet(0, 0, &clock));
        assert!(!meeting.meet(0, 2, &clock));
        assert_eq!(meeting.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_partner_at_another_part_is_not_met() {
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
