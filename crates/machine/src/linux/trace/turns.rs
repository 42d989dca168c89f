//! Polls of many threads or processes in turns, a limited number at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use pinwise_sched::Tid;

/// Decides which of many threads or processes are polled next: new ones first, then the others in
/// turns.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Those that were never polled.
    new: BTreeSet<Tid>,
    /// Where the last turn stopped.
    cursor: Tid,
}

impl Turns {
    pub(super) fn add_new(&mut self, id: Tid) {
        self.new.insert(id);
    }

    pub(super) fn remove(&mut self, id: Tid) {
        self.new.remove(&id);
    }

    pub(super) fn clear_new(&mut self) {
        self.new.clear();
    }

    /// Takes one that was never polled.
    pub(super) fn pop_new(&mut self) -> Option<Tid> {
        self.new.pop_first()
    }

    /// Takes up to `max` of the keys of `all`, in order.
    pub(super) fn take<T>(&mut self, all: &BTreeMap<Tid, T>, max: usize) -> Vec<Tid> {
        let mut turn: Vec<Tid> = self.new.iter().copied().take(max).collect();
        for id in &turn {
            self.new.remove(id);
        }
        let after = (Bound::Excluded(self.cursor), Bound::Unbounded);
        let room = max - turn.len();
        let others: Vec<Tid> = all.range(after).map(|(&id, _)| id).take(room).collect();
        self.cursor = match others.last() {
            Some(&last) if others.len() == room => last,
            _ => 0,
        };
        turn.extend(others);
        turn.sort_unstable();
        turn.dedup();
        turn
    }
}
