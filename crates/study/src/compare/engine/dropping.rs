//! Arms that can no longer become the choice stop using time.
//!
//! The verdict of such an arm is the one of the look that dropped it, which
//! holds at every look together. For the arms that stay, the drop changes only
//! how many blocks still fit; the error is shared as Holm's method has it, with
//! a dropped arm still counted unless it was rejected.

use super::Engine;
use super::confirmation::ConfirmationRun;
use crate::compare::results::DroppedArm;
use pinwise_record::Phase;
use pinwise_stats::describe::mean;
use pinwise_stats::diagnose;

impl Engine<'_> {
    /// Drops what the last look showed to be clearly behind the best; not where
    /// every arm's figure or width was asked for, and never the placebo.
    pub(super) fn without_those_behind(&mut self, mut run: ConfirmationRun) -> ConfirmationRun {
        let tuning = &self.plan.tuning;
        let Some(look) = &self.look else { return run };
        if self.plan.is_survey || tuning.precision.is_some() {
            return run;
        }
        let delta = tuning.min_effect.ln_1p();
        let mut behind: Vec<_> = look.clearly_behind(delta).cloned().collect();
        behind.retain(|contrast| Some(self.columns[contrast.arm]) != self.plan.placebo);
        if behind.is_empty() || behind.len() == look.contrasts.len() {
            return run;
        }
        let (look, blocks) = (look.clone(), look.blocks);
        let is_behind = |column: usize| behind.iter().any(|contrast| contrast.arm == column);
        let columns = 0..self.columns.len();
        let kept: Vec<usize> = columns.filter(|&column| !is_behind(column)).collect();
        let costs = |column: usize| -> Vec<f64> {
            let column = self.data.column(column);
            column.iter().map(|response| response.exp()).collect()
        };
        let baseline = self
            .columns
            .iter()
            .position(|&arm| arm == self.plan.baseline);
        let baseline = costs(baseline.unwrap_or(0));
        run.statistics = run.statistics.without(&behind, &kept);
        let dropped: Vec<DroppedArm> = behind
            .into_iter()
            .map(|contrast| DroppedArm {
                arm: self.columns[contrast.arm],
                totals: diagnose::totals(&costs(contrast.arm), &baseline),
                contrast,
                blocks,
            })
            .collect();
        let before_s = self.run_time_s();
        self.keep_columns(&kept);
        self.budget.replan(before_s, self.run_time_s());
        self.dropped.extend(dropped);
        self.look = Some(look.with_columns(&kept, delta));
        run
    }

    /// Seconds of a confirmed run, on average over the arms still in.
    fn run_time_s(&self) -> f64 {
        let runs = self.columns.iter().flat_map(|&arm| &self.arms[arm].runs);
        let confirmed = runs.filter(|run| run.phase == Phase::Confirmation);
        let times: Vec<f64> = confirmed.map(|run| run.wall_s).collect();
        mean(&times)
    }
}
