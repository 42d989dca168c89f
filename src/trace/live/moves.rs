//! Counts of moves between CPUs by what they crossed.

use crate::trace::Crossed;

/// How many moves crossed what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moves {
    /// To an SMT sibling.
    pub smt: u64,
    /// To another core of the same last-level cache.
    pub core: u64,
    /// To another last-level cache of the same NUMA node.
    pub llc: u64,
    /// To another NUMA node of the same package.
    pub numa: u64,
    /// To another package.
    pub package: u64,
    /// Not told.
    pub unknown: u64,
}

impl Moves {
    pub(super) const fn count(&mut self, crossed: Crossed, moves: u64) {
        let place = match crossed {
            Crossed::Smt => &mut self.smt,
            Crossed::Core => &mut self.core,
            Crossed::Llc => &mut self.llc,
            Crossed::Numa => &mut self.numa,
            Crossed::Package => &mut self.package,
            Crossed::Unknown => &mut self.unknown,
        };
        *place = place.saturating_add(moves);
    }
}
