//! The threads that a trace of a simulated machine shows.

use super::TracedRun;
use crate::{PreparedRun, SimulatedMachine};
use pinwise_sched::Tid;
use pinwise_topology::CpuSet;

/// Longest name that a kernel keeps, bytes.
const NAME_BYTES: usize = 15;

/// Threads by their numbers in the mechanism.
pub(super) struct Threads {
    /// Number of the run's own threads, which come first.
    pub(super) own: usize,
    pub(super) all: Vec<Thread>,
}

pub(super) struct Thread {
    pub(super) tid: Tid,
    pub(super) process: Tid,
    pub(super) name: Box<str>,
    pub(super) mask: CpuSet,
}

impl Threads {
    pub(super) fn new(
        machine: &mut SimulatedMachine,
        prepared: &PreparedRun,
        traced_run: &TracedRun<'_>,
    ) -> Self {
        let workload = &prepared.workload;
        let own = usize::try_from(workload.threads).unwrap_or(1);
        let places: Vec<usize> = traced_run.cpus.iter().collect();
        let mut all = Vec::new();
        let process = machine.new_threads(workload.threads);
        for tid in (process..).take(own) {
            let mask = match places.get(all.len() % places.len().max(1)) {
                Some(&cpu) if workload.places_itself => CpuSet::single(cpu),
                _ => traced_run.cpus.clone(),
            };
            let name = cut_name(&prepared.name);
            all.push(Thread {
                tid,
                process,
                name,
                mask,
            });
        }
        let scheduler = machine.description.scheduler.clone().unwrap_or_default();
        for neighbour in &scheduler.neighbours {
            let threads = u32::try_from(neighbour.threads()).unwrap_or(1);
            let process = machine.new_threads(threads);
            let mask = neighbour.cpus_on(&machine.description.topology);
            all.extend((process..).take(neighbour.threads()).map(|tid| Thread {
                tid,
                process,
                name: cut_name(&neighbour.name),
                mask: mask.clone(),
            }));
        }
        Self { own, all }
    }
}

/// Cuts a name to the kernel's limit.
fn cut_name(name: &str) -> Box<str> {
    let mut end = name.len().min(NAME_BYTES);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].into()
}
