//! Matches threads that wait in run queues with CPUs that are idle meanwhile.
//!
//! A free CPU can run one thread, however many wait. It is matched with one of them: the one that
//! has waited longest among those that may use the CPU. The cause of that part of the wait is the
//! scheduler. A free CPU that no waiting thread may use is matched with any other waiting thread,
//! whose mask is then the cause. So both causes together never exceed the time that CPUs were free.
//!
//! Matches change only when a thread begins or ends a wait, or when a CPU becomes free or busy.

mod idle_waiting;

use std::collections::{BTreeMap, BTreeSet};

use super::super::summary::{IdleWaiting, WaitCauseTotals};
use super::condition_time::ConditionTime;
use pinwise_topology::CpuSet;

/// Limits the distinct masks; threads with further masks count as allowed everywhere.
const MAX_MASKS: usize = 1024;

#[derive(Debug)]
struct Mask {
    cpus: CpuSet,
    /// Threads that wait with this mask and are not matched with a CPU in it, longest first.
    without_allowed_cpu: BTreeSet<WaitKey>,
}

/// Start of a thread's wait, ns, and the thread's slot: orders waits, longest first.
type WaitKey = (u64, usize);

#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    is_free: bool,
    /// Slot of the matched thread.
    matched: Option<usize>,
    /// Time in which it runs a thread that is not followed.
    foreign: ConditionTime,
    /// Followed threads queued on it.
    queued: u32,
    /// It runs a followed thread.
    runs_own: bool,
    /// Time in which followed threads are queued on it and it runs none of them.
    occupied: ConditionTime,
    /// The part of it that was taken already, ns.
    taken_ns: u64,
}

/// Why a thread waits although a CPU is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FreeCpuCause {
    Scheduler,
    Mask,
}

/// The part of a wait during which the thread is matched with a free CPU for one cause.
#[derive(Debug, Clone, Copy)]
struct MatchedPart {
    cause: FreeCpuCause,
    since_ns: u64,
    /// Foreign time of the thread's CPU at the start of this part.
    foreign_ns: u64,
}

#[derive(Debug, Clone, Copy)]
struct WaitingThread {
    since_ns: u64,
    /// The CPU on which it is queued.
    cpu: u32,
    /// Index of its mask.
    mask: usize,
    /// The matched free CPU.
    matched: Option<(usize, FreeCpuCause)>,
    part: Option<MatchedPart>,
    /// Foreign time of its CPU when it began to wait.
    foreign_before_ns: u64,
    /// Foreign time of its CPU during its matched parts.
    foreign_matched_ns: u64,
    scheduler_ns: u64,
    mask_ns: u64,
    /// Episodes of this wait so far; they count only if its end is seen.
    episodes: IdleWaiting,
}

/// Identifies a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WaitStart {
    since_ns: u64,
    cpu: u32,
}

impl WaitStart {
    /// The CPU on which the thread is queued.
    pub(super) const fn cpu(&self) -> u32 {
        self.cpu
    }
}

#[derive(Debug)]
pub(super) struct Queues {
    masks: Vec<Mask>,
    mask_indices: BTreeMap<CpuSet, usize>,
    /// By CPU, the masks that contain it.
    masks_with: Vec<Vec<usize>>,
    cpus: Vec<Cpu>,
    /// Free CPUs without a match.
    unmatched: CpuSet,
    /// Free CPUs matched with a thread that may not use them.
    matched_with_forbidden: CpuSet,
    /// Waiting threads, by slot.
    waiting: Vec<Option<WaitingThread>>,
    /// Waiting threads without a match, longest first.
    without_match: BTreeSet<WaitKey>,
    episodes: IdleWaiting,
}

impl Queues {
    pub(super) fn new(online: &CpuSet) -> Self {
        let length = online.last().map_or(0, |last| last + 1);
        let mut queues = Self {
            masks: Vec::new(),
            mask_indices: BTreeMap::new(),
            masks_with: vec![Vec::new(); length],
            cpus: vec![Cpu::default(); length],
            unmatched: CpuSet::new(),
            matched_with_forbidden: CpuSet::new(),
            waiting: Vec::new(),
            without_match: BTreeSet::new(),
            episodes: IdleWaiting::default(),
        };
        queues.add_mask(online);
        queues
    }

