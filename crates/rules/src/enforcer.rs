//! Applies the rules to processes, and knows which processes hold settings from them.

mod unmatched;

use std::collections::BTreeMap;

use crate::{DemandedCpus, RulesPlan};
use pinwise_machine::processes::{
    HeldJournal, Identity, Processes, Refused, RuledProcess, every_cpu, for_each_thread,
    restore_process, restore_processes,
};
use pinwise_record::{RuleChange, RuleChangeKind};
use pinwise_topology::CpuSet;

/// Ended processes are removed once entries exceed twice those kept last time by this many.
const PRUNE_MARGIN: usize = 256;

/// An event worth reporting.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleEvent {
    /// A process was changed, or refused.
    Change(RuleChange),
    /// A note, as a sentence.
    Note(String),
    /// A warning, as a sentence.
    Warning(String),
}

/// Gives processes the CPUs and nice values of their rules.
#[derive(Debug)]
pub struct RuleEnforcer<P, L> {
    host: P,
    /// Records each change in advance; `None`: a dry run, which changes nothing.
    journal: Option<L>,
    plan: RulesPlan,
    /// Processes that hold settings from the rules.
    held: BTreeMap<i32, RuledProcess>,
    /// Those that match a rule themselves, with their start times; the others inherited.
    matched: BTreeMap<i32, u64>,
    /// Masks that were given: a process without one of them inherited none.
    masks: Vec<CpuSet>,
    /// Processes whose refusal was reported, with their start times.
    refused: BTreeMap<i32, u64>,
    /// Number of entries at which those of ended processes are removed.
    prune_at: usize,
    /// This process.
    own: i32,
}

/// The settings that a rule demands for the threads of a process.
#[derive(Debug, Clone, Copy)]
struct Demand<'a> {
    /// CPUs of the process without the rules.
    default: &'a CpuSet,
    wanted: &'a DemandedCpus,
    nice: Option<i32>,
}

/// The result of changing the threads of a process.
#[derive(Debug, Default)]
struct Changed {
    /// Number of threads that were changed.
    threads: usize,
    /// Number of settings left alone because somebody else made them.
    left: usize,
    /// CPUs of the first changed thread before.
    from: Option<CpuSet>,
    /// CPUs that the kernel granted.
    granted: Option<CpuSet>,
    is_niced: bool,
    refused: Option<Refused>,
}

impl<P: Processes, L: HeldJournal> RuleEnforcer<P, L> {
    /// An enforcer for the process `own`, with the processes that already hold settings. Without a
    /// journal it makes a dry run.
    pub fn new(
        host: P,
        journal: Option<L>,
        plan: RulesPlan,
        before: Vec<RuledProcess>,
        own: i32,
    ) -> Self {
        let mut enforcer = Self {
            host,
            journal,
            plan,
            held: BTreeMap::new(),
            matched: BTreeMap::new(),
            masks: Vec::new(),
            refused: BTreeMap::new(),
            prune_at: PRUNE_MARGIN,
            own,
        };
        for held in before {
            enforcer.remember(held);
        }
        enforcer
    }

    /// The rules in force.
    pub const fn plan(&self) -> &RulesPlan {
        &self.plan
    }

    /// Number of processes that hold settings from the rules.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// Applies the rules to all existing processes.
    pub fn consider_all(&mut self, notify: &mut dyn FnMut(RuleEvent)) {
        self.prune();
        for process in self.host.all() {
            self.consider(process, notify);
        }
    }

    /// Replaces the rules, restores processes that match none any more, and applies the new rules to
    /// all. Children keep settings inherited from a parent that keeps them.
    pub fn change_plan(&mut self, plan: RulesPlan, notify: &mut dyn FnMut(RuleEvent)) {
        self.plan = plan;
        self.refused.clear();
        self.restore_unmatched(notify);
        self.consider_all(notify);
    }

    /// Restores processes that match no rule any more, unless their parent keeps its settings.
    pub fn restore_unmatched(&mut self, notify: &mut dyn FnMut(RuleEvent)) {
        self.prune();
        let mut kept: Vec<i32> = Vec::new();
        let all: Vec<RuledProcess> = self.held.values().cloned().collect();
        for held in all {
            let rule = self
                .plan
                .rules
                .first_match(&mut self.host.facts(held.process));
            let parent = self.host.identity(held.process).map(|found| found.parent);
            if rule.is_some() || parent.is_some_and(|parent| kept.contains(&parent)) {
                kept.push(held.process);
                continue;
            }
            self.restore(&held, None, "no rule matches it any more", notify);
        }
    }

