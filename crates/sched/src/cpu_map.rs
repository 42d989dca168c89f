//! Finds the core, cache, NUMA node and package of a CPU by its number.

use pinwise_topology::{CpuSet, Topology};

/// The outermost boundary that a move between two CPUs crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Crossed {
    /// None: to an SMT sibling on the same core.
    Smt,
    /// To another core of the same last-level cache.
    Core,
    /// To another last-level cache of the same NUMA node.
    Llc,
    /// To another NUMA node of the same package.
    Numa,
    /// To another package.
    Package,
    /// The machine's description lacks one of the CPUs.
    Unknown,
}

/// The units that a CPU belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CpuLocation {
    core: usize,
    llc: Option<usize>,
    numa_node: Option<usize>,
    package: Option<usize>,
}

/// A topology, indexed by CPU number.
#[derive(Debug, Clone)]
pub struct CpuMap {
    locations: Vec<Option<CpuLocation>>,
    cores: Vec<CpuSet>,
    online: CpuSet,
}

impl CpuMap {
    /// Indexes a topology.
    #[must_use]
    pub fn new(topology: &Topology) -> Self {
        let length = topology.cpus.last().map_or(0, |cpu| cpu.id + 1);
        let mut locations = vec![None; length];
        for cpu in &topology.cpus {
            locations[cpu.id] = cpu.core.map(|core| CpuLocation {
                core,
                llc: cpu.llc,
                numa_node: cpu.numa_node,
                package: cpu.package,
            });
        }
        Self {
            locations,
            cores: topology.cores.clone(),
            online: topology.online.clone(),
        }
    }

    fn location(&self, cpu: u32) -> Option<CpuLocation> {
        self.locations.get(cpu as usize).copied().flatten()
    }

    /// The core of a CPU, as an index into [`CpuMap::cores`].
    #[must_use]
    pub fn core(&self, cpu: u32) -> Option<usize> {
        self.location(cpu).map(|location| location.core)
    }

    /// All cores.
    #[must_use]
    pub fn cores(&self) -> &[CpuSet] {
        &self.cores
    }

    /// CPUs that are switched on.
    #[must_use]
    pub const fn online(&self) -> &CpuSet {
        &self.online
    }

    /// Does any core have several CPUs?
    #[must_use]
    pub fn has_smt(&self) -> bool {
        self.cores.iter().any(|core| core.len() > 1)
    }

    /// The outermost boundary that a move between two CPUs crosses.
    #[must_use]
    pub fn classify_move(&self, from: u32, to: u32) -> Crossed {
        let (Some(from), Some(to)) = (self.location(from), self.location(to)) else {
            return Crossed::Unknown;
        };
        if from.package != to.package {
            Crossed::Package
        } else if from.numa_node != to.numa_node {
            Crossed::Numa
        } else if from.llc != to.llc {
            Crossed::Llc
        } else if from.core != to.core {
            Crossed::Core
        } else {
            Crossed::Smt
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(description: &str, from: u32, to: u32, expected: Crossed) {
        let topology = Topology::from_synthetic(description).unwrap();
        let cpu_map = CpuMap::new(&topology);
        assert_eq!(cpu_map.classify_move(from, to), expected);
        assert_eq!(cpu_map.classify_move(to, from), expected);
    }

    #[test]
    fn moves_are_classified_by_the_outermost_boundary() {
        let machine = "package:2 numa:2 l3:2 core:2 pu:2";
        check(machine, 0, 1, Crossed::Smt);
        check(machine, 1, 2, Crossed::Core);
        check(machine, 0, 4, Crossed::Llc);
        check(machine, 0, 8, Crossed::Numa);
        check(machine, 0, 16, Crossed::Package);
        check(machine, 0, 99, Crossed::Unknown);
    }
}
