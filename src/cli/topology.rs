//! `topology`: shows the machine as reported, and starts its other commands.

mod diff;
mod infer;
mod measure;
mod placements;

use std::path::Path;

use anyhow::{Context, bail};

use super::args::{Format, Global, TopologyAction, TopologyArgs};
use super::terminal::Terminal;
use super::values::MachineSpec;
use super::{Exit, files};
use pinwise_doctor::describe_pod;
use pinwise_machine::Host;
use pinwise_machine::linux::{self, capture_folder, capture_host};
use pinwise_placement::{Placement, equivalents};
use pinwise_record::TopologyRecord;
use pinwise_sim::SimulatedMachine;
use pinwise_topology::{Capture, Topology, Warning};

pub(super) fn run_topology(
    global: &Global,
    args: &TopologyArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    match &args.action {
        Some(TopologyAction::Infer { file }) => return infer::infer_recorded(file, terminal),
        Some(TopologyAction::Diff { a, b }) => return diff::diff(a, b, terminal),
        None => {}
    }
    if args.measure {
        return measure::measure(global, args, terminal);
    }
    if let Some(path) = &args.save {
        let mut capture = capture_host()?;
        linux::capture_links(&mut capture);
        files::write_file(path, &capture.to_text())?;
        terminal.note(&format!(
            "{} files saved to {}",
            capture.len(),
            path.display()
        ));
        return Ok(Exit::Done);
    }
    let (mut topology, mut warnings) = match &args.from {
        Some(path) => read_from(path)?,
        None => read_named_machine(global)?,
    };
    if let Some(name) = &args.explain {
        return explain(name, &topology, terminal);
    }
    if let Some(threads) = args.placements {
        return placements::print_placements(threads, &topology, terminal);
    }
    linux::name_models(&mut topology);
    let is_here = args.from.is_none() && global.machine.is_local();
    if is_here {
        if terminal.format() != Format::Xml {
            linux::read_interrupts(&mut topology);
        }
        warnings.extend(linux::read_links(&mut topology));
    }
    let mut record = TopologyRecord::new(&topology, &warnings);
    if is_here && linux::is_pod(Path::new("/")) {
        record.header.findings.push(describe_pod(&topology));
    }
    show(&topology, &record, terminal)?;
    Ok(Exit::Done)
}

/// Prints a machine in the requested format.
pub(super) fn show(
    topology: &Topology,
    record: &TopologyRecord,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    match terminal.format() {
        Format::Json => terminal.print_json(record),
        Format::Xml => terminal.print_data(&pinwise_report::render_topology_xml(topology, record)),
        _ => terminal.print(&pinwise_report::render_topology(
            topology,
            record,
            terminal.palette(),
        )),
    }
}

/// The topology of `--machine`, which is not prepared to run commands.
pub(super) fn read_named_machine(global: &Global) -> anyhow::Result<(Topology, Vec<Warning>)> {
    match &global.machine {
        MachineSpec::Local => Ok(linux::discover()?),
        MachineSpec::Simulated(description) => {
            let mut machine = SimulatedMachine::open(description, 0).context("--machine")?;
            Ok(machine.topology()?)
        }
    }
}

pub(super) fn read_from(path: &Path) -> anyhow::Result<(Topology, Vec<Warning>)> {
    read_named("--from", path)
}

/// Reads a machine from the file or folder that an argument names.
pub(super) fn read_named(argument: &str, path: &Path) -> anyhow::Result<(Topology, Vec<Warning>)> {
    let text = match path.is_dir() {
        true => None,
        false => {
            let named = || format!("{argument} {}", path.display());
            Some(files::read_machine_file(path).with_context(named)?)
        }
    };
    read_machine(argument, path, text)
}

/// Reads a machine from the text of the file at `path`; without text, `path` is a folder.
fn read_machine(
    argument: &str,
    path: &Path,
    text: Option<String>,
) -> anyhow::Result<(Topology, Vec<Warning>)> {
    let named = format!("{argument} {}", path.display());
    let Some(text) = text else {
        let capture = capture_folder(path).with_context(|| argument.to_owned())?;
        return require_cpus(Topology::from_capture(&capture), &named);
    };
    if text.trim_start().starts_with('<') {
        return Topology::from_hwloc_xml(&text).context(named);
    }
    let capture = Capture::from_text(&text)
        .with_context(|| format!("{named}: neither hwloc XML nor a file written by --save"))?;
    require_cpus(Topology::from_capture(&capture), &named)
}

fn require_cpus(
    read: (Topology, Vec<Warning>),
    named: &str,
) -> anyhow::Result<(Topology, Vec<Warning>)> {
    if read.0.online.is_empty() {
        bail!("{named}: it contains no usable CPU");
    }
    Ok(read)
}

fn explain(name: &str, topology: &Topology, terminal: &Terminal) -> anyhow::Result<Exit> {
    let placement: Placement = name.parse().context("--explain")?;
    let realised = placement.realise(topology).context("--explain")?;
    let locality = placement.locality.as_ref();
    let device = locality.and_then(|locality| topology.device(&locality.device));
    if terminal.is_json() {
        let equivalents: Vec<serde_json::Value> = equivalents(&realised, topology)
            .iter()
            .map(|emission| {
                let note = Some(emission.unsupported.join(" ")).filter(|note| !note.is_empty());
                serde_json::json!({
                    "tool": emission.tool.name(), "setting": emission.line(), "note": note,
                })
            })
            .collect();
        terminal.print_json(&serde_json::json!({
            "placement": placement.to_string(),
            "device": device.map(|device| &device.address),
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
        let palette = terminal.palette();
        terminal.print(&pinwise_report::explain_placement(
            &realised, topology, device, palette,
        ))?;
    }
    Ok(Exit::Done)
}
