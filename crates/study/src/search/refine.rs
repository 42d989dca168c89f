//! Tries placements that differ from the leader by one moved thread, if the model leaves room for
//! them to be better.

use super::Candidate;
use super::candidates::from_occupancy;
use super::choice::{DEFAULT, MORE_LIKELY_THAN_NOT};
use super::features::expected_mean;
use super::state::{Engine, Halt};
use pinwise_record::SearchStep;
use pinwise_stats::surrogate::probability_below;

/// Number of blocks.
const REFINEMENTS: usize = 2;
/// Maximum number of moves.
const MAX_MOVES: usize = 3;
/// A move is tried if it beats the leader with at least this probability.
const MIN_WIN_PROBABILITY: f64 = 0.25;

impl Engine<'_> {
    /// Tries moves of one thread of the leader that may beat it by more than the indifference zone.
    /// A move can become the leader only if it more probably than not beats it.
    pub(super) fn refine(&mut self) -> Result<(), Halt> {
        let leader = match &self.standing {
            Some(standing) if standing.leader != DEFAULT => standing.leader,
            _ => return Ok(()),
        };
        let candidates = self.list_moves(leader);
        let mut promising = self.find_promising(leader, &candidates);
        promising.sort_by(|a, b| b.1.total_cmp(&a.1));
        promising.truncate(MAX_MOVES);
        if promising.is_empty() {
            return Ok(());
        }
        let mut block = vec![DEFAULT, leader];
        for (number, _) in &promising {
            block.push(self.add(candidates[*number].clone(), Some(leader)));
        }
        // Predicts the new arms before they run.
        self.update_belief();
        for _ in 0..REFINEMENTS {
            if self.check_runs_left(block.len()).is_err() {
                break;
            }
            self.run_block(SearchStep::Refinement, &block)?;
            self.update_belief();
        }
        self.drop_moves(leader, &block[2..]);
        self.update_belief();
        self.note_progress();
        Ok(())
    }

    /// Placements that differ from the leader by one moved thread, and are not arms yet.
    fn list_moves(&self, leader: usize) -> Vec<Candidate> {
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

    /// Drops moves that do not more probably than not beat the leader.
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

    /// Indices of candidates that may beat the leader, with the probability.
    fn find_promising(&self, leader: usize, candidates: &[Candidate]) -> Vec<(usize, f64)> {
        let mut model = self.model.clone();
        let numbers: Vec<usize> = candidates
            .iter()
            .map(|candidate| {
                let cpus = &candidate.place.cpus;
                let features = self.unit_map.features(cpus, candidate.threads, false);
                model.add(features, expected_mean(candidate.threads))
            })
            .collect();
        let belief = model.learn(&self.readings);
        let rule = self.rule();
        let beats = numbers.iter().map(|&arm| {
            probability_below(&belief.difference(arm, leader), -rule.zone, rule.widening)
        });
        let promising = beats
            .enumerate()
            .filter(|(_, beats)| *beats >= MIN_WIN_PROBABILITY);
        promising.collect()
    }
}
