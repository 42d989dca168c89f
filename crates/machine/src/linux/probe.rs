//! Probes of the host: from a [`Probe`] to loops of `kernels` on pinned threads.
//!
//! Probes work at normal priority and without privilege, on machines where other programs run: no
//! thread waits long for another, batches that the scheduler or a hypervisor disturbed are
//! discarded and counted, and all work ends at the limit.

mod bandwidth;
pub(super) mod calls;
mod chain;
mod contention;
mod counted;
pub(super) mod lock;
mod meeting;
mod memory;
mod pool;
mod probe_run;
mod single;
mod transfer;
mod wake;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use bandwidth::Bandwidth;
use chain::{Chase, Load};
use contention::Contention;
use lock::Lock;
use pool::{Job, Pool};
use probe_run::ProbeRun;
use transfer::Transfer;
use wake::{Switching, Waking};

use super::LinuxMachine;
use crate::{Batches, Hint, MachineError, Probe, Prober, Stream};
pub use memory::available_memory_bytes;

use pinwise_kernels::loops::clock::Clock;
use pinwise_topology::CpuSet;

/// How often the main thread checks for an interrupt by the user.
const INTERRUPT_CHECK: Duration = Duration::from_millis(20);
/// Threads that still run this long after the limit are told to stop; after as long again they are
/// abandoned.
const GRACE: Duration = Duration::from_secs(1);

/// State kept between calls.
pub(super) struct ProbeSession {
    clock: Clock,
    pool: Pool,
    _lock: Lock,
}

/// A probe's index in the call, and its result.
type Answer = (usize, Batches);

impl Prober for LinuxMachine {
    fn probe(
        &mut self,
        probes: &[Probe],
        batches: usize,
        limit: Duration,
    ) -> Result<Vec<Batches>, MachineError> {
        if self.take_pending_interrupt() {
            return Err(MachineError::Interrupted);
        }
        let mut session = match self.probing.take() {
            Some(session) => session,
            None => ProbeSession::new()?,
        };
        let measured = session.measure(probes, batches, limit, || self.take_pending_interrupt());
        self.probing = Some(session);
        measured
    }
}

impl ProbeSession {
    /// Waits until no other pinwise probes.
    ///
    /// # Errors
    /// [`MachineError`] if another one keeps probing.
    pub(super) fn new() -> Result<Self, MachineError> {
        Ok(Self {
            _lock: Lock::take()?,
            clock: Clock::calibrate(),
            pool: Pool::default(),
        })
    }

    /// Makes probes at the same time; polls `is_interrupted`.
    ///
    /// # Errors
    /// [`MachineError`] if a thread cannot be started or placed, or the user interrupted.
    pub(super) fn measure(
        &mut self,
        probes: &[Probe],
        batches: usize,
        limit: Duration,
        mut is_interrupted: impl FnMut() -> bool,
    ) -> Result<Vec<Batches>, MachineError> {
        let run = ProbeRun::new(self.clock, batches, limit);
        let (answer, answers) = channel();
        for (index, probe) in probes.iter().enumerate() {
            if let Err(error) = self.start_probe(&run, index, probe, &answer) {
                run.stop();
                return Err(error);
            }
        }
        drop(answer);
        let found = collect_answers(&run, &answers, probes.len(), &mut is_interrupted)?;
        let results = found.into_iter().zip(probes).map(|(batches, probe)| {
            batches.unwrap_or_else(|| {
                let cpus = probe.cpus();
                cpus.iter().for_each(|&cpu| self.pool.abandon(cpu));
                Batches::unavailable(format!(
                    "CPU {} did not run the probe's threads within {:.1} s.",
                    cpus.iter()
                        .map(usize::to_string)
                        .collect::<Vec<_>>()
                        .join(" or "),
                    limit.as_secs_f64()
                ))
            })
        });
        Ok(results.collect())
    }

    /// Gives a probe's jobs to its threads. Exactly one job sends the answer.
    fn start_probe(
        &mut self,
        run: &ProbeRun,
        index: usize,
        probe: &Probe,
        answer: &Sender<Answer>,
    ) -> Result<(), MachineError> {
        let answer = answer.clone();
        let send = move |batches: Batches| {
            // The receiver is gone if the call was abandoned.
            let _ = answer.send((index, batches));
        };
        let jobs = match make_jobs(run, probe, send.clone()) {
            Ok(jobs) => jobs,
            Err(reason) => {
                send(Batches::unavailable(reason));
                return Ok(());
            }
        };
        for PlacedJob { cpu, thread, job } in jobs {
            self.pool.start(cpu, thread, run, job)?;
        }
        Ok(())
    }
}

/// A job and where it runs.
struct PlacedJob {
    cpu: usize,
    /// Index of the thread among those on the CPU.
    thread: usize,
    job: Job,
}

impl PlacedJob {
    /// A job of the first thread of a CPU.
    fn first(cpu: usize, job: Job) -> Self {
        Self {
            cpu,
            thread: 0,
            job,
        }
    }
}

