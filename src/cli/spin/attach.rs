//! `spin attach`.

use std::time::Duration;

use anyhow::bail;

use crate::cli::args::{Global, SpinAttachArgs};
use crate::cli::ending::{keep_and_show, unless_interrupted};
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
use pinwise_study::spin::attach::{AttachPlan, attach as watch};

/// How long a process is sampled by default.
const USUAL: Duration = Duration::from_secs(5);

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
    let Some(mut record) = unless_interrupted(attached, terminal)? else {
        return Ok(Exit::Interrupted);
    };
    (record.id, record.started) = new_id_and_start();
    let show = || {
        terminal.show(&record, pinwise_report::spin_attach)?;
        files::write_json(args.sampling.export_json.as_deref(), &record)
    };
    match keep_and_show(store, &record, terminal, show, Exit::Done)? {
        Exit::Done => judge(args, &record, terminal),
        exit => Ok(exit),
    }
}

fn judge(
    args: &SpinAttachArgs,
    record: &SpinAttachRecord,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let exit = Exit::of_command(record.exit);
    if exit != Exit::Done {
        return Ok(exit);
    }
    let Some(most) = args.max_spin else {
        return Ok(Exit::Done);
    };
    let Some(share) = record.spin_share else {
        bail!("--max-spin: could not determine whether it spins");
    };
    if share <= most {
        return Ok(Exit::Done);
    }
    terminal.warn(&format!(
        "{:.1} % of its CPU time is spinning, more than --max-spin {:.1} %",
        100.0 * share,
        100.0 * most
    ));
    Ok(Exit::GateFailed)
}

fn attach_to_process(
    args: &SpinAttachArgs,
    pid: i32,
    machine: &mut dyn Machine,
) -> anyhow::Result<SpinAttachRecord> {
    let (subject, source) = subject::process(pid)?;
    let limit = Some(args.limit.unwrap_or(USUAL));
    Ok(watch(&plan(args, subject, source, limit), machine)?)
}

fn attach_to_command(
    args: &SpinAttachArgs,
    machine: &mut dyn Machine,
) -> anyhow::Result<SpinAttachRecord> {
    let sampling = &args.sampling;
    let output = subject::output(&sampling.output)?;
    let input = sampling.input.as_ref();
    let started = PlacedCommand::new(&args.argv, &sampling.place, input, output, machine)?;
    let request = started.request();
    let subject = Subject::Command(&request);
    let plan = plan(args, subject, started.source(), args.limit);
    Ok(watch(&plan, machine)?)
}

fn plan<'a>(
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
