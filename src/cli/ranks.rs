//! `run --per`: places one rank per device; pinwise or a launcher starts the ranks.

use anyhow::{Context, bail};
use clap::ValueEnum;

use super::Exit;
use super::args::{Global, Per, RunArgs};
use super::surroundings::find_own_program;
use super::terminal::Terminal;
use pinwise_machine::linux::{self, RankCommand};
use pinwise_placement::{
    MemoryBinding, MemoryPolicy, Placement, Rank, Realised, Wish, place_per_device,
};
use pinwise_topology::{Device, DeviceKind, Topology};
use pinwise_workload::Command;

/// Variables with a process's rank on this host and the number of ranks, as set by torchrun, Open
/// MPI, Intel MPI and MPICH, Slurm.
const RANK_VARIABLES: [[&str; 2]; 4] = [
    ["LOCAL_RANK", "LOCAL_WORLD_SIZE"],
    ["OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"],
    ["MPI_LOCALRANKID", "MPI_LOCALNRANKS"],
    ["SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"],
];

/// The most ranks on one host.
const MAX_RANKS: usize = 4096;

/// PCI vendor ids of GPUs, and the variable with the GPUs that a program sees.
const VISIBILITY_VARIABLES: [(u16, &str); 3] = [
    (0x10de, "CUDA_VISIBLE_DEVICES"),
    (0x1002, "ROCR_VISIBLE_DEVICES"),
    (0x8086, "ZE_AFFINITY_MASK"),
];

/// Starts the ranks, each as another `pinwise run`, in the way of a launcher.
pub(super) fn start_ranks(
    global: &Global,
    args: &RunArgs,
    per: Per,
    ranks: u16,
    topology: &Topology,
) -> anyhow::Result<Exit> {
    // Report once, before anything runs, if the ranks cannot be placed.
    list_ranks(per, topology, usize::from(ranks))?;
    let mut argv = vec![find_own_program()?, "run".to_owned()];
    if global.quiet {
        argv.push("--quiet".to_owned());
    }
    let name = per.to_possible_value().context("--per")?;
    argv.extend(["--per".to_owned(), name.get_name().to_owned()]);
    argv.extend(["--place".to_owned(), args.place.clone()]);
    if let Some(settle) = args.settle {
        argv.extend(["--settle".to_owned(), format!("{}ms", settle.as_millis())]);
    }
    argv.push("--".to_owned());
    argv.extend(args.argv.clone());
    let argv = Command::from_argv(argv)?;
    let [rank_name, count_name] = RANK_VARIABLES[0];
    let commands = (0..ranks).map(|rank| RankCommand {
        argv: argv.clone(),
        variables: vec![
            (rank_name.to_owned(), rank.to_string()),
            (count_name.to_owned(), ranks.to_string()),
        ],
    });
    match linux::run_side_by_side(commands.collect()).context("starting the ranks")? {
        0 => Ok(Exit::Done),
        status => Ok(Exit::Rank(status)),
    }
}

