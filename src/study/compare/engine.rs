//! Carries a plan out: warm-up, screening, confirmation.
//!
//! The engine decides order and stopping; it judges nothing itself. A block is
//! kept whole or dropped whole, whatever interrupts it.

use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::assemble;
use super::budget::Budget;
use super::outcome::{self, ArmState, Moment, RunFailure};
use super::plan::{Plan, PlanError};
use super::{Observer, Progress};
use crate::machine::{Machine, MachineError, Request};
use crate::record::{Comparison, Phase, RunRecord, Stopped};
use crate::stats::Responses;
use crate::stats::confirm::{Confirmation, Look};
use crate::stats::describe::quantile;
use crate::stats::diagnose::projected_half_width;
use crate::stats::halving::{self, ScreeningRun};
use crate::stats::sequential::{first_look, next_look};
use crate::stats::verdict::duration;

/// Largest environment padding, bytes: one page, over which the stack's
/// alignment repeats.
const PADDING: usize = 4096;
/// A first block this much slower than the second was still warming up.
const WARMUP_EXCESS: f64 = 1.05;
/// From so many blocks on the final precision can be foretold.
const PROJECT_FROM: usize = 20;
/// With so many blocks thrown away for throttling and none kept, give up.
const THROTTLED_LIMIT: usize = 10;

/// Why a comparison has no record.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The plan makes no sense.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A run could not even be started.
    #[error(transparent)]
    Machine(#[from] MachineError),
}

/// Carries out a plan.
///
/// # Errors
/// [`CompareError`] where the plan is refused or a command cannot be started
/// at all. Failing and interrupted experiments are no errors: the record says
/// so.
pub fn run(
    plan: &Plan,
    machine: &mut dyn Machine,
    observer: &mut dyn Observer,
) -> Result<Comparison, CompareError> {
    plan.check()?;
    let (topology, _) = machine.topology()?;
    let mut record = assemble::opening(plan, machine, &topology);
    observer.begin(&record);
    let mut engine = Engine::new(plan, machine, observer);
    let stopped = engine.carry_out()?;
    let elapsed = engine.machine.now().saturating_sub(engine.started);
    let results = engine.into_results(stopped, elapsed);
    assemble::close(&mut record, plan, results);
    observer.end(&record);
    Ok(record)
}

/// What the engine hands to the assembly of the record.
pub(super) struct Results {
    pub(super) arms: Vec<ArmState>,
    /// Arms of the columns of `data` and of the look.
    pub(super) columns: Vec<usize>,
    pub(super) data: Responses,
    /// Slot of each column, per block.
    pub(super) positions: Vec<Vec<usize>>,
    pub(super) look: Option<Look>,
    pub(super) confirmation_time: Duration,
    pub(super) screened: usize,
    pub(super) warmup_blocks: usize,
    pub(super) throttled_blocks: usize,
    pub(super) stopped: Stopped,
    pub(super) elapsed: Duration,
}

struct Engine<'a> {
    plan: &'a Plan,
    machine: &'a mut dyn Machine,
    observer: &'a mut dyn Observer,
    order: ChaCha8Rng,
    started: Duration,
    budget: Budget,
    arms: Vec<ArmState>,
    columns: Vec<usize>,
    data: Responses,
    positions: Vec<Vec<usize>>,
    look: Option<Look>,
    confirmation_started: Duration,
    confirmation_ended: Duration,
    screened: usize,
    warmup_blocks: usize,
    throttled_blocks: usize,
    names: Vec<String>,
    /// What the user has not been told yet.
    failures: Vec<String>,
}

/// A block that is over.
enum Block {
    /// Costs by arm and the slot of each, all runs well.
    Whole(Vec<Option<f64>>, Vec<usize>),
    /// An arm failed or was throttled: nothing of the block counts.
    Dropped,
    /// The user stopped it.
    Interrupted,
}

