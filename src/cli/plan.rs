//! From arguments to a plan: commands, placements and parameters become arms.

use std::path::PathBuf;

use anyhow::{Context, bail};

use super::args::{AaArgs, CompareArgs, EffortArgs, ExperimentArgs, ScoreChoice, WorkloadArgs};
use super::terminal::Terminal;
use super::values::parse_variable;
use crate::machine::linux::{random_seed, time_of_day};
use crate::machine::{Machine, Output, Request};
use crate::placement::{Placement, Realised, defaults, merge_equivalent};
use crate::record::TopologyRecord;
use crate::stats::confirm::Score;
use crate::stats::verdict::count;
use crate::study::compare::{ArmPlan, Plan, RunFailure, Tuning};
use crate::study::probe::advised;
use crate::topology::Topology;
use crate::workload::{Command, Metric, SuccessRule, Sweep, Workload};

/// Runs per arm stand in for a budget: then time is unlimited.
const DEFAULT_BUDGET_S: u64 = 60;

/// A named command.
struct Candidate {
    name: Option<String>,
    command: Command,
}

/// The seed to use: the one given, or a new one.
pub(super) fn seed(effort: &EffortArgs) -> u64 {
    // Seeds are printed and typed again: nine digits are enough.
    effort.seed.unwrap_or_else(|| random_seed() % 1_000_000_000)
}

/// Resolves `compare`'s arguments.
pub(super) fn compare(
    args: &CompareArgs,
    seed: u64,
    machine: &mut dyn Machine,
    known: impl FnOnce(&Topology) -> Option<TopologyRecord>,
    terminal: &Terminal,
) -> anyhow::Result<Plan> {
    let metric: Metric = args.metric.parse().context("--metric")?;
    let output = output(&args.experiment.workload, &metric)?;
    let candidates = candidates(args)?;
    for candidate in &candidates {
        warn_of_shell_characters(&candidate.command, &args.experiment.workload, terminal);
    }
    let (topology, warnings) = machine.topology()?;
    for warning in warnings {
        terminal.note(&warning);
    }
    let workloads: Vec<Workload> = candidates
        .iter()
        .map(|candidate| workload(&candidate.command, &args.experiment.workload))
        .collect::<anyhow::Result<_>>()?;
    let wanted = if !args.places.is_empty() {
        named_placements(args)?
    } else if candidates.len() > 1 {
        vec![Placement::os_default()]
    } else {
        let threads = count_threads(&workloads[0], &topology, machine)?;
        chosen_placements(threads, &topology, known(&topology).as_ref(), terminal)
    };
    let placements = realised(&wanted, &topology, terminal)?;
    let mut arms = arms(&candidates, &workloads, &placements);
    let baseline = baseline(args, &arms)?;
    if args.placebo {
        arms.push(placebo(&arms[baseline]));
        make_unique(&mut arms);
    }
    Ok(Plan {
        placebo: args.placebo.then(|| arms.len() - 1),
        arms,
        baseline,
        metric,
        tuning: tuning(&args.experiment.effort),
        seed,
        output,
        tags: args.experiment.results.tags.clone(),
        ..named()
    })
}

/// Resolves `aa`'s arguments: one command at one place under several labels.
pub(super) fn aa(
    args: &AaArgs,
    seed: u64,
    machine: &mut dyn Machine,
    terminal: &Terminal,
) -> anyhow::Result<Plan> {
    let metric: Metric = args.metric.parse().context("--metric")?;
    if !(2..=26).contains(&args.arms) {
        bail!("--arms {}: from 2 to 26 arms can be labelled", args.arms);
    }
    let output = output(&args.experiment.workload, &metric)?;
    let command = one_command(&args.experiment)?;
    warn_of_shell_characters(&command, &args.experiment.workload, terminal);
    let placement: Placement = args.place.parse().context("--place")?;
    let (topology, _) = machine.topology()?;
    let place = placement.realise(&topology).context("--place")?;
    let workload = workload(&command, &args.experiment.workload)?;
    let arms: Vec<ArmPlan> = ('A'..='Z')
        .take(args.arms)
        .map(|label| ArmPlan {
            name: label.to_string(),
            workload: workload.clone(),
            place: place.clone(),
            same_as: Vec::new(),
            is_default: label == 'A',
        })
        .collect();
    Ok(Plan {
        arms,
        metric,
        tuning: tuning(&args.experiment.effort),
        seed,
        output,
        study: "aa",
        tags: args.experiment.results.tags.clone(),
        ..named()
    })
}

