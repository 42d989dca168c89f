//! The leader against `os-default`, measured afresh after the choice was made: pairs in random
//! order, and an interval that is valid at any time.

use super::choice::DEFAULT;
use super::pairs::{ALPHA, Pairs};
use super::state::{Engine, Halt};
use pinwise_record::{SearchStep, Stopped};

/// Minimum noise of a run, also before any is known: ln(cost).
const MIN_NOISE: f64 = 0.002;

impl Engine<'_> {
    /// Standard deviation of the difference of a pair, as far as is known.
    pub(super) fn pair_noise(&self, arm: usize, baseline: usize) -> f64 {
        let noise = |arm: usize| {
            let noise = self.belief.as_ref().map(|belief| belief.noise_sd_of(arm));
            noise.unwrap_or(0.0).max(MIN_NOISE)
        };
        noise(arm).hypot(noise(baseline))
    }

    /// Pairs until the question is answered, or as many as are allowed.
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
            if self.afford_time(2, 1.0).is_err() {
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
