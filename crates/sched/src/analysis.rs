//! Computes figures from events: keeps the state of every thread and CPU, and sums.
//!
//! An event changes what a CPU or a thread does; the time since the last change counts for what it
//! did before. Unknown time (before the first event of a CPU, after lost records) is not counted.

mod closing;
mod condition_time;
pub(crate) mod histogram;
mod lives;
mod longest;
mod looks;
mod parallel;
mod polling;
mod queues;
mod running;
mod sharing;
mod spared;
mod thread;
mod threads;
mod timeline;
mod waiting;

use std::collections::VecDeque;

use super::blocked::Blocked;
use super::summary::{Summary, WaitCauseTotals};
use super::{CpuMap, Event, EventKind, Scope, Tid};
use histogram::Histogram;
use parallel::Parallel;
use pinwise_topology::{CpuSet, Topology};
use queues::Queues;
use sharing::{Cores, SumsAt};
use threads::Threads;
use timeline::TimelineBuilder;

/// The activity of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Occupant {
    /// Unknown.
    #[default]
    Unknown,
    /// The CPU is idle.
    Idle,
    /// It runs the thread in this slot.
    Thread(usize),
}

/// A CPU and its sums.
#[derive(Debug, Clone, Default)]
struct CpuState {
    occupant: Occupant,
    /// The time before this is counted.
    since_ns: u64,
    /// No event yet, and no lost records.
    is_fresh: bool,
    last_event_ns: u64,
    own_ns: u64,
    foreign_ns: u64,
    idle_ns: u64,
    switches: u64,
    /// Threads that left although the CPU should have been idle, without lost records.
    unseen_arrivals: u64,
    /// Slots of threads that were woken on it while it idled.
    starting: Vec<usize>,
    /// Sums of sharing at its last event; restored if records are lost.
    sums_at_last_event: SumsAt,
    /// Busy time at the first and the latest poll.
    polled_ns: Option<(u64, u64)>,
}

/// Counters of the whole trace.
#[derive(Debug, Default)]
struct Counts {
    events: u64,
    wakeups: u64,
    causes: WaitCauseTotals,
    after_preemption_ns: u64,
    after_wakeup_ns: u64,
    /// Upper limit of the waits whose end is missing.
    unseen_wait_ns: u64,
    lost_records: u64,
    /// Intervals of a CPU with lost records, and their sum.
    lost_windows: u64,
    lost_ns: u64,
    /// Events that are earlier than their predecessor.
    backwards: u64,
    contradictions: u64,
}

/// Computes a [`Summary`] from events. Memory grows with CPUs and with the threads that live at the
/// same time; the part of the timeline is limited.
#[derive(Debug)]
pub struct Analysis {
    cpu_map: CpuMap,
    scope: Scope,
    cpu_states: Vec<CpuState>,
    threads: Threads,
    queues: Queues,
    cores: Cores,
    parallel: Parallel,
    timeline: TimelineBuilder,
    waits: Histogram,
    blocked: Blocked,
    counts: Counts,
    totals: closing::Totals,
    from_ns: Option<u64>,
    now_ns: u64,
    /// Threads that announced their end, after the time when they left their CPU.
    ending: VecDeque<(u64, Tid)>,
}

impl Analysis {
    /// Analyses events of this scope on this machine. All threads are followed until an event names
    /// one to follow; then all figures start again.
    #[must_use]
    pub fn new(topology: &Topology, scope: Scope) -> Self {
        let cpu_map = CpuMap::new(topology);
        let mut cores = Cores::new(&cpu_map);
        cores.add_mask(cpu_map.online());
        let length = cpu_map.online().last().map_or(0, |last| last + 1);
        Self {
            cpu_states: vec![new_cpu_state(); length],
            threads: Threads::new(),
            queues: Queues::new(cpu_map.online()),
            cores,
            parallel: Parallel::default(),
            timeline: TimelineBuilder::new(),
            waits: Histogram::new(),
            blocked: Blocked::default(),
            counts: Counts::default(),
            totals: closing::Totals::default(),
            from_ns: None,
            now_ns: 0,
            ending: VecDeque::new(),
            cpu_map,
            scope,
        }
    }

