//! Processes that match no rule: what they keep of what was given here, and what they lose.

use super::{RuleEnforcer, RuleEvent};
use pinwise_machine::processes::{HeldJournal, Identity, Processes, RuledProcess};

impl<P: Processes, L: HeldJournal> RuleEnforcer<P, L> {
    /// A process without a rule keeps its parent's CPUs and lowered priority, and is restored
    /// together with it. What it got for a program that it no longer runs, and a raised priority,
    /// go now: the program may be anybody's.
    pub(super) fn consider_unasked(&mut self, process: i32, notify: &mut dyn FnMut(RuleEvent)) {
        if self.ledger.is_none() || !self.may_have_something(process) {
            return;
        }
        let Some(identity) = self.host.identity(process) else {
            return;
        };
        let own = self.held.get(&process).cloned();
        let own = own.filter(|held| held.start == identity.start);
        let was_asked = self.asked.remove(&process) == Some(identity.start);
        let inherited = self.find_inherited(process, &identity);
        let (is_held, is_heir) = (own.is_some(), inherited.is_some());
        let Some(mut held) = inherited.or(own) else {
            return;
        };
        // It was changed for a program that it no longer runs.
        if was_asked && !is_heir {
            return self.let_go(&held, None, "it runs another program now", notify);
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
            self.give(&raised, None, "a raised priority is not inherited", notify);
        }
        let has_some = !held.masks.is_empty() || !held.nices.is_empty();
        if !has_some && is_held {
            self.forget(process);
        } else if has_some && self.held.get(&process) != Some(&held) {
            // If it cannot be written down, it is still found through its parent.
            let _ = self.note(&held);
        }
    }

    /// Cheap checks first, since most processes hold nothing.
    fn may_have_something(&mut self, process: i32) -> bool {
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

    /// What a process has from a parent that was placed here.
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
