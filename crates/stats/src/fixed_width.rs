//! Enough pairs for an interval of a given width, wherever it lies.
//!
//! A gate passes as soon as its estimate is low enough, and fails as soon as it is high enough.
//! That makes the estimate at that look too low, or too high, and the errors add up over many
//! gates. The width of an interval says nothing about its position: if the noise is symmetric, the
//! estimate from as many pairs as a width requires has no bias (Stein 1945). So a gate that is
//! chained makes that many pairs, and takes its estimate from them, however many more it needs to
//! decide. The width of the first pairs fixes the number once: going on until the interval is
//! narrow enough would stop when it looks narrower than it is (with noise of 1 % a run, errors
//! would be 13 % larger than stated).
//!
//! Plain ranks make it, with the estimate of Hodges and Lehmann: every pair counts, and errors
//! follow Student's t for this many pairs. Redescending scores also choose their shape from few
//! pairs, and one of a thousand of their estimates is 5.3 errors off instead of 3.9.

use super::Responses;
use super::caveats::Circumstances;
use super::chain::Link;
use super::confirm::{Confirmation, Question, Score};
use super::sequential::Depth;

/// Error of the interval.
const LEVEL: f64 = 0.05;
/// Half-width that is narrow enough, over the smallest effect.
const NARROW: f64 = 2.0 / 3.0;
/// Pairs whose interval determines the number needed. Hardly any gate is decided by fewer.
const FIRST: usize = 20;
/// More pairs are not made for this.
const MAX_PAIRS: usize = 128;

/// When pairs are enough.
#[derive(Debug, Clone)]
pub struct FixedWidth {
    question: Question,
    pairs: usize,
    is_planned: bool,
}

impl FixedWidth {
    /// For the smallest effect of a question.
    #[must_use]
    pub const fn new(question: Question) -> Self {
        Self {
            question,
            pairs: FIRST,
            is_planned: false,
        }
    }

    /// The number of pairs that is enough, as far as is known.
    #[must_use]
    pub const fn pairs(&self) -> usize {
        self.pairs
    }

    /// Are the first pairs, whose ratios these are, enough? The first call fixes the number, by the
    /// narrowest of their intervals.
    pub fn is_enough(&mut self, links: &[Link]) -> bool {
        if std::mem::replace(&mut self.is_planned, true) {
            return true;
        }
        let half_width = |link: &Link| {
            let (low, high) = link.interval(LEVEL);
            0.5 * (high - low)
        };
        let narrowest = links.iter().map(half_width).fold(f64::INFINITY, f64::min);
        let factor = (narrowest / (NARROW * self.question.delta)).powi(2);
        let wanted = factor * self.pairs as f64;
        let first = self.pairs;
        self.pairs = (first..MAX_PAIRS)
            .find(|&pairs| pairs as f64 >= wanted)
            .unwrap_or(MAX_PAIRS);
        self.pairs == first
    }

    /// The ratio of the second column to the first, as if these pairs had been planned, by
    /// plain ranks. `None` with too few.
    #[must_use]
    pub fn link(&self, data: &Responses, around: &Circumstances) -> Option<Link> {
        let question = Question {
            alpha: LEVEL,
            score: Score::Rank,
            ..self.question
        };
        let pairs = data.blocks();
        let mut planned = Confirmation::new(2, 0, question);
        let look = planned.look(data, around, pairs as f64, Depth::Verdicts)?;
        let contrast = look.contrasts.first()?;
        let half_width = contrast.interval.half_width();
        // Its nominal level is lower. That guard stays in the error, which pairs that were
        // chosen by a width of their own make too small by as much.
        let link = Link::from_interval(contrast.estimate, half_width, LEVEL, pairs);
        (half_width.is_finite() && link.estimate.is_finite()).then_some(link)
    }
}

#[cfg(test)]
mod tests;
