//! Watching CPUs: on each, a thread that only reads the clock, and the kernel's own counts for that
//! CPU.
//!
//! The threads are ordinary ones, bound to their CPUs for life. Pinwise sleeps meanwhile, on other
//! CPUs if there are any; its own mask is restored afterwards. It wakes when a buffer fills up, and
//! every [`ROUND`].

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

/// Each wake-up of pinwise may itself cause a gap.
const ROUND: Duration = Duration::from_secs(5);
/// Room for gaps per round: more than 6,000 a second.
const GAPS: usize = 1 << 15;
/// Reports may be written a little after their time.
const SETTLING: Duration = Duration::from_millis(1);
/// Time a CPU gets to run a new thread, and to let one end.
const PATIENCE: Duration = Duration::from_secs(5);
/// The loop and a few frames.
const STACK_BYTES: usize = 256 * 1024;
/// Longer than a thread takes to start, so that all begin together.
const START: Duration = Duration::from_millis(5);

/// Parameters of a thread's loop.
struct Post {
    cpu: usize,
    clock: Clock,
    threshold_ns: u64,
    buffer: GapBuffer,
    stop: Arc<AtomicBool>,
}

/// A thread that reads the clock.
struct Watcher {
    post: Arc<Post>,
    thread: Tid,
    /// Its start and end, ns.
    begin: Sender<(u64, u64)>,
    result: Receiver<(gaps::GapLoopFigures, Option<Duration>)>,
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
        let _away = Away::from(order.cpus, &self.topology.allowed);
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
        let mut watchers = start_all(order, knowledge)?;
        let before = Counts::read_with_steal();
        if let Some(source) = &mut source {
            source.switch(true);
        }
        let begin = sys::monotonic() + START;
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
            let settled = sys::monotonic().saturating_sub(SETTLING);
            batch.take(&mut watchers, source.as_mut(), settled, listener);
        }
        let results = end_all(&watchers)?;
        if let Some(source) = &mut source {
            source.switch(false);
        }
        batch.take(&mut watchers, source.as_mut(), Duration::MAX, listener);
        let after = Counts::read_with_steal();
        found.from_ns = results
            .iter()
            .map(|(watched, _)| watched.from_ns)
            .min()
            .unwrap_or(0);
        for (watcher, (watched, queued)) in watchers.into_iter().zip(results) {
            let cpu = watcher.post.cpu;
            // A panic shows in the missing result.
            let _ = watcher.handle.join();
            found.cpus.push(WatchedCpu {
                cpu,
                time: Duration::from_nanos(watched.to_ns.saturating_sub(watched.from_ns)),
                readings: watched.readings,
                entry: watcher.explainer.entry_ns().map(Duration::from_nanos),
                lost_gaps: watched.lost_gaps,
                queued,
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
    /// Hands on the gaps that can be explained by now. Gaps are read before reports, so that the
    /// reports of each gap have arrived.
    fn take(
        &mut self,
        watchers: &mut [Watcher],
        source: Option<&mut InterruptPoints>,
        settled: Duration,
        listener: &mut dyn GapListener,
    ) {
        for watcher in watchers.iter_mut() {
            self.gaps.clear();
            watcher.post.buffer.take(&mut self.gaps);
            for gap in &self.gaps {
                watcher.explainer.take_gap(jitter::Gap {
                    from_ns: gap.end_ns.saturating_sub(gap.length_ns),
                    to_ns: gap.end_ns,
                });
            }
        }
        if let Some(source) = source {
            source.drain(|index, _, step| {
                if let Some(watcher) = watchers.get_mut(index) {
                    watcher.explainer.step(step);
                }
            });
        }
        for watcher in watchers {
            self.explained.clear();
            watcher
                .explainer
                .settle(nanoseconds(settled), &mut self.explained);
            listener.take(watcher.post.cpu, &self.explained);
        }
    }
}

fn start_all(order: &JitterOrder<'_>, knowledge: Knowledge) -> Result<Vec<Watcher>, MachineError> {
    let clock = Clock::calibrate();
    let stop = Arc::new(AtomicBool::new(false));
    let threshold_ns = nanoseconds(order.threshold);
    let start = |cpu| {
        let post = Arc::new(Post {
            cpu,
            clock,
            threshold_ns,
            buffer: GapBuffer::new(GAPS),
            stop: stop.clone(),
        });
        start(post, knowledge)
    };
    order.cpus.iter().map(start).collect()
}

/// Starts the thread of a CPU; it waits for the start time.
fn start(post: Arc<Post>, knowledge: Knowledge) -> Result<Watcher, MachineError> {
    let cpu = post.cpu;
    let (begin, to_begin) = channel();
    let (send, result) = channel();
    let (ready, is_ready) = channel();
    let own = post.clone();
    let handle = std::thread::Builder::new()
        .name(format!("jitter-{cpu}"))
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let bound = sys::set_affinity(&CpuSet::single(cpu));
            let is_bound = bound.is_ok();
            if ready.send(bound.map(|()| sys::own_thread())).is_ok() && is_bound {
                watch(&own, &to_begin, &send);
            }
        })
        .map_err(|error| MachineError::System {
            action: format!("starting a thread for CPU {cpu}"),
            reason: error.to_string(),
        })?;
    let thread = is_ready
        .recv_timeout(PATIENCE)
        .map_err(|_| MachineError::System {
            action: format!("starting a thread on CPU {cpu}"),
            reason: format!("it did not run within {} s", PATIENCE.as_secs()),
        })?;
    let thread = thread.map_err(|error| MachineError::Refused {
        what: format!("a thread on CPU {cpu}"),
        reason: error.to_string(),
    })?;
    Ok(Watcher {
        explainer: Explainer::new(thread, knowledge, post.threshold_ns),
        post,
        thread,
        begin,
        result,
        handle,
    })
}

