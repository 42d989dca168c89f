//! Moves of threads between CPUs.

use serde::{Deserialize, Serialize};

/// Moves between CPUs, by the outermost boundary crossed; each move is counted
/// once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MigrationCounts {
    /// To an SMT sibling on the same core.
    pub smt: u64,
    /// To another core of the same last-level cache.
    pub core: u64,
    /// To another last-level cache of the same NUMA node.
    pub llc: u64,
    /// To another NUMA node of the same package.
    pub numa: u64,
    /// To another package.
    pub package: u64,
    /// The machine's description lacks one of the CPUs, or moves were only counted.
    pub unknown: u64,
}

impl MigrationCounts {
    /// Moves whose boundary is known, each with its words, innermost first.
    #[must_use]
    pub const fn list_crossings(&self) -> [(u64, &'static str); 5] {
        [
            (self.smt, "to an SMT sibling"),
            (self.core, "across cores"),
            (self.llc, "across LLCs"),
            (self.numa, "across NUMA nodes"),
            (self.package, "across packages"),
        ]
    }

    /// All moves.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.smt + self.core + self.llc + self.numa + self.package + self.unknown
    }
}
