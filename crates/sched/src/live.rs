//! The scheduler's present state: which thread is on which CPU, and rates since the last frame.
//!
//! A [`Live`] gets events and returns a [`Frame`] on request. Memory grows with CPUs and threads;
//! ended threads are dropped after the frame that shows them. A CPU without events does not count
//! as idle: what a source does not report is unknown, and time with lost records is not counted.

mod cpus;
mod frame;
mod occupant;
mod threads;

use std::collections::HashMap;

use super::{CpuMap, Crossed, Event, EventKind, IDLE, LeaveReason, Migrations, Sample, Scope, Tid};
use cpus::Cpus;
use pinwise_topology::Topology;
use threads::{State, Thread};

pub use frame::{CpuFrame, Doing, Frame, Sharing, SharingBasis, ThreadFrame};
pub use occupant::Occupant;

/// Limits the threads; beyond it those that did nothing since the last frame are dropped first, and
/// new ones are ignored.
pub const MAX_THREADS: usize = 1 << 17;

/// What a [`Live`] should show.
#[derive(Debug, Clone, Copy)]
pub struct Watching {
    /// What the source can show.
    pub scope: Scope,
    /// Show every thread, instead of followed ones only.
    pub is_everything: bool,
    /// The thread that draws the frames. It always runs when a frame is made: its CPU is shown as
    /// idle at that moment.
    pub observer: Option<Tid>,
}

/// The state of all threads and CPUs, and sums since the last frame.
#[derive(Debug)]
pub struct Live {
    watching: Watching,
    cpu_map: CpuMap,
    cpus: Cpus,
    threads: HashMap<Tid, Thread>,
    moves: Migrations,
    lost: u64,
    /// Start of the interval, ns; `None` before it is known.
    since_ns: Option<u64>,
}

impl Live {
    /// Starts without knowledge of any thread.
    #[must_use]
    pub fn new(topology: &Topology, watching: Watching) -> Self {
        Self {
            watching,
            cpu_map: CpuMap::new(topology),
            cpus: Cpus::from_topology(topology),
            threads: HashMap::new(),
            moves: Migrations::default(),
            lost: 0,
            since_ns: None,
        }
    }

    /// Sets the first moment that counts, unless it is set. Without this call, the first switch,
    /// arrival, departure or poll sets it, or the first frame.
    pub fn begin(&mut self, now_ns: u64) {
        if self.since_ns.is_none() {
            self.since_ns = Some(now_ns);
            self.cpus.begin(now_ns);
        }
    }

    /// Adds events, in time order.
    pub fn add_events(&mut self, events: &[Event]) {
        for event in events {
            self.add_event(event);
        }
    }

    fn add_event(&mut self, event: &Event) {
        let (at, cpu) = (event.time_ns, event.cpu);
        match &event.what {
            EventKind::Switch { prev, left, next } => {
                self.begin(at);
                self.handle_switch(at, cpu, *prev, *left, *next);
            }
            EventKind::In { thread } => {
                self.begin(at);
                self.handle_arrival(at, cpu, *thread);
            }
            EventKind::Out { thread, left } => {
                self.begin(at);
                self.handle_departure(at, cpu, *thread, *left);
                self.cpus.occupy(cpu, at, Occupant::Unknown);
            }
            EventKind::Wake { thread, target } => self.handle_wakeup(at, *thread, *target),
            EventKind::Fork {
                parent,
                child,
                process,
            } => self.handle_fork(*parent, *child, *process),
            EventKind::Exit { thread } => self.handle_exit(*thread),
            EventKind::Known { thread, process } => {
                self.change_thread(*thread, |known| known.process = Some(*process));
            }
            EventKind::Follow { thread } => {
                self.change_thread(*thread, |known| known.is_followed = true)
            }
            EventKind::Name { thread, name } => {
                self.change_thread(*thread, |known| known.name = Some(name.clone()));
            }
            EventKind::Mask { thread, cpus } => {
                self.change_thread(*thread, |known| known.allowed = Some((**cpus).clone()));
            }
            EventKind::Lost { records } => self.handle_lost_records(at, cpu, *records),
            EventKind::Sample(sample) => {
                self.begin(at);
                self.add_sample(at, sample);
            }
            EventKind::Usage { busy_ns } => {
                self.begin(at);
                self.cpus.add_usage(cpu, at, *busy_ns);
            }
        }
    }

