//! A copy of a machine with the units that measurements found.

use super::{Cpu, CpuSet, Level, Topology};

impl Topology {
    /// The same machine with these groups as the units of a level; CPUs in none of them become
    /// units of their own. NUMA nodes and CPUs themselves stay as the kernel has them.
    #[must_use]
    pub fn with_level(&self, level: Level, groups: &[CpuSet]) -> Self {
        let mut machine = self.clone();
        let units = match level {
            Level::Core => &mut machine.cores,
            Level::Llc => &mut machine.llcs,
            Level::Package => &mut machine.packages,
            Level::Numa | Level::Cpu => return machine,
        };
        *units = partition(groups, &self.online);
        let (cores, llcs, packages) = (&machine.cores, &machine.llcs, &machine.packages);
        let unit_of = |sets: &[CpuSet], id| sets.iter().position(|set: &CpuSet| set.contains(id));
        machine.cpus = self
            .cpus
            .iter()
            .map(|cpu| {
                let core = unit_of(cores, cpu.id);
                let rank = core.and_then(|core| cores[core].iter().position(|c| c == cpu.id));
                Cpu {
                    core,
                    llc: unit_of(llcs, cpu.id),
                    package: unit_of(packages, cpu.id),
                    smt_rank: rank.unwrap_or(0),
                    ..cpu.clone()
                }
            })
            .collect();
        machine
    }
}

/// Makes the groups disjoint and adds every other CPU alone, by lowest CPU.
fn partition(groups: &[CpuSet], all: &CpuSet) -> Vec<CpuSet> {
    let mut remaining = all.clone();
    let mut units = Vec::new();
    for group in groups {
        let unit = group.intersection(&remaining);
        if !unit.is_empty() {
            remaining = remaining.difference(&unit);
            units.push(unit);
        }
    }
    units.extend(remaining.iter().map(CpuSet::single));
    units.sort_by_key(CpuSet::first);
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_cores_become_siblings() {
        let reported = Topology::from_synthetic("l3:1 core:4 pu:1").unwrap();
        let siblings: CpuSet = [1, 3].into_iter().collect();
        let measured = reported.with_level(Level::Core, &[siblings]);
        let cores: Vec<String> = measured.cores.iter().map(CpuSet::to_string).collect();
        assert_eq!(cores, ["0", "1,3", "2"]);
        assert_eq!(
            (measured.cpus[3].core, measured.cpus[3].smt_rank),
            (Some(1), 1)
        );
        assert!(measured.has_smt() && !reported.has_smt());
        assert_eq!(measured.with_level(Level::Core, &reported.cores), reported);
    }
}
