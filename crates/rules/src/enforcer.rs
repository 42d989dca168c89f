//! Which processes hold something from the rules, and what is done about a process.

mod unasked;

use std::collections::BTreeMap;

use crate::{DemandedCpus, RulesPlan};
use pinwise_machine::processes::{
    HeldJournal, Identity, Processes, Refused, RuledProcess, every_cpu, for_each_thread,
    restore_process, restore_processes,
};
use pinwise_record::{RuleChange, RuleChangeKind};
use pinwise_topology::CpuSet;

/// Entries beyond twice the living, at which those of ended processes go.
const DEAD: usize = 256;

/// An event worth reporting.
#[derive(Debug, Clone, PartialEq)]
pub enum RuleEvent {
    /// Something happened to a process.
    Change(RuleChange),
    /// A sentence.
    Note(String),
    /// A sentence about something that is wrong.
    Warning(String),
}

/// Keeps processes on the CPUs that rules name.
#[derive(Debug)]
pub struct RuleEnforcer<P, L> {
    host: P,
    /// `None`: nothing is changed.
    ledger: Option<L>,
    plan: RulesPlan,
    held: BTreeMap<i32, RuledProcess>,
    /// Held processes that match a rule themselves; the others inherited what they have.
    asked: BTreeMap<i32, u64>,
    /// Masks that were given: a process without one of them inherited nothing.
    masks: Vec<CpuSet>,
    /// Processes that were refused, so that each is reported once.
    refused: BTreeMap<i32, u64>,
    /// Entries at which those of ended processes are looked for.
    full: usize,
    /// This process.
    own: i32,
}

/// What a rule gives the threads of a process.
#[derive(Debug, Clone, Copy)]
struct Share<'a> {
    /// CPUs without the rules.
    default: &'a CpuSet,
    wanted: &'a DemandedCpus,
    nice: Option<i32>,
}

/// The result of changing the threads of a process.
#[derive(Debug, Default)]
struct Changed {
    threads: usize,
    left: usize,
    from: Option<CpuSet>,
    granted: Option<CpuSet>,
    is_niced: bool,
    refused: Option<Refused>,
}

impl<P: Processes, L: HeldJournal> RuleEnforcer<P, L> {
    /// Starts with what is already in force. Without a ledger nothing is changed.
    pub fn new(
        host: P,
        ledger: Option<L>,
        plan: RulesPlan,
        before: Vec<RuledProcess>,
        own: i32,
    ) -> Self {
        let mut enforcer = Self {
            host,
            ledger,
            plan,
            held: BTreeMap::new(),
            asked: BTreeMap::new(),
            masks: Vec::new(),
            refused: BTreeMap::new(),
            full: DEAD,
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

    /// How many processes have something from the rules.
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// Looks at all existing processes.
    pub fn look(&mut self, notify: &mut dyn FnMut(RuleEvent)) {
        self.prune();
        for process in self.host.all() {
            self.consider(process, notify);
        }
    }

    /// New rules: processes that they do not concern any more are given back.
    /// Children keep what they inherited from a parent that keeps it.
    pub fn change_plan(&mut self, plan: RulesPlan, notify: &mut dyn FnMut(RuleEvent)) {
        self.plan = plan;
        self.refused.clear();
        self.review(notify);
        self.look(notify);
    }

    /// Restores what no rule asks for any more.
    pub fn review(&mut self, notify: &mut dyn FnMut(RuleEvent)) {
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
            self.let_go(&held, None, "no rule matches it any more", notify);
        }
    }

    /// Restores all processes.
    pub fn give_all_back(&mut self, notify: &mut dyn FnMut(RuleEvent)) {
        if self.ledger.is_none() {
            return;
        }
        let all: Vec<RuledProcess> = self.held.values().cloned().collect();
        for (process, threads) in restore_processes(&mut self.host, &all) {
            let name = self.host.identity(process).map(|found| found.name);
            let mut change = change(RuleChangeKind::Released, process, name);
            change.threads = threads;
            change.why = Some("the rules ended".to_owned());
            notify(RuleEvent::Change(change));
        }
        for held in all {
            self.forget(held.process);
        }
    }

    /// Ends; the ledger, to be closed.
    pub fn into_ledger(self) -> Option<L> {
        self.ledger
    }

    /// Applies a process's rule.
    pub fn consider(&mut self, process: i32, notify: &mut dyn FnMut(RuleEvent)) {
        if process == self.own {
            return;
        }
        match self.plan.rules.first_match(&mut self.host.facts(process)) {
            Some(rule) => {
                self.apply(process, rule, notify);
                if let Some(held) = self.held.get(&process) {
                    self.asked.insert(process, held.start);
                }
            }
            None => self.consider_unasked(process, notify),
        }
        if self.held.len() + self.refused.len() > self.full {
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
                self.let_go(&before, Some(rule), "its rule excludes it", notify);
            }
            return;
        }
        let after = add_demand(&before, &wanted, nice);
        let is_leaving = wanted == DemandedCpus::Default && !before.masks.is_empty();
        if self.ledger.is_some() && after == before && !is_leaving {
            if !self.is_held(process, &identity) {
                let _ = self.note(&after);
            }
            return;
        }
        let share = Share {
            default: &default,
            wanted: &wanted,
            nice,
        };
        self.place(rule, &before, after, share, &identity, notify);
    }

