//! From arguments to a plan: commands, placements and parameters become arms.

mod candidates;
mod companions;
mod figure;
mod groups;
mod host;
mod interrupts;
mod kernel;
mod memory;
mod surroundings;
mod usual;
mod what_if;

use std::time::Duration;

use anyhow::{Context, bail};

use super::args::{CompareArgs, EffortArgs, ScoreChoice};
use super::recipes::Ready;
use super::terminal::Terminal;
use super::{bound, maps};
use candidates::{Candidate, candidates, command_of};
use figure::{are_builds, metric, unit};
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
use surroundings::with_options;

pub(super) use candidates::{is_program, one_command, parse_line, warn_of_shell_syntax};
pub(super) use host::{interrupt_ledger, ledger, own_options};
pub(super) use interrupts::{
    add_interrupt_settings, find_moved as find_moved_interrupts, together as interrupts_together,
};
pub(super) use surroundings::{measure_busy_threads, output, workload};

/// Default time budget; with a maximum of runs per arm, time is unlimited.
const DEFAULT_BUDGET_S: u64 = 60;

/// The seed to use: the one given, or a new one.
pub(super) fn choose_seed(effort: &EffortArgs) -> u64 {
    seed_or_new(effort.seed)
}

/// A seed that was given, or a new one.
pub(super) fn seed_or_new(given: Option<u64>) -> u64 {
    // Seeds are printed and typed again: nine digits are enough.
    given.unwrap_or_else(|| random_seed() % 1_000_000_000)
}

/// Resolves `compare`'s arguments.
pub(super) fn compare(
    args: &CompareArgs,
    seed: u64,
    recipe: Option<&Ready>,
    machine: &mut dyn CommandRunner,
    known: impl Fn(&Topology) -> Option<TopologyRecord>,
    terminal: &Terminal,
) -> anyhow::Result<ComparePlan> {
    let began = machine.now();
    let kernel = kernel::parse_kernel(args, !machine.is_simulated())?;
    let metric = metric(args, recipe, kernel.is_some())?;
    let (candidates, mut workloads) = what_runs(args, recipe, kernel.as_ref(), terminal)?;
    let tuning = tuning_of(args);
    for workload in &mut workloads {
        // A run that takes the whole budget can be compared with nothing.
        workload.timeout = workload.timeout.or(tuning.budget);
    }
    let output = match workloads.iter().any(|w| w.expect.is_some()) {
        true => Output::Keep,
        false => output(&args.experiment.workload.output, &metric)?,
    };
    let (topology, warnings) = machine.topology()?;
    for warning in warnings {
        terminal.note(&warning);
    }
    let wanted = match usual::wanted_places(args, candidates.len(), &topology, terminal)? {
        Some(wanted) => wanted,
        None => suitable_placements(
            kernel.as_ref(),
            &workloads[0],
            &topology,
            known(&topology).as_ref(),
            machine,
            terminal,
        )?,
    };
    let wanted = memory::combine_placements(wanted, &args.memory_policies, &topology)?;
    let placements = realise_placements(&wanted, &topology, terminal)?;
    memory::check(&placements, machine.is_simulated())?;
    let smaller = what_if::smaller(&args.what_if, &topology)?;
    let mut arms = arms(&candidates, &workloads, &placements, args.live.settle);
    groups::add_arms(&mut arms, args, &candidates, &workloads, &topology)?;
    let mut arms = add_interrupt_settings(arms, args, &topology, terminal)?;
    print_bound(args, &arms, terminal);
    arms.extend(what_if::arms(&candidates, &workloads, &smaller));
    let mut arms = companions::add_settings(arms, args)?;
    make_unique(&mut arms);
    let baseline = baseline(args, &arms)?;
    if args.placebo {
        arms.push(placebo(&arms[baseline]));
        make_unique(&mut arms);
    }
    let found = match &kernel {
        Some(kernel) => kernel.look(&topology, known(&topology).as_ref(), machine)?,
        None => None,
    };
    let are_placed = arms.iter().any(|arm| arm.place.cpus != arms[0].place.cpus);
    let map = known(&topology).filter(|_| are_placed);
    let moving = map.as_ref().and_then(maps::find_moving);
    Ok(ComparePlan {
        with_cpu: args.metric.is_none() && metric.is_wall() && are_builds(&arms),
        is_survey: !args.companions.companions.is_empty(),
        companions: companions::metrics(args)?,
        known: found
            .into_iter()
            .chain(what_if::caution(&smaller, &topology))
            .chain(moving)
            .chain(interrupts::find_moved(&arms))
            .chain(groups::describe(args, &arms, &topology))
            .collect(),
        placebo: args.placebo.then(|| arms.len() - 1),
        arms,
        baseline,
        unit: unit(args, recipe),
        metric,
        tuning,
        spent_before: machine.now().saturating_sub(began),
        seed,
        output,
        tags: args.experiment.results.tags.clone(),
        ..begin_plan()
    })
}

