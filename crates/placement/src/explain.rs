//! The meaning of a placement, and its equivalents in common tools.

use super::emit::{Context, Emission, Target, Tool, emit};
use super::parse::PlainName;
use super::{Locality, Placement, Realised, Wish};
use pinwise_topology::Topology;

/// What a placement requests, as a sentence.
#[must_use]
pub fn meaning(placement: &Placement) -> String {
    let text = match &placement.wish {
        Wish::Compact if placement.locality.is_some() && placement.count.is_none() => {
            "All allowed CPUs".to_owned()
        }
        Wish::One(level, index) if placement.locality.is_some() => {
            format!("All CPUs of one {}, number {index}", level.noun())
        }
        Wish::One(level, index) => {
            format!("All CPUs of {} {index}", level.noun())
        }
        Wish::Cpus(_) => "The CPUs listed".to_owned(),
        Wish::Mask(_) => "The CPUs of the mask".to_owned(),
        Wish::Shape(shape) if shape.cpus.is_some() => {
            "The given number of CPUs, spread evenly over the given units of each level".to_owned()
        }
        Wish::Shape(_) => "The given units of each level, spread over the machine".to_owned(),
        Wish::Tree(_) => "The given units of each level in each enclosing unit".to_owned(),
        plain => PlainName::from_wish(plain)
            .map_or("", |plain| plain.meaning)
            .to_owned(),
    };
    let text = match &placement.locality {
        None => text,
        Some(locality) => format!("{text}, {}", describe_locality(locality)),
    };
    match placement.count {
        None => format!("{text}."),
        Some(1) => format!("{text}; the first CPU of these."),
        Some(count) => format!("{text}; the first {count} CPUs of these."),
    }
}

fn describe_locality(locality: &Locality) -> String {
    match locality.is_near {
        true => format!("of those near {}", locality.device),
        false => format!("of those not near {}", locality.device),
    }
}

/// The tools that an explanation shows.
const EXPLAINED_TOOLS: [Tool; 5] = [
    Tool::Taskset,
    Tool::Numactl,
    Tool::HwlocBind,
    Tool::Omp,
    Tool::Slurm,
];

/// The placement in the syntax of a few common tools; `COMMAND` stands for the program.
#[must_use]
pub fn equivalents(realised: &Realised, topology: &Topology) -> Vec<Emission> {
    let context = Context::default();
    EXPLAINED_TOOLS
        .map(|tool| emit(&Target::new(tool), realised, topology, &context))
        .into()
}
