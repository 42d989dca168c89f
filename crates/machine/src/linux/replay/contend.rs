//! Threads that contend for a lock, possibly more threads than CPUs.
//!
//! All run at normal priority: a spinning real-time thread would starve the holder on its CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::lock::{Lock, Manner};
use super::{
    Deadline, calibrate_hints, collect_answers, convert_runs, start_thread, summarise_hints,
    wait_until,
};
use crate::linux::sys;
use crate::{ContendOrder, Contender, ContentionResult, HintSummary, MachineError};
use pinwise_kernels::loops::clock::{Clock, system_ns};
use pinwise_kernels::loops::wait::{Hints, compute};
use pinwise_spin::lateness::{Ending, ReleaseNotice};

/// Threads that never start together end this long after their time.
const MEETING: Duration = Duration::from_secs(10);
/// Operations between two checks of the time.
const WATCH: u64 = 16;

/// State shared by all threads.
struct Arena {
    deadline: Deadline,
    lock: Lock,
    /// Number of ready threads.
    ready: AtomicUsize,
    threads: usize,
    time_ns: u64,
    section_cycles: u32,
    runs: Vec<(u64, u64)>,
    is_endless: bool,
    ending: Ending,
}

/// A thread's result, with its start and end, ns.
type Share = (Contender, u64, u64);

/// See [`Replayer::contend`](crate::Replayer::contend).
pub(super) fn contend(
    order: &ContendOrder<'_>,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<ContentionResult, MachineError> {
    let (clock, hints, hint) = calibrate(order, is_interrupted)?;
    let (runs, is_endless) = convert_runs(&order.waiter);
    let arena = Arc::new(Arena {
        deadline: Deadline::new(order.time.saturating_add(MEETING)),
        lock: Lock::default(),
        ready: AtomicUsize::new(0),
        threads: order.cpus.len(),
        time_ns: u64::try_from(order.time.as_nanos()).unwrap_or(u64::MAX),
        section_cycles: order.section_cycles,
        runs,
        is_endless,
        ending: order.waiter.ending,
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
    let shares: Vec<Share> =
        collect_answers(&arena.deadline, &answers, order.cpus.len(), is_interrupted)?;
    let begin = shares.iter().map(|share| share.1).min().unwrap_or(0);
    let end = shares.iter().map(|share| share.2).max().unwrap_or(0);
    Ok(ContentionResult {
        threads: shares.into_iter().map(|share| share.0).collect(),
        elapsed_ns: end.saturating_sub(begin) as f64,
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
    let deadline = Deadline::new(MEETING);
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
    fn contend(&self, mut hints: Hints, clock: &Clock) -> Share {
        self.ready.fetch_add(1, Ordering::AcqRel);
        let are_all_there = || self.ready.load(Ordering::Acquire) >= self.threads;
        wait_until(&self.deadline, are_all_there);
        let manner = Manner {
            runs: &self.runs,
            is_endless: self.is_endless,
            ending: self.ending,
        };
        let mut share = Contender::default();
        let (cpu, begin) = (sys::thread_cpu_time(), system_ns());
        let end = begin.saturating_add(self.time_ns);
        loop {
            let from = clock.ticks();
            let Some(taken) = self
                .lock
                .acquire(&mut hints, clock, &manner, &self.deadline)
            else {
                break;
            };
            let waited_ns = clock.ns(clock.ticks().wrapping_sub(from));
            compute(self.section_cycles);
            self.lock.release();
            share.operations += 1;
            share.hints += taken.hints;
            share.parks += u64::from(taken.seen == ReleaseNotice::Parked);
            share.longest_ns = share.longest_ns.max(waited_ns);
            if share.operations.is_multiple_of(WATCH) && system_ns() >= end {
                break;
            }
        }
        let cpu = sys::thread_cpu_time().saturating_sub(cpu);
        share.cpu_ns = cpu.as_nanos() as f64;
        (share, begin, system_ns())
    }
}