    /// Adds an event, in time order. One that is earlier than its predecessor gets the
    /// predecessor's time, and is counted.
    pub fn add_event(&mut self, event: &Event) {
        let mut time_ns = event.time_ns;
        if self.from_ns.is_none() {
            self.begin(time_ns);
        } else if time_ns < self.now_ns {
            self.counts.backwards += 1;
            time_ns = self.now_ns;
        }
        self.now_ns = time_ns;
        self.counts.events += 1;
        let cpu = event.cpu;
        let target = match event.what {
            EventKind::Wake { target, .. } => target,
            _ => cpu,
        };
        // Memory grows with CPU numbers, and a damaged file can contain any.
        if cpu.max(target) as usize > CpuSet::MAX_CPU {
            self.counts.contradictions += 1;
            return;
        }
        match &event.what {
            EventKind::Switch { prev, left, next } => self.handle_switch(cpu, *prev, *left, *next),
            EventKind::In { thread } => self.handle_arrival(cpu, *thread),
            EventKind::Out { thread, left } => self.handle_departure(cpu, *thread, *left),
            EventKind::Wake { thread, target } => self.handle_wakeup(cpu, *thread, *target),
            EventKind::Fork {
                parent,
                child,
                process,
            } => self.handle_fork(*parent, *child, *process),
            EventKind::Exit { thread } => self.handle_exit(*thread),
            EventKind::Known { thread, process } => self.set_process(*thread, *process),
            EventKind::Follow { thread } => self.follow(*thread),
            EventKind::Name { thread, name } => self.set_name(*thread, name),
            EventKind::Mask { thread, cpus } => self.set_mask(*thread, cpus),
            EventKind::Lost { records } => self.handle_lost_records(cpu, *records),
            EventKind::Sample(sample) => self.add_sample(sample),
            EventKind::Usage { busy_ns } => self.add_cpu_usage(cpu, *busy_ns),
        }
    }

    /// Names the living threads behind which followed threads were queued, if events did not.
    pub fn name_other_programs(&mut self, find_name: &mut dyn FnMut(Tid) -> Option<Box<str>>) {
        for thread in self.threads.unnamed_others() {
            if let Some(name) = find_name(thread.tid) {
                thread.name = name;
            }
        }
    }

    /// Ends the trace at the end of `span_ns` (its first and last moment), or at the last event if
    /// that is later. The trace begins at its first event, or without events at the start of
    /// `span_ns`.
    #[must_use]
    pub fn finish(self, span_ns: Option<(u64, u64)>) -> Summary {
        closing::close(self, span_ns)
    }

    fn begin(&mut self, time_ns: u64) {
        self.from_ns = Some(time_ns);
        self.timeline.begin(time_ns);
        self.cores.restart(time_ns);
        self.parallel.restart(time_ns);
        for cpu_state in &mut self.cpu_states {
            cpu_state.since_ns = time_ns;
            cpu_state.last_event_ns = time_ns;
        }
    }

    fn cpu_state(&mut self, cpu: u32) -> &mut CpuState {
        let index = cpu as usize;
        if index >= self.cpu_states.len() {
            let since_ns = self.from_ns.unwrap_or(0);
            let cpu_state = CpuState {
                since_ns,
                last_event_ns: since_ns,
                ..new_cpu_state()
            };
            self.cpu_states.resize(index + 1, cpu_state);
        }
        &mut self.cpu_states[index]
    }
}

const fn new_cpu_state() -> CpuState {
    CpuState {
        occupant: Occupant::Unknown,
        since_ns: 0,
        is_fresh: true,
        last_event_ns: 0,
        own_ns: 0,
        foreign_ns: 0,
        idle_ns: 0,
        switches: 0,
        unseen_arrivals: 0,
        starting: Vec::new(),
        sums_at_last_event: SumsAt::ZERO,
        polled_ns: None,
    }
}
