//! Which threads wait in run queues, and which CPUs idle meanwhile.
//!
//! A free CPU could have run one thread, however many wait: it is matched with one of them, the one
//! that has waited longest of those that may use it. That part of a wait is the scheduler's doing.
//! Free CPUs that no waiting thread may use are matched with other threads, whose mask is then the
//! cause. So both causes together never exceed the time that CPUs were free.
//!
//! A waiting thread costs nothing: matches change only when a thread comes or goes, or a CPU
//! becomes free or busy.

use std::collections::{BTreeMap, BTreeSet};

use super::super::summary::{EPISODE_NS, IdleWaiting, WaitCauseTotals};
use pinwise_topology::CpuSet;

/// Limits the distinct masks; threads with further masks count as allowed everywhere.
const MAX_MASKS: usize = 1024;

/// A condition over time: its duration so far, and since when it holds.
#[derive(Debug, Clone, Copy, Default)]
struct Spell {
    holds_since: Option<u64>,
    sum_ns: u64,
}

impl Spell {
    fn set(&mut self, holds: bool, time_ns: u64) {
        match (self.holds_since, holds) {
            (None, true) => self.holds_since = Some(time_ns),
            (Some(since), false) => {
                self.sum_ns += time_ns.saturating_sub(since);
                self.holds_since = None;
            }
            _ => {}
        }
    }

    const fn held_until(&self, time_ns: u64) -> u64 {
        match self.holds_since {
            Some(since) => self.sum_ns + time_ns.saturating_sub(since),
            None => self.sum_ns,
        }
    }
}

#[derive(Debug)]
struct Mask {
    cpus: CpuSet,
    /// Threads that wait with this mask without a free CPU in it, longest first.
    unserved: BTreeSet<Turn>,
}

/// Start of a thread's wait, and its slot.
type Turn = (u64, usize);

/// A CPU as waiting threads see it.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    is_free: bool,
    /// The matched thread.
    holder: Option<usize>,
    /// It runs a foreign thread.
    foreign: Spell,
    /// Followed threads queued on it, and whether it runs one.
    queued: u32,
    runs_own: bool,
    /// Followed threads are queued on it, and it runs none of them.
    held: Spell,
}

/// The cause that a thread waits while a CPU is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FreeCpuCause {
    Scheduler,
    Mask,
}

/// A part of a wait with a free CPU.
#[derive(Debug, Clone, Copy)]
struct Chance {
    whose: FreeCpuCause,
    since_ns: u64,
    /// Foreign time of its CPU in that part.
    foreign_ns: u64,
}

/// A waiting thread.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    since_ns: u64,
    cpu: u32,
    mask: usize,
    /// The matched free CPU.
    matched: Option<(usize, FreeCpuCause)>,
    chance: Option<Chance>,
    /// Foreign time of its CPU when it began to wait, and during its chances.
    foreign_before_ns: u64,
    foreign_beside_ns: u64,
    scheduler_ns: u64,
    mask_ns: u64,
    /// Episodes of this wait so far; they count once its end is seen.
    episodes: IdleWaiting,
}

/// A wait that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    since_ns: u64,
    cpu: u32,
}

impl Mark {
    /// The CPU the thread is queued on.
    pub(super) const fn cpu(&self) -> u32 {
        self.cpu
    }
}

#[derive(Debug)]
pub(super) struct Queues {
    masks: Vec<Mask>,
    by_cpus: BTreeMap<CpuSet, usize>,
    /// Masks that contain a CPU.
    holders: Vec<Vec<usize>>,
    cpus: Vec<Cpu>,
    /// Free CPUs without a match, and those matched with a thread that may not use them.
    spare: CpuSet,
    lent: CpuSet,
    /// Waiting threads, by slot.
    waiting: Vec<Option<Waiting>>,
    /// Threads without a match, longest first.
    alone: BTreeSet<Turn>,
    episodes: IdleWaiting,
}

