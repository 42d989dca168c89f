//! Threads of other programs that ran where followed threads were queued.

use std::collections::BTreeMap;

use super::super::summary::Occupant;

/// Limits the names that are kept.
const MAX_NAMES: usize = 4096;
/// Limits the occupants of a summary.
const MAX_LISTED: usize = 8;

/// CPU time by the name of the thread, ns.
#[derive(Debug, Default)]
pub(super) struct Occupants(BTreeMap<Box<str>, u64>);

impl Occupants {
    /// Adds CPU time of a thread that followed threads were queued behind; nothing if its name is
    /// not known.
    pub(super) fn add(&mut self, name: &str, cpu_ns: u64) {
        if name.is_empty() || cpu_ns == 0 {
            return;
        }
        if self.0.len() < MAX_NAMES || self.0.contains_key(name) {
            *self.0.entry(name.into()).or_default() += cpu_ns;
        }
    }

    /// Those with the most CPU time, the first first.
    pub(super) fn finish(self) -> Vec<Occupant> {
        let occupants = self.0.into_iter();
        let occupants = occupants.map(|(name, cpu_ns)| Occupant { name, cpu_ns });
        let mut occupants: Vec<Occupant> = occupants.collect();
        occupants.sort_by_key(|occupant| std::cmp::Reverse(occupant.cpu_ns));
        occupants.truncate(MAX_LISTED);
        occupants
    }
}
