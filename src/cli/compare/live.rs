//! `compare --pid`: moves a running service between placements.

use std::time::Duration;

use anyhow::{Context, bail};

use super::super::apply::find_target;
use super::super::args::{CompareArgs, Global};
use super::super::machine::open_live_host;
use super::super::outputs::check_outputs;
use super::super::terminal::Terminal;
use super::super::{Exit, export, plan, restore};
use super::{
    INTERRUPTS_MOVE, exit_status, exit_status_of_gates, report_interrupt, run_plan, show_and_export,
};
use pinwise_format::count;
use pinwise_machine::linux::live::{Limit, LiveMachine, LiveOrder, Service, Source, Target, Url};
use pinwise_machine::linux::own_setting;
use pinwise_machine::{Binding, Host, MachineError};
use pinwise_record::Comparison;
use pinwise_report::visible;
use pinwise_study::compare::{ArmPlan, ComparePlan};
use pinwise_study::live::{ServiceState, add_service_findings, service_record};
use pinwise_topology::{CpuSet, Topology};
use pinwise_workload::{Command, Metric, Workload};

/// Time after a change of placement that does not count, without `--settle`.
const SETTLE: Duration = Duration::from_millis(500);
/// A metric command without `--timeout` may take this much longer than a sample.
const METRIC_COMMAND_GRACE: Duration = Duration::from_secs(60);

pub(super) fn compare(
    global: &Global,
    args: &CompareArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let metric = parse_metric(args)?;
    let results = &args.experiment.results;
    check_outputs(global, &export::list_result_files(results), &[])?;
    restore::note_leftovers(terminal);
    let (pins, mut host) = open_live_host(global, "compare --pid", &args.interrupts.irqs)?;
    if !args.interrupts.irqs.is_empty() {
        terminal.warn(INTERRUPTS_MOVE);
    }
    let live = &args.live;
    let target = find_target(
        live.pid,
        live.unit.as_deref(),
        live.cgroup.as_deref(),
        &mut host,
    )?;
    let service = Service::new(target.clone(), pins)?;
    let (machine_topology, warnings) = host.topology()?;
    let topology = service.topology(&machine_topology)?;
    let mut plan = make_plan(args, &metric, &target, &topology, terminal)?;
    plan.argv.clone_from(&global.argv);
    let source = choose_source(args, &plan, &machine_topology)?;
    if let Some(record) = &mut plan.service {
        record.metric_source = Some(source.name());
    }
    let self_placed = service.self_placed();
    let order = LiveOrder {
        source,
        metric,
        sample: live.sample,
        settle: live.settle.unwrap_or(SETTLE),
        limit: None,
    };
    let mut machine = LiveMachine::new(host, service, topology, warnings, order);
    let first = match machine.try_figure() {
        Err(MachineError::Interrupted) => return Ok(report_interrupt(terminal)),
        figure => figure?.map_err(|why| anyhow::anyhow!("{}", add_hint(&why, args)))?,
    };
    if let Some(share) = live.abort_if_worse {
        let baseline = &plan.arms[plan.baseline];
        machine.set_limit(
            Limit {
                share,
                cpus: baseline.place.cpus.clone(),
                order: baseline.binding.as_ref().map(|bound| bound.order.clone()),
                settings: baseline.settings.clone(),
                name: baseline.name.clone(),
            },
            baseline.is_default.then(|| plan.metric.cost(first)),
        );
    }
    let knob = target.first_process().and_then(own_setting);
    let (mut record, watch) = run_plan(global, &plan, &mut machine, terminal)?;
    let mut notes = machine.notes().to_vec();
    if self_placed > 0 {
        let (threads, name) = (count(self_placed, "thread"), target.name());
        notes.push(format!(
            "{threads} of {name} already had their own CPUs: placed by the program or somebody else"
        ));
    }
    let state = ServiceState {
        notes,
        knob,
        aborted: machine.aborted(),
        has_ended: !machine.exists(),
    };
    restore_threads(machine, terminal);
    add_service_findings(&mut record, &state);
    let is_stored = watch.close(|store| store.finish(&record));
    show_and_export(&record, results, terminal)?;
    Ok(match exit_status_of_service(&record, &state) {
        Exit::Done if !is_stored => Exit::Error,
        Exit::Done => exit_status_of_gates(&record, args, terminal),
        other => other,
    })
}

/// Restores the CPUs of all threads, and interrupts; warns of what was not restored.
fn restore_threads(mut machine: LiveMachine, terminal: &Terminal) {
    let (returned, unset) = machine.restore();
    if let Err(error) = unset {
        terminal.warn(&error.to_string());
    }
    if returned.left > 0 {
        terminal.warn(&format!(
            "threads left as somebody else set them: {}",
            returned.left
        ));
    }
}

/// Arms dropped by `--abort-if-worse` fail the gate; anything else that failed is an error.
fn exit_status_of_service(record: &Comparison, state: &ServiceState) -> Exit {
    // An arm that was rolled back, or that failed otherwise, does not run again.
    let failed = record.arms.iter().filter(|arm| arm.invalid.is_some());
    let is_limit = state.aborted > 0 && failed.count() == state.aborted;
    match exit_status(record) {
        Exit::Error if !state.has_ended && is_limit => Exit::GateFailed,
        other => other,
    }
}

