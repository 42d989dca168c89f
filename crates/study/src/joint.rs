//! Finds where several programs that share a machine should run, in few rounds.
//!
//! A round runs all programs together and gives a figure of each (`rounds`). From the first rounds, a
//! model of every program learns what it loses to the others (`model`); then blocks of the leader
//! and its most promising challengers run, and of plans close to them (`engine`). The winner is
//! compared with no placement in fresh rounds by [`compare`], which writes the record: the search
//! itself claims nothing. The joint cost is the weighted geometric mean of the programs' costs.

mod conclusion;
mod engine;
mod model;
mod places;
mod rounds;

use std::time::Duration;

use crate::compare::{self, ArmPlan, ComparePlan, Observer, Progress, Tuning};
use crate::error::StudyError;
use engine::Found;
use pinwise_machine::{CommandRunner, Host, Output};
use pinwise_placement::Placement;
use pinwise_placement::space::Space;
use pinwise_record::{Comparison, ComparisonStudy, JointTrialRecord};
use pinwise_topology::Topology;
use pinwise_workload::joint::JointProgram;
use places::Place;
use rounds::Rounds;

/// The plan of a search.
#[derive(Debug, Clone)]
pub struct JointSearch {
    /// The programs: two to six.
    pub programs: Vec<JointProgram>,
    /// The command that runs a round, without its last argument: the text of the round.
    pub runner: Vec<String>,
    /// Maximum number of rounds, those that confirm included.
    pub max_rounds: usize,
    /// Maximum number of pairs of rounds that confirm the winner.
    pub pairs: usize,
    /// Time for the search and the confirmation.
    pub budget: Option<Duration>,
    /// Smallest improvement of interest, relative.
    pub min_effect: f64,
    /// A round that takes longer fails.
    pub timeout: Option<Duration>,
    /// Seed of the order of rounds.
    pub seed: u64,
    /// Id of the record.
    pub id: String,
    /// Arguments on the command line; empty if there was none.
    pub argv: Vec<String>,
    /// Start time, RFC 3339.
    pub started: String,
    /// The user's labels.
    pub tags: Vec<String>,
    /// Rounds of the interrupted search that is resumed.
    pub past: PastRounds,
}

/// Rounds of an interrupted search. With the same seed and figures, a resumed search makes the same
/// choices, and takes these figures instead of running the rounds again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastRounds {
    /// The plans that ran, with their figures.
    pub tried: Vec<JointTrialRecord>,
    /// Time that the interrupted search took.
    pub spent: Duration,
}

/// Minimum number of rounds beside those that confirm.
const MIN_ROUNDS: usize = 12;
/// Minimum number of pairs for a verdict.
const MIN_PAIRS: usize = 6;

impl JointSearch {
    fn check(&self) -> Result<(), StudyError> {
        let reject = |text: String| Err(StudyError::Plan(text));
        if self.pairs < MIN_PAIRS {
            return reject(format!(
                "--confirm {}: a verdict takes at least {MIN_PAIRS} pairs of rounds",
                self.pairs
            ));
        }
        let least = MIN_ROUNDS + 2 * self.pairs;
        if self.max_rounds < least {
            return reject(format!(
                "--max-runs {}: a joint plan takes at least {least} rounds, {} of which confirm",
                self.max_rounds,
                2 * self.pairs
            ));
        }
        if !(self.min_effect > 0.0 && self.min_effect < 1.0) {
            return reject("--min-effect must lie between 0 and 100 %".to_owned());
        }
        Ok(())
    }

    /// The programs' shares of the joint cost.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let weights = self.programs.iter().map(|program| program.weight);
        let sum: f64 = weights.clone().sum();
        weights.map(|weight| weight / sum).collect()
    }

    fn explain_failure(&self, failure: rounds::Failure) -> StudyError {
        let program = &self.programs[failure.program.min(self.programs.len() - 1)];
        StudyError::Program {
            position: program.position,
            name: program.name.clone(),
            reason: failure.reason,
        }
    }
}