/// The placements that suit the program, whose threads are counted.
fn suitable_placements(
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
    Ok(chosen_placements(threads, topology, known, terminal))
}

/// The commands to compare, with their surroundings.
fn what_runs(
    args: &CompareArgs,
    recipe: Option<&Ready>,
    kernel: Option<&kernel::KernelRequest>,
    terminal: &Terminal,
) -> anyhow::Result<(Vec<Candidate>, Vec<Workload>)> {
    let options = &args.experiment.workload;
    if let Some(recipe) = recipe {
        let all = recipe.workloads.iter();
        return all
            .map(|(chosen, workload)| {
                let candidate = Candidate {
                    name: chosen.label.clone(),
                    command: workload.command.clone(),
                    options: options.for_command(0, 1, &chosen.choice())?,
                };
                let workload = with_options(workload, &candidate.options)?;
                Ok((candidate, workload))
            })
            .collect();
    }
    let candidates = match kernel {
        Some(kernel) => kernel.candidates(options)?,
        None => candidates(args, terminal)?,
    };
    let workloads = candidates
        .iter()
        .map(|candidate| workload(&candidate.command, &candidate.options))
        .collect::<anyhow::Result<_>>()?;
    Ok((candidates, workloads))
}

/// Resolves `compare --self`: one command at one place under several labels.
pub(super) fn with_itself(
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
    let output = output(&args.experiment.workload.output, &metric)?;
    let candidate = command_of(&args.experiment, terminal)?;
    let place = match args.places.as_slice() {
        [] => "os-default",
        [place] => place,
        [_, second, ..] => bail!("--place {second}: --self uses one placement; give --place once"),
    };
    let placement: Placement = place.parse().context("--place")?;
    let (topology, _) = machine.topology()?;
    let place = placement.realise(&topology).context("--place")?;
    let workload = workload(&candidate.command, &candidate.options)?;
    let binding = Binding::for_place(&place, None);
    let arms: Vec<ArmPlan> = ('A'..='Z')
        .take(args.arms)
        .map(|label| ArmPlan {
            name: label.to_string(),
            workload: bound::workload(&workload, binding.as_ref()),
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
        tuning: tuning_of(args),
        seed,
        output,
        study: ComparisonStudy::Noise,
        tags: args.experiment.results.tags.clone(),
        ..begin_plan()
    })
}

/// A plan with a name and the time, and nothing else yet.
fn begin_plan() -> ComparePlan {
    let (id, started) = new_id_and_start();
    ComparePlan {
        id,
        started,
        ..ComparePlan::default()
    }
}

/// The name of a record that begins now, and when that is.
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

/// As [`tuning`], and perhaps without an end.
pub(super) fn tuning_of(args: &CompareArgs) -> Tuning {
    let effort = &args.experiment.effort;
    let tuning = Tuning {
        limit: args.fail_if_slower,
        requires_verdict: args.require_verdict,
        ..tuning(effort)
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

pub(super) fn tuning(effort: &EffortArgs) -> Tuning {
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

/// The placements of a running service: those named, beside its present one, or a few that fit; if
/// interrupts are compared, its present one.
pub(super) fn live_places(
    args: &CompareArgs,
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Merged>> {
    let wanted: Vec<Placement> = match args.places.as_slice() {
        [] if !args.interrupts.irqs.is_empty() => vec![Placement::os_default()],
        [] => default_placements(topology, None),
        names => names
            .iter()
            .map(|name| name.parse().context("--place"))
            .collect::<anyhow::Result<_>>()?,
    };
    if let Some(placement) = wanted.iter().find(|placement| placement.memory.is_some()) {
        bail!(
            "--place {placement}: compare cannot move memory of a running service; leave out /mem="
        );
    }
    realise_placements(&wanted, topology, terminal)
}

fn print_threads(what: &str, terminal: &Terminal) {
    terminal.note(&format!(
        "The program {what}; trying the placements that suit it."
    ));
}

/// The placements that suit this many threads, in the light of what was measured
/// of this machine since it booted.
fn chosen_placements(
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

/// Placements as CPUs of this machine; those with the same CPUs and memory are merged, with a note.
fn realise_placements(
    wanted: &[Placement],
    topology: &Topology,
    terminal: &Terminal,
) -> anyhow::Result<Vec<Merged>> {
    let realised: Vec<Realised> = wanted
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

/// Every command at every place.
fn arms(
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
                workload: bound::workload(workload, binding.as_ref()),
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
fn print_bound(args: &CompareArgs, arms: &[ArmPlan], terminal: &Terminal) {
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

/// The second of a name becomes `NAME (2)`, unless that is taken as well.
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

pub(super) fn baseline(args: &CompareArgs, arms: &[ArmPlan]) -> anyhow::Result<usize> {
    let Some(wanted) = &usual::wanted_baseline(args) else {
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

pub(super) fn placebo(baseline: &ArmPlan) -> ArmPlan {
    ArmPlan {
        name: "placebo".to_owned(),
        same_as: Vec::new(),
        is_default: false,
        ..baseline.clone()
    }
}
