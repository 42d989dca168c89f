//! Judges whether a benchmark, one of many in a suite, is slower in a new build.
//!
//! The same pairs are judged at two levels, both times against the [`limit`] δ. *Slower by more than
//! δ* (or faster) is claimed at α divided among the suite (Bonferroni): a suite without any such
//! slow-down raises a false alarm with a probability of at most α. *Not slower by δ* is claimed at α
//! itself: a gate passes only if every benchmark passes, and such an intersection-union test needs
//! no correction (Berger 1982). Both have group-sequential looks of their own. Where CPU time is
//! judged, too, either figure may show both: claims count as two of the suite, and α for passing is
//! [split](Regression::split_passing).

use super::Responses;
use super::beside;
use super::caveats::{Circumstances, MIN_RUNS_FOR_SAME};
use super::confirm::{Confirmation, Question};
use super::decision::Decision;
use super::limit;
use super::look::{Contrast, Look};
use super::resolution::Resolution;
use super::sequential::{Depth, Schedule};

/// What is known about a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Certainly slower by more than the smallest effect.
    Slower,
    /// Certainly faster.
    Faster,
    /// Certainly not slower by the smallest effect.
    Passed,
    /// None of these.
    Undecided,
}

/// The result of a look at a benchmark.
#[derive(Debug, Clone, PartialEq)]
pub struct RegressionLook {
    /// Number of pairs.
    pub pairs: usize,
    /// The head against the base, with α divided among the suite.
    pub shared: Contrast,
    /// The head against the base, with α for this benchmark alone; `None` if only a claim was tested.
    pub alone: Option<Contrast>,
    /// The step size of the figure, if it is coarse.
    pub resolution: Option<Resolution>,
    /// What follows.
    pub standing: Standing,
}

/// Judges one benchmark over all looks; column 0 is the base, column 1 the head.
#[derive(Debug, Clone)]
pub struct Regression {
    question: Question,
    shared: Confirmation,
    alone: Confirmation,
    schedule: Schedule,
    looked_at: usize,
    /// Did the last look only wait for more pairs?
    is_waiting: bool,
    least: usize,
}

impl Regression {
    /// For one of this many benchmarks; the question's α is that of the suite.
    #[must_use]
    pub fn new(question: Question, benchmarks: usize) -> Self {
        let shared = Question {
            alpha: question.alpha / benchmarks.max(1) as f64,
            ..question
        };
        Self {
            question,
            shared: Confirmation::new(2, 0, shared).with_limit(Some(question.delta)),
            alone: Confirmation::new(2, 0, question),
            schedule: question.schedule(1),
            looked_at: 0,
            is_waiting: false,
            least: question.least_blocks(1),
        }
    }

    /// Before the first look, leaves half of the α for passing to another figure of the benchmark.
    pub fn split_passing(&mut self) {
        let alpha = self.question.alpha / 2.0;
        let question = Question {
            alpha,
            ..self.question
        };
        self.alone = Confirmation::new(2, 0, question);
    }

    /// The limit, `ln(ratio)`.
    #[must_use]
    pub const fn delta(&self) -> f64 {
        self.question.delta
    }

    /// The fewest pairs that allow a verdict.
    #[must_use]
    pub const fn least_pairs(&self) -> usize {
        self.least
    }

    /// Looks at the pairs if a look is due, with `most` pairs possible in total. `None` if no look is
    /// due, or if it was only for a claim and there is none.
    pub fn look_if_due(
        &mut self,
        data: &Responses,
        around: &Circumstances,
        most: usize,
    ) -> Option<RegressionLook> {
        match self.schedule.next_due(data.blocks(), most)? {
            Depth::Claims => {
                let look = self.shared.look(data, around, most as f64, Depth::Claims)?;
                Some(self.judge_look(&look, None))
            }
            Depth::Verdicts => self.look(data, around, most),
        }
    }

    /// Looks at the pairs whether a look is due or not, as at the end. `None` if no pairs were added
    /// since the last look, unless that one waited for pairs that do not follow.
    pub fn look(
        &mut self,
        data: &Responses,
        around: &Circumstances,
        most: usize,
    ) -> Option<RegressionLook> {
        let is_awaited = self.is_waiting && most <= data.blocks();
        if data.blocks() <= self.looked_at && !is_awaited {
            return None;
        }
        self.looked_at = data.blocks();
        let most = most as f64;
        let shared = self.shared.look(data, around, most, Depth::Verdicts)?;
        let alone = self.alone.look(data, around, most, Depth::Verdicts)?;
        let look = self.judge_look(&shared, alone.contrasts.into_iter().next());
        self.is_waiting = look.is_early();
        Some(look)
    }

    /// Is the benchmark slower by its CPU time, while its figure is undecided and may have changed
    /// as much?
    #[must_use]
    pub fn is_slower_by_cpu(&self, figure: &RegressionLook, cpu: &RegressionLook) -> bool {
        figure.standing == Standing::Undecided
            && beside::exceeds(&figure.shared, &cpu.shared, self.question.delta)
    }

    /// Does the benchmark pass by its CPU time, while its figure is undecided and contradicts
    /// nothing?
    #[must_use]
    pub fn is_passed_by_cpu(&self, figure: &RegressionLook, cpu: &RegressionLook) -> bool {
        let wall = figure.alone.as_ref().unwrap_or(&figure.shared);
        figure.standing == Standing::Undecided
            && matches!(cpu.standing, Standing::Passed | Standing::Faster)
            && wall.interval.holds(0.0)
            && beside::is_wall_narrow(wall, &cpu.shared)
    }

    fn judge_look(&self, look: &Look, mut alone: Option<Contrast>) -> RegressionLook {
        let shared = look.contrasts[0].clone();
        if let Some(contrast) = alone
            .as_mut()
            .filter(|c| c.interval.high <= self.question.delta)
        {
            contrast.caveats = contrast.caveats.only_slower(self.question.delta);
        }
        let standing = judge(&shared, alone.as_ref(), self.question.delta);
        RegressionLook {
            pairs: look.blocks,
            shared,
            alone,
            resolution: look.resolution,
            standing,
        }
    }
}

fn judge(shared: &Contrast, alone: Option<&Contrast>, delta: f64) -> Standing {
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
    pub fn has_interval(&self) -> bool {
        let contrast = self.alone.as_ref().unwrap_or(&self.shared);
        contrast.interval.half_width().is_finite()
    }

    /// Does its verdict wait for more pairs, although its interval would decide it?
    fn is_early(&self) -> bool {
        let contrast = self.alone.as_ref().unwrap_or(&self.shared);
        contrast.caveats.is_early || self.shared.caveats.is_early
    }

    /// The estimated factor by which the number of pairs must grow for a verdict; infinite if more
    /// pairs would not help. It is the same if base and head are exchanged.
    #[must_use]
    pub fn work_factor(&self, delta: f64) -> f64 {
        let contrast = self.alone.as_ref().unwrap_or(&self.shared);
        if self.is_early() {
            return (MIN_RUNS_FOR_SAME as f64 / self.pairs as f64).max(1.0);
        }
        if contrast.caveats.withholds() {
            return f64::INFINITY;
        }
        let size = contrast.estimate.abs();
        // To pass, the interval must come to lie below δ; to fail, above it.
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
