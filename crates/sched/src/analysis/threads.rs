//! The threads of a trace: those that live, by number, and what became of
//! those that ended. Memory is bounded by the threads that live at once.

use std::collections::BTreeSet;

use super::super::summary::{Causes, ThreadSummary};
use super::super::{Migrations, Tid};
use super::{looks::Polled, queues::Mark};

/// Threads listed one by one; of more, those with the most CPU time.
const MOST_LISTED: usize = 1_000;
/// Processes distinguished; beyond that their number is a lower bound.
const MOST_PROCESSES: usize = 1 << 20;
/// Threads remembered as gone; beyond that each may be one of them.
const MOST_GONE: usize = 1 << 16;
/// Numbers do not come again so soon; a thread on its way out does.
const COMES_BACK_NS: u64 = 1_000_000_000;

/// Events may lack so much of a thread's CPU time, and one part in so many: looks
/// are not quite of the moment of the trace's end.
const HIDDEN_NS: u64 = 1_000_000;
const HIDDEN_SHARE: u64 = 33;
/// What the kernel reports of a thread as it ends is of its last tick, and who was
/// there before the trace may be looked at for the first time this late.
const LATE_END_NS: u64 = 10_000_000;
const LATE_LOOK_NS: u64 = 50_000_000;

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing is known.
    Unknown,
    /// It waits for something.
    Blocked,
    /// It is queued.
    Queued(Queued),
    /// It is on a CPU.
    Running {
        /// Which.
        cpu: u32,
    },
}

/// A thread in a run queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queued {
    /// Since when.
    pub(super) since_ns: u64,
    /// Was it preempted, and not woken?
    pub(super) is_preempted: bool,
    /// Where it waits.
    pub(super) place: Place,
    /// Causes of the part of this wait before it came to this place.
    pub(super) before: Causes,
}

/// Where a queued thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On this CPU; nobody knows what the others do.
    Unreported(u32),
    /// On an idle CPU that is about to start it.
    Starting(u32),
    /// Behind others.
    Behind(Mark),
}

/// A thread that lives.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) tid: Tid,
    pub(super) process: Option<Tid>,
    pub(super) name: Box<str>,
    pub(super) is_own: bool,
    /// No switch of it was seen yet.
    pub(super) is_fresh: bool,
    /// It has begun to end.
    pub(super) is_ending: bool,
    /// Did it begin during the trace?
    pub(super) was_born: bool,
    pub(super) state: State,
    /// Number of its mask; `None`: unknown.
    pub(super) mask: Option<usize>,
    pub(super) last_cpu: Option<u32>,
    pub(super) since_ns: u64,
    pub(super) tally: Tally,
    /// First and latest look at it by polling.
    pub(super) polled: Option<Box<Polled>>,
    /// When it was looked at last.
    pub(super) polled_ns: Option<u64>,
    /// Its CPU time by events at its first and latest look.
    pub(super) looked_cpu_ns: (u64, u64),
    /// It was thought to be gone, and was reported.
    is_back: bool,
}

/// What is counted of a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) cpu_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) switches: u64,
    pub(super) preemptions: u64,
    pub(super) migrations: Migrations,
    pub(super) shared_ns: u64,
    pub(super) cpus: Vec<(u32, u64)>,
    /// Its place among the threads of the timeline's slices.
    pub(super) place: Option<u32>,
}

impl Tally {
    /// This long on this CPU.
    pub(super) fn ran(&mut self, cpu: u32, ns: u64) {
        self.cpu_ns += ns;
        match self.cpus.iter().position(|(other, _)| *other == cpu) {
            Some(at) => {
                self.cpus[at].1 += ns;
                // The CPU it is on is asked for again.
                if at > 3 {
                    self.cpus.swap(0, at);
                }
            }
            None => self.cpus.push((cpu, ns)),
        }
    }
}

impl Thread {
    fn new(tid: Tid, time_ns: u64, is_own: bool) -> Self {
        Self {
            tid,
            process: None,
            name: "".into(),
            is_own,
            is_fresh: true,
            is_ending: false,
            was_born: false,
            state: State::Unknown,
            mask: None,
            last_cpu: None,
            since_ns: time_ns,
            tally: Tally::default(),
            polled: None,
            polled_ns: None,
            looked_cpu_ns: (0, 0),
            is_back: false,
        }
    }