    /// The state of a thread; a new thread is added up to [`MAX_THREADS`].
    fn thread_mut(&mut self, tid: Tid) -> Option<&mut Thread> {
        if tid <= IDLE || (self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&tid)) {
            return None;
        }
        Some(self.threads.entry(tid).or_default())
    }

    fn change_thread(&mut self, tid: Tid, change: impl FnOnce(&mut Thread)) {
        if let Some(thread) = self.thread_mut(tid) {
            change(thread);
        }
    }

    fn handle_switch(&mut self, at: u64, cpu: u32, prev: Tid, left: LeaveReason, next: Tid) {
        // The first event of a CPU shows what it did until now.
        if self.watching.scope.has_all_cpus && self.cpus.is_untouched(cpu) {
            self.cpus.set_first_occupant(cpu, occupant(prev));
            self.thread_mut(prev);
        }
        self.handle_departure(at, cpu, prev, left);
        if next == IDLE {
            self.cpus.occupy(cpu, at, Occupant::Idle);
        } else {
            self.handle_arrival(at, cpu, next);
        }
        self.cpus.count_switch(cpu);
    }

    /// Counts the CPU's time up to now, and that of the thread it runs.
    fn count_time(&mut self, at: u64, cpu: u32) {
        let Some((tid, ran)) = self.cpus.advance(cpu, at) else {
            return;
        };
        let is_everything = self.watching.is_everything;
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.tally.add_run_time(cpu, ran);
        if is_everything || thread.is_followed {
            self.cpus.add_own(cpu, ran);
        }
    }

    fn handle_departure(&mut self, at: u64, cpu: u32, tid: Tid, left: LeaveReason) {
        self.count_time(at, cpu);
        if left == LeaveReason::Ended && !self.threads.contains_key(&tid) {
            return;
        }
        self.change_thread(tid, |thread| {
            thread.cpu = Some(cpu);
            thread.tally.switches = thread.tally.switches.saturating_add(1);
            thread.state = match left {
                _ if thread.state == State::Ended => State::Ended,
                LeaveReason::Ended => State::Ended,
                LeaveReason::Blocked => State::Waiting,
                LeaveReason::Preempted => State::Queued { since_ns: at },
                LeaveReason::Unreported => State::Unreported,
            };
        });
    }

    fn handle_arrival(&mut self, at: u64, cpu: u32, tid: Tid) {
        self.count_time(at, cpu);
        let before = self.threads.get(&tid).map(|t| (t.state, t.cpu));
        // A thread that arrives here has left its other CPU, even if that was not reported.
        if let Some((State::Running { cpu: elsewhere }, _)) = before
            && elsewhere != cpu
        {
            self.count_time(at, elsewhere);
            self.cpus.occupy(elsewhere, at, Occupant::Unknown);
        }
        self.cpus.occupy(cpu, at, occupant(tid));
        let Some(thread) = self.thread_mut(tid) else {
            return;
        };
        thread.tally.add_queued_time(thread.state, at);
        thread.state = State::Running { cpu };
        let from = thread.cpu.replace(cpu);
        if let Some(from) = from.filter(|from| *from != cpu) {
            thread.tally.migrations = thread.tally.migrations.saturating_add(1);
            if self.is_own(tid) {
                self.moves.add(self.cpu_map.classify_move(from, cpu), 1);
            }
        }
    }

    fn handle_wakeup(&mut self, at: u64, tid: Tid, target: u32) {
        self.change_thread(tid, |thread| {
            let is_asleep = matches!(thread.state, State::Waiting | State::Unreported);
            if is_asleep {
                thread.state = State::Queued { since_ns: at };
                thread.cpu.get_or_insert(target);
            }
        });
    }

    fn handle_fork(&mut self, parent: Tid, child: Tid, process: Tid) {
        let (is_followed, name) = self
            .threads
            .get(&parent)
            .map_or((false, None), |p| (p.is_followed, p.name.clone()));
        // Its id may have belonged to another thread.
        self.change_thread(child, |thread| {
            *thread = Thread {
                process: Some(process),
                name,
                is_followed,
                ..Thread::default()
            };
        });
    }

    fn handle_exit(&mut self, tid: Tid) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.state = State::Ended;
        }
    }

    /// Records of a CPU since its last event were lost: its occupant is unknown.
    fn handle_lost_records(&mut self, at: u64, cpu: u32, records: u64) {
        self.lost = self.lost.saturating_add(records.max(1));
        if let Occupant::Thread(tid) = self.cpus.occupant(cpu)
            && let Some(thread) = self.threads.get_mut(&tid)
            && thread.state != State::Ended
        {
            thread.state = State::Unreported;
        }
        self.cpus.occupy(cpu, at, Occupant::Unknown);
    }

    fn is_own(&self, tid: Tid) -> bool {
        let is_followed = || self.threads.get(&tid).is_some_and(|t| t.is_followed);
        self.watching.is_everything || is_followed()
    }

    fn add_sample(&mut self, at: u64, sample: &Sample) {
        let tid = sample.thread;
        let has_switches = self.watching.scope.has_switches;
        let Some(thread) = self.thread_mut(tid) else {
            return;
        };
        // If every switch is reported, polls only give the initial CPU.
        if has_switches {
            thread.cpu.get_or_insert(sample.cpu);
            return;
        }
        let from = thread.cpu.replace(sample.cpu);
        thread.state = match sample.is_runnable {
            true => State::Runnable,
            false => State::Waiting,
        };
        let moved = thread.count_since_poll(at, sample);
        if !self.is_own(tid) {
            return;
        }
        match from {
            Some(from) if from != sample.cpu && moved > 0 => {
                // Of several moves only the number is known.
                let crossed = match moved {
                    1 => self.cpu_map.classify_move(from, sample.cpu),
                    _ => Crossed::Unknown,
                };
                self.moves.add(crossed, moved);
            }
            _ => self.moves.add(Crossed::Unknown, moved),
        }
    }

    /// The present state and rates since the last frame; starts the next interval.
    pub fn frame(&mut self, now_ns: u64) -> Frame {
        self.begin(now_ns);
        let since_ns = self.since_ns.replace(now_ns).unwrap_or(now_ns);
        for cpu in self.cpus.numbers() {
            self.count_time(now_ns, cpu);
        }
        let threads = self.threads.values_mut();
        threads.for_each(|thread| thread.count_queued_time(now_ns));
        let frame = frame::make_frame(self, now_ns.saturating_sub(since_ns));
        self.moves = Migrations::default();
        self.cpus.start_interval(now_ns);
        let is_full = self.threads.len() >= MAX_THREADS;
        self.threads
            .retain(|_, thread| thread.start_interval(is_full));
        frame
    }
}

const fn occupant(tid: Tid) -> Occupant {
    match tid {
        IDLE => Occupant::Idle,
        tid if tid < IDLE => Occupant::Unknown,
        tid => Occupant::Thread(tid),
    }
}

#[cfg(test)]
mod tests;
