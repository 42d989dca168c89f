//! Moves of one thread of the leader, if the model leaves room for them.

use super::Candidate;
use super::candidates::from_occupancy;
use super::choice::{DEFAULT, MORE_LIKELY_THAN_NOT};
use super::features::usual_mean;
use super::state::{Engine, Halt};
use pinwise_record::SearchStep;
use pinwise_stats::surrogate::probability_below;

/// Blocks that moves of one thread are tried in, and how many moves at most,
/// each with at least this probability to beat the leader.
const REFINEMENTS: usize = 2;
const MAX_MOVES: usize = 3;
const MIN_WIN_PROBABILITY: f64 = 0.25;

impl Engine<'_> {
    /// Tries moves of one thread of the leader that may beat it by more than the indifference zone.
    /// A move must earn the lead: it leads only if that is more probable than not.
    pub(super) fn refine(&mut self) -> Result<(), Halt> {
        let leader = match &self.standing {
            Some(standing) if standing.leader != DEFAULT => standing.leader,
            _ => return Ok(()),
        };
        let candidates = self.moves(leader);
        let mut promising = self.promise(leader, &candidates);
        promising.sort_by(|a, b| b.1.total_cmp(&a.1));
        promising.truncate(MAX_MOVES);
        if promising.is_empty() {
            return Ok(());
        }
        let mut block = vec![DEFAULT, leader];
        for (number, _) in &promising {
            block.push(self.add(candidates[*number].clone(), Some(leader)));
        }
        // Their predictions count, too.
        self.think();
        for _ in 0..REFINEMENTS {
            if self.afford(block.len()).is_err() {
                break;
            }
            self.run_block(SearchStep::Refinement, &block)?;
            self.think();
        }
        self.drop_moves(leader, &block[2..]);
        self.think();
        self.note();
        Ok(())
    }

    /// Placements that differ from an arm by one moved thread, and are not arms yet.
    fn moves(&self, leader: usize) -> Vec<Candidate> {
        let threads = self.arms[leader].threads;
        let moves = self.space.neighbours(&self.arms[leader].occupancy);
        let candidates = moves.into_iter().filter_map(|to| {
            from_occupancy(self.plan, self.topology, self.space, to, threads).ok()
        });
        let is_new = |candidate: &Candidate| {
            let mut known = self.arms.iter();
            !known.any(|arm| arm.place.cpus == candidate.place.cpus)
        };
        candidates.filter(is_new).collect()
    }

    /// Drops moves that did not earn the lead.
    fn drop_moves(&mut self, leader: usize, moves: &[usize]) {
        let rule = self.rule();
        let Some(belief) = &self.belief else { return };
        let beats = |arm: usize| {
            probability_below(&belief.difference(arm, leader), -rule.zone, rule.widening)
        };
        let dropped: Vec<usize> = moves
            .iter()
            .copied()
            .filter(|&arm| beats(arm) <= MORE_LIKELY_THAN_NOT)
            .collect();
        self.dropped.extend(dropped);
    }

    /// Candidates that may beat the leader, with the probability.
    fn promise(&self, leader: usize, candidates: &[Candidate]) -> Vec<(usize, f64)> {
        let mut model = self.model.clone();
        let numbers: Vec<usize> = candidates
            .iter()
            .map(|candidate| {
                let cpus = &candidate.place.cpus;
                let features = self.unit_map.features(cpus, candidate.threads, false);
                model.add(features, usual_mean(candidate.threads))
            })
            .collect();
        let belief = model.learn(&self.readings);
        let rule = self.rule();
        let beats = numbers.iter().map(|&arm| {
            probability_below(&belief.difference(arm, leader), -rule.zone, rule.widening)
        });
        let all = beats.enumerate();
        all.filter(|(_, beats)| *beats >= MIN_WIN_PROBABILITY)
            .collect()
    }
}
