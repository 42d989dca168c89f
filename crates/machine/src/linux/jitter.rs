//! Watches CPUs: on each, a thread that only reads the clock, and the kernel's own counts for that
//! CPU.
//!
//! The threads have normal priority and stay bound to their CPUs. Pinwise sleeps meanwhile, on
//! other CPUs if there are any; its own mask is restored afterwards. It wakes when a buffer fills
//! up, and every [`ROUND`].

use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use super::LinuxMachine;
use super::capture::read_file;
use super::counts::Counts;
use super::probe::lock::Lock;
use super::sys;
use super::trace::interrupt_points::{InterruptPoints, PointChoice};
use super::trace::nanoseconds;
use super::trace::threads::parse_schedstat;
use crate::MachineError;
use crate::jitter::{GapListener, GapWatcher, JitterOrder, WatchedCpu, WatchedCpus};
use pinwise_kernels::loops::clock::Clock;
use pinwise_kernels::loops::gaps::{self, Gap, GapBuffer};
use pinwise_sched::Tid;
use pinwise_sched::jitter::{self, ExplainedGap, Explainer, Knowledge};
use pinwise_topology::CpuSet;

/// Longest sleep of pinwise. Each wake-up may itself cause a gap, so it is long.
const ROUND: Duration = Duration::from_secs(5);
/// Gaps that a buffer holds, for a round: more than 6,000 per second.
const BUFFERED_GAPS: usize = 1 << 15;
/// The kernel may write a report this long after its time stamp.
const REPORT_DELAY: Duration = Duration::from_millis(1);
/// Longest time until a CPU runs a new thread, or lets a thread end.
const THREAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Stack of a watching thread, which needs few frames.
const STACK_BYTES: usize = 256 * 1024;
/// From starting the threads until they all begin: longer than a thread takes to start.
const START_DELAY: Duration = Duration::from_millis(5);

/// Parameters of a watching thread.
struct WatchParameters {
    cpu: usize,
    clock: Clock,
    threshold_ns: u64,
    buffer: GapBuffer,
    stop: Arc<AtomicBool>,
}

/// What a watching thread has measured.
struct WatchResult {
    figures: gaps::GapLoopFigures,
    /// How long the thread was queued; `None` if unknown.
    queued: Option<Duration>,
}

/// A thread that reads the clock.
struct Watcher {
    parameters: Arc<WatchParameters>,
    thread: Tid,
    /// Sends the time of its begin and end, ns.
    begin: Sender<(u64, u64)>,
    result: Receiver<WatchResult>,
    handle: JoinHandle<()>,
    explainer: Explainer,
}

