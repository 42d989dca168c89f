//! A trace from the order to its end: the richest permitted source is opened, the command is
//! started (or a process waited for), events go to the listener in rounds.
//!
//! One sleep serves both the command's supervision and the source, so no pinwise thread runs beside
//! a traced command.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::time::Duration;

use super::super::host::numa_balancing;
use super::super::supervise::{Attendant, Stir};
use super::super::{LinuxMachine, sys};
use super::beside::Beside;
use super::cost::measure;
use super::interrupts::Interrupts;
use super::pages::Pages;
use super::quotas::Quotas;
use super::{Source, Target, availability, nanoseconds, open, threads};
use crate::{
    Listener, MachineError, Request, Run, Subject, Throttling, TierCost, TraceOrder, TraceResult,
    Tracer,
};
use pinwise_sched::{Availability, Event, EventKind, InterruptSummary, Refusal, Tid, Tier};
use pinwise_topology::CpuSet;

/// Shorter rounds would only cost.
const SHORTEST_ROUND: Duration = Duration::from_millis(1);
/// On a busy machine, measuring tier costs stops after this many times the requested time, or after
/// this long if that is more.
const MAX_FACTOR: u32 = 4;
const MIN_LIMIT: Duration = Duration::from_secs(1);
/// How often a running process is checked for its end.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

impl Tracer for LinuxMachine {
    fn tiers(&mut self) -> Vec<Availability> {
        availability()
    }

    fn tracing_cost(
        &mut self,
        tiers: &[Tier],
        time: Duration,
    ) -> Result<Vec<TierCost>, MachineError> {
        let many = u32::try_from(tiers.len()).unwrap_or(u32::MAX);
        let longest = (time * many * MAX_FACTOR).max(MIN_LIMIT);
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
        let chosen = choose(order.tier, target)?;
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
            pages: session.pages.take(),
            interrupts: session.interrupted,
            numa_balancing: numa_balancing(Path::new("/")),
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
        // Counters would cost the command more than most traces do, and its length does not predict
        // their cost in untraced runs.
        let aside = self.counters.set_aside();
        let has_run = std::mem::replace(&mut self.has_run, true);
        let run = self.run_beside(request, order.limit, session);
        self.has_run = has_run;
        self.counters.reopen(&aside);
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
            let wake = session.next().min(now + LONGEST_SLEEP);
            let wake = end.map_or(wake, |end| wake.min(end));
            let mut descriptors = vec![self.signals.as_raw_fd()];
            descriptors.extend(session.descriptors());
            let ready = sys::poll_all(&descriptors, Some(wake.saturating_sub(now)));
            let stir = Stir {
                has_filled: ready[1..].contains(&true),
                has_ended: false,
            };
            let is_interrupted = ready[0] && self.take_pending_interrupt();
            if !session.attend(sys::monotonic(), stir) || is_interrupted {
                return;
            }
        }
    }
}

/// Runs on every allowed CPU for a moment. An idle CPU may not switch for seconds, and its state is
/// unknown until its first switch: this forces one before the trace begins.
fn visit_all_cpus() {
    let Ok(before) = sys::affinity() else { return };
    for cpu in before.iter() {
        // A CPU that just went offline cannot be visited and runs nothing.
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
fn choose(tier: Option<Tier>, target: Target) -> Result<ChosenSource, MachineError> {
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
                let note = refused_note(tier, &refusal);
                log::info!("{note}");
                notes.push(note);
                refused = Some(untraceable(tier, refusal));
            }
        }
    }
    Err(refused.unwrap_or(MachineError::Interrupted))
}

fn refused_note(tier: Tier, refusal: &Refusal) -> String {
    let permit = refusal.remedy.as_ref();
    let permit = permit.map(|command| format!(" (permit it with: {command})"));
    format!(
        "Tier '{tier}' is not available here: {}{}.",
        refusal.reason,
        permit.unwrap_or_default()
    )
}

