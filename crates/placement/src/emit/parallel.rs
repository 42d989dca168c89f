//! Launchers and runtimes of parallel programs: Slurm, Open MPI, OpenMP.

use super::{Emission, Piece, Request, SHOW_OWN_MASK, SHOW_PID_MASK};
use crate::MemoryPolicy;
use pinwise_topology::{CpuSet, Level};

pub(super) fn emit_slurm(request: &Request<'_>) -> Emission {
    let cpus = request.realised.cpus.len();
    let (amount, binding) = if request.is_bound() {
        let list = request.ordered_list();
        (format!("--ntasks={cpus}"), format!("map_cpu:{list}"))
    } else {
        let amount = format!("--ntasks=1 --cpus-per-task={cpus}");
        (amount, format!("mask_cpu:{}", request.cpu_mask()))
    };
    let mut options = format!("{amount} --cpu-bind={binding}");
    let memory = memory_bind_option(request);
    if let Some(memory) = &memory {
        options.push_str(&format!(" --mem-bind={memory}"));
    }
    let program = request.shell_line(&[]);
    let pieces = vec![
        Piece::Command(format!("srun {options} {program}")),
        Piece::File {
            path: "job.sh, for sbatch".to_owned(),
            text: format!(
                "#!/bin/sh\n#SBATCH --nodes=1\n#SBATCH --exclusive\nsrun {options} {program}\n"
            ),
        },
    ];
    let mask_command = match memory {
        Some(_) => format!("sh -c '{SHOW_OWN_MASK}; head -n 1 /proc/self/numa_maps'"),
        None => SHOW_OWN_MASK.to_owned(),
    };
    let verify = format!("srun {options} {mask_command}");
    let mut emission = request.emit_pieces(pieces, verify);
    if request.is_bound() {
        emission.unsupported.push(
            "Slurm binds tasks, not threads: this starts one process for each CPU.".to_owned(),
        );
    }
    if request.has_policy(MemoryPolicy::Interleave) || request.has_policy(MemoryPolicy::Weighted) {
        emission.unsupported.push(
            "--mem-bind cannot interleave; start the program with numactl inside.".to_owned(),
        );
    }
    if request.prefers_several() {
        let first = "--mem-bind=prefer takes only the first of the nodes.";
        emission.unsupported.push(first.to_owned());
    }
    emission
        .notes
        .push("The job needs these CPUs in its allocation (--exclusive).".to_owned());
    emission.notes.extend(explain_closest_hint(request));
    emission
}

/// The value of `--mem-bind`; `None` if Slurm does not support the policy.
fn memory_bind_option(request: &Request<'_>) -> Option<String> {
    let memory = request.realised.memory.as_ref()?;
    let nodes: CpuSet = memory.nodes.iter().copied().collect();
    match memory.policy {
        MemoryPolicy::Local => Some("local".to_owned()),
        MemoryPolicy::Bind => Some(format!("mask_mem:{}", nodes.to_mask())),
        MemoryPolicy::Preferred => Some(format!("prefer,mask_mem:{}", nodes.to_mask())),
        MemoryPolicy::Interleave | MemoryPolicy::Weighted => None,
    }
}

/// The closest equivalent without CPU numbers, for other nodes.
fn explain_closest_hint(request: &Request<'_>) -> Option<String> {
    let used = &request.realised.used;
    if !request.topology.has_smt() {
        return None;
    }
    let hint = if used.cores == used.cpus {
        "nomultithread"
    } else {
        "multithread"
    };
    let spread = if used.packages > 1 { "cyclic" } else { "block" };
    Some(format!(
        "Closest equivalent without CPU numbers: --hint={hint} --distribution=block:{spread}; Slurm takes no --cpu-bind with a hint."
    ))
}