/// A plan with a name and the time, and nothing else yet.
fn named() -> Plan {
    let (id, started) = name_and_time();
    Plan {
        id,
        started,
        ..Plan::default()
    }
}

/// The name of a record that begins now, and when that is.
pub(super) fn name_and_time() -> (String, String) {
    let started = time_of_day();
    let stamp: String = started
        .chars()
        .filter(char::is_ascii_digit)
        .take(14)
        .collect();
    let (date, time) = stamp.split_at_checked(8).unwrap_or((&stamp, ""));
    let id = format!("{date}-{time}-{:08x}", random_seed() & 0xffff_ffff);
    (id, started)
}

fn tuning(effort: &EffortArgs) -> Tuning {
    let defaults = Tuning::default();
    let default_budget = effort
        .max_runs
        .is_none()
        .then(|| std::time::Duration::from_secs(DEFAULT_BUDGET_S));
    Tuning {
        min_effect: effort.min_effect,
        precision: effort.precision,
        budget: effort.budget.or(default_budget),
        max_runs: effort.max_runs,
        warmup: effort.warmup,
        score: match effort.score {
            ScoreChoice::Weighted => Score::Weighted,
            ScoreChoice::Rank => Score::Rank,
        },
        ..defaults
    }
}

fn parse_line(line: &str, args: &WorkloadArgs) -> anyhow::Result<Command> {
    let command = match &args.shell {
        Some(shell) => Command::in_shell(shell, line),
        None => Command::from_line(line),
    };
    Ok(command?)
}

fn one_command(args: &ExperimentArgs) -> anyhow::Result<Command> {
    match (&args.line, args.argv.as_slice()) {
        (Some(line), _) => parse_line(line, &args.workload),
        (None, []) => {
            bail!("there is no command; write it last, after --, as in: -- ./prog")
        }
        (None, argv) if args.workload.shell.is_some() => {
            parse_line(&argv.join(" "), &args.workload)
        }
        (None, argv) => Ok(Command::from_argv(argv.to_vec())?),
    }
}

fn candidates(args: &CompareArgs) -> anyhow::Result<Vec<Candidate>> {
    let sweeps: Vec<Sweep> = args
        .parameters
        .iter()
        .map(|text| text.parse().context("--parameter"))
        .collect::<anyhow::Result<_>>()?;
    check_names(&args.names, args.commands.len())?;
    let mut lines: Vec<(Option<String>, String)> = args
        .commands
        .iter()
        .enumerate()
        .map(|(index, line)| (args.names.get(index).cloned(), line.clone()))
        .collect();
    if lines.is_empty() && sweeps.is_empty() {
        let command = one_command(&args.experiment)?;
        return Ok(vec![Candidate {
            name: None,
            command,
        }]);
    }
    if lines.is_empty() {
        let line = match &args.experiment.line {
            Some(line) => line.clone(),
            None if args.experiment.argv.is_empty() => {
                bail!("--parameter needs a command that uses it")
            }
            None => shell_words::join(&args.experiment.argv),
        };
        lines.push((None, line));
    }
    let mut candidates = Vec::new();
    for (name, line) in &lines {
        for (choice, line) in Sweep::expand(&sweeps, line).context("--parameter")? {
            let label = match (name, choice.is_empty(), lines.len()) {
                (Some(name), true, _) => name.clone(),
                (Some(name), false, _) => format!("{name} {choice}"),
                (None, false, 1) => choice,
                (None, _, _) => line.clone(),
            };
            candidates.push(Candidate {
                name: Some(label),
                command: parse_line(&line, &args.experiment.workload)?,
            });
        }
    }
    Ok(candidates)
}

