//! Polls the traced threads for what a stream of switches does not show: which threads exist at its
//! beginning, the CPUs that they may use, and how long the kernel says that they were queued.
//!
//! Up to 256 threads are polled every 100 ms, less often if that takes long. The stream says which
//! threads are traced.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::sys;
use super::exits::Exits;
use super::polled_thread::{PollDetail, PollState, PolledThread, introduce};
use super::threads::{self, ExistingThread};
use super::turns::Turns;
use pinwise_sched::{Event, EventKind, LeaveReason, Tid};

/// Time from the beginning to the first regular poll. It is short because `chrt` and `taskset`
/// change a thread's settings right before they execute a program.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// Shortest interval between polls.
const MIN_PAUSE: Duration = Duration::from_millis(100);
/// The interval between polls is at least this many times the duration of a poll.
const PAUSE_FACTOR: u32 = 50;
/// The same for polls that are made early because a process has ended.
const EARLY_PAUSE_FACTOR: u32 = 10;
/// Threads per poll.
const MAX_AT_ONCE: usize = 256;
/// Most threads that are polled at all.
const MAX_THREADS: usize = 65_536;
/// Files stay open between polls if there are at most this many threads.
const MAX_OPEN: usize = 64;

/// The polled threads of a trace.
pub(super) struct ThreadPolls {
    /// Are all threads of the machine traced?
    is_everything: bool,
    threads: BTreeMap<Tid, PolledThread>,
    /// `None` if the kernel does not report ended threads.
    exits: Option<Exits>,
    turns: Turns,
    next: Duration,
    /// No poll before this, even if processes end.
    earliest: Duration,
    state: PollState,
}

impl ThreadPolls {
    pub(super) fn new(is_everything: bool) -> Self {
        Self {
            is_everything,
            threads: BTreeMap::new(),
            exits: Exits::open(),
            turns: Turns::default(),
            next: Duration::ZERO,
            earliest: Duration::ZERO,
            state: PollState::new(),
        }
    }

    /// Emits all existing threads if the stream shows all CPUs or everything is traced.
    pub(super) fn introduce_all(&mut self, has_all_cpus: bool, emit: &mut dyn FnMut(EventKind)) {
        if has_all_cpus || self.is_everything {
            for found in threads::list_all() {
                introduce(found, false, emit);
                if self.is_everything {
                    self.add(found);
                }
            }
        }
    }

    /// Emits the threads of a process and its descendants, and polls them from now on.
    pub(super) fn follow_process(&mut self, pid: Tid, emit: &mut dyn FnMut(EventKind)) {
        let mut found = threads::list_threads_below(pid);
        if found.is_empty() {
            found.push(ExistingThread {
                tid: pid,
                process: pid,
            });
        }
        for found in found {
            introduce(found, true, emit);
            self.add(found);
        }
    }

    /// Learns from the stream which threads began and ended. Before the end of a thread it inserts
    /// the kernel's report of the thread.
    pub(super) fn learn(&mut self, events: &mut Vec<Event>) {
        if let Some(exits) = &mut self.exits {
            exits.drain();
        }
        let mut last_samples: Vec<(usize, EventKind)> = Vec::new();
        for (index, event) in events.iter().enumerate() {
            match event.what {
                EventKind::Fork {
                    parent,
                    child,
                    process,
                } if self.is_everything || self.threads.contains_key(&parent) => {
                    self.add(ExistingThread {
                        tid: child,
                        process,
                    });
                }
                EventKind::Exit { thread } => {
                    self.turns.remove(thread);
                    last_samples.extend(self.take_last_sample(thread).map(|last| (index, last)));
                    self.threads.remove(&thread);
                }
                // In sources that report the last switch, it comes before the exit.
                EventKind::Out {
                    thread,
                    left: LeaveReason::Ended,
                }
                | EventKind::Switch {
                    prev: thread,
                    left: LeaveReason::Ended,
                    ..
                } => last_samples.extend(self.take_last_sample(thread).map(|last| (index, last))),
                _ => {}
            }
        }
        insert_events(events, last_samples);
    }

    /// Takes the kernel's report of an ended thread, so that it is emitted once.
    fn take_last_sample(&mut self, thread: Tid) -> Option<EventKind> {
        let polled = self.threads.get(&thread)?;
        let last = self.exits.as_mut()?.take(thread)?;
        Some(polled.make_last_sample(last))
    }

    /// Polls all threads, at the beginning of the trace or at its end.
    pub(super) fn poll_all(&mut self, is_last: bool, emit: &mut dyn FnMut(EventKind)) {
        let all: Vec<Tid> = self.threads.keys().copied().collect();
        self.poll_threads(&all, is_last, emit);
        self.turns.clear_new();
        self.next = sys::monotonic() + FIRST_PAUSE;
    }

    /// When the next poll is due.
    pub(super) const fn next_poll(&self) -> Duration {
        self.next
    }

    /// Polls the threads whose turn it is, if it is time. `has_ended`: a process is about to be
    /// reaped, so the poll may be early.
    pub(super) fn poll_if_due(
        &mut self,
        now: Duration,
        has_ended: bool,
        emit: &mut dyn FnMut(EventKind),
    ) {
        let due = if has_ended { self.earliest } else { self.next };
        if now < due {
            return;
        }
        let turn = self.turns.take(&self.threads, MAX_AT_ONCE);
        self.poll_threads(&turn, false, emit);
        let took = sys::monotonic().saturating_sub(now);
        self.next = now + MIN_PAUSE.max(took * PAUSE_FACTOR);
        self.earliest = now + took * EARLY_PAUSE_FACTOR;
    }

    /// Polls these threads. One that no longer exists is not removed: the stream reports its end,
    /// perhaps later.
    fn poll_threads(&mut self, threads: &[Tid], is_last: bool, emit: &mut dyn FnMut(EventKind)) {
        let stay_open = self.threads.len() <= MAX_OPEN;
        for thread in threads {
            if let Some(polled) = self.threads.get_mut(thread) {
                // The first and the last counts show how many switches the stream should have.
                let detail = match is_last || polled.is_new() {
                    true => PollDetail::Counts,
                    false => PollDetail::Times,
                };
                polled.poll(detail, is_last, &mut self.state, emit);
                if !stay_open {
                    polled.close();
                }
            }
        }
    }

    fn add(&mut self, found: ExistingThread) {
        if self.threads.len() < MAX_THREADS {
            let polled = PolledThread::new(found, !self.is_everything);
            self.threads.insert(found.tid, polled);
            self.turns.add_new(found.tid);
        }
    }
}

/// Inserts each of `added` before the event with its index, with that event's time.
fn insert_events(events: &mut Vec<Event>, added: Vec<(usize, EventKind)>) {
    if added.is_empty() {
        return;
    }
    let mut added = added.into_iter().peekable();
    let old = std::mem::take(events);
    for (index, event) in old.into_iter().enumerate() {
        while let Some((_, what)) = added.next_if(|(at, _)| *at == index) {
            events.push(Event {
                time_ns: event.time_ns,
                cpu: 0,
                what,
            });
        }
        events.push(event);
    }
}