/// The loop of a CPU's thread.
fn watch(
    post: &Post,
    to_begin: &Receiver<(u64, u64)>,
    result: &Sender<(gaps::GapLoopFigures, Option<Duration>)>,
) {
    let Ok((begin_ns, end_ns)) = to_begin.recv() else {
        return;
    };
    // The first readings fault in all pages.
    let scratch = GapBuffer::new(1);
    let clock = &post.clock;
    gaps::watch(clock, u64::MAX >> 1, begin_ns, &post.stop, &scratch);
    let before = time_queued();
    let watched = gaps::watch(clock, post.threshold_ns, end_ns, &post.stop, &post.buffer);
    let queued = before.zip(time_queued()).map(|(a, b)| b.saturating_sub(a));
    // The receiver is gone if the caller gave up.
    let _ = result.send((watched, queued));
}

/// How long the calling thread was queued so far.
fn time_queued() -> Option<Duration> {
    let text = read_file(Path::new("/proc/thread-self/schedstat"))?;
    let (_, queued_ns) = parse_schedstat(&String::from_utf8_lossy(&text))?;
    Some(Duration::from_nanos(queued_ns))
}

/// Waits until all threads have ended, and stops those that still run.
fn end_all(
    watchers: &[Watcher],
) -> Result<Vec<(gaps::GapLoopFigures, Option<Duration>)>, MachineError> {
    let stop_all = || {
        for watcher in watchers {
            watcher.post.stop.store(true, Ordering::Relaxed);
        }
    };
    stop_all();
    let end = |watcher: &Watcher| match watcher.result.recv_timeout(PATIENCE) {
        Ok(result) => Ok(result),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(MachineError::System {
                action: format!("watching CPU {}", watcher.post.cpu),
                reason: format!(
                    "its thread {} did not run for {} s: a real-time program may have the CPU",
                    watcher.thread,
                    PATIENCE.as_secs()
                ),
            })
        }
    };
    watchers.iter().map(end).collect()
}

/// Keeps the calling thread off CPUs while it exists.
struct Away(Option<CpuSet>);

impl Away {
    fn from(cpus: &CpuSet, allowed: &CpuSet) -> Self {
        let others = allowed.difference(cpus);
        if others.is_empty() {
            return Self(None);
        }
        let before = sys::affinity().ok();
        Self(before.filter(|_| sys::set_affinity(&others).is_ok()))
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // It was this thread's mask a moment ago.
            let _ = sys::set_affinity(before);
        }
    }
}