    /// Journals, changes, reports.
    fn place(
        &mut self,
        rule: usize,
        before: &RuledProcess,
        mut after: RuledProcess,
        share: Share<'_>,
        identity: &Identity,
        notify: &mut dyn FnMut(RuleEvent),
    ) {
        // Already reported, or already looked at without a ledger.
        let process = before.process;
        let is_known = self.refused.get(&process) == Some(&identity.start);
        let is_dry = self.ledger.is_none();
        if is_known || (is_dry && self.is_held(process, identity)) {
            return;
        }
        self.find_own(before, &mut after, share.default);
        if let Err(error) = self.note(&after) {
            let reason = format!("it could not be journaled ({error}), so nothing is changed");
            return self.refuse(rule, before, identity, &reason, 0, notify);
        }
        let changed = self.change(before, share);
        if let Some(granted) = &changed.granted
            && !after.masks.contains(granted)
        {
            after.masks.push(granted.clone());
            let _ = self.note(&after);
        }
        if changed.threads == 0 {
            // As it was before.
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
        let mut entry = change(RuleChangeKind::Placed, process, Some(identity.name.clone()));
        entry.dry_run = is_dry;
        entry.rule = Some(self.plan.rules.rules[rule].name.value.clone());
        entry.threads = changed.threads;
        entry.threads_left = changed.left;
        entry.to = changed.granted.map(|cpus| cpus.to_string());
        entry.from = changed.from.map(|cpus| cpus.to_string());
        entry.nice = share.nice.filter(|_| changed.is_niced);
        notify(RuleEvent::Change(entry));
    }

    /// Finds the threads that already have what they are about to get, as the end must leave it to
    /// them.
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

    /// Changes the threads that may be touched.
    fn change(&mut self, before: &RuledProcess, share: Share<'_>) -> Changed {
        let Share {
            default,
            wanted,
            nice,
        } = share;
        let mut changed = Changed::default();
        let is_dry = self.ledger.is_none();
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

    /// Reports once that a process is left unchanged.
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
        let mut entry = change(RuleChangeKind::Refused, before.process, name);
        entry.dry_run = self.ledger.is_none();
        entry.rule = Some(self.plan.rules.rules[rule].name.value.clone());
        entry.threads_left = left;
        entry.from = self.host.mask(before.process).map(|mask| mask.to_string());
        entry.why = Some(reason.to_owned());
        notify(RuleEvent::Change(entry));
    }

    /// Restores one process.
    fn let_go(
        &mut self,
        held: &RuledProcess,
        rule: Option<usize>,
        why: &str,
        notify: &mut dyn FnMut(RuleEvent),
    ) {
        if self.ledger.is_none() {
            return;
        }
        self.give(held, rule, why, notify);
        self.forget(held.process);
    }

    /// Restores what is held, and reports it.
    fn give(
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
        let mut entry = change(RuleChangeKind::Released, held.process, name);
        entry.rule = rule.map(|rule| self.plan.rules.rules[rule].name.value.clone());
        entry.threads = threads;
        entry.from = from.map(|mask| mask.to_string());
        entry.to = self.host.mask(held.process).map(|mask| mask.to_string());
        entry.why = Some(why.to_owned());
        notify(RuleEvent::Change(entry));
    }

    /// Writes down and remembers.
    fn note(&mut self, held: &RuledProcess) -> std::io::Result<()> {
        if let Some(ledger) = &mut self.ledger {
            ledger.note(held)?;
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
        self.asked.remove(&process);
        if let Some(held) = self.held.remove(&process)
            && let Some(ledger) = &mut self.ledger
        {
            // An entry too many does no harm.
            let _ = ledger.forget(process, held.start);
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
        self.full = 2 * (self.held.len() + self.refused.len()) + DEAD;
    }
}

/// What a process holds once a rule was applied: its old settings may still be in force for some of
/// its threads.
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

fn set_unless(is_dry: bool, set: impl FnOnce() -> Result<(), Refused>) -> Result<(), Refused> {
    if is_dry { Ok(()) } else { set() }
}

fn change(kind: RuleChangeKind, process: i32, name: Option<String>) -> RuleChange {
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