impl<'a> Engine<'a> {
    fn new(plan: &'a Plan, machine: &'a mut dyn Machine, observer: &'a mut dyn Observer) -> Self {
        let started = machine.now();
        Self {
            order: ChaCha8Rng::seed_from_u64(plan.seed),
            budget: Budget::new(&plan.tuning, plan.arms.len(), started),
            arms: vec![ArmState::default(); plan.arms.len()],
            columns: (0..plan.arms.len()).collect(),
            data: Responses::default(),
            positions: Vec::new(),
            look: None,
            confirmation_started: started,
            confirmation_ended: started,
            screened: 0,
            warmup_blocks: 0,
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
            columns: self.columns,
            data: self.data,
            positions: self.positions,
            look: self.look,
            confirmation_time,
            screened: self.screened,
            warmup_blocks: self.warmup_blocks,
            throttled_blocks: self.throttled_blocks,
            stopped,
            elapsed,
        }
    }

    fn carry_out(&mut self) -> Result<Stopped, CompareError> {
        if let Some(stopped) = self.warm_up()? {
            return Ok(stopped);
        }
        if self.open_arms().len() >= halving::FROM_ARMS
            && let Some(stopped) = self.screen()?
        {
            return Ok(stopped);
        }
        self.confirm()
    }

    /// Arms that are still in, the baseline among them.
    fn open_arms(&self) -> Vec<usize> {
        (0..self.arms.len())
            .filter(|&arm| self.arms[arm].is_open())
            .collect()
    }

    /// Too few arms to go on, or the one all are compared with is gone.
    fn has_failed(&self) -> bool {
        self.open_arms().len() < 2 || !self.arms[self.plan.baseline].is_open()
    }

    /// Runs and throws away whole blocks: one, and a second where the first
    /// was slower by more than 5 %. The decision sees only whole blocks.
    fn warm_up(&mut self) -> Result<Option<Stopped>, CompareError> {
        let wanted = self.plan.tuning.warmup;
        let mut first_median = None;
        while self.warmup_blocks < wanted.unwrap_or(2) {
            let open = self.open_arms();
            let block = self.warmup_blocks;
            match self.block(&open, Phase::Warmup, block)? {
                Block::Interrupted => return Ok(Some(Stopped::Interrupted)),
                Block::Dropped if self.has_failed() => return Ok(Some(Stopped::Failed)),
                Block::Dropped => {}
                Block::Whole(costs, _) => {
                    let costs: Vec<f64> = costs.into_iter().flatten().collect();
                    let median = quantile(&costs, 0.5);
                    let is_warm = first_median.is_some_and(|first| first <= median * WARMUP_EXCESS);
                    first_median.get_or_insert(median);
                    if wanted.is_none() && (is_warm || self.is_short_of_time()) {
                        self.warmup_blocks += 1;
                        break;
                    }
                }
            }
            self.warmup_blocks += 1;
        }
        Ok(None)
    }

    /// Would a second warm-up block cost a good part of the experiment?
    fn is_short_of_time(&self) -> bool {
        let now = self.machine.now();
        self.budget.blocks_left(self.open_arms().len(), now) < PROJECT_FROM
    }

