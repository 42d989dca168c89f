//! Confirmation: measures the finalists in fresh blocks, with interim looks on a schedule, until the
//! question is settled or the budget is spent.

use super::super::rivals::{self, Pairing};
use super::super::{advice, timing};
use super::{Block, Engine, PREDICT_FROM_BLOCKS, WholeBlock};
use crate::error::StudyError;
use pinwise_record::{Phase, Stopped};
use pinwise_stats::Responses;
use pinwise_stats::confirm::{Confirmation, Contrast, Decision, Look, Question};
use pinwise_stats::diagnose::projected_half_width;
use pinwise_stats::limit::{self, LimitVerdict};
use pinwise_stats::sequential::{Depth, Schedule};

/// No warning if intervals will end within this many times the requested width.
const WIDTH_TOLERANCE: f64 = 1.2;

/// What a companion costs an arm is measured until its interval is ± this share wide: its sign alone
/// says little.
const COST_PRECISION: f64 = 0.1;

/// State of one confirmation.
pub(super) struct ConfirmationRun {
    pub(super) statistics: Confirmation,
    schedule: Schedule,
    looked_at: usize,
    has_projected: bool,
}

impl Engine<'_> {
    /// Runs fresh blocks of the finalists until the question is settled or the budget is spent.
    pub(super) fn confirm(&mut self) -> Result<Stopped, StudyError> {
        let mut run = self.start_confirmation();
        if let Some(block) = self.only_block.take() {
            self.count_warmup();
            self.confirmation_started = self.started;
            self.add_block(&block, &mut run);
        }
        loop {
            let open = self.columns.clone();
            let runs = open.len();
            let now = self.machine.now();
            let n = self.data.blocks();
            if self.budget.blocks_left(runs, now) == 0 {
                self.look_again(&mut run, n, Depth::Verdicts);
                return Ok(self.stop_reason(runs));
            }
            match self.run_block(&open, Phase::Confirmation, n)? {
                Block::Interrupted => {
                    let left = self.budget.blocks_left(runs, now);
                    self.look_again(&mut run, n.saturating_add(left), Depth::Verdicts);
                    return Ok(Stopped::Interrupted);
                }
                Block::Dropped if self.has_failed() => return Ok(Stopped::Failed),
                Block::Dropped => run = self.continue_without_failed_arms(run),
                Block::Whole(block) => {
                    if self.add_block(&block, &mut run) {
                        return Ok(Stopped::Precision);
                    }
                }
            }
        }
    }

    fn start_confirmation(&mut self) -> ConfirmationRun {
        self.columns = self.valid_arms();
        self.data = Responses::new(self.columns.len());
        self.confirmation_started = self.machine.now();
        self.name_columns();
        let contrasts = rivals::pair_columns(self.plan, &self.columns).pairs.len();
        ConfirmationRun {
            statistics: self.new_confirmation(self.question),
            schedule: self.plan.question().schedule(contrasts),
            looked_at: 0,
            has_projected: false,
        }
    }

    /// The statistics of a confirmation of the current arms.
    pub(super) fn new_confirmation(&self, question: Question) -> Confirmation {
        let Pairing { pairs, rivals } = rivals::pair_columns(self.plan, &self.columns);
        Confirmation::with_pairs(pairs, rivals, question).with_limit(self.plan.tuning.log_limit())
    }

    /// Goes on with the arms that have not failed; their whole blocks stay.
    fn continue_without_failed_arms(&mut self, mut run: ConfirmationRun) -> ConfirmationRun {
        let kept: Vec<usize> = (0..self.columns.len())
            .filter(|&column| self.arms[self.columns[column]].is_valid())
            .collect();
        if kept.len() == self.columns.len() {
            return run;
        }
        self.keep_columns(&kept);
        self.look = None;
        run.looked_at = 0;
        run.statistics.keep_columns(&kept);
        run
    }

    /// Goes on with the columns `kept`, over all whole blocks so far.
    pub(super) fn keep_columns(&mut self, kept: &[usize]) {
        let mut data = Responses::new(kept.len());
        for row in self.data.rows() {
            let part: Vec<f64> = kept.iter().map(|&column| row[column]).collect();
            data.push(&part);
        }
        self.circumstances = self.circumstances.with_columns(kept);
        self.data = data;
        self.columns = kept.iter().map(|&column| self.columns[column]).collect();
        self.name_columns();
    }

    /// The column of the baseline.
    pub(super) fn baseline_column(&self) -> usize {
        let mut columns = self.columns.iter();
        let column = columns.position(|&arm| arm == self.plan.baseline);
        column.unwrap_or(0)
    }

    fn name_columns(&mut self) {
        let name = |&arm: &usize| self.plan.arms[arm].name.clone();
        self.names = self.columns.iter().map(name).collect();
    }

    /// Adds a whole block and looks if a look is due; true if the question is settled.
    fn add_block(&mut self, block: &WholeBlock, run: &mut ConfirmationRun) -> bool {
        let row: Vec<f64> = self
            .columns
            .iter()
            .filter_map(|&arm| block.costs[arm].map(f64::ln))
            .collect();
        if !self.data.push(&row) {
            return false;
        }
        self.add_cpu_time(block);
        self.record_circumstances(block);
        self.confirmation_ended = self.machine.now();
        if self.plan.is_timing {
            return timing::is_settled(&self.data, &self.plan.tuning);
        }
        let n = self.data.blocks();
        let left = self
            .budget
            .blocks_left(self.columns.len(), self.machine.now());
        let n_max = n.saturating_add(left);
        // The final precision is predicted from intervals, which only a full look has.
        let projects = n >= PREDICT_FROM_BLOCKS && !run.has_projected && n < n_max;
        let depth = match run.schedule.next_due(n, n_max) {
            Some(_) if projects => Depth::Verdicts,
            Some(depth) => depth,
            None => return false,
        };
        // A look that only tests for claims has no intervals of the requested width.
        if depth == Depth::Claims && self.wanted_precision().is_some() {
            return false;
        }
        if !self.look_again(run, n_max, depth) {
            return false;
        }
        if projects {
            run.has_projected = true;
            self.warn_if_hopeless(n, n_max);
        }
        if !self.is_settled() {
            self.drop_arms_behind(run);
        }
        self.is_settled()
    }

    fn record_circumstances(&mut self, block: &WholeBlock) {
        let column_of = |arm: usize| self.columns.iter().position(|&column| column == arm);
        let columns = self.columns.iter();
        let before = columns
            .clone()
            .map(|&arm| block.before[arm].and_then(column_of))
            .collect();
        let slots = columns.map(|&arm| block.slots[arm]).collect();
        self.circumstances.slots.push(slots);
        self.circumstances.before.push(before);
        self.circumstances.load.push(block.load);
    }

    /// Takes a look, given that at most `most` blocks will be run; false if none was taken.
    fn look_again(&mut self, run: &mut ConfirmationRun, most: usize, depth: Depth) -> bool {
        let n = self.data.blocks();
        if n <= run.looked_at || self.plan.is_timing {
            return false;
        }
        // A claim about CPU time is shown with the interval of wall-clock time.
        let depth = match self.look_at_cpu_time(run, most, depth) {
            true => Depth::Verdicts,
            false => depth,
        };
        let look = run
            .statistics
            .look(&self.data, &self.circumstances, most as f64, depth);
        let Some(look) = look else { return false };
        run.looked_at = n;
        self.log_look(&look);
        self.look = Some(look);
        true
    }

    fn log_look(&self, look: &Look) {
        let percent = |ln: f64| ln.exp_m1() * 100.0;
        for contrast in &look.contrasts {
            log::info!(
                "look after {} blocks: {} costs {:+.2} % ({:+.2} to {:+.2}): {:?}",
                look.blocks,
                self.plan.arms[self.columns[contrast.arm]].name,
                percent(contrast.estimate),
                percent(contrast.interval.low),
                percent(contrast.interval.high),
                contrast.decision
            );
        }
    }

    fn is_settled(&self) -> bool {
        let Some(look) = &self.look else { return false };
        let tuning = &self.plan.tuning;
        let wanted = self.wanted_precision();
        let is_precise = |contrast: &Contrast| {
            let Some(wanted) = wanted else {
                return true;
            };
            // A verdict that waits for more blocks would be missing.
            contrast.interval.half_width() <= wanted.ln_1p() && !contrast.caveats.is_early
        };
        let is_judged = |contrast: &Contrast| {
            let limit = tuning.log_limit();
            limit.is_none_or(|limit| limit::judge(contrast, limit) != LimitVerdict::Undecided)
        };
        let contrasts = &look.contrasts;
        if !contrasts.iter().all(is_precise) {
            return false;
        }
        self.is_ended_by_cpu_time()
            || contrasts.iter().all(is_judged) && (look.is_settled || !self.asks_which_is_best())
    }

    /// The relative half-width that every interval must reach before the comparison ends.
    fn wanted_precision(&self) -> Option<f64> {
        let mut arms = self.plan.arms.iter();
        let has_companion = arms.any(|arm| arm.companion().is_some());
        let is_of_cost = has_companion && advice::tries_one_arm(self.plan);
        let of_cost = is_of_cost.then_some(COST_PRECISION);
        self.plan.tuning.precision.or(of_cost)
    }

    /// Does the comparison go on until the best arm is known?
    fn asks_which_is_best(&self) -> bool {
        let tuning = &self.plan.tuning;
        let is_asked = tuning.requires_verdict || tuning.limit.is_none();
        is_asked && tuning.precision.is_none()
    }

    /// Warns if the runs are too noisy for the budget. Not with a limit alone: how far the result is
    /// from it is known only at the end.
    fn warn_if_hopeless(&mut self, n: usize, n_max: usize) {
        let has_width = self.plan.tuning.precision.is_some() || self.asks_which_is_best();
        let is_asked = has_width && !self.plan.is_survey;
        let Some(look) = self.look.as_ref().filter(|_| is_asked) else {
            return;
        };
        if self.is_decided_by_cpu_time() {
            return;
        }
        let now = look
            .contrasts
            .iter()
            .filter(|c| c.decision == Decision::Undecided)
            .map(|c| c.interval.half_width())
            .fold(0.0, f64::max);
        let at_end = projected_half_width(now, n, n_max);
        let wanted = self
            .plan
            .tuning
            .precision
            .unwrap_or(self.plan.tuning.min_effect);
        // Slightly wider than requested is not worth a warning.
        if at_end <= WIDTH_TOLERANCE * wanted.ln_1p() || !at_end.is_finite() {
            return;
        }
        self.observer.warn(&format!(
            "Too noisy for this budget: intervals will end at about ±{:.1} %, not ±{:.1} %. A larger --min-effect or {} helps.",
            100.0 * at_end.exp_m1(),
            100.0 * wanted,
            self.plan.more_effort(None)
        ));
    }

    fn stop_reason(&self, runs: usize) -> Stopped {
        if self.budget.ends_by_runs(runs, self.machine.now()) {
            Stopped::Runs
        } else {
            Stopped::Budget
        }
    }
}