/// The service's own metric; also refuses options that make no sense for a service.
fn parse_metric(args: &CompareArgs) -> anyhow::Result<Metric> {
    let live = &args.live;
    if live.metric_command.is_none() && live.metric_url.is_none() {
        bail!("a service is judged by its own metric: give --metric-command or --metric-url");
    }
    let Some(text) = &args.metric else {
        bail!(
            "--metric is missing: such as 'regex:([\\d.]+) req/s higher' or 'prometheus:rate(requests_total) higher'"
        );
    };
    let metric: Metric = text.parse().context("--metric")?;
    if !metric.needs_output() {
        bail!(
            "--metric {metric}: not available for a running service; use regex:…, json:… or prometheus:…"
        );
    }
    if let Some(url) = &live.metric_url {
        url.parse::<Url>().context("--metric-url")?;
    }
    if args.trace {
        bail!("--trace: use pinwise trace --pid for a service");
    }
    if args.experiment.workload.output != "discard" {
        bail!("--output: a running service keeps its output");
    }
    Ok(metric)
}

fn make_plan(
    args: &CompareArgs,
    metric: &Metric,
    target: &Target,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<ComparePlan> {
    let mut record = service_record(target.facts());
    let command = Command::from_argv(record.command.clone())?;
    let options = args.experiment.workload.for_command(0, 1, &[])?;
    // Environment, input and time-out belong to the metric command.
    let service_workload = plan::build_workload(&command, &options)?;
    let workload = Workload {
        prepare: service_workload.prepare,
        conclude: service_workload.conclude,
        ..Workload::new(command)
    };
    let places = plan::list_live_placements(args, topology, terminal)?;
    let arms: Vec<ArmPlan> = places
        .into_iter()
        .map(|merged| {
            let place = merged.placement;
            ArmPlan {
                name: place.placement.to_string(),
                workload: workload.clone(),
                is_default: place.cpus == topology.allowed
                    && Binding::for_place(&place, None).is_none(),
                binding: Binding::for_place(&place, None),
                settings: Vec::new(),
                place,
                same_as: merged.also_named,
            }
        })
        .collect();
    let mut arms = plan::add_interrupt_settings(arms, args, topology, terminal)?;
    let seed = plan::choose_seed(&args.experiment.effort);
    plan::make_unique(&mut arms);
    let baseline = plan::find_baseline(args, &arms)?;
    if args.placebo {
        arms.push(plan::make_placebo(&arms[baseline]));
        plan::make_unique(&mut arms);
    }
    let (id, started) = plan::new_id_and_start();
    record.sample_s = Some(args.live.sample.as_secs_f64());
    record.settle_s = Some(args.live.settle.unwrap_or(SETTLE).as_secs_f64());
    let plan = ComparePlan {
        id,
        started,
        known: plan::describe_moved_interrupts(&arms).into_iter().collect(),
        placebo: args.placebo.then(|| arms.len() - 1),
        arms,
        baseline,
        metric: metric.clone(),
        tuning: plan::compare_tuning(args),
        seed,
        output: pinwise_machine::Output::Keep,
        tags: args.experiment.results.tags.clone(),
        service: Some(record),
        ..ComparePlan::default()
    };
    plan.check()?;
    Ok(plan)
}

/// Where the metric comes from. A metric command runs on the CPUs that no placement uses, or on all
/// if there are none: on the same ones for every arm, so that it does not favour one.
fn choose_source(
    args: &CompareArgs,
    plan: &ComparePlan,
    machine: &Topology,
) -> anyhow::Result<Source> {
    if let Some(url) = &args.live.metric_url {
        return Ok(Source::Page(url.parse().context("--metric-url")?));
    }
    let line = args.live.metric_command.as_deref().unwrap_or_default();
    let options = &args.experiment.workload;
    let command = plan::parse_line(line, options).context("--metric-command")?;
    plan::refuse_shell_syntax(&command, line, options)?;
    let placed = plan.arms.iter().filter(|arm| !arm.is_default);
    let taken = CpuSet::union_of(placed.map(|arm| &arm.place.cpus));
    let free = machine.allowed.difference(&taken);
    let workload = plan::build_workload(&command, options)?;
    let workload = Workload {
        prepare: None,
        conclude: None,
        timeout: workload
            .timeout
            .or(Some(args.live.sample + METRIC_COMMAND_GRACE)),
        ..workload
    };
    let cpus = match free.is_empty() {
        true => machine.allowed.clone(),
        false => free,
    };
    Ok(Source::Command(Box::new(workload), cpus))
}

/// Adds to the reason why the metric cannot be read what to do about it.
fn add_hint(why: &str, args: &CompareArgs) -> String {
    let hint = match &args.live.metric_command {
        Some(_) => "run the command by hand; --shell sh passes it to a shell",
        None => "look at the page: curl -s URL",
    };
    format!("{} ({hint})", visible(why))
}
