//! Judges by the start of a trace whether it contains every switch of every CPU, or only those of
//! some threads.
//!
//! Tools filter by process and CPU, and files do not reliably say so. In a full recording, each
//! switch of a CPU leaves the thread to which the last one switched. If that does not hold, or the
//! tool watched one command only, idle CPUs and other programs are unknown.

use foldhash::HashMap;

use super::raw_event::{RawEvent, RawKind};
use crate::{Scope, Tid};

/// Observations so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefix {
    switches: u64,
    /// Switches from a thread that had not arrived.
    broken: u64,
    /// Half switches, of perf's records of single threads.
    halves: u64,
    wakeups: u64,
    wakings: u64,
    has_command: bool,
    running: HashMap<u32, Tid>,
}

/// A recording can be full if at most one in this many switches does not follow the one before:
/// records may be lost.
const MAX_BROKEN_SHARE: u64 = 20;

impl Prefix {
    pub(super) fn add(&mut self, raw: &RawEvent) {
        match raw.what {
            RawKind::Switch { prev, next, .. } => {
                self.switches += 1;
                let before = self.running.insert(raw.cpu, next.thread);
                let is_broken = before.is_some_and(|before| before != prev.thread);
                self.broken += u64::from(is_broken);
            }
            RawKind::In { .. } | RawKind::Out { .. } => self.halves += 1,
            RawKind::Wakeup { is_new, .. } => self.wakeups += u64::from(!is_new),
            RawKind::Waking { .. } => self.wakings += 1,
            RawKind::Name { who, .. } => self.has_command |= &*who.name.text() == PERF_EXEC,
            RawKind::Lost { .. } => drop(self.running.remove(&raw.cpu)),
            _ => {}
        }
    }

    /// What the events can show. `is_partial`: the tool watched a command's threads only.
    pub(super) fn scope(&self, is_partial: bool) -> Scope {
        let is_chain = self.switches > 0 && self.broken * MAX_BROKEN_SHARE <= self.switches;
        Scope {
            has_switches: self.switches + self.halves > 0,
            has_all_cpus: is_chain && !is_partial,
            has_wakeups: self.wakeups + self.wakings > 0,
        }
    }

    pub(super) const fn has_command(&self) -> bool {
        self.has_command
    }

    /// Is `sched_wakeup` recorded? It says more than `sched_waking`.
    pub(super) const fn has_wakeups(&self) -> bool {
        self.wakeups > 0
    }
}

/// perf's name for the thread that becomes the command.
pub(super) const PERF_EXEC: &str = "perf-exec";

#[cfg(test)]
mod tests {
    use super::super::raw_event::{Comm, NamedThread};
    use super::*;
    use crate::LeaveReason;

    fn scope(switches: &[(u32, Tid, Tid)], is_partial: bool) -> Scope {
        let mut prefix = Prefix::default();
        let named = |thread| NamedThread {
            thread,
            name: Comm::default(),
        };
        for &(cpu, prev, next) in switches {
            prefix.add(&RawEvent {
                time_ns: 1,
                cpu,
                current: None,
                what: RawKind::Switch {
                    prev: named(prev),
                    left: LeaveReason::Blocked,
                    next: named(next),
                },
            });
        }
        prefix.scope(is_partial)
    }

    #[test]
    fn filtered_traces_are_distinguished_from_full_ones() {
        let whole = [(0, 1, 0), (1, 5, 6), (0, 0, 1), (1, 6, 5), (0, 1, 2)];
        assert!(scope(&whole, false).has_all_cpus);
        assert!(!scope(&whole, true).has_all_cpus);
        let some = [(0, 1, 7), (0, 1, 8), (1, 1, 0), (1, 0, 1), (0, 1, 8)];
        assert!(!scope(&some, false).has_all_cpus);
        assert!(!scope(&[], true).has_switches);
    }
}