    /// Restores all processes.
    pub fn restore_all(&mut self, notify: &mut dyn FnMut(RuleEvent)) {
        if self.journal.is_none() {
            return;
        }
        let all: Vec<RuledProcess> = self.held.values().cloned().collect();
        for (process, threads) in restore_processes(&mut self.host, &all) {
            let name = self.host.identity(process).map(|found| found.name);
            let mut change = new_change(RuleChangeKind::Released, process, name);
            change.threads = threads;
            change.why = Some("the rules ended".to_owned());
            notify(RuleEvent::Change(change));
        }
        for held in all {
            self.forget(held.process);
        }
    }

    /// Ends, and returns the journal to be closed.
    pub fn into_journal(self) -> Option<L> {
        self.journal
    }

    /// Applies the rules to a process.
    pub fn consider(&mut self, process: i32, notify: &mut dyn FnMut(RuleEvent)) {
        if process == self.own {
            return;
        }
        match self.plan.rules.first_match(&mut self.host.facts(process)) {
            Some(rule) => {
                self.apply(process, rule, notify);
                if let Some(held) = self.held.get(&process) {
                    self.matched.insert(process, held.start);
                }
            }
            None => self.consider_unmatched(process, notify),
        }
        if self.held.len() + self.refused.len() > self.prune_at {
            self.prune();
        }
    }

    fn apply(&mut self, process: i32, rule: usize, notify: &mut dyn FnMut(RuleEvent)) {
        let Some(identity) = self.host.identity(process) else {
            return;
        };
        let Some(default) = self.host.default_mask(process) else {
            return;
        };
        let before = match self.is_held(process, &identity) {
            true => self.held.get(&process).cloned(),
            false => self.find_inherited(process, &identity),
        };
        let before = before.unwrap_or_else(|| RuledProcess::new(process, identity.start));
        let wanted = match self.plan.demanded_cpus(rule, &default) {
            Ok(wanted) => wanted,
            Err(reason) => return self.refuse(rule, &before, &identity, &reason, 0, notify),
        };
        let nice = self.plan.rules.rules[rule].nice.as_ref();
        let nice = nice.map(|nice| nice.value);
        let nothing_yet = before.masks.is_empty() && before.nices.is_empty();
        if wanted == DemandedCpus::Default && nice.is_none_or(|nice| nice == 0) {
            if !nothing_yet {
                self.restore(&before, Some(rule), "its rule excludes it", notify);
            }
            return;
        }
        let after = add_demand(&before, &wanted, nice);
        let is_leaving = wanted == DemandedCpus::Default && !before.masks.is_empty();
        if self.journal.is_some() && after == before && !is_leaving {
            if !self.is_held(process, &identity) {
                let _ = self.record(&after);
            }
            return;
        }
        let demand = Demand {
            default: &default,
            wanted: &wanted,
            nice,
        };
        self.place(rule, &before, after, demand, &identity, notify);
    }

