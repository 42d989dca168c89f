//! Who waits in run queues, and which CPUs idle meanwhile.
//!
//! Nothing is done per waiting thread while it waits. For each mask there is
//! a running sum of the time in which a CPU of it was free; a thread notes the
//! sums when its wait begins and takes the difference when it ends.

use std::collections::BTreeMap;

use super::super::summary::{Causes, EPISODE_NS, IdleWaiting};
use pinwise_topology::CpuSet;

/// Masks distinguished at most; threads with still other masks count as allowed
/// everywhere.
const MOST_MASKS: usize = 1024;

/// A condition over time: how long it held so far, and since when it holds.
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

    const fn until(&self, time_ns: u64) -> u64 {
        match self.holds_since {
            Some(since) => self.sum_ns + time_ns.saturating_sub(since),
            None => self.sum_ns,
        }
    }
}

#[derive(Debug)]
struct Mask {
    cpus: CpuSet,
    /// Free CPUs among them.
    free: u32,
    /// Some CPU of it is free.
    allowed: Spell,
    /// Since when none is, for episodes.
    none_since: u64,
    /// Threads that wait with this mask and since when: their slots.
    waiting: Vec<(usize, u64)>,
}

/// What a CPU is to those who wait.
#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    is_free: bool,
    /// A foreign thread runs on it since then; the sum of free time then.
    foreign_since: Option<(u64, u64)>,
    /// Time with a foreign thread while no CPU at all was free.
    foreign_ns: u64,
    /// Followed threads queued on it, and does it run one?
    queued: u32,
    runs_own: bool,
    /// Followed threads are queued on it, and it runs none of them.
    held: Spell,
}

/// Where the sums stood when a wait began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    since_ns: u64,
    allowed_ns: u64,
    any_ns: u64,
    foreign_ns: u64,
    cpu: u32,
    mask: usize,
}

impl Mark {
    /// Where the thread waits.
    pub(super) const fn cpu(&self) -> u32 {
        self.cpu
    }
}