impl Queues {
    pub(super) fn new(online: &CpuSet) -> Self {
        let length = online.last().map_or(0, |last| last + 1);
        let mut queues = Self {
            masks: Vec::new(),
            by_cpus: BTreeMap::new(),
            holders: vec![Vec::new(); length],
            cpus: vec![Cpu::default(); length],
            spare: CpuSet::new(),
            lent: CpuSet::new(),
            waiting: Vec::new(),
            alone: BTreeSet::new(),
            episodes: IdleWaiting::default(),
        };
        queues.mask_number(online);
        queues
    }

    /// Number of a mask, and whether it is new.
    pub(super) fn mask_number(&mut self, cpus: &CpuSet) -> (usize, bool) {
        if let Some(&index) = self.by_cpus.get(cpus) {
            return (index, false);
        }
        if self.masks.len() == MAX_MASKS {
            return (0, false);
        }
        let index = self.masks.len();
        for cpu in cpus.iter().filter(|&cpu| cpu < self.cpus.len()) {
            self.holders[cpu].push(index);
        }
        self.masks.push(Mask {
            cpus: cpus.clone(),
            unserved: BTreeSet::new(),
        });
        self.by_cpus.insert(cpus.clone(), index);
        (index, true)
    }

    pub(super) fn cpus_of(&self, mask: usize) -> &CpuSet {
        &self.masks[mask].cpus
    }

    /// Clears the counted episodes.
    pub(super) fn restart(&mut self, time_ns: u64) {
        self.episodes = IdleWaiting::default();
        for cpu in &mut self.cpus {
            cpu.held = Spell {
                holds_since: cpu.held.holds_since.map(|_| time_ns),
                sum_ns: 0,
            };
        }
    }

    /// A followed thread joins or leaves the queue of a CPU.
    pub(super) fn set_queued(&mut self, cpu: u32, comes: bool, time_ns: u64) {
        if let Some(entry) = self.cpus.get_mut(cpu as usize) {
            entry.queued = match comes {
                true => entry.queued + 1,
                false => entry.queued.saturating_sub(1),
            };
            entry.held.set(entry.queued > 0 && !entry.runs_own, time_ns);
        }
    }

    /// Sets whether a CPU runs a followed thread.
    pub(super) fn set_own(&mut self, cpu: u32, runs_own: bool, time_ns: u64) {
        if let Some(entry) = self.cpus.get_mut(cpu as usize) {
            entry.runs_own = runs_own;
            entry.held.set(entry.queued > 0 && !runs_own, time_ns);
        }
    }

    /// Time of CPUs on which followed threads were queued while none of them ran.
    pub(super) fn held_ns(&self, time_ns: u64) -> u64 {
        self.cpus
            .iter()
            .map(|cpu| cpu.held.held_until(time_ns))
            .sum()
    }

    /// A foreign thread arrives on a CPU, or leaves it.
    pub(super) fn set_foreign(&mut self, cpu: u32, is_foreign: bool, time_ns: u64) {
        if let Some(entry) = self.cpus.get_mut(cpu as usize) {
            entry.foreign.set(is_foreign, time_ns);
        }
    }

    fn foreign_until(&self, cpu: u32, time_ns: u64) -> u64 {
        let entry = self.cpus.get(cpu as usize);
        entry.map_or(0, |entry| entry.foreign.held_until(time_ns))
    }

