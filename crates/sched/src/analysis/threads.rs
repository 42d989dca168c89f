//! The threads of a trace: living ones by id, and the figures of ended ones. Memory is bounded by
//! the threads that live at once.

use std::collections::BTreeSet;

use super::super::Tid;
use super::super::summary::ThreadSummary;
use super::thread::{PartialWait, Tally, Thread};

/// Limits the listed threads to those with the most CPU time.
const MAX_LISTED: usize = 1_000;
/// Limits the distinct processes; beyond that their number is a lower bound.
const MAX_PROCESSES: usize = 1 << 20;
/// Limits the threads remembered as gone; beyond that any thread may be one of them.
const MAX_GONE: usize = 1 << 16;
/// Ids are not reused this soon; an ending thread comes back.
const COMES_BACK_NS: u64 = 1_000_000_000;

/// A thread that seems to be gone.
#[derive(Debug, Clone, Copy)]
struct Gone {
    since_ns: u64,
    is_own: bool,
}

/// The kernel's figures of threads beyond their events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hidden {
    pub(super) threads: u64,
    /// Threads whose switches were not counted.
    pub(super) uncounted: u64,
    pub(super) cpu_ns: u64,
    pub(super) waits: PartialWait,
    pub(super) doubtful_ns: u64,
}

/// All threads.
#[derive(Debug, Default)]
pub(super) struct Threads {
    slots: Vec<Option<Thread>>,
    free: Vec<usize>,
    by_tid: foldhash::HashMap<Tid, usize>,
    /// Ids of threads that are gone, and since when, unless reused since.
    gone: foldhash::HashMap<Tid, Option<Gone>>,
    listed: Vec<ThreadSummary>,
    left_out: u64,
    followed: u64,
    /// Of those, ended threads.
    pub(super) ended: u64,
    processes: BTreeSet<Tid>,
    /// Waits of threads that are gone.
    pub(super) waits: PartialWait,
    /// Threads of which events lack a notable part.
    pub(super) hidden: Hidden,
    /// All threads are followed, until one is named.
    pub(super) is_everyone: bool,
}

impl Threads {
    pub(super) fn new() -> Self {
        Self {
            is_everyone: true,
            ..Self::default()
        }
    }

    pub(super) fn slot(&self, tid: Tid) -> Option<usize> {
        self.by_tid.get(&tid).copied()
    }

