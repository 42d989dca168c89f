//! Makes the plan of a search from arguments, or from a record to continue.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};

use super::threads;
use crate::cli::args::SearchArgs;
use crate::cli::plan;
use crate::cli::terminal::Terminal;
use pinwise_machine::CommandRunner;
use pinwise_record::{SearchPlanRecord, SearchRecord, Stopped, to_comparison_command};
use pinwise_study::search::SearchPlan;
use pinwise_topology::Topology;
use pinwise_workload::{Command, Metric, SuccessRule, Workload};

/// Runs without `--max-runs` and `--budget`.
const DEFAULT_RUNS: usize = 200;
/// The most pairs of runs to confirm the best, without `--confirm`.
const DEFAULT_PAIRS: usize = 30;
/// Discarded first runs: they fill caches that later runs find filled.
const WARMUP_RUNS: usize = 1;

/// The limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effort {
    runs: Option<usize>,
    time: Option<Duration>,
    pairs: usize,
}

/// The numbers of threads that are searched, and that of `os-default`.
struct ThreadPlan {
    searched: Vec<usize>,
    default_threads: usize,
    /// Was the number of `os-default` counted in a run, not set?
    is_counted: bool,
    sets_environment: bool,
}

/// Plans a new search.
pub(super) fn new_plan(
    args: &SearchArgs,
    argv: &[String],
    seed: u64,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<SearchPlan> {
    let metric = parse_metric(args.metric.as_deref().unwrap_or("wall"))?;
    let options = &args.workload;
    let command = plan::parse_command(args.line.as_deref(), &args.argv, options, terminal)?;
    let workload = plan::build_workload(&command, options)?;
    let output = plan::parse_output(&options.output, &metric)?;
    let effort = requested_effort(args).unwrap_or(Effort {
        runs: Some(DEFAULT_RUNS),
        time: None,
        pairs: args.confirm.unwrap_or(DEFAULT_PAIRS),
    });
    let (topology, warnings) = machine.topology()?;
    for warning in warnings {
        terminal.note(&warning);
    }
    let thread_plan = plan_threads(args, argv, &workload, &topology, machine, terminal)?;
    let (id, started) = plan::new_id_and_start();
    Ok(SearchPlan {
        workload,
        threads: thread_plan.searched,
        sets_threads: thread_plan.sets_environment,
        default_threads: thread_plan.default_threads,
        default_is_counted: thread_plan.is_counted,
        min_effect: args.min_effect,
        max_slowdown: args.max_slowdown,
        metric,
        unit: String::new(),
        max_runs: effort.runs,
        budget: effort.time,
        confirmation_pairs: effort.pairs,
        warmup: WARMUP_RUNS,
        seed,
        output,
        id,
        argv: argv.to_vec(),
        started,
        tags: args.results.tags.clone(),
    })
}

fn parse_metric(text: &str) -> anyhow::Result<Metric> {
    text.parse().context("--metric")
}

/// The requested limits; `None` without any.
fn requested_effort(args: &SearchArgs) -> Option<Effort> {
    let pairs = args.confirm.unwrap_or(DEFAULT_PAIRS);
    let (time, runs) = (args.budget, args.max_runs);
    (time.is_some() || runs.is_some()).then_some(Effort { runs, time, pairs })
}

/// Chooses numbers of threads. If one is searched, `os-default` runs with it, too. If several are,
/// `os-default` is the unchanged program, unless its command needs a number.
fn plan_threads(
    args: &SearchArgs,
    argv: &[String],
    workload: &Workload,
    topology: &Topology,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<ThreadPlan> {
    let cpus = topology.allowed.len();
    let names_threads = workload.has_thread_placeholder();
    let Some(text) = &args.threads else {
        if names_threads {
            bail!(
                "--threads: {{threads}} stands for a number; give some, such as --threads 1..max"
            );
        }
        let counted = count_threads(workload, topology, machine, terminal)?;
        return Ok(ThreadPlan {
            searched: vec![counted],
            default_threads: counted,
            is_counted: true,
            sets_environment: false,
        });
    };
    if args.workload.threads_env.is_some() {
        bail!("--threads-env: --threads sets the same variables; omit it");
    }
    let option = if text.contains("..") {
        None
    } else if names_threads {
        Some(("--parameter", format!("threads={text}")))
    } else {
        let is_number = text.parse::<usize>().is_ok();
        is_number.then(|| ("--threads-env", text.clone()))
    };
    let compare = option.and_then(|option| to_comparison_command(argv, Some(option)));
    let compare = compare.unwrap_or_else(|| "pinwise compare".to_owned());
    let searched = threads::parse_threads(text, cpus, &compare)?;
    let largest = searched.last().copied().unwrap_or(1);
    let is_counted = searched.len() > 1 && !names_threads;
    let default_threads = match is_counted {
        true => count_threads(workload, topology, machine, terminal)?,
        false => largest,
    };
    Ok(ThreadPlan {
        searched,
        default_threads,
        is_counted,
        sets_environment: true,
    })
}

/// Counts the threads that the unchanged program keeps busy; at most one for each CPU.
fn count_threads(
    workload: &Workload,
    topology: &Topology,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<usize> {
    let (threads, words) = plan::measure_busy_threads(workload, topology, machine)?;
    terminal.note(&format!("The program {words}."));
    Ok(threads.clamp(1, topology.allowed.len().max(1)))
}

/// Plans to continue a search, perhaps with a larger budget.
pub(super) fn resume(
    args: &SearchArgs,
    past: &SearchRecord,
    machine: &mut dyn CommandRunner,
) -> anyhow::Result<SearchPlan> {
    let planned = &past.plan;
    let before = Effort {
        runs: planned.max_runs,
        time: planned.budget_s.and_then(from_seconds),
        pairs: planned.confirmation_pairs,
    };
    let mut effort = requested_effort(args).unwrap_or(before);
    effort.pairs = args.confirm.unwrap_or(before.pairs);
    refuse_finished(past, before, effort)?;
    let workload = rebuild_workload(past)?;
    let (topology, _) = machine.topology()?;
    if planned.counted_threads.is_some() && machine.is_simulated() {
        // That run is repeated, as all others: nothing else restores a simulated machine's random
        // numbers.
        plan::measure_busy_threads(&workload, &topology, machine)?;
    }
    let metric = parse_metric(&past.metric.name)?;
    let output = match planned.output.as_str() {
        "" => plan::parse_output("discard", &metric)?,
        "keep" => plan::parse_output("pipe", &metric)?,
        other => plan::parse_output(other, &metric)?,
    };
    Ok(SearchPlan {
        workload,
        threads: planned.threads.clone(),
        sets_threads: planned.sets_threads,
        default_threads: find_planned_default_threads(planned),
        default_is_counted: planned.default_threads.is_none(),
        min_effect: planned.within,
        max_slowdown: planned.least_within,
        metric,
        unit: past.metric.unit.clone(),
        max_runs: effort.runs,
        budget: effort.time,
        confirmation_pairs: effort.pairs,
        warmup: planned.warmup,
        seed: past.seed,
        output,
        id: past.id.clone(),
        argv: past.argv.clone(),
        started: past.started.clone(),
        tags: past.tags.clone(),
    })
}

/// The number of threads of `os-default`, set or counted.
pub(in crate::cli) fn find_planned_default_threads(planned: &SearchPlanRecord) -> usize {
    let given = planned.default_threads.or(planned.counted_threads);
    given.or(planned.threads.last().copied()).unwrap_or(1)
}

fn from_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// An error if the search is finished, or its budget is used up and not larger now.
fn refuse_finished(past: &SearchRecord, before: Effort, now: Effort) -> anyhow::Result<()> {
    let id = &past.id;
    let is_larger = |now: Option<u128>, before: Option<u128>| match (now, before) {
        (None, Some(_)) => true,
        (Some(now), Some(before)) => now > before,
        (_, None) => false,
    };
    let more_runs = is_larger(now.runs.map(|r| r as u128), before.runs.map(|r| r as u128));
    let more_time = is_larger(
        now.time.map(|t| t.as_nanos()),
        before.time.map(|t| t.as_nanos()),
    );
    match past.stopped {
        None | Some(Stopped::Interrupted) => Ok(()),
        // An error of the machine ended it; its runs are valid.
        Some(Stopped::Failed) if past.arms.iter().all(|arm| arm.invalid.is_none()) => Ok(()),
        Some(Stopped::Runs) if more_runs => Ok(()),
        Some(Stopped::Budget) if more_time => Ok(()),
        Some(Stopped::Runs) => {
            bail!("--resume {id}: that search used up its runs; give it more with --max-runs")
        }
        Some(Stopped::Budget) => {
            bail!("--resume {id}: that search used up its time; give it more with --budget")
        }
        Some(Stopped::Precision) => bail!(
            "--resume {id}: that search is finished (pinwise record show {id}); start a new one without --resume"
        ),
        Some(Stopped::Failed) => bail!(
            "--resume {id}: the command of that search failed (pinwise record show {id}); start a new one without --resume"
        ),
    }
}

/// The workload of a stored search, with `{threads}` in its command.
pub(in crate::cli) fn rebuild_workload(record: &SearchRecord) -> anyhow::Result<Workload> {
    let given = &record.workload;
    let bad = || format!("record {}: its command cannot be run", record.id);
    let helper = |line: &Option<String>| -> anyhow::Result<Option<Command>> {
        let line = line.as_deref();
        line.map(|line| Command::from_line(line).with_context(bad))
            .transpose()
    };
    let command = Command::from_argv(record.command.clone()).with_context(bad)?;
    Ok(Workload {
        prepare: helper(&given.prepare)?,
        conclude: helper(&given.conclude)?,
        verify: helper(&given.verify)?,
        recipe: given.recipe.clone(),
        input: given.input.as_ref().map(PathBuf::from),
        environment: given.environment.clone(),
        timeout: given.timeout_s.and_then(from_seconds),
        success: match record.plan.any_status {
            true => SuccessRule::AnyStatus,
            false => SuccessRule::Zero,
        },
        ..Workload::new(command)
    })
}
