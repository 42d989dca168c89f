//! Is a benchmark slower in a new build, when it is one of many in a suite?
//!
//! Two questions are asked of the same pairs, by the rule of a [`limit`]. *Slower by more than δ*
//! (or faster) is claimed at α shared by the suite (Bonferroni), so that a suite without such a
//! slow-down raises a false alarm with probability α at most. *Not slower by δ* is claimed at α
//! itself: a gate passes only if every benchmark does, and such an intersection-union test needs no
//! correction (Berger 1982). Both run over group-sequential looks of their own.

use super::Responses;
use super::beside;
use super::caveats::Circumstances;
use super::confirm::{Confirmation, Question};
use super::decision::Decision;
use super::limit;
use super::look::{Contrast, Look};
use super::resolution::Resolution;
use super::sequential::{Depth, Schedule};

/// Wall-clock time within this many times δ still matters when CPU time is more precise.
const NEAR: f64 = 3.0;
/// Wall-clock time that would need more seconds than this in total is given up once CPU time has
/// passed.
const LONG_S: f64 = 120.0;
/// Fewer pairs than this say too little of how many are needed: their intervals are wide for the
/// looks to come, and an estimate near δ would need any number.
const MIN_PAIRS_TO_GIVE_UP: usize = 60;

/// The state of knowledge on a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Certainly slower by more than the smallest effect.
    Slower,
    /// Surely faster.
    Faster,
    /// Certainly not slower by the smallest effect.
    Passed,
    /// None of these.
    Undecided,
}

/// What the last look at a benchmark showed.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionLook {
    /// Pairs looked at.
    pub pairs: usize,
    /// The head against the base at the level shared by the suite.
    pub shared: Contrast,
    /// The same at the level of this benchmark alone; `None` if only a claim was tested.
    pub alone: Option<Contrast>,
    /// The step size of the figure, if it is coarse.
    pub resolution: Option<Resolution>,
    /// What follows.
    pub standing: Standing,
}

/// The running judgement of one benchmark: column 0 is the base, column 1 the
/// head.
#[derive(Debug, Clone)]
pub struct Regression {
    delta: f64,
    shared: Confirmation,
    alone: Confirmation,
    schedule: Schedule,
    looked_at: usize,
    least: usize,
    is_open_ended: bool,
}

impl Regression {
    /// One of this many benchmarks; the question's α is that of the suite.
    #[must_use]
    pub fn new(question: Question, benchmarks: usize) -> Self {
        let shared = Question {
            alpha: question.alpha / benchmarks.max(1) as f64,
            ..question
        };
        Self {
            delta: question.delta,
            shared: Confirmation::new(2, 0, shared).with_limit(Some(question.delta)),
            alone: Confirmation::new(2, 0, question),
            schedule: question.schedule(1),
            looked_at: 0,
            least: question.least_blocks(1),
            is_open_ended: question.is_open_ended,
        }
    }

    /// The fewest pairs that allow a verdict.
    #[must_use]
    pub const fn least_pairs(&self) -> usize {
        self.least
    }

    /// Looks at the pairs if a look is due, with `most` pairs possible in total; `None` if none is
    /// due, or nothing can be claimed.
    pub fn look_if_due(
        &mut self,
        data: &Responses,
        around: &Circumstances,
        most: usize,
    ) -> Option<RegressionLook> {
        match self.schedule.due(data.blocks(), most)? {
            Depth::Claims => {
                let look = self.shared.look(data, around, most as f64, Depth::Claims)?;
                Some(self.judge_look(&look, None))
            }
            Depth::Verdicts => self.look(data, around, most),
        }
    }

    /// Looks at the pairs for the last time, whether due or not. `None` if these pairs have been
    /// looked at already.
    pub fn look(
        &mut self,
        data: &Responses,
        around: &Circumstances,
        most: usize,
    ) -> Option<RegressionLook> {
        if data.blocks() <= self.looked_at {
            return None;
        }
        self.looked_at = data.blocks();
        let most = most as f64;
        let shared = self.shared.look(data, around, most, Depth::Verdicts)?;
        let alone = self.alone.look(data, around, most, Depth::Verdicts)?;
        Some(self.judge_look(&shared, alone.contrasts.into_iter().next()))
    }

    /// Is it slower by its CPU time, while its figure decides nothing and may have
    /// changed as much?
    #[must_use]
    pub fn is_slower_by_cpu(&self, figure: &RegressionLook, cpu: &RegressionLook) -> bool {
        figure.standing == Standing::Undecided
            && beside::exceeds(&figure.shared, &cpu.shared, self.delta)
    }

    /// Does CPU time rule out a slow-down by δ, while the figure only shows that it is no
    /// more than a few times that, and would take long to pass at `pair_s` seconds a pair even if
    /// nothing has changed?
    #[must_use]
    pub fn is_passed_by_cpu(
        &self,
        figure: &RegressionLook,
        cpu: &RegressionLook,
        pair_s: f64,
    ) -> bool {
        let near = NEAR * self.delta;
        let takes_long = |wall: &Contrast| {
            let factor = (wall.interval.half_width() / self.delta).powi(2);
            factor * figure.pairs as f64 * pair_s > LONG_S
        };
        let is_near = |wall: &Contrast| wall.interval.low >= -near && wall.interval.high <= near;
        !self.is_open_ended
            && figure.standing == Standing::Undecided
            && cpu.standing == Standing::Passed
            && figure.pairs >= MIN_PAIRS_TO_GIVE_UP
            && figure
                .alone
                .as_ref()
                .is_some_and(|wall| is_near(wall) && takes_long(wall))
    }

    fn judge_look(&self, look: &Look, mut alone: Option<Contrast>) -> RegressionLook {
        let shared = look.contrasts[0].clone();
        if let Some(contrast) = alone.as_mut().filter(|c| c.interval.high <= self.delta) {
            contrast.caveats = contrast.caveats.of_slower(self.delta);
        }
        let standing = standing(&shared, alone.as_ref(), self.delta);
        RegressionLook {
            pairs: look.blocks,
            shared,
            alone,
            resolution: look.resolution,
            standing,
        }
    }
}

fn standing(shared: &Contrast, alone: Option<&Contrast>, delta: f64) -> Standing {
    let is_passed = |contrast: &Contrast| limit::is_passed(contrast, delta);
    if limit::is_slower(shared, delta) {
        Standing::Slower
    } else if shared.decision == Decision::Faster {
        Standing::Faster
    } else if is_passed(shared) || alone.is_some_and(is_passed) {
        Standing::Passed
    } else {
        Standing::Undecided
    }
}

impl RegressionLook {
    /// Were there enough pairs for an interval?
    #[must_use]
    pub fn shows_an_interval(&self) -> bool {
        let contrast = self.alone.as_ref().unwrap_or(&self.shared);
        contrast.interval.half_width().is_finite()
    }

    /// The factor by which the number of pairs must grow for a verdict, as far as this look shows;
    /// infinite if more pairs would not help. It does not depend on which build is the base.
    #[must_use]
    pub fn work_factor(&self, delta: f64) -> f64 {
        let contrast = self.alone.as_ref().unwrap_or(&self.shared);
        if contrast.caveats.withholds() {
            return f64::INFINITY;
        }
        let size = contrast.estimate.abs();
        // To pass, an end of the interval must come below δ; to fail, above it.
        let interval = match size < delta {
            true => contrast.interval,
            false => self.shared.interval,
        };
        let distance = (size - delta).abs();
        (interval.half_width() / distance).powi(2).max(1.0)
    }
}

#[cfg(test)]
mod tests;
