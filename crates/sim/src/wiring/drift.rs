//! The true wiring over time: states with exponential dwell times, like virtual CPUs that float
//! over a host's.
//!
//! The moves come from a separate random stream: they depend only on the time, not on the probes.

use std::collections::VecDeque;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::description::State;
use crate::noise::draw_exponential;

/// Limits the moves simulated at once: with a mean dwell time of a nanosecond they would take years.
/// The others are left out.
const MAX_MOVES: usize = 10_000;

/// The states that may still be needed.
#[derive(Debug)]
pub(super) struct Drift {
    /// When each state began; the last one lasts until `until_s`.
    began: VecDeque<(f64, usize)>,
    until_s: f64,
    chance: ChaCha8Rng,
}

impl Drift {
    /// Starts in the first state.
    pub(super) fn new(states: &[State], mut chance: ChaCha8Rng) -> Self {
        let dwell = states.first().map_or(f64::INFINITY, |state| state.dwell_s);
        Self {
            began: VecDeque::from([(0.0, 0)]),
            until_s: draw_exponential(dwell, &mut chance),
            chance,
        }
    }

    /// The index of the state at this time, which must not have been forgotten.
    pub(super) fn state_at(&mut self, now_s: f64, states: &[State]) -> usize {
        for _ in 0..MAX_MOVES {
            if now_s < self.until_s {
                break;
            }
            let next = self.draw_next_state(states);
            self.began.push_back((self.until_s, next));
            self.until_s += draw_exponential(states[next].dwell_s, &mut self.chance);
        }
        self.until_s = self.until_s.max(now_s);
        let begun = self.began.iter().rev().find(|(start, _)| *start <= now_s);
        begun.map_or(0, |(_, state)| *state)
    }

    /// Forgets the states that ended before this time.
    pub(super) fn forget_before(&mut self, now_s: f64) {
        while self.began.get(1).is_some_and(|(start, _)| *start <= now_s) {
            self.began.pop_front();
        }
    }

    /// Draws another state by weight; the same one if there is no other.
    fn draw_next_state(&mut self, states: &[State]) -> usize {
        let now = self.began.back().map_or(0, |(_, state)| *state);
        let others = || (0..states.len()).filter(|&index| index != now);
        let total: f64 = others().map(|index| states[index].weight).sum();
        let mut remaining = total * self.chance.random::<f64>();
        for index in others() {
            remaining -= states[index].weight;
            if remaining < 0.0 {
                return index;
            }
        }
        others().next_back().unwrap_or(now)
    }
}
