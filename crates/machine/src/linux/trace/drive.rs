//! Makes a trace: opens the richest permitted source, starts the command (or follows a process),
//! and passes events to the listener in rounds.
//!
//! One sleep serves both the command's supervision and the source, so no pinwise thread runs beside
//! a traced command.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::time::Duration;

use super::super::host::read_numa_balancing;
use super::super::supervise::{Attendant, WakeReason};
use super::super::{LinuxMachine, sys};

use super::cost::measure;
use super::interrupts::Interrupts;
use super::memory_limits::MemoryLimits;
use super::pages::Pages;
use super::quotas::Quotas;
use super::thread_polls::ThreadPolls;
use super::{Source, Target, find_available_tiers, nanoseconds, open, threads};
use crate::{
    Listener, MachineError, Request, Run, Subject, Throttling, TierCost, TraceOrder, TraceResult,
    Tracer,
};
use pinwise_sched::{Availability, Event, EventKind, InterruptSummary, Refusal, Tid, Tier};
use pinwise_topology::CpuSet;

/// Shorter rounds would only cost CPU time.
const MIN_ROUND: Duration = Duration::from_millis(1);
/// On a busy machine, measuring tier costs stops after this many times the requested time.
const MAX_FACTOR: u32 = 4;
/// Measuring tier costs may always take this long.
const MIN_LIMIT: Duration = Duration::from_secs(1);
/// Interval at which a running process is checked for its end.
const MAX_SLEEP: Duration = Duration::from_millis(100);

impl Tracer for LinuxMachine {
    fn process_name(&self, thread: Tid) -> Option<Box<str>> {
        threads::read_name(threads::read_process_of(thread)?)
    }

    fn tiers(&mut self) -> Vec<Availability> {
        find_available_tiers()
    }

    fn tracing_cost(
        &mut self,
        tiers: &[Tier],
        time: Duration,
    ) -> Result<Vec<TierCost>, MachineError> {
        let count = u32::try_from(tiers.len()).unwrap_or(u32::MAX);
        let longest = (time * count * MAX_FACTOR).max(MIN_LIMIT);
        let deadline = sys::monotonic().saturating_add(longest);
        measure(tiers, time, deadline, &|| self.take_pending_interrupt())
    }

    fn trace(
        &mut self,
        order: &TraceOrder<'_>,
        listener: &mut dyn Listener,
    ) -> Result<TraceResult, MachineError> {
        if self.take_pending_interrupt() {
            return Err(MachineError::Interrupted);
        }
        self.probing = None;
        let target = match order.subject {
            Subject::Command(_) => Target::Child,
            Subject::Process(pid) => Target::Process(pid),
            Subject::Everything => Target::Everything,
        };
        check_target(target)?;
        let cpu_before = sys::own_cpu_time();
        let chosen = open_tier(order.tier, target)?;
        let tier = chosen.tier;
        if tier.scope().has_all_cpus {
            visit_all_cpus();
        }
        let mut session = Session::new(chosen, order, target, listener);
        session.interrupts = order.interrupts.then(Interrupts::open).transpose()?;
        let run = match order.subject {
            Subject::Command(request) => Some(self.trace_command(request, order, &mut session)?),
            Subject::Process(_) | Subject::Everything => {
                check_target(target)?;
                self.trace_running(order.limit, target, &mut session);
                None
            }
        };
        let to_ns = session.finish(run.as_ref().map(|run| run.wall));
        Ok(TraceResult {
            tier,
            scope: tier.scope(),
            from_ns: session.from_ns,
            to_ns,
            run,
            own_cpu: sys::own_cpu_time().saturating_sub(cpu_before),
            throttled: session.throttled,
            quota: session.quotas.find_strictest(),
            memory_limit: session.memory.find_hit(),
            pages: session.pages.take_samples(),
            interrupts: session.interrupt_summary,
            numa_balancing: read_numa_balancing(Path::new("/")),
            notes: session.notes,
        })
    }
}

