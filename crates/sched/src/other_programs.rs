//! Threads of other programs that ran where followed threads were queued.

use std::collections::BTreeMap;

/// Threads of one name behind which followed threads were queued; those of unknown names are left
/// out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherProgram {
    /// Their name.
    pub name: Box<str>,
    /// Their CPU time while followed threads were queued on the same CPU.
    pub cpu_ns: u64,
}

/// Limits the names that are kept.
const MAX_NAMES: usize = 4096;
/// Limits the programs of a summary.
const MAX_LISTED: usize = 8;

/// CPU time by the name of the thread, ns.
#[derive(Debug, Default)]
pub(crate) struct OtherPrograms(BTreeMap<Box<str>, u64>);

impl OtherPrograms {
    /// Adds CPU time of a thread that followed threads were queued behind; nothing if its name is
    /// not known.
    pub(crate) fn add(&mut self, name: &str, cpu_ns: u64) {
        if name.is_empty() || cpu_ns == 0 {
            return;
        }
        if self.0.len() < MAX_NAMES || self.0.contains_key(name) {
            *self.0.entry(name.into()).or_default() += cpu_ns;
        }
    }

    /// Those with the most CPU time, the first first.
    pub(crate) fn finish(self) -> Vec<OtherProgram> {
        let programs = self.0.into_iter();
        let programs = programs.map(|(name, cpu_ns)| OtherProgram { name, cpu_ns });
        let mut programs: Vec<OtherProgram> = programs.collect();
        programs.sort_by_key(|program| std::cmp::Reverse(program.cpu_ns));
        programs.truncate(MAX_LISTED);
        programs
    }
}