    /// Records, makes and reports the change of a process.
    fn place(
        &mut self,
        rule: usize,
        before: &RuledProcess,
        mut after: RuledProcess,
        demand: Demand<'_>,
        identity: &Identity,
        notify: &mut dyn FnMut(RuleEvent),
    ) {
        // Its refusal, or its change in a dry run, was already reported.
        let process = before.process;
        let is_known = self.refused.get(&process) == Some(&identity.start);
        let is_dry = self.journal.is_none();
        if is_known || (is_dry && self.is_held(process, identity)) {
            return;
        }
        self.find_own(before, &mut after, demand.default);
        if let Err(error) = self.record(&after) {
            let reason = format!("it could not be journaled ({error}), so nothing is changed");
            return self.refuse(rule, before, identity, &reason, 0, notify);
        }
        let changed = self.change_threads(before, demand);
        if let Some(granted) = &changed.granted
            && !after.masks.contains(granted)
        {
            after.masks.push(granted.clone());
            let _ = self.record(&after);
        }
        if changed.threads == 0 {
            if before.masks.is_empty() && before.nices.is_empty() {
                self.forget(process);
            }
            let reason = match &changed.refused {
                Some(Refused::Gone) => return,
                Some(refused) => refused.to_string(),
                None if changed.left > 0 => {
                    "somebody else set its CPUs or its nice value".to_owned()
                }
                None => return,
            };
            return self.refuse(rule, before, identity, &reason, changed.left, notify);
        }
        let name = Some(identity.name.clone());
        let mut entry = new_change(RuleChangeKind::Placed, process, name);
        entry.dry_run = is_dry;
        entry.rule = Some(self.plan.rules.rules[rule].name.value.clone());
        entry.threads = changed.threads;
        entry.threads_left = changed.left;
        entry.to = changed.granted.map(|cpus| cpus.to_string());
        entry.from = changed.from.map(|cpus| cpus.to_string());
        entry.nice = demand.nice.filter(|_| changed.is_niced);
        notify(RuleEvent::Change(entry));
    }

    /// Finds the threads that had the demanded settings before: they must keep them at the end.
    fn find_own(&mut self, before: &RuledProcess, after: &mut RuledProcess, default: &CpuSet) {
        let is_new = |mask: &CpuSet| mask != default && !before.masks.contains(mask);
        let mask = after.masks.last().filter(|mask| is_new(mask)).cloned();
        let nice = after.nices.last().copied();
        let nice = nice.filter(|nice| !before.nices.contains(nice));
        for_each_thread(&mut self.host, before.process, |host, thread| {
            if mask.is_some() && host.mask(thread) == mask {
                after.own_masks.push(thread);
            }
            if nice.is_some() && host.nice(thread) == nice {
                after.own_nices.push(thread);
            }
        });
    }

    /// Changes the threads of a process, except those that somebody else set.
    fn change_threads(&mut self, before: &RuledProcess, demand: Demand<'_>) -> Changed {
        let Demand {
            default,
            wanted,
            nice,
        } = demand;
        let mut changed = Changed::default();
        let is_dry = self.journal.is_none();
        let every = every_cpu();
        let (target, asked) = match wanted {
            DemandedCpus::Cpus(cpus) => (Some(cpus), cpus),
            DemandedCpus::Default if !before.masks.is_empty() => (Some(default), &every),
            DemandedCpus::Default | DemandedCpus::Nothing => (None, &every),
        };
        for_each_thread(&mut self.host, before.process, |host, thread| {
            let mut is_changed = false;
            let now = host.mask(thread).filter(|now| Some(now) != target);
            if let (Some(now), Some(target)) = (now, target) {
                if now != *default && !before.gave_mask(thread, &now) {
                    changed.left += 1;
                    return;
                }
                if let Err(error) = set_unless(is_dry, || host.set_mask(thread, asked)) {
                    changed.refused = Some(error);
                    return;
                }
                is_changed = true;
                let granted = host.mask(thread).filter(|_| !is_dry);
                changed.granted = Some(granted.unwrap_or_else(|| target.clone()));
                changed.from.get_or_insert(now);
            }
            let old = host.nice(thread).filter(|old| Some(*old) != nice);
            if let (Some(old), Some(nice)) = (old, nice) {
                if old != 0 && !before.gave_nice(thread, old) {
                    changed.left += 1;
                } else if let Err(error) = set_unless(is_dry, || host.set_nice(thread, nice)) {
                    changed.refused = Some(error);
                } else {
                    is_changed = true;
                    changed.is_niced = true;
                }
            }
            changed.threads += usize::from(is_changed);
        });
        changed
    }

    /// Reports that a process is left unchanged, once per process.
    fn refuse(
        &mut self,
        rule: usize,
        before: &RuledProcess,
        identity: &Identity,
        reason: &str,
        left: usize,
        notify: &mut dyn FnMut(RuleEvent),
    ) {
        let known = self.refused.insert(before.process, before.start);
        if known == Some(before.start) {
            return;
        }
        let name = Some(identity.name.clone());
        let mut entry = new_change(RuleChangeKind::Refused, before.process, name);
        entry.dry_run = self.journal.is_none();
        entry.rule = Some(self.plan.rules.rules[rule].name.value.clone());
        entry.threads_left = left;
        entry.from = self.host.mask(before.process).map(|mask| mask.to_string());
        entry.why = Some(reason.to_owned());
        notify(RuleEvent::Change(entry));
    }

