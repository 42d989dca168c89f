//! What a stream of switches does not show: the threads at its beginning, the CPUs they may use,
//! and how long the kernel says that they were queued.
//!
//! Up to 256 threads are polled every 100 ms, less often if that takes long. The stream itself
//! tells which threads the trace is about.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use super::super::sys;
use super::exits::Exits;
use super::figures::{Figures, Look, LookState, introduce};
use super::threads::{self, ExistingThread};
use pinwise_sched::{Event, EventKind, LeaveReason, Tid};

/// The first poll after the beginning: `chrt` and `taskset` change how a program runs right before
/// they start it.
const SOON: Duration = Duration::from_millis(10);
/// Shortest interval between polls.
const PAUSE: Duration = Duration::from_millis(100);
/// Polls may take at most one part in this many of the time …
const SHARE: u32 = 50;
/// … and if processes end all the time, one in this many.
const MAX_SHARE: u32 = 10;
/// Threads per poll.
const MAX_AT_ONCE: usize = 256;
/// Limits the threads that are remembered.
const MAX_THREADS: usize = 65_536;
/// Threads whose files stay open.
const MAX_OPEN: usize = 64;

/// The threads of a trace.
pub(super) struct Beside {
    /// The trace is about all threads.
    is_everything: bool,
    threads: BTreeMap<Tid, Figures>,
    /// `None` if the kernel does not report them.
    exits: Option<Exits>,
    /// Not polled yet.
    fresh: BTreeSet<Tid>,
    /// Where the last poll stopped.
    cursor: Tid,
    next: Duration,
    /// No poll before this, even if processes end.
    earliest: Duration,
    state: LookState,
}

impl Beside {
    pub(super) fn new(is_everything: bool) -> Self {
        Self {
            is_everything,
            threads: BTreeMap::new(),
            exits: Exits::open(),
            fresh: BTreeSet::new(),
            cursor: 0,
            next: Duration::ZERO,
            earliest: Duration::ZERO,
            state: LookState::new(),
        }
    }

    /// Emits the existing threads; all of them if the stream has all.
    pub(super) fn introduce_all(&mut self, has_all_cpus: bool, emit: &mut dyn FnMut(EventKind)) {
        if has_all_cpus || self.is_everything {
            for found in threads::all() {
                introduce(found, false, emit);
                if self.is_everything {
                    self.add(found);
                }
            }
        }
    }

    /// Emits a process and its descendants, and follows it.
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

    /// Learns from the stream which threads began and ended, and inserts the kernel's report of a
    /// thread before its end.
    pub(super) fn learn(&mut self, events: &mut Vec<Event>) {
        if let Some(exits) = &mut self.exits {
            exits.drain();
        }
        let mut last_looks: Vec<(usize, EventKind)> = Vec::new();
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
                    self.fresh.remove(&thread);
                    last_looks.extend(self.last_look(thread).map(|look| (index, look)));
                    self.threads.remove(&thread);
                }
                // If the source has it, it comes first.
                EventKind::Out {
                    thread,
                    left: LeaveReason::Ended,
                }
                | EventKind::Switch {
                    prev: thread,
                    left: LeaveReason::Ended,
                    ..
                } => last_looks.extend(self.last_look(thread).map(|look| (index, look))),
                _ => {}
            }
        }
        insert(events, last_looks);
    }

    /// The kernel's report of an ended thread, emitted once.
    fn last_look(&mut self, thread: Tid) -> Option<EventKind> {
        let figures = self.threads.get(&thread)?;
        let last = self.exits.as_mut()?.take(thread)?;
        Some(figures.report_of_end(last))
    }

    /// Polls all threads, at the beginning of the trace or at its end.
    pub(super) fn look_at_all(&mut self, is_last: bool, emit: &mut dyn FnMut(EventKind)) {
        let all: Vec<Tid> = self.threads.keys().copied().collect();
        self.look_at(&all, is_last, emit);
        self.fresh.clear();
        self.next = sys::monotonic() + SOON;
    }

    /// When the next poll is due.
    pub(super) const fn next(&self) -> Duration {
        self.next
    }

    /// Polls the threads whose turn it is. `all`: all threads now, unless a poll was a moment ago.
    pub(super) fn look(&mut self, now: Duration, all: bool, emit: &mut dyn FnMut(EventKind)) {
        let due = if all { self.earliest } else { self.next };
        if now < due {
            return;
        }
        let turn = self.turn();
        self.look_at(&turn, false, emit);
        let took = sys::monotonic().saturating_sub(now);
        self.next = now + PAUSE.max(took * SHARE);
        self.earliest = now + took * MAX_SHARE;
    }

    /// The end of a missing thread is in the stream, perhaps later.
    fn look_at(&mut self, threads: &[Tid], is_last: bool, emit: &mut dyn FnMut(EventKind)) {
        let stay_open = self.threads.len() <= MAX_OPEN;
        for thread in threads {
            if let Some(figures) = self.threads.get_mut(thread) {
                // The number of switches matters if their events are missing.
                let look = match is_last || figures.is_new() {
                    true => Look::Counts,
                    false => Look::Times,
                };
                figures.look(look, is_last, &mut self.state, emit);
                if !stay_open {
                    figures.close();
                }
            }
        }
    }

    /// New threads first, then the others in turns.
    fn turn(&mut self) -> Vec<Tid> {
        let mut turn: Vec<Tid> = self.fresh.iter().copied().take(MAX_AT_ONCE).collect();
        for thread in &turn {
            self.fresh.remove(thread);
        }
        let after = (Bound::Excluded(self.cursor), Bound::Unbounded);
        let others = self.threads.range(after).map(|(&thread, _)| thread);
        let room = MAX_AT_ONCE - turn.len();
        let others: Vec<Tid> = others.take(room).collect();
        self.cursor = if others.len() < room {
            0
        } else {
            others.last().copied().unwrap_or(0)
        };
        turn.extend(others);
        turn.sort_unstable();
        turn.dedup();
        turn
    }

    fn add(&mut self, found: ExistingThread) {
        if self.threads.len() < MAX_THREADS {
            let figures = Figures::new(found, !self.is_everything);
            self.threads.insert(found.tid, figures);
            self.fresh.insert(found.tid);
        }
    }
}

/// Inserts events before those at these places, with the same times.
fn insert(events: &mut Vec<Event>, looks: Vec<(usize, EventKind)>) {
    if looks.is_empty() {
        return;
    }
    let mut looks = looks.into_iter().peekable();
    let old = std::mem::take(events);
    for (index, event) in old.into_iter().enumerate() {
        while let Some((_, what)) = looks.next_if(|(at, _)| *at == index) {
            events.push(Event {
                time_ns: event.time_ns,
                cpu: 0,
                what,
            });
        }
        events.push(event);
    }
}
