//! Finds where several programs that share a machine should run, in few rounds.
//!
//! A round runs all programs together and gives a figure of each (`rounds`). Some rounds teach a
//! model of every program what it loses to the others (`model`); blocks of the leader and its most
//! promising challengers follow, and of their neighbours (`engine`). The winner is then compared with no placement in fresh
//! rounds by [`compare`], whose record it is: the search claims nothing itself.
//! The joint cost is the weighted geometric mean of the programs' costs.

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

/// A search that can be carried out.
#[derive(Debug, Clone)]
pub struct JointSearch {
    /// The programs: two to six.
    pub programs: Vec<JointProgram>,
    /// The words before the text of a round that make a command which carries it out.
    pub runner: Vec<String>,
    /// Most rounds, those that confirm included.
    pub max_rounds: usize,
    /// Most pairs of rounds that confirm the winner.
    pub pairs: usize,
    /// Time for everything.
    pub budget: Option<Duration>,
    /// Smallest improvement of interest, as a share.
    pub min_effect: f64,
    /// A round that takes longer fails.
    pub timeout: Option<Duration>,
    /// Seed of the order of rounds.
    pub seed: u64,
    /// Name under which the record is stored.
    pub id: String,
    /// The arguments that it was made from; empty if no command line was.
    pub argv: Vec<String>,
    /// When it begins, RFC 3339.
    pub started: String,
    /// Labels of the user's.
    pub tags: Vec<String>,
    /// What an interrupted search has left.
    pub past: PastRounds,
}

/// Rounds of an interrupted search. Whatever it chose is chosen again, for the same seed and
/// figures, and is not run again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PastRounds {
    /// The placements that it ran, with their figures.
    pub tried: Vec<JointTrialRecord>,
    /// How long it took.
    pub spent: Duration,
}

/// Rounds that a search needs at least, beside those that confirm.
const FEWEST_ROUNDS: usize = 12;
/// Fewer pairs allow no verdict.
const FEWEST_PAIRS: usize = 6;

impl JointSearch {
    fn check(&self) -> Result<(), StudyError> {
        let bad = |text: String| Err(StudyError::Plan(text));
        if self.pairs < FEWEST_PAIRS {
            return bad(format!(
                "--confirm {}: a verdict takes at least {FEWEST_PAIRS} pairs of rounds",
                self.pairs
            ));
        }
        let least = FEWEST_ROUNDS + 2 * self.pairs;
        if self.max_rounds < least {
            return bad(format!(
                "--max-runs {}: a joint plan takes at least {least} rounds, {} of which confirm",
                self.max_rounds,
                2 * self.pairs
            ));
        }
        if !(self.min_effect > 0.0 && self.min_effect < 1.0) {
            return bad("--min-effect must lie between 0 and 100 %".to_owned());
        }
        Ok(())
    }

    /// The programs' shares of the joint cost.
    pub(crate) fn weights(&self) -> Vec<f64> {
        let all: f64 = self.programs.iter().map(|program| program.weight).sum();
        let of = |program: &JointProgram| program.weight / all;
        self.programs.iter().map(of).collect()
    }

    fn error(&self, failure: rounds::Failure) -> StudyError {
        let program = &self.programs[failure.program.min(self.programs.len() - 1)];
        StudyError::Program {
            position: program.position,
            name: program.name.clone(),
            reason: failure.reason,
        }
    }
}

/// Searches, and confirms what was found.
///
/// # Errors
/// [`StudyError`] if the plan is refused, a program fails beside the others without any placement,
/// or the user interrupts before the first plan has run; later, the record has what was learnt.
pub fn run(
    search: &JointSearch,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<Comparison, StudyError> {
    search.check()?;
    let (topology, _) = machine.topology()?;
    let places = places::plans(&topology, search.programs.len());
    if places.len() < 2 {
        let reason = "nothing to search: this process may use one CPU only";
        return Err(StudyError::Plan(reason.to_owned()));
    }
    let begun = machine.now();
    let mut rounds = Rounds::new(search, &topology, machine);
    let found = engine::search(&mut rounds, places, &topology, &mut |rounds, place| {
        let space = Space::from_topology(&topology);
        let arm = name(search, place, &topology, &space);
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
    let spent = rounds.now().saturating_sub(begun) + search.past.spent;
    let plan = confirmation(search, &rounds, &found, &topology, spent)?;
    rounds.confirm();
    let mut record = match found.is_interrupted {
        true => compare::record_interrupted(&plan, &mut rounds, observer),
        false => compare::run(&plan, &mut rounds, observer),
    }?;
    conclusion::conclude(&mut record, search, &found, &rounds, &topology);
    Ok(record)
}

/// The name of a plan: what each program has.
fn name(search: &JointSearch, place: &Place, topology: &Topology, space: &Space) -> String {
    if place.iter().all(|cpus| *cpus == topology.allowed) {
        return Placement::os_default().to_string();
    }
    let each = search.programs.iter().zip(place).map(|(program, cpus)| {
        let placement = places::placement(cpus, topology, space);
        format!("{} on {placement}", program.name)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// What was found against no placement.
fn confirmation(
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
            name: name(search, place, topology, &space),
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
