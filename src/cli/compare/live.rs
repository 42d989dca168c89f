//! `compare --pid`: placements rotated on a service while it runs.

use std::time::Duration;

use anyhow::{Context, bail};

use super::super::apply::find_target;
use super::super::args::{CompareArgs, Global};
use super::super::machine::live_host;
use super::super::outputs::check_outputs;
use super::super::terminal::Terminal;
use super::super::{Exit, export, plan, restore};
use super::{INTERRUPTS_MOVE, exit_of, exit_status_of_gates, finish, report_interrupt, run_plan};
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

/// Time that does not count after a change of placement.
const SETTLE: Duration = Duration::from_millis(500);
/// A metric command without a limit of its own may take this long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn compare(
    global: &Global,
    args: &CompareArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let metric = metric(args)?;
    check_outputs(global, &export::outputs(&args.experiment.results), &[])?;
    restore::offer(terminal);
    let (pins, mut host) = live_host(global, "compare --pid", &args.interrupts.irqs)?;
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
    let (own, warnings) = host.topology()?;
    let topology = service.topology(&own)?;
    let mut plan = make_plan(args, &metric, &target, &topology, terminal)?;
    plan.argv.clone_from(&global.argv);
    let source = source(args, &plan, &own, terminal)?;
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
        let is_as_now = baseline.is_default;
        machine.set_limit(
            Limit {
                share,
                cpus: baseline.place.cpus.clone(),
                order: baseline.binding.as_ref().map(|bound| bound.order.clone()),
                settings: baseline.settings.clone(),
                name: baseline.name.clone(),
            },
            is_as_now.then(|| plan.metric.cost(first)),
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
    give_back(machine, terminal);
    add_service_findings(&mut record, &state);
    let is_stored = watch.close(|store| store.finish(&record));
    finish(&record, &args.experiment.results, terminal)?;
    Ok(match exit(&record, &state) {
        Exit::Done if !is_stored => Exit::Error,
        Exit::Done => exit_status_of_gates(&record, args, terminal),
        other => other,
    })
}

/// Restores every thread, and interrupts.
fn give_back(mut machine: LiveMachine, terminal: &Terminal) {
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

/// A limit that the user set is a gate; anything else that failed is an error.
fn exit(record: &Comparison, state: &ServiceState) -> Exit {
    // An arm that was rolled back, or that failed otherwise, does not run again.
    let failed = record.arms.iter().filter(|arm| arm.invalid.is_some());
    let is_limit = state.aborted > 0 && failed.count() == state.aborted;
    match exit_of(record) {
        Exit::Error if !state.has_ended && is_limit => Exit::GateFailed,
        other => other,
    }
}

/// The figure: of the service's own.
fn metric(args: &CompareArgs) -> anyhow::Result<Metric> {
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
    // Environment, input and time-out are the metric command's.
    let of_service = plan::workload(&command, &options)?;
    let workload = Workload {
        prepare: of_service.prepare,
        conclude: of_service.conclude,
        ..Workload::new(command)
    };
    let places = plan::live_places(args, topology, terminal)?;
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
    let baseline = plan::baseline(args, &arms)?;
    if args.placebo {
        arms.push(plan::placebo(&arms[baseline]));
        plan::make_unique(&mut arms);
    }
    let (id, started) = plan::new_id_and_start();
    record.sample_s = Some(args.live.sample.as_secs_f64());
    record.settle_s = Some(args.live.settle.unwrap_or(SETTLE).as_secs_f64());
    let plan = ComparePlan {
        id,
        started,
        known: plan::find_moved_interrupts(&arms).into_iter().collect(),
        placebo: args.placebo.then(|| arms.len() - 1),
        arms,
        baseline,
        metric: metric.clone(),
        tuning: plan::tuning_of(args),
        seed,
        output: pinwise_machine::Output::Keep,
        tags: args.experiment.results.tags.clone(),
        service: Some(record),
        ..ComparePlan::default()
    };
    plan.check()?;
    Ok(plan)
}

/// The source of the figure. A command runs on the CPUs that no placement uses, or on all if there
/// are none: for every arm on the same ones, so that it does not make the difference.
fn source(
    args: &CompareArgs,
    plan: &ComparePlan,
    own: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Source> {
    if let Some(url) = &args.live.metric_url {
        return Ok(Source::Page(url.parse().context("--metric-url")?));
    }
    let line = args.live.metric_command.as_deref().unwrap_or_default();
    let options = &args.experiment.workload;
    let command = plan::parse_line(line, options).context("--metric-command")?;
    plan::warn_of_shell_syntax(&command, Some(line), options, terminal);
    let taken = plan.arms.iter().filter(|arm| !arm.is_default);
    let taken = CpuSet::union_of(taken.map(|arm| &arm.place.cpus));
    let free = own.allowed.difference(&taken);
    let workload = plan::workload(&command, options)?;
    let workload = Workload {
        prepare: None,
        conclude: None,
        timeout: workload.timeout.or(Some(args.live.sample + PATIENCE)),
        ..workload
    };
    let cpus = match free.is_empty() {
        true => own.allowed.clone(),
        false => free,
    };
    Ok(Source::Command(Box::new(workload), cpus))
}

/// What to do about a figure that cannot be read.
fn add_hint(why: &str, args: &CompareArgs) -> String {
    let hint = match &args.live.metric_command {
        Some(_) => "run the command by hand; --shell sh passes it to a shell",
        None => "look at the page: curl -s URL",
    };
    format!("{} ({hint})", visible(why))
}
