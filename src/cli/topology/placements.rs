//! `topology --placements`: counts placements, and lists the even ones.

use anyhow::{Context, bail};

use crate::cli::Exit;
use crate::cli::args::Format;
use crate::cli::terminal::Terminal;
use pinwise_format::count;
use pinwise_record::PlacementsRecord;
use pinwise_topology::Topology;

pub(super) fn print_placements(
    requested: Option<usize>,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if terminal.format() == Format::Xml {
        bail!("--format xml describes a machine: placements are text or json");
    }
    let threads = match requested {
        Some(threads) => vec![check_threads(threads, topology).context("--placements")?],
        None => list_typical_thread_counts(topology),
    };
    if threads.is_empty() {
        bail!("--placements: this process may not use any CPU of this machine");
    }
    let record = PlacementsRecord::new(topology, &threads);
    terminal.show(&record, pinwise_report::render_placements)?;
    Ok(Exit::Done)
}

fn check_threads(threads: usize, topology: &Topology) -> anyhow::Result<usize> {
    let cpus = topology.allowed.len();
    if threads == 0 || threads > cpus {
        let range = match cpus {
            1 => "1".to_owned(),
            cpus => format!("1 to {cpus}"),
        };
        bail!(
            "{} cannot have a CPU each: {} may be used here; write {range}, or name a larger machine, such as --machine 'sim:core:{} pu:1'",
            count(threads, "thread"),
            count(cpus, "CPU"),
            threads.max(cpus)
        );
    }
    Ok(threads)
}

/// Powers of two up to the number of CPUs, the number of cores, and the number of CPUs.
fn list_typical_thread_counts(topology: &Topology) -> Vec<usize> {
    let counts = topology.counts();
    let doubled = std::iter::successors(Some(1usize), |n| n.checked_mul(2));
    let mut threads: Vec<usize> = doubled.take_while(|&n| n <= counts.cpus).collect();
    threads.extend([counts.cores, counts.cpus].into_iter().filter(|&n| n > 0));
    threads.sort_unstable();
    threads.dedup();
    threads
}
