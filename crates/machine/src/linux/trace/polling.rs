//! Tier `proc`: polls threads in `/proc`.
//!
//! A poll costs 6 to 30 µs of CPU time per thread, so polls are at least 10 ms apart and take at
//! most a fiftieth of one CPU. What happens between two polls is not seen, and this does not guess
//! it.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::Duration;

use super::super::usage::{MIN_INTERVAL, Meter};
use super::super::{daemon, sys, tree};
use super::exits::Exits;
use super::polled_thread::{PollDetail, PollState, PolledThread, introduce};
use super::threads::{self, ExistingThread};
use super::{Source, Target, nanoseconds};
use pinwise_sched::{Event, EventKind, IDLE, Tid};

/// Shortest interval between polls.
const MIN_PAUSE: Duration = Duration::from_millis(10);
/// Longest interval between polls.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// The interval between polls is at least this many times the duration of a poll.
const PAUSE_FACTOR: u32 = 50;
/// The same for polls that are made early because a process has ended.
const EARLY_PAUSE_FACTOR: u32 = 10;
/// Most threads that are polled.
const MAX_THREADS: usize = 4096;
/// Counts are read only every N polls, since they take longest.
const COUNTS_EVERY: u32 = 10;
/// Descriptors that stay open per thread.
const DESCRIPTORS_PER_THREAD: usize = 4;

/// Polled threads.
pub(super) struct Polling {
    target: Target,
    roots: Vec<Tid>,
    threads: BTreeMap<Tid, PolledThread>,
    meter: Meter,
    next: Duration,
    /// No poll before this, whatever happens.
    earliest: Duration,
    next_usage: Duration,
    exits: Option<Exits>,
    /// Was there a poll before? Threads that are new later began during the trace.
    has_polled: bool,
    polls: u32,
    state: PollState,
    /// Number of threads whose files stay open between polls.
    max_open: usize,
    /// Were there more than [`MAX_THREADS`]?
    was_cut: bool,
}

impl Polling {
    pub(super) fn new(target: Target) -> Self {
        let descriptors = match target {
            // A command inherits this limit, so it is not changed.
            Target::Child => sys::descriptor_limit(),
            Target::Process(_) | Target::Everything => sys::raise_descriptor_limit(),
        };
        Self {
            target,
            roots: match target {
                Target::Process(pid) => vec![pid],
                Target::Child | Target::Everything => Vec::new(),
            },
            threads: BTreeMap::new(),
            meter: Meter::new(),
            next: Duration::ZERO,
            earliest: Duration::ZERO,
            next_usage: Duration::ZERO,
            exits: Exits::open(),
            has_polled: false,
            polls: 0,
            state: PollState::new(),
            max_open: descriptors / 2 / DESCRIPTORS_PER_THREAD,
            was_cut: false,
        }
    }

    fn list_threads(&self) -> Vec<ExistingThread> {
        match self.target {
            Target::Everything => threads::list_all(),
            _ if !self.roots.is_empty() => {
                let mut found: Vec<ExistingThread> = self
                    .roots
                    .iter()
                    .flat_map(|&pid| threads::list_threads_below(pid))
                    .collect();
                // Processes that outlive their parent become pinwise's children.
                if self.target == Target::Child {
                    found.extend(list_own_orphans(&self.roots));
                }
                found
            }
            Target::Child | Target::Process(_) => list_own_orphans(&[]),
        }
    }

