//! Lists the candidates of a search: `os-default`, then the shapes of every number of threads.

use std::collections::BTreeSet;

use super::{Candidate, SearchPlan};
use crate::error::StudyError;
use pinwise_placement::Placement;
use pinwise_placement::space::{Occupancy, Space};
use pinwise_topology::Topology;

/// All candidates, `os-default` first. A shape of the CPUs that `os-default` has anyway is left out.
pub(super) fn list_candidates(
    plan: &SearchPlan,
    topology: &Topology,
    space: &Space,
) -> Result<Vec<Candidate>, StudyError> {
    let mut candidates = vec![default_candidate(plan, topology, space)?];
    for &threads in &plan.threads {
        if threads == 0 || threads > space.cpus() {
            return Err(StudyError::Plan(format!(
                "--threads {threads}: from 1 to {} threads have a CPU each here",
                space.cpus()
            )));
        }
        for shape in space.shapes(threads) {
            let candidate = from_occupancy(plan, topology, space, shape.occupancy, threads)?;
            let first = &candidates[0];
            let is_default = candidate.place.cpus == first.place.cpus && threads == first.threads;
            if !is_default {
                candidates.push(candidate);
            }
        }
    }
    Ok(candidates)
}

fn default_candidate(
    plan: &SearchPlan,
    topology: &Topology,
    space: &Space,
) -> Result<Candidate, StudyError> {
    let place = Placement::os_default().realise(topology);
    let place = place.map_err(|error| StudyError::Plan(error.to_string()))?;
    let occupancy = space.occupancy(&place.cpus);
    let no_cpu = || StudyError::Plan("this machine has no CPU to run on".to_owned());
    Ok(Candidate {
        name: place.placement.to_string(),
        workload: if plan.default_is_counted {
            plan.workload.clone()
        } else {
            let threads = plan.default_threads;
            plan.workload.with_threads(threads, plan.sets_threads)
        },
        occupancy: occupancy.ok_or_else(no_cpu)?,
        threads: plan.default_threads,
        place,
    })
}

/// A candidate with this occupancy.
pub(super) fn from_occupancy(
    plan: &SearchPlan,
    topology: &Topology,
    space: &Space,
    occupancy: Occupancy,
    threads: usize,
) -> Result<Candidate, StudyError> {
    let placement = space.placement(&occupancy);
    let place = placement.realise(topology);
    let place = place.map_err(|error| StudyError::Plan(error.to_string()))?;
    Ok(Candidate {
        name: name_candidate(plan, &placement, threads),
        workload: plan.workload.with_threads(threads, plan.sets_threads),
        place,
        occupancy,
        threads,
    })
}

/// The placement, with the number of threads if several numbers are searched.
pub(super) fn name_candidate(plan: &SearchPlan, placement: &Placement, threads: usize) -> String {
    match plan.threads.len() {
        0 | 1 => placement.to_string(),
        _ if threads == 1 => format!("{placement} @ 1 thread"),
        _ => format!("{placement} @ {threads} threads"),
    }
}

impl Candidate {
    /// A description such as "8 cores in one LLC", or the placement's name if that is a word.
    pub(super) fn label(&self) -> String {
        pinwise_record::label_placement(&self.place.placement.to_string(), &self.place.used)
    }

    /// The description, followed by the name that `--place` takes.
    pub(super) fn title(&self) -> String {
        let label = self.label();
        match self.name.starts_with(&label) {
            true => self.name.clone(),
            false => format!("{label} ({})", self.name),
        }
    }
}

/// The most compact and the most spread shape, for the number of threads with most shapes. The model
/// extrapolates badly from shapes in between.
pub(super) fn find_extremes(candidates: &[Candidate]) -> Vec<usize> {
    let shapes_of = |threads: usize| {
        let arms = 1..candidates.len();
        let shapes = arms.filter(move |&arm| candidates[arm].threads == threads);
        shapes.collect::<Vec<usize>>()
    };
    let numbers: BTreeSet<usize> = candidates.iter().map(|arm| arm.threads).collect();
    let most = numbers.into_iter().map(shapes_of).max_by_key(Vec::len);
    // Shapes are sorted by the number of units.
    let shapes = most.unwrap_or_default();
    let ends = [shapes.first(), shapes.last()];
    let mut ends: Vec<usize> = ends.into_iter().flatten().copied().collect();
    ends.dedup();
    ends
}
