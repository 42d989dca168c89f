//! Threads pinned to their CPUs, kept between probes: starting one takes longer than many a probe.
//!
//! A thread that does not come back (its CPU belongs to a real-time program) is abandoned, not
//! waited for.

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

/// The shortest slice that Linux gives.
const SLICE: Duration = Duration::from_micros(100);
/// Loops and a few frames.
const STACK_BYTES: usize = 256 * 1024;
/// Longest wait for a CPU to run a new thread.
const PATIENCE: Duration = Duration::from_secs(5);

/// The work of a thread.
pub(super) type Job = Box<dyn FnOnce(&mut PoolThread) + Send>;

struct Worker {
    jobs: Sender<(ProbeRun, Job)>,
    thread: JoinHandle<()>,
}

/// The threads, by CPU and by number on it.
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
            Entry::Occupied(hired) => hired.into_mut(),
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
        self.workers.retain(|&(of, _), _| of != cpu);
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
    let (jobs, todo) = channel();
    let (ready, is_ready) = channel();
    let thread = std::thread::Builder::new()
        .name(format!("probe-{cpu}"))
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let pinned = sys::set_affinity(&CpuSet::single(cpu));
            calls::ask_for_exact_timers();
            calls::ask_for_short_slices(SLICE);
            let is_pinned = pinned.is_ok();
            if ready.send(pinned).is_ok() && is_pinned {
                work(&todo, cpu);
            }
        })
        .map_err(|error| MachineError::System {
            action: format!("starting a thread for CPU {cpu}"),
            reason: error.to_string(),
        })?;
    let pinned = is_ready
        .recv_timeout(PATIENCE)
        .map_err(|_| MachineError::System {
            action: format!("starting a thread on CPU {cpu}"),
            reason: format!("it did not run within {} s", PATIENCE.as_secs()),
        })?;
    pinned.map_err(|error| MachineError::Refused {
        what: format!("a thread on CPU {cpu}"),
        reason: error.to_string(),
    })?;
    Ok(Worker { jobs, thread })
}

fn work(todo: &Receiver<(ProbeRun, Job)>, cpu: usize) {
    let mut thread = PoolThread {
        cpu,
        best_cycle_ns: f64::INFINITY,
    };
    while let Ok((run, job)) = todo.recv() {
        thread.warm_up(&run.clock);
        job(&mut thread);
    }
}

/// A thread's place.
#[derive(Debug)]
pub(super) struct PoolThread {
    /// Where it is pinned.
    pub(super) cpu: usize,
    /// The shortest core cycle seen here, ns.
    best_cycle_ns: f64,
}

impl PoolThread {
    /// Computes until the core's clock is about as fast as ever seen here: an idle core takes up to
    /// some milliseconds to speed up. On a warm core this takes 10 µs.
    fn warm_up(&mut self, clock: &Clock) {
        const LONGEST_NS: f64 = 5e6;
        const NEAR: f64 = 1.1;
        let is_first = self.best_cycle_ns.is_infinite();
        let start = clock.ticks();
        loop {
            let laps = Laps::<5>::time(clock, spin::run_chain);
            let cycle_ns = laps.median_ns(clock) / f64::from(spin::CHAIN);
            let is_over = clock.ns(clock.ticks().wrapping_sub(start)) > LONGEST_NS;
            if is_over && !is_first {
                // A reached speed need not be reached again.
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