    /// Adds a mask if it is new; returns its index, and whether it was added.
    pub(super) fn add_mask(&mut self, cpus: &CpuSet) -> (usize, bool) {
        if let Some(&index) = self.mask_indices.get(cpus) {
            return (index, false);
        }
        if self.masks.len() == MAX_MASKS {
            return (0, false);
        }
        let index = self.masks.len();
        for cpu in cpus.iter().filter(|&cpu| cpu < self.cpus.len()) {
            self.masks_with[cpu].push(index);
        }
        self.masks.push(Mask {
            cpus: cpus.clone(),
            without_allowed_cpu: BTreeSet::new(),
        });
        self.mask_indices.insert(cpus.clone(), index);
        (index, true)
    }

    pub(super) fn cpus_of(&self, mask: usize) -> &CpuSet {
        &self.masks[mask].cpus
    }

    /// Clears all sums, but keeps the state of threads and CPUs.
    pub(super) fn restart(&mut self, time_ns: u64) {
        self.episodes = IdleWaiting::default();
        for cpu in &mut self.cpus {
            cpu.occupied.restart(time_ns);
            cpu.taken_ns = 0;
        }
    }

    /// A followed thread joins the queue of a CPU (`is_queued`) or leaves it.
    pub(super) fn set_queued(&mut self, cpu: u32, is_queued: bool, time_ns: u64) {
        if let Some(entry) = self.cpus.get_mut(cpu as usize) {
            entry.queued = match is_queued {
                true => entry.queued + 1,
                false => entry.queued.saturating_sub(1),
            };
            entry
                .occupied
                .set(entry.queued > 0 && !entry.runs_own, time_ns);
        }
    }

    /// Sets whether a CPU runs a followed thread.
    pub(super) fn set_own(&mut self, cpu: u32, runs_own: bool, time_ns: u64) {
        if let Some(entry) = self.cpus.get_mut(cpu as usize) {
            entry.runs_own = runs_own;
            entry.occupied.set(entry.queued > 0 && !runs_own, time_ns);
        }
    }

    /// The time since the last call in which followed threads were queued on the CPU while none of
    /// them ran, ns.
    pub(super) fn take_occupied_ns(&mut self, cpu: u32, time_ns: u64) -> u64 {
        let Some(entry) = self.cpus.get_mut(cpu as usize) else {
            return 0;
        };
        let total_ns = entry.occupied.total_ns(time_ns);
        total_ns - std::mem::replace(&mut entry.taken_ns, total_ns)
    }

    /// Time of CPUs on which followed threads were queued while none of them ran, ns.
    pub(super) fn occupied_ns(&self, time_ns: u64) -> u64 {
        self.cpus
            .iter()
            .map(|cpu| cpu.occupied.total_ns(time_ns))
            .sum()
    }

    /// Sets whether a CPU runs a thread that is not followed.
    pub(super) fn set_foreign(&mut self, cpu: u32, is_foreign: bool, time_ns: u64) {
        if let Some(entry) = self.cpus.get_mut(cpu as usize) {
            entry.foreign.set(is_foreign, time_ns);
        }
    }

    fn foreign_ns(&self, cpu: u32, time_ns: u64) -> u64 {
        let entry = self.cpus.get(cpu as usize);
        entry.map_or(0, |entry| entry.foreign.total_ns(time_ns))
    }

    /// Sets whether a CPU is free: it is idle and about to start no thread.
    pub(super) fn set_free(&mut self, cpu: u32, is_free: bool, time_ns: u64) {
        let at = cpu as usize;
        let Some(entry) = self.cpus.get_mut(at) else {
            return;
        };
        if entry.is_free == is_free {
            return;
        }
        entry.is_free = is_free;
        if is_free {
            self.unmatched.insert(at);
            self.match_free_cpu(at, time_ns);
            return;
        }
        self.unmatched.remove(at);
        if let Some(slot) = entry.matched {
            self.unmatch(slot);
            self.unmatched.remove(at);
            self.match_thread(slot, time_ns);
        }
    }