impl LinuxMachine {
    fn trace_command(
        &mut self,
        request: &Request<'_>,
        order: &TraceOrder<'_>,
        session: &mut Session<'_>,
    ) -> Result<Run, MachineError> {
        session.begin(sys::monotonic());
        // Counters would cost the command more than most traces do. Nor does the length of a traced
        // run say whether later runs should be counted, so `has_run` is restored.
        let closed = self.counters.close_all();
        let has_run = std::mem::replace(&mut self.has_run, true);
        let run = self.run_beside(request, order.limit, session);
        self.has_run = has_run;
        self.counters.open_kinds(&closed);
        run
    }

    /// Sleeps and listens until the limit, the end of the process, or a request by the listener or
    /// the user.
    fn trace_running(
        &mut self,
        limit: Option<Duration>,
        target: Target,
        session: &mut Session<'_>,
    ) {
        let started = sys::monotonic();
        session.begin(started);
        if let Target::Process(pid) = target {
            session.follow(pid);
            session.pages.follow(pid, started);
        }
        let end = limit.map(|limit| started.saturating_add(limit));
        loop {
            let now = sys::monotonic();
            let is_over = end.is_some_and(|end| now >= end);
            if is_over || check_target(target).is_err() {
                return;
            }
            let wake = session.next_wake().min(now + MAX_SLEEP);
            let wake = end.map_or(wake, |end| wake.min(end));
            let mut descriptors = vec![self.signals.as_raw_fd()];
            descriptors.extend(session.descriptors());
            let ready = sys::poll_all(&descriptors, Some(wake.saturating_sub(now)));
            let reason = WakeReason {
                has_filled: ready[1..].contains(&true),
                has_ended: false,
            };
            let is_interrupted = ready[0] && self.take_pending_interrupt();
            if !session.attend(sys::monotonic(), reason) || is_interrupted {
                return;
            }
        }
    }
}

/// Runs on every allowed CPU for a moment, which forces a switch there before the trace begins: an
/// idle CPU may not switch for seconds, and its state is unknown until its first switch.
fn visit_all_cpus() {
    let Ok(before) = sys::affinity() else { return };
    for cpu in before.iter() {
        // This fails for a CPU that just went offline, which runs nothing.
        let _ = sys::set_affinity(&CpuSet::single(cpu));
    }
    let _ = sys::set_affinity(&before);
}

/// A source and how it was chosen.
struct ChosenSource {
    tier: Tier,
    source: Box<dyn Source>,
    notes: Vec<String>,
}

/// Opens the requested tier, or the richest one available.
fn open_tier(tier: Option<Tier>, target: Target) -> Result<ChosenSource, MachineError> {
    let mut notes = Vec::new();
    let wanted: Vec<Tier> = match tier {
        Some(tier) => vec![tier],
        None => Tier::ALL.into_iter().rev().collect(),
    };
    let mut refused = None;
    for tier in wanted {
        match open(tier, target) {
            Ok(source) => {
                log::info!("tracing by tier '{tier}'");
                return Ok(ChosenSource {
                    tier,
                    source,
                    notes,
                });
            }
            Err(refusal) => {
                let note = describe_refusal(tier, &refusal);
                log::info!("{note}");
                notes.push(note);
                refused = Some(untraceable_error(tier, refusal));
            }
        }
    }
    Err(refused.unwrap_or(MachineError::Interrupted))
}

fn describe_refusal(tier: Tier, refusal: &Refusal) -> String {
    let permit = refusal.remedy.as_ref();
    let permit = permit.map(|command| format!(" (permit it with: {command})"));
    format!(
        "Tier '{tier}' is not available here: {}{}.",
        refusal.reason,
        permit.unwrap_or_default()
    )
}

fn untraceable_error(tier: Tier, refusal: Refusal) -> MachineError {
    MachineError::Untraceable {
        tier: tier.name(),
        reason: refusal.reason,
        remedy: refusal.remedy,
    }
}

/// Checks that the process to trace or sample exists.
pub(in crate::linux) fn check_target(target: Target) -> Result<(), MachineError> {
    let Target::Process(pid) = target else {
        return Ok(());
    };
    threads::check_process(pid).map_err(|reason| MachineError::Process { pid, reason })
}

