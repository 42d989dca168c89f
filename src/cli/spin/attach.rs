//! `spin attach`: finds out whether a program spins, where, and how.

use std::time::Duration;

use anyhow::bail;

use crate::cli::args::{Global, SpinAttachArgs};
use crate::cli::ending::{keep_and_show, warn_if_interrupted};
use crate::cli::files::NamedFile;
use crate::cli::machine::open_machine;
use crate::cli::opening::open_store;
use crate::cli::outputs::check_outputs;
use crate::cli::plan::new_id_and_start;
use crate::cli::subject::{self, PlacedCommand};
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, files};
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::{Machine, Subject};
use pinwise_record::{SpinAttachRecord, TraceSource};
use pinwise_study::spin::attach::{AttachPlan, attach as sample};

/// How long a process is sampled without `--for`.
const DEFAULT_DURATION: Duration = Duration::from_secs(5);

pub(super) fn attach(
    global: &Global,
    args: &SpinAttachArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let json = args.sampling.export_json.iter();
    let json = json.map(|path| NamedFile {
        option: "--export-json",
        path,
    });
    check_outputs(global, &json.collect::<Vec<_>>(), &args.sampling.inputs())?;
    let mut machine = open_machine(global, 0, CycleCounting::IfCheap)?;
    let store = open_store(global)?;
    let attached = match args.pid {
        Some(pid) => attach_to_process(args, pid, machine.as_mut()),
        None if args.argv.is_empty() => bail!("say what to sample: -- COMMAND, or --pid PID"),
        None => attach_to_command(args, machine.as_mut()),
    };
    let Some(mut record) = warn_if_interrupted(attached, terminal)? else {
        return Ok(Exit::Interrupted);
    };
    (record.id, record.started) = new_id_and_start();
    let show = || {
        terminal.show(&record, pinwise_report::render_spin_attach)?;
        files::write_json(args.sampling.export_json.as_deref(), &record)
    };
    match keep_and_show(store, &record, terminal, show, Exit::Done)? {
        Exit::Done => check_max_spin(args, &record, terminal),
        exit => Ok(exit),
    }
}

/// The exit status: that of the command, or a failure by `--max-spin`.
fn check_max_spin(
    args: &SpinAttachArgs,
    record: &SpinAttachRecord,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let exit = Exit::from_command_status(record.exit);
    if exit != Exit::Done {
        return Ok(exit);
    }
    let Some(max_share) = args.max_spin else {
        return Ok(Exit::Done);
    };
    let Some(share) = record.spin_share else {
        bail!("--max-spin: could not determine whether it spins");
    };
    if share <= max_share {
        return Ok(Exit::Done);
    }
    terminal.warn(&format!(
        "{:.1} % of its CPU time is spinning, more than --max-spin {:.1} %",
        100.0 * share,
        100.0 * max_share
    ));
    Ok(Exit::GateFailed)
}

fn attach_to_process(
    args: &SpinAttachArgs,
    pid: i32,
    machine: &mut dyn Machine,
) -> anyhow::Result<SpinAttachRecord> {
    let (subject, source) = subject::find_process(pid)?;
    let limit = Some(args.limit.unwrap_or(DEFAULT_DURATION));
    Ok(sample(&make_plan(args, subject, source, limit), machine)?)
}

fn attach_to_command(
    args: &SpinAttachArgs,
    machine: &mut dyn Machine,
) -> anyhow::Result<SpinAttachRecord> {
    let sampling = &args.sampling;
    let output = subject::parse_output(&sampling.output)?;
    let input = sampling.input.as_ref();
    let command = PlacedCommand::new(&args.argv, &sampling.place, input, output, machine)?;
    let request = command.request();
    let subject = Subject::Command(&request);
    let plan = make_plan(args, subject, command.source(), args.limit);
    Ok(sample(&plan, machine)?)
}

fn make_plan<'a>(
    args: &SpinAttachArgs,
    subject: Subject<'a>,
    source: TraceSource,
    limit: Option<Duration>,
) -> AttachPlan<'a> {
    AttachPlan {
        subject,
        source,
        event: args.sampling.event.map(Into::into),
        hz: args.sampling.hz,
        limit,
        tags: args.sampling.tags.clone(),
    }
}
