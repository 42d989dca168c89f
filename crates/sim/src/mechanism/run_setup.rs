//! The constants of a run: the CPUs, the computing threads, and their masks.

use super::{Policy, Scheduler};
use crate::workload::SimWorkload;
use pinwise_topology::{CpuSet, Topology};

/// Equal threads: those of the run, or of a neighbour.
pub(super) struct ThreadGroup {
    pub(super) policy: Policy,
    /// Mean burst of work before a wait.
    pub(super) burst_s: Option<f64>,
    pub(super) wait_s: Option<f64>,
    pub(super) working_set_bytes: Option<u64>,
    /// Positions of the usable CPUs.
    pub(super) allowed: Vec<usize>,
}

/// A thread before the run.
pub(super) struct ThreadSetup {
    /// Position of its group; 0 is the run itself.
    pub(super) group: usize,
    /// Its number within the group.
    pub(super) rank: usize,
    /// Its ideal CPU, as a position.
    pub(super) ideal: Option<usize>,
}

/// The constants of a run.
pub(super) struct RunSetup<'a> {
    pub(super) topology: &'a Topology,
    pub(super) scheduler: &'a Scheduler,
    pub(super) workload: &'a SimWorkload,
    pub(super) smt_throughput: f64,
    /// The used CPUs; a position is an index into them.
    pub(super) cpus: Vec<usize>,
    /// Index of the core of each of them (the CPU's id if it has none).
    pub(super) core_of: Vec<usize>,
    /// Length of tables indexed by `core_of`.
    pub(super) core_slots: usize,
    /// Last-level cache of each of them; CPUs without one are all under one.
    pub(super) llc_of: Vec<usize>,
    /// Length of tables indexed by `llc_of`.
    pub(super) llc_slots: usize,
    pub(super) groups: Vec<ThreadGroup>,
    /// Threads of the run first, then those of neighbours.
    pub(super) threads: Vec<ThreadSetup>,
}

impl<'a> RunSetup<'a> {
    pub(super) fn new(
        topology: &'a Topology,
        scheduler: &'a Scheduler,
        workload: &'a SimWorkload,
        cpus: &CpuSet,
        preferred: Option<&CpuSet>,
    ) -> Self {
        let neighbour_cpus = |neighbour: &super::Neighbour| neighbour.cpus_on(topology);
        let all_neighbour_cpus = scheduler.neighbours.iter().map(neighbour_cpus);
        let used = cpus.union(&CpuSet::union_of(all_neighbour_cpus));
        let cpu_list: Vec<usize> = used.iter().collect();
        let positions = |set: &CpuSet| -> Vec<usize> {
            (0..cpu_list.len())
                .filter(|&at| set.contains(cpu_list[at]))
                .collect()
        };
        let core = |cpu: usize| topology.cpu(cpu).and_then(|cpu| cpu.core).unwrap_or(cpu);
        let no_llc = topology.llcs.len();
        let llc = |cpu: usize| topology.cpu(cpu).and_then(|cpu| cpu.llc).unwrap_or(no_llc);
        let mut groups = vec![ThreadGroup {
            policy: if workload.places_itself {
                Policy::Pinned
            } else {
                scheduler.policy
            },
            burst_s: workload.burst_s,
            wait_s: workload.wait_s,
            working_set_bytes: workload.working_set_bytes,
            allowed: positions(cpus),
        }];
        let ideal: Vec<usize> = groups[0]
            .allowed
            .iter()
            .copied()
            .filter(|&at| preferred.is_none_or(|set| set.contains(cpu_list[at])))
            .collect();
        let count = usize::try_from(workload.threads).unwrap_or(1);
        let mut threads: Vec<ThreadSetup> = (0..count)
            .map(|rank| ThreadSetup {
                group: 0,
                rank,
                ideal: (!ideal.is_empty()).then(|| ideal[rank % ideal.len()]),
            })
            .collect();
        for neighbour in &scheduler.neighbours {
            threads.extend((0..neighbour.threads()).map(|rank| ThreadSetup {
                group: groups.len(),
                rank,
                ideal: None,
            }));
            groups.push(ThreadGroup {
                policy: scheduler.policy,
                burst_s: Some(neighbour.burst_s),
                wait_s: Some(neighbour.wait_s),
                working_set_bytes: None,
                allowed: positions(&neighbour_cpus(neighbour)),
            });
        }
        Self {
            topology,
            scheduler,
            workload,
            smt_throughput: workload.smt_throughput.unwrap_or(scheduler.smt_throughput),
            core_of: cpu_list.iter().map(|&cpu| core(cpu)).collect(),
            llc_of: cpu_list.iter().map(|&cpu| llc(cpu)).collect(),
            llc_slots: topology.llcs.len() + 1,
            core_slots: topology.cores.len().max(topology.cpus.len()),
            cpus: cpu_list,
            groups,
            threads,
        }
    }

    /// Number of the run's own threads.
    pub(super) fn own_threads(&self) -> usize {
        self.threads
            .iter()
            .take_while(|thread| thread.group == 0)
            .count()
    }

    pub(super) fn group(&self, thread: usize) -> &ThreadGroup {
        &self.groups[self.threads[thread].group]
    }

    pub(super) fn is_own(&self, thread: usize) -> bool {
        self.threads[thread].group == 0
    }
}
