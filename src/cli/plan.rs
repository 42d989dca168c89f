//! Resolves the arguments of `compare` into a plan: combines commands, placements and parameters
//! into arms.

mod candidates;
mod companions;
mod figure;
mod groups;
mod host;
mod interrupts;
mod kernel;
mod memory;
mod placements;
mod surroundings;
mod what_if;

use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{CompareArgs, EffortArgs, ScoreChoice};
use super::recipes::ReadyRecipe;
use super::terminal::Terminal;
use super::{bound, maps};
use candidates::{Candidate, list_candidates, make_single_candidate};
use figure::{are_builds, choose_metric, find_recipe_unit};
use pinwise_format::count;
use pinwise_machine::linux::{random_seed, time_of_day};
use pinwise_machine::{Binding, CommandRunner, Output};
use pinwise_placement::{Merged, Placement, Realised, default_placements, merge_equivalent};
use pinwise_record::{ComparisonStudy, TopologyRecord};
use pinwise_stats::confirm::Score;
use pinwise_study::compare::{ArmPlan, ComparePlan, Tuning};
use pinwise_study::probe::advise_placements;
use pinwise_topology::Topology;
use pinwise_workload::{Metric, Workload, thread_variables};
use surroundings::add_options;

pub(super) use candidates::{is_program, parse_command, parse_line, refuse_shell_syntax};
pub(super) use host::{list_own_options, open_interrupt_ledger, open_ledger};
pub(super) use interrupts::{
    add_interrupt_settings, describe_moved as describe_moved_interrupts,
    realise_together as realise_interrupts,
};
pub(super) use surroundings::{build_workload, measure_busy_threads, parse_output};

/// Default time budget in seconds; with `--max-runs`, time is unlimited.
const DEFAULT_BUDGET_S: u64 = 60;

/// The seed of the options, or a new one.
pub(super) fn choose_seed(effort: &EffortArgs) -> u64 {
    seed_or_new(effort.seed)
}

/// The given seed, or a new one.
pub(super) fn seed_or_new(given: Option<u64>) -> u64 {
    // Users retype printed seeds, so they have at most nine digits.
    given.unwrap_or_else(|| random_seed() % 1_000_000_000)
}

/// Resolves the arguments of `compare`.
pub(super) fn plan_comparison(
    args: &CompareArgs,
    seed: u64,
    recipe: Option<&ReadyRecipe>,
    machine: &mut dyn CommandRunner,
    load_map: impl Fn(&Topology) -> Option<TopologyRecord>,
    terminal: &Terminal,
) -> anyhow::Result<ComparePlan> {
    let began = machine.now();
    let kernel = kernel::parse_kernel(args, !machine.is_simulated())?;
    let metric = choose_metric(args, recipe, kernel.is_some())?;
    let (candidates, mut workloads) = list_workloads(args, recipe, kernel.as_ref(), terminal)?;
    let tuning = compare_tuning(args);
    for workload in &mut workloads {
        // A run that takes the whole budget leaves no time for one to compare it with.
        workload.timeout = workload.timeout.or(tuning.budget);
    }
    let output = choose_output(args, &workloads, &metric)?;
    let (topology, warnings) = machine.topology()?;
    warnings.iter().for_each(|warning| terminal.note(warning));
    let explicit = placements::list_explicit(args, candidates.len(), &topology, terminal)?;
    let placements = match explicit {
        Some(placements) => placements,
        None => list_suitable_placements(
            kernel.as_ref(),
            &workloads[0],
            &topology,
            load_map(&topology).as_ref(),
            machine,
            terminal,
        )?,
    };
    let placements = memory::combine_placements(placements, &args.memory_policies, &topology)?;
    let placements = realise_placements(&placements, &topology, terminal)?;
    memory::check_policies(&placements, machine.is_simulated())?;
    let smaller = what_if::parse_machines(&args.what_if, &topology)?;
    let mut arms = combine_arms(&candidates, &workloads, &placements, args.live.settle);
    groups::add_arms(&mut arms, args, &candidates, &workloads, &topology)?;
    let mut arms = add_interrupt_settings(arms, args, &topology, terminal)?;
    print_bound_variables(args, &arms, terminal);
    arms.extend(what_if::make_arms(&candidates, &workloads, &smaller));
    let mut arms = companions::add_settings(arms, args)?;
    make_unique(&mut arms);
    let baseline = find_baseline(args, &arms)?;
    if args.placebo {
        arms.push(make_placebo(&arms[baseline]));
        make_unique(&mut arms);
    }
    let working_set = match &kernel {
        Some(kernel) => {
            kernel.find_working_set(&topology, load_map(&topology).as_ref(), machine)?
        }
        None => None,
    };
    let are_placed = arms.iter().any(|arm| arm.place.cpus != arms[0].place.cpus);
    let map = are_placed.then(|| load_map(&topology)).flatten();
    Ok(ComparePlan {
        with_cpu: args.metric.is_none() && metric.is_wall() && are_builds(&arms),
        is_survey: !args.companions.companions.is_empty(),
        companions: companions::parse_metrics(args)?,
        known: working_set
            .into_iter()
            .chain(what_if::describe(&smaller, &topology))
            .chain(map.as_ref().and_then(maps::find_moving))
            .chain(interrupts::describe_moved(&arms))
            .chain(groups::describe(args, &arms, &topology))
            .collect(),
        placebo: args.placebo.then(|| arms.len() - 1),
        arms,
        baseline,
        unit: find_recipe_unit(args, recipe),
        metric,
        tuning,
        spent_before: machine.now().saturating_sub(began),
        seed,
        output,
        tags: args.experiment.results.tags.clone(),
        ..begin_plan()
    })
}

