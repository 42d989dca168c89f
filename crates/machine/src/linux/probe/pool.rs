//! Keeps threads that are pinned to their CPUs between probes: starting a thread takes longer than
//! some probes.
//!
//! A thread that does not finish its job, because a real-time program has its CPU, is abandoned.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::super::sys;
use super::calls;
use super::probe_run::ProbeRun;
use crate::MachineError;
use pinwise_kernels::loops::{clock::Clock, laps::Laps, spin};
use pinwise_topology::CpuSet;

/// The shortest time slice that Linux grants.
const SHORT_SLICE: Duration = Duration::from_micros(100);
/// Stack of a thread, which needs few frames.
const STACK_BYTES: usize = 256 * 1024;
/// Longest wait until a CPU runs a new thread.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// The work of a thread.
pub(super) type Job = Box<dyn FnOnce(&mut PoolThread) + Send>;

struct Worker {
    jobs: Sender<(ProbeRun, Job)>,
    thread: JoinHandle<()>,
}

/// The threads, by CPU and number on that CPU.
#[derive(Default)]
pub(super) struct Pool {
    workers: BTreeMap<(usize, usize), Worker>,
}

impl Pool {
    /// Gives a job to a thread on this CPU; `number` tells several threads of one CPU apart.
    ///
    /// # Errors
    /// [`MachineError`] if no thread can be started there.
    pub(super) fn start(
        &mut self,
        cpu: usize,
        number: usize,
        run: &ProbeRun,
        job: Job,
    ) -> Result<(), MachineError> {
        let worker = match self.workers.entry((cpu, number)) {
            Entry::Occupied(existing) => existing.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(start_worker(cpu)?),
        };
        if worker.jobs.send((run.clone(), job)).is_ok() {
            return Ok(());
        }
        Err(MachineError::System {
            action: format!("measuring on CPU {cpu}"),
            reason: "its thread has ended".to_owned(),
        })
    }

    /// Number of threads.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Abandons the threads of a CPU.
    pub(super) fn abandon(&mut self, cpu: usize) {
        self.workers.retain(|&(worker_cpu, _), _| worker_cpu != cpu);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for (_, worker) in std::mem::take(&mut self.workers) {
            drop(worker.jobs);
            // A panic in a job shows in the missing answer.
            let _ = worker.thread.join();
        }
    }
}

/// Starts a thread on a CPU.
fn start_worker(cpu: usize) -> Result<Worker, MachineError> {
    let (jobs, received) = channel();
    let (ready, is_ready) = channel();
    let thread = std::thread::Builder::new()
        .name(format!("probe-{cpu}"))
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let pinned = sys::set_affinity(&CpuSet::single(cpu));
            calls::ask_for_exact_timers();
            calls::ask_for_short_slices(SHORT_SLICE);
            let is_pinned = pinned.is_ok();
            if ready.send(pinned).is_ok() && is_pinned {
                run_jobs(&received, cpu);
            }
        })
        .map_err(|error| MachineError::System {
            action: format!("starting a thread for CPU {cpu}"),
            reason: error.to_string(),
        })?;
    let pinned = is_ready
        .recv_timeout(START_TIMEOUT)
        .map_err(|_| MachineError::System {
            action: format!("starting a thread on CPU {cpu}"),
            reason: format!("it did not run within {} s", START_TIMEOUT.as_secs()),
        })?;
    pinned.map_err(|error| MachineError::Refused {
        what: format!("a thread on CPU {cpu}"),
        reason: error.to_string(),
    })?;
    Ok(Worker { jobs, thread })
}

fn run_jobs(jobs: &Receiver<(ProbeRun, Job)>, cpu: usize) {
    let mut thread = PoolThread {
        cpu,
        best_cycle_ns: f64::INFINITY,
    };
    while let Ok((run, job)) = jobs.recv() {
        thread.warm_up(&run.clock);
        job(&mut thread);
    }
}

/// A thread of the pool, as its jobs see it.
#[derive(Debug)]
pub(super) struct PoolThread {
    /// The CPU to which it is pinned.
    pub(super) cpu: usize,
    /// The shortest core cycle seen here, ns.
    best_cycle_ns: f64,
}

impl PoolThread {
    /// Computes until the core's clock is nearly as fast as it was ever seen: an idle core takes up
    /// to some milliseconds to speed up. On a warm core this takes 10 µs.
    fn warm_up(&mut self, clock: &Clock) {
        /// Longest warm-up.
        const MAX_NS: f64 = 5e6;
        /// A cycle at most this many times as long as the shortest one is fast enough.
        const NEAR: f64 = 1.1;
        let is_first = self.best_cycle_ns.is_infinite();
        let start = clock.ticks();
        loop {
            let laps = Laps::<5>::time(clock, spin::run_chain);
            let cycle_ns = laps.median_ns(clock) / f64::from(spin::CHAIN);
            let is_over = clock.ns(clock.ticks().wrapping_sub(start)) > MAX_NS;
            if is_over && !is_first {
                // The core is slower now: the speed seen earlier is not expected any more.
                self.best_cycle_ns = cycle_ns;
                return;
            }
            let is_near = cycle_ns < NEAR * self.best_cycle_ns;
            self.best_cycle_ns = self.best_cycle_ns.min(cycle_ns);
            if is_over || (!is_first && is_near) {
                return;
            }
        }
    }
}
