//! A lock handed from a holder to a waiter, item after item.
//!
//! Both keep their schedule by the clock; only the wait itself goes by count. An item is left out
//! if a disturbance changed its lateness: the waiter was preempted, or a wait, a release or an
//! arrival was stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use super::calls::{self, sleep_until};
use super::lock::{Lock, Manner};
use super::{
    Answer, Deadline, calibrate_hints, collect_answers, convert_runs, start_thread,
    summarise_hints, wait_until,
};
use crate::linux::sys;
use crate::{HandOver, HandOverOrder, HandOverResult, MachineError};
use pinwise_kernels::loops::clock::{Clock, system_ns};
use pinwise_kernels::loops::wait::Hints;
use pinwise_spin::lateness::{Ending, ReleaseNotice};

/// An arrival or a release later than this was disturbed.
const LATE_NS: u64 = 50_000;
/// Both rest at least this long between two items, and wake at a full millisecond.
const SHORTEST_REST_NS: u64 = 200_000;
const REST_PERIOD_NS: u64 = 1_000_000;
/// Share of resting time at real-time priority: Linux reserves 5 % of each second for other
/// programs, and would enforce it.
const REST_SHARE: u64 = 10;
/// Time to measure a hint, with a margin.
const CORRECTION_NS: u64 = 600_000;
/// Corrections before an item, whatever its delay.
const CORRECTIONS: usize = 2;
/// Waits that spin longer than this reveal a hint's length, ns.
const TELLING_NS: f64 = 1e6;

/// State shared by both threads. Items count from 1.
struct Stage {
    deadline: Deadline,
    lock: Lock,
    hold_ns: u64,
    delay_ns: u64,
    rest_ns: u64,
    /// The item that the waiter is ready for.
    ready: AtomicU64,
    /// The last item that the holder took the lock for, and when.
    taken: AtomicU64,
    taken_at: AtomicU64,
    /// The last item that the holder released, when, and whether that was in time.
    released: AtomicU64,
    released_at: AtomicU64,
    was_late: AtomicU64,
}

/// The waiter's parameters.
struct Waiting {
    runs: Vec<(u64, u64)>,
    is_endless: bool,
    ending: Ending,
    hint_ns: Option<f64>,
    items: usize,
}

/// The outcome of an item.
enum HandOverOutcome {
    /// With the time of a hint in it, ns, if it spun for long enough.
    Good(HandOver, Option<f64>),
    Switched,
    Stopped,
    /// The time is over.
    Over,
}

/// See [`Replayer::hand_over`](crate::Replayer::hand_over).
pub(super) fn hand_over(
    order: &HandOverOrder<'_>,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<HandOverResult, MachineError> {
    let deadline = Deadline::new(order.limit);
    let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let rest_ns = if order.is_realtime {
        2 * ns(order.hold) / REST_SHARE
    } else {
        0
    };
    let stage = Arc::new(Stage {
        deadline: deadline.clone(),
        lock: Lock::default(),
        hold_ns: ns(order.hold),
        delay_ns: ns(order.delay),
        rest_ns: rest_ns.max(SHORTEST_REST_NS),
        ready: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        taken_at: AtomicU64::new(0),
        released: AtomicU64::new(0),
        released_at: AtomicU64::new(0),
        was_late: AtomicU64::new(0),
    });
    let (runs, is_endless) = convert_runs(&order.waiter);
    let waiting = Waiting {
        runs,
        is_endless,
        ending: order.waiter.ending,
        hint_ns: order.waiter.hint_ns,
        items: order.items,
    };
    let (to, answers) = channel();
    let held = Arc::clone(&stage);
    start_thread(order.holder_cpu, order.is_realtime, &to, move || {
        held.hold_items();
        Ok(None)
    })?;
    start_thread(order.waiter_cpu, order.is_realtime, &to, move || {
        let answer = stage.wait_for_items(&waiting);
        stage.deadline.end();
        answer
    })
    .inspect_err(|_| deadline.end())?;
    drop(to);
    let answers: Vec<Option<HandOverResult>> =
        collect_answers(&deadline, &answers, 2, is_interrupted)?;
    Ok(answers
        .into_iter()
        .flatten()
        .next()
        .unwrap_or(HandOverResult {
            items: Vec::new(),
            switched: 0,
            stopped: 0,
            hint: None,
            yield_ns: None,
        }))
}

impl Stage {
    /// Rests until the same full millisecond as the other thread.
    fn rest(&self) {
        let until = system_ns() + self.rest_ns;
        sleep_until(until.next_multiple_of(REST_PERIOD_NS));
    }

    /// The holder's side.
    fn hold_items(&self) {
        for item in 1.. {
            self.rest();
            if !wait_until(&self.deadline, || {
                self.ready.load(Ordering::Acquire) == item
            }) {
                return;
            }
            self.lock.hold();
            let taken_at = system_ns();
            self.taken_at.store(taken_at, Ordering::Relaxed);
            self.taken.store(item, Ordering::Release);
            let due = taken_at.saturating_add(self.hold_ns);
            let released_at = spin_until(due);
            self.lock.release();
            self.released_at.store(released_at, Ordering::Relaxed);
            let was_late = u64::from(released_at > due + LATE_NS);
            self.was_late.store(was_late, Ordering::Relaxed);
            self.released.store(item, Ordering::Release);
        }
    }