/// Output that is checked is kept.
fn choose_output(
    args: &CompareArgs,
    workloads: &[Workload],
    metric: &Metric,
) -> anyhow::Result<Output> {
    match workloads.iter().any(|workload| workload.expect.is_some()) {
        true => Ok(Output::Keep),
        false => parse_output(&args.experiment.workload.output, metric),
    }
}

/// Counts the program's threads and chooses placements that suit it.
fn list_suitable_placements(
    kernel: Option<&kernel::KernelRequest>,
    workload: &Workload,
    topology: &Topology,
    known: Option<&TopologyRecord>,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Placement>> {
    let (threads, words) = match kernel {
        Some(kernel) => {
            let threads = kernel.threads();
            (threads, format!("runs {}", count(threads, "thread")))
        }
        None => measure_busy_threads(workload, topology, machine)?,
    };
    print_threads(&words, terminal);
    Ok(choose_placements(threads, topology, known, terminal))
}

/// The commands to compare, and how each is run.
fn list_workloads(
    args: &CompareArgs,
    recipe: Option<&ReadyRecipe>,
    kernel: Option<&kernel::KernelRequest>,
    terminal: &Terminal,
) -> anyhow::Result<(Vec<Candidate>, Vec<Workload>)> {
    let options = &args.experiment.workload;
    if let Some(recipe) = recipe {
        let workloads = recipe.workloads.iter();
        return workloads
            .map(|(chosen, workload)| {
                let candidate = Candidate {
                    name: chosen.label.clone(),
                    command: workload.command.clone(),
                    options: options.for_command(0, 1, &chosen.choice())?,
                };
                let workload = add_options(workload, &candidate.options)?;
                Ok((candidate, workload))
            })
            .collect();
    }
    let candidates = match kernel {
        Some(kernel) => kernel.list_candidates(options)?,
        None => list_candidates(args, terminal)?,
    };
    let workloads = candidates
        .iter()
        .map(|candidate| build_workload(&candidate.command, &candidate.options))
        .collect::<anyhow::Result<_>>()?;
    Ok((candidates, workloads))
}

/// Resolves `compare --self`: one command in one placement under several labels.
pub(super) fn plan_self_comparison(
    args: &CompareArgs,
    seed: u64,
    machine: &mut dyn CommandRunner,
    terminal: &Terminal,
) -> anyhow::Result<ComparePlan> {
    let metric: Metric = args
        .metric
        .as_deref()
        .unwrap_or("wall")
        .parse()
        .context("--metric")?;
    if !(2..=26).contains(&args.arms) {
        bail!("--arms {}: write a number from 2 to 26", args.arms);
    }
    let output = parse_output(&args.experiment.workload.output, &metric)?;
    let candidate = make_single_candidate(&args.experiment, terminal)?;
    let place = match args.places.as_slice() {
        [] => "os-default",
        [place] => place,
        [_, second, ..] => bail!("--place {second}: --self uses one placement; give --place once"),
    };
    let placement: Placement = place.parse().context("--place")?;
    let (topology, _) = machine.topology()?;
    let place = placement.realise(&topology).context("--place")?;
    let workload = build_workload(&candidate.command, &candidate.options)?;
    let binding = Binding::for_place(&place, None);
    let arms: Vec<ArmPlan> = ('A'..='Z')
        .take(args.arms)
        .map(|label| ArmPlan {
            name: label.to_string(),
            workload: bound::add_missing_variables(&workload, binding.as_ref()),
            place: place.clone(),
            same_as: Vec::new(),
            is_default: label == 'A',
            binding: binding.clone(),
            settings: Vec::new(),
        })
        .collect();
    Ok(ComparePlan {
        arms,
        metric,
        tuning: compare_tuning(args),
        seed,
        output,
        study: ComparisonStudy::Noise,
        tags: args.experiment.results.tags.clone(),
        ..begin_plan()
    })
}

/// A plan with only an id and a start time.
fn begin_plan() -> ComparePlan {
    let (id, started) = new_id_and_start();
    ComparePlan {
        id,
        started,
        ..ComparePlan::default()
    }
}

/// The id of a record that begins now, and its start time.
pub(super) fn new_id_and_start() -> (String, String) {
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

/// The tuning of `compare`, with its limits, perhaps open-ended.
pub(super) fn compare_tuning(args: &CompareArgs) -> Tuning {
    let effort = &args.experiment.effort;
    let tuning = Tuning {
        limit: args.fail_if_slower,
        requires_verdict: args.require_verdict,
        ..to_tuning(effort)
    };
    if args.open_ended {
        return Tuning {
            budget: effort.budget,
            is_open_ended: true,
            ..tuning
        };
    }
    tuning
}

pub(super) fn to_tuning(effort: &EffortArgs) -> Tuning {
    let defaults = Tuning::default();
    let default_budget = effort
        .max_runs
        .is_none()
        .then(|| Duration::from_secs(DEFAULT_BUDGET_S));
    Tuning {
        min_effect: effort.min_effect,
        precision: effort.precision,
        budget: effort.budget.or(default_budget),
        max_runs: effort.max_runs,
        warmup: effort.warmup,
        judge: effort.judge,
        score: match effort.score {
            ScoreChoice::Weighted => Score::Weighted,
            ScoreChoice::Rank => Score::Rank,
        },
        ..defaults
    }
}

fn parse_placements(names: &[String]) -> anyhow::Result<Vec<Placement>> {
    names
        .iter()
        .map(|name| name.parse().context("--place"))
        .collect()
}

/// The placements of a running service: those of `--place`, or a few that fit; for `--irq` alone,
/// its present one.
pub(super) fn list_live_placements(
    args: &CompareArgs,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Merged>> {
    let placements: Vec<Placement> = match args.places.as_slice() {
        [] if !args.interrupts.irqs.is_empty() => vec![Placement::os_default()],
        [] => default_placements(topology, None),
        names => names
            .iter()
            .map(|name| name.parse().context("--place"))
            .collect::<anyhow::Result<_>>()?,
    };
    if let Some(placement) = placements
        .iter()
        .find(|placement| placement.memory.is_some())
    {
        bail!(
            "--place {placement}: compare cannot move memory of a running service; leave out /mem="
        );
    }
    realise_placements(&placements, topology, terminal)
}

fn print_threads(words: &str, terminal: &Terminal) {
    terminal.note(&format!(
        "The program {words}; trying the placements that suit it."
    ));
}

/// Placements that suit this many threads, chosen with the map that was measured since this machine
/// booted, if there is one.
fn choose_placements(
    threads: usize,
    topology: &Topology,
    known: Option<&TopologyRecord>,
    terminal: &Terminal,
) -> Vec<Placement> {
    let threads = Some(threads);
    let Some(known) = known else {
        return default_placements(topology, threads);
    };
    let advice = advise_placements(topology, threads, known);
    for note in &advice.notes {
        terminal.note(note);
    }
    advice.placements
}

/// Realises placements on this machine; those with the same CPUs and memory are merged, with a
/// note.
fn realise_placements(
    placements: &[Placement],
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Merged>> {
    let realised: Vec<Realised> = placements
        .iter()
        .map(|placement| placement.realise(topology).context("--place"))
        .collect::<anyhow::Result<_>>()?;
    let merged = merge_equivalent(realised);
    for Merged {
        placement: first,
        also_named: others,
    } in merged.iter().filter(|one| !one.also_named.is_empty())
    {
        terminal.note(&format!(
            "{} {} for the same {} as {} here: merged.",
            others.join(", "),
            if others.len() == 1 { "stands" } else { "stand" },
            first.resource_noun(),
            first.placement
        ));
    }
    Ok(merged)
}

/// Makes an arm of every command in every placement.
fn combine_arms(
    candidates: &[Candidate],
    workloads: &[Workload],
    places: &[Merged],
    settle: Option<Duration>,
) -> Vec<ArmPlan> {
    let mut arms: Vec<ArmPlan> = Vec::new();
    for (candidate, workload) in candidates.iter().zip(workloads) {
        for Merged {
            placement: place,
            also_named: same_as,
        } in places
        {
            let placement = place.placement.to_string();
            let name = match (&candidate.name, candidates.len(), places.len()) {
                (Some(name), 2.., 1) => name.clone(),
                (Some(name), 2.., _) => format!("{name} @ {placement}"),
                _ => placement,
            };
            let binding = Binding::for_place(place, settle);
            arms.push(ArmPlan {
                name,
                workload: bound::add_missing_variables(workload, binding.as_ref()),
                is_default: candidates.len() == 1 && place.placement == Placement::os_default(),
                binding,
                settings: Vec::new(),
                place: place.clone(),
                same_as: same_as.clone(),
            });
        }
    }
    make_unique(&mut arms);
    arms
}

/// Prints the environment variables added for bound arms.
fn print_bound_variables(args: &CompareArgs, arms: &[ArmPlan], terminal: &Terminal) {
    if args.experiment.workload.threads_env.is_some() {
        return;
    }
    let first = arms
        .iter()
        .find_map(|arm| Some((arm, arm.binding.as_ref()?)));
    let Some((arm, binding)) = first else { return };
    let threads = binding.order.len();
    let mut added = thread_variables(threads);
    added.retain(|variable| arm.workload.environment.contains(variable));
    bound::print_variables(&added, terminal);
}

/// Renames the second arm of a name to `NAME (2)`, or to the next number that is free.
pub(super) fn make_unique(arms: &mut [ArmPlan]) {
    for index in 1..arms.len() {
        let mut number = 2;
        let stem = arms[index].name.clone();
        while arms[..index].iter().any(|arm| arm.name == arms[index].name) {
            arms[index].name = format!("{stem} ({number})");
            number += 1;
        }
    }
}

pub(super) fn find_baseline(args: &CompareArgs, arms: &[ArmPlan]) -> anyhow::Result<usize> {
    let Some(wanted) = &placements::wanted_baseline(args) else {
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

pub(super) fn make_placebo(baseline: &ArmPlan) -> ArmPlan {
    ArmPlan {
        name: "placebo".to_owned(),
        same_as: Vec::new(),
        is_default: false,
        ..baseline.clone()
    }
}
