//! Finds the arm with the fewest resources that is nearly as good as the best: the model proposes it,
//! fresh pairs confirm it. Unconfirmed proposals are not reported: the model alone is wrong in one of
//! nine.

use super::choice::DEFAULT;
use super::pairs::Pairs;
use super::state::{Engine, HEAVY_TAILS, Halt, Proposal};
use super::words;
use pinwise_record::{LeastRecord, SearchStep, Stopped};
use pinwise_stats::surrogate::{interval, mean_of, probability_below};

/// The model proposes an arm if it is nearly as good with at least this probability.
const MIN_PROBABILITY: f64 = 0.9;
/// Two-sided error rate of the pairs' interval, of which only one side is used.
const ALPHA: f64 = 0.1;
/// Maximum number of pairs: an arm that needs more is too close to the limit.
const MAX_PAIRS: usize = 20;

impl Engine<'_> {
    /// Compares the best arm with the one with fewest resources that the model proposes.
    pub(super) fn confirm_least(&mut self) -> Result<(), Halt> {
        let most = self.plan.confirmation_pairs.min(MAX_PAIRS);
        let best = words::SearchOutcome::from_engine(self, None).best;
        let best = best.filter(|&best| best == DEFAULT || self.faster_elsewhere().is_none());
        let proposed = best.and_then(|best| Some((best, self.propose(best)?)));
        let Some((best, arm)) = proposed.filter(|(best, arm)| best != arm && most > 0) else {
            return Ok(());
        };
        let pairs = Pairs::new(arm, ALPHA, self.pair_noise(arm, best), most);
        self.proposal = Some(Proposal { arm, best, pairs });
        let limit = self.plan.max_slowdown.ln_1p();
        for _ in 0..most {
            let is_settled = |p: &Proposal| p.is_confirmed(limit) || p.is_refuted(limit);
            if self.proposal.as_ref().is_some_and(is_settled)
                || self.check_time_left(2, 1.0).is_err()
            {
                break;
            }
            self.run_block(SearchStep::Least, &[best, arm])?;
            if self.invalid[arm].is_some() || self.invalid[best].is_some() {
                return Err(Halt::Stopped(Stopped::Failed));
            }
        }
        Ok(())
    }

    /// The arm with the fewest CPUs, then cores, caches, nodes and packages, that the model considers
    /// nearly as good as the best.
    fn propose(&self, best: usize) -> Option<usize> {
        let belief = self.belief.as_ref()?;
        let limit = self.plan.max_slowdown.ln_1p();
        let is_enough = |arm: usize| {
            let differences = belief.difference(arm, best);
            arm == best
                || probability_below(&differences, limit, self.widening()) >= MIN_PROBABILITY
        };
        let resources = |arm: usize| {
            let used = &self.arms[arm].place.used;
            let inner = (used.cpus, used.cores, used.llcs);
            (inner, used.numa_nodes, used.packages)
        };
        let open = self.open_arms().into_iter();
        open.filter(|&arm| arm < belief.arms() && is_enough(arm))
            .min_by_key(|&arm| (resources(arm), usize::from(arm != best)))
    }

    /// The record of the arm with the fewest resources: the confirmed proposal, else the best itself;
    /// without a confirmation (`--confirm 0`) the model's proposal. `None` if the same shape is faster
    /// on other CPUs: then shapes alone do not decide.
    pub(super) fn least_record(&self, best: usize) -> Option<LeastRecord> {
        if best != DEFAULT && self.faster_elsewhere().is_some() {
            return None;
        }
        let limit = self.plan.max_slowdown.ln_1p();
        let tried = self.proposal.as_ref().filter(|p| p.best == best);
        let confirmed = tried.filter(|proposal| proposal.is_confirmed(limit));
        let is_unconfirmed = self.plan.confirmation_pairs > 0 && confirmed.is_none();
        let arm = match confirmed {
            Some(proposal) => proposal.arm,
            None if is_unconfirmed => best,
            None => self.propose(best)?,
        };
        let (middle, (low, high)) = match confirmed {
            _ if arm == best => (0.0, (0.0, 0.0)),
            Some(proposal) => (proposal.pairs.estimate(), proposal.pairs.interval()?),
            None => {
                let differences = self.belief.as_ref()?.difference(arm, best);
                let tail = ALPHA / 2.0;
                let ends = interval(&differences, tail, HEAVY_TAILS * self.widening());
                (mean_of(&differences), ends)
            }
        };
        let share_of_best = (-middle).exp();
        let refused = tried.filter(|_| confirmed.is_none());
        Some(LeastRecord {
            arm: self.arms[arm].name.clone(),
            of_best: share_of_best,
            low: (-high).exp(),
            high: (-low).exp(),
            measured: self.runs_of_arms()[arm] > 0 || confirmed.is_some(),
            pairs: tried.map_or(0, |proposal| proposal.pairs.count()),
            confirmed: confirmed.is_some(),
            sentence: match refused {
                Some(proposal) => words::describe_unconfirmed_least(
                    self,
                    best,
                    proposal.arm,
                    proposal.pairs.count(),
                ),
                None => {
                    let smaller = self.propose(best).filter(|&smaller| smaller != best);
                    words::describe_least(self, arm, best, smaller, share_of_best)
                }
            },
            basis: String::new(),
            commands: Vec::new(),
        })
    }
}