impl GapWatcher for LinuxMachine {
    fn watch_gaps(
        &mut self,
        order: &JitterOrder<'_>,
        listener: &mut dyn GapListener,
    ) -> Result<WatchedCpus, MachineError> {
        if self.take_pending_interrupt() {
            return Err(MachineError::Interrupted);
        }
        self.probing = None;
        let _lock = Lock::take()?;
        let _moved_away = MovedAway::from_cpus(order.cpus, &self.topology.allowed);
        let mut found = WatchedCpus::default();
        let mut source = match InterruptPoints::open(order.cpus, PointChoice::Everything) {
            Ok(source) => Some(source),
            Err(refusal) => {
                found.unreported = Some(refusal);
                None
            }
        };
        let knowledge = match source {
            Some(_) => Knowledge::Reported,
            None => Knowledge::Nothing,
        };
        let mut watchers = start_watchers(order, knowledge)?;
        let before = Counts::read_with_steal();
        if let Some(source) = &mut source {
            source.set_enabled(true);
        }
        let begin = sys::monotonic() + START_DELAY;
        let end = begin.saturating_add(order.time);
        for watcher in &watchers {
            let _ = watcher.begin.send((nanoseconds(begin), nanoseconds(end)));
        }
        let mut batch = Batch::default();
        loop {
            let left = end.saturating_sub(sys::monotonic());
            if left.is_zero() {
                break;
            }
            let mut ready: Vec<RawFd> = vec![self.signals.as_raw_fd()];
            ready.extend(source.iter().flat_map(InterruptPoints::descriptors));
            sys::poll_all(&ready, Some(left.min(ROUND)));
            if self.take_pending_interrupt() {
                found.was_interrupted = true;
                break;
            }
            let reported_until = sys::monotonic().saturating_sub(REPORT_DELAY);
            batch.hand_on(&mut watchers, source.as_mut(), reported_until, listener);
        }
        let results = stop_watchers(&watchers)?;
        if let Some(source) = &mut source {
            source.set_enabled(false);
        }
        batch.hand_on(&mut watchers, source.as_mut(), Duration::MAX, listener);
        let after = Counts::read_with_steal();
        found.from_ns = results
            .iter()
            .map(|result| result.figures.from_ns)
            .min()
            .unwrap_or(0);
        for (watcher, result) in watchers.into_iter().zip(results) {
            let cpu = watcher.parameters.cpu;
            let watched = result.figures;
            // A panic shows in the missing result.
            let _ = watcher.handle.join();
            found.cpus.push(WatchedCpu {
                cpu,
                time: Duration::from_nanos(watched.to_ns.saturating_sub(watched.from_ns)),
                readings: watched.readings,
                entry: watcher.explainer.entry_ns().map(Duration::from_nanos),
                lost_gaps: watched.lost_gaps,
                queued: result.queued,
                steal: after.steal_since(&before, cpu),
                interrupts: after.interrupts_since(&before, cpu),
                softirqs: after.softirqs_since(&before, cpu),
            });
        }
        Ok(found)
    }
}

/// Buffers of a round, reused to avoid allocation.
#[derive(Default)]
struct Batch {
    gaps: Vec<Gap>,
    explained: Vec<ExplainedGap>,
}

impl Batch {
    /// Hands the gaps to the listener of which all reports until `reported_until` have arrived.
    /// Gaps are read before reports, so that no report of a gap is missing.
    fn hand_on(
        &mut self,
        watchers: &mut [Watcher],
        source: Option<&mut InterruptPoints>,
        reported_until: Duration,
        listener: &mut dyn GapListener,
    ) {
        for watcher in watchers.iter_mut() {
            self.gaps.clear();
            watcher.parameters.buffer.take(&mut self.gaps);
            for gap in &self.gaps {
                watcher.explainer.add_gap(jitter::Gap {
                    from_ns: gap.end_ns.saturating_sub(gap.length_ns),
                    to_ns: gap.end_ns,
                });
            }
        }
        if let Some(source) = source {
            source.drain(|index, _, report| {
                if let Some(watcher) = watchers.get_mut(index) {
                    watcher.explainer.add_report(report);
                }
            });
        }
        for watcher in watchers {
            self.explained.clear();
            watcher
                .explainer
                .explain_until(nanoseconds(reported_until), &mut self.explained);
            listener.take(watcher.parameters.cpu, &self.explained);
        }
    }
}

fn start_watchers(
    order: &JitterOrder<'_>,
    knowledge: Knowledge,
) -> Result<Vec<Watcher>, MachineError> {
    let clock = Clock::calibrate();
    let stop = Arc::new(AtomicBool::new(false));
    let threshold_ns = nanoseconds(order.threshold);
    let start = |cpu| {
        let parameters = Arc::new(WatchParameters {
            cpu,
            clock,
            threshold_ns,
            buffer: GapBuffer::new(BUFFERED_GAPS),
            stop: stop.clone(),
        });
        start_watcher(parameters, knowledge)
    };
    order.cpus.iter().map(start).collect()
}

