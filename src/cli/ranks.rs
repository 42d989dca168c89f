//! `run --per`: one rank per device, started here or by a launcher.

use anyhow::{Context, anyhow, bail};

use super::Exit;
use super::args::{Global, Per, RunArgs};
use super::own_program;
use super::terminal::Terminal;
use pinwise_machine::linux::{self, RankCommand};
use pinwise_placement::{MemoryPolicy, Placement, Realised, per_device};
use pinwise_topology::{Device, DeviceKind, Topology};
use pinwise_workload::Command;

/// Variables by which launchers tell a process its rank on this host and how many
/// there are: torchrun, Open MPI, Intel MPI and MPICH, Slurm.
const LAUNCHERS: [[&str; 2]; 4] = [
    ["LOCAL_RANK", "LOCAL_WORLD_SIZE"],
    ["OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"],
    ["MPI_LOCALRANKID", "MPI_LOCALNRANKS"],
    ["SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"],
];

/// Vendors of GPUs by PCI id, and the variable that says which a program sees.
const VISIBLE: [(u16, &str); 3] = [
    (0x10de, "CUDA_VISIBLE_DEVICES"),
    (0x1002, "ROCR_VISIBLE_DEVICES"),
    (0x8086, "ZE_AFFINITY_MASK"),
];

/// Starts ranks, each as a `run` of its own that a launcher could have started.
pub(super) fn start(global: &Global, args: &RunArgs, ranks: u16) -> anyhow::Result<Exit> {
    let mut argv = vec![own_program()?, "run".to_owned()];
    if global.quiet {
        argv.push("--quiet".to_owned());
    }
    if let Some(per) = args.per {
        argv.extend(["--per".to_owned(), per.name().to_owned()]);
    }
    argv.extend(["--place".to_owned(), args.place.clone()]);
    if let Some(settle) = args.settle {
        argv.extend(["--settle".to_owned(), format!("{}ms", settle.as_millis())]);
    }
    argv.push("--".to_owned());
    argv.extend(args.argv.clone());
    let argv = Command::from_argv(argv)?;
    let [rank_name, count_name] = LAUNCHERS[0];
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

/// The place of the rank that this process is, and the variables that tell its
/// program so.
pub(super) fn place(
    per: Per,
    placement: &Placement,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<(Realised, Vec<(String, String)>)> {
    let (rank, count) = of_launcher()?;
    let kind = per.kind();
    let (only, visible) = match kind {
        DeviceKind::Gpu => gpus(topology)?,
        _ => (None, None),
    };
    let ranks = per_device(topology, kind, only.as_deref(), count).context("--per")?;
    let own = &ranks[rank];
    let device = &topology.devices[own.device];
    if device.cpus.is_none() {
        terminal.warn(&format!(
            "The firmware does not say which CPUs are near {}: all count as near.",
            device.name()
        ));
    }
    let mut placement = placement.clone();
    let has_node = device.numa_node.is_some_and(|number| {
        let mut nodes = topology.usable_memory_nodes().into_iter();
        nodes.any(|node| node.node == number)
    });
    if placement.memory.is_none() && has_node {
        placement.memory = Some(MemoryPolicy::Bind);
    }
    let there = Topology {
        allowed: own.cpus.clone(),
        ..topology.clone()
    };
    let place = placement.realise(&there).context("--place")?;
    let mut variables = vec![
        ("PINWISE_RANK".to_owned(), rank.to_string()),
        ("PINWISE_DEVICE".to_owned(), device.name().to_owned()),
    ];
    if let Some(name) = visible {
        variables.push((name.to_owned(), number_of(topology, device).to_string()));
        if name == VISIBLE[0].1 {
            // CUDA counts the fastest first otherwise.
            variables.push(("CUDA_DEVICE_ORDER".to_owned(), "PCI_BUS_ID".to_owned()));
        }
    }
    terminal.note(&format!(
        "rank {rank} of {count}: {} ({}), CPUs {}",
        device.name(),
        device.address,
        place.cpus
    ));
    Ok((place, variables))
}

/// This process's rank and how many there are.
fn of_launcher() -> anyhow::Result<(usize, usize)> {
    for [rank_name, count_name] in LAUNCHERS {
        let (Some(rank), Some(count)) = (variable(rank_name)?, variable(count_name)?) else {
            continue;
        };
        let number = |name: &str, text: &str| -> anyhow::Result<usize> {
            text.parse()
                .map_err(|_| anyhow!("{name}={text} is not a number"))
        };
        let (rank, count) = (number(rank_name, &rank)?, number(count_name, &count)?);
        if rank >= count {
            bail!("{rank_name}={rank} is no rank of {count_name}={count}");
        }
        return Ok((rank, count));
    }
    let names: Vec<String> = LAUNCHERS.iter().map(|pair| pair.join(" with ")).collect();
    bail!(
        "--per: no launcher says which rank this is ({}); --ranks N starts them here",
        names.join(", ")
    );
}

/// The GPUs to use, by their number among all, and the variable by which their
/// vendor's programs know them. Of several vendors the one with the most counts;
/// GPUs that the variable hides already stay hidden.
fn gpus(topology: &Topology) -> anyhow::Result<(Option<Vec<usize>>, Option<&'static str>)> {
    let all: Vec<&Device> = of_kind(topology, DeviceKind::Gpu).collect();
    let of_vendor = |vendor: u16| {
        let own = all.iter().enumerate();
        let own = own.filter(move |(_, device)| device.vendor == Some(vendor));
        own.map(|(number, _)| number).collect::<Vec<usize>>()
    };
    let mut most: Option<(Vec<usize>, &'static str)> = None;
    for (vendor, name) in VISIBLE {
        let own = of_vendor(vendor);
        if own.len() > most.as_ref().map_or(0, |(numbers, _)| numbers.len()) {
            most = Some((own, name));
        }
    }
    let Some((numbers, name)) = most else {
        return Ok((None, None));
    };
    let Some(list) = variable(name)?.filter(|list| !list.is_empty()) else {
        return Ok((Some(numbers), Some(name)));
    };
    let mut chosen = Vec::new();
    for word in list.split(',') {
        let number = word.trim().parse::<usize>();
        let number = number.ok().and_then(|number| numbers.get(number));
        chosen.push(*number.with_context(|| {
            format!(
                "{name}={list}: '{word}' is no number of the {} GPUs here; unset it or give numbers",
                numbers.len()
            )
        })?);
    }
    Ok((Some(chosen), Some(name)))
}

/// A GPU's number among those of its vendor, by address.
fn number_of(topology: &Topology, device: &Device) -> usize {
    let same = of_kind(topology, device.kind).filter(|other| other.vendor == device.vendor);
    let mut addresses = same.map(|other| &other.address);
    addresses
        .position(|address| *address == device.address)
        .unwrap_or(0)
}

fn of_kind(topology: &Topology, kind: DeviceKind) -> impl Iterator<Item = &Device> {
    topology
        .devices
        .iter()
        .filter(move |device| device.kind == kind)
}

#[expect(clippy::disallowed_methods, reason = "cli reads the environment")]
fn variable(name: &str) -> anyhow::Result<Option<String>> {
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

    const fn name(self) -> &'static str {
        match self {
            Self::Gpu => "gpu",
            Self::Network => "network",
            Self::Storage => "storage",
            Self::Accelerator => "accelerator",
        }
    }
}
