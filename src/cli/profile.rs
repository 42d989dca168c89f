//! `profile`: shows where CPU time goes, down to the instruction.

mod diff;

use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{Global, ProfileAction, ProfileArgs, ProfileView};
use super::ending::{keep_and_show, warn_if_interrupted};
use super::files::NamedFile;
use super::machine::open_machine;
use super::opening::open_store;
use super::outputs::check_outputs;
use super::plan::new_id_and_start;
use super::terminal::Terminal;
use super::{Exit, export, files};
use crate::cli::subject::{self, PlacedCommand};
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::linux::random_seed;
use pinwise_machine::{Machine, Output, Subject};
use pinwise_record::ProfileRecord;
use pinwise_report::ProfileShown;
use pinwise_store::Store;
use pinwise_study::profile::{ProfilePlan, Units};
use pinwise_workload::{Better, Metric};

/// How long a process is profiled without `--for`.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

pub(super) fn profile(
    global: &Global,
    args: &ProfileArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if let Some(ProfileAction::Diff(args)) = &args.action {
        return diff::diff(global, args, terminal);
    }
    if args.argv.is_empty() && args.pid.is_none() {
        bail!("say what to profile: -- COMMAND, or --pid PID");
    }
    let units = choose_units(args)?;
    let output = parse_output(args, &units)?;
    check_outputs(global, &list_output_files(args), &args.sampling.inputs())?;
    let mut machine = open_machine(global, random_seed(), CycleCounting::IfCheap)?;
    let store = open_store(global)?;
    let profiled = match args.pid {
        Some(pid) => profile_process(args, pid, units, machine.as_mut()),
        None => profile_command(args, units, output, machine.as_mut()),
    };
    match warn_if_interrupted(profiled, terminal)? {
        Some(record) => store_and_show(record, store, args, terminal),
        None => Ok(Exit::Interrupted),
    }
}

/// Gives a profile its id, stores it, shows it, and writes its files.
fn store_and_show(
    mut record: ProfileRecord,
    store: Option<Store>,
    args: &ProfileArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    (record.id, record.started) = new_id_and_start();
    let show = || {
        let shown = choose_parts_to_show(&args.view);
        terminal.show(&record, |record, palette| {
            pinwise_report::render_profile(record, &shown, palette)
        })?;
        write_files(&record, args)
    };
    let exit = Exit::from_command_status(record.exit);
    keep_and_show(store, &record, terminal, show, exit)
}

const fn choose_parts_to_show(view: &ProfileView) -> ProfileShown {
    ProfileShown {
        functions: view.top,
        instructions: if view.functions { 0 } else { view.instructions },
        threads: if view.functions {
            0
        } else {
            ProfileShown::THREADS
        },
    }
}

fn write_files(record: &ProfileRecord, args: &ProfileArgs) -> anyhow::Result<()> {
    if let Some(path) = &args.files.folded {
        files::write_file(path, &pinwise_report::render_folded(record))?;
    }
    files::write_json(args.sampling.export_json.as_deref(), record)?;
    export::write_page(record, args.files.report.as_deref())
}

fn list_output_files(args: &ProfileArgs) -> Vec<NamedFile<'_>> {
    let files = [
        ("--report", &args.files.report),
        ("--folded", &args.files.folded),
        ("--export-json", &args.sampling.export_json),
    ];
    files
        .into_iter()
        .filter_map(|(option, path)| {
            let path = path.as_deref()?;
            Some(NamedFile { option, path })
        })
        .collect()
}

fn profile_command(
    args: &ProfileArgs,
    units: Units,
    output: Output,
    machine: &mut dyn Machine,
) -> anyhow::Result<ProfileRecord> {
    let sampling = &args.sampling;
    let input = sampling.input.as_ref();
    let command = PlacedCommand::new(&args.argv, &sampling.place, input, output, machine)?;
    let request = command.request();
    let plan = ProfilePlan {
        subject: Subject::Command(&request),
        source: command.source(),
        thread: args.thread.clone(),
        event: args.sampling.event.map(Into::into),
        hz: args.sampling.hz,
        stacks: args.stacks.into(),
        limit: args.limit,
        runs: args.runs,
        units,
        pause_cpu: command.realised.cpus.first(),
        tags: args.sampling.tags.clone(),
    };
    pinwise_study::profile::run(&plan, machine)
}

fn profile_process(
    args: &ProfileArgs,
    pid: i32,
    units: Units,
    machine: &mut dyn Machine,
) -> anyhow::Result<ProfileRecord> {
    let (subject, source) = subject::find_process(pid)?;
    let (topology, _) = machine.topology()?;
    let plan = ProfilePlan {
        subject,
        source,
        thread: args.thread.clone(),
        event: args.sampling.event.map(Into::into),
        hz: args.sampling.hz,
        stacks: args.stacks.into(),
        limit: Some(args.limit.unwrap_or(DEFAULT_DURATION)),
        runs: 1,
        units,
        pause_cpu: topology.allowed.first(),
        tags: args.sampling.tags.clone(),
    };
    pinwise_study::profile::run(&plan, machine)
}

/// The unit of work by which times are divided.
fn choose_units(args: &ProfileArgs) -> anyhow::Result<Units> {
    if let Some(text) = &args.units {
        return parse_units(text).with_context(|| format!("--units '{text}'"));
    }
    let Some(text) = &args.metric else {
        return Ok(match args.pid {
            Some(_) => Units::Seconds,
            None => Units::Runs,
        });
    };
    let metric: Metric = text.parse().context("--metric")?;
    if !metric.needs_output() || metric.better() == Better::Lower {
        bail!(
            "--metric '{text}' is a cost, not an amount of work: give a count of work, such as 'regex:([0-9]+) items higher'"
        );
    }
    Ok(Units::Metric {
        metric: Box::new(metric),
        name: "item".to_owned(),
    })
}

/// Reads `1200` or `1200:request`.
fn parse_units(text: &str) -> anyhow::Result<Units> {
    let (count, name) = text.split_once(':').unwrap_or((text, "unit"));
    let count: f64 = count
        .trim()
        .parse()
        .ok()
        .filter(|count: &f64| count.is_normal() && *count > 0.0)
        .context("write a number above 0, or one with a name, such as 1200:request")?;
    if name.trim().is_empty() {
        bail!("write a name after the colon, such as 1200:request");
    }
    Ok(Units::Given {
        count,
        name: name.trim().to_owned(),
    })
}

fn parse_output(args: &ProfileArgs, units: &Units) -> anyhow::Result<Output> {
    match (args.sampling.output.as_str(), units) {
        ("inherit", Units::Metric { .. }) => {
            bail!("--output inherit: --metric needs the output itself")
        }
        (_, Units::Metric { .. }) => Ok(Output::Keep),
        (other, _) => subject::parse_output(other),
    }
}