#[derive(Debug)]
pub(super) struct Queues {
    masks: Vec<Mask>,
    by_cpus: BTreeMap<CpuSet, usize>,
    /// Masks that hold a CPU.
    holders: Vec<Vec<usize>>,
    cpus: Vec<Cpu>,
    free: u32,
    any: Spell,
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
            free: 0,
            any: Spell::default(),
            episodes: IdleWaiting::default(),
        };
        queues.mask(online, 0);
        queues
    }

    /// Number of a mask, and whether it is a new one.
    pub(super) fn mask(&mut self, cpus: &CpuSet, time_ns: u64) -> (usize, bool) {
        if let Some(&index) = self.by_cpus.get(cpus) {
            return (index, false);
        }
        if self.masks.len() == MOST_MASKS {
            return (0, false);
        }
        let index = self.masks.len();
        let mut free = 0;
        for cpu in cpus.iter().filter(|&cpu| cpu < self.cpus.len()) {
            self.holders[cpu].push(index);
            free += u32::from(self.cpus[cpu].is_free);
        }
        let mut allowed = Spell::default();
        allowed.set(free > 0, time_ns);
        self.masks.push(Mask {
            cpus: cpus.clone(),
            free,
            allowed,
            none_since: time_ns,
            waiting: Vec::new(),
        });
        self.by_cpus.insert(cpus.clone(), index);
        (index, true)
    }

    pub(super) fn cpus_of(&self, mask: usize) -> &CpuSet {
        &self.masks[mask].cpus
    }

    /// Forgets the episodes counted so far.
    pub(super) fn restart(&mut self, time_ns: u64) {
        self.episodes = IdleWaiting::default();
        for cpu in &mut self.cpus {
            cpu.held = Spell {
                holds_since: cpu.held.holds_since.map(|_| time_ns),
                sum_ns: 0,
            };
        }
    }

    /// A followed thread is queued on a CPU, or is no more.
    pub(super) fn set_queued(&mut self, cpu: u32, comes: bool, time_ns: u64) {
        if let Some(seat) = self.cpus.get_mut(cpu as usize) {
            seat.queued = step(seat.queued, comes);
            seat.held.set(seat.queued > 0 && !seat.runs_own, time_ns);
        }
    }

    /// A CPU runs a followed thread, or something else.
    pub(super) fn set_own(&mut self, cpu: u32, runs_own: bool, time_ns: u64) {
        if let Some(seat) = self.cpus.get_mut(cpu as usize) {
            seat.runs_own = runs_own;
            seat.held.set(seat.queued > 0 && !runs_own, time_ns);
        }
    }

    /// Time of CPUs on which followed threads were queued while none of them ran.
    pub(super) fn held_ns(&self, time_ns: u64) -> u64 {
        self.cpus.iter().map(|cpu| cpu.held.until(time_ns)).sum()
    }

    /// Is a CPU free: idle, with nobody about to start on it?
    pub(super) fn set_free(&mut self, cpu: u32, is_free: bool, time_ns: u64) {
        let Some(seat) = self.cpus.get_mut(cpu as usize) else {
            return;
        };
        if seat.is_free == is_free {
            return;
        }
        seat.is_free = is_free;
        let had_any = self.free > 0;
        self.free = step(self.free, is_free);
        if had_any && self.free == 0 {
            self.end_forbidden(time_ns);
        }
        for at in 0..self.holders[cpu as usize].len() {
            let index = self.holders[cpu as usize][at];
            let mask = &mut self.masks[index];
            let had = mask.free > 0;
            mask.free = step(mask.free, is_free);
            match (had, mask.free > 0) {
                (false, true) => self.begin_allowed(index, time_ns, had_any),
                (true, false) => self.end_allowed(index, time_ns),
                _ => {}
            }
        }
        self.any.set(self.free > 0, time_ns);
    }

    /// A foreign thread comes on a CPU, or leaves it.
    pub(super) fn set_foreign(&mut self, cpu: u32, is_foreign: bool, time_ns: u64) {
        let any_ns = self.any.until(time_ns);
        let Some(seat) = self.cpus.get_mut(cpu as usize) else {
            return;
        };
        if let Some((since, any_then)) = seat.foreign_since.take() {
            let passed = time_ns.saturating_sub(since);
            seat.foreign_ns += passed.saturating_sub(any_ns - any_then);
        }
        seat.foreign_since = is_foreign.then_some((time_ns, any_ns));
    }

    fn foreign_until(&self, cpu: u32, time_ns: u64) -> u64 {
        let Some(seat) = self.cpus.get(cpu as usize) else {
            return 0;
        };
        let running = seat.foreign_since.map_or(0, |(since, any_then)| {
            let any_ns = self.any.until(time_ns) - any_then;
            time_ns.saturating_sub(since).saturating_sub(any_ns)
        });
        seat.foreign_ns + running
    }

    /// A thread begins to wait.
    pub(super) fn enter(&mut self, slot: usize, mask: usize, cpu: u32, time_ns: u64) -> Mark {
        self.masks[mask].waiting.push((slot, time_ns));
        Mark {
            since_ns: time_ns,
            allowed_ns: self.masks[mask].allowed.until(time_ns),
            any_ns: self.any.until(time_ns),
            foreign_ns: self.foreign_until(cpu, time_ns),
            cpu,
            mask,
        }
    }

    /// It waits no more: why it did.
    pub(super) fn leave(&mut self, slot: usize, mark: Mark, time_ns: u64) -> Causes {
        let total = time_ns.saturating_sub(mark.since_ns);
        let any = (self.any.until(time_ns) - mark.any_ns).min(total);
        let mask = &self.masks[mark.mask];
        let scheduler = (mask.allowed.until(time_ns) - mark.allowed_ns).min(any);
        let none = total - any;
        let others = (self.foreign_until(mark.cpu, time_ns) - mark.foreign_ns).min(none);
        if let Some(since) = mask.allowed.holds_since {
            self.episodes
                .count(time_ns, since.max(mark.since_ns), Whose::Scheduler);
        } else if let Some(any_since) = self.any.holds_since {
            let since = any_since.max(mask.none_since).max(mark.since_ns);
            self.episodes.count(time_ns, since, Whose::Mask);
        }
        let waiting = &mut self.masks[mark.mask].waiting;
        if let Some(at) = waiting.iter().position(|(other, _)| *other == slot) {
            waiting.swap_remove(at);
        }
        Causes {
            scheduler,
            mask: any - scheduler,
            others,
            own: none - others,
            starting: 0,
        }
    }

    /// It is no longer known whether it waits; nothing of it counts.
    pub(super) fn forget(&mut self, slot: usize, mark: Mark) {
        let waiting = &mut self.masks[mark.mask].waiting;
        waiting.retain(|(other, _)| *other != slot);
    }

    pub(super) const fn episodes(&self) -> IdleWaiting {
        self.episodes
    }

    fn begin_allowed(&mut self, index: usize, time_ns: u64, had_any: bool) {
        let Self {
            masks,
            any,
            episodes,
            ..
        } = self;
        let mask = &mut masks[index];
        if let Some(any_since) = any.holds_since.filter(|_| had_any) {
            let since = any_since.max(mask.none_since);
            episodes.count_all(mask, time_ns, since, Whose::Mask);
        }
        mask.allowed.set(true, time_ns);
    }

    fn end_allowed(&mut self, index: usize, time_ns: u64) {
        let Self {
            masks, episodes, ..
        } = self;
        let mask = &mut masks[index];
        if let Some(since) = mask.allowed.holds_since {
            episodes.count_all(mask, time_ns, since, Whose::Scheduler);
        }
        mask.allowed.set(false, time_ns);
        mask.none_since = time_ns;
    }

    /// The last free CPU is taken: for masks that forbid it an episode ends.
    fn end_forbidden(&mut self, time_ns: u64) {
        let Some(any_since) = self.any.holds_since else {
            return;
        };
        if time_ns.saturating_sub(any_since) < EPISODE_NS {
            return;
        }
        let Self {
            masks, episodes, ..
        } = self;
        for mask in masks.iter().filter(|mask| mask.free == 0) {
            let since = any_since.max(mask.none_since);
            episodes.count_all(mask, time_ns, since, Whose::Mask);
        }
    }
}

