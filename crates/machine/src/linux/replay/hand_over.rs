//! Hands a lock from a holder to a waiter, item after item.
//!
//! Both threads keep their schedule by the clock; only the wait itself counts hints and polls. An
//! item is left out if a disturbance changed its lateness: the waiter was preempted, or one of the
//! threads was stopped during the wait, at the release or at the arrival.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use super::calls::{self, sleep_until};
use super::lock::{Lock, WaitManner};
use super::{
    Answer, Deadline, calibrate_hints, collect_answers, start_thread, summarise_hints, wait_until,
};
use crate::linux::sys;
use crate::{HandOver, HandOverOrder, HandOverResult, MachineError};
use pinwise_kernels::loops::clock::{Clock, system_ns};
use pinwise_kernels::loops::wait::Hints;
use pinwise_spin::lateness::{Ending, ReleaseNotice};

/// An arrival or a release later than this was disturbed.
const LATE_NS: u64 = 50_000;
/// Shortest rest of both threads between two items.
const MIN_REST_NS: u64 = 200_000;
/// Both wake at a multiple of this, so that they wake together.
const REST_PERIOD_NS: u64 = 1_000_000;
/// At real-time priority both rest for twice the holding time divided by this: Linux reserves 5 %
/// of each second for other programs, and would enforce it.
const REST_DIVISOR: u64 = 10;
/// Time that measuring a hint takes, with a margin.
const CORRECTION_NS: u64 = 600_000;
/// Corrections of the hints before each item.
const CORRECTIONS: usize = 2;
/// The length of a hint is derived only from waits that spin longer than this.
const MIN_SPIN_NS: f64 = 1e6;

/// State shared by both threads. Items count from 1.
struct SharedState {
    deadline: Deadline,
    lock: Lock,
    hold_ns: u64,
    delay_ns: u64,
    rest_ns: u64,
    /// The item that the waiter is ready for.
    ready: AtomicU64,
    /// The last item for which the holder took the lock.
    taken: AtomicU64,
    /// When it took the lock, ns.
    taken_at: AtomicU64,
    /// The last item for which the holder released the lock.
    released: AtomicU64,
    /// When it released the lock, ns.
    released_at: AtomicU64,
    /// 1 if that was later than planned.
    was_late: AtomicU64,
}

/// The waiter's parameters.
struct Waiting {
    manner: WaitManner,
    hint_ns: Option<f64>,
    items: usize,
}

/// The outcome of an item.
enum HandOverOutcome {
    /// Undisturbed; with the length of a hint in it, ns, if it spun for long enough.
    Good(HandOver, Option<f64>),
    /// The waiter was preempted.
    Switched,
    /// Something else took time from a thread.
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
        2 * ns(order.hold) / REST_DIVISOR
    } else {
        0
    };
    let shared = Arc::new(SharedState {
        deadline: deadline.clone(),
        lock: Lock::default(),
        hold_ns: ns(order.hold),
        delay_ns: ns(order.delay),
        rest_ns: rest_ns.max(MIN_REST_NS),
        ready: AtomicU64::new(0),
        taken: AtomicU64::new(0),
        taken_at: AtomicU64::new(0),
        released: AtomicU64::new(0),
        released_at: AtomicU64::new(0),
        was_late: AtomicU64::new(0),
    });
    let waiting = Waiting {
        manner: WaitManner::from_waiter(&order.waiter),
        hint_ns: order.waiter.hint_ns,
        items: order.items,
    };
    let (to, answers) = channel();
    let holder_state = Arc::clone(&shared);
    start_thread(order.holder_cpu, order.is_realtime, &to, move || {
        holder_state.hold_items();
        Ok(None)
    })?;
    start_thread(order.waiter_cpu, order.is_realtime, &to, move || {
        let answer = shared.wait_for_items(&waiting);
        shared.deadline.end();
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

impl SharedState {
    /// Rests until a full millisecond, at which the other thread wakes, too.
    fn rest(&self) {
        let until = system_ns() + self.rest_ns;
        sleep_until(until.next_multiple_of(REST_PERIOD_NS));
    }

    /// Runs the holder's thread.
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

    /// Runs the waiter's thread.
    fn wait_for_items(&self, waiting: &Waiting) -> Answer<Option<HandOverResult>> {
        let clock = Clock::calibrate();
        let mut hints = calibrate_hints(waiting.hint_ns, &clock)?;
        let (mut before_ns, mut in_waits_ns, mut after_ns) = (vec![], vec![], vec![]);
        let mut result = HandOverResult {
            items: Vec::new(),
            switched: 0,
            stopped: 0,
            hint: None,
            yield_ns: (waiting.manner.ending == Ending::Yields).then(|| measure_yield_ns(&clock)),
        };
        for item in 1.. {
            if result.items.len() >= waiting.items {
                break;
            }
            self.rest();
            before_ns.push(observe_ns(&mut hints, &clock));
            match self.wait_for_item(item, waiting, &clock, &mut hints) {
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

    fn wait_for_item(
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
        let (preemptions, cpu) = (calls::count_preemptions(), sys::thread_cpu_time());
        let came_at = spin_until(due);
        let acquired = self
            .lock
            .acquire(hints, clock, &waiting.manner, &self.deadline);
        let seen_at = system_ns();
        let cpu = sys::thread_cpu_time().saturating_sub(cpu);
        let was_preempted = calls::count_preemptions() != preemptions;
        let Some(acquired) = acquired else {
            return HandOverOutcome::Over;
        };
        if !wait_until(&self.deadline, || {
            self.released.load(Ordering::Acquire) == item
        }) {
            return HandOverOutcome::Over;
        }
        self.lock.release();
        let was_late = self.was_late.load(Ordering::Relaxed) != 0 || came_at > due + LATE_NS;
        if was_preempted && acquired.seen != ReleaseNotice::Yielding {
            return HandOverOutcome::Switched;
        }
        if was_late || acquired.stopped_ns > 0.0 {
            return HandOverOutcome::Stopped;
        }
        let released_at = self.released_at.load(Ordering::Relaxed);
        let good = HandOver {
            item_ns: seen_at.saturating_sub(taken_at) as f64,
            late_ns: seen_at.saturating_sub(released_at) as f64,
            seen: acquired.seen,
            hints: acquired.hints,
            cpu_ns: cpu.as_nanos() as f64,
        };
        let hint_ns =
            (acquired.spun_ns > MIN_SPIN_NS).then(|| acquired.spun_ns / acquired.hints as f64);
        HandOverOutcome::Good(good, hint_ns)
    }
}

/// Measures the present length of a hint, including interrupts, ns. A measurement with a preemption
/// is not used: a preemption also disqualifies an item.
fn observe_ns(hints: &mut Hints, clock: &Clock) -> f64 {
    let before = calls::count_preemptions();
    hints.observe_ns(clock, || calls::count_preemptions() == before)
}

/// Measures the length of a `sched_yield` here, ns: the median of many.
fn measure_yield_ns(clock: &Clock) -> f64 {
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
