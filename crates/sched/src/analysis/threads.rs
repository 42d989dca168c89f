//! The threads of a trace: living ones by id, and the figures of ended ones. Memory grows with the
//! threads that live at the same time.

use std::collections::BTreeSet;

use super::super::Tid;
use super::super::other_programs::{OtherProgram, OtherPrograms};
use super::super::summary::ThreadSummary;
use super::thread::{PartialWait, Tally, Thread};

/// Limits the listed threads to those with the most CPU time.
const MAX_LISTED: usize = 1_000;
/// Limits the distinct processes; beyond that their number is a lower bound.
const MAX_PROCESSES: usize = 1 << 20;
/// Limits the ended threads whose ids are kept; beyond it any thread may be one of them.
const MAX_ENDED: usize = 1 << 16;
/// A thread with the id of one that ended less than this ago is the same thread: ids are not reused
/// so soon.
const COMES_BACK_NS: u64 = 1_000_000_000;

/// A thread that seems to have ended.
#[derive(Debug, Clone, Copy)]
struct EndedThread {
    since_ns: u64,
    is_own: bool,
}

/// Activity of threads that the kernel counted but events lack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hidden {
    pub(super) threads: u64,
    /// Of those, threads whose switches the kernel did not report.
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
    /// Ids of threads that have ended; `None` if another thread has the id by now.
    ended_by_tid: foldhash::HashMap<Tid, Option<EndedThread>>,
    listed: Vec<ThreadSummary>,
    left_out: u64,
    followed: u64,
    /// Of those, ended threads.
    pub(super) ended: u64,
    processes: BTreeSet<Tid>,
    /// Of those, processes that were started during the trace.
    started_processes: u64,
    /// Waits of threads that have ended.
    pub(super) waits: PartialWait,
    /// Threads whose events lack a notable part of their activity.
    pub(super) hidden: Hidden,
    /// Threads that are not followed, and have ended.
    others: OtherPrograms,
    /// All threads are followed, until the first [`EventKind::Follow`].
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

    /// The thread's slot; a thread that is not known is added.
    pub(super) fn slot_or_new(&mut self, tid: Tid, time_ns: u64) -> usize {
        if let Some(&slot) = self.by_tid.get(&tid) {
            return slot;
        }
        let mut thread = Thread::new(tid, time_ns, false);
        // Without an event of its start, it is the thread that seemed to have ended.
        let ended = self.ended_by_tid.get(&tid).copied().flatten();
        let ended = ended.filter(|ended| time_ns.saturating_sub(ended.since_ns) < COMES_BACK_NS);
        if let Some(ended) = ended {
            thread.is_back = true;
            thread.is_own = ended.is_own;
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
            let is_process = thread.process == Some(thread.tid);
            self.started_processes += u64::from(thread.was_born && is_process);
            let process = thread.process;
            self.note_process(process);
        }
    }

    /// Notes that a thread with this id starts: earlier ones with the id were other threads.
    pub(super) fn begin(&mut self, tid: Tid) {
        if let Some(ended) = self.ended_by_tid.get_mut(&tid) {
            *ended = None;
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

    /// May the trace have mentioned this thread, or an ended one with its id, before?
    pub(super) fn may_be_known(&self, slot: usize) -> bool {
        let is_full = self.ended_by_tid.len() >= MAX_ENDED;
        self.thread(slot).is_some_and(|thread| {
            !thread.is_fresh
                || thread.was_born
                || is_full
                || self.ended_by_tid.contains_key(&thread.tid)
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
        self.started_processes = 0;
        self.listed.clear();
        self.left_out = 0;
        self.waits = PartialWait::default();
        self.hidden = Hidden::default();
        self.others = OtherPrograms::default();
        self.ended_by_tid
            .values_mut()
            .for_each(|ended| *ended = None);
        for thread in self.slots.iter_mut().flatten() {
            thread.is_own = false;
            thread.was_born = false;
            thread.since_ns = time_ns;
            thread.tally = Tally::default();
            thread.is_back = false;
            thread.cpu_ns_at_first_poll = 0;
            thread.cpu_ns_at_last_poll = 0;
            if let Some(polled) = &mut thread.polled {
                polled.first = polled.last.clone();
            }
        }
    }

    /// Removes a thread that has ended, and keeps its summary.
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
        if self.ended_by_tid.len() < MAX_ENDED || self.ended_by_tid.contains_key(&thread.tid) {
            let ended = EndedThread {
                since_ns: now_ns,
                is_own: thread.is_own,
            };
            self.ended_by_tid.insert(thread.tid, Some(ended));
        }
        self.free.push(slot);
        if !thread.is_own {
            let name = self.name_of_process(&thread);
            self.others.add(&name, thread.tally.occupied_ns);
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
        self.add_to_list(summary(&thread), thread.is_back);
        if self.listed.len() >= 2 * MAX_LISTED {
            self.keep_busiest();
        }
    }

    /// The name of a thread's process; of the thread if that is not known.
    fn name_of_process(&self, thread: &Thread) -> Box<str> {
        let first = thread.process.and_then(|process| self.slot(process));
        let first = first.and_then(|slot| self.thread(slot));
        let named = first.filter(|first| !first.name.is_empty());
        named.map_or(&thread.name, |first| &first.name).clone()
    }

    fn add_to_list(&mut self, summary: ThreadSummary, is_back: bool) {
        let earlier = is_back.then(|| {
            let mut listed = self.listed.iter_mut().rev();
            listed.find(|listed| listed.thread == summary.thread)
        });
        match earlier.flatten() {
            Some(earlier) => earlier.merge(summary),
            None => self.listed.push(summary),
        }
    }

    fn keep_busiest(&mut self) {
        self.listed
            .sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.thread.cmp(&b.thread)));
        self.left_out += self.listed.len().saturating_sub(MAX_LISTED) as u64;
        self.listed.truncate(MAX_LISTED);
    }

    /// Numbers of followed threads, of their processes, and of those that were started during the
    /// trace.
    pub(super) fn counts(&self) -> [u64; 3] {
        let processes = self.processes.len() as u64;
        [self.followed, processes, self.started_processes]
    }

    /// Living threads without a name behind which followed threads were queued.
    pub(super) fn unnamed_others(&mut self) -> impl Iterator<Item = &mut Thread> {
        let living = self.slots.iter_mut().flatten();
        living.filter(|thread| thread.name.is_empty() && thread.tally.occupied_ns > 0)
    }

    /// Takes the threads that are not followed, the living ones included.
    pub(super) fn take_other_programs(&mut self) -> Vec<OtherProgram> {
        let living = self.slots.iter().flatten();
        let living = living.filter(|thread| !thread.is_own && thread.tally.occupied_ns > 0);
        let named = living.map(|one| (self.name_of_process(one), one.tally.occupied_ns));
        let named: Vec<(Box<str>, u64)> = named.collect();
        for (name, occupied_ns) in &named {
            self.others.add(name, *occupied_ns);
        }
        std::mem::take(&mut self.others).finish()
    }

    /// Ended threads, the busiest first, and the number left out.
    pub(super) fn finish(mut self) -> (Vec<ThreadSummary>, u64) {
        self.keep_busiest();
        (self.listed, self.left_out)
    }
}
