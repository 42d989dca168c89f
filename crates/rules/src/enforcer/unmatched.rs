//! Decides which settings a process keeps that matches no rule.

use super::{RuleEnforcer, RuleEvent};
use pinwise_machine::processes::{HeldJournal, Identity, Processes, RuledProcess};

impl<P: Processes, L: HeldJournal> RuleEnforcer<P, L> {
    /// A process that matches no rule keeps its parent's CPUs and lowered priority, and is restored
    /// together with the parent. It loses what it got for a program that it no longer runs, and a
    /// raised priority: its program may be any.
    pub(super) fn consider_unmatched(&mut self, process: i32, notify: &mut dyn FnMut(RuleEvent)) {
        if self.journal.is_none() || !self.may_hold_settings(process) {
            return;
        }
        let Some(identity) = self.host.identity(process) else {
            return;
        };
        let own = self.held.get(&process).cloned();
        let own = own.filter(|held| held.start == identity.start);
        let was_matched = self.matched.remove(&process) == Some(identity.start);
        let inherited = self.find_inherited(process, &identity);
        let (is_held, is_heir) = (own.is_some(), inherited.is_some());
        let Some(mut held) = inherited.or(own) else {
            return;
        };
        if was_matched && !is_heir {
            return self.restore(&held, None, "it runs another program now", notify);
        }
        let nices = std::mem::take(&mut held.nices).into_iter();
        let (raised, others): (Vec<i32>, Vec<i32>) = nices.partition(|&nice| nice < 0);
        held.nices = others;
        if !raised.is_empty() {
            let raised = RuledProcess {
                masks: Vec::new(),
                nices: raised,
                ..held.clone()
            };
            self.restore_settings(&raised, None, "a raised priority is not inherited", notify);
        }
        let has_some = !held.masks.is_empty() || !held.nices.is_empty();
        if !has_some && is_held {
            self.forget(process);
        } else if has_some && self.held.get(&process) != Some(&held) {
            // If this fails, the process is still found through its parent.
            let _ = self.record(&held);
        }
    }

    /// Checks quickly whether a process may hold settings: most hold none.
    fn may_hold_settings(&mut self, process: i32) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let masks = &self.masks;
        let mask = self.host.mask(process);
        self.held.contains_key(&process)
            || mask.is_some_and(|mask| masks.contains(&mask))
            || self.host.nice(process).is_some_and(|nice| nice < 0)
    }

    pub(super) fn is_held(&self, process: i32, identity: &Identity) -> bool {
        let held = self.held.get(&process);
        held.is_some_and(|held| held.start == identity.start)
    }

    /// The settings that a process inherited from a parent that holds some.
    pub(super) fn find_inherited(
        &mut self,
        process: i32,
        identity: &Identity,
    ) -> Option<RuledProcess> {
        let parent = self.held.get(&identity.parent)?.clone();
        let mask = self.host.mask(process)?;
        let nice = self.host.nice(process)?;
        let has_mask = parent.masks.contains(&mask);
        let has_nice = parent.nices.contains(&nice);
        let start = self.host.identity(identity.parent)?.start;
        ((has_mask || has_nice) && start == parent.start).then_some(RuledProcess {
            masks: if has_mask { parent.masks } else { Vec::new() },
            nices: if has_nice { parent.nices } else { Vec::new() },
            ..RuledProcess::new(process, identity.start)
        })
    }
}
