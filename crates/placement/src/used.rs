//! How many units of each level a placement uses, in numbers and in words.

use pinwise_topology::{CpuSet, Level, Topology};

/// How many units of each level a set of CPUs touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsedUnits {
    /// Packages.
    pub packages: usize,
    /// NUMA nodes.
    pub numa_nodes: usize,
    /// Last-level-cache domains; 0 if caches are not reported.
    pub llcs: usize,
    /// Cores.
    pub cores: usize,
    /// CPUs.
    pub cpus: usize,
}

impl UsedUnits {
    /// Counts the units that `cpus` touch.
    #[must_use]
    pub fn count(topology: &Topology, cpus: &CpuSet) -> Self {
        let touched = |level: Level| {
            let units = topology.units(level);
            units.iter().filter(|unit| unit.intersects(cpus)).count()
        };
        Self {
            packages: touched(Level::Package),
            numa_nodes: touched(Level::Numa),
            llcs: touched(Level::Llc),
            cores: touched(Level::Core),
            cpus: cpus.len(),
        }
    }

    /// "8 cores in one LLC", "32 CPUs of 16 cores in 4 LLCs, 2 packages".
    #[must_use]
    pub fn describe(&self) -> String {
        let units = |count: usize, noun: &str| match count {
            1 => format!("one {noun}"),
            n => format!("{n} {noun}s"),
        };
        let cores = units(self.cores, "core");
        let what = match self.cores == self.cpus {
            true => cores,
            false => format!("{} of {cores}", units(self.cpus, "CPU")),
        };
        let (inner, noun) = match self.llcs {
            0 => (self.packages, "package"),
            llcs => (llcs, "LLC"),
        };
        let around = match (self.packages, self.numa_nodes) {
            (packages, _) if packages > 1 && noun == "LLC" => units(packages, "package"),
            (_, nodes) if nodes > 1 => units(nodes, "NUMA node"),
            _ => return format!("{what} in {}", units(inner, noun)),
        };
        format!("{what} in {}, {around}", units(inner, noun))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_units_are_described_as_people_do() {
        let used = |packages, numa_nodes, llcs, cores, cpus| {
            let used = UsedUnits {
                packages,
                numa_nodes,
                llcs,
                cores,
                cpus,
            };
            used.describe()
        };
        assert_eq!(used(1, 1, 1, 8, 8), "8 cores in one LLC");
        assert_eq!(used(1, 1, 1, 1, 2), "2 CPUs of one core in one LLC");
        assert_eq!(used(2, 4, 4, 16, 16), "16 cores in 4 LLCs, 2 packages");
        assert_eq!(used(1, 2, 4, 16, 16), "16 cores in 4 LLCs, 2 NUMA nodes");
        assert_eq!(used(1, 1, 0, 3, 3), "3 cores in one package");
    }
}