    pub(super) fn start_wait(
        &mut self,
        slot: usize,
        mask: usize,
        cpu: u32,
        time_ns: u64,
    ) -> WaitStart {
        if slot >= self.waiting.len() {
            self.waiting.resize(slot + 1, None);
        }
        self.waiting[slot] = Some(WaitingThread {
            since_ns: time_ns,
            cpu,
            mask,
            matched: None,
            part: None,
            foreign_before_ns: self.foreign_ns(cpu, time_ns),
            foreign_matched_ns: 0,
            scheduler_ns: 0,
            mask_ns: 0,
            episodes: IdleWaiting::default(),
        });
        self.masks[mask].without_allowed_cpu.insert((time_ns, slot));
        self.without_match.insert((time_ns, slot));
        self.match_thread(slot, time_ns);
        WaitStart {
            since_ns: time_ns,
            cpu,
        }
    }

    /// Ends a wait; returns its causes. `could_run`: an idle CPU could have run the thread.
    pub(super) fn end_wait(
        &mut self,
        slot: usize,
        wait: WaitStart,
        could_run: bool,
        time_ns: u64,
    ) -> WaitCauseTotals {
        let (causes, episodes) = self.remove_counted(slot, wait, time_ns);
        if could_run {
            self.episodes.add(episodes);
        }
        causes
    }

    /// Continues a wait with another mask; returns the causes until now.
    pub(super) fn change_mask(
        &mut self,
        slot: usize,
        wait: WaitStart,
        mask: usize,
        time_ns: u64,
    ) -> (WaitCauseTotals, WaitStart) {
        let (causes, episodes) = self.remove_counted(slot, wait, time_ns);
        let wait = self.start_wait(slot, mask, wait.cpu, time_ns);
        if let Some(Some(waiting)) = self.waiting.get_mut(slot) {
            waiting.episodes.add(episodes);
        }
        (causes, wait)
    }

    /// Removes a waiting thread; returns the causes and the episodes of its wait.
    fn remove_counted(
        &mut self,
        slot: usize,
        wait: WaitStart,
        time_ns: u64,
    ) -> (WaitCauseTotals, IdleWaiting) {
        self.end_matched_part(slot, time_ns);
        let total = time_ns.saturating_sub(wait.since_ns);
        let Some(waiting) = self.remove(slot, time_ns) else {
            let causes = WaitCauseTotals {
                own: total,
                ..WaitCauseTotals::default()
            };
            return (causes, IdleWaiting::default());
        };
        let scheduler = waiting.scheduler_ns.min(total);
        let mask = waiting.mask_ns.min(total - scheduler);
        let without_free_cpu = total - scheduler - mask;
        let foreign = self.foreign_ns(wait.cpu, time_ns) - waiting.foreign_before_ns;
        let others = foreign
            .saturating_sub(waiting.foreign_matched_ns)
            .min(without_free_cpu);
        let causes = WaitCauseTotals {
            scheduler,
            mask,
            others,
            own: without_free_cpu - others,
            ..WaitCauseTotals::default()
        };
        (causes, waiting.episodes)
    }

    /// Drops a wait whose end is unknown.
    pub(super) fn drop_wait(&mut self, slot: usize, time_ns: u64) {
        self.remove(slot, time_ns);
    }

    pub(super) const fn episodes(&self) -> IdleWaiting {
        self.episodes
    }

    /// Removes a waiting thread; matches its CPU with another one.
    fn remove(&mut self, slot: usize, time_ns: u64) -> Option<WaitingThread> {
        let matched = self.unmatch(slot);
        let waiting = self.waiting.get_mut(slot)?.take()?;
        let key = (waiting.since_ns, slot);
        self.masks[waiting.mask].without_allowed_cpu.remove(&key);
        self.without_match.remove(&key);
        if let Some(cpu) = matched {
            self.match_free_cpu(cpu, time_ns);
        }
        Some(waiting)
    }

    fn set_match(&mut self, slot: usize, cpu: usize, cause: FreeCpuCause) {
        let Some(Some(waiting)) = self.waiting.get_mut(slot) else {
            return;
        };
        waiting.matched = Some((cpu, cause));
        let key = (waiting.since_ns, slot);
        self.without_match.remove(&key);
        match cause {
            FreeCpuCause::Scheduler => {
                self.masks[waiting.mask].without_allowed_cpu.remove(&key);
            }
            FreeCpuCause::Mask => {
                self.matched_with_forbidden.insert(cpu);
            }
        }
        self.unmatched.remove(cpu);
        self.cpus[cpu].matched = Some(slot);
    }

