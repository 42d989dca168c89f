//! Threads that contend for a lock, possibly more threads than CPUs.
//!
//! They run at normal priority: a spinning real-time thread would keep the holder from running on
//! the same CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::lock::{Lock, WaitManner};
use super::{
    Deadline, calibrate_hints, collect_answers, start_thread, summarise_hints, wait_until,
};
use crate::linux::sys;
use crate::{ContendOrder, Contender, ContentionResult, HintSummary, MachineError};
use pinwise_kernels::loops::clock::{Clock, system_ns};
use pinwise_kernels::loops::wait::{Hints, compute};
use pinwise_spin::lateness::ReleaseNotice;

/// Longest wait until all threads have started.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Operations between two checks of the time.
const CHECK_INTERVAL: u64 = 16;

/// State shared by all threads.
struct Arena {
    deadline: Deadline,
    lock: Lock,
    /// Number of ready threads.
    ready: AtomicUsize,
    threads: usize,
    time_ns: u64,
    section_cycles: u32,
    manner: WaitManner,
}

/// A thread's result.
struct ContenderResult {
    contender: Contender,
    begin_ns: u64,
    end_ns: u64,
}

/// See [`Replayer::contend`](crate::Replayer::contend).
pub(super) fn contend(
    order: &ContendOrder<'_>,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<ContentionResult, MachineError> {
    let (clock, hints, hint) = calibrate(order, is_interrupted)?;
    let arena = Arc::new(Arena {
        deadline: Deadline::new(order.time.saturating_add(START_TIMEOUT)),
        lock: Lock::default(),
        ready: AtomicUsize::new(0),
        threads: order.cpus.len(),
        time_ns: u64::try_from(order.time.as_nanos()).unwrap_or(u64::MAX),
        section_cycles: order.section_cycles,
        manner: WaitManner::from_waiter(&order.waiter),
    });
    let (to, answers) = channel();
    for &cpu in &order.cpus {
        let (arena, hints) = (Arc::clone(&arena), hints.clone());
        let work = {
            let arena = Arc::clone(&arena);
            move || Ok(arena.contend(hints, &clock))
        };
        start_thread(cpu, false, &to, work).inspect_err(|_| arena.deadline.end())?;
    }
    drop(to);
    let results: Vec<ContenderResult> =
        collect_answers(&arena.deadline, &answers, order.cpus.len(), is_interrupted)?;
    let begin_ns = results.iter().map(|result| result.begin_ns).min();
    let end_ns = results.iter().map(|result| result.end_ns).max();
    Ok(ContentionResult {
        threads: results.into_iter().map(|result| result.contender).collect(),
        elapsed_ns: end_ns.unwrap_or(0).saturating_sub(begin_ns.unwrap_or(0)) as f64,
        hint,
    })
}

/// Calibrates hints on the first thread's CPU before the other threads start.
fn calibrate(
    order: &ContendOrder<'_>,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<(Clock, Hints, HintSummary), MachineError> {
    /// Measurements of a hint's length.
    const TIMES: usize = 5;
    let deadline = Deadline::new(START_TIMEOUT);
    let wanted_ns = order.waiter.hint_ns;
    let (to, answers) = channel();
    let cpu = order.cpus.first().copied().unwrap_or(0);
    start_thread(cpu, false, &to, move || {
        let clock = Clock::calibrate();
        let mut hints = calibrate_hints(wanted_ns, &clock)?;
        let before: Vec<f64> = (0..TIMES)
            .map(|_| hints.observe_ns(&clock, || true))
            .collect();
        let hint = summarise_hints(&hints, &before, &before);
        Ok(hint.map(|hint| (clock, hints, hint)))
    })?;
    drop(to);
    let results: Vec<Option<_>> = collect_answers(&deadline, &answers, 1, is_interrupted)?;
    results
        .into_iter()
        .flatten()
        .next()
        .ok_or_else(|| MachineError::System {
            action: "measuring hints".to_owned(),
            reason: "nothing came of it".to_owned(),
        })
}

impl Arena {
    /// Takes the lock again and again, for the time of the contention: the work of one thread.
    fn contend(&self, mut hints: Hints, clock: &Clock) -> ContenderResult {
        self.ready.fetch_add(1, Ordering::AcqRel);
        let are_all_ready = || self.ready.load(Ordering::Acquire) >= self.threads;
        wait_until(&self.deadline, are_all_ready);
        let mut contender = Contender::default();
        let (cpu, begin_ns) = (sys::thread_cpu_time(), system_ns());
        let end_ns = begin_ns.saturating_add(self.time_ns);
        loop {
            let from = clock.ticks();
            let Some(acquired) = self
                .lock
                .acquire(&mut hints, clock, &self.manner, &self.deadline)
            else {
                break;
            };
            let waited_ns = clock.ns(clock.ticks().wrapping_sub(from));
            compute(self.section_cycles);
            self.lock.release();
            contender.operations += 1;
            contender.hints += acquired.hints;
            contender.parks += u64::from(acquired.seen == ReleaseNotice::Parked);
            contender.longest_ns = contender.longest_ns.max(waited_ns);
            if contender.operations.is_multiple_of(CHECK_INTERVAL) && system_ns() >= end_ns {
                break;
            }
        }
        let cpu = sys::thread_cpu_time().saturating_sub(cpu);
        contender.cpu_ns = cpu.as_nanos() as f64;
        ContenderResult {
            contender,
            begin_ns,
            end_ns: system_ns(),
        }
    }
}
