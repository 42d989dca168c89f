//! `doctor` and `run`: commands on this host without an experiment.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use super::Exit;
use super::args::{Global, RunArgs};
use super::maps::{describe_moving, load_newest_map};
use super::ranks;
use super::terminal::Terminal;
use super::{bound, plan};
use pinwise_doctor::{Examined, diagnose};
use pinwise_format::shell;
use pinwise_machine::linux::{self, BoundPlace, HostFacts, read_host_facts};
use pinwise_machine::{Binding, Coverage, MachineError};
use pinwise_placement::Placement;
use pinwise_study::load;
use pinwise_workload::Command;

/// How long `doctor` watches the CPUs.
const WATCH_TIME: Duration = Duration::from_millis(500);

pub(super) fn run_doctor(global: &Global, terminal: &Terminal) -> anyhow::Result<Exit> {
    if !global.machine.is_local() {
        bail!(
            "doctor examines this machine; it needs --machine local, not {}",
            global.machine
        );
    }
    let (topology, _) = linux::discover()?;
    let usage = linux::watch_usage(WATCH_TIME);
    let map = load_newest_map(global, &topology, &global.machine.to_string());
    let examined = Examined {
        facts: HostFacts {
            perf_refusal: linux::perf_refusal(),
            ..read_host_facts(Path::new("/"))
        },
        topology,
        usage,
        moving: map.as_ref().and_then(describe_moving).map(str::to_owned),
    };
    let mut record = diagnose(&examined);
    record.started = linux::time_of_day();
    load::name_busiest(&mut record.findings, linux::find_busiest);
    terminal.show(&record, pinwise_report::render_doctor)?;
    Ok(Exit::Done)
}

pub(super) fn run(global: &Global, args: &RunArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    if !global.machine.is_local() {
        bail!("run starts the command for real; it needs --machine local");
    }
    if let Some(hint) = find_cpus_before_program(&args.argv) {
        bail!("{hint}");
    }
    let command = Command::from_argv(args.argv.clone())?;
    let placement: Placement = args.place.parse().context("--place")?;
    let (topology, _) = linux::discover()?;
    if let (Some(per), Some(ranks)) = (args.per, args.ranks) {
        return ranks::start_ranks(global, args, per, ranks, &topology);
    }
    let (place, rank_variables) = match args.per {
        Some(per) => ranks::place_rank(per, &placement, &topology, terminal)?,
        None => (placement.realise(&topology).context("--place")?, Vec::new()),
    };
    let warn_if_changed = |granted: &pinwise_topology::CpuSet| {
        if *granted != place.cpus {
            terminal.warn(&format!(
                "{placement} asked for CPUs {} and was granted {granted}",
                place.cpus
            ));
        }
    };
    // `execute` and `execute_bound` return only if the command could not be started.
    let Some(binding) = Binding::for_place(&place, args.settle) else {
        if args.settle.is_some() {
            bail!("--settle: threads are bound where --place ends with /bound");
        }
        let error = linux::execute(
            &command,
            &place.cpus,
            place.memory.as_ref(),
            &rank_variables,
            warn_if_changed,
        );
        return report_failed_start(error, terminal);
    };
    let thread_variables = bound::list_missing_variables(&binding, &rank_variables);
    let variables = [rank_variables, thread_variables.clone()].concat();
    let place = BoundPlace {
        cpus: &place.cpus,
        memory: place.memory.as_ref(),
        binding: &binding,
        variables: &variables,
    };
    let granted = |cpus: &pinwise_topology::CpuSet| {
        bound::print_variables(&thread_variables, terminal);
        warn_if_changed(cpus);
    };
    let on_coverage = |coverage: &Coverage| bound::print_coverage(coverage, terminal);
    report_failed_start(
        linux::execute_bound(&command, &place, granted, on_coverage),
        terminal,
    )
}

/// CPUs in place of the program, as for `taskset`: a hexadecimal mask, or a list.
fn find_cpus_before_program(argv: &[String]) -> Option<String> {
    let [cpus, program, ..] = argv else {
        return None;
    };
    if plan::is_program(cpus) || !plan::is_program(program) {
        return None;
    }
    let (what, place) = match cpus.strip_prefix("0x") {
        Some(mask) => ("for the CPUs of a mask", format!("mask:{mask}")),
        None => ("as a placement", cpus.clone()),
    };
    place.parse::<Placement>().ok()?;
    Some(format!(
        "{cpus}: no such program; {what}: pinwise run --place {place} -- {}",
        shell::line(&argv[1..])
    ))
}

/// Reports that the command could not be started, with the exit status that shells use.
fn report_failed_start(error: MachineError, terminal: &Terminal) -> anyhow::Result<Exit> {
    let exit = match error {
        MachineError::NotFound { .. } => Exit::NotFound,
        MachineError::NotExecutable { .. } => Exit::NotExecutable,
        _ => return Err(error.into()),
    };
    terminal.error(&error.to_string());
    Ok(exit)
}