    /// Undoes a match and returns its CPU.
    fn unmatch(&mut self, slot: usize) -> Option<usize> {
        let waiting = self.waiting.get_mut(slot)?.as_mut()?;
        let (cpu, cause) = waiting.matched.take()?;
        let key = (waiting.since_ns, slot);
        self.without_match.insert(key);
        if cause == FreeCpuCause::Scheduler {
            self.masks[waiting.mask].without_allowed_cpu.insert(key);
        }
        self.matched_with_forbidden.remove(cpu);
        self.unmatched.insert(cpu);
        self.cpus[cpu].matched = None;
        Some(cpu)
    }

    /// Matches an unmatched free CPU with the thread that has waited longest, if any.
    fn match_free_cpu(&mut self, cpu: usize, time_ns: u64) {
        let mut free = Some(cpu);
        // The thread may have been matched with another CPU, which then needs a thread itself.
        while let Some(cpu) = free.take() {
            let masks = self.masks_with[cpu].iter().map(|&mask| &self.masks[mask]);
            let allowed = masks
                .filter_map(|mask| mask.without_allowed_cpu.first())
                .min();
            let (slot, cause) = match (allowed, self.without_match.first()) {
                (Some(&(_, slot)), _) => (slot, FreeCpuCause::Scheduler),
                (None, Some(&(_, slot))) => (slot, FreeCpuCause::Mask),
                (None, None) => return,
            };
            free = self.unmatch(slot);
            self.set_match(slot, cpu, cause);
            self.start_matched_part(slot, time_ns);
        }
    }

    /// Matches an unmatched thread with a free CPU, if any.
    fn match_thread(&mut self, slot: usize, time_ns: u64) {
        let Some(Some(waiting)) = self.waiting.get(slot) else {
            return;
        };
        let cpus = &self.masks[waiting.mask].cpus;
        let allowed = self.unmatched.intersection(cpus).first();
        if let Some(cpu) = allowed {
            self.set_match(slot, cpu, FreeCpuCause::Scheduler);
        } else if let Some(cpu) = self.matched_with_forbidden.intersection(cpus).first() {
            let other = self.cpus[cpu].matched;
            if let Some(other) = other {
                self.unmatch(other);
            }
            self.set_match(slot, cpu, FreeCpuCause::Scheduler);
            if let Some(other) = other {
                // No CPU that it may use is free, or it would be matched with one.
                if let Some(cpu) = self.unmatched.first() {
                    self.set_match(other, cpu, FreeCpuCause::Mask);
                }
                self.start_matched_part(other, time_ns);
            }
        } else if let Some(cpu) = self.unmatched.first() {
            self.set_match(slot, cpu, FreeCpuCause::Mask);
        }
        self.start_matched_part(slot, time_ns);
    }

    /// Starts another part of a wait if the cause of the thread's match has changed.
    fn start_matched_part(&mut self, slot: usize, time_ns: u64) {
        let Some(Some(waiting)) = self.waiting.get(slot) else {
            return;
        };
        let cause = waiting.matched.map(|(_, cause)| cause);
        if waiting.part.map(|part| part.cause) == cause {
            return;
        }
        let foreign_ns = self.foreign_ns(waiting.cpu, time_ns);
        self.end_matched_part(slot, time_ns);
        if let Some(Some(waiting)) = self.waiting.get_mut(slot) {
            waiting.part = cause.map(|cause| MatchedPart {
                cause,
                since_ns: time_ns,
                foreign_ns,
            });
        }
    }

    fn end_matched_part(&mut self, slot: usize, time_ns: u64) {
        let Some(Some(waiting)) = self.waiting.get(slot) else {
            return;
        };
        let foreign_ns = self.foreign_ns(waiting.cpu, time_ns);
        let Some(Some(waiting)) = self.waiting.get_mut(slot) else {
            return;
        };
        let Some(part) = waiting.part.take() else {
            return;
        };
        let length = time_ns.saturating_sub(part.since_ns);
        waiting.foreign_matched_ns += foreign_ns - part.foreign_ns;
        match part.cause {
            FreeCpuCause::Scheduler => waiting.scheduler_ns += length,
            FreeCpuCause::Mask => waiting.mask_ns += length,
        }
        waiting.episodes.add_part(length, part.cause);
    }
}

#[cfg(test)]
mod tests;
