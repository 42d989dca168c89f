//! A team of threads that does a workload: split, start, clock, sum.
//!
//! Threads prepare side by side, meet at a barrier, and each records its own start and end; the
//! time is from the first start to the last end. A thread is placed only if the order names CPUs.

use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Isa, Job, Kernel, KernelError, Setup, Worker};

/// The amount of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// This many units, by all threads together.
    Units(u64),
    /// Units until this much time has passed.
    Time(Duration),
}

/// The distribution of units over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// Each thread gets an equal share beforehand.
    Static,
    /// An idle thread takes the next one.
    Dynamic,
}

/// A requested run.
#[derive(Debug, Clone)]
pub struct Order {
    /// The workload.
    pub kernel: &'static Kernel,
    /// Its parameters.
    pub setup: Setup,
    /// Its amount.
    pub amount: Amount,
    /// Its distribution.
    pub split: Split,
    /// Thread number i is bound to the i-th of these CPUs, in turn; empty for
    /// no binding.
    pub cpus: Vec<usize>,
}

/// The work done and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelOutcome {
    /// Units done.
    pub units: u64,
    /// Operations done.
    pub operations: u64,
    /// Bytes moved, if that is what is measured.
    pub bytes: Option<u64>,
    /// From the first thread's start to the last one's end.
    pub elapsed: Duration,
    /// The same for the same units, however they were run.
    pub checksum: u64,
    /// Bytes that each thread's loop used repeatedly.
    pub working_set_bytes: u64,
    /// The loop that the threads chose, if there were several.
    pub chosen: Option<String>,
}

/// The result of one thread.
struct Part {
    start: Instant,
    end: Instant,
    units: u64,
    sum: u64,
}

/// Runs a workload to its end. `available_bytes` is how much memory may be used, if known.
///
/// # Errors
/// [`KernelError`] if it could not be prepared or placed, would need more memory than there is, or
/// its result is wrong.
pub fn run(order: &Order, available_bytes: Option<u64>) -> Result<KernelOutcome, KernelError> {
    check(order, available_bytes)?;
    let job = (order.kernel.prepare)(&order.setup)?;
    let threads = order.setup.threads;
    let team = job.team();
    if threads == 0 || (threads > 1 && !threads.is_multiple_of(team)) {
        return Err(KernelError::Threads(format!(
            "--threads {threads}: {} needs 1 thread, or a multiple of {team}",
            order.kernel.name
        )));
    }
    let shared = SharedRun {
        order,
        job: job.as_ref(),
        next: AtomicU64::new(0),
        barrier: Barrier::new(threads),
        failed: AtomicU64::new(0),
    };
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let shared = &shared;
        let handles: Vec<_> = (0..threads)
            .map(|thread| {
                let name = format!("{}-{thread}", order.kernel.name);
                let builder = std::thread::Builder::new().name(name);
                builder.spawn_scoped(scope, move || shared.run_part(thread))
            })
            .collect();
        join(handles)
    })?;
    sum_up(order, job.as_ref(), &parts)
}

/// Checks everything that can be refused before allocation.
fn check(order: &Order, available_bytes: Option<u64>) -> Result<(), KernelError> {
    let Order { kernel, setup, .. } = order;
    if !setup.isa.is_supported() {
        let here: Vec<&str> = Isa::list_supported().into_iter().map(Isa::name).collect();
        return Err(KernelError::Isa(format!(
            "--isa {}: this CPU has {} only",
            setup.isa,
            here.join(", ")
        )));
    }
    if !kernel.has_versions && !matches!(setup.isa, Isa::V1 | Isa::Native) {
        return Err(KernelError::Isa(format!(
            "--isa {}: {} is compiled for the baseline only",
            setup.isa, kernel.name
        )));
    }
    let needed = (kernel.footprint_bytes)(setup.size, setup.threads);
    if let Some(available) = available_bytes.filter(|&available| needed > available) {
        return Err(KernelError::Memory {
            kernel: kernel.name,
            size: setup.size,
            threads: setup.threads,
            needed_mib: needed >> 20,
            available_mib: available >> 20,
        });
    }
    Ok(())
}

type Handle<'a> = std::io::Result<std::thread::ScopedJoinHandle<'a, Result<Part, KernelError>>>;

