//! The subject of a trace or profile: a command to start, or a running process.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::bound;
use pinwise_machine::linux::process_name;
use pinwise_machine::{Binding, Host, Output, Request, Subject};
use pinwise_placement::{Placement, Realised};
use pinwise_record::TraceSource;
use pinwise_workload::{Command, Workload};

/// A command with its CPUs and settings.
pub(super) struct PlacedCommand {
    placement: Placement,
    pub(super) realised: Realised,
    workload: Workload,
    output: Output,
    binding: Option<Binding>,
}

impl PlacedCommand {
    /// Resolves the arguments on the machine.
    pub(super) fn new(
        argv: &[String],
        place: &str,
        input: Option<&PathBuf>,
        output: Output,
        machine: &mut dyn Host,
    ) -> anyhow::Result<Self> {
        let command = Command::from_argv(argv.to_vec())?;
        let placement: Placement = place.parse().context("--place")?;
        let (topology, _) = machine.topology()?;
        let realised = placement.realise(&topology).context("--place")?;
        let binding = Binding::for_place(&realised, None);
        let workload = Workload {
            input: input.cloned(),
            ..Workload::new(command)
        };
        Ok(Self {
            realised,
            placement,
            workload: bound::add_missing_variables(&workload, binding.as_ref()),
            output,
            binding,
        })
    }

    /// The command as a request to the machine.
    pub(super) fn request(&self) -> Request<'_> {
        Request {
            memory: self.realised.memory.as_ref(),
            output: self.output.clone(),
            bound: self.binding.as_ref(),
            ..Request::new(&self.workload, &self.realised.cpus)
        }
    }

    /// The command as the record describes it.
    pub(super) fn source(&self) -> TraceSource {
        TraceSource::Command {
            command: self.workload.command.argv().to_vec(),
            placement: self.placement.to_string(),
            cpus: self.realised.cpus.to_string(),
        }
    }
}

/// The process of `--pid`, for the machine and for the record.
pub(super) fn find_process(pid: i32) -> anyhow::Result<(Subject<'static>, TraceSource)> {
    if pid <= 0 {
        bail!("--pid {pid}: a process id is 1 or more");
    }
    let name = process_name(pid).unwrap_or_default();
    Ok((Subject::Process(pid), TraceSource::Process { pid, name }))
}

/// Parses `--output`: discarded or shown.
pub(super) fn parse_output(text: &str) -> anyhow::Result<Output> {
    Ok(match text {
        "discard" | "null" => Output::Discard,
        "inherit" => Output::Inherit,
        other => bail!("--output '{other}': discard or inherit"),
    })
}
