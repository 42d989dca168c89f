//! Keeps a target's threads where they should run, and restores them.
//!
//! A thread inherits the mask of the thread that starts it, so new threads under a shared mask only
//! need to be recorded for restoring. Former masks are recorded by [`Pins`] alone: a thread that
//! started under a placement is recorded with the mask that it would have inherited without the
//! placement.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::process::{find_own_or_inherited, list_threads, read_run_time_ns, read_stat};
use super::sweep::SweepLine;
use super::target::{Target, Thread};
use super::{LiveError, limits};
use crate::linux::{LedgerError, Pins, own_setting, sys};
use pinwise_topology::{CpuSet, Topology};

/// Most passes over the threads while each finds new ones.
const MAX_PASSES: usize = 50;
/// Number of threads whose CPU is read in each poll.
const MAX_OBSERVED: usize = 64;
/// Interval at which new threads and processes are searched.
pub const POLL: Duration = Duration::from_millis(250);
/// Longest such interval, with thousands of threads.
const MAX_POLL: Duration = Duration::from_secs(2);

/// Where the threads should run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Their former masks.
    Before,
    /// All on these CPUs.
    Shared(CpuSet),
    /// Each on one of these CPUs, in creation order, round robin.
    Bound(Vec<usize>),
}

/// A target whose threads are placed; they are restored on drop.
#[derive(Debug)]
pub struct Service {
    pub(super) target: Target,
    pub(super) pins: Pins,
    /// The first thread's mask in each process before any change.
    processes: BTreeMap<i32, CpuSet>,
    /// Known threads by id, with their start times.
    known: BTreeMap<i32, u64>,
    /// Threads that are placed now.
    placed: BTreeMap<i32, PlacedThread>,
    /// Threads that somebody else placed meanwhile.
    left_alone: BTreeMap<i32, String>,
    wish: Wish,
    /// Masks that threads have under this wish.
    given: Vec<CpuSet>,
    /// Threads that were bound under this wish.
    bound: usize,
    /// CPU time of threads when last polled, ns.
    run_time_ns: BTreeMap<i32, u64>,
    observed: ObservedCpus,
    /// All threads that were ever placed.
    touched: BTreeSet<i32>,
    /// Duration of the last scan of all threads.
    scan_time: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PlacedThread {
    asked: CpuSet,
    granted: CpuSet,
}

/// Where threads were found after they had run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedCpus {
    /// Number of observations.
    pub times: u64,
    /// Observations of a thread on a CPU that its mask allows.
    pub inside: u64,
    /// The CPUs on which threads were observed.
    pub cpus: CpuSet,
}

/// The result of following threads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FollowSummary {
    /// New threads, which are placed now.
    pub new: usize,
    /// Threads whose mask somebody else changed, as sentences.
    pub changed: Vec<String>,
}

/// The outcome of restoring masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RestoreSummary {
    /// Threads restored to their old mask.
    pub returned: usize,
    /// Threads that ended meanwhile.
    pub ended: usize,
    /// Threads that somebody else placed since, which were left alone.
    pub left: usize,
}

impl Service {
    /// Lists the target's threads; changes nothing yet.
    ///
    /// # Errors
    /// [`LiveError::Empty`] if it has none that can be placed.
    pub fn new(target: Target, mut pins: Pins) -> Result<Self, LiveError> {
        pins.send_to_guardian(&SweepLine::Target(target.clone()).to_line());
        let mut service = Self {
            target,
            pins,
            processes: BTreeMap::new(),
            known: BTreeMap::new(),
            placed: BTreeMap::new(),
            left_alone: BTreeMap::new(),
            wish: Wish::Before,
            given: Vec::new(),
            bound: 0,
            run_time_ns: BTreeMap::new(),
            observed: ObservedCpus::default(),
            touched: BTreeSet::new(),
            scan_time: Duration::ZERO,
        };
        let threads = service.target.threads();
        for thread in &threads {
            service.record_thread(*thread);
        }
        if service.known.is_empty() {
            return Err(LiveError::Empty(service.target.name().to_owned()));
        }
        Ok(service)
    }