pub(super) fn emit_openmpi(request: &Request<'_>) -> Emission {
    if !request.is_bound() {
        let mut emission = request.emit_pieces(
            vec![Piece::Command(format!(
                "mpirun --np 1 --bind-to none {}",
                request.start_line()
            ))],
            request.pid_mask_command(),
        );
        emission.notes.push(
            "mpirun maps whole cores or caches; any other mask is set by the program in between, \
             for every process alike."
                .to_owned(),
        );
        return emission;
    }
    let order = &request.realised.order;
    let ranks = order.iter().enumerate();
    let text: String = ranks
        .map(|(rank, cpu)| format!("rank {rank}=localhost slot={cpu}\n"))
        .collect();
    let processes = order.len();
    let open_mpi_4 = format!(
        "mpirun --np {processes} --use-hwthread-cpus --mca rmaps_rank_file_physical 1 --rankfile ranks {}",
        request.shell_line(&[])
    );
    let emission = request.emit_pieces(
        vec![
            Piece::File {
                path: "ranks".to_owned(),
                text,
            },
            Piece::Command(open_mpi_4),
        ],
        SHOW_PID_MASK.to_owned(),
    );
    let mut emission = request.note_missing_memory(emission);
    emission
        .unsupported
        .push("mpirun binds processes, not threads: this starts one for each CPU.".to_owned());
    emission.notes.push(format!(
        "Open MPI 5 (PRRTE) counts CPUs as hwloc does: --map-by pe-list={}:ordered --bind-to \
         hwthread.",
        list_hwloc_numbers(request)
    ));
    emission
}

/// hwloc's numbers of the placement's CPUs: positions in the machine's tree.
fn list_hwloc_numbers(request: &Request<'_>) -> String {
    let mut tree_order = Vec::new();
    request.topology.tree().walk(&mut |node, _| {
        if node.children.is_empty() {
            tree_order.extend(node.cpus.iter());
        }
    });
    let position = |cpu: &usize| tree_order.iter().position(|known| known == cpu);
    let numbers = request.realised.order.iter().filter_map(position);
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    numbers.join(",")
}

pub(super) fn emit_omp(request: &Request<'_>) -> Emission {
    let places = if request.is_bound() {
        write_omp_places(&request.realised.order)
    } else {
        write_one_place(&request.realised.cpus)
    };
    let pieces = vec![
        to_variable("OMP_PLACES", places),
        to_variable("OMP_PROC_BIND", "close".to_owned()),
        to_variable("OMP_NUM_THREADS", request.threads().to_string()),
        Piece::Command(request.shell_line(&[])),
    ];
    let verify = format!(
        "OMP_DISPLAY_ENV=true OMP_DISPLAY_AFFINITY=true {}",
        request.shell_line(&[])
    );
    let mut emission = request.emit_pieces(pieces, verify);
    emission.unsupported.extend(explain_mask(request));
    note_openmp_only(request.note_missing_memory(emission))
}

/// libgomp and LLVM's runtime use no CPU outside of the mask that they find.
fn explain_mask(request: &Request<'_>) -> Option<String> {
    request.leaves_mask().then(|| {
        format!(
            "It stays within the affinity mask of its parent; start it with taskset -c {}.",
            request.cpu_list()
        )
    })
}

fn note_openmp_only(mut emission: Emission) -> Emission {
    emission
        .notes
        .push("Affects OpenMP threads only.".to_owned());
    emission
}

const fn to_variable(name: &'static str, value: String) -> Piece {
    Piece::Variable { name, value }
}

/// Writes places of one CPU each, even steps as OpenMP's `{first}:count:step`.
fn write_omp_places(order: &[usize]) -> String {
    let places = find_runs(order)
        .into_iter()
        .map(|Run { first, count, step }| {
            if count == 1 {
                return format!("{{{first}}}");
            }
            let step = if step == 1 {
                String::new()
            } else {
                format!(":{step}")
            };
            format!("{{{first}}}:{count}{step}")
        });
    places.collect::<Vec<_>>().join(",")
}