    /// Sequential halving down to the finalists.
    fn screen(&mut self) -> Result<Option<Stopped>, CompareError> {
        let baseline = self.plan.baseline;
        let mut challengers = self.challengers();
        self.screened = challengers.len() + 1;
        let mut runs_so_far: Vec<ScreeningRun> = Vec::new();
        let mut blocks_done = 0;
        let begun = self.budget.fraction(self.machine.now());
        let planned_end = begun + halving::BUDGET_SHARE * (1.0 - begun);
        let rounds = halving::rounds(challengers.len());
        for round in 0..rounds.len() {
            let runs_ahead = rounds[round..].iter().map(|arms| arms + 1).sum();
            let blocks = self.screening_blocks(planned_end, runs_ahead);
            for _ in 0..blocks {
                let mut open = challengers.clone();
                open.push(baseline);
                open.sort_unstable();
                match self.block(&open, Phase::Screening, blocks_done)? {
                    Block::Interrupted => return Ok(Some(Stopped::Interrupted)),
                    Block::Dropped if self.has_failed() => return Ok(Some(Stopped::Failed)),
                    Block::Dropped => challengers.retain(|&arm| self.arms[arm].is_open()),
                    Block::Whole(costs, slots) => {
                        blocks_done += 1;
                        let at = runs_so_far.len();
                        runs_so_far.extend(open.iter().map(|_| (0, 0.0)));
                        for &arm in &open {
                            let response = costs[arm].map_or(f64::NAN, f64::ln);
                            runs_so_far[at + slots[arm]] = (arm, response);
                        }
                    }
                }
            }
            let kept = halving::select(&runs_so_far, &challengers);
            for &arm in challengers.iter().filter(|arm| !kept.contains(arm)) {
                self.arms[arm].eliminated = true;
            }
            challengers = kept;
        }
        Ok(None)
    }

    /// Blocks for each of the rounds ahead, which take `runs_ahead` runs if
    /// each has one block.
    fn screening_blocks(&self, planned_end: f64, runs_ahead: usize) -> usize {
        let now = self.machine.now();
        let used = self.budget.fraction(now);
        let share = ((planned_end - used) / (1.0 - used).max(1e-9)).max(0.0);
        self.budget
            .blocks_in_share(share, runs_ahead, now)
            .max(halving::LEAST_BLOCKS)
    }

    fn challengers(&self) -> Vec<usize> {
        let baseline = self.plan.baseline;
        let open = self.open_arms().into_iter();
        open.filter(|&arm| arm != baseline).collect()
    }

    /// Fresh blocks of the finalists until settled or out of budget.
    fn confirm(&mut self) -> Result<Stopped, CompareError> {
        let mut run = self.start_confirmation();
        loop {
            let open = self.columns.clone();
            let runs = open.len();
            let now = self.machine.now();
            let n = self.data.blocks();
            if self.budget.blocks_left(runs, now) == 0 && (n > 0 || self.throttled_blocks > 0) {
                self.look_again(&mut run, 1.0);
                return Ok(self.out_of_budget(runs));
            }
            match self.block(&open, Phase::Confirmation, n)? {
                Block::Interrupted => {
                    let left = self.budget.blocks_left(runs, now);
                    self.look_again(&mut run, n as f64 / n.saturating_add(left).max(1) as f64);
                    return Ok(Stopped::Interrupted);
                }
                Block::Dropped if self.has_failed() => return Ok(Stopped::Failed),
                Block::Dropped => {
                    run = self.without_failed_arms(run);
                    if self.throttled_blocks >= THROTTLED_LIMIT && self.data.blocks() == 0 {
                        return Ok(Stopped::Budget);
                    }
                }
                Block::Whole(costs, slots) => {
                    if self.take(&costs, slots, &mut run) {
                        return Ok(Stopped::Precision);
                    }
                }
            }
        }
    }

    fn start_confirmation(&mut self) -> ConfirmationRun {
        self.columns = self.open_arms();
        self.data = Responses::new(self.columns.len());
        self.confirmation_started = self.machine.now();
        self.name_columns();
        let baseline = self
            .columns
            .iter()
            .position(|&arm| arm == self.plan.baseline);
        let tuning = &self.plan.tuning;
        ConfirmationRun {
            statistics: Confirmation::new(
                self.columns.len(),
                baseline.unwrap_or(0),
                tuning.alpha,
                tuning.min_effect.ln_1p(),
                tuning.score,
            ),
            next_look: None,
            looked_at: 0,
            has_projected: false,
        }
    }