    /// Sets whether a CPU is free: idle, with no thread about to start on it.
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
            self.spare.insert(at);
            self.offer(at, time_ns);
            return;
        }
        self.spare.remove(at);
        if let Some(slot) = entry.holder {
            self.unmatch(slot);
            self.spare.remove(at);
            self.seek(slot, time_ns);
        }
    }

    /// A thread begins to wait.
    pub(super) fn enter(&mut self, slot: usize, mask: usize, cpu: u32, time_ns: u64) -> Mark {
        if slot >= self.waiting.len() {
            self.waiting.resize(slot + 1, None);
        }
        self.waiting[slot] = Some(Waiting {
            since_ns: time_ns,
            cpu,
            mask,
            matched: None,
            chance: None,
            foreign_before_ns: self.foreign_until(cpu, time_ns),
            foreign_beside_ns: 0,
            scheduler_ns: 0,
            mask_ns: 0,
            episodes: IdleWaiting::default(),
        });
        self.masks[mask].unserved.insert((time_ns, slot));
        self.alone.insert((time_ns, slot));
        self.seek(slot, time_ns);
        Mark {
            since_ns: time_ns,
            cpu,
        }
    }

    /// A wait ends: returns its causes. `could_run`: an idle CPU could have run it.
    pub(super) fn leave(
        &mut self,
        slot: usize,
        mark: Mark,
        could_run: bool,
        time_ns: u64,
    ) -> WaitCauseTotals {
        let (causes, episodes) = self.settle(slot, mark, time_ns);
        if could_run {
            self.episodes.add(episodes);
        }
        causes
    }

    /// A wait continues with another mask: returns the causes until now.
    pub(super) fn renew(
        &mut self,
        slot: usize,
        mark: Mark,
        mask: usize,
        time_ns: u64,
    ) -> (WaitCauseTotals, Mark) {
        let (causes, episodes) = self.settle(slot, mark, time_ns);
        let mark = self.enter(slot, mask, mark.cpu, time_ns);
        if let Some(Some(waiting)) = self.waiting.get_mut(slot) {
            waiting.episodes.add(episodes);
        }
        (causes, mark)
    }

    fn settle(&mut self, slot: usize, mark: Mark, time_ns: u64) -> (WaitCauseTotals, IdleWaiting) {
        self.end_chance(slot, time_ns);
        let total = time_ns.saturating_sub(mark.since_ns);
        let Some(waiting) = self.remove(slot, time_ns) else {
            let causes = WaitCauseTotals {
                own: total,
                ..WaitCauseTotals::default()
            };
            return (causes, IdleWaiting::default());
        };
        let scheduler = waiting.scheduler_ns.min(total);
        let mask = waiting.mask_ns.min(total - scheduler);
        let none = total - scheduler - mask;
        let foreign = self.foreign_until(mark.cpu, time_ns) - waiting.foreign_before_ns;
        let others = foreign.saturating_sub(waiting.foreign_beside_ns).min(none);
        let causes = WaitCauseTotals {
            scheduler,
            mask,
            others,
            own: none - others,
            ..WaitCauseTotals::default()
        };
        (causes, waiting.episodes)
    }

    /// Drops a wait that is no longer certain.
    pub(super) fn forget(&mut self, slot: usize, time_ns: u64) {
        self.remove(slot, time_ns);
    }

    pub(super) const fn episodes(&self) -> IdleWaiting {
        self.episodes
    }

    /// Removes a waiting thread; offers its CPU to others.
    fn remove(&mut self, slot: usize, time_ns: u64) -> Option<Waiting> {
        let matched = self.unmatch(slot);
        let waiting = self.waiting.get_mut(slot)?.take()?;
        let turn = (waiting.since_ns, slot);
        self.masks[waiting.mask].unserved.remove(&turn);
        self.alone.remove(&turn);
        if let Some(cpu) = matched {
            self.offer(cpu, time_ns);
        }
        Some(waiting)
    }

    /// Matches a thread with a CPU.
    fn match_cpu(&mut self, slot: usize, cpu: usize, whose: FreeCpuCause) {
        let Some(Some(waiting)) = self.waiting.get_mut(slot) else {
            return;
        };
        waiting.matched = Some((cpu, whose));
        let turn = (waiting.since_ns, slot);
        self.alone.remove(&turn);
        match whose {
            FreeCpuCause::Scheduler => self.masks[waiting.mask].unserved.remove(&turn),
            FreeCpuCause::Mask => {
                self.lent.insert(cpu);
                true
            }
        };
        self.spare.remove(cpu);
        self.cpus[cpu].holder = Some(slot);
    }

    /// Undoes a match and returns its CPU.
    fn unmatch(&mut self, slot: usize) -> Option<usize> {
        let waiting = self.waiting.get_mut(slot)?.as_mut()?;
        let (cpu, whose) = waiting.matched.take()?;
        let turn = (waiting.since_ns, slot);
        self.alone.insert(turn);
        if whose == FreeCpuCause::Scheduler {
            self.masks[waiting.mask].unserved.insert(turn);
        }
        self.lent.remove(cpu);
        self.spare.insert(cpu);
        self.cpus[cpu].holder = None;
        Some(cpu)
    }

    /// Matches an unmatched CPU with the thread that has waited longest.
    fn offer(&mut self, cpu: usize, time_ns: u64) {
        let mut free = Some(cpu);
        // That thread may have had another CPU, which is offered in turn.
        while let Some(cpu) = free.take() {
            let masks = self.holders[cpu].iter().map(|&mask| &self.masks[mask]);
            let allowed = masks.filter_map(|mask| mask.unserved.first()).min();
            let (slot, whose) = match (allowed, self.alone.first()) {
                (Some(&(_, slot)), _) => (slot, FreeCpuCause::Scheduler),
                (None, Some(&(_, slot))) => (slot, FreeCpuCause::Mask),
                (None, None) => return,
            };
            free = self.unmatch(slot);
            self.match_cpu(slot, cpu, whose);
            self.note(slot, time_ns);
        }
    }

    /// Finds a CPU for an unmatched thread.
    fn seek(&mut self, slot: usize, time_ns: u64) {
        let Some(Some(waiting)) = self.waiting.get(slot) else {
            return;
        };
        let cpus = &self.masks[waiting.mask].cpus;
        let allowed = self.spare.intersection(cpus).first();
        if let Some(cpu) = allowed {
            self.match_cpu(slot, cpu, FreeCpuCause::Scheduler);
        } else if let Some(cpu) = self.lent.intersection(cpus).first() {
            let other = self.cpus[cpu].holder;
            if let Some(other) = other {
                self.unmatch(other);
            }
            self.match_cpu(slot, cpu, FreeCpuCause::Scheduler);
            if let Some(other) = other {
                // None of the CPUs it may use is free, or it would have one.
                if let Some(cpu) = self.spare.first() {
                    self.match_cpu(other, cpu, FreeCpuCause::Mask);
                }
                self.note(other, time_ns);
            }
        } else if let Some(cpu) = self.spare.first() {
            self.match_cpu(slot, cpu, FreeCpuCause::Mask);
        }
        self.note(slot, time_ns);
    }

    /// Records a new decision on whether a thread has a chance.
    fn note(&mut self, slot: usize, time_ns: u64) {
        let Some(Some(waiting)) = self.waiting.get(slot) else {
            return;
        };
        let whose = waiting.matched.map(|(_, whose)| whose);
        if waiting.chance.map(|chance| chance.whose) == whose {
            return;
        }
        let foreign_ns = self.foreign_until(waiting.cpu, time_ns);
        self.end_chance(slot, time_ns);
        if let Some(Some(waiting)) = self.waiting.get_mut(slot) {
            waiting.chance = whose.map(|whose| Chance {
                whose,
                since_ns: time_ns,
                foreign_ns,
            });
        }
    }

    fn end_chance(&mut self, slot: usize, time_ns: u64) {
        let Some(Some(waiting)) = self.waiting.get(slot) else {
            return;
        };
        let foreign_ns = self.foreign_until(waiting.cpu, time_ns);
        let Some(Some(waiting)) = self.waiting.get_mut(slot) else {
            return;
        };
        let Some(chance) = waiting.chance.take() else {
            return;
        };
        let length = time_ns.saturating_sub(chance.since_ns);
        waiting.foreign_beside_ns += foreign_ns - chance.foreign_ns;
        match chance.whose {
            FreeCpuCause::Scheduler => waiting.scheduler_ns += length,
            FreeCpuCause::Mask => waiting.mask_ns += length,
        }
        waiting.episodes.count(length, chance.whose);
    }
}

impl IdleWaiting {
    fn add(&mut self, other: Self) {
        self.scheduler += other.scheduler;
        self.mask += other.mask;
        self.episodes += other.episodes;
        self.longest = self.longest.max(other.longest);
    }

    fn count(&mut self, length_ns: u64, whose: FreeCpuCause) {
        if length_ns < EPISODE_NS {
            return;
        }
        self.episodes += 1;
        self.longest = self.longest.max(length_ns);
        match whose {
            FreeCpuCause::Scheduler => self.scheduler += length_ns,
            FreeCpuCause::Mask => self.mask += length_ns,
        }
    }
}

#[cfg(test)]
mod tests;
