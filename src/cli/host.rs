//! `topology`, `doctor` and `run`: what needs no experiment.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{Global, RunArgs, TopologyArgs};
use super::terminal::Terminal;
use super::{Exit, export, simulated};
use crate::machine::Machine;
use crate::machine::linux::{self, capture_folder, capture_host, read_host_facts};
use crate::machine::sim::SimulatedMachine;
use crate::placement::Placement;
use crate::record::TopologyRecord;
use crate::report;
use crate::study::doctor::{Examined, diagnose};
use crate::topology::{Capture, Topology, Warning};
use crate::workload::Command;

/// How long `doctor` watches the CPUs.
const WATCH: Duration = Duration::from_millis(500);

pub(super) fn topology(
    global: &Global,
    args: &TopologyArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if let Some(path) = &args.save {
        let capture = capture_host()?;
        export::write_file(path, &capture.to_text())?;
        terminal.note(&format!(
            "{} files saved to {}",
            capture.len(),
            path.display()
        ));
        return Ok(Exit::Done);
    }
    let (topology, warnings) = match &args.from {
        Some(path) => read_from(path)?,
        None => of_machine(global)?,
    };
    if let Some(name) = &args.explain {
        return explain(name, &topology, terminal);
    }
    let record = TopologyRecord::new(&topology, &warnings);
    if terminal.is_json() {
        terminal.print_json(&record)?;
    } else {
        terminal.print(&report::topology(&topology, &record, terminal.palette()))?;
    }
    Ok(Exit::Done)
}

/// The machine named by `--machine`, without making it ready to run commands.
fn of_machine(global: &Global) -> anyhow::Result<(Topology, Vec<Warning>)> {
    if global.machine == "local" {
        return Ok(linux::discover()?);
    }
    let mut machine = SimulatedMachine::open(simulated(global)?, 0).context("--machine")?;
    Ok(machine.topology()?)
}

fn read_from(path: &Path) -> anyhow::Result<(Topology, Vec<Warning>)> {
    let shown = path.display();
    if path.is_dir() {
        let capture = capture_folder(path).context("--from")?;
        return non_empty(Topology::from_capture(&capture), path);
    }
    let text = export::read_file(path).with_context(|| format!("--from {shown}"))?;
    if text.trim_start().starts_with('<') {
        let read = Topology::from_hwloc_xml(&text).with_context(|| format!("--from {shown}"))?;
        return Ok(read);
    }
    let capture = Capture::from_text(&text).with_context(|| {
        format!("--from {shown}: neither hwloc XML nor a file written by --save")
    })?;
    non_empty(Topology::from_capture(&capture), path)
}

fn non_empty(
    read: (Topology, Vec<Warning>),
    path: &Path,
) -> anyhow::Result<(Topology, Vec<Warning>)> {
    if read.0.online.is_empty() {
        bail!("--from {}: there is no usable CPU in it", path.display());
    }
    Ok(read)
}

fn explain(name: &str, topology: &Topology, terminal: &Terminal) -> anyhow::Result<Exit> {
    let placement: Placement = name.parse().context("--explain")?;
    let realised = placement.realise(topology).context("--explain")?;
    if terminal.is_json() {
        let equivalents: Vec<serde_json::Value> = crate::placement::equivalents(&realised)
            .into_iter()
            .map(|e| serde_json::json!({"tool": e.tool, "setting": e.setting, "note": e.note}))
            .collect();
        terminal.print_json(&serde_json::json!({
            "placement": placement.to_string(),
            "cpus": realised.cpus.to_string(),
            "mask": realised.cpus.to_mask(),
            "packages": realised.used.packages,
            "numa_nodes": realised.used.numa_nodes,
            "llcs": realised.used.llcs,
            "cores": realised.used.cores,
            "memory": realised.memory.as_ref().map(|memory| memory.policy.name()),
            "memory_nodes": realised.memory.as_ref().map(|memory| &memory.nodes),
            "equivalents": equivalents,
        }))?;
    } else {
        terminal.print(&report::explain(&realised, terminal.palette()))?;
    }
    Ok(Exit::Done)
}

pub(super) fn doctor(global: &Global, terminal: &Terminal) -> anyhow::Result<Exit> {
    if global.machine != "local" {
        bail!(
            "doctor examines the machine at hand; --machine {} has nothing to examine",
            global.machine
        );
    }
    let (topology, _) = linux::discover()?;
    let usage = linux::watch_usage(WATCH);
    let examined = Examined {
        facts: read_host_facts(Path::new("/")),
        topology,
        usage,
    };
    let record = diagnose(&examined);
    if terminal.is_json() {
        terminal.print_json(&record)?;
    } else {
        terminal.print(&report::doctor(&record, terminal.palette()))?;
    }
    Ok(Exit::Done)
}

pub(super) fn run(global: &Global, args: &RunArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    if global.machine != "local" {
        bail!("run starts the command for real; it needs --machine local");
    }
    let command = Command::from_argv(args.argv.clone())?;
    let placement: Placement = args.place.parse().context("--place")?;
    let (topology, _) = linux::discover()?;
    let place = placement.realise(&topology).context("--place")?;
    let warn = |granted: &crate::topology::CpuSet| {
        if *granted != place.cpus {
            terminal.warn(&format!(
                "{placement} asked for CPUs {} and was granted {granted}",
                place.cpus
            ));
        }
    };
    // Returns only where the command could not be started.
    let error = linux::execute(&command, &place.cpus, place.memory.as_ref(), warn);
    Err(error.into())
}