/// Searches for the best plan and confirms it.
///
/// # Errors
/// [`StudyError`] if the plan is not valid, a program fails beside the others without any placement,
/// or the user interrupts before the first plan has run. After a later interruption, the record has
/// what was learnt.
pub fn run(
    search: &JointSearch,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<Comparison, StudyError> {
    search.check()?;
    let (topology, _) = machine.topology()?;
    let places = places::list_first_plans(&topology, search.programs.len());
    if places.len() < 2 {
        let reason = "nothing to search: this process may use one CPU only";
        return Err(StudyError::Plan(reason.to_owned()));
    }
    let start = machine.now();
    let mut rounds = Rounds::new(search, &topology, machine);
    let found = engine::search(&mut rounds, places, &topology, &mut |rounds, place| {
        let space = Space::from_topology(&topology);
        let arm = name_plan(search, place, &topology, &space);
        observer.progress(&Progress {
            phase: "search",
            fraction: rounds as f64 / search.max_rounds as f64,
            blocks: rounds,
            arm: &arm,
            left_s: f64::INFINITY,
            look: None,
            names: &[],
        });
    })?;
    let spent = rounds.now().saturating_sub(start) + search.past.spent;
    let plan = plan_confirmation(search, &rounds, &found, &topology, spent)?;
    rounds.start_confirmation();
    let mut record = match found.is_interrupted {
        true => compare::record_interrupted(&plan, &mut rounds, observer),
        false => compare::run(&plan, &mut rounds, observer),
    }?;
    conclusion::complete_record(&mut record, search, &found, &rounds, &topology);
    Ok(record)
}

/// The programs that the name of a plan lists; the record has all.
const MAX_NAMED: usize = 2;

/// The name of a plan: the placement of each program that it places, short enough for a label.
fn name_plan(search: &JointSearch, place: &Place, topology: &Topology, space: &Space) -> String {
    let programs = search.programs.iter().zip(place);
    let placed: Vec<_> = programs
        .filter(|(_, cpus)| **cpus != topology.allowed)
        .collect();
    let parts = placed.iter().take(MAX_NAMED).map(|(program, cpus)| {
        let placement = places::describe_cpus(cpus, topology, space);
        format!("{} on {placement}", program.name)
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    match placed.len() {
        0 => Placement::os_default().to_string(),
        all if all > MAX_NAMED => format!("{parts} and {} more", all - MAX_NAMED),
        _ => parts,
    }
}

/// Plans the comparison of the best plan with no placement.
fn plan_confirmation(
    search: &JointSearch,
    rounds: &Rounds<'_>,
    found: &Found,
    topology: &Topology,
    spent: Duration,
) -> Result<ComparePlan, StudyError> {
    let everywhere = Placement::os_default()
        .realise(topology)
        .map_err(|error| StudyError::Plan(error.to_string()))?;
    let space = Space::from_topology(topology);
    let arm = |number: usize| {
        let place = &found.places[number];
        ArmPlan {
            name: name_plan(search, place, topology, &space),
            workload: rounds.workload(place),
            place: everywhere.clone(),
            same_as: Vec::new(),
            is_default: number == 0,
            binding: None,
            settings: Vec::new(),
        }
    };
    Ok(ComparePlan {
        arms: vec![arm(0), arm(found.best)],
        metric: rounds::joint_metric(),
        tuning: Tuning {
            min_effect: search.min_effect,
            budget: search.budget,
            max_runs: Some(search.pairs),
            warmup: Some(0),
            ..Tuning::default()
        },
        spent_before: spent,
        seed: search.seed,
        output: Output::Keep,
        study: ComparisonStudy::Joint,
        id: search.id.clone(),
        argv: search.argv.clone(),
        started: search.started.clone(),
        tags: search.tags.clone(),
        ..ComparePlan::default()
    })
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod worlds;
