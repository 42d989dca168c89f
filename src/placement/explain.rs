//! What other tools call the same placement.
//!
//! Confined placements only: one mask for all threads. Where a tool's nearest
//! setting does more (OpenMP and likwid bind thread by thread), the note says
//! so.

use super::{MemoryPolicy, Realised};

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
    let places: Vec<String> = realised
        .cpus
        .iter()
        .map(|cpu| format!("{{{cpu}}}"))
        .collect();
    let by_one: Vec<String> = realised.cpus.iter().map(|cpu| cpu.to_string()).collect();
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
            setting: format!("likwid-pin -c {} COMMAND", by_one.join(",")),
            note: Some("binds one thread to one CPU, in this order"),
        },
        Equivalent {
            tool: "OpenMP",
            setting: format!(
                "OMP_PLACES={} OMP_PROC_BIND=close COMMAND",
                places.join(",")
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

/// The command line that applies a placement with `taskset`, or with
/// `numactl` where it has a memory policy.
#[must_use]
pub fn taskset_line(realised: &Realised, command: &str) -> String {
    if realised.memory.is_some() {
        return format!("numactl {} {command}", numactl_options(realised));
    }
    format!("taskset -c {} {command}", realised.cpus)
}

fn numactl_options(realised: &Realised) -> String {
    let cpus = format!("-C {}", realised.cpus);
    let Some(memory) = &realised.memory else {
        return cpus;
    };
    let nodes: Vec<String> = memory.nodes.iter().map(usize::to_string).collect();
    let nodes = nodes.join(",");
    match memory.policy {
        MemoryPolicy::Local => format!("{cpus} --localalloc"),
        MemoryPolicy::Bind => format!("{cpus} --membind={nodes}"),
        MemoryPolicy::Interleave => format!("{cpus} --interleave={nodes}"),
    }
}