    /// The waiter's side.
    fn wait_for_items(&self, waiting: &Waiting) -> Answer<Option<HandOverResult>> {
        let clock = Clock::calibrate();
        let mut hints = calibrate_hints(waiting.hint_ns, &clock)?;
        let (mut before_ns, mut in_waits_ns, mut after_ns) = (vec![], vec![], vec![]);
        let mut result = HandOverResult {
            items: Vec::new(),
            switched: 0,
            stopped: 0,
            hint: None,
            yield_ns: (waiting.ending == Ending::Yields).then(|| yield_ns(&clock)),
        };
        for item in 1.. {
            if result.items.len() >= waiting.items {
                break;
            }
            self.rest();
            before_ns.push(observe_ns(&mut hints, &clock));
            match self.wait_for(item, waiting, &clock, &mut hints) {
                HandOverOutcome::Good(good, hint_ns) => {
                    result.items.push(good);
                    if let Some(hint_ns) = hint_ns {
                        in_waits_ns.push(hint_ns);
                        hints.learn(hint_ns);
                    }
                    after_ns.push(observe_ns(&mut hints, &clock));
                }
                HandOverOutcome::Switched => result.switched += 1,
                HandOverOutcome::Stopped => result.stopped += 1,
                HandOverOutcome::Over => break,
            }
        }
        let achieved_ns = if in_waits_ns.is_empty() {
            after_ns
        } else {
            in_waits_ns
        };
        result.hint = summarise_hints(&hints, &before_ns, &achieved_ns);
        Ok(Some(result))
    }

    fn wait_for(
        &self,
        item: u64,
        waiting: &Waiting,
        clock: &Clock,
        hints: &mut Hints,
    ) -> HandOverOutcome {
        for _ in 0..CORRECTIONS {
            hints.correct(clock);
        }
        self.ready.store(item, Ordering::Release);
        if !wait_until(&self.deadline, || {
            self.taken.load(Ordering::Acquire) == item
        }) {
            return HandOverOutcome::Over;
        }
        let taken_at = self.taken_at.load(Ordering::Relaxed);
        let due = taken_at.saturating_add(self.delay_ns);
        while system_ns() + CORRECTION_NS < due {
            hints.correct(clock);
        }
        let (pushed, cpu) = (calls::times_pushed(), sys::thread_cpu_time());
        let came_at = spin_until(due);
        let manner = Manner {
            runs: &waiting.runs,
            is_endless: waiting.is_endless,
            ending: waiting.ending,
        };
        let taken = self.lock.acquire(hints, clock, &manner, &self.deadline);
        let seen_at = system_ns();
        let cpu = sys::thread_cpu_time().saturating_sub(cpu);
        let was_pushed = calls::times_pushed() != pushed;
        let Some(taken) = taken else {
            return HandOverOutcome::Over;
        };
        if !wait_until(&self.deadline, || {
            self.released.load(Ordering::Acquire) == item
        }) {
            return HandOverOutcome::Over;
        }
        self.lock.release();
        let was_late = self.was_late.load(Ordering::Relaxed) != 0 || came_at > due + LATE_NS;
        if was_pushed && taken.seen != ReleaseNotice::Yielding {
            return HandOverOutcome::Switched;
        }
        if was_late || taken.stopped_ns > 0.0 {
            return HandOverOutcome::Stopped;
        }
        let released_at = self.released_at.load(Ordering::Relaxed);
        let good = HandOver {
            item_ns: seen_at.saturating_sub(taken_at) as f64,
            late_ns: seen_at.saturating_sub(released_at) as f64,
            seen: taken.seen,
            hints: taken.hints,
            cpu_ns: cpu.as_nanos() as f64,
        };
        let hint_ns = (taken.spun_ns > TELLING_NS).then(|| taken.spun_ns / taken.hints as f64);
        HandOverOutcome::Good(good, hint_ns)
    }
}

/// The present time of a hint, including interrupts, ns. Time slices of other threads teach
/// nothing: they also disqualify an item.
fn observe_ns(hints: &mut Hints, clock: &Clock) -> f64 {
    let pushed = calls::times_pushed();
    hints.observe_ns(clock, || calls::times_pushed() == pushed)
}

/// Length of a `sched_yield` here, ns: the median of a few.
fn yield_ns(clock: &Clock) -> f64 {
    const TIMES: usize = 101;
    let mut times = [0; TIMES];
    for time in &mut times {
        let from = clock.ticks();
        std::thread::yield_now();
        *time = clock.ticks().wrapping_sub(from);
    }
    times.sort_unstable();
    clock.ns(times[TIMES / 2])
}

/// Spins until the clock reaches `due`; returns the time, ns.
fn spin_until(due: u64) -> u64 {
    loop {
        let now = system_ns();
        if now >= due {
            return now;
        }
    }
}
