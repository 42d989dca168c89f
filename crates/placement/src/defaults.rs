//! The placements that `compare` tries by default: few, each for a question that the machine's
//! shape raises.

use super::{Placement, Wish};
use pinwise_topology::{Level, Topology};

/// Placements worth trying for a program of this many threads (`None`: unknown) on this machine,
/// `os-default` first. Some may use the same CPUs; they are merged once realised.
#[must_use]
pub fn default_placements(topology: &Topology, threads: Option<usize>) -> Vec<Placement> {
    let cpus = topology.allowed.len();
    let threads = threads.unwrap_or(cpus).clamp(1, cpus.max(1));
    let mut arms = vec![Placement::os_default()];
    if threads == 1 {
        arms.extend(list_single_thread_arms(topology));
    } else {
        arms.extend(list_several_thread_arms(topology, threads));
    }
    arms
}

/// Does keeping the thread on one core, in one cache or on one node help?
fn list_single_thread_arms(topology: &Topology) -> Vec<Placement> {
    let cores = topology.allowed_units(Level::Core).len();
    let mut arms = vec![Placement::new(Wish::One(Level::Core, 0))];
    if cores > 1 {
        // The first core usually handles most interrupts; the last one does not.
        arms.push(Placement::new(Wish::One(Level::Core, cores - 1)));
    }
    arms.extend(list_smaller_units(topology, 1));
    arms.extend(list_core_kinds(topology, 1));
    arms.extend(list_uneven_candidates(topology, 1));
    arms
}

/// Do the threads gain from shared caches, or from distance?
fn list_several_thread_arms(topology: &Topology, threads: usize) -> Vec<Placement> {
    let mut arms = Vec::new();
    if topology.has_smt() {
        arms.push(Placement::new(Wish::OnePerCore));
    }
    arms.push(Placement::with_count(Wish::Compact, threads));
    arms.push(Placement::with_count(Wish::Spread, threads));
    arms.extend(list_smaller_units(topology, threads));
    arms.extend(list_core_kinds(topology, threads));
    arms.extend(list_uneven_candidates(topology, threads));
    if do_all_arms_use_every_cpu(topology, &arms) {
        // Every arm uses all CPUs: the only open question is the cost of fewer.
        arms.push(Placement::new(Wish::One(Level::Core, 0)));
    }
    arms
}

fn list_smaller_units(topology: &Topology, threads: usize) -> Vec<Placement> {
    [Level::Llc, Level::Numa, Level::Package]
        .into_iter()
        .filter(|&level| {
            let units = topology.allowed_units(level);
            units.len() > 1 && units[0].len() >= threads
        })
        .map(|level| Placement::new(Wish::One(level, 0)))
        .collect()
}

fn list_core_kinds(topology: &Topology, threads: usize) -> Vec<Placement> {
    [("P", Wish::PCores), ("E", Wish::ECores)]
        .into_iter()
        .filter(|(name, _)| {
            topology.kinds.iter().any(|kind| {
                kind.name == *name && kind.cpus.intersection(&topology.allowed).len() >= threads
            })
        })
        .map(|(_, wish)| Placement::new(wish))
        .collect()
}

/// If caches or cores of one kind differ: does the program gain from cache or from clock speed?
fn list_uneven_candidates(topology: &Topology, threads: usize) -> Vec<Placement> {
    let arms = [
        Placement::new(Wish::LargestLlc),
        match threads {
            1 => Placement::new(Wish::BestCore),
            _ => Placement::with_count(Wish::BestCore, threads),
        },
    ];
    let fits = |arm: &Placement| {
        let realised = arm.realise(topology);
        realised.is_ok_and(|realised| realised.cpus.len() >= threads)
    };
    arms.into_iter().filter(fits).collect()
}

fn do_all_arms_use_every_cpu(topology: &Topology, arms: &[Placement]) -> bool {
    arms.iter().all(|arm| {
        arm.realise(topology)
            .is_ok_and(|realised| realised.cpus == topology.allowed)
    })
}
