//! Runs a search: warm-up, profiling, blocks of the leader and its challengers, moves of one
//! thread, confirmation.
//!
//! What runs next depends only on the runs so far and the seed, so that a resumed search can replay
//! its earlier runs.

use std::time::Duration;

use super::candidates::{find_extremes, list_candidates};
use super::choice::{
    DEFAULT, Relevance, Rule, beats_default, find_farthest_unmeasured, judge_arms, judge_relevance,
    next_block, next_survey, unmeasured_block,
};
use super::features::{UnitMap, expected_mean, no_arms};
use super::pairs::Pairs;
use super::past::Past;
use super::state::{ERROR, Engine, HEAVY_TAILS, Halt, TAIL};
use super::{Candidate, Observer, SearchPlan, assemble};
use crate::error::StudyError;
use pinwise_machine::CommandRunner;
use pinwise_placement::space::Space;
use pinwise_record::{
    ProgressPoint, SearchArm, SearchRecord, SearchRun, SearchStep, SpaceRecord, Stopped,
};
use pinwise_stats::surrogate::{Belief, Surrogate, choose_informative, interval};
use pinwise_topology::Topology;

/// Number of runs that profile the program, `os-default` among them.
const PROFILING_RUNS: usize = 6;
/// Runs of the leader before it may win.
const MIN_RUNS: usize = 2;
/// Runs of `os-default` before it may win: if the scheduler places threads at random, a third of the
/// runs may be far slower, and eight runs miss that with 4 %.
const MIN_RUNS_OF_DEFAULT: usize = 8;
/// Share of a time budget reserved for the confirmation.
const CONFIRMATION_SHARE: f64 = 0.35;
/// Maximum number of blocks to learn whether placement matters at all.
const MAX_SURVEYS: usize = 8;
/// The indifference zone grows with the noise to this many standard deviations of a run of bound
/// threads, since smaller differences take dozens of runs of each arm to see …
const ZONE_PER_NOISE: f64 = 0.5;
/// … but to no more than this, relative.
const MAX_NOISE_ZONE: f64 = 0.03;
/// Runs a search.
pub(super) fn run_search(
    plan: &SearchPlan,
    past: Option<&SearchRecord>,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<SearchRecord, StudyError> {
    plan.check()?;
    let (topology, _) = machine.topology()?;
    let space = Space::from_topology(&topology);
    let unit_map = UnitMap::new(&topology);
    let arms = list_candidates(plan, &topology, &space)?;
    if arms.len() < 2 {
        return Err(StudyError::Plan(plan.explain_nothing_to_search(&topology)));
    }
    let mut engine = Engine::new(plan, past, machine, observer, &topology, &space, &unit_map);
    for candidate in arms {
        engine.add(candidate, None);
    }
    let record = engine.record(None);
    engine.observer.begin(&record);
    let stopped = match engine.run_steps() {
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
            counts: count_placements(plan, space),
        }
    }

    /// Adds an arm, and returns its index. `from`: the arm of which it is a move of one thread.
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
        self.model.add(features, expected_mean(threads))
    }

    pub(super) fn features(&self, arm: usize) -> &[f64] {
        &self.model.arms().features[arm]
    }

    /// Time since the search began, with the time before an interruption.
    pub(super) fn elapsed(&self) -> Duration {
        let now = self.machine.now().saturating_sub(self.started);
        now.max(self.past.replayed_until()) + self.past.time_spent()
    }

    fn run_steps(&mut self) -> Result<(), Halt> {
        for _ in 0..self.plan.warmup {
            self.run_block(SearchStep::Warmup, &[DEFAULT])?;
        }
        self.run_profile()?;
        match self.run_until_settled() {
            Ok(()) => {
                self.is_settled = true;
                self.refine()?;
                // Moves may have changed the leader.
                let again = self.run_until_settled();
                self.confirm()?;
                self.try_other_cpus()?;
                self.confirm_least()?;
                match again {
                    Err(Halt::Stopped(Stopped::Runs | Stopped::Budget)) | Ok(()) => Ok(()),
                    Err(halt) => Err(halt),
                }
            }
            // The budget for the search is used up; that of the confirmation remains.
            Err(Halt::Stopped(stopped)) if stopped != Stopped::Interrupted => {
                self.confirm()?;
                Err(Halt::Stopped(stopped))
            }
            Err(halt) => Err(halt),
        }
    }

    /// Runs the arms that show most about what the program is sensitive to.
    fn run_profile(&mut self) -> Result<(), Halt> {
        let count = PROFILING_RUNS.min(self.arms.len());
        let is_valid = |arm: usize| self.invalid[arm].is_none();
        let mut first = vec![DEFAULT];
        first.extend(find_extremes(&self.arms));
        let chosen = choose_informative(self.model.arms(), &first, count, &is_valid);
        let limit = self.plan.max_runs.unwrap_or(usize::MAX);
        let chosen: Vec<usize> = chosen.into_iter().take(limit).collect();
        self.run_block(SearchStep::Profiling, &chosen)?;
        self.update_belief();
        self.note_progress();
        Ok(())
    }

    /// Runs blocks until hardly any arm can beat the leader. Then, once, runs the shape that is least
    /// like those that ran, about which the model knows least. If `os-default` leads, further blocks
    /// show whether placement matters at all.
    fn run_until_settled(&mut self) -> Result<(), Halt> {
        let mut surveys = 0;
        loop {
            let Some((belief, standing)) = self.belief.as_ref().zip(self.standing.as_ref()) else {
                return Err(Halt::Stopped(Stopped::Failed));
            };
            let runs = self.runs_of_arms();
            let leader = standing.leader;
            let has_enough_runs = leader == DEFAULT || runs[leader] >= MIN_RUNS;
            // Checked last: all other blocks run `os-default`, too.
            let needs_default = leader == DEFAULT && runs[DEFAULT] < MIN_RUNS_OF_DEFAULT;
            let needs_survey = || {
                let relevance = judge_relevance(belief, &self.open_arms(), &self.rule());
                surveys < MAX_SURVEYS && leader == DEFAULT && relevance == Relevance::Unknown
            };
            let unmeasured =
                unmeasured_block(belief, standing, &runs, &self.open_arms(), &self.rule());
            let block = match (standing.is_settled, has_enough_runs) {
                (true, _) if unmeasured.len() > 1 => unmeasured,
                (true, true) if !self.has_tried_farthest => {
                    self.has_tried_farthest = true;
                    match find_farthest_unmeasured(self.model.arms(), &runs, &self.open_arms()) {
                        Some(arm) => vec![DEFAULT, arm],
                        None => continue,
                    }
                }
                (true, true) if needs_survey() => {
                    surveys += 1;
                    next_survey(belief, &self.open_arms())
                }
                (true, true) if needs_default => vec![DEFAULT],
                (true, true) => return Ok(()),
                (true, false) => vec![DEFAULT, leader],
                (false, _) => next_block(belief, standing, &runs),
            };
            self.check_runs_left(block.len())?;
            self.run_block(SearchStep::Search, &block)?;
            self.update_belief();
            self.note_progress();
        }
    }

    /// Checks that the budget allows this many more runs before the confirmation.
    pub(super) fn check_runs_left(&self, runs: usize) -> Result<(), Halt> {
        let used = self.runs_used();
        if self.plan.max_runs.is_some_and(|most| used + runs > most) {
            return Err(Halt::Stopped(Stopped::Runs));
        }
        let reserved = match self.plan.confirmation_pairs {
            0 => 0.0,
            _ => CONFIRMATION_SHARE,
        };
        self.check_time_left(runs, 1.0 - reserved)
    }

    /// Checks that this many more runs fit into this share of the time budget.
    pub(super) fn check_time_left(&self, runs: usize, share: f64) -> Result<(), Halt> {
        let Some(budget) = self.plan.budget else {
            return Ok(());
        };
        let runs_done = self.runs.len().max(1) as f64;
        let elapsed = self.elapsed().as_secs_f64();
        let needed = elapsed / runs_done * runs as f64;
        if elapsed + needed > budget.as_secs_f64() * share {
            return Err(Halt::Stopped(Stopped::Budget));
        }
        Ok(())
    }

    /// Learns from all runs and judges the arms again.
    pub(super) fn update_belief(&mut self) {
        self.belief = Some(self.model.learn(&self.readings));
        let rule = self.rule();
        let belief = self.belief.as_ref();
        self.standing = belief.map(|belief| judge_arms(belief, &self.open_arms(), &rule));
    }

    /// Does the arm more probably than not beat `os-default` by more than the indifference zone, by
    /// all runs together? Used if the fresh runs alone are inconclusive.
    pub(super) fn still_beats_default(&self, arm: usize) -> bool {
        let mut readings = self.readings.clone();
        readings.extend(&self.fresh);
        let belief = self.model.clone().learn(&readings);
        beats_default(&belief, arm, &self.rule())
    }

    /// The cost of the arm divided by that of `os-default`: as measured in fresh pairs, or else as
    /// expected by the model.
    pub(super) fn ratio_to_default(&self, arm: usize) -> Option<f64> {
        let pairs = [self.pairs.as_ref(), self.pairs_with_default()].into_iter();
        let measured = pairs
            .flatten()
            .find(|pairs| pairs.arm == arm && pairs.count() > 0);
        let difference = measured.map(Pairs::estimate);
        let difference = difference.or_else(|| self.expected_difference(arm))?;
        Some(difference.exp())
    }

    /// Difference of the arm from `os-default` in ln(cost), as expected by the model.
    pub(super) fn expected_difference(&self, arm: usize) -> Option<f64> {
        let belief = self.belief.as_ref()?;
        Some(belief.arm(arm).mean - belief.arm(DEFAULT).mean)
    }

    /// The bound arm with most runs, whose cost shows the machine's speed during this search.
    pub(super) fn anchor(&self) -> usize {
        let runs = self.runs_of_arms();
        let bound = self.open_arms().into_iter().filter(|&arm| arm != DEFAULT);
        bound.max_by_key(|&arm| runs[arm]).unwrap_or(DEFAULT)
    }

    /// Arms that may still lead.
    pub(super) fn open_arms(&self) -> Vec<usize> {
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

    /// Indifference zone in ln(cost): the smallest effect of interest, or more if runs vary much.
    pub(super) fn zone(&self) -> f64 {
        let noise = self.belief.as_ref().map_or(0.0, Belief::typical_noise_sd);
        let noise_zone = (ZONE_PER_NOISE * noise).min(MAX_NOISE_ZONE.ln_1p());
        self.plan.min_effect.ln_1p().max(noise_zone)
    }

    /// Factor by which to widen variances: more than 1 if the first runs of arms missed their
    /// predictions by more than the predicted deviation. Two accurate predictions are assumed beside.
    pub(super) fn widening(&self) -> f64 {
        let predictions = self.first_predictions.iter().flatten();
        let squares: Vec<f64> = predictions
            .map(|f| ((f.y - f.mean) / f.sd).powi(2))
            .collect();
        if squares.len() < 3 {
            return 1.0;
        }
        let mean = (squares.iter().sum::<f64>() + 2.0) / (squares.len() as f64 + 2.0);
        mean.max(1.0)
    }

    /// Adds the current leader to the progress.
    pub(super) fn note_progress(&mut self) {
        let Some((belief, standing)) = self.belief.as_ref().zip(self.standing.as_ref()) else {
            return;
        };
        let expected = belief.arm(standing.leader);
        let (low, high) = interval(
            &belief.distribution(standing.leader),
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

    /// Number of runs of profiling, search and refinement.
    pub(super) fn runs_used(&self) -> usize {
        let is_counted = |run: &&SearchRun| run.step.is_search();
        self.runs.iter().filter(is_counted).count()
    }

    /// By arm: number of runs that count.
    pub(super) fn runs_of_arms(&self) -> Vec<usize> {
        let mut runs = vec![0; self.arms.len()];
        for reading in &self.readings {
            runs[reading.arm] += 1;
        }
        runs
    }

    /// ln(cost) of those runs of an arm that count.
    pub(super) fn readings_of(&self, arm: usize) -> Vec<f64> {
        let of_arm = self.readings.iter().filter(|reading| reading.arm == arm);
        of_arm.map(|reading| reading.y).collect()
    }

    pub(super) fn record(&self, stopped: Option<Stopped>) -> SearchRecord {
        assemble::write_record(self, stopped)
    }

    pub(super) fn arm_records(&self) -> Vec<SearchArm> {
        (0..self.arms.len())
            .map(|arm| assemble::arm_record(self, arm))
            .collect()
    }
}

/// Counts the placements of each number of threads; called once, since that takes time.
fn count_placements(plan: &SearchPlan, space: &Space) -> Vec<SpaceRecord> {
    let threads = plan.threads.iter();
    threads
        .map(|&threads| SpaceRecord {
            threads,
            placements: space.count(threads).to_string(),
            shapes: space.shapes(threads).len(),
        })
        .collect()
}