fn check_names(names: &[String], commands: usize) -> anyhow::Result<()> {
    if names.len() > commands {
        bail!(
            "{} for {}: --name names the --command at the same position",
            count(names.len(), "name"),
            count(commands, "command")
        );
    }
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            bail!("--name '{name}' stands twice; every arm needs a name of its own");
        }
    }
    Ok(())
}

fn warn_of_shell_characters(command: &Command, args: &WorkloadArgs, terminal: &Terminal) {
    if args.shell.is_none()
        && let Some(mark) = command.shell_characters()
    {
        terminal.warn(&format!(
            "'{mark}' is passed to {} as it is; for a shell to act on it, add --shell",
            command.program()
        ));
    }
}

fn workload(command: &Command, args: &WorkloadArgs) -> anyhow::Result<Workload> {
    let helper = |option: &str, line: &Option<String>| -> anyhow::Result<Option<Command>> {
        let parse = |line: &String| parse_line(line, args).with_context(|| option.to_owned());
        line.as_ref().map(parse).transpose()
    };
    let mut environment = Vec::new();
    for text in &args.environment {
        let variable =
            parse_variable(text).with_context(|| format!("--env '{text}' is not NAME=VALUE"))?;
        environment.push(variable);
    }
    if let Some(threads) = args.threads_env {
        environment.extend(thread_variables(threads)?);
    }
    Ok(Workload {
        prepare: helper("--prepare", &args.prepare)?,
        cleanup: helper("--cleanup", &args.cleanup)?,
        input: args.input.clone(),
        environment,
        timeout: args.timeout,
        success: if args.ignore_failure {
            SuccessRule::AnyStatus
        } else {
            SuccessRule::Zero
        },
        ..Workload::new(command.clone())
    })
}

/// What tells the usual runtimes how many threads to start.
fn thread_variables(threads: usize) -> anyhow::Result<Vec<(String, String)>> {
    if threads == 0 {
        bail!("--threads-env must be at least 1");
    }
    let names = [
        "OMP_NUM_THREADS",
        "GOMAXPROCS",
        "RAYON_NUM_THREADS",
        "TOKIO_WORKER_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
    ];
    let mut variables: Vec<(String, String)> = names
        .iter()
        .map(|name| ((*name).to_owned(), threads.to_string()))
        .collect();
    variables.push((
        "JAVA_TOOL_OPTIONS".to_owned(),
        format!("-XX:ActiveProcessorCount={threads}"),
    ));
    Ok(variables)
}

fn named_placements(args: &CompareArgs) -> anyhow::Result<Vec<Placement>> {
    let places = args.places.iter();
    places
        .map(|name| name.parse().context("--place"))
        .collect::<anyhow::Result<_>>()
}

/// The placements that suit so many threads, in the light of what was measured
/// of this machine since it booted.
fn chosen_placements(
    threads: Option<usize>,
    topology: &Topology,
    known: Option<&TopologyRecord>,
    terminal: &Terminal,
) -> Vec<Placement> {
    terminal.note(&format!(
        "The program runs {}; trying the placements that suit it.",
        match threads {
            None => "too briefly to count its threads".to_owned(),
            Some(1) => "1 thread".to_owned(),
            Some(n) => format!("{n} threads"),
        }
    ));
    let threads = Some(threads.unwrap_or(1));
    let Some(known) = known else {
        return defaults(topology, threads);
    };
    let advice = advised(topology, threads, known);
    for note in &advice.notes {
        terminal.note(note);
    }
    advice.placements
}

