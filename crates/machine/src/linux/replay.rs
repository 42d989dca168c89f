//! Replays on the host: threads of pinwise, each pinned to one CPU, wait for a lock as an algorithm
//! with given parameters would.
//!
//! CPU mask and priority are set on these threads only and end with them. Every wait checks the
//! time: whatever happens to another thread, a replay ends soon after its limit.

mod contend;
mod hand_over;
mod lock;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use contend::contend;
use hand_over::hand_over;

use super::probe::calls;
use super::{LinuxMachine, sys};
use crate::{
    ContendOrder, ContentionResult, HandOverOrder, HandOverResult, HintSummary, MachineError,
    Replayer,
};
use pinwise_kernels::loops::clock::{Clock, system_ns};
use pinwise_kernels::loops::wait::Hints;
use pinwise_stats::describe::quantile;
use pinwise_topology::CpuSet;

/// Real-time priority: above programs that use the lowest ones, far below the kernel's own threads.
const REALTIME_PRIORITY: libc::c_int = 5;
/// The shortest time slice that Linux grants.
const SHORT_SLICE: Duration = Duration::from_micros(100);
/// Stack of a replay's thread, which needs few frames.
const STACK_BYTES: usize = 256 * 1024;
/// How often the main thread checks for an interrupt by the user.
const INTERRUPT_CHECK: Duration = Duration::from_millis(20);
/// Threads may end this much later than the limit before they are abandoned.
const GRACE: Duration = Duration::from_secs(2);

impl Replayer for LinuxMachine {
    fn hand_over(&mut self, order: &HandOverOrder<'_>) -> Result<HandOverResult, MachineError> {
        hand_over(order, &mut || self.take_pending_interrupt())
    }

    fn contend(&mut self, order: &ContendOrder<'_>) -> Result<ContentionResult, MachineError> {
        contend(order, &mut || self.take_pending_interrupt())
    }
}

/// How long a replay may take, and whether it should stop early.
#[derive(Debug, Clone)]
struct Deadline {
    deadline_ns: u64,
    over: Arc<AtomicBool>,
}

impl Deadline {
    fn new(limit: Duration) -> Self {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Self {
            deadline_ns: system_ns().saturating_add(limit_ns),
            over: Arc::new(AtomicBool::new(false)),
        }
    }

    fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || system_ns() >= self.deadline_ns
    }
}

/// The result of a replay's thread.
type Answer<T> = Result<T, MachineError>;

/// Starts a thread on a CPU; sends its answer or its error to `to`.
fn start_thread<T: Send + 'static>(
    cpu: usize,
    is_realtime: bool,
    to: &Sender<Answer<T>>,
    work: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Result<(), MachineError> {
    let to = to.clone();
    let body = move || {
        let answer = place_thread(cpu, is_realtime).and_then(|()| work());
        // The receiver is gone if the replay was abandoned.
        let _ = to.send(answer);
    };
    let thread = std::thread::Builder::new()
        .name(format!("replay-{cpu}"))
        .stack_size(STACK_BYTES);
    let started = thread.spawn(body);
    started.map(drop).map_err(|error| MachineError::System {
        action: format!("starting a thread for CPU {cpu}"),
        reason: error.to_string(),
    })
}

/// Sets CPU and priority of the calling thread.
fn place_thread(cpu: usize, is_realtime: bool) -> Result<(), MachineError> {
    sys::set_affinity(&CpuSet::single(cpu)).map_err(|error| MachineError::Refused {
        what: format!("a thread on CPU {cpu}"),
        reason: error.to_string(),
    })?;
    calls::ask_for_exact_timers();
    if !is_realtime {
        calls::ask_for_short_slices(SHORT_SLICE);
        return Ok(());
    }
    sys::become_realtime(REALTIME_PRIORITY).map_err(|error| MachineError::Refused {
        what: "real-time priority".to_owned(),
        reason: format!("{error} (CAP_SYS_NICE permits it, or leave --realtime out)"),
    })
}

/// Waits for `count` answers; stops all threads if the user interrupts or one of them fails.
fn collect_answers<T>(
    deadline: &Deadline,
    answers: &Receiver<Answer<T>>,
    count: usize,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<T>, MachineError> {
    let mut found = Vec::new();
    let mut failure = None;
    let given_up_ns = deadline
        .deadline_ns
        .saturating_add(u64::try_from(GRACE.as_nanos()).unwrap_or(0));
    let mut left = count;
    while left > 0 {
        match answers.recv_timeout(INTERRUPT_CHECK) {
            Ok(Ok(answer)) => {
                found.push(answer);
                left -= 1;
            }
            Ok(Err(error)) => {
                deadline.end();
                failure.get_or_insert(error);
                left -= 1;
            }
            Err(RecvTimeoutError::Timeout) if system_ns() > given_up_ns => break,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if is_interrupted() {
            deadline.end();
            failure = Some(MachineError::Interrupted);
        }
    }
    match failure {
        Some(error) => Err(error),
        None if left > 0 => {
            deadline.end();
            Err(MachineError::System {
                action: "replaying".to_owned(),
                reason: "a thread did not end; a real-time program may have its CPU".to_owned(),
            })
        }
        None => Ok(found),
    }
}

/// Calibrates hints of this length, on the CPU that executes them; `None`: the processor's own
/// hints.
fn calibrate_hints(wanted_ns: Option<f64>, clock: &Clock) -> Result<Hints, MachineError> {
    let Some(wanted_ns) = wanted_ns else {
        return Ok(Hints::own(clock));
    };
    Hints::lasting(wanted_ns, clock).ok_or_else(|| MachineError::System {
        action: format!("making hints of {wanted_ns} ns"),
        reason: "no hint can be that short on this processor".to_owned(),
    })
}

/// What hints took before and during the waits; `None` if there were none.
fn summarise_hints(hints: &Hints, before_ns: &[f64], achieved_ns: &[f64]) -> Option<HintSummary> {
    if before_ns.is_empty() || achieved_ns.is_empty() {
        return None;
    }
    Some(HintSummary {
        kind: hints.kind(),
        before_ns: quantile(before_ns, 0.5),
        achieved_ns: quantile(achieved_ns, 0.5),
    })
}

/// Waits until another thread makes a condition true: spins for half a millisecond, then sleeps and
/// polls. False if the time is over first.
fn wait_until(deadline: &Deadline, mut is_true: impl FnMut() -> bool) -> bool {
    const SPIN_NS: u64 = 500_000;
    const SLEEP_NS: u64 = 200_000;
    let begin = system_ns();
    loop {
        if is_true() {
            return true;
        }
        let now = system_ns();
        if deadline.is_over() {
            return false;
        }
        if now > begin + SPIN_NS {
            calls::sleep_until(now + SLEEP_NS);
        } else {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests;