/// A trace in progress.
struct Session<'a> {
    source: Box<dyn Source>,
    /// `None` if the source itself polls threads.
    polls: Option<ThreadPolls>,
    pages: Pages,
    quotas: Quotas,
    memory: MemoryLimits,
    /// The throttling; set at the end.
    throttled: Option<Throttling>,
    interrupts: Option<Interrupts>,
    /// The time of interrupts; set at the end.
    interrupt_summary: Option<InterruptSummary>,
    listener: &'a mut dyn Listener,
    has_all_cpus: bool,
    leaves_daemons: bool,
    round: Duration,
    next_round: Duration,
    from_ns: u64,
    /// The time of the last emitted event.
    last_ns: u64,
    /// The command's process.
    root: Option<Tid>,
    events: Vec<Event>,
    notes: Vec<String>,
}

impl<'a> Session<'a> {
    fn new(
        chosen: ChosenSource,
        order: &TraceOrder<'_>,
        target: Target,
        listener: &'a mut dyn Listener,
    ) -> Self {
        let scope = chosen.tier.scope();
        let is_everything = target == Target::Everything;
        let has_polls = chosen.tier != Tier::Proc;
        Self {
            source: chosen.source,
            polls: has_polls.then(|| ThreadPolls::new(is_everything)),
            pages: Pages::none(),
            quotas: Quotas::new(is_everything),
            memory: match target {
                Target::Child => MemoryLimits::watch("self"),
                Target::Process(pid) => MemoryLimits::watch(&pid.to_string()),
                Target::Everything => MemoryLimits::default(),
            },
            throttled: None,
            interrupts: None,
            interrupt_summary: None,
            listener,
            has_all_cpus: scope.has_all_cpus,
            leaves_daemons: order.leaves_daemons,
            round: order.round.max(MIN_ROUND),
            next_round: Duration::ZERO,
            from_ns: 0,
            last_ns: 0,
            root: None,
            events: Vec::new(),
            notes: chosen.notes,
        }
    }

    /// Emits the threads that exist.
    fn begin(&mut self, now: Duration) {
        self.set_start(now);
        let has_all_cpus = self.has_all_cpus;
        self.emit(|polls, emit| polls.introduce_all(has_all_cpus, emit));
    }

    fn set_start(&mut self, now: Duration) {
        self.from_ns = nanoseconds(now);
        self.last_ns = self.from_ns;
        self.next_round = now + self.round;
        if let Some(interrupts) = &mut self.interrupts {
            interrupts.begin(self.from_ns);
        }
    }

    fn follow(&mut self, pid: Tid) {
        self.emit(|polls, emit| polls.follow_process(pid, emit));
        self.emit(|polls, emit| polls.poll_all(false, emit));
    }

    /// Emits what polling finds, with the time of the stream's last event: events with later times
    /// must not come before those of the stream that are still missing.
    fn emit(&mut self, poll: impl FnOnce(&mut ThreadPolls, &mut dyn FnMut(EventKind))) {
        let Some(polls) = &mut self.polls else {
            return;
        };
        let time_ns = self.last_ns;
        let mut events = Vec::new();
        poll(polls, &mut |what| {
            events.push(Event {
                time_ns,
                cpu: 0,
                what,
            });
        });
        self.pass_on(&events);
    }

    fn pass_on(&mut self, events: &[Event]) {
        if let Some(interrupts) = &mut self.interrupts {
            interrupts.learn(events);
        }
        self.quotas.learn(events);
        if !events.is_empty() {
            self.listener.events(events);
        }
    }

    /// Emits the source's events.
    fn deliver(&mut self, is_last: bool) {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        if is_last {
            self.source.finish(&mut events);
        } else {
            self.source.drain(&mut events);
        }
        if let Some(root) = self.root {
            // The command's process was emitted when it was started.
            events.retain(|e| !matches!(e.what, EventKind::Fork { child, .. } if child == root));
        }
        if events.first().is_some_and(|e| e.time_ns < self.from_ns) {
            cut_beginning(&mut events, self.from_ns);
        }
        if let Some(last) = events.last() {
            self.last_ns = self.last_ns.max(last.time_ns);
        }
        if let Some(polls) = &mut self.polls {
            polls.learn(&mut events);
        }
        self.pass_on(&events);
        self.events = events;
        if let Some(interrupts) = &mut self.interrupts
            && !is_last
        {
            interrupts.drain();
        }
    }