    /// Polls all threads.
    fn poll(&mut self, is_last: bool, events: &mut Vec<Event>) {
        let began_in_trace = self.target == Target::Child || self.has_polled;
        self.has_polled = true;
        for found in self.list_threads() {
            if self.threads.len() >= MAX_THREADS && !self.threads.contains_key(&found.tid) {
                self.was_cut = true;
                break;
            }
            if self
                .threads
                .get(&found.tid)
                .is_some_and(|t| t.found == found)
            {
                continue;
            }
            if began_in_trace {
                emit_to(events, 0)(EventKind::Fork {
                    parent: IDLE,
                    child: found.tid,
                    process: found.process,
                });
            }
            let is_followed = self.target != Target::Everything;
            introduce(found, is_followed, &mut emit_to(events, 0));
            self.threads
                .insert(found.tid, PolledThread::new(found, is_followed));
        }
        let detail = if self.polls.is_multiple_of(COUNTS_EVERY) {
            PollDetail::Counts
        } else {
            PollDetail::Times
        };
        self.polls = self.polls.wrapping_add(1);
        let mut gone = Vec::new();
        for (index, (&thread, polled)) in self.threads.iter_mut().enumerate() {
            let detail = match polled.is_new() {
                true => PollDetail::Counts,
                false => detail,
            };
            if !polled.poll(detail, is_last, &mut self.state, &mut emit_to(events, 0)) {
                gone.push(thread);
            }
            if index >= self.max_open {
                polled.close();
            }
        }
        if let Some(exits) = &mut self.exits {
            exits.drain();
        }
        for thread in gone {
            let last = self.exits.as_mut().and_then(|exits| exits.take(thread));
            if let Some((polled, last)) = self.threads.remove(&thread).zip(last) {
                emit_to(events, 0)(polled.make_last_sample(last));
            }
            emit_to(events, 0)(EventKind::Exit { thread });
        }
    }

    fn emit_usage(&mut self, events: &mut Vec<Event>) {
        let Some(usage) = self.meter.usage() else {
            return;
        };
        for (cpu, busy) in usage.busy {
            let busy_ns = nanoseconds(busy);
            let cpu = u32::try_from(cpu).unwrap_or(u32::MAX);
            emit_to(events, cpu)(EventKind::Usage { busy_ns });
        }
        self.next_usage = sys::monotonic() + MIN_INTERVAL;
    }
}

impl Source for Polling {
    fn descriptors(&self) -> Vec<RawFd> {
        Vec::new()
    }

    fn drain(&mut self, events: &mut Vec<Event>) {
        let before = sys::monotonic();
        if before < self.next {
            return;
        }
        self.poll(false, events);
        if before >= self.next_usage {
            self.emit_usage(events);
        }
        let took = sys::monotonic().saturating_sub(before);
        let pause = (took * PAUSE_FACTOR).clamp(MIN_PAUSE, MAX_PAUSE);
        self.next = before + pause;
        self.earliest = before + took * EARLY_PAUSE_FACTOR;
    }

    fn finish(&mut self, events: &mut Vec<Event>) {
        self.polls = 0;
        self.poll(true, events);
        self.emit_usage(events);
    }

    fn started(&mut self, pid: Tid) {
        self.roots.push(pid);
        self.next = Duration::ZERO;
    }

    fn note_ended_process(&mut self) {
        self.next = self.next.min(self.earliest);
        self.polls = 0;
    }

    fn next_wake(&self) -> Option<Duration> {
        Some(self.next)
    }

    fn notes(&self) -> Vec<String> {
        let cut = format!("More than {MAX_THREADS} threads: the others were not polled.");
        self.was_cut.then_some(cut).into_iter().collect()
    }
}

/// Lists the threads of pinwise's other children, without its daemons, and of their descendants.
fn list_own_orphans(roots: &[Tid]) -> Vec<ExistingThread> {
    let spared = roots.iter().copied().collect();
    let children = tree::own_children(&spared).into_iter();
    let others = children.filter(|&pid| !daemon::is_daemon(pid));
    others.flat_map(threads::list_threads_below).collect()
}

/// Makes a function that appends events with the current time.
fn emit_to(events: &mut Vec<Event>, cpu: u32) -> impl FnMut(EventKind) {
    move |what| {
        events.push(Event {
            time_ns: nanoseconds(sys::monotonic()),
            cpu,
            what,
        });
    }
}