/// Places the rank that this process is; also returns the variables that tell its program the rank
/// and the device.
pub(super) fn place_rank(
    per: Per,
    placement: &Placement,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<(Realised, Vec<(String, String)>)> {
    if matches!(placement.wish, Wish::Cpus(_) | Wish::Mask(_)) || placement.locality.is_some() {
        bail!(
            "--place {placement}: with --per it chooses among a rank's own CPUs, such as one-per-core"
        );
    }
    let (rank, count) = rank_from_launcher()?;
    let (ranks, visible) = list_ranks(per, topology, count)?;
    let this_rank = &ranks[rank];
    let device = &topology.devices[this_rank.device];
    if device.cpus.is_none() {
        terminal.warn(&format!(
            "The firmware does not say which CPUs are near {}: all count as near.",
            device.name()
        ));
    }
    let near_device = Topology {
        allowed: this_rank.cpus.clone(),
        ..topology.clone()
    };
    let mut place = placement.realise(&near_device).context("--place")?;
    let mut nodes = topology.usable_memory_nodes().into_iter();
    let node = nodes.find(|node| Some(node.node) == device.numa_node);
    if let (None, Some(node)) = (&place.memory, node) {
        place.memory = Some(MemoryBinding {
            policy: MemoryPolicy::Bind,
            nodes: vec![node.node],
        });
    }
    let mut variables = vec![
        ("PINWISE_RANK".to_owned(), rank.to_string()),
        ("PINWISE_DEVICE".to_owned(), device.name().to_owned()),
    ];
    if let Some(name) = visible {
        variables.push((
            name.to_owned(),
            find_number_within_vendor(topology, device).to_string(),
        ));
        if name == VISIBILITY_VARIABLES[0].1 {
            // By default CUDA numbers the fastest GPU first.
            variables.push(("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".to_owned()));
        }
    }
    let shares = |other: &usize| *other != rank && ranks[*other].cpus.intersects(&this_rank.cpus);
    if let Some(other) = (0..count).find(shares) {
        terminal.warn(&format!("rank {rank} shares CPUs with rank {other}."));
    }
    terminal.note(&format!(
        "rank {rank} of {count}: {} ({}), CPUs {}",
        device.name(),
        device.address,
        place.cpus
    ));
    Ok((place, variables))
}

/// All ranks, and the variable with the GPUs that a program sees.
fn list_ranks(
    per: Per,
    topology: &Topology,
    count: usize,
) -> anyhow::Result<(Vec<Rank>, Option<&'static str>)> {
    let (usable, visible) = match per.kind() {
        DeviceKind::Gpu => choose_gpus(topology)?,
        _ => (None, None),
    };
    let ranks =
        place_per_device(topology, per.kind(), usable.as_deref(), count).context("--per")?;
    Ok((ranks, visible))
}

/// Reads this process's rank and the number of ranks from a launcher's environment.
fn rank_from_launcher() -> anyhow::Result<(usize, usize)> {
    for [rank_name, count_name] in RANK_VARIABLES {
        let Some(rank) = read_variable(rank_name)? else {
            continue;
        };
        let count = read_variable(count_name)?
            .with_context(|| format!("{rank_name} is set, but {count_name} is not"))?;
        let number = |name: &str, text: &str| -> anyhow::Result<usize> {
            let number = text.parse().ok().filter(|&number| number <= MAX_RANKS);
            number.with_context(|| format!("{name}={text} is not a number up to {MAX_RANKS}"))
        };
        let rank = number(rank_name, &rank)?;
        let count = match count_name.starts_with("SLURM") {
            true => {
                let node = read_variable("SLURM_NODEID")?.unwrap_or_default();
                let own = parse_tasks_on_node(&count, node.parse().unwrap_or(0));
                own.with_context(|| format!("{count_name}={count} has no number for this node"))?
            }
            false => number(count_name, &count)?,
        };
        if rank >= count || count > MAX_RANKS {
            bail!("{rank_name}={rank} is out of range ({count_name}={count})");
        }
        return Ok((rank, count));
    }
    let names: Vec<String> = RANK_VARIABLES
        .iter()
        .map(|pair| pair.join(" with "))
        .collect();
    bail!(
        "--per: no launcher's environment gives this process's rank ({}); --ranks N starts ranks here",
        names.join(", ")
    );
}

/// The number of tasks on a node, from Slurm's list for all nodes: `4(x2),3` is 4 on the first two
/// and 3 on the third.
fn parse_tasks_on_node(list: &str, node: usize) -> Option<usize> {
    let mut first = 0;
    for part in list.split(',') {
        let (tasks, times) = match part.split_once("(x") {
            Some((tasks, times)) => (tasks, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        if node < usize::saturating_add(first, times) {
            return tasks.parse().ok();
        }
        first = usize::saturating_add(first, times);
    }
    None
}

/// The GPUs to use, as indexes among all GPUs, and their vendor's visibility variable. Of several
/// vendors the one with the most GPUs is used; GPUs that the variable hides already stay hidden.
fn choose_gpus(topology: &Topology) -> anyhow::Result<(Option<Vec<usize>>, Option<&'static str>)> {
    let all: Vec<&Device> = list_devices_of_kind(topology, DeviceKind::Gpu).collect();
    let of_vendor = |vendor: u16| {
        let own = all.iter().enumerate();
        let own = own.filter(move |(_, device)| device.vendor == Some(vendor));
        own.map(|(number, _)| number).collect::<Vec<usize>>()
    };
    let mut largest: Option<(Vec<usize>, &'static str)> = None;
    for (vendor, name) in VISIBILITY_VARIABLES {
        let own = of_vendor(vendor);
        if own.len() > largest.as_ref().map_or(0, |(numbers, _)| numbers.len()) {
            largest = Some((own, name));
        }
    }
    let Some((numbers, name)) = largest else {
        return Ok((None, None));
    };
    let Some(list) = read_variable(name)?.filter(|list| !list.is_empty()) else {
        return Ok((Some(numbers), Some(name)));
    };
    let mut chosen = Vec::new();
    for word in list.split(',') {
        let number = word.trim().parse::<usize>();
        let number = number.ok().and_then(|number| numbers.get(number));
        chosen.push(*number.with_context(|| {
            format!(
                "{name}={list}: '{word}' is not a number of the {} GPUs here; unset it or give numbers",
                numbers.len()
            )
        })?);
    }
    Ok((Some(chosen), Some(name)))
}

/// A device's index among those of its vendor, by address.
fn find_number_within_vendor(topology: &Topology, device: &Device) -> usize {
    let same =
        list_devices_of_kind(topology, device.kind).filter(|other| other.vendor == device.vendor);
    let mut addresses = same.map(|other| &other.address);
    addresses
        .position(|address| *address == device.address)
        .unwrap_or(0)
}

fn list_devices_of_kind(topology: &Topology, kind: DeviceKind) -> impl Iterator<Item = &Device> {
    topology
        .devices
        .iter()
        .filter(move |device| device.kind == kind)
}

#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
fn read_variable(name: &str) -> anyhow::Result<Option<String>> {
    match std::env::var_os(name) {
        None => Ok(None),
        Some(text) => match text.into_string() {
            Ok(text) => Ok(Some(text)),
            Err(_) => bail!("{name} is not UTF-8"),
        },
    }
}

impl Per {
    const fn kind(self) -> DeviceKind {
        match self {
            Self::Gpu => DeviceKind::Gpu,
            Self::Network => DeviceKind::Network,
            Self::Storage => DeviceKind::Storage,
            Self::Accelerator => DeviceKind::Accelerator,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_lists_of_slurm_are_parsed() {
        assert_eq!(parse_tasks_on_node("4(x2),3", 0), Some(4));
        assert_eq!(parse_tasks_on_node("4(x2),3", 1), Some(4));
        assert_eq!(parse_tasks_on_node("4(x2),3", 2), Some(3));
        assert_eq!(parse_tasks_on_node("4(x2),3", 3), None);
        assert_eq!(parse_tasks_on_node("8", 0), Some(8));
        for list in ["", "x", "4(x", "4(x2"] {
            assert_eq!(parse_tasks_on_node(list, 0), None, "{list}");
        }
    }
}
