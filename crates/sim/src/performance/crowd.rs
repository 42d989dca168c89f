//! The threads in each unit, which share it.

use super::cpu_table::{CpuTable, CpuUnits};
use super::keys::Figures;

/// Threads per unit of each level.
#[derive(Debug)]
pub(super) struct Crowd {
    pub(super) on_cpu: Vec<f64>,
    pub(super) on_core: Vec<f64>,
    /// CPUs of each core with a thread.
    pub(super) busy_cpus: Vec<f64>,
    pub(super) on_llc: Vec<f64>,
    /// Groups of threads with one in this cache.
    pub(super) groups: Vec<f64>,
    pub(super) on_node: Vec<f64>,
    pub(super) on_package: Vec<f64>,
    /// Cores of each package with a thread.
    pub(super) active_cores: Vec<f64>,
}

impl Crowd {
    pub(super) fn new(table: &CpuTable, group: usize, at: &[usize]) -> Self {
        let llcs = table.llc_bytes.len();
        let mut crowd = Self {
            on_cpu: vec![0.0; table.cpus.len()],
            on_core: vec![0.0; table.cores],
            busy_cpus: vec![0.0; table.cores],
            on_llc: vec![0.0; llcs],
            groups: vec![0.0; llcs],
            on_node: vec![0.0; table.nodes],
            on_package: vec![0.0; table.packages],
            active_cores: vec![0.0; table.packages],
        };
        let mut last_group = vec![usize::MAX; llcs];
        for (thread, &at) in at.iter().enumerate() {
            let cpu = &table.cpus[at];
            if crowd.on_core[cpu.core] < 0.5 {
                crowd.active_cores[cpu.package] += 1.0;
            }
            if crowd.on_cpu[at] < 0.5 {
                crowd.busy_cpus[cpu.core] += 1.0;
            }
            if last_group[cpu.llc] != thread / group {
                last_group[cpu.llc] = thread / group;
                crowd.groups[cpu.llc] += 1.0;
            }
            crowd.on_cpu[at] += 1.0;
            crowd.on_core[cpu.core] += 1.0;
            crowd.on_llc[cpu.llc] += 1.0;
            crowd.on_node[cpu.node] += 1.0;
            crowd.on_package[cpu.package] += 1.0;
        }
        crowd
    }
}

/// Counts of a group's threads per unit.
pub(super) struct UnitCounts {
    pub(super) cores: Vec<f64>,
    pub(super) llcs: Vec<f64>,
    pub(super) nodes: Vec<f64>,
    pub(super) packages: Vec<f64>,
}

impl UnitCounts {
    pub(super) fn new(table: &CpuTable) -> Self {
        Self {
            cores: vec![0.0; table.cores],
            llcs: vec![0.0; table.llc_bytes.len()],
            nodes: vec![0.0; table.nodes],
            packages: vec![0.0; table.packages],
        }
    }

    /// Adds threads at these positions; with weight −1 it removes them.
    pub(super) fn add(&mut self, table: &CpuTable, members: &[usize], weight: f64) {
        for &at in members {
            let cpu = &table.cpus[at];
            self.cores[cpu.core] += weight;
            self.llcs[cpu.llc] += weight;
            self.nodes[cpu.node] += weight;
            self.packages[cpu.package] += weight;
        }
    }

    /// Sum of one-way times from this CPU to all others in use, ns.
    pub(super) fn sum_ns(&self, cpu: &CpuUnits, threads: usize, figures: &Figures) -> f64 {
        let core = self.cores[cpu.core];
        let llc = self.llcs[cpu.llc].max(core);
        let node = self.nodes[cpu.node].max(llc);
        let package = self.packages[cpu.package].max(node);
        let all = (threads as f64).max(package);
        let counts = [
            core - 1.0,
            llc - core,
            node - llc,
            package - node,
            all - package,
        ];
        let times = counts.iter().zip(figures.transfer_ns);
        times.map(|(count, ns)| count * ns).sum()
    }
}