/// Whose doing an episode is.
#[derive(Debug, Clone, Copy)]
enum Whose {
    Scheduler,
    Mask,
}

impl IdleWaiting {
    fn count(&mut self, time_ns: u64, since_ns: u64, whose: Whose) {
        let length = time_ns.saturating_sub(since_ns);
        if length < EPISODE_NS {
            return;
        }
        self.episodes += 1;
        self.longest = self.longest.max(length);
        match whose {
            Whose::Scheduler => self.scheduler += length,
            Whose::Mask => self.mask += length,
        }
    }

    fn count_all(&mut self, mask: &Mask, time_ns: u64, since_ns: u64, whose: Whose) {
        if time_ns.saturating_sub(since_ns) < EPISODE_NS {
            return;
        }
        for &(_, waiting_since) in &mask.waiting {
            self.count(time_ns, since_ns.max(waiting_since), whose);
        }
    }
}

const fn step(count: u32, up: bool) -> u32 {
    if up {
        count + 1
    } else {
        count.saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A machine of 4 CPUs, none free at first; a thread with `mask` waits on
    /// CPU 0 from 10 to 20 ms; `changes` are (ms, CPU, what it does then).
    #[track_caller]
    fn check(mask: &str, changes: &[(u64, u32, char)], causes: [u64; 4], episodes: IdleWaiting) {
        let mut queues = Queues::new(&CpuSet::first_n(4));
        let (mask, _) = queues.mask(&CpuSet::parse_list(mask).unwrap(), 0);
        let mut mark = None;
        for ms in 0..=20 {
            if ms == 10 {
                mark = Some(queues.enter(7, mask, 0, 10 * MS));
            }
            for &(_, cpu, what) in changes.iter().filter(|change| change.0 == ms) {
                queues.set_free(cpu, what == '.', ms * MS);
                queues.set_foreign(cpu, what == 'f', ms * MS);
            }
        }
        let reported = queues.leave(7, mark.unwrap(), 20 * MS);
        let reported = [
            reported.scheduler,
            reported.mask,
            reported.others,
            reported.own,
        ]
        .map(|ns| ns / MS);
        assert_eq!(reported, causes);
        assert_eq!(queues.episodes(), episodes);
    }

    fn episodes(scheduler: u64, mask: u64, many: u64, longest: u64) -> IdleWaiting {
        IdleWaiting {
            scheduler: scheduler * MS,
            mask: mask * MS,
            episodes: many,
            longest: longest * MS,
        }
    }

    #[test]
    fn waiting_behind_others() {
        check("0-3", &[], [0, 0, 0, 10], episodes(0, 0, 0, 0));
        check("0-3", &[(0, 0, 'f')], [0, 0, 10, 0], episodes(0, 0, 0, 0));
        check(
            "0-3",
            &[(0, 0, 'f'), (14, 0, 'o')],
            [0, 0, 4, 6],
            episodes(0, 0, 0, 0),
        );
    }

    #[test]
    fn waiting_while_an_allowed_cpu_idles() {
        check("0-3", &[(0, 2, '.')], [10, 0, 0, 0], episodes(10, 0, 1, 10));
        check(
            "0-3",
            &[(0, 0, 'f'), (12, 2, '.'), (15, 2, 'f'), (16, 1, '.')],
            [7, 0, 3, 0],
            episodes(7, 0, 2, 4),
        );
    }

    #[test]
    fn waiting_while_only_forbidden_cpus_idle() {
        check("0-1", &[(0, 2, '.')], [0, 10, 0, 0], episodes(0, 10, 1, 10));
        check(
            "0-1",
            &[(11, 2, '.'), (13, 1, '.'), (16, 1, 'o'), (18, 2, 'o')],
            [3, 4, 0, 3],
            episodes(3, 4, 3, 3),
        );
    }

    #[test]
    fn a_wait_that_is_forgotten_leaves_no_episode() {
        let mut queues = Queues::new(&CpuSet::first_n(2));
        queues.set_free(1, true, 0);
        let mark = queues.enter(3, 0, 0, 0);
        queues.forget(3, mark);
        queues.set_free(1, false, 50 * MS);
        assert_eq!(queues.episodes(), IdleWaiting::default());
    }
}
