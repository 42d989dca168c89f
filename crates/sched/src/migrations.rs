//! Counts moves between CPUs by the boundary crossed.

use super::Crossed;

/// Moves between CPUs by the outermost boundary crossed; each is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Migrations {
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
    /// Unknown.
    pub unknown: u64,
}

impl Migrations {
    /// Adds this number of moves.
    pub const fn add(&mut self, crossed: Crossed, moves: u64) {
        let count = match crossed {
            Crossed::Smt => &mut self.smt,
            Crossed::Core => &mut self.core,
            Crossed::Llc => &mut self.llc,
            Crossed::Numa => &mut self.numa,
            Crossed::Package => &mut self.package,
            Crossed::Unknown => &mut self.unknown,
        };
        *count = count.saturating_add(moves);
    }

    /// Adds the counts of another.
    pub const fn merge(&mut self, other: &Self) {
        self.add(Crossed::Smt, other.smt);
        self.add(Crossed::Core, other.core);
        self.add(Crossed::Llc, other.llc);
        self.add(Crossed::Numa, other.numa);
        self.add(Crossed::Package, other.package);
        self.add(Crossed::Unknown, other.unknown);
    }

    /// All moves.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.smt + self.core + self.llc + self.numa + self.package + self.unknown
    }
}
