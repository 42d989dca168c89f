//! Moves between CPUs by the outermost boundary that they cross.

use crate::topology::Topology;

/// What lies between two CPUs, innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Boundary {
    /// They are siblings on one core.
    Smt,
    /// They share a last-level cache.
    Core,
    /// They share a NUMA node.
    Llc,
    /// They share a package.
    Numa,
    /// They share nothing.
    Package,
    /// The machine's description has not both, or moves were only counted.
    Unknown,
}

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
    pub(super) const fn count(&mut self, boundary: Boundary, moves: u64) {
        let place = match boundary {
            Boundary::Smt => &mut self.smt,
            Boundary::Core => &mut self.core,
            Boundary::Llc => &mut self.llc,
            Boundary::Numa => &mut self.numa,
            Boundary::Package => &mut self.package,
            Boundary::Unknown => &mut self.unknown,
        };
        *place = place.saturating_add(moves);
    }
}

/// Where each CPU stands.
#[derive(Debug)]
pub(super) struct Places {
    /// Package, NUMA node, last-level cache, core; by number of the CPU.
    units: Vec<Option<[Option<usize>; 4]>>,
}

impl Places {
    pub(super) fn of(topology: &Topology) -> Self {
        let count = topology.cpus.last().map_or(0, |cpu| cpu.id + 1);
        let mut units = vec![None; count];
        for cpu in &topology.cpus {
            units[cpu.id] = Some([cpu.package, cpu.numa_node, cpu.llc, cpu.core]);
        }
        Self { units }
    }

    /// The outermost boundary between two CPUs. A level that is not reported
    /// parts nothing.
    pub(super) fn crossed(&self, from: u32, to: u32) -> Boundary {
        let (Some(from), Some(to)) = (self.at(from), self.at(to)) else {
            return Boundary::Unknown;
        };
        let differs = |level: usize| {
            let (a, b) = (from[level], to[level]);
            a.is_some() && b.is_some() && a != b
        };
        let outermost = [
            Boundary::Package,
            Boundary::Numa,
            Boundary::Llc,
            Boundary::Core,
        ];
        let crossed = (0..4).find(|&level| differs(level));
        match crossed {
            Some(level) => outermost[level],
            None if from[3].is_some() && from[3] == to[3] => Boundary::Smt,
            None => Boundary::Unknown,
        }
    }

    fn at(&self, cpu: u32) -> Option<[Option<usize>; 4]> {
        let cpu = usize::try_from(cpu).ok()?;
        self.units.get(cpu).copied().flatten()
    }
}
