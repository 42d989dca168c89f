//! The early warning if too few runs or too little time were given for a verdict.

use std::time::Duration;

use super::Engine;
use crate::compare::advice;
use pinwise_format::{count, duration};
use pinwise_stats::halving;

impl Engine<'_> {
    /// Does not even one more block fit?
    pub(super) fn is_spent(&self) -> bool {
        let runs = self.valid_arms().len();
        self.budget.blocks_left(runs, self.machine.now()) == 0
    }

    /// Warns, after the first run, if the effort is too little for a verdict.
    pub(super) fn warn_if_effort_is_short(&mut self, run: Duration) {
        if self.plan.is_survey || self.plan.is_timing {
            return;
        }
        let arms = self.arms.len();
        // Of many arms, only the finalists of screening are confirmed.
        let least = self.plan.least_blocks(arms.min(halving::FROM_ARMS));
        let arms = count(arms, "arm");
        if let Some(runs) = self.plan.tuning.max_runs.filter(|runs| *runs < least) {
            self.observer.warn(&format!(
                "--max-runs {runs} is too few for a verdict: {arms} need at least {least} runs each."
            ));
        }
        let Some(budget) = self.plan.tuning.budget else {
            return;
        };
        let block = run.mul_f64(self.arms.len() as f64);
        // One more block is discarded as warm-up.
        let needed = block.mul_f64((least + 1) as f64);
        if needed > budget {
            let what = if block > budget {
                "one block"
            } else {
                "a verdict"
            };
            self.observer.warn(&format!(
                "The budget of {} is too short for {what}: the first run took {}, {arms} in turn take about {}, and a verdict takes at least {least} such blocks (--budget {}).",
                duration(budget),
                duration(run),
                duration(block),
                advice::format_budget(advice::SAFETY_FACTOR * needed.as_secs_f64())
            ));
        }
    }
}