    /// The thread's slot, made if it is new.
    pub(super) fn slot_or_new(&mut self, tid: Tid, time_ns: u64) -> usize {
        if let Some(&slot) = self.by_tid.get(&tid) {
            return slot;
        }
        let mut thread = Thread::new(tid, time_ns, false);
        // Without a beginning it is the thread that was thought to be gone.
        let gone = self.gone.get(&tid).copied().flatten();
        let gone = gone.filter(|gone| time_ns.saturating_sub(gone.since_ns) < COMES_BACK_NS);
        if let Some(gone) = gone {
            thread.is_back = true;
            thread.is_own = gone.is_own;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot] = Some(thread);
                slot
            }
            None => {
                self.slots.push(Some(thread));
                self.slots.len() - 1
            }
        };
        self.by_tid.insert(tid, slot);
        if self.is_everyone {
            self.follow(slot);
        }
        slot
    }

    /// Follows a thread from now on.
    pub(super) fn follow(&mut self, slot: usize) {
        let Some(thread) = self.slots[slot].as_mut() else {
            return;
        };
        if !std::mem::replace(&mut thread.is_own, true) {
            self.followed += u64::from(!thread.is_back);
            let process = thread.process;
            self.note_process(process);
        }
    }

    /// A thread with this id begins: earlier ones were other threads.
    pub(super) fn begin(&mut self, tid: Tid) {
        if let Some(gone) = self.gone.get_mut(&tid) {
            *gone = None;
        }
    }

    pub(super) fn note_process(&mut self, process: Option<Tid>) {
        if self.processes.len() < MAX_PROCESSES {
            self.processes.extend(process);
        }
    }

    pub(super) fn thread(&self, slot: usize) -> Option<&Thread> {
        self.slots.get(slot)?.as_ref()
    }

    pub(super) fn thread_mut(&mut self, slot: usize) -> Option<&mut Thread> {
        self.slots.get_mut(slot)?.as_mut()
    }

    /// Could the trace have mentioned this thread before? Otherwise it began during the trace, or
    /// another one with its id did and is gone.
    pub(super) fn may_be_known(&self, slot: usize) -> bool {
        let is_full = self.gone.len() >= MAX_GONE;
        self.thread(slot).is_some_and(|thread| {
            !thread.is_fresh || thread.was_born || is_full || self.gone.contains_key(&thread.tid)
        })
    }

    pub(super) fn is_own(&self, slot: usize) -> bool {
        self.thread(slot).is_some_and(|thread| thread.is_own)
    }

    /// Slots of all living threads.
    pub(super) fn living(&self) -> Vec<usize> {
        let is_there = |slot: &usize| self.slots[*slot].is_some();
        (0..self.slots.len()).filter(is_there).collect()
    }

    /// Unfollows all threads and clears all figures.
    pub(super) fn restart(&mut self, time_ns: u64) {
        self.is_everyone = false;
        self.followed = 0;
        self.ended = 0;
        self.processes.clear();
        self.listed.clear();
        self.left_out = 0;
        self.waits = PartialWait::default();
        self.hidden = Hidden::default();
        self.gone.values_mut().for_each(|gone| *gone = None);
        for thread in self.slots.iter_mut().flatten() {
            thread.is_own = false;
            thread.was_born = false;
            thread.since_ns = time_ns;
            thread.tally = Tally::default();
            thread.is_back = false;
            thread.looked_cpu_ns = (0, 0);
            if let Some(polled) = &mut thread.polled {
                polled.first = polled.last.clone();
            }
        }
    }

    /// A thread is gone: its id may be reused.
    pub(super) fn retire(
        &mut self,
        slot: usize,
        now_ns: u64,
        summary: impl FnOnce(&Thread) -> ThreadSummary,
    ) {
        let Some(thread) = self.slots[slot].take() else {
            return;
        };
        self.by_tid.remove(&thread.tid);
        if self.gone.len() < MAX_GONE || self.gone.contains_key(&thread.tid) {
            let gone = Gone {
                since_ns: now_ns,
                is_own: thread.is_own,
            };
            self.gone.insert(thread.tid, Some(gone));
        }
        self.free.push(slot);
        if !thread.is_own {
            return;
        }
        self.ended += u64::from(thread.is_ending && !thread.is_back);
        self.waits.add(thread.wait_so_far(now_ns));
        self.hidden.doubtful_ns += thread.cpu_so_far().doubtful_ns;
        if thread.is_hidden() {
            self.hidden.threads += 1;
            self.hidden.uncounted += u64::from(thread.counted_switches().is_none());
            self.hidden.cpu_ns += thread.cpu_so_far().unseen_ns;
            self.hidden.waits.add(thread.hidden_wait(now_ns));
        }
        self.list(summary(&thread), thread.is_back);
        if self.listed.len() >= 2 * MAX_LISTED {
            self.shorten();
        }
    }

    fn list(&mut self, summary: ThreadSummary, is_back: bool) {
        let earlier = is_back.then(|| {
            let mut listed = self.listed.iter_mut().rev();
            listed.find(|listed| listed.thread == summary.thread)
        });
        match earlier.flatten() {
            Some(earlier) => earlier.merge(summary),
            None => self.listed.push(summary),
        }
    }

    fn shorten(&mut self) {
        self.listed
            .sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.thread.cmp(&b.thread)));
        self.left_out += self.listed.len().saturating_sub(MAX_LISTED) as u64;
        self.listed.truncate(MAX_LISTED);
    }

    /// Followed threads, their processes.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.followed, self.processes.len() as u64)
    }

    /// Ended threads, the busiest first, and the number left out.
    pub(super) fn finish(mut self) -> (Vec<ThreadSummary>, u64) {
        self.shorten();
        (self.listed, self.left_out)
    }
}
