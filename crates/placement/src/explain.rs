//! What other tools call the same placement.
//!
//! Confined placements only: one mask for all threads. Where a tool's nearest
//! setting does more (OpenMP and likwid bind thread by thread), the note says
//! so.

use super::emit::{numactl_options, omp_places};
use super::{Kind, Locality, Placement, Realised, Wish};

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

/// One tool's way of saying it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Equivalent {
    /// The tool or runtime.
    pub tool: &'static str,
    /// What to write.
    pub setting: String,
    /// What it does that this placement does not, or the other way round.
    pub note: Option<&'static str>,
}

/// The placement in the words of taskset, numactl, hwloc, likwid, OpenMP and
/// Slurm; `COMMAND` stands for the program.
#[must_use]
pub fn equivalents(realised: &Realised) -> Vec<Equivalent> {
    let list = realised.cpus.to_string();
    let mask = realised.cpus.to_mask();
    let plain = |tool, setting| Equivalent {
        tool,
        setting,
        note: None,
    };
    let no_memory = realised.memory.as_ref().map(|_| "says nothing of memory");
    vec![
        Equivalent {
            tool: "taskset",
            setting: format!("taskset -c {list} COMMAND"),
            note: no_memory,
        },
        plain(
            "numactl",
            format!("numactl {} COMMAND", numactl_options(realised)),
        ),
        Equivalent {
            tool: "hwloc",
            setting: format!("hwloc-bind --taskset {mask} -- COMMAND"),
            note: no_memory,
        },
        Equivalent {
            tool: "likwid",
            setting: format!("likwid-pin -c {list} COMMAND"),
            note: Some("binds one thread to one CPU, in this order"),
        },
        Equivalent {
            tool: "OpenMP",
            setting: format!(
                "OMP_PLACES={} OMP_PROC_BIND=close COMMAND",
                omp_places(&one_each(realised))
            ),
            note: Some(
                "binds one thread to one CPU; with taskset alone the threads share the CPUs",
            ),
        },
        Equivalent {
            tool: "Slurm",
            setting: format!("srun --cpu-bind=mask_cpu:{mask} COMMAND"),
            note: Some("the task needs these CPUs in its allocation"),
        },
    ]
}

/// The CPUs one by one: of bound threads in their order.
fn one_each(realised: &Realised) -> Vec<usize> {
    match realised.placement.kind {
        Kind::Bound => realised.order.clone(),
        Kind::Confined => realised.cpus.iter().collect(),
    }
}
