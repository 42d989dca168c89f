//! The state of a comparison after a look, and which arms it no longer needs.

use super::caveats::Caveats;
use super::decision::Decision;
use super::paired::Interval;
use super::resolution::Resolution;

/// Two columns that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The one that is judged.
    pub arm: usize,
    /// What it is compared with.
    pub baseline: usize,
}

/// The comparison of one arm with its baseline at a look; sizes are `ln(ratio)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Contrast {
    /// Column of the arm.
    pub arm: usize,
    /// Column of what it is compared with.
    pub baseline: usize,
    /// Estimate of `ln(arm / baseline)`.
    pub estimate: f64,
    /// Interval that is valid at all looks together.
    pub interval: Interval,
    /// Confidence of this interval over all looks: 1 − α/m, where Holm divided α by m.
    pub confidence: f64,
    /// p-value adjusted for all arms and looks: at most α exactly when the interval excludes 0.
    pub p_adjusted: f64,
    /// Nominal level at which this look was judged.
    pub nominal_level: f64,
    /// The decision, caveats considered.
    pub decision: Decision,
    /// Caveats on the decision by the interval alone.
    pub caveats: Caveats,
}

impl Contrast {
    /// The same seen from the other side: the baseline against the arm.
    #[must_use]
    pub fn reversed(self) -> Self {
        let Interval { low, high } = self.interval;
        Self {
            arm: self.baseline,
            baseline: self.arm,
            estimate: -self.estimate,
            interval: Interval {
                low: -high,
                high: -low,
            },
            decision: match self.decision {
                Decision::Faster => Decision::Slower,
                Decision::Slower => Decision::Faster,
                other => other,
            },
            ..self
        }
    }
}

/// The state of the comparison after a look.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Number of blocks looked at.
    pub blocks: usize,
    /// One per pair of columns that is compared.
    pub contrasts: Vec<Contrast>,
    /// Column with the lowest estimated cost, of the baseline and those that compete with it.
    pub winner: usize,
    /// By how much each column is at least behind the winner of those that it competes with,
    /// `ln(ratio)`: 0 for the winner itself, negative if it may be ahead.
    pub behind: Vec<f64>,
    /// Is every arm decided, and does no other beat the winner by δ? Then no more runs are needed.
    pub is_settled: bool,
    /// The step size of the figure, if it is coarse.
    pub resolution: Option<Resolution>,
}

/// An arm is clearly behind the best from this many times the smallest effect on.
const CLEARLY: f64 = 3.0;

impl Look {
    /// Contrasts of arms that more blocks cannot make the best: they are at least three times `delta`
    /// behind the best, without caveats, and either decided or no longer needed, as the best is
    /// shown to be better than the baseline.
    pub fn clearly_behind(&self, delta: f64) -> impl Iterator<Item = &Contrast> {
        let winner = self.contrasts.iter().find(|c| c.arm == self.winner);
        let is_sure = winner.is_none_or(|winner| !winner.caveats.withholds());
        let is_better = winner.is_some_and(|winner| winner.decision == Decision::Faster);
        self.contrasts.iter().filter(move |contrast| {
            let behind = self.behind.get(contrast.arm).copied().unwrap_or(0.0);
            let may_go = is_better || contrast.decision != Decision::Undecided;
            is_sure && may_go && behind >= CLEARLY * delta && !contrast.caveats.withholds()
        })
    }

    /// The look at only the columns `kept` (ascending, winner and baseline among them). `delta` is
    /// the smallest effect of interest, `ln(ratio)`.
    #[must_use]
    pub fn with_columns(mut self, kept: &[usize], delta: f64) -> Self {
        let place = |column: usize| kept.iter().position(|&k| k == column);
        self.contrasts.retain_mut(|contrast| {
            let new = place(contrast.arm).zip(place(contrast.baseline));
            (contrast.arm, contrast.baseline) = new.unwrap_or_default();
            new.is_some()
        });
        self.winner = place(self.winner).unwrap_or(0);
        self.behind = kept.iter().map(|&column| self.behind[column]).collect();
        self.settle_within(delta)
    }

    /// The same look for only the columns that compete with each other, the first of which is
    /// their baseline.
    #[must_use]
    pub fn among(mut self, rivals: &[usize]) -> Self {
        let is_rival = |column: usize| rivals.contains(&column);
        self.contrasts
            .retain(|contrast| is_rival(contrast.arm) && is_rival(contrast.baseline));
        self.winner = lowest_cost(rivals, &self.contrasts);
        for (column, behind) in self.behind.iter_mut().enumerate() {
            *behind = if is_rival(column) { *behind } else { 0.0 };
        }
        self
    }

    /// The most by which another arm may still beat the winner, `ln(ratio)`.
    #[must_use]
    pub fn winner_margin(&self) -> f64 {
        let ahead = self.behind.iter().map(|low| -low);
        ahead.fold(0.0, f64::max)
    }

    /// Sets whether the look is settled, if a difference below `delta` counts as the same.
    pub(super) fn settle_within(mut self, delta: f64) -> Self {
        let mut decisions = self.contrasts.iter().map(|c| c.decision);
        let is_decided = decisions.all(|decision| decision != Decision::Undecided);
        self.is_settled = self.winner_margin() < delta && is_decided;
        self
    }
}

/// Of columns that compete, the first of which is their baseline, the one with the lowest estimated
/// cost.
pub(super) fn lowest_cost(rivals: &[usize], contrasts: &[Contrast]) -> usize {
    let baseline = rivals.first().copied().unwrap_or(0);
    let rival = |c: &&Contrast| c.baseline == baseline && rivals.contains(&c.arm);
    let others = contrasts.iter().filter(rival);
    let all = others.map(|contrast| (contrast.arm, contrast.estimate));
    let better = |best: (usize, f64), next: (usize, f64)| if next.1 < best.1 { next } else { best };
    all.fold((baseline, 0.0), better).0
}
