//! Runs a search: warm-up, profiling, blocks of the leader and its challengers, moves of one
//! thread, confirmation.
//!
//! The runs so far and the seed alone decide what runs next, so that a resumed search can replay
//! its earlier runs.

use std::time::Duration;

use super::candidates::{candidates, extremes};
use super::choice::{
    DEFAULT, Matters, Rule, beats_default, farthest_unmeasured, matters, next_block, next_survey,
    standing, unmeasured_block,
};
use super::features::{UnitMap, no_arms, usual_mean};
use super::past::Past;
use super::state::{ERROR, Engine, HEAVY_TAILS, Halt, TAIL};
use super::{Candidate, Observer, SearchPlan, assemble};
use crate::error::StudyError;
use pinwise_machine::CommandRunner;
use pinwise_placement::space::Space;
use pinwise_record::{
    ProgressPoint, SearchArm, SearchRecord, SearchRun, SearchStep, SpaceRecord, Stopped,
};
use pinwise_stats::surrogate::{Belief, Surrogate, informative, interval};
use pinwise_topology::Topology;

/// Runs that profile the program, `os-default` among them.
const PROFILING: usize = 6;
/// Runs of the leader before it may win.
const MIN_RUNS: usize = 2;
/// Runs of `os-default` before it may win: if the scheduler places threads by luck, a third of the
/// runs may be far slower, and eight miss that with 4 %.
const MIN_RUNS_OF_DEFAULT: usize = 8;
/// Share of a time budget reserved for the confirmation.
const FOR_CONFIRMATION: f64 = 0.35;
/// Blocks that show whether placement matters at all, at most.
const MAX_SURVEYS: usize = 8;
/// The indifference zone follows the noise: it is at least this many standard deviations of a run
/// of bound threads, but at most a share because of that. Smaller differences take dozens of runs
/// of each arm to see.
const ZONE_OF_NOISE: f64 = 0.5;
const MAX_ZONE_OF_NOISE: f64 = 0.03;
/// Carries a plan out.
pub(super) fn carry_out(
    plan: &SearchPlan,
    past: Option<&SearchRecord>,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<SearchRecord, StudyError> {
    plan.check()?;
    let (topology, _) = machine.topology()?;
    let space = Space::from_topology(&topology);
    let unit_map = UnitMap::new(&topology);
    let arms = candidates(plan, &topology, &space)?;
    if arms.len() < 2 {
        return Err(StudyError::Plan(plan.nothing_to_search(&topology)));
    }
    let mut engine = Engine::new(plan, past, machine, observer, &topology, &space, &unit_map);
    for candidate in arms {
        engine.add(candidate, None);
    }
    let opening = engine.record(None);
    engine.observer.begin(&opening);
    let stopped = match engine.go() {
        Ok(()) => Stopped::Precision,
        Err(Halt::Stopped(stopped)) => stopped,
        Err(Halt::Error(error)) => return Err(error),
    };
    Ok(engine.record(Some(stopped)))
}

impl<'a> Engine<'a> {
    fn new(
        plan: &'a SearchPlan,
        past: Option<&SearchRecord>,
        machine: &'a mut dyn CommandRunner,
        observer: &'a mut dyn Observer,
        topology: &'a Topology,
        space: &'a Space,
        unit_map: &'a UnitMap<'a>,
    ) -> Self {
        Self {
            past: Past::from_record(past, machine.is_simulated()),
            started: machine.now(),
            model: Surrogate::new(no_arms()),
            plan,
            machine,
            observer,
            topology,
            space,
            unit_map,
            arms: Vec::new(),
            refined_from: Vec::new(),
            invalid: Vec::new(),
            first_predictions: Vec::new(),
            readings: Vec::new(),
            fresh: Vec::new(),
            runs: Vec::new(),
            blocks: 0,
            belief: None,
            standing: None,
            progress: Vec::new(),
            pairs: None,
            others: None,
            proposal: None,
            is_settled: false,
            has_tried_farthest: false,
            dropped: Vec::new(),
            counts: counts(plan, space),
        }
    }

    /// A new arm, perhaps made by moving a thread of another; its number.
    pub(super) fn add(&mut self, candidate: Candidate, from: Option<usize>) -> usize {
        let threads = candidate.threads;
        let features = if self.arms.is_empty() {
            self.unit_map.features_of_default(threads)
        } else {
            self.unit_map
                .features(&candidate.place.cpus, threads, false)
        };
        self.arms.push(candidate);
        self.refined_from.push(from);
        self.invalid.push(None);
        self.first_predictions.push(None);
        self.model.add(features, usual_mean(threads))
    }

    pub(super) fn features(&self, arm: usize) -> &[f64] {
        &self.model.arms().features[arm]
    }

    /// Time since the search began, including that before an interruption.
    pub(super) fn elapsed(&self) -> Duration {
        let now = self.machine.now().saturating_sub(self.started);
        now.max(self.past.reached()) + self.past.before()
    }

    fn go(&mut self) -> Result<(), Halt> {
        for _ in 0..self.plan.warmup {
            self.run_block(SearchStep::Warmup, &[DEFAULT])?;
        }
        self.run_profile()?;
        match self.settle() {
            Ok(()) => {
                self.is_settled = true;
                self.refine()?;
                // New results may have changed the leader.
                let again = self.settle();
                self.confirm()?;
                self.try_other_cpus()?;
                self.confirm_least()?;
                match again {
                    Err(Halt::Stopped(Stopped::Runs | Stopped::Budget)) | Ok(()) => Ok(()),
                    Err(halt) => Err(halt),
                }
            }
            // Out of budget: the leader is still worth a comparison.
            Err(Halt::Stopped(stopped)) if stopped != Stopped::Interrupted => {
                self.confirm()?;
                Err(Halt::Stopped(stopped))
            }
            Err(halt) => Err(halt),
        }
    }

    /// The runs that show most about what the program is sensitive to.
    fn run_profile(&mut self) -> Result<(), Halt> {
        let count = PROFILING.min(self.arms.len());
        let open = |arm: usize| self.invalid[arm].is_none();
        let mut first = vec![DEFAULT];
        first.extend(extremes(&self.arms));
        let chosen = informative(self.model.arms(), &first, count, &open);
        let limit = self.plan.max_runs.unwrap_or(usize::MAX);
        let chosen: Vec<usize> = chosen.into_iter().take(limit).collect();
        self.run_block(SearchStep::Profiling, &chosen)?;
        self.think();
        self.note();
        Ok(())
    }

    /// Runs blocks until hardly any arm can beat the leader, and once the shape that is least like
    /// those that ran: the one the model knows least about. If the leader is `os-default`, some
    /// more show whether placement matters at all.
    fn settle(&mut self) -> Result<(), Halt> {
        let mut surveys = 0;
        loop {
            let Some((belief, standing)) = self.belief.as_ref().zip(self.standing.as_ref()) else {
                return Err(Halt::Stopped(Stopped::Failed));
            };
            let runs = self.runs_of_arms();
            let leader = standing.leader;
            // Blocks made for other reasons also contain runs of `os-default`: those that it still
            // lacks come last.
            let is_tried = leader == DEFAULT || runs[leader] >= MIN_RUNS;
            let is_lacking = leader == DEFAULT && runs[DEFAULT] < MIN_RUNS_OF_DEFAULT;
            let is_open_whether = || {
                let open = self.open();
                let matters = matters(belief, &open, &self.rule());
                surveys < MAX_SURVEYS && leader == DEFAULT && matters == Matters::Unknown
            };
            let unmeasured = unmeasured_block(belief, standing, &runs, &self.open(), &self.rule());
            let block = match (standing.is_settled, is_tried) {
                (true, _) if unmeasured.len() > 1 => unmeasured,
                (true, true) if !self.has_tried_farthest => {
                    self.has_tried_farthest = true;
                    match farthest_unmeasured(self.model.arms(), &runs, &self.open()) {
                        Some(arm) => vec![DEFAULT, arm],
                        None => continue,
                    }
                }
                (true, true) if is_open_whether() => {
                    surveys += 1;
                    next_survey(belief, &self.open())
                }
                (true, true) if is_lacking => vec![DEFAULT],
                (true, true) => return Ok(()),
                (true, false) => vec![DEFAULT, leader],
                (false, _) => next_block(belief, standing, &runs),
            };
            self.afford(block.len())?;
            self.run_block(SearchStep::Search, &block)?;
            self.think();
            self.note();
        }
    }

    /// May this many more runs be made before the confirmation?
    pub(super) fn afford(&self, runs: usize) -> Result<(), Halt> {
        let used = self.runs_used();
        if self.plan.max_runs.is_some_and(|most| used + runs > most) {
            return Err(Halt::Stopped(Stopped::Runs));
        }
        let kept = match self.plan.confirmation_pairs {
            0 => 0.0,
            _ => FOR_CONFIRMATION,
        };
        self.afford_time(runs, 1.0 - kept)
    }

    /// Does the time suffice for this many more runs within a share of the budget?
    pub(super) fn afford_time(&self, runs: usize, share: f64) -> Result<(), Halt> {
        let Some(budget) = self.plan.budget else {
            return Ok(());
        };
        let made = self.runs.len().max(1) as f64;
        let elapsed = self.elapsed().as_secs_f64();
        let needed = elapsed / made * runs as f64;
        if elapsed + needed > budget.as_secs_f64() * share {
            return Err(Halt::Stopped(Stopped::Budget));
        }
        Ok(())
    }

    /// Works out what the runs say.
    pub(super) fn think(&mut self) {
        self.belief = Some(self.model.learn(&self.readings));
        let rule = self.rule();
        let belief = self.belief.as_ref();
        self.standing = belief.map(|belief| standing(belief, &self.open(), &rule));
    }

    /// Does the arm beat `os-default` by more than the indifference zone rather than not, all runs
    /// taken together? The model is asked, not fresh runs alone: if those leave it open, the
    /// earlier runs count as well.
    pub(super) fn still_beats_default(&self, arm: usize) -> bool {
        let mut readings = self.readings.clone();
        readings.extend(&self.fresh);
        let belief = self.model.clone().learn(&readings);
        beats_default(&belief, arm, &self.rule())
    }

    /// The bound arm with most runs: its cost shows the level of this search.
    pub(super) fn anchor(&self) -> usize {
        let runs = self.runs_of_arms();
        let bound = self.open().into_iter().filter(|&arm| arm != DEFAULT);
        bound.max_by_key(|&arm| runs[arm]).unwrap_or(DEFAULT)
    }

    pub(super) fn open(&self) -> Vec<usize> {
        (0..self.arms.len())
            .filter(|&arm| self.invalid[arm].is_none() && !self.dropped.contains(&arm))
            .collect()
    }

    pub(super) fn rule(&self) -> Rule {
        Rule {
            zone: self.zone(),
            error: ERROR,
            widening: self.widening(),
            seed: self.plan.seed,
        }
    }

    /// Indifference zone in ln(cost): `within`, or more if runs vary much.
    pub(super) fn zone(&self) -> f64 {
        let noise = self.belief.as_ref().map_or(0.0, Belief::typical_noise_sd);
        let follows = (ZONE_OF_NOISE * noise).min(MAX_ZONE_OF_NOISE.ln_1p());
        self.plan.within.ln_1p().max(follows)
    }

    /// Factor for variances: more than 1 if first runs of arms missed their predictions by more
    /// than stated. Two that fit are assumed.
    pub(super) fn widening(&self) -> f64 {
        let misses = self.first_predictions.iter().flatten();
        let squares: Vec<f64> = misses.map(|f| ((f.y - f.mean) / f.sd).powi(2)).collect();
        if squares.len() < 3 {
            return 1.0;
        }
        let mean = (squares.iter().sum::<f64>() + 2.0) / (squares.len() as f64 + 2.0);
        mean.max(1.0)
    }

    /// Keeps who leads now.
    pub(super) fn note(&mut self) {
        let Some((belief, standing)) = self.belief.as_ref().zip(self.standing.as_ref()) else {
            return;
        };
        let expected = belief.arm(standing.leader);
        let (low, high) = interval(
            &belief.law(standing.leader),
            TAIL,
            HEAVY_TAILS * self.widening(),
        );
        self.progress.push(ProgressPoint {
            runs: self.runs_used(),
            leader: self.arms[standing.leader].name.clone(),
            predicted: expected.mean.exp(),
            low: low.exp(),
            high: high.exp(),
            probability_of_better: standing.probability_of_better(),
            expected_loss: standing.loss.expected.exp_m1(),
            true_regret: None,
        });
    }

    /// Runs of profiling, search and refinement.
    pub(super) fn runs_used(&self) -> usize {
        let is_counted = |run: &&SearchRun| run.step.is_search();
        self.runs.iter().filter(is_counted).count()
    }

    /// Runs of each arm that count.
    pub(super) fn runs_of_arms(&self) -> Vec<usize> {
        let mut runs = vec![0; self.arms.len()];
        for reading in &self.readings {
            runs[reading.arm] += 1;
        }
        runs
    }

    /// ln(cost) of the runs of an arm that count.
    pub(super) fn readings_of(&self, arm: usize) -> Vec<f64> {
        let of_arm = self.readings.iter().filter(|reading| reading.arm == arm);
        of_arm.map(|reading| reading.y).collect()
    }

    pub(super) fn record(&self, stopped: Option<Stopped>) -> SearchRecord {
        assemble::record(self, stopped)
    }

    pub(super) fn arm_records(&self) -> Vec<SearchArm> {
        (0..self.arms.len())
            .map(|arm| assemble::arm(self, arm))
            .collect()
    }
}

/// Number of placements of each number of threads: big numbers, and worked out once.
fn counts(plan: &SearchPlan, space: &Space) -> Vec<SpaceRecord> {
    let threads = plan.threads.iter();
    threads
        .map(|&threads| SpaceRecord {
            threads,
            placements: space.count(threads).to_string(),
            shapes: space.shapes(threads).len(),
        })
        .collect()
}
