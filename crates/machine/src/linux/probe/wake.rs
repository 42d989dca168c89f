//! Measures the scheduler: a switch between two threads of one CPU, and waking a thread on the same
//! or another CPU.
//!
//! The threads preempt each other on purpose, so the kernel's count of preemptions says nothing
//! here; other programs show as stops of many microseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::calls::{futex_wait, futex_wake, sleep_until};
use super::probe_run::{Moment, ProbeRun, Span, Tally};
use crate::Batches;
use pinwise_kernels::loops::clock::system_ns;
use pinwise_kernels::loops::laps::Laps;

/// Longest sleep before a thread checks whether the time is over.
const MAX_SLEEP: Duration = Duration::from_millis(50);

/// Two threads of one CPU that pass a turn back and forth.
pub(super) struct Switching {
    run: ProbeRun,
    cpu: usize,
    /// The side whose turn it is: 0 or 1.
    turn: AtomicU32,
    over: AtomicBool,
}

/// Round trips of a lap.
const TRIPS: usize = 4;
/// Laps of a batch.
const LAPS: usize = 9;

impl Switching {
    pub(super) fn new(run: &ProbeRun, cpu: usize) -> Arc<Self> {
        Arc::new(Self {
            run: run.clone(),
            cpu,
            turn: AtomicU32::new(0),
            over: AtomicBool::new(false),
        })
    }

    /// Runs the measuring thread.
    pub(super) fn lead(&self) -> Batches {
        let clock = &self.run.clock;
        let mut tally = Tally::new(&self.run);
        let mut is_warm = false;
        while !tally.is_full() && !self.run.is_over() {
            let mut is_complete = true;
            let laps = Laps::<LAPS>::time(clock, || {
                for _ in 0..TRIPS {
                    self.hand_over(0);
                    is_complete &= self.await_turn(0);
                }
            });
            if !std::mem::replace(&mut is_warm, true) || !is_complete {
                continue;
            }
            let now = Moment::now();
            let value = laps.median_ns(clock) / (2 * TRIPS) as f64;
            let value = (!laps.was_stopped(clock)).then_some(value);
            let span = Span {
                cpu: self.cpu,
                from: now,
                to: now,
            };
            tally.note(value, &[span]);
        }
        self.over.store(true, Ordering::Release);
        self.hand_over(0);
        // A stop here is attributed to another program, not to the hypervisor.
        tally.batches.switched += std::mem::take(&mut tally.batches.stolen);
        tally.batches
    }

    /// Runs the other thread.
    pub(super) fn follow(&self) {
        while self.await_turn(1) && !self.over.load(Ordering::Acquire) {
            self.hand_over(1);
        }
    }

    fn hand_over(&self, side: u32) {
        self.turn.store(1 - side, Ordering::Release);
        futex_wake(&self.turn);
    }

    /// Waits for this side's turn; false if the time is over before.
    fn await_turn(&self, side: u32) -> bool {
        while self.turn.load(Ordering::Acquire) != side {
            futex_wait(&self.turn, 1 - side, MAX_SLEEP);
            if self.turn.load(Ordering::Acquire) != side && self.run.is_over() {
                return false;
            }
        }
        true
    }
}

/// A thread that sleeps and one that wakes it.
pub(super) struct Waking {
    run: ProbeRun,
    waker: usize,
    sleeper: usize,
    /// Number of the last wake-up.
    called: AtomicU32,
    /// Number of the sleep that the sleeper is about to begin.
    asleep: AtomicU32,
    /// Number of the wake-up after which the sleeper ran last.
    heard: AtomicU32,
    /// The sleeper's clock when it ran; comparable with the waker's only on the same CPU.
    heard_at: AtomicU64,
    /// The sleeper's [`Moment`] then, packed.
    sleeper_moment: AtomicU64,
    over: AtomicBool,
}

/// Wake-ups of a batch; the median counts.
const CALLS: usize = 5;
/// Time from announcing a sleep until the thread really sleeps.
const FALLING_ASLEEP_NS: u64 = 50_000;
/// A wake-up that takes longer does not count: another program had the CPU.
const MAX_NS: f64 = 1_000_000.0;

impl Waking {
    pub(super) fn new(run: &ProbeRun, waker: usize, sleeper: usize) -> Arc<Self> {
        Arc::new(Self {
            run: run.clone(),
            waker,
            sleeper,
            called: AtomicU32::new(0),
            asleep: AtomicU32::new(0),
            heard: AtomicU32::new(0),
            heard_at: AtomicU64::new(0),
            sleeper_moment: AtomicU64::new(Moment::now().pack()),
            over: AtomicBool::new(false),
        })
    }

