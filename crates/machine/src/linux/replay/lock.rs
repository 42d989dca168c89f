//! The contended lock.
//!
//! Its waiters spin as configured, then park on a futex or yield; the first to come gets it, and it
//! is never handed over.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::Deadline;
use super::calls::{futex_wait, futex_wake};
use pinwise_kernels::loops::clock::Clock;
use pinwise_kernels::loops::wait::{Hints, wait};
use pinwise_spin::lateness::{Ending, ReleaseNotice};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and another thread may be parked.
const AWAITED: u32 = 2;
/// A sleep that nobody ends is checked after this.
const SLEEP: Duration = Duration::from_millis(50);

/// The word, alone on two cache lines: some prefetchers fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Lock(AtomicU32);

/// How a thread waits for the lock.
pub(super) struct Manner<'a> {
    pub(super) runs: &'a [(u64, u64)],
    pub(super) is_endless: bool,
    pub(super) ending: Ending,
}

/// How a thread acquired it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acquisition {
    pub(super) seen: ReleaseNotice,
    pub(super) hints: u64,
    /// How long it spun, ns.
    pub(super) spun_ns: f64,
    /// Time lost while spinning, ns.
    pub(super) stopped_ns: f64,
}

impl Lock {
    /// Takes it unconditionally: nobody else wants it.
    pub(super) fn hold(&self) {
        self.0.store(HELD, Ordering::Release);
    }

    /// Releases it and wakes a parked thread.
    pub(super) fn release(&self) {
        if self.0.swap(FREE, Ordering::Release) == AWAITED {
            futex_wake(&self.0);
        }
    }

    fn try_take(&self) -> bool {
        self.0.load(Ordering::Relaxed) == FREE
            && self
                .0
                .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    }

    /// Takes it in the given manner; `None` if the time is over before.
    pub(super) fn acquire(
        &self,
        hints: &mut Hints,
        clock: &Clock,
        manner: &Manner<'_>,
        deadline: &Deadline,
    ) -> Option<Acquisition> {
        let waited = wait(
            hints,
            clock,
            manner.runs,
            manner.is_endless,
            || self.try_take(),
            || deadline.is_over(),
        );
        let taken = |seen| Acquisition {
            seen,
            hints: waited.hints,
            spun_ns: waited.spun_ns,
            stopped_ns: waited.stopped_ns,
        };
        if waited.is_seen {
            return Some(taken(ReleaseNotice::Spinning));
        }
        if manner.is_endless {
            return None;
        }
        match manner.ending {
            Ending::Parks => self.park(deadline).then(|| taken(ReleaseNotice::Parked)),
            Ending::Yields => self
                .take_between_yields(deadline)
                .then(|| taken(ReleaseNotice::Yielding)),
        }
    }

    /// Parks until it is free. A thread that was parked keeps the mark that others may be, too: at
    /// worst one release too many wakes nobody.
    fn park(&self, deadline: &Deadline) -> bool {
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            futex_wait(&self.0, AWAITED, SLEEP);
            if deadline.is_over() {
                return false;
            }
        }
        true
    }

    fn take_between_yields(&self, deadline: &Deadline) -> bool {
        /// Yields between two checks of the time.
        const WATCH: u32 = 64;
        for number in 1u32.. {
            std::thread::yield_now();
            if self.try_take() {
                return true;
            }
            if number.is_multiple_of(WATCH) && deadline.is_over() {
                return false;
            }
        }
        false
    }
}