fn join(handles: Vec<Handle<'_>>) -> Result<Vec<Part>, KernelError> {
    let mut parts = Vec::with_capacity(handles.len());
    for handle in handles {
        let handle =
            handle.map_err(|error| KernelError::system("starting a thread".to_owned(), &error))?;
        match handle.join() {
            Ok(part) => parts.push(part?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(parts)
}

/// The failure of a worker outside the computation, or else its wrong result.
fn to_error(order: &Order, job: &dyn Job, what: super::Wrong) -> KernelError {
    job.failure().unwrap_or(KernelError::Wrong {
        kernel: order.kernel.name,
        what,
    })
}

fn sum_up(order: &Order, job: &dyn Job, parts: &[Part]) -> Result<KernelOutcome, KernelError> {
    let units = parts.iter().map(|part| part.units).sum();
    let checksum = parts
        .iter()
        .fold(0u64, |sum, part| sum.wrapping_add(part.sum));
    job.check(units, checksum)
        .map_err(|what| to_error(order, job, what))?;
    let start = parts.iter().map(|part| part.start).min();
    let end = parts.iter().map(|part| part.end).max();
    let elapsed = start.zip(end).map_or(Duration::ZERO, |(s, e)| e - s);
    Ok(KernelOutcome {
        units,
        operations: units.saturating_mul(job.operations_per_unit()),
        bytes: job
            .bytes_per_unit()
            .map(|bytes| units.saturating_mul(bytes)),
        elapsed,
        checksum,
        working_set_bytes: job.working_set_bytes(),
        chosen: job.describe_choice(),
    })
}

/// State shared by all threads of a run.
struct SharedRun<'a> {
    order: &'a Order,
    job: &'a dyn Job,
    next: AtomicU64,
    barrier: Barrier,
    failed: AtomicU64,
}

impl SharedRun<'_> {
    fn run_part(&self, thread: usize) -> Result<Part, KernelError> {
        let worker = self.place(thread).and_then(|()| self.job.worker(thread));
        if worker.is_err() {
            self.failed.fetch_add(1, Ordering::SeqCst);
        }
        // Every thread reaches the barrier, even after a failure, so that none waits for ever.
        self.barrier.wait();
        let mut worker = worker?;
        let mut part = Part {
            start: now(),
            end: now(),
            units: 0,
            sum: 0,
        };
        if self.failed.load(Ordering::SeqCst) > 0 {
            return Ok(part);
        }
        part.start = now();
        let sum = self.work(thread, worker.as_mut(), part.start, &mut part.units);
        part.end = now();
        part.sum = sum.map_err(|what| to_error(self.order, self.job, what))?;
        Ok(part)
    }

    /// Of threads that work together only the first takes units; it informs the others.
    fn work(
        &self,
        thread: usize,
        worker: &mut dyn Worker,
        start: Instant,
        done: &mut u64,
    ) -> Result<u64, super::Wrong> {
        let (teams, team) = match self.order.setup.threads {
            1 => (1, 1),
            threads => (threads / self.job.team(), self.job.team()),
        };
        if !thread.is_multiple_of(team) {
            return worker.work(&mut std::iter::empty());
        }
        let mut count = |unit: u64| {
            *done += 1;
            unit
        };
        match (self.order.amount, self.order.split) {
            (Amount::Units(units), Split::Static) => {
                let mut share = share_units(units, thread / team, teams).map(&mut count);
                worker.work(&mut share)
            }
            (Amount::Units(units), Split::Dynamic) => {
                let take = || {
                    let unit = self.next.fetch_add(1, Ordering::Relaxed);
                    (unit < units).then_some(unit)
                };
                worker.work(&mut std::iter::from_fn(take).map(&mut count))
            }
            (Amount::Time(time), _) => {
                let take = || {
                    let is_time = now().duration_since(start) < time;
                    is_time.then(|| self.next.fetch_add(1, Ordering::Relaxed))
                };
                worker.work(&mut std::iter::from_fn(take).map(&mut count))
            }
        }
    }

    fn place(&self, thread: usize) -> Result<(), KernelError> {
        let cpus = &self.order.cpus;
        if cpus.is_empty() {
            return Ok(());
        }
        let cpu = cpus[thread % cpus.len()];
        bind(cpu).map_err(|error| {
            KernelError::system(format!("binding thread {thread} to CPU {cpu}"), &error)
        })
    }
}

/// The units of one of `parts` equal shares.
fn share_units(units: u64, part: usize, parts: usize) -> Range<u64> {
    let (part, parts) = (part as u128, parts as u128);
    let edge = |at: u128| u64::try_from(u128::from(units) * at / parts).unwrap_or(units);
    edge(part)..edge(part + 1)
}

#[expect(clippy::disallowed_methods, reason = "the work is timed")]
fn now() -> Instant {
    Instant::now()
}

#[expect(unsafe_code, reason = "a system call that no safe crate here offers")]
fn bind(cpu: usize) -> std::io::Result<()> {
    const BITS: usize = libc::c_ulong::BITS as usize;
    let mut mask = vec![0 as libc::c_ulong; cpu / BITS + 1];
    mask[cpu / BITS] = 1 << (cpu % BITS);
    // SAFETY: the mask has the length passed and outlives the call.
    let status =
        unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
    if status == 0 {
        return Ok(());
    }
    Err(std::io::Error::last_os_error())
}

#[cfg(test)]
mod tests;
