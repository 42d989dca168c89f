//! What a placement means, and what common tools call it.

use super::emit::{Context, Emission, Target, Tool, emit};
use super::{Locality, Placement, Realised, Wish};
use pinwise_topology::Topology;

/// What a placement asks for, as a sentence.
#[must_use]
pub fn meaning(placement: &Placement) -> String {
    let text = match &placement.wish {
        Wish::Compact if placement.locality.is_some() && placement.count.is_none() => {
            "All allowed CPUs".to_owned()
        }
        Wish::OsDefault => "All allowed CPUs, left to the scheduler".to_owned(),
        Wish::Compact => "CPUs side by side: the siblings of a core first".to_owned(),
        Wish::OnePerCore => "One CPU of each core".to_owned(),
        Wish::OnePerLlc => "One CPU of each last-level cache".to_owned(),
        Wish::OnePerNuma => "One CPU of each NUMA node".to_owned(),
        Wish::Spread => "CPUs as far apart as possible".to_owned(),
        Wish::Balanced => "Neighbouring cores, each used once before any second sibling".to_owned(),
        Wish::PCores => "All CPUs of the fastest kind of core".to_owned(),
        Wish::ECores => "All CPUs of the slowest kind of core".to_owned(),
        Wish::One(level, index) if placement.locality.is_some() => {
            format!("All CPUs of one {}, number {index}", level.noun())
        }
        Wish::One(level, index) => {
            format!("All CPUs of {} {index}", level.noun())
        }
        Wish::Cpus(_) => "The CPUs listed".to_owned(),
        Wish::Mask(_) => "The CPUs of the mask".to_owned(),
        Wish::Shape(shape) if shape.cpus.is_some() => {
            "So many CPUs, spread evenly over so many units of each level".to_owned()
        }
        Wish::Shape(_) => "So many units of each level, spread over the machine".to_owned(),
        Wish::Tree(_) => "So many units of each level in each unit around them".to_owned(),
    };
    let text = match &placement.locality {
        None => text,
        Some(locality) => format!("{text}, {}", place(locality)),
    };
    match placement.count {
        None => format!("{text}."),
        Some(1) => format!("{text}; the first CPU of these."),
        Some(count) => format!("{text}; the first {count} CPUs of these."),
    }
}

fn place(locality: &Locality) -> String {
    match locality.is_near {
        true => format!("of those near {}", locality.device),
        false => format!("of those not near {}", locality.device),
    }
}

/// The tools that an explanation shows, of those that [`emit`] knows.
const SHOWN: [Tool; 5] = [
    Tool::Taskset,
    Tool::Numactl,
    Tool::HwlocBind,
    Tool::Omp,
    Tool::Slurm,
];

/// The placement in the words of a few common tools; `COMMAND` stands for the
/// program.
#[must_use]
pub fn equivalents(realised: &Realised, topology: &Topology) -> Vec<Emission> {
    let context = Context::default();
    SHOWN
        .map(|tool| emit(&Target::new(tool), realised, topology, &context))
        .into()
}
