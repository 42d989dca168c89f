//! `fleet simulate`: stores the records of a simulated fleet.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow, bail};
use serde_json::json;

use crate::cli::Exit;
use crate::cli::args::{FleetSimulateArgs, Global};
use crate::cli::opening::open_store;
use crate::cli::terminal::Terminal;
use pinwise_fleet::check_id;
use pinwise_format::count;
use pinwise_machine::linux::{effective_user, time_of_day};
use pinwise_nodes::simulate::{FIGURES_PER_NODE, Fault, SimulatedFleet, SimulationPlan};
use pinwise_record::FleetRecord;
use pinwise_store::Store;

/// More nodes than any real fleet has.
const MAX_NODES: usize = 1_000_000;
/// With more noise, figures mean nothing.
const MAX_NOISE: f64 = 0.5;
/// The most nodes that the text lists for a fault.
const MAX_LISTED_NODES: usize = 5;

pub(super) fn simulate(
    global: &Global,
    args: &FleetSimulateArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    check_args(args)?;
    let default = || format!("sim-{}-{}", args.nodes, args.seed);
    let fleet = SimulatedFleet::new(SimulationPlan {
        id: args.id.clone().unwrap_or_else(default),
        user: Some(effective_user()),
        nodes: args.nodes,
        seed: args.seed,
        noise: args.noise,
        faults: args.faults,
        started: time_of_day(),
    });
    let store = open_store(global)?;
    let mut store = store.context("--store none: a simulated fleet must be stored")?;
    store_fleet(&mut store, &fleet)?;
    let record = fleet.record();
    if terminal.is_json() {
        terminal.print_json(&json!({
            "fleet": record.id, "nodes": record.asked, "planted": record.planted,
        }))?;
        return Ok(Exit::Done);
    }
    terminal.print(&describe_fleet(&fleet))?;
    terminal.note(&format!("Next: pinwise fleet report {}", record.id));
    Ok(Exit::Done)
}

fn check_args(args: &FleetSimulateArgs) -> anyhow::Result<()> {
    if args.nodes > MAX_NODES {
        bail!("--nodes {}: at most {MAX_NODES}", args.nodes);
    }
    if args.noise > MAX_NOISE {
        bail!("--noise: at most {:.0}%", 100.0 * MAX_NOISE);
    }
    if args.faults > 1.0 {
        bail!("--faults: at most 100%");
    }
    if let Some(id) = &args.id {
        check_id(id).map_err(|reason| anyhow!("--id {reason}"))?;
    }
    Ok(())
}

/// Stores the fleet, and its nodes in large transactions.
fn store_fleet(store: &mut Store, fleet: &SimulatedFleet) -> anyhow::Result<()> {
    let id = &fleet.record().id;
    if !store.create(fleet.record())? {
        bail!(
            "the store has a record '{id}' already: choose another --id, or remove that fleet \
             with 'pinwise record prune --tag {} --yes'",
            FleetRecord::tag(id)
        );
    }
    store.keep_all(fleet.nodes())?;
    Ok(())
}

/// Describes the fleet and its planted faults.
fn describe_fleet(fleet: &SimulatedFleet) -> String {
    let record = fleet.record();
    let mut text = format!(
        "Stored fleet {}: {} with {FIGURES_PER_NODE} figures each.\n",
        record.id,
        count(record.asked, "node"),
    );
    for (cpu, nodes) in fleet.kinds() {
        text.push_str(&format!("  {nodes:>7}  {cpu}\n"));
    }
    let mut nodes_by_fault: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for planted in &record.planted {
        nodes_by_fault
            .entry(&planted.fault)
            .or_default()
            .push(&planted.node);
    }
    if nodes_by_fault.is_empty() {
        return text + "No fault was planted.\n";
    }
    text.push_str(&format!(
        "Planted {}:\n",
        count(record.planted.len(), "fault")
    ));
    for fault in Fault::ALL {
        let Some(nodes) = nodes_by_fault.get(fault.name()) else {
            continue;
        };
        let mut names = nodes[..nodes.len().min(MAX_LISTED_NODES)].join(" ");
        if nodes.len() > MAX_LISTED_NODES {
            names.push_str(" …");
        }
        text.push_str(&format!(
            "  {:>7}  {:<18} {}\n           {names}\n",
            nodes.len(),
            fault.name(),
            fault.meaning(),
        ));
    }
    text
}