    /// Goes on with the arms that are left; what their whole blocks told is
    /// kept.
    fn without_failed_arms(&mut self, mut run: ConfirmationRun) -> ConfirmationRun {
        let kept: Vec<usize> = (0..self.columns.len())
            .filter(|&column| self.arms[self.columns[column]].is_open())
            .collect();
        if kept.len() == self.columns.len() {
            return run;
        }
        let mut data = Responses::new(kept.len());
        for row in self.data.rows() {
            let part: Vec<f64> = kept.iter().map(|&column| row[column]).collect();
            data.push(&part);
        }
        for slots in &mut self.positions {
            *slots = kept.iter().map(|&column| slots[column]).collect();
        }
        self.data = data;
        self.columns = kept.iter().map(|&column| self.columns[column]).collect();
        self.name_columns();
        self.look = None;
        run.looked_at = 0;
        run.statistics = run.statistics.with_columns(&kept);
        run
    }

    fn name_columns(&mut self) {
        let name = |&arm: &usize| self.plan.arms[arm].name.clone();
        self.names = self.columns.iter().map(name).collect();
    }

    /// Adds a whole block and looks if it is time; true when settled.
    fn take(
        &mut self,
        costs: &[Option<f64>],
        slots: Vec<usize>,
        run: &mut ConfirmationRun,
    ) -> bool {
        let row: Vec<f64> = self
            .columns
            .iter()
            .filter_map(|&arm| costs[arm].map(f64::ln))
            .collect();
        if !self.data.push(&row) {
            return false;
        }
        self.positions
            .push(self.columns.iter().map(|&arm| slots[arm]).collect());
        self.confirmation_ended = self.machine.now();
        let n = self.data.blocks();
        let left = self
            .budget
            .blocks_left(self.columns.len(), self.machine.now());
        let n_max = n.saturating_add(left);
        let alpha = self.plan.tuning.alpha / (self.columns.len() - 1).max(1) as f64;
        let next = *run
            .next_look
            .get_or_insert_with(|| first_look(n_max, alpha));
        if n < next.min(n_max) {
            return false;
        }
        run.next_look = Some(next_look(n, n_max));
        self.look_again(run, n as f64 / n_max as f64);
        if n >= PROJECT_FROM && !run.has_projected && n < n_max {
            run.has_projected = true;
            self.warn_if_hopeless(n, n_max);
        }
        self.is_settled()
    }

    fn look_again(&mut self, run: &mut ConfirmationRun, t: f64) {
        let n = self.data.blocks();
        if n > run.looked_at {
            run.looked_at = n;
            self.look = Some(run.statistics.look(&self.data, t));
        }
    }

    fn is_settled(&self) -> bool {
        let Some(look) = &self.look else { return false };
        match self.plan.tuning.precision {
            None => look.is_settled,
            Some(precision) => look
                .contrasts
                .iter()
                .all(|c| c.interval.half_width() <= precision.ln_1p()),
        }
    }

    /// Too noisy for the budget? Say so as soon as it can be told.
    fn warn_if_hopeless(&mut self, n: usize, n_max: usize) {
        let Some(look) = &self.look else { return };
        let now = look
            .contrasts
            .iter()
            .filter(|c| c.decision == crate::stats::confirm::Decision::Undecided)
            .map(|c| c.interval.half_width())
            .fold(0.0, f64::max);
        let at_end = projected_half_width(now, n, n_max);
        let wanted = self
            .plan
            .tuning
            .precision
            .unwrap_or(self.plan.tuning.min_effect);
        if at_end <= wanted.ln_1p() || !at_end.is_finite() {
            return;
        }
        let factor = (at_end / wanted.ln_1p()).powi(2);
        let spent = self
            .confirmation_ended
            .saturating_sub(self.confirmation_started);
        let needed = spent.mul_f64((factor * n_max as f64 / n as f64).min(1e9));
        self.observer.warn(&format!(
            "Too noisy for this budget: at its end intervals will be about ±{:.1} %; ±{:.1} % takes about {}. A wider --min-effect or a longer --budget helps.",
            100.0 * at_end.exp_m1(),
            100.0 * wanted,
            duration(needed)
        ));
    }