/// One place of all CPUs: `{0,2,8:4}`.
fn write_one_place(cpus: &CpuSet) -> String {
    let order: Vec<usize> = cpus.iter().collect();
    let parts = find_runs(&order).into_iter().map(|run| match run {
        Run {
            first, count: 1, ..
        } => first.to_string(),
        Run {
            first,
            count,
            step: 1,
        } => format!("{first}:{count}"),
        Run { first, count, step } => format!("{first}:{count}:{step}"),
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

/// CPUs in even steps.
struct Run {
    first: usize,
    count: usize,
    step: usize,
}

/// Splits a list into runs of even steps. CPUs of short runs stay individual.
fn find_runs(order: &[usize]) -> Vec<Run> {
    let mut found = Vec::new();
    let mut rest = order;
    while let [first, tail @ ..] = rest {
        let step = tail.first().and_then(|next| next.checked_sub(*first));
        let step = step.filter(|&step| step > 0).unwrap_or(1);
        let pairs = rest.windows(2);
        let has_step = |pair: &&[usize]| pair[1].checked_sub(pair[0]) == Some(step);
        let count = 1 + pairs.take_while(has_step).count();
        if count < SHORTEST_RUN {
            found.push(Run {
                first: *first,
                count: 1,
                step: 1,
            });
            rest = tail;
        } else {
            found.push(Run {
                first: *first,
                count,
                step,
            });
            rest = &rest[count..];
        }
    }
    found
}

/// Shorter runs are clearer as individual numbers.
const SHORTEST_RUN: usize = 4;

pub(super) fn emit_kmp(request: &Request<'_>) -> Emission {
    let list = request.ordered_list();
    let places = if request.is_bound() {
        list
    } else {
        format!("{{{list}}}")
    };
    let affinity = format!("granularity=fine,proclist=[{places}],explicit");
    let pieces = vec![
        to_variable("KMP_AFFINITY", affinity),
        to_variable("OMP_NUM_THREADS", request.threads().to_string()),
        Piece::Command(request.shell_line(&[])),
    ];
    let verify = format!("OMP_DISPLAY_AFFINITY=true {}", request.shell_line(&[]));
    let mut emission = request.note_missing_memory(request.emit_pieces(pieces, verify));
    emission.unsupported.extend(explain_mask(request));
    emission.notes.extend(explain_hw_subset(request));
    note_openmp_only(emission)
}

/// The equivalent `KMP_HW_SUBSET`, if the placement is the first packages, cores and CPUs.
fn explain_hw_subset(request: &Request<'_>) -> Option<String> {
    let used = &request.realised.used;
    let per_package = used.cores.checked_div(used.packages)?;
    let per_core = used.cpus.checked_div(used.cores)?;
    let cores = request.topology.units(Level::Core);
    let packages = request.topology.units(Level::Package);
    let packages = packages.iter().take(used.packages);
    let firsts = packages.flat_map(|package| {
        let inside = cores.iter().filter(|core| core.is_subset(package));
        inside.take(per_package)
    });
    let first: CpuSet = firsts.flat_map(|core| core.iter().take(per_core)).collect();
    (first == request.realised.cpus).then(|| {
        let subset = format!("{}s,{per_package}c,{per_core}t", used.packages);
        format!("KMP_HW_SUBSET={subset} names the same CPUs without numbers.")
    })
}

pub(super) fn emit_gomp(request: &Request<'_>) -> Emission {
    let order = &request.realised.order;
    let list = find_runs(order).into_iter().map(|run| match run {
        Run {
            first, count: 1, ..
        } => first.to_string(),
        Run {
            first,
            count,
            step: 1,
        } => format!("{first}-{}", first + count - 1),
        Run { first, count, step } => format!("{first}-{}:{step}", first + (count - 1) * step),
    });
    let pieces = vec![
        to_variable("GOMP_CPU_AFFINITY", list.collect::<Vec<_>>().join(" ")),
        to_variable("OMP_NUM_THREADS", request.threads().to_string()),
        Piece::Command(request.shell_line(&[])),
    ];
    let verify = format!("OMP_DISPLAY_AFFINITY=true {}", request.shell_line(&[]));
    let mut emission = request.note_missing_memory(request.emit_pieces(pieces, verify));
    if !request.is_bound() {
        emission.unsupported.push(
            "It binds each thread to one CPU; threads cannot share a mask (OMP_PLACES can)."
                .to_owned(),
        );
    }
    emission
        .notes
        .push("Ignored when OMP_PROC_BIND is set.".to_owned());
    note_openmp_only(emission)
}