fn untraceable(tier: Tier, refusal: Refusal) -> MachineError {
    MachineError::Untraceable {
        tier: tier.name(),
        reason: refusal.reason,
        remedy: refusal.remedy,
    }
}

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
    beside: Option<Beside>,
    pages: Pages,
    quotas: Quotas,
    /// The throttling, at the end.
    throttled: Option<Throttling>,
    interrupts: Option<Interrupts>,
    /// The time of interrupts, at the end.
    interrupted: Option<InterruptSummary>,
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
        let has_beside = chosen.tier != Tier::Proc;
        Self {
            source: chosen.source,
            beside: has_beside.then(|| Beside::new(is_everything)),
            pages: Pages::none(),
            quotas: Quotas::new(is_everything),
            throttled: None,
            interrupts: None,
            interrupted: None,
            listener,
            has_all_cpus: scope.has_all_cpus,
            leaves_daemons: order.leaves_daemons,
            round: order.round.max(SHORTEST_ROUND),
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
        self.emit(|beside, emit| beside.introduce_all(has_all_cpus, emit));
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
        self.emit(|beside, emit| beside.follow_process(pid, emit));
        self.emit(|beside, emit| beside.look_at_all(false, emit));
    }

    fn look(&mut self, now: Duration, all: bool) {
        self.emit(|beside, emit| beside.look(now, all, emit));
    }

    /// Emits what polling found, as of the last moment of the stream: later ones may still bring
    /// earlier events.
    fn emit(&mut self, look: impl FnOnce(&mut Beside, &mut dyn FnMut(EventKind))) {
        let Some(beside) = &mut self.beside else {
            return;
        };
        let time_ns = self.last_ns;
        let mut events = Vec::new();
        look(beside, &mut |what| {
            events.push(Event {
                time_ns,
                cpu: 0,
                what,
            });
        });
        self.hand_on(&events);
    }

    fn hand_on(&mut self, events: &[Event]) {
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
            // It was emitted at its start.
            events.retain(|e| !matches!(e.what, EventKind::Fork { child, .. } if child == root));
        }
        if events.first().is_some_and(|e| e.time_ns < self.from_ns) {
            cut_beginning(&mut events, self.from_ns);
        }
        if let Some(last) = events.last() {
            self.last_ns = self.last_ns.max(last.time_ns);
        }
        if let Some(beside) = &mut self.beside {
            beside.learn(&mut events);
        }
        self.hand_on(&events);
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
        self.emit(|beside, emit| beside.look_at_all(true, emit));
        self.throttled = self.quotas.finish();
        self.notes.extend(self.source.notes());
        // The trace of a command ends with its last process, not when that was noticed.
        let end_ns = wall.map_or(now_ns, |wall| self.from_ns + nanoseconds(wall));
        self.listener.round(now_ns);
        let end_ns = end_ns.max(self.last_ns);
        self.interrupted = self.interrupts.take().map(|all| all.finish(end_ns));
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

    fn next(&self) -> Duration {
        let wake = self.source.wake().unwrap_or(Duration::MAX);
        let look = self.beside.as_ref().map_or(Duration::MAX, Beside::next);
        self.next_round.min(wake).min(look).min(self.pages.next())
    }

    fn leaves_daemons(&self) -> bool {
        self.leaves_daemons
    }

    fn keeps_interrupted(&self) -> bool {
        true
    }

    fn attend(&mut self, now: Duration, stir: Stir) -> bool {
        if stir.has_ended {
            self.source.alert();
        }
        // Before the stream, which may hold the end of a thread that can now be polled for the last
        // time.
        self.look(now, stir.has_ended);
        self.pages.look(now);
        self.quotas.look(now, stir.has_ended);
        let is_round = now >= self.next_round;
        let is_wanted = self.source.wake().is_some_and(|wake| now >= wake);
        if is_round || is_wanted || stir.has_filled || stir.has_ended {
            self.deliver(false);
            self.quotas.look_at_new();
        }
        if !is_round {
            return true;
        }
        self.next_round = now + self.round;
        self.listener.round(nanoseconds(now))
    }
}

/// Events from before the trace show its initial state: which thread was on each CPU, and which
/// existed.
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
    // A thread has left one CPU before it arrives on another.
    kept.extend(on_cpu.into_values());
    kept.sort_by_key(|(index, _)| *index);
    events.splice(0..0, kept.into_iter().map(|(_, event)| event));
}

#[cfg(test)]
mod tests;