    /// Time queued where wake-ups are not seen: the kernel's figure, or the waits
    /// that were seen where those are longer.
    pub(super) fn wait_so_far(&self, now_ns: u64) -> PartialWait {
        let polled_ns = self.polled_wait_ns();
        let looked_ns = self.polled_ns.unwrap_or(self.since_ns);
        let is_whole = self.polled.as_deref().is_some_and(|p| p.last.is_last);
        PartialWait {
            is_reported: polled_ns.is_some(),
            ns: polled_ns.unwrap_or(0).max(self.tally.wait_ns),
            unseen_ns: if is_whole {
                0
            } else {
                now_ns.saturating_sub(looked_ns)
            },
        }
    }

    /// CPU time where switches are seen. The kernel's own account is the better
    /// one: it has what a thread did while no event of it came, and lacks what a
    /// hypervisor took from the CPU while the thread was on it.
    pub(super) fn cpu_so_far(&self) -> PartialCpu {
        let by_events_ns = self.tally.cpu_ns;
        let Some(Polled { first, last, .. }) = self.polled.as_deref() else {
            return PartialCpu {
                ns: by_events_ns,
                unseen_ns: 0,
                doubtful_ns: 0,
            };
        };
        let (before_ns, looked_ns) = self.looked_cpu_ns;
        let counted_ns = if self.was_born {
            last.run_ns
        } else {
            before_ns.saturating_add(last.run_ns.saturating_sub(first.run_ns))
        };
        // Who ends runs on for a while after the kernel's report of it.
        let later_ns = if last.is_last && !self.is_ending {
            0
        } else {
            by_events_ns.saturating_sub(looked_ns)
        };
        let whole_ns = counted_ns.saturating_add(later_ns);
        let late_ns = if self.was_born {
            LATE_END_NS
        } else {
            LATE_LOOK_NS
        };
        let is_whole = last.is_last && !self.is_back;
        let is_too_much = is_whole && by_events_ns > whole_ns.saturating_add(late_ns);
        let ns = if is_too_much { whole_ns } else { by_events_ns };
        PartialCpu {
            ns: ns.max(counted_ns),
            unseen_ns: counted_ns.saturating_sub(by_events_ns),
            doubtful_ns: match is_whole && !self.was_born {
                true => ns.max(counted_ns).saturating_sub(whole_ns),
                false => 0,
            },
        }
    }

    /// Is a notable part of what it did missing in the events?
    pub(super) fn is_hidden(&self) -> bool {
        let cpu = self.cpu_so_far();
        cpu.unseen_ns > HIDDEN_NS.max(cpu.ns / HIDDEN_SHARE)
    }

    /// How much longer it was queued than events show, where they lack a notable
    /// part of it.
    pub(super) fn hidden_wait(&self, now_ns: u64) -> PartialWait {
        if !self.is_hidden() {
            return PartialWait::default();
        }
        let waited = self.wait_so_far(now_ns);
        PartialWait {
            ns: waited.ns.saturating_sub(self.tally.wait_ns),
            ..waited
        }
    }

    /// Time queued as the kernel counts it, since the trace began.
    fn polled_wait_ns(&self) -> Option<u64> {
        let Polled { first, last, .. } = self.polled.as_deref()?;
        let before = if self.was_born {
            0
        } else {
            first.wait_ns.unwrap_or(0)
        };
        Some(last.wait_ns?.saturating_sub(before))
    }
}

/// CPU time, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartialCpu {
    pub(super) ns: u64,
    /// Of that, what events lack.
    pub(super) unseen_ns: u64,
    /// Of that, what events have beyond the kernel's account of a thread that was
    /// there before the trace.
    pub(super) doubtful_ns: u64,
}

/// Time queued, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PartialWait {
    /// The kernel reported something of it.
    pub(super) is_reported: bool,
    pub(super) ns: u64,
    /// At most this much is missing.
    pub(super) unseen_ns: u64,
}

impl PartialWait {
    /// Less than this share is missing, and it counts as known: 1 in this many.
    const NEGLIGIBLE: u64 = 50;

    pub(super) const fn add(&mut self, other: Self) {
        self.is_reported |= other.is_reported;
        self.ns = self.ns.saturating_add(other.ns);
        self.unseen_ns = self.unseen_ns.saturating_add(other.unseen_ns);
    }

    /// Is it more than a negligible part of that?
    pub(super) const fn is_notable_in(&self, whole_ns: u64) -> bool {
        self.ns > whole_ns / Self::NEGLIGIBLE
    }

