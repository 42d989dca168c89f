//! Confirms the leader: compares it with `os-default` in fresh pairs in random order, with an
//! interval that is valid at any time.

use super::choice::DEFAULT;
use super::pairs::{ALPHA, Pairs};
use super::state::{Engine, Halt};
use pinwise_record::{SearchStep, Stopped};

/// Smallest standard deviation of ln(cost) that is assumed for a run.
const MIN_NOISE: f64 = 0.002;

impl Engine<'_> {
    /// Estimated standard deviation of the difference of a pair, in ln(cost).
    pub(super) fn pair_noise(&self, arm: usize, baseline: usize) -> f64 {
        let noise = |arm: usize| {
            let noise = self.belief.as_ref().map(|belief| belief.noise_sd_of(arm));
            noise.unwrap_or(0.0).max(MIN_NOISE)
        };
        noise(arm).hypot(noise(baseline))
    }

    /// Runs pairs until the question is answered or the budget is used up.
    pub(super) fn confirm(&mut self) -> Result<(), Halt> {
        let leader = self.standing.as_ref().map_or(DEFAULT, |s| s.leader);
        let most = self.plan.confirmation_pairs;
        if leader == DEFAULT || most == 0 || self.runs_of_arms()[leader] == 0 {
            return Ok(());
        }
        let noise = self.pair_noise(leader, DEFAULT);
        self.pairs = Some(Pairs::new(leader, ALPHA, noise, most));
        let zone = self.zone();
        for _ in 0..most {
            if self.pairs.as_ref().is_some_and(|p| p.is_answered(zone)) {
                break;
            }
            if self.check_time_left(2, 1.0).is_err() {
                return match self.is_settled {
                    true => Err(Halt::Stopped(Stopped::Budget)),
                    false => Ok(()),
                };
            }
            self.run_block(SearchStep::Confirmation, &[DEFAULT, leader])?;
            if self.invalid[leader].is_some() {
                return Err(Halt::Stopped(Stopped::Failed));
            }
        }
        Ok(())
    }
}