    fn out_of_budget(&self, runs: usize) -> Stopped {
        if self.budget.ends_by_runs(runs, self.machine.now()) {
            Stopped::Runs
        } else {
            Stopped::Budget
        }
    }

    /// Every open arm once, in random order.
    fn block(&mut self, open: &[usize], phase: Phase, block: usize) -> Result<Block, CompareError> {
        let began = self.machine.now();
        let mut order = open.to_vec();
        order.shuffle(&mut self.order);
        let mut costs = vec![None; self.arms.len()];
        let mut slots = vec![0; self.arms.len()];
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
            let run = match self.one_run(arm, moment) {
                Ok(run) => run,
                Err(CompareError::Machine(MachineError::Interrupted)) => {
                    self.drop_block(finished);
                    return Ok(Block::Interrupted);
                }
                Err(error) => return Err(error),
            };
            costs[arm] = run.metric.cost;
            slots[arm] = slot;
            throttled |= run.throttled.is_some_and(|times| times > 0);
            is_whole &= run.metric.cost.is_some();
            finished.push((arm, run));
        }
        self.tell_failures();
        let duration = self.machine.now().saturating_sub(began);
        self.budget
            .spend(open.len(), duration, phase == Phase::Warmup);
        if throttled && phase != Phase::Warmup {
            self.throttled_blocks += 1;
            is_whole = false;
        }
        if !is_whole {
            self.drop_block(finished);
            return Ok(Block::Dropped);
        }
        for (arm, run) in finished {
            self.arms[arm].keep(run);
        }
        Ok(Block::Whole(costs, slots))
    }

    fn drop_block(&mut self, runs: Vec<(usize, RunRecord)>) {
        for (arm, mut run) in runs {
            run.phase = Phase::Dropped;
            self.arms[arm].keep(run);
        }
    }

    fn one_run(&mut self, arm: usize, mut moment: Moment) -> Result<RunRecord, CompareError> {
        let plan = &self.plan.arms[arm];
        if let Some(prepare) = &plan.workload.prepare {
            self.machine.run_helper("prepare", prepare)?;
        }
        moment.at = self.machine.now().saturating_sub(self.started);
        let request = Request {
            workload: &plan.workload,
            cpus: &plan.place.cpus,
            memory: plan.place.memory.as_ref(),
            output: outcome::output_of(&self.plan.output, &plan.name, moment.phase, moment.block),
            environment_padding: self.order.random_range(0..PADDING),
            count_threads_closely: false,
        };
        let run = self.machine.run(&request)?;
        if let Some(cleanup) = &plan.workload.cleanup {
            self.machine.run_helper("cleanup", cleanup)?;
        }
        let (record, failure) = outcome::record(&run, self.plan, plan, moment);
        if let Some(failure) = failure {
            self.fail(arm, failure);
        }
        self.observer.run(arm, &record);
        Ok(record)
    }

    fn fail(&mut self, arm: usize, failure: RunFailure) {
        let name = &self.plan.arms[arm].name;
        self.failures.push(format!("{name}: {failure}"));
        self.arms[arm].invalid = Some(failure.to_string());
    }

    /// Tells at once which arms failed, unless that ends the experiment: then
    /// the verdict says it.
    fn tell_failures(&mut self) {
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
            fraction: self.budget.fraction(now),
            blocks: block,
            arm: &self.plan.arms[arm].name,
            left_s: self.budget.seconds_left(now),
            look: self.look.as_ref(),
            names: &self.names,
        };
        self.observer.progress(&progress);
    }
}

/// State of one confirmation.
struct ConfirmationRun {
    statistics: Confirmation,
    next_look: Option<usize>,
    looked_at: usize,
    has_projected: bool,
}
