//! Runs a plan: warm-up, screening, confirmation.
//!
//! The engine decides the order of runs and when to stop; verdicts are those of `pinwise_stats`. A
//! block counts only if all of its runs succeeded.

mod companions;
mod confirmation;
mod cpu_time;
mod dropping;
mod effort;
mod screening;

use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::assemble;
use super::budget::Budget;
use super::outcome::{self, ArmState, Moment, RunFailure, Trial};
use super::plan::ComparePlan;
use super::results::{DroppedArm, Results};
use super::{Observer, PADDING, Progress};
use crate::error::StudyError;
use crate::load;
use companions::Companions;
use cpu_time::CpuTime;
use pinwise_machine::{CommandRunner, MachineError};
use pinwise_record::{Comparison, Phase, RunRecord, Stopped};
use pinwise_stats::Responses;
use pinwise_stats::caveats::Circumstances;
use pinwise_stats::confirm::{Look, Question};
use pinwise_stats::describe::{mean, quantile};
use pinwise_stats::halving;

/// If the first block was slower than the second by more than this factor, the second was still
/// warming up.
const WARMUP_EXCESS: f64 = 1.05;
/// From this many blocks on the final precision can be predicted.
const PREDICT_FROM_BLOCKS: usize = 20;

/// Runs a plan.
///
/// # Errors
/// [`StudyError`] if the plan is refused or a command cannot be started at all. Failed and
/// interrupted experiments are not errors: the record says so.
pub fn run(
    plan: &ComparePlan,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<Comparison, StudyError> {
    run_and_record(plan, machine, observer, |engine| engine.run_phases())
}

/// The record of a plan that the user stopped before its first run.
pub(crate) fn record_interrupted(
    plan: &ComparePlan,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<Comparison, StudyError> {
    run_and_record(plan, machine, observer, |_| Ok(Stopped::Interrupted))
}

fn run_and_record(
    plan: &ComparePlan,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
    run_engine: impl FnOnce(&mut Engine<'_>) -> Result<Stopped, StudyError>,
) -> Result<Comparison, StudyError> {
    plan.check()?;
    let (topology, _) = machine.topology()?;
    let mut record = assemble::open_record(plan, machine, &topology);
    observer.begin(&record);
    let mut engine = Engine::new(plan, machine, observer);
    let stopped = run_engine(&mut engine)?;
    let elapsed = engine.machine.now().saturating_sub(engine.started);
    let results = engine.into_results(stopped, elapsed);
    assemble::complete_record(&mut record, plan, &topology, results);
    load::name_busiest(&mut record.findings, || machine.busiest());
    load::blame_niceness(&mut record, || machine.busiest());
    observer.end(&record);
    Ok(record)
}

struct Engine<'a> {
    plan: &'a ComparePlan,
    machine: &'a mut dyn CommandRunner,
    observer: &'a mut dyn Observer,
    order: ChaCha8Rng,
    started: Duration,
    budget: Budget,
    arms: Vec<ArmState>,
    companions: Companions,
    /// Arms that are being compared, in the order of the columns of `data`.
    columns: Vec<usize>,
    dropped: Vec<DroppedArm>,
    data: Responses,
    circumstances: Circumstances,
    /// The arm that ran last.
    last_arm: Option<usize>,
    look: Option<Look>,
    /// The question about wall-clock time, with its share of the error rate.
    question: Question,
    /// CPU time, if it is judged as well.
    cpu: Option<CpuTime>,
    confirmation_started: Duration,
    confirmation_ended: Duration,
    screened: usize,
    warmup_blocks: usize,
    /// Median cost of the warm-up block, until the next block has been compared with it.
    warmup_median: Option<f64>,
    /// The block, if the budget allows no more than one.
    only_block: Option<WholeBlock>,
    throttled_blocks: usize,
    names: Vec<String>,
    /// Failures not yet shown to the user.
    failures: Vec<String>,
}

/// A block whose runs all succeeded, by arm.
struct WholeBlock {
    costs: Vec<Option<f64>>,
    slots: Vec<usize>,
    /// The arm that ran right before each.
    before: Vec<Option<usize>>,
    /// CPUs that other programs used meanwhile; `None` if unknown for a run.
    load: Option<f64>,
    /// CPU time, seconds, by arm.
    cpu_s: Vec<Option<f64>>,
    /// CPU time over wall-clock time, the largest of all runs.
    cpu_share: f64,
    /// Threads that ran or waited for a CPU, on average, by arm.
    ready: Vec<Option<f64>>,
}

impl WholeBlock {
    /// Adds what a run of this arm used of the CPUs.
    fn add_cpu_use(&mut self, arm: usize, run: &RunRecord) {
        self.cpu_s[arm] = run.cpu_s().filter(|cpu_s| *cpu_s > 0.0);
        let share = self.cpu_s[arm].map_or(0.0, |cpu_s| cpu_s / run.wall_s);
        self.cpu_share = self.cpu_share.max(share);
        self.ready[arm] = run.ready_threads();
    }
}

/// How a block ended.
enum Block {
    /// All runs succeeded.
    Whole(WholeBlock),
    /// An arm failed, or was throttled though it seldom is: the whole block is discarded.
    Dropped,
    /// The user stopped it.
    Interrupted,
}

impl<'a> Engine<'a> {
    fn new(
        plan: &'a ComparePlan,
        machine: &'a mut dyn CommandRunner,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let started = machine.now().saturating_sub(plan.spent_before);
        Self {
            order: ChaCha8Rng::seed_from_u64(plan.seed),
            budget: Budget::new(&plan.tuning, plan.arms.len(), started),
            arms: vec![ArmState::default(); plan.arms.len()],
            companions: Companions::new(plan.companions.len()),
            columns: (0..plan.arms.len()).collect(),
            dropped: Vec::new(),
            data: Responses::default(),
            circumstances: Circumstances::default(),
            last_arm: None,
            look: None,
            question: plan.question(),
            cpu: plan.judges_cpu_time().then(CpuTime::new),
            confirmation_started: started,
            confirmation_ended: started,
            screened: 0,
            warmup_blocks: 0,
            warmup_median: None,
            only_block: None,
            throttled_blocks: 0,
            names: Vec::new(),
            failures: Vec::new(),
            plan,
            machine,
            observer,
            started,
        }
    }

    fn into_results(self, stopped: Stopped, elapsed: Duration) -> Results {
        let confirmation_time = self
            .confirmation_ended
            .saturating_sub(self.confirmation_started);
        Results {
            arms: self.arms,
            alone: self.companions.alone,
            columns: self.columns,
            dropped: self.dropped,
            data: self.data,
            circumstances: self.circumstances,
            look: self.look,
            question: self.question,
            cpu_look: self.cpu.as_ref().and_then(CpuTime::look).cloned(),
            confirmation_time,
            screened: self.screened,
            warmup_blocks: self.warmup_blocks,
            throttled_blocks: self.throttled_blocks,
            stopped,
            elapsed,
        }
    }

    fn run_phases(&mut self) -> Result<Stopped, StudyError> {
        if let Some(stopped) = self.warm_up()? {
            return Ok(stopped);
        }
        // Screening needs a budget to share out, and leaves arms without a verdict.
        if !self.plan.is_survey
            && self.plan.tuning.limit.is_none()
            && !self.plan.tuning.is_open_ended
            && self.valid_arms().len() >= halving::FROM_ARMS
            && !self.is_spent()
            && let Some(stopped) = self.screen()?
        {
            return Ok(stopped);
        }
        self.confirm()
    }

    /// Arms that have not failed and were not screened out, with the baseline.
    fn valid_arms(&self) -> Vec<usize> {
        (0..self.arms.len())
            .filter(|&arm| self.arms[arm].is_valid())
            .collect()
    }

    /// Too few arms are left, or the baseline has failed.
    fn has_failed(&self) -> bool {
        let least = if self.plan.is_timing { 1 } else { 2 };
        self.valid_arms().len() < least || !self.arms[self.plan.baseline].is_valid()
    }

    /// Runs and discards whole blocks: as many as requested, else one, and a second one if
    /// [`Self::was_warming_up`] says so.
    fn warm_up(&mut self) -> Result<Option<Stopped>, StudyError> {
        let wanted = self.plan.tuning.warmup;
        while self.warmup_blocks < wanted.unwrap_or(1) {
            let open = self.valid_arms();
            let is_spent = self.budget.blocks_left(open.len(), self.machine.now()) == 0;
            if self.warmup_blocks > 0 && is_spent {
                break;
            }
            match self.run_block(&open, Phase::Warmup, self.warmup_blocks)? {
                Block::Interrupted => return Ok(Some(Stopped::Interrupted)),
                Block::Dropped if self.has_failed() => return Ok(Some(Stopped::Failed)),
                Block::Dropped => {}
                Block::Whole(block) if wanted.is_none() => {
                    self.warmup_median = Some(median_of(&block.costs));
                    if self.is_spent() {
                        self.only_block = Some(block);
                        return Ok(None);
                    }
                }
                Block::Whole(_) => {}
            }
            self.warmup_blocks += 1;
        }
        Ok(None)
    }

    /// Counts the warm-up's runs, since the budget allows no further block.
    fn count_warmup(&mut self) {
        for arm in &mut self.arms {
            for mut run in std::mem::take(&mut arm.other_runs) {
                run.phase = Phase::Confirmation;
                arm.keep(run);
            }
        }
    }

    /// Was this block so much faster than the warm-up that the program may still have been warming
    /// up? Medians are over all arms, so that discarding the block favours none.
    fn was_warming_up(&mut self, costs: &[Option<f64>], open: usize) -> bool {
        let Some(first) = self.warmup_median.take() else {
            return false;
        };
        let is_short = self.budget.blocks_left(open, self.machine.now()) < PREDICT_FROM_BLOCKS;
        !is_short && first > median_of(costs) * WARMUP_EXCESS
    }

    /// Runs each of these arms once, in random order.
    fn run_block(
        &mut self,
        open: &[usize],
        phase: Phase,
        block: usize,
    ) -> Result<Block, StudyError> {
        let began = self.machine.now();
        let mut order = open.to_vec();
        order.shuffle(&mut self.order);
        self.draw_turns(open.len(), phase);
        let mut whole = WholeBlock {
            costs: vec![None; self.arms.len()],
            slots: vec![0; self.arms.len()],
            before: vec![None; self.arms.len()],
            load: None,
            cpu_s: vec![None; self.arms.len()],
            cpu_share: 0.0,
            ready: vec![None; self.arms.len()],
        };
        let mut is_whole = true;
        let mut throttled = false;
        let mut finished: Vec<(usize, RunRecord)> = Vec::new();
        for (slot, &arm) in order.iter().enumerate() {
            self.show_progress(phase, block, arm);
            let moment = Moment {
                phase,
                block,
                order: slot,
                block_runs: open.len(),
                at: Duration::ZERO,
            };
            let run = self.run_companions_alone(slot);
            let run = match run.and_then(|()| self.run_arm(arm, moment)) {
                Ok(run) => run,
                Err(StudyError::Machine(MachineError::Interrupted)) => {
                    self.keep_as(Phase::Dropped, finished);
                    return Ok(Block::Interrupted);
                }
                Err(error) => return Err(error),
            };
            if self.last_arm.is_none() && run.metric.cost.is_some() {
                self.warn_if_effort_is_short(self.machine.now().saturating_sub(began));
            }
            whole.costs[arm] = run.metric.cost;
            whole.add_cpu_use(arm, &run);
            whole.slots[arm] = slot;
            whole.before[arm] = self.last_arm.replace(arm);
            throttled |=
                !self.plan.arms[arm].has_own_limit() && self.arms[arm].stops.add(run.throttled);
            is_whole &= run.metric.cost.is_some();
            finished.push((arm, run));
        }
        self.report_failures();
        let is_late_warmup =
            phase != Phase::Warmup && is_whole && self.was_warming_up(&whole.costs, open.len());
        let duration = self.machine.now().saturating_sub(began);
        let is_warmup = is_late_warmup || phase == Phase::Warmup;
        self.budget.spend(open.len(), duration, is_warmup);
        if is_late_warmup {
            self.warmup_blocks += 1;
            self.keep_as(Phase::Warmup, finished);
            return Ok(Block::Dropped);
        }
        if throttled && !is_warmup {
            self.throttled_blocks += 1;
            is_whole = false;
        }
        if !is_whole {
            self.keep_as(Phase::Dropped, finished);
            return Ok(Block::Dropped);
        }
        whole.load = foreign_load(&finished);
        self.companions.keep_block(block);
        for (arm, run) in finished {
            self.arms[arm].keep(run);
        }
        Ok(Block::Whole(whole))
    }

    /// Keeps runs as those of another phase.
    fn keep_as(&mut self, phase: Phase, runs: Vec<(usize, RunRecord)>) {
        for (arm, mut run) in runs {
            run.phase = phase;
            self.arms[arm].keep(run);
        }
    }

    fn run_arm(&mut self, arm: usize, moment: Moment) -> Result<RunRecord, StudyError> {
        let plan = &self.plan.arms[arm];
        let trial = Trial {
            workload: &plan.workload,
            place: &plan.place,
            binding: plan.binding.as_ref(),
            settings: &plan.settings,
            companion: self.plan.companion_metric(plan),
            metric: &self.plan.metric,
            output: outcome::name_output(&self.plan.output, &plan.name, moment.phase, moment.block),
            padding: self.order.random_range(0..PADDING),
        };
        let (record, failure) = trial.run(self.machine, moment, self.started)?;
        self.arms[arm].has_timed_out |= record.timed_out;
        if record.companion.is_some() {
            self.companions.last_run = Duration::from_secs_f64(record.wall_s);
        }
        if let Some(failure) = failure {
            self.note_failure(arm, failure);
        }
        log::debug!(
            "{}, {:?} block {}: {:.6} s",
            plan.name,
            record.phase,
            record.block,
            record.wall_s
        );
        self.observer.run(arm, &record);
        Ok(record)
    }

    fn note_failure(&mut self, arm: usize, failure: RunFailure) {
        let name = &self.plan.arms[arm].name;
        let failure = failure.after(self.arms[arm].run_count());
        self.failures.push(format!("{name}: {failure}"));
        self.arms[arm].invalid = Some(failure.to_string());
    }

    /// Reports which arms failed, unless that ends the experiment: then the verdict says so.
    fn report_failures(&mut self) {
        if !self.has_failed() {
            for failure in std::mem::take(&mut self.failures) {
                self.observer.warn(&failure);
            }
        }
    }

    fn show_progress(&mut self, phase: Phase, block: usize, arm: usize) {
        let now = self.machine.now();
        let progress = Progress {
            phase: match phase {
                Phase::Warmup => "warm-up",
                Phase::Screening => "screening",
                Phase::Confirmation | Phase::Dropped => "confirmation",
            },
            fraction: self.budget.used_share(now),
            blocks: block,
            arm: &self.plan.arms[arm].name,
            left_s: self.budget.seconds_left(now),
            look: self.look.as_ref(),
            names: &self.names,
        };
        self.observer.progress(&progress);
    }
}

/// CPUs that other programs used on average during these runs; `None` if unknown for a run.
fn foreign_load(runs: &[(usize, RunRecord)]) -> Option<f64> {
    let cpus_used = |(_, run): &(usize, RunRecord)| {
        Some(run.foreign_cpu_s? / run.wall_s).filter(|share| share.is_finite())
    };
    let cpus: Vec<f64> = runs.iter().map(cpus_used).collect::<Option<_>>()?;
    Some(mean(&cpus))
}

fn median_of(costs: &[Option<f64>]) -> f64 {
    let costs: Vec<f64> = costs.iter().copied().flatten().collect();
    quantile(&costs, 0.5)
}
