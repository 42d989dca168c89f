//! Tier `proc`: polls threads in `/proc`.
//!
//! A poll costs 6 to 30 µs of CPU time per thread: polls are at least 10 ms apart and take at most
//! a fiftieth of one CPU. What happens between two polls is not seen, and nothing is invented for
//! it.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::Duration;

use super::super::usage::{MIN_INTERVAL, Meter};
use super::super::{daemon, sys, tree};
use super::exits::Exits;
use super::figures::{Figures, Look, LookState, introduce};
use super::threads::{self, ExistingThread};
use super::{Source, Target, nanoseconds};
use pinwise_sched::{Event, EventKind, IDLE, Tid};

/// Shortest interval between polls.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);
/// Longest interval between polls.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Polls may take at most one part in this many of the time …
const SHARE: u32 = 50;
/// … and if processes end all the time, one in this many.
const MAX_SHARE: u32 = 10;
/// Limits the threads that are followed.
const MAX_THREADS: usize = 4096;
/// Counts are read every N polls, as they take longest.
const COUNTS_EVERY: u32 = 10;
/// Descriptors that stay open per thread.
const DESCRIPTORS_PER_THREAD: usize = 4;

/// Polled threads.
pub(super) struct Polling {
    target: Target,
    roots: Vec<Tid>,
    threads: BTreeMap<Tid, Figures>,
    meter: Meter,
    next: Duration,
    /// No poll before this, whatever happens.
    earliest: Duration,
    next_usage: Duration,
    exits: Option<Exits>,
    /// Threads that are new from now on began during the trace.
    has_looked: bool,
    looks: u32,
    state: LookState,
    /// Threads whose files stay open.
    most_open: usize,
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
            has_looked: false,
            looks: 0,
            state: LookState::new(),
            most_open: descriptors / 2 / DESCRIPTORS_PER_THREAD,
            was_cut: false,
        }
    }

    fn list(&self) -> Vec<ExistingThread> {
        match self.target {
            Target::Everything => threads::all(),
            _ if !self.roots.is_empty() => {
                let mut found: Vec<ExistingThread> = self
                    .roots
                    .iter()
                    .flat_map(|&pid| threads::list_threads_below(pid))
                    .collect();
                // Processes that outlive their parent become pinwise's children.
                if self.target == Target::Child {
                    found.extend(own_orphans(&self.roots));
                }
                found
            }
            Target::Child | Target::Process(_) => own_orphans(&[]),
        }
    }

    /// Polls all threads.
    fn look(&mut self, is_last: bool, events: &mut Vec<Event>) {
        let all_begin = self.target == Target::Child || self.has_looked;
        self.has_looked = true;
        for found in self.list() {
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
            if all_begin {
                teller(events, 0)(EventKind::Fork {
                    parent: IDLE,
                    child: found.tid,
                    process: found.process,
                });
            }
            let is_followed = self.target != Target::Everything;
            introduce(found, is_followed, &mut teller(events, 0));
            self.threads
                .insert(found.tid, Figures::new(found, is_followed));
        }
        let look = if self.looks.is_multiple_of(COUNTS_EVERY) {
            Look::Counts
        } else {
            Look::Times
        };
        self.looks = self.looks.wrapping_add(1);
        let mut gone = Vec::new();
        for (index, (&thread, figures)) in self.threads.iter_mut().enumerate() {
            let is_first = figures.is_new();
            let look = if is_first { Look::Counts } else { look };
            if !figures.look(look, is_last, &mut self.state, &mut teller(events, 0)) {
                gone.push(thread);
            }
            if index >= self.most_open {
                figures.close();
            }
        }
        if let Some(exits) = &mut self.exits {
            exits.drain();
        }
        for thread in gone {
            let last = self.exits.as_mut().and_then(|exits| exits.take(thread));
            if let Some((figures, last)) = self.threads.remove(&thread).zip(last) {
                teller(events, 0)(figures.report_of_end(last));
            }
            teller(events, 0)(EventKind::Exit { thread });
        }
    }

    fn emit_usage(&mut self, events: &mut Vec<Event>) {
        let Some(usage) = self.meter.usage() else {
            return;
        };
        for (cpu, busy) in usage.busy {
            let busy_ns = nanoseconds(busy);
            let cpu = u32::try_from(cpu).unwrap_or(u32::MAX);
            teller(events, cpu)(EventKind::Usage { busy_ns });
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
        self.look(false, events);
        if before >= self.next_usage {
            self.emit_usage(events);
        }
        let took = sys::monotonic().saturating_sub(before);
        let pause = (took * SHARE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        self.next = before + pause;
        self.earliest = before + took * MAX_SHARE;
    }

    fn finish(&mut self, events: &mut Vec<Event>) {
        self.looks = 0;
        self.look(true, events);
        self.emit_usage(events);
    }

    fn started(&mut self, pid: Tid) {
        self.roots.push(pid);
        self.next = Duration::ZERO;
    }

    fn alert(&mut self) {
        self.next = self.next.min(self.earliest);
        self.looks = 0;
    }

    fn wake(&self) -> Option<Duration> {
        Some(self.next)
    }

    fn notes(&self) -> Vec<String> {
        let cut = format!("More than {MAX_THREADS} threads: the others were not polled.");
        self.was_cut.then_some(cut).into_iter().collect()
    }
}

/// Threads of pinwise's other children, without its own helpers, and of their descendants.
fn own_orphans(roots: &[Tid]) -> Vec<ExistingThread> {
    let spared = roots.iter().copied().collect();
    let children = tree::own_children(&spared).into_iter();
    let others = children.filter(|&pid| !daemon::is_one(pid));
    others.flat_map(threads::list_threads_below).collect()
}

/// Appends events with the time at which they are emitted.
fn teller(events: &mut Vec<Event>, cpu: u32) -> impl FnMut(EventKind) {
    move |what| {
        events.push(Event {
            time_ns: nanoseconds(sys::monotonic()),
            cpu,
            what,
        });
    }
}
