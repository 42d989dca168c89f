//! The constants of a run: the CPUs, the computing threads, and their masks.

use super::{Policy, Scheduler};
use crate::workload::SimWorkload;
use pinwise_topology::{CpuSet, Topology};

/// Equal threads: those of the run, or of a neighbour.
pub(super) struct Party {
    pub(super) policy: Policy,
    /// Mean burst of work before a wait.
    pub(super) burst_s: Option<f64>,
    pub(super) wait_s: Option<f64>,
    pub(super) working_set_bytes: Option<u64>,
    /// Positions of the usable CPUs.
    pub(super) allowed: Vec<usize>,
}

/// A thread before the run.
pub(super) struct Role {
    /// Position of its party; 0 is the run itself.
    pub(super) party: usize,
    /// Its number within the party.
    pub(super) rank: usize,
    /// Its ideal CPU, as a position.
    pub(super) ideal: Option<usize>,
}

/// The constants of a run.
pub(super) struct Field<'a> {
    pub(super) topology: &'a Topology,
    pub(super) scheduler: &'a Scheduler,
    pub(super) workload: &'a SimWorkload,
    pub(super) smt_throughput: f64,
    /// The used CPUs; a position is an index into them.
    pub(super) cpus: Vec<usize>,
    /// Position among cores of each of them.
    pub(super) core_of: Vec<usize>,
    pub(super) cores: usize,
    /// Last-level cache of each of them; CPUs without one are all under one.
    pub(super) llc_of: Vec<usize>,
    pub(super) llcs: usize,
    pub(super) parties: Vec<Party>,
    /// Threads of the run first, then those of neighbours.
    pub(super) roles: Vec<Role>,
}

impl<'a> Field<'a> {
    pub(super) fn new(
        topology: &'a Topology,
        scheduler: &'a Scheduler,
        workload: &'a SimWorkload,
        cpus: &CpuSet,
        preferred: Option<&CpuSet>,
    ) -> Self {
        let mut used = cpus.clone();
        let theirs = |neighbour: &super::Neighbour| neighbour.cpus_on(topology);
        for neighbour in &scheduler.neighbours {
            used = used.union(&theirs(neighbour));
        }
        let list: Vec<usize> = used.iter().collect();
        let positions = |set: &CpuSet| -> Vec<usize> {
            (0..list.len())
                .filter(|&at| set.contains(list[at]))
                .collect()
        };
        let core = |cpu: usize| topology.cpu(cpu).and_then(|cpu| cpu.core).unwrap_or(cpu);
        let none = topology.llcs.len();
        let llc = |cpu: usize| topology.cpu(cpu).and_then(|cpu| cpu.llc).unwrap_or(none);
        let mut parties = vec![Party {
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
        let wanted: Vec<usize> = parties[0]
            .allowed
            .iter()
            .copied()
            .filter(|&at| preferred.is_none_or(|set| set.contains(list[at])))
            .collect();
        let threads = usize::try_from(workload.threads).unwrap_or(1);
        let mut roles: Vec<Role> = (0..threads)
            .map(|rank| Role {
                party: 0,
                rank,
                ideal: (!wanted.is_empty()).then(|| wanted[rank % wanted.len()]),
            })
            .collect();
        for neighbour in &scheduler.neighbours {
            roles.extend((0..neighbour.threads()).map(|rank| Role {
                party: parties.len(),
                rank,
                ideal: None,
            }));
            parties.push(Party {
                policy: scheduler.policy,
                burst_s: Some(neighbour.burst_s),
                wait_s: Some(neighbour.wait_s),
                working_set_bytes: None,
                allowed: positions(&theirs(neighbour)),
            });
        }
        Self {
            topology,
            scheduler,
            workload,
            smt_throughput: workload.smt_throughput.unwrap_or(scheduler.smt_throughput),
            core_of: list.iter().map(|&cpu| core(cpu)).collect(),
            llc_of: list.iter().map(|&cpu| llc(cpu)).collect(),
            llcs: topology.llcs.len() + 1,
            cores: topology.cores.len().max(topology.cpus.len()),
            cpus: list,
            parties,
            roles,
        }
    }

    /// Threads of the run itself.
    pub(super) fn own_threads(&self) -> usize {
        self.roles.iter().take_while(|role| role.party == 0).count()
    }

    pub(super) fn party(&self, thread: usize) -> &Party {
        &self.parties[self.roles[thread].party]
    }

    pub(super) fn is_own(&self, thread: usize) -> bool {
        self.roles[thread].party == 0
    }
}
