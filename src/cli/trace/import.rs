//! `trace import`: reads traces that perf or ftrace recorded.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, bail};

use crate::cli::args::{Global, TraceImportArgs};
use crate::cli::files::NamedFile;
use crate::cli::opening::open_store;
use crate::cli::terminal::Terminal;
use crate::cli::{Exit, topology};
use pinwise_record::{HostRecord, TraceSource};
use pinwise_sched::import::{Facts, Import, Imported, TraceSubject};
use pinwise_sched::{Event, EventKind};
use pinwise_study::trace::{TraceDetails, TraceRecorder};
use pinwise_topology::{CpuSet, Topology};

pub(super) fn import(
    global: &Global,
    args: &TraceImportArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let named = || args.file.display().to_string();
    let inputs = [NamedFile {
        option: "the import",
        path: &args.file,
    }];
    let mut sinks = super::open_sinks(global, &args.files, &inputs)?;
    let import = open_regular(&args.file).and_then(|file| Ok(Import::open(file)?));
    let import = import.with_context(named)?;
    let facts = import.facts().clone();
    let (machine, topology) = read_machine(global, args, terminal)?;
    let store = open_store(global)?;
    let mut recorder = TraceRecorder::new(&topology, facts.scope);
    let mut cpus = CpuSet::new();
    let subject = args
        .pid
        .map_or(TraceSubject::Default, TraceSubject::Process);
    let imported = import.read(subject, &mut |events| {
        add_cpus(events, &mut cpus);
        recorder.add(events);
        sinks.take(events);
    });
    let imported = imported.with_context(named)?;
    let details = TraceDetails {
        source: TraceSource::Import {
            path: named(),
            pid: args.pid,
        },
        tier: facts.format.to_owned().into(),
        host: to_host(machine, &topology, &facts),
        span_ns: None,
        throttled: None,
        notes: list_notes(imported, &facts, &topology, &cpus, args),
        tags: args.files.tags.clone(),
    };
    super::store_and_show(
        recorder.finish(details),
        store,
        sinks,
        &args.files,
        terminal,
    )
}

#[expect(clippy::disallowed_methods, reason = "cli reads what the user names")]
fn open_regular(path: &Path) -> anyhow::Result<File> {
    let file = File::open(path)?;
    let kind = file.metadata()?;
    if kind.is_dir() {
        bail!("it is a directory (perf record --threads makes one); record without --threads");
    }
    if !kind.is_file() {
        bail!("not a regular file; save it to a file first");
    }
    Ok(file)
}

/// The machine on which the trace is taken to be recorded: its name in the record, and its
/// topology.
fn read_machine(
    global: &Global,
    args: &TraceImportArgs,
    terminal: &Terminal,
) -> anyhow::Result<(String, Topology)> {
    let (name, (topology, warnings)) = match &args.topology {
        Some(path) => {
            let name = path.display().to_string();
            (name, topology::read_named("--topology", path)?)
        }
        None => (
            global.machine.to_string(),
            topology::read_named_machine(global)?,
        ),
    };
    for warning in &warnings {
        terminal.note(warning);
    }
    Ok((name, topology))
}

fn to_host(machine_spec: String, topology: &Topology, facts: &Facts) -> HostRecord {
    let simulated = machine_spec.starts_with("sim:");
    let mut host = HostRecord::new(machine_spec, simulated, topology);
    if facts.host.is_some() {
        host.machine.hostname.clone_from(&facts.host);
    }
    host
}

/// Adds the CPUs on which threads were switched.
fn add_cpus(events: &[Event], cpus: &mut CpuSet) {
    for event in events {
        let is_of_cpu = matches!(
            event.what,
            EventKind::Switch { .. } | EventKind::In { .. } | EventKind::Out { .. }
        );
        let cpu = event.cpu as usize;
        if is_of_cpu && cpu <= CpuSet::MAX_CPU && !cpus.contains(cpu) {
            cpus.insert(cpu);
        }
    }
}

/// Remarks on the file, and on how it matches the machine.
fn list_notes(
    imported: Imported,
    facts: &Facts,
    topology: &Topology,
    cpus: &CpuSet,
    args: &TraceImportArgs,
) -> Vec<String> {
    let mut notes = imported.notes;
    let others = cpus.difference(&topology.online);
    if !others.is_empty() {
        notes.push(format!(
            "The trace is of a machine with other CPUs ({others}): name it with --topology."
        ));
    }
    let online = topology.online.len();
    if let Some((_, recorded)) = facts.cpus
        && recorded as usize != online
    {
        notes.push(format!(
            "The trace was recorded on {recorded} CPUs but is read as a machine with {online}: give the right one with --topology."
        ));
    }
    let is_foreign = facts.host.is_some() && facts.host != topology.identity.hostname;
    if is_foreign
        && args.topology.is_none()
        && let Some(host) = &facts.host
    {
        notes.push(format!(
            "The trace was recorded on another machine, '{}'; describe it with --topology.",
            pinwise_report::visible(host)
        ));
    }
    if let Some(root) = imported.root
        && args.pid.is_none()
    {
        notes.push(format!(
            "It covers the command that perf started (thread {root}) and its descendants."
        ));
    }
    notes
}