    /// The target of the placement.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// The machine as the target may use it.
    ///
    /// # Errors
    /// [`LiveError::Empty`] if no CPU is left.
    pub fn topology(&self, host: &Topology) -> Result<Topology, LiveError> {
        limits::limit_topology(&self.target, host)
    }

    /// Counts the threads whose CPUs differ from those of most threads of their process: the
    /// program or somebody else has placed them.
    #[must_use]
    pub fn self_placed(&self) -> usize {
        let mut masks: BTreeMap<i32, Vec<CpuSet>> = BTreeMap::new();
        for thread in &self.target.threads() {
            if let Ok(own) = sys::affinity_of(thread.id) {
                masks.entry(thread.process).or_default().push(own);
            }
        }
        masks.values().map(|masks| count_uncommon(masks)).sum()
    }

    /// The setting by which the service's program places its own threads, if pinwise knows it.
    #[must_use]
    pub fn knob(&self) -> Option<String> {
        own_setting(self.target.first_process()?)
    }

    /// Pause before the next scan for new threads: [`POLL`], and longer if a scan of many threads
    /// takes more than a hundredth of a CPU.
    #[must_use]
    pub fn pause(&self) -> Duration {
        (self.scan_time * 100).clamp(POLL, MAX_POLL)
    }

    /// Number of threads that were ever placed.
    #[must_use]
    pub fn touched(&self) -> usize {
        self.touched.len()
    }

    /// Threads that are left alone, each with the reason.
    #[must_use]
    pub fn left_alone(&self) -> Vec<String> {
        self.left_alone.values().cloned().collect()
    }

    /// Where threads were observed under the present placement.
    #[must_use]
    pub const fn observed(&self) -> &ObservedCpus {
        &self.observed
    }

    /// The CPUs that the kernel granted to all threads together.
    #[must_use]
    pub fn granted(&self) -> CpuSet {
        if self.wish == Wish::Before {
            let masks = self.target.threads().into_iter();
            let masks = masks.filter_map(|thread| sys::affinity_of(thread.id).ok());
            return CpuSet::union_of(masks);
        }
        CpuSet::union_of(self.placed.values().map(|placed| &placed.granted))
    }

    /// Does every placed thread have the requested CPUs?
    #[must_use]
    pub fn has_requested_cpus(&self) -> bool {
        let mut placed = self.placed.values();
        placed.all(|placed| placed.asked == placed.granted)
    }