    /// Ends the trace; returns its last moment.
    fn finish(&mut self, wall: Option<Duration>) -> u64 {
        let now_ns = nanoseconds(sys::monotonic());
        self.deliver(true);
        self.emit(|polls, emit| polls.poll_all(true, emit));
        self.throttled = self.quotas.finish();
        self.notes.extend(self.source.notes());
        // The trace of a command ends with its last process, not when that was noticed.
        let end_ns = wall.map_or(now_ns, |wall| self.from_ns + nanoseconds(wall));
        self.listener.round(now_ns);
        let end_ns = end_ns.max(self.last_ns);
        self.interrupt_summary = self.interrupts.take().map(|all| all.finish(end_ns));
        end_ns
    }
}

impl Attendant for Session<'_> {
    fn started(&mut self, pid: Tid, started: Duration) {
        self.set_start(started);
        self.root = Some(pid);
        self.source.started(pid);
        self.follow(pid);
        self.pages.follow(pid, started);
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let mut descriptors = self.source.descriptors();
        let interrupts = self.interrupts.iter();
        descriptors.extend(interrupts.flat_map(Interrupts::descriptors));
        descriptors
    }

    fn next_wake(&self) -> Duration {
        let drain = self.source.next_wake().unwrap_or(Duration::MAX);
        let poll = self.polls.as_ref().map(ThreadPolls::next_poll);
        self.next_round
            .min(drain)
            .min(poll.unwrap_or(Duration::MAX))
            .min(self.pages.next_sample())
    }

    fn leaves_daemons(&self) -> bool {
        self.leaves_daemons
    }

    fn keeps_interrupted(&self) -> bool {
        true
    }

    fn attend(&mut self, now: Duration, reason: WakeReason) -> bool {
        if reason.has_ended {
            self.source.note_ended_process();
        }
        // Polled before the stream is read: it may hold the end of a thread, which is not polled any
        // more after that.
        self.emit(|polls, emit| polls.poll_if_due(now, reason.has_ended, emit));
        self.pages.sample_if_due(now);
        self.quotas.poll_if_due(now, reason.has_ended);
        let is_round = now >= self.next_round;
        let is_due = self.source.next_wake().is_some_and(|wake| now >= wake);
        if is_round || is_due || reason.has_filled || reason.has_ended {
            self.deliver(false);
            self.quotas.check_new_processes();
        }
        if !is_round {
            return true;
        }
        self.next_round = now + self.round;
        self.listener.round(nanoseconds(now))
    }
}

/// Reduces events from before the trace to its initial state: which thread was on each CPU, and
/// which threads existed.
fn cut_beginning(events: &mut Vec<Event>, from_ns: u64) {
    let early = events.partition_point(|event| event.time_ns < from_ns);
    let mut on_cpu: BTreeMap<u32, (usize, Event)> = BTreeMap::new();
    let mut kept = Vec::new();
    for (index, mut event) in events.drain(..early).enumerate() {
        event.time_ns = from_ns;
        match event.what {
            EventKind::Switch { .. } | EventKind::In { .. } => {
                on_cpu.insert(event.cpu, (index, event));
            }
            EventKind::Out { .. } => {
                on_cpu.remove(&event.cpu);
            }
            EventKind::Wake { .. } | EventKind::Lost { .. } => {}
            _ => kept.push((index, event)),
        }
    }
    // The order matters: a thread leaves one CPU before it arrives on another.
    kept.extend(on_cpu.into_values());
    kept.sort_by_key(|(index, _)| *index);
    events.splice(0..0, kept.into_iter().map(|(_, event)| event));
}

#[cfg(test)]
mod tests;
