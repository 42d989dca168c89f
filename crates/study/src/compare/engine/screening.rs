//! Screening: of many arms, leaves out the unpromising ones round by round.
//!
//! Its runs only select the finalists and are never reported as results: the finalists are measured
//! afresh, since an arm that was selected looks better in these runs than it is.

use super::{Block, Engine};
use crate::error::StudyError;
use pinwise_record::{Phase, Stopped};
use pinwise_stats::halving::{self, ScreeningRun};

impl Engine<'_> {
    /// Sequential halving down to the finalists.
    pub(super) fn screen(&mut self) -> Result<Option<Stopped>, StudyError> {
        let baseline = self.plan.baseline;
        let mut challengers = self.challengers();
        self.screened = challengers.len() + 1;
        let mut runs_so_far: Vec<ScreeningRun> = Vec::new();
        let mut blocks_done = 0;
        let start = self.budget.used_share(self.machine.now());
        let planned_end = start + halving::BUDGET_SHARE * (1.0 - start);
        let rounds = halving::plan_rounds(challengers.len());
        for round in 0..rounds.len() {
            let runs_ahead = rounds[round..].iter().map(|arms| arms + 1).sum();
            let blocks = self.screening_blocks(planned_end, runs_ahead);
            for _ in 0..blocks {
                if self.is_spent() {
                    break;
                }
                let mut open = challengers.clone();
                open.push(baseline);
                open.sort_unstable();
                match self.run_block(&open, Phase::Screening, blocks_done)? {
                    Block::Interrupted => return Ok(Some(Stopped::Interrupted)),
                    Block::Dropped if self.has_failed() => return Ok(Some(Stopped::Failed)),
                    Block::Dropped => challengers.retain(|&arm| self.arms[arm].is_valid()),
                    Block::Whole(block) => {
                        blocks_done += 1;
                        let first_run = runs_so_far.len();
                        runs_so_far.extend(open.iter().map(|_| (0, 0.0)));
                        for &arm in &open {
                            let response = block.costs[arm].map_or(f64::NAN, f64::ln);
                            runs_so_far[first_run + block.slots[arm]] = (arm, response);
                        }
                    }
                }
            }
            let kept = halving::select_survivors(&runs_so_far, &challengers);
            for &arm in challengers.iter().filter(|arm| !kept.contains(arm)) {
                self.arms[arm].eliminated = true;
            }
            challengers = kept;
        }
        Ok(None)
    }

    /// Blocks for each of the rounds ahead, which have `runs_ahead` runs in all per block.
    fn screening_blocks(&self, planned_end: f64, runs_ahead: usize) -> usize {
        let now = self.machine.now();
        let used = self.budget.used_share(now);
        let share = ((planned_end - used) / (1.0 - used).max(1e-9)).max(0.0);
        self.budget
            .blocks_in_share(share, runs_ahead, now)
            .max(halving::MIN_BLOCKS)
    }

    /// All valid arms but the baseline and the placebo, which are always kept.
    fn challengers(&self) -> Vec<usize> {
        let is_always_kept =
            |arm: &usize| *arm == self.plan.baseline || Some(*arm) == self.plan.placebo;
        let arms = self.valid_arms().into_iter();
        arms.filter(|arm| !is_always_kept(arm)).collect()
    }
}