    /// Present number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.target.threads().len()
    }

    /// CPU time of the service so far, by process: in user mode and in the kernel, ticks.
    pub(super) fn cpu_ticks(&self) -> BTreeMap<i32, (u64, u64)> {
        let processes = self.target.processes().into_iter();
        processes
            .filter_map(|pid| read_stat(pid).map(|stat| (pid, (stat.user, stat.system))))
            .collect()
    }

    /// Restores every thread, then applies the placement.
    ///
    /// # Errors
    /// [`LiveError`] if a thread cannot be placed; all are then restored.
    pub fn place(&mut self, wish: &Wish) -> Result<FollowSummary, LiveError> {
        self.restore_masks();
        self.wish = wish.clone();
        self.bound = 0;
        self.observed = ObservedCpus::default();
        self.run_time_ns.clear();
        let followed = self.place_new_threads(true);
        if followed.is_err() {
            self.restore_masks();
            self.wish = Wish::Before;
        }
        for id in self.placed.keys().copied().take(MAX_OBSERVED) {
            self.run_time_ns
                .extend(read_run_time_ns(id).map(|time| (id, time)));
        }
        followed
    }

    /// Places new threads and processes, and notices masks that somebody else changed.
    ///
    /// # Errors
    /// [`LiveError`] if a thread cannot be placed any more because nobody would undo it.
    pub fn follow(&mut self) -> Result<FollowSummary, LiveError> {
        self.place_new_threads(false)
    }

    /// `is_first`: the placement has just begun, so a thread that cannot be placed is an error.
    fn place_new_threads(&mut self, is_first: bool) -> Result<FollowSummary, LiveError> {
        let mut followed = FollowSummary::default();
        let began = sys::monotonic();
        let mut threads = self.target.threads();
        self.forget_ended(&threads);
        if self.wish == Wish::Before {
            for thread in threads {
                self.record_thread(thread);
            }
            self.scan_time = sys::monotonic().saturating_sub(began);
            return Ok(followed);
        }
        for _ in 0..MAX_PASSES {
            let mut has_new = false;
            for thread in std::mem::take(&mut threads) {
                if self.left_alone.contains_key(&thread.id) {
                    continue;
                }
                if self.placed.contains_key(&thread.id) {
                    followed.changed.extend(self.find_foreign_change(thread));
                    continue;
                }
                if self.place_thread(thread, is_first)? {
                    followed.new += 1;
                    has_new = true;
                }
            }
            if !has_new {
                break;
            }
            threads = self.target.threads();
        }
        self.scan_time = sys::monotonic().saturating_sub(began);
        Ok(followed)
    }

    /// Forgets ended threads, whose ids may be reused.
    fn forget_ended(&mut self, threads: &[Thread]) {
        let existing: BTreeSet<i32> = threads.iter().map(|thread| thread.id).collect();
        self.known.retain(|id, _| existing.contains(id));
        self.placed.retain(|id, _| existing.contains(id));
        self.left_alone.retain(|id, _| existing.contains(id));
        self.run_time_ns.retain(|id, _| existing.contains(id));
    }

    /// Leaves a placed thread alone if somebody else has changed its mask; returns a sentence about
    /// that.
    fn find_foreign_change(&mut self, thread: Thread) -> Option<String> {
        let now = sys::affinity_of(thread.id).ok()?;
        let placed = self.placed.get(&thread.id)?;
        if now == placed.granted || now == placed.asked {
            return None;
        }
        let name =
            read_stat(thread.id).map_or_else(String::new, |stat| format!(" ({})", stat.name));
        let sentence = format!(
            "thread {}{name} was given CPUs {} and now has {now}, set by the program itself or somebody else; it is left alone",
            thread.id, placed.granted
        );
        self.placed.remove(&thread.id);
        self.left_alone.insert(thread.id, sentence.clone());
        Some(sentence)
    }

    /// Places a thread. False if it has ended or is left alone.
    fn place_thread(&mut self, thread: Thread, is_first: bool) -> Result<bool, LiveError> {
        let inherited = self.find_inherited(thread);
        if let Some(before) = inherited {
            // So that the ledger records the mask that the thread would have without pinwise.
            let _ = sys::set_affinity_of(thread.id, &before);
        }
        if !self.record_thread(thread) {
            return Ok(false);
        }
        let cpus = match &self.wish {
            Wish::Before => return Ok(false),
            Wish::Shared(cpus) => cpus.clone(),
            Wish::Bound(order) => match order.get(self.bound % order.len().max(1)) {
                Some(cpu) => CpuSet::single(*cpu),
                None => return Ok(false),
            },
        };
        // Sent before the mask is set, in case pinwise is killed in between.
        if !self.given.contains(&cpus) {
            self.notify_guardian(&SweepLine::Given(cpus.clone()));
            self.given.push(cpus.clone());
        }
        match self.pins.pin(thread.id, &cpus) {
            Ok(granted) => {
                if !self.given.contains(&granted) {
                    self.notify_guardian(&SweepLine::Given(granted.clone()));
                    self.given.push(granted.clone());
                }
                self.bound += 1;
                self.touched.insert(thread.id);
                self.placed.insert(
                    thread.id,
                    PlacedThread {
                        asked: cpus,
                        granted,
                    },
                );
                Ok(true)
            }
            Err(LedgerError::Gone(_)) => Ok(false),
            // The failure of a later thread must not end the placement of the others.
            Err(error @ (LedgerError::Forbidden(..) | LedgerError::Foreign(_))) if !is_first => {
                self.left_alone.insert(thread.id, error.to_string());
                Ok(false)
            }
            Err(error) => Err(LiveError::Pin {
                who: self.target.name().to_owned(),
                error,
            }),
        }
    }

    /// Finds the mask that a new thread would have without the placement; `None` if the thread is
    /// known, or does not have a mask of the placement.
    fn find_inherited(&self, thread: Thread) -> Option<CpuSet> {
        if self.known.contains_key(&thread.id) {
            return None;
        }
        let now = sys::affinity_of(thread.id).ok()?;
        let is_given = self.given.contains(&now);
        is_given
            .then(|| find_own_or_inherited(&self.processes, thread.process))
            .flatten()
    }

    /// Sends the guardian what it needs for threads that start while pinwise is being killed.
    fn notify_guardian(&mut self, line: &SweepLine) {
        self.pins.send_to_guardian(&line.to_line());
    }

    /// Records a thread; false if it has ended.
    fn record_thread(&mut self, thread: Thread) -> bool {
        let Some(stat) = read_stat(thread.id) else {
            return false;
        };
        if self.known.insert(thread.id, stat.start) == Some(stat.start) {
            return true;
        }
        self.notify_guardian(&SweepLine::Thread(thread.id, stat.start));
        if !self.processes.contains_key(&thread.process) {
            let first = list_threads(thread.process).into_iter().next();
            let own = sys::affinity_of(first.unwrap_or(thread.id)).ok();
            // A new process may have inherited a mask of the placement.
            let before = match self.wish {
                Wish::Before => own,
                _ => find_own_or_inherited(&self.processes, thread.process).or(own),
            };
            if let Some(before) = before {
                let line = SweepLine::Process(thread.process, before.clone());
                self.notify_guardian(&line);
                self.processes.insert(thread.process, before);
            }
        }
        true
    }

    /// Records the CPUs of threads that ran since the last poll.
    pub fn observe(&mut self) {
        for id in self.placed.keys().copied().take(MAX_OBSERVED) {
            let (Some(stat), Some(time)) = (read_stat(id), read_run_time_ns(id)) else {
                continue;
            };
            // The last CPU of a thread that has not run since it was placed is out of date.
            let before = self.run_time_ns.insert(id, time);
            let has_run = before.is_some_and(|before| before < time);
            if let (true, Some(cpu)) = (has_run, stat.cpu) {
                self.observed.times += 1;
                let is_inside = self.placed[&id].granted.contains(cpu);
                self.observed.inside += u64::from(is_inside);
                self.observed.cpus.insert(cpu);
            }
        }
    }

    /// Restores the mask of every thread, including those started meanwhile.
    pub fn restore_masks(&mut self) -> RestoreSummary {
        let mut summary = RestoreSummary::default();
        while let Some((thread, is_undone)) = self.pins.undo() {
            let exists = read_stat(thread).is_some();
            match (is_undone, exists) {
                (true, _) => summary.returned += 1,
                (false, false) => summary.ended += 1,
                (false, true) => summary.left += 1,
            }
        }
        // Threads that started since the last scan still have a mask of the placement, and may
        // start more.
        for _ in 0..MAX_PASSES {
            let mut has_new = false;
            for thread in self.target.threads() {
                let Some(before) = self.find_inherited(thread) else {
                    continue;
                };
                if sys::set_affinity_of(thread.id, &before).is_ok() && self.record_thread(thread) {
                    self.touched.insert(thread.id);
                    summary.returned += 1;
                    has_new = true;
                }
            }
            if !has_new || self.wish == Wish::Before {
                break;
            }
        }
        self.placed.clear();
        self.given.clear();
        self.notify_guardian(&SweepLine::Over);
        self.wish = Wish::Before;
        summary
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.restore_masks();
    }
}
/// Counts the masks that differ from the most common one.
fn count_uncommon(masks: &[CpuSet]) -> usize {
    let mut counts: BTreeMap<&CpuSet, usize> = BTreeMap::new();
    for mask in masks {
        *counts.entry(mask).or_default() += 1;
    }
    masks.len() - counts.into_values().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_placed_threads_differ_from_most() {
        let masks = |lists: &[&str]| -> usize {
            let masks = lists.iter().map(|list| CpuSet::parse_list(list).unwrap());
            count_uncommon(&masks.collect::<Vec<_>>())
        };
        // Only the first thread was pinned.
        assert_eq!(masks(&["0", "0-1", "0-1", "0-1", "0-1"]), 1);
        assert_eq!(masks(&["0-1", "0-1", "1"]), 1);
        assert_eq!(masks(&["0", "1", "2"]), 2);
        assert_eq!(masks(&["0-1"]), 0);
        assert_eq!(masks(&[]), 0);
    }
}