/// Starts the thread of a CPU, which then waits for the begin of its watch.
fn start_watcher(
    parameters: Arc<WatchParameters>,
    knowledge: Knowledge,
) -> Result<Watcher, MachineError> {
    let cpu = parameters.cpu;
    let (begin, to_begin) = channel();
    let (send, result) = channel();
    let (ready, is_ready) = channel();
    let own = parameters.clone();
    let handle = std::thread::Builder::new()
        .name(format!("jitter-{cpu}"))
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let bound = sys::set_affinity(&CpuSet::single(cpu));
            let is_bound = bound.is_ok();
            if ready.send(bound.map(|()| sys::own_thread())).is_ok() && is_bound {
                run_watcher(&own, &to_begin, &send);
            }
        })
        .map_err(|error| MachineError::System {
            action: format!("starting a thread for CPU {cpu}"),
            reason: error.to_string(),
        })?;
    let thread = is_ready
        .recv_timeout(THREAD_TIMEOUT)
        .map_err(|_| MachineError::System {
            action: format!("starting a thread on CPU {cpu}"),
            reason: format!("it did not run within {} s", THREAD_TIMEOUT.as_secs()),
        })?;
    let thread = thread.map_err(|error| MachineError::Refused {
        what: format!("a thread on CPU {cpu}"),
        reason: error.to_string(),
    })?;
    Ok(Watcher {
        explainer: Explainer::new(thread, knowledge, parameters.threshold_ns),
        parameters,
        thread,
        begin,
        result,
        handle,
    })
}

/// The main function of a CPU's thread.
fn run_watcher(
    parameters: &WatchParameters,
    to_begin: &Receiver<(u64, u64)>,
    result: &Sender<WatchResult>,
) {
    let Ok((begin_ns, end_ns)) = to_begin.recv() else {
        return;
    };
    // This first watch, whose gaps are discarded, faults in all pages.
    let scratch = GapBuffer::new(1);
    let WatchParameters { clock, stop, .. } = parameters;
    gaps::watch(clock, u64::MAX >> 1, begin_ns, stop, &scratch);
    let before = read_queued_time();
    let threshold_ns = parameters.threshold_ns;
    let figures = gaps::watch(clock, threshold_ns, end_ns, stop, &parameters.buffer);
    let queued = before
        .zip(read_queued_time())
        .map(|(a, b)| b.saturating_sub(a));
    // The receiver is gone if the caller gave up.
    let _ = result.send(WatchResult { figures, queued });
}

/// Reads how long the calling thread was queued so far.
fn read_queued_time() -> Option<Duration> {
    let text = read_file(Path::new("/proc/thread-self/schedstat"))?;
    let (_, queued_ns) = parse_schedstat(&String::from_utf8_lossy(&text))?;
    Some(Duration::from_nanos(queued_ns))
}

/// Stops the threads that still run, and waits for all results.
fn stop_watchers(watchers: &[Watcher]) -> Result<Vec<WatchResult>, MachineError> {
    for watcher in watchers {
        watcher.parameters.stop.store(true, Ordering::Relaxed);
    }
    let wait = |watcher: &Watcher| match watcher.result.recv_timeout(THREAD_TIMEOUT) {
        Ok(result) => Ok(result),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(MachineError::System {
                action: format!("watching CPU {}", watcher.parameters.cpu),
                reason: format!(
                    "its thread {} did not run for {} s: a real-time program may have the CPU",
                    watcher.thread,
                    THREAD_TIMEOUT.as_secs()
                ),
            })
        }
    };
    watchers.iter().map(wait).collect()
}

/// Keeps the calling thread off some CPUs while this exists; holds its former mask.
struct MovedAway(Option<CpuSet>);

impl MovedAway {
    fn from_cpus(cpus: &CpuSet, allowed: &CpuSet) -> Self {
        let others = allowed.difference(cpus);
        if others.is_empty() {
            return Self(None);
        }
        let before = sys::affinity().ok();
        Self(before.filter(|_| sys::set_affinity(&others).is_ok()))
    }
}

impl Drop for MovedAway {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // This cannot be refused: it was the thread's mask before.
            let _ = sys::set_affinity(before);
        }
    }
}
