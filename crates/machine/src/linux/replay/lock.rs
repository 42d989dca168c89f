//! The lock of replays.
//!
//! Its waiters spin as configured, then park on a futex or yield. It is not fair: once it is
//! free, any thread may take it.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::Deadline;
use super::calls::{futex_wait, futex_wake};
use crate::Waiter;
use pinwise_kernels::loops::clock::Clock;
use pinwise_kernels::loops::wait::{Hints, wait};
use pinwise_spin::lateness::{Ending, ReleaseNotice};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and another thread may be parked.
const AWAITED: u32 = 2;
/// Longest sleep before a parked thread checks whether the time is over.
const MAX_SLEEP: Duration = Duration::from_millis(50);

/// The lock's word, alone on two cache lines, since some prefetchers fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Lock(AtomicU32);

/// How a thread waits for the lock.
pub(super) struct WaitManner {
    /// For each run the number of polls, and of hints before each poll.
    runs: Vec<(u64, u64)>,
    /// Does the last run repeat for ever?
    is_endless: bool,
    /// What follows the runs otherwise.
    pub(super) ending: Ending,
}

impl WaitManner {
    pub(super) fn from_waiter(waiter: &Waiter<'_>) -> Self {
        let runs = waiter.wait.runs.iter();
        Self {
            runs: runs.map(|run| (run.times, run.hints)).collect(),
            is_endless: waiter.wait.is_endless,
            ending: waiter.ending,
        }
    }
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
    /// Takes it without a check: call only while no other thread wants it.
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

    /// Waits for it in the given manner and takes it; `None` if the time is over before.
    pub(super) fn acquire(
        &self,
        hints: &mut Hints,
        clock: &Clock,
        manner: &WaitManner,
        deadline: &Deadline,
    ) -> Option<Acquisition> {
        let waited = wait(
            hints,
            clock,
            &manner.runs,
            manner.is_endless,
            || self.try_take(),
            || deadline.is_over(),
        );
        let acquired = |seen| Acquisition {
            seen,
            hints: waited.hints,
            spun_ns: waited.spun_ns,
            stopped_ns: waited.stopped_ns,
        };
        if waited.is_seen {
            return Some(acquired(ReleaseNotice::Spinning));
        }
        if manner.is_endless {
            return None;
        }
        match manner.ending {
            Ending::Parks => self.park(deadline).then(|| acquired(ReleaseNotice::Parked)),
            Ending::Yields => self
                .take_between_yields(deadline)
                .then(|| acquired(ReleaseNotice::Yielding)),
        }
    }

    /// Parks until it is free, and takes it. The thread marks it as awaited, since others may be
    /// parked, too: at worst the next release wakes a thread in vain.
    fn park(&self, deadline: &Deadline) -> bool {
        while self.0.swap(AWAITED, Ordering::Acquire) != FREE {
            futex_wait(&self.0, AWAITED, MAX_SLEEP);
            if deadline.is_over() {
                return false;
            }
        }
        true
    }

    fn take_between_yields(&self, deadline: &Deadline) -> bool {
        /// Yields between two checks of the time.
        const CHECK_INTERVAL: u32 = 64;
        for number in 1u32.. {
            std::thread::yield_now();
            if self.try_take() {
                return true;
            }
            if number.is_multiple_of(CHECK_INTERVAL) && deadline.is_over() {
                return false;
            }
        }
        false
    }
}