    /// Restores a process and forgets it.
    fn restore(
        &mut self,
        held: &RuledProcess,
        rule: Option<usize>,
        why: &str,
        notify: &mut dyn FnMut(RuleEvent),
    ) {
        if self.journal.is_none() {
            return;
        }
        self.restore_settings(held, rule, why, notify);
        self.forget(held.process);
    }

    /// Restores the settings that are held, and reports it.
    fn restore_settings(
        &mut self,
        held: &RuledProcess,
        rule: Option<usize>,
        why: &str,
        notify: &mut dyn FnMut(RuleEvent),
    ) {
        let from = self.host.mask(held.process);
        let threads = restore_process(&mut self.host, held.process, held);
        if threads == 0 {
            return;
        }
        let name = self.host.identity(held.process).map(|found| found.name);
        let mut entry = new_change(RuleChangeKind::Released, held.process, name);
        entry.rule = rule.map(|rule| self.plan.rules.rules[rule].name.value.clone());
        entry.threads = threads;
        entry.from = from.map(|mask| mask.to_string());
        entry.to = self.host.mask(held.process).map(|mask| mask.to_string());
        entry.why = Some(why.to_owned());
        notify(RuleEvent::Change(entry));
    }

    /// Writes to the journal what a process holds, and remembers it.
    fn record(&mut self, held: &RuledProcess) -> std::io::Result<()> {
        if let Some(journal) = &mut self.journal {
            journal.note(held)?;
        }
        self.remember(held.clone());
        Ok(())
    }

    fn remember(&mut self, held: RuledProcess) {
        for mask in &held.masks {
            if !self.masks.contains(mask) {
                self.masks.push(mask.clone());
            }
        }
        self.held.insert(held.process, held);
    }

    fn forget(&mut self, process: i32) {
        self.matched.remove(&process);
        if let Some(held) = self.held.remove(&process)
            && let Some(journal) = &mut self.journal
        {
            // If this fails, the entry stays in the journal, which does no harm.
            let _ = journal.forget(process, held.start);
        }
    }

    /// Forgets processes that ended.
    fn prune(&mut self) {
        let entries = self.held.values().map(|held| (held.process, held.start));
        let refused = self
            .refused
            .iter()
            .map(|(&process, &start)| (process, start));
        let all: Vec<(i32, u64)> = entries.chain(refused).collect();
        for (process, start) in all {
            let identity = self.host.identity(process);
            if identity.is_none_or(|identity| identity.start != start) {
                if self
                    .held
                    .get(&process)
                    .is_some_and(|held| held.start == start)
                {
                    self.forget(process);
                }
                self.refused.remove(&process);
            }
        }
        self.prune_at = 2 * (self.held.len() + self.refused.len()) + PRUNE_MARGIN;
    }
}

/// The settings that a process holds after a rule was applied. Old settings stay among them, as some
/// threads may still have them.
fn add_demand(before: &RuledProcess, wanted: &DemandedCpus, nice: Option<i32>) -> RuledProcess {
    let mut after = before.clone();
    if let DemandedCpus::Cpus(cpus) = wanted {
        after.masks.retain(|mask| mask != cpus);
        after.masks.push(cpus.clone());
    }
    if let Some(nice) = nice.filter(|&nice| nice != 0) {
        after.nices.retain(|&old| old != nice);
        after.nices.push(nice);
    }
    after
}

/// Makes a setting, except in a dry run.
fn set_unless(is_dry: bool, set: impl FnOnce() -> Result<(), Refused>) -> Result<(), Refused> {
    if is_dry { Ok(()) } else { set() }
}

fn new_change(kind: RuleChangeKind, process: i32, name: Option<String>) -> RuleChange {
    RuleChange {
        time: String::new(),
        change: kind,
        dry_run: false,
        rule: None,
        process,
        name,
        threads: 0,
        threads_left: 0,
        from: None,
        to: None,
        nice: None,
        why: None,
    }
}