/// Placements as CPUs of this machine; those that stand for the same CPUs are
/// merged, and it is said.
fn realised(
    wanted: &[Placement],
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Vec<(Realised, Vec<String>)>> {
    let realised: Vec<Realised> = wanted
        .iter()
        .map(|placement| placement.realise(topology).context("--place"))
        .collect::<anyhow::Result<_>>()?;
    let merged = merge_equivalent(realised);
    for (first, twins) in merged.iter().filter(|(_, twins)| !twins.is_empty()) {
        terminal.note(&format!(
            "{} {} for the same CPUs as {} here: merged.",
            twins.join(", "),
            if twins.len() == 1 { "stands" } else { "stand" },
            first.placement
        ));
    }
    Ok(merged)
}

/// Runs the command once to see how many threads it starts.
fn count_threads(
    workload: &Workload,
    topology: &Topology,
    machine: &mut dyn Machine,
) -> anyhow::Result<Option<usize>> {
    if let Some(prepare) = &workload.prepare {
        machine.run_helper("prepare", prepare)?;
    }
    let run = machine.run(&Request {
        workload,
        cpus: &topology.allowed,
        memory: None,
        output: Output::Discard,
        environment_padding: 0,
        count_threads_closely: true,
    })?;
    if let Some(cleanup) = &workload.cleanup {
        machine.run_helper("cleanup", cleanup)?;
    }
    if let Some(failure) = RunFailure::of(&run, workload) {
        bail!("{failure}");
    }
    Ok(run.threads.and_then(|n| usize::try_from(n).ok()))
}

/// Every command at every place.
fn arms(
    candidates: &[Candidate],
    workloads: &[Workload],
    places: &[(Realised, Vec<String>)],
) -> Vec<ArmPlan> {
    let mut arms: Vec<ArmPlan> = Vec::new();
    for (candidate, workload) in candidates.iter().zip(workloads) {
        for (place, same_as) in places {
            let placement = place.placement.to_string();
            let name = match (&candidate.name, candidates.len(), places.len()) {
                (Some(name), 2.., 1) => name.clone(),
                (Some(name), 2.., _) => format!("{name} @ {placement}"),
                _ => placement,
            };
            arms.push(ArmPlan {
                name,
                workload: workload.clone(),
                is_default: candidates.len() == 1 && place.placement == Placement::os_default(),
                place: place.clone(),
                same_as: same_as.clone(),
            });
        }
    }
    make_unique(&mut arms);
    arms
}

/// The second of a name becomes `NAME (2)`, unless that is taken as well.
fn make_unique(arms: &mut [ArmPlan]) {
    for index in 1..arms.len() {
        let mut number = 2;
        let stem = arms[index].name.clone();
        while arms[..index].iter().any(|arm| arm.name == arms[index].name) {
            arms[index].name = format!("{stem} ({number})");
            number += 1;
        }
    }
}

fn baseline(args: &CompareArgs, arms: &[ArmPlan]) -> anyhow::Result<usize> {
    let Some(wanted) = &args.baseline else {
        let is_unplaced = |arm: &ArmPlan| arm.place.placement == Placement::os_default();
        return Ok(arms.iter().position(is_unplaced).unwrap_or(0));
    };
    let is_wanted = |arm: &ArmPlan| arm.name == *wanted || arm.same_as.contains(wanted);
    let found = arms.iter().position(is_wanted);
    found.with_context(|| {
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        format!(
            "--baseline '{wanted}' is not an arm (arms: {})",
            names.join(", ")
        )
    })
}

fn placebo(baseline: &ArmPlan) -> ArmPlan {
    ArmPlan {
        name: "placebo".to_owned(),
        same_as: Vec::new(),
        is_default: false,
        ..baseline.clone()
    }
}

fn output(args: &WorkloadArgs, metric: &Metric) -> anyhow::Result<Output> {
    let wanted = match args.output.as_str() {
        "discard" => Output::Discard,
        "inherit" => Output::Inherit,
        folder => Output::Files(PathBuf::from(folder)),
    };
    if metric.needs_output() {
        if wanted != Output::Discard {
            bail!(
                "--output {}: the metric needs the output itself; leave --output away",
                args.output
            );
        }
        return Ok(Output::Keep);
    }
    Ok(wanted)
}