    pub(super) const fn is_lower_bound(&self) -> bool {
        self.unseen_ns > self.ns / Self::NEGLIGIBLE
    }
}

/// A thread that seems to be gone.
#[derive(Debug, Clone, Copy)]
struct Gone {
    since_ns: u64,
    is_own: bool,
}

/// What the kernel counted of threads beyond their events.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hidden {
    pub(super) threads: u64,
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
    /// Numbers of threads that are gone, and since when, unless the number has
    /// come again since.
    gone: foldhash::HashMap<Tid, Option<Gone>>,
    listed: Vec<ThreadSummary>,
    left_out: u64,
    followed: u64,
    processes: BTreeSet<Tid>,
    /// Of those that are gone.
    pub(super) waits: PartialWait,
    /// Of those of which events lack a notable part.
    pub(super) hidden: Hidden,
    /// Threads are followed whoever they are, until one is named.
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

    /// The thread's slot; it is made where it was not heard of.
    pub(super) fn slot_or_new(&mut self, tid: Tid, time_ns: u64) -> usize {
        if let Some(&slot) = self.by_tid.get(&tid) {
            return slot;
        }
        let mut thread = Thread::new(tid, time_ns, false);
        // Without a beginning it is the one that was thought to be gone.
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

    /// From now on it is one of those that the trace is about.
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

    /// A thread of this number begins: those before it are others.
    pub(super) fn begin(&mut self, tid: Tid) {
        if let Some(gone) = self.gone.get_mut(&tid) {
            *gone = None;
        }
    }

    pub(super) fn note_process(&mut self, process: Option<Tid>) {
        if self.processes.len() < MOST_PROCESSES {
            self.processes.extend(process);
        }
    }

    pub(super) fn of(&self, slot: usize) -> Option<&Thread> {
        self.slots.get(slot)?.as_ref()
    }

    pub(super) fn of_mut(&mut self, slot: usize) -> Option<&mut Thread> {
        self.slots.get_mut(slot)?.as_mut()
    }

    /// May the trace have mentioned this thread before? Or it began during the
    /// trace, or another of its number did and is gone.
    pub(super) fn may_be_known(&self, slot: usize) -> bool {
        let is_full = self.gone.len() >= MOST_GONE;
        self.of(slot).is_some_and(|thread| {
            !thread.is_fresh || thread.was_born || is_full || self.gone.contains_key(&thread.tid)
        })
    }

    pub(super) fn is_own(&self, slot: usize) -> bool {
        self.of(slot).is_some_and(|thread| thread.is_own)
    }

    /// Slots of all that live.
    pub(super) fn living(&self) -> Vec<usize> {
        let is_there = |slot: &usize| self.slots[*slot].is_some();
        (0..self.slots.len()).filter(is_there).collect()
    }

    /// Nobody counts as followed any more, and nothing as counted.
    pub(super) fn restart(&mut self, time_ns: u64) {
        self.is_everyone = false;
        self.followed = 0;
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

    /// A thread is gone: its number may come again.
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
        if self.gone.len() < MOST_GONE || self.gone.contains_key(&thread.tid) {
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
        self.waits.add(thread.wait_so_far(now_ns));
        self.hidden.doubtful_ns += thread.cpu_so_far().doubtful_ns;
        if thread.is_hidden() {
            self.hidden.threads += 1;
            self.hidden.cpu_ns += thread.cpu_so_far().unseen_ns;
            self.hidden.waits.add(thread.hidden_wait(now_ns));
        }
        self.list(summary(&thread), thread.is_back);
        if self.listed.len() >= 2 * MOST_LISTED {
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
        self.left_out += self.listed.len().saturating_sub(MOST_LISTED) as u64;
        self.listed.truncate(MOST_LISTED);
    }

    /// Followed threads, their processes.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.followed, self.processes.len() as u64)
    }

    /// Those that ended, the busiest first, and how many are left out.
    pub(super) fn finish(mut self) -> (Vec<ThreadSummary>, u64) {
        self.shorten();
        (self.listed, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_of_crafted_traces_saturate() {
        let long = PartialWait {
            is_reported: true,
            ns: u64::MAX - 1,
            unseen_ns: u64::MAX - 1,
        };
        let mut wait = long;
        wait.add(long);
        assert_eq!((wait.ns, wait.unseen_ns), (u64::MAX, u64::MAX));
        assert!(wait.is_lower_bound());
    }
}
