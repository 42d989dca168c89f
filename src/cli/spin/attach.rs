//! `spin attach`.

use std::time::Duration;

use anyhow::{Context, bail};

use crate::cli::args::{Global, SpinAttachArgs};
use crate::cli::plan::name_and_time;
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, export, open_machine, open_store};
use crate::machine::{Machine, MachineError, Output, Request, Subject};
use crate::placement::{Placement, Realised};
use crate::record::{SpinAttachRecord, TraceSource};
use crate::report;
use crate::study::spin::attach::{Plan, attach as watch};
use crate::workload::{Command, Workload};

/// How long a process is sampled where nothing is said.
const USUAL: Duration = Duration::from_secs(5);
/// Samples per second beyond which sampling costs more than it tells.
const MOST_HZ: u32 = 20_000;

pub(super) fn attach(
    global: &Global,
    args: &SpinAttachArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if !(1..=MOST_HZ).contains(&args.sampling.hz) {
        bail!("--hz {}: from 1 to {MOST_HZ}", args.sampling.hz);
    }
    let mut machine = open_machine(global, 0, false)?;
    let mut store = open_store(global)?;
    let made = match args.pid {
        Some(pid) if pid <= 0 => bail!("--pid {pid}: a process id is 1 or more"),
        Some(pid) => of_process(args, pid, machine.as_mut()),
        None if args.argv.is_empty() => bail!("say what to look at: -- COMMAND, or --pid PID"),
        None => of_command(args, machine.as_mut()),
    };
    let mut record = match made {
        Ok(record) => record,
        Err(error) if is_interrupt(&error) => {
            terminal.warn("interrupted; nothing was stored");
            return Ok(Exit::Interrupted);
        }
        Err(error) => return Err(error),
    };
    (record.id, record.started) = name_and_time();
    let stored = store.as_mut().map(|store| store.keep(&record));
    if terminal.is_json() {
        terminal.print_json(&record)?;
    } else {
        terminal.print(&report::spin_attach(&record, terminal.palette()))?;
    }
    if let Some(path) = &args.sampling.export_json {
        export::write_file(path, &format!("{}\n", serde_json::to_string(&record)?))?;
    }
    if let Some(Err(error)) = stored {
        terminal.error(&format!("{error}; what is shown above is complete"));
        return Ok(Exit::Error);
    }
    judged(args, &record, terminal)
}

fn judged(
    args: &SpinAttachArgs,
    record: &SpinAttachRecord,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if !matches!(record.exit, None | Some(0)) {
        return Ok(Exit::Error);
    }
    let Some(most) = args.max_spin else {
        return Ok(Exit::Done);
    };
    let Some(share) = record.spin_share else {
        bail!("--max-spin: whether it spins could not be seen");
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

fn of_process(
    args: &SpinAttachArgs,
    pid: i32,
    machine: &mut dyn Machine,
) -> anyhow::Result<SpinAttachRecord> {
    let name = crate::machine::linux::process_name(pid).unwrap_or_default();
    let plan = Plan {
        subject: Subject::Process(pid),
        source: TraceSource::Process { pid, name },
        event: args.sampling.event.map(Into::into),
        hz: args.sampling.hz,
        limit: Some(args.limit.unwrap_or(USUAL)),
        tags: args.sampling.tags.clone(),
    };
    Ok(watch(&plan, machine)?)
}

fn of_command(
    args: &SpinAttachArgs,
    machine: &mut dyn Machine,
) -> anyhow::Result<SpinAttachRecord> {
    let sampling = &args.sampling;
    let command = Command::from_argv(args.argv.clone())?;
    let placement: Placement = sampling.place.parse().context("--place")?;
    let (topology, _) = machine.topology()?;
    let Realised { cpus, memory, .. } = placement.realise(&topology).context("--place")?;
    let output = match sampling.output.as_str() {
        "discard" => Output::Discard,
        "inherit" => Output::Inherit,
        other => bail!("--output '{other}': discard or inherit"),
    };
    let workload = Workload {
        input: sampling.input.clone(),
        ..Workload::new(command.clone())
    };
    let request = Request {
        workload: &workload,
        cpus: &cpus,
        memory: memory.as_ref(),
        output,
        environment_padding: 0,
        count_threads_closely: false,
    };
    let plan = Plan {
        subject: Subject::Command(&request),
        source: TraceSource::Command {
            command: command.argv().to_vec(),
            placement: placement.to_string(),
            cpus: cpus.to_string(),
        },
        event: sampling.event.map(Into::into),
        hz: sampling.hz,
        limit: args.limit,
        tags: sampling.tags.clone(),
    };
    Ok(watch(&plan, machine)?)
}

fn is_interrupt(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<MachineError>(),
        Some(MachineError::Interrupted)
    )
}
