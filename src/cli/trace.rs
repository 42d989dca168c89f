//! `trace`: shows what the scheduler does with the threads of a command, a process, or a recorded
//! file.

mod export;
mod import;

use std::time::Duration;

use anyhow::bail;

use super::args::{Global, TraceAction, TraceArgs, TraceFiles};
use super::ending::{keep_and_show, warn_if_interrupted};
use super::files::NamedFile;
use super::machine::open_machine;
use super::opening::open_store;
use super::outputs::check_outputs;
use super::plan::new_id_and_start;
use super::terminal::Terminal;
use super::{Exit, files as text_files};
use crate::cli::subject::{self, PlacedCommand};
use export::Sinks;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::{random_seed, read_interrupts};
use pinwise_machine::{Subject, Tracer};
use pinwise_record::{TraceRecord, TraceSource};
use pinwise_sched::Tier;
use pinwise_store::Store;
use pinwise_study::trace::{TracePlan, measure_tiers, run_trace};
use pinwise_topology::Topology;

/// How long a running process is traced without `--for`.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);
/// Time to measure the tier's overhead before each trace.
const CALIBRATION: Duration = Duration::from_millis(300);

pub(super) fn trace(
    global: &Global,
    args: &TraceArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    match &args.action {
        Some(TraceAction::Import(args)) => return import::import(global, args, terminal),
        Some(TraceAction::Tiers { limit }) => return print_tiers(global, *limit, terminal),
        None => {}
    }
    if args.argv.is_empty() && args.pid.is_none() && !args.all {
        bail!("say what to trace: -- COMMAND, --pid PID, or --all");
    }
    let tier: Option<Tier> = parse_tier(args.tier.as_deref())?;
    let inputs = args.input.iter().map(|path| NamedFile {
        option: "--input",
        path,
    });
    let mut sinks = open_sinks(global, &args.files, &inputs.collect::<Vec<_>>())?;
    let mut machine = open_machine(
        global,
        args.seed.unwrap_or_else(random_seed),
        CycleCounting::IfCheap,
    )?;
    let store = open_store(global)?;
    let record = if args.argv.is_empty() {
        trace_running(args, tier, machine.as_mut(), &mut sinks)
    } else {
        trace_command(args, tier, machine.as_mut(), &mut sinks)
    };
    match warn_if_interrupted(record, terminal)? {
        Some(record) => store_and_show(record, store, sinks, &args.files, terminal),
        None => Ok(Exit::Interrupted),
    }
}

/// The files of `--export`, after checking that all requested files can be written.
fn open_sinks(
    global: &Global,
    files: &TraceFiles,
    inputs: &[NamedFile<'_>],
) -> anyhow::Result<Sinks> {
    let sinks = Sinks::parse(&files.exports)?;
    let json = files.export_json.iter();
    let json = json.map(|path| NamedFile {
        option: "--export-json",
        path,
    });
    let outputs: Vec<NamedFile<'_>> = sinks.paths().chain(json).collect();
    check_outputs(global, &outputs, inputs)?;
    Ok(sinks)
}

/// Gives a trace its id, stores it, shows it, and writes its files.
fn store_and_show(
    mut record: TraceRecord,
    store: Option<Store>,
    sinks: Sinks,
    files: &TraceFiles,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    (record.id, record.started) = new_id_and_start();
    let show_and_write = || {
        show(&record, terminal)?;
        text_files::write_json(files.export_json.as_deref(), &record)?;
        sinks.finish(Some(&record))
    };
    let exit = Exit::from_command_status(record.exit);
    keep_and_show(store, &record, terminal, show_and_write, exit)
}

/// Prints a trace, new or stored.
pub(super) fn show(record: &TraceRecord, terminal: &Terminal) -> anyhow::Result<()> {
    let show = match terminal.is_verbose() {
        true => pinwise_report::render_trace,
        false => pinwise_report::render_trace_answer,
    };
    terminal.show(record, show)
}

/// Parses `--tier`.
pub(super) fn parse_tier(text: Option<&str>) -> anyhow::Result<Option<Tier>> {
    let tier = text.map(str::parse).transpose();
    tier.map_err(|error: String| anyhow::anyhow!("--tier {error}"))
}

fn print_tiers(global: &Global, time: Duration, terminal: &Terminal) -> anyhow::Result<Exit> {
    let mut machine = open_machine(global, 0, CycleCounting::IfCheap)?;
    let records = measure_tiers(machine.as_mut(), time)?;
    if terminal.is_json() {
        terminal.print_json(&serde_json::json!({ "tiers": records }))?;
    } else {
        terminal.print(&pinwise_report::render_tiers(&records, terminal.palette()))?;
    }
    Ok(Exit::Done)
}

fn trace_command(
    args: &TraceArgs,
    tier: Option<Tier>,
    machine: &mut dyn Tracer,
    sinks: &mut Sinks,
) -> anyhow::Result<TraceRecord> {
    let output = subject::parse_output(&args.output)?;
    let command = PlacedCommand::new(
        &args.argv,
        &args.place,
        args.input.as_ref(),
        output,
        machine,
    )?;
    let request = command.request();
    let topology = load_topology_with_interrupts(args, machine)?;
    let plan = TracePlan {
        subject: Subject::Command(&request),
        source: command.source(),
        tiers: &machine.tiers(),
        tier,
        limit: args.limit,
        calibration: choose_calibration_time(args),
        interrupts: topology.as_ref(),
        leaves_daemons: true,
        keeps_interrupted: true,
        tags: args.files.tags.clone(),
    };
    Ok(run_trace(&plan, machine, sinks)?)
}

fn trace_running(
    args: &TraceArgs,
    tier: Option<Tier>,
    machine: &mut dyn Tracer,
    sinks: &mut Sinks,
) -> anyhow::Result<TraceRecord> {
    let (subject, source) = match args.pid {
        Some(pid) => subject::find_process(pid)?,
        None => (Subject::Everything, TraceSource::Machine),
    };
    let topology = load_topology_with_interrupts(args, machine)?;
    let plan = TracePlan {
        subject,
        source,
        tiers: &machine.tiers(),
        tier,
        limit: Some(args.limit.unwrap_or(DEFAULT_DURATION)),
        calibration: choose_calibration_time(args),
        interrupts: topology.as_ref(),
        leaves_daemons: true,
        keeps_interrupted: true,
        tags: args.files.tags.clone(),
    };
    Ok(run_trace(&plan, machine, sinks)?)
}

/// The topology with the names of interrupts, if `--interrupts` was given.
fn load_topology_with_interrupts(
    args: &TraceArgs,
    machine: &mut dyn Tracer,
) -> anyhow::Result<Option<Topology>> {
    if !args.interrupts {
        return Ok(None);
    }
    let (mut topology, _) = machine.topology()?;
    if !machine.is_simulated() {
        read_interrupts(&mut topology);
    }
    Ok(Some(topology))
}

const fn choose_calibration_time(args: &TraceArgs) -> Duration {
    if args.no_cost {
        Duration::ZERO
    } else {
        CALIBRATION
    }
}
