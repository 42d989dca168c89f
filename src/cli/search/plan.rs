//! From arguments, or from a record to be continued, to the plan of a search.

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

/// The default number of runs.
const USUAL_RUNS: usize = 200;
/// Pairs that confirm the best, at most.
const USUAL_PAIRS: usize = 30;
/// The first run of a program fills caches that later ones find filled.
const WARMUP: usize = 1;

/// How much a search may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Effort {
    runs: Option<usize>,
    time: Option<Duration>,
    pairs: usize,
}

/// How many threads are searched, and how many `os-default` has.
struct Team {
    searched: Vec<usize>,
    of_default: usize,
    /// Were those counted, and not set?
    is_counted: bool,
    sets_environment: bool,
}

/// A search that begins.
pub(super) fn new_plan(
    args: &SearchArgs,
    argv: &[String],
    seed: u64,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<SearchPlan> {
    let metric = metric(args.metric.as_deref().unwrap_or("wall"))?;
    let options = &args.workload;
    let command = plan::one_command(args.line.as_deref(), &args.argv, options, terminal)?;
    let workload = plan::workload(&command, options)?;
    let output = plan::output(&options.output, &metric)?;
    let effort = effort(args).unwrap_or(Effort {
        runs: Some(USUAL_RUNS),
        time: None,
        pairs: args.confirm.unwrap_or(USUAL_PAIRS),
    });
    let (topology, warnings) = machine.topology()?;
    for warning in warnings {
        terminal.note(&warning);
    }
    let team = plan_team(args, argv, &workload, &topology, machine, terminal)?;
    let (id, started) = plan::new_id_and_start();
    Ok(SearchPlan {
        workload,
        threads: team.searched,
        sets_threads: team.sets_environment,
        default_threads: team.of_default,
        default_is_counted: team.is_counted,
        min_effect: args.min_effect,
        max_slowdown: args.max_slowdown,
        metric,
        unit: String::new(),
        max_runs: effort.runs,
        budget: effort.time,
        confirmation_pairs: effort.pairs,
        warmup: WARMUP,
        seed,
        output,
        id,
        argv: argv.to_vec(),
        started,
        tags: args.results.tags.clone(),
    })
}

fn metric(text: &str) -> anyhow::Result<Metric> {
    text.parse().context("--metric")
}

/// The budget that was given; `None` without any.
fn effort(args: &SearchArgs) -> Option<Effort> {
    let pairs = args.confirm.unwrap_or(USUAL_PAIRS);
    let (time, runs) = (args.budget, args.max_runs);
    (time.is_some() || runs.is_some()).then_some(Effort { runs, time, pairs })
}

/// With one number of threads `os-default` runs with it, too; with several it
/// is the program as it is, unless the command cannot do without a number.
fn plan_team(
    args: &SearchArgs,
    argv: &[String],
    workload: &Workload,
    topology: &Topology,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<Team> {
    let cpus = topology.allowed.len();
    let names_threads = workload.has_thread_placeholder();
    let Some(text) = &args.threads else {
        if names_threads {
            bail!(
                "--threads: {{threads}} stands for a number; give some, such as --threads 1..max"
            );
        }
        let counted = count_threads(workload, topology, machine, terminal)?;
        return Ok(Team {
            searched: vec![counted],
            of_default: counted,
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
    let searched = threads::parse(text, cpus, &compare)?;
    let most = searched.last().copied().unwrap_or(1);
    let is_counted = searched.len() > 1 && !names_threads;
    let of_default = match is_counted {
        true => count_threads(workload, topology, machine, terminal)?,
        false => most,
    };
    Ok(Team {
        searched,
        of_default,
        is_counted,
        sets_environment: true,
    })
}

/// The threads that the program as it is keeps busy, at most one for each CPU.
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

/// A resumed search, perhaps with a larger budget.
pub(super) fn resume(
    args: &SearchArgs,
    past: &SearchRecord,
    machine: &mut dyn CommandRunner,
) -> anyhow::Result<SearchPlan> {
    let planned = &past.plan;
    let before = Effort {
        runs: planned.max_runs,
        time: planned.budget_s.and_then(duration),
        pairs: planned.confirmation_pairs,
    };
    let mut effort = effort(args).unwrap_or(before);
    effort.pairs = args.confirm.unwrap_or(before.pairs);
    check_goes_on(past, before, effort)?;
    let workload = workload_of(past)?;
    let (topology, _) = machine.topology()?;
    if planned.counted_threads.is_some() && machine.is_simulated() {
        // That run is repeated, as all others: nothing else restores a simulated machine's random
        // numbers.
        plan::measure_busy_threads(&workload, &topology, machine)?;
    }
    let metric = metric(&past.metric.name)?;
    let output = match planned.output.as_str() {
        "" => plan::output("discard", &metric)?,
        "keep" => plan::output("pipe", &metric)?,
        other => plan::output(other, &metric)?,
    };
    Ok(SearchPlan {
        workload,
        threads: planned.threads.clone(),
        sets_threads: planned.sets_threads,
        default_threads: default_threads(planned),
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

/// Threads of `os-default`, set or counted.
pub(in crate::cli) fn default_threads(planned: &SearchPlanRecord) -> usize {
    let given = planned.default_threads.or(planned.counted_threads);
    given.or(planned.threads.last().copied()).unwrap_or(1)
}

fn duration(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// Is there anything left to do?
fn check_goes_on(past: &SearchRecord, before: Effort, now: Effort) -> anyhow::Result<()> {
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
        // An error ended it, and its runs are as good as before.
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

/// The command of a search, with `{threads}` where it was.
pub(in crate::cli) fn workload_of(record: &SearchRecord) -> anyhow::Result<Workload> {
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
        timeout: given.timeout_s.and_then(duration),
        success: match record.plan.any_status {
            true => SuccessRule::AnyStatus,
            false => SuccessRule::Zero,
        },
        ..Workload::new(command)
    })
}