    /// Runs the waker's thread.
    pub(super) fn lead(&self) -> Batches {
        let mut tally = Tally::new(&self.run);
        while !tally.is_full() && !self.run.is_over() {
            let from = Moment::now();
            let mut calls = [0.0; CALLS];
            for call in &mut calls {
                *call = self.time_wake_up().unwrap_or(f64::NAN);
            }
            let to = Moment::now();
            calls.sort_by(f64::total_cmp);
            let value = (!calls.iter().any(|ns| ns.is_nan())).then_some(calls[CALLS / 2]);
            let sleeper = Moment::unpack(self.sleeper_moment.load(Ordering::Acquire));
            // On one CPU the sleeper preempts the waker, which is not a disturbance.
            let from = if self.waker == self.sleeper { to } else { from };
            let spans = [
                Span {
                    cpu: self.waker,
                    from,
                    to,
                },
                Span {
                    cpu: self.sleeper,
                    from: sleeper,
                    to: sleeper,
                },
            ];
            tally.note(value, &spans);
        }
        self.over.store(true, Ordering::Release);
        self.called.fetch_add(1, Ordering::Release);
        futex_wake(&self.called);
        tally.batches.switched += std::mem::take(&mut tally.batches.stolen);
        tally.batches
    }

    /// Times the first of a few wake-ups that finds the sleeper asleep.
    fn time_wake_up(&self) -> Option<f64> {
        (0..4).find_map(|_| self.try_wake_up())
    }

    /// Times one wake-up until the sleeper runs, ns; `None` if the sleeper was not asleep yet or
    /// took too long.
    fn try_wake_up(&self) -> Option<f64> {
        let clock = &self.run.clock;
        let number = self.called.load(Ordering::Relaxed).wrapping_add(1);
        self.await_sleep(number)?;
        self.called.store(number, Ordering::Release);
        let start = clock.ticks();
        if futex_wake(&self.called) == 0 {
            // The sleeper had not fallen asleep yet.
            self.await_number(&self.heard, number)?;
            return None;
        }
        self.await_number(&self.heard, number)?;
        let end = if self.waker == self.sleeper {
            self.heard_at.load(Ordering::Acquire)
        } else {
            clock.ticks()
        };
        let ns = clock.ns(end.wrapping_sub(start));
        (ns < MAX_NS).then_some(ns)
    }

    /// Waits until the sleeper sleeps before this wake-up; `None` if the time is over.
    fn await_sleep(&self, number: u32) -> Option<()> {
        let clock = &self.run.clock;
        self.await_number(&self.asleep, number)?;
        if self.waker == self.sleeper {
            sleep_until(system_ns() + FALLING_ASLEEP_NS);
            return Some(());
        }
        let announced_at = clock.ticks();
        let delay = clock.ticks_in(FALLING_ASLEEP_NS as f64);
        while clock.ticks().wrapping_sub(announced_at) < delay {
            std::hint::spin_loop();
        }
        Some(())
    }

    /// Waits until the word holds this number; spins, unless the thread that writes it needs this
    /// CPU. `None` if the time is over.
    fn await_number(&self, word: &AtomicU32, number: u32) -> Option<()> {
        let mut tries = 0u32;
        loop {
            let now = word.load(Ordering::Acquire);
            if now == number {
                return Some(());
            }
            if self.waker == self.sleeper {
                futex_wait(word, now, MAX_SLEEP);
            } else {
                std::hint::spin_loop();
            }
            tries = tries.wrapping_add(1);
            if tries.is_multiple_of(256) && self.run.is_over() {
                return None;
            }
        }
    }

    /// Runs the sleeper's thread.
    pub(super) fn follow(&self) {
        let clock = &self.run.clock;
        let mut last = 0u32;
        while !self.over.load(Ordering::Acquire) && !self.run.is_over() {
            self.asleep.store(last.wrapping_add(1), Ordering::Release);
            if self.waker == self.sleeper {
                futex_wake(&self.asleep);
            }
            while self.called.load(Ordering::Acquire) == last {
                futex_wait(&self.called, last, MAX_SLEEP);
                if self.run.is_over() {
                    return;
                }
            }
            self.heard_at.store(clock.ticks(), Ordering::Release);
            last = self.called.load(Ordering::Acquire);
            self.heard.store(last, Ordering::Release);
            if self.waker == self.sleeper {
                futex_wake(&self.heard);
            }
            let moment = Moment::now().pack();
            self.sleeper_moment.store(moment, Ordering::Release);
        }
    }
}
