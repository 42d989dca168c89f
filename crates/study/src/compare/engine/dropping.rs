//! Drops arms that can no longer become the best, to save their time for the others.
//!
//! The verdict on a dropped arm is that of the look that dropped it: levels hold over all looks
//! together. For the other arms the drop changes only how many blocks still fit; Holm's method still
//! counts a dropped arm unless it was rejected.

use super::Engine;
use super::confirmation::ConfirmationRun;
use crate::compare::results::{self, DroppedArm};
use pinwise_record::Phase;
use pinwise_stats::describe::mean;
use pinwise_stats::limit::{self, LimitVerdict};

impl Engine<'_> {
    /// Drops arms that the last look showed to be clearly behind the best. Keeps the placebo, and
    /// arms whose limit is undecided; keeps all in a survey or if a precision was requested.
    pub(super) fn drop_arms_behind(&mut self, run: &mut ConfirmationRun) {
        let tuning = &self.plan.tuning;
        let Some(look) = &self.look else { return };
        if self.plan.is_survey || tuning.precision.is_some() {
            return;
        }
        let delta = tuning.min_effect.ln_1p();
        let mut behind: Vec<_> = look.clearly_behind(delta).cloned().collect();
        behind.retain(|contrast| Some(self.columns[contrast.arm]) != self.plan.placebo);
        if let Some(limit) = tuning.log_limit() {
            behind.retain(|contrast| limit::judge(contrast, limit) != LimitVerdict::Undecided);
        }
        if behind.is_empty() || behind.len() == look.contrasts.len() {
            return;
        }
        let (look, blocks) = (look.clone(), look.blocks);
        let is_behind = |column: usize| behind.iter().any(|contrast| contrast.arm == column);
        let columns = 0..self.columns.len();
        let kept: Vec<usize> = columns.filter(|&column| !is_behind(column)).collect();
        let baseline = self.baseline_column();
        run.statistics.drop_arms(&behind, &kept);
        let dropped: Vec<DroppedArm> = behind
            .into_iter()
            .map(|contrast| DroppedArm {
                arm: self.columns[contrast.arm],
                totals: results::compare_totals(&self.data, contrast.arm, baseline),
                contrast,
                blocks,
            })
            .collect();
        let before_s = self.run_time_s();
        self.keep_columns(&kept);
        self.budget.adapt_run_time(before_s, self.run_time_s());
        self.dropped.extend(dropped);
        self.look = Some(look.with_columns(&kept, delta));
    }

    /// Seconds of a confirmed run, on average over the arms still in.
    fn run_time_s(&self) -> f64 {
        let runs = self.columns.iter().flat_map(|&arm| &self.arms[arm].runs);
        let confirmed = runs.filter(|run| run.phase == Phase::Confirmation);
        let times: Vec<f64> = confirmed.map(|run| run.wall_s).collect();
        mean(&times)
    }
}