/// Makes a probe's jobs. An error says as a full sentence why the probe cannot be made.
fn make_jobs(
    run: &ProbeRun,
    probe: &Probe,
    send: impl Fn(Batches) + Clone + Send + 'static,
) -> Result<Vec<PlacedJob>, String> {
    let alone = |cpu: usize, probe: fn(&ProbeRun, usize) -> Batches| {
        let (run, send) = (run.clone(), send.clone());
        let job: Job = Box::new(move |thread| send(probe(&run, thread.cpu)));
        Ok(vec![PlacedJob::first(cpu, job)])
    };
    match *probe {
        Probe::Cycle { cpu } => alone(cpu, single::measure_cycle),
        Probe::Pause { cpu } => alone(cpu, single::measure_pause),
        Probe::PauseCycles { cpu } => alone(cpu, single::measure_pause_cycles),
        Probe::PauseCounted { cpu } => alone(cpu, counted::measure_pause_cycles),
        Probe::Hint { cpu, hint } => alone(cpu, choose_hint_probe(hint)),
        Probe::Tick { cpu } => alone(cpu, single::measure_tick),
        Probe::TimerStep { cpu } => alone(cpu, single::measure_timer_step),
        Probe::Transfer { a, b, home } => {
            let shared = Transfer::new(run, a, b, home)?;
            make_two_jobs(shared, [a, b], send, Transfer::lead, Transfer::follow)
        }
        Probe::Contention { a, b, port } => {
            let shared = Contention::new(run, [a, b], port);
            make_two_jobs(shared, [a, b], send, Contention::lead, Contention::follow)
        }
        Probe::Chase { cpu, bytes, node } => {
            let chase = Chase::new(run, bytes, node, None)?;
            let job: Job = Box::new(move |thread| send(chase.measure(thread.cpu)));
            Ok(vec![PlacedJob::first(cpu, job)])
        }
        Probe::LoadedLatency {
            cpu,
            ref loaders,
            bytes,
        } => make_load_jobs(run, cpu, loaders, bytes, send),
        Probe::Bandwidth {
            ref cpus,
            stream,
            bytes,
            node,
        } => {
            let cpus: Vec<usize> = cpus.iter().collect();
            make_stream_jobs(run, cpus, stream, bytes, node, send)
        }
        Probe::ContextSwitch { cpu } => {
            let shared = Switching::new(run, cpu);
            make_two_jobs(shared, [cpu, cpu], send, Switching::lead, Switching::follow)
        }
        Probe::FutexWake { waker, sleeper } => {
            let shared = Waking::new(run, waker, sleeper);
            make_two_jobs(shared, [waker, sleeper], send, Waking::lead, Waking::follow)
        }
    }
}

fn choose_hint_probe(hint: Hint) -> fn(&ProbeRun, usize) -> Batches {
    match hint {
        Hint::Yield => single::measure_yield,
        Hint::TimedPause => single::measure_timed_pause,
        Hint::MonitoredWait => single::measure_monitored_wait,
    }
}

/// Makes the jobs of two threads: the leading one sends the answer.
fn make_two_jobs<S: Send + Sync + 'static>(
    shared: Arc<S>,
    [a, b]: [usize; 2],
    send: impl Fn(Batches) + Send + 'static,
    lead: fn(&S) -> Batches,
    follow: fn(&S),
) -> Result<Vec<PlacedJob>, String> {
    let other = shared.clone();
    Ok(vec![
        PlacedJob {
            cpu: b,
            thread: usize::from(a == b),
            job: Box::new(move |_| follow(&other)),
        },
        PlacedJob::first(a, Box::new(move |_| send(lead(&shared)))),
    ])
}

fn make_load_jobs(
    run: &ProbeRun,
    cpu: usize,
    loaders: &CpuSet,
    bytes: usize,
    send: impl Fn(Batches) + Send + 'static,
) -> Result<Vec<PlacedJob>, String> {
    let load = Load::new(run, loaders.len())?;
    let chase = Chase::new(run, bytes, None, Some(load.clone()))?;
    let mut jobs: Vec<PlacedJob> = Vec::new();
    for (number, loader) in loaders.iter().enumerate() {
        let load = load.clone();
        let job: Job = Box::new(move |thread| load.load(number, thread.cpu));
        jobs.push(PlacedJob::first(loader, job));
    }
    let job: Job = Box::new(move |thread| send(chase.measure(thread.cpu)));
    jobs.push(PlacedJob::first(cpu, job));
    Ok(jobs)
}

fn make_stream_jobs(
    run: &ProbeRun,
    cpus: Vec<usize>,
    stream: Stream,
    bytes: usize,
    node: Option<usize>,
    send: impl Fn(Batches) + Send + 'static,
) -> Result<Vec<PlacedJob>, String> {
    let shared = Bandwidth::new(run, cpus.clone(), stream, bytes, node)?;
    let mut jobs: Vec<PlacedJob> = Vec::new();
    for (number, &cpu) in cpus.iter().enumerate().skip(1) {
        let shared = shared.clone();
        let job: Job = Box::new(move |_| shared.follow(number));
        jobs.push(PlacedJob::first(cpu, job));
    }
    jobs.push(PlacedJob::first(
        cpus[0],
        Box::new(move |_| send(shared.lead())),
    ));
    Ok(jobs)
}

/// Waits for all answers; a probe without an answer in time gives `None`.
fn collect_answers(
    run: &ProbeRun,
    answers: &Receiver<Answer>,
    count: usize,
    is_interrupted: &mut dyn FnMut() -> bool,
) -> Result<Vec<Option<Batches>>, MachineError> {
    let mut found: Vec<Option<Batches>> = vec![None; count];
    let mut was_interrupted = false;
    #[expect(clippy::disallowed_methods, reason = "the Edge waits for its threads")]
    let started = Instant::now();
    let limit = run.time_left();
    while found.iter().any(Option::is_none) {
        match answers.recv_timeout(INTERRUPT_CHECK) {
            Ok((index, batches)) => found[index] = Some(batches),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                was_interrupted |= is_interrupted();
                if was_interrupted || started.elapsed() > limit.saturating_add(GRACE) {
                    run.stop();
                }
                if started.elapsed() > limit.saturating_add(2 * GRACE) {
                    break;
                }
            }
        }
    }
    if was_interrupted || is_interrupted() {
        return Err(MachineError::Interrupted);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
