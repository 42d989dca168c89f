//! The statistics of comparing arms on a machine that is never quiet: from runs to verdicts.
//!
//! The unit is one run of a fresh process, with the response `y = ln(cost)`. Runs come in *blocks*:
//! every arm once, in random order. All inference uses differences within a block, so that whatever
//! moves whole blocks cancels out (drift, neighbours, turbo). It relies only on the random order,
//! which the experiment controls:
//!
//! * [`judge`]: typical run, mean or percentile; [`paired`]: the typical run;
//! * [`inversion`]: test, estimate and interval from signed scores;
//! * [`signflip`]: the null distribution that follows from the random order;
//! * [`weights`]: blocks run under load count less; [`agreement`]: as long as that
//!   does not change the answer;
//! * [`resolution`]: figures that come in steps;
//! * [`interaction`], [`caveats`]: what a difference depends on, and whether that
//!   contradicts a verdict;
//! * [`sequential`]: looking early without raising the error rate;
//! * [`confirm`]: several arms against a baseline at one family-wise level;
//! * [`anytime`]: pairs without a planned number;
//! * [`fixed_width`], [`chain`]: ratios that do not depend on when an experiment stopped, and
//!   their sums;
//! * [`limit`]: slower by more than a limit, or not;
//! * [`beside`]: CPU time beside wall-clock time;
//! * [`halving`]: screening many arms down to a few;
//! * [`verdict`]: faster, slower, same, undecided, and what to do;
//! * [`surrogate`]: predictions for arms that were never run, from a few runs;
//! * [`steadiness`]: which arm's runs spread less;
//! * [`describe`], [`diagnose`]: spread, drift, outliers, position effects;
//! * [`apart`]: two series that were measured apart in time;
//! * [`outliers`], [`discovery`], [`separate`]: which of many machines differ
//!   from their peers, and what those have in common;
//! * [`welch`]: what other tools would have concluded.
//!
//! Nothing here reads a clock or draws a random number.
//!
//! ```
//! use pinwise_stats::anytime::Sequence;
//! use pinwise_stats::confirm::Decision;
//!
//! // ln(after / before) of twelve pairs, each run side by side.
//! let pairs = [0.04, 0.03, 0.05, 0.04, 0.04, 0.03, 0.05, 0.04, 0.03, 0.05, 0.04, 0.04];
//! // The error is 5 % over all looks together, however many there are.
//! let sequence = Sequence::new(0.05, 0.01, 20);
//! assert_eq!(sequence.decide(&pairs, 0.01), Decision::Slower);
//! assert_eq!(sequence.decide(&pairs[..3], 0.01), Decision::Undecided);
//! ```

pub mod agreement;
pub mod anytime;
pub mod apart;
pub mod beside;
pub mod caveats;
pub mod chain;
#[cfg(test)]
mod coarse_clocks;
pub mod confirm;
mod decision;
pub mod describe;
pub mod diagnose;
pub mod discovery;
pub mod fixed_width;
#[cfg(test)]
mod golden;
pub mod halving;
pub mod interaction;
mod interval;
pub mod inversion;
pub mod judge;
pub mod limit;
mod look;
pub mod neighbour;
pub mod normal;
pub mod outliers;
pub mod paired;
pub mod regression;
pub mod resolution;
pub mod separate;
pub mod sequential;
mod setting;
pub mod signflip;
pub mod steadiness;
pub mod surrogate;
mod tails;
pub mod verdict;
pub mod weights;
pub mod welch;
mod withheld;

/// Responses of an experiment: one row per block, one column per arm, each
/// `ln(cost)`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Responses {
    arms: usize,
    values: Vec<f64>,
}

impl Responses {
    /// An empty experiment over this many arms.
    #[must_use]
    pub const fn new(arms: usize) -> Self {
        Self {
            arms,
            values: Vec::new(),
        }
    }

    /// Adds a block and returns `true`. A block of another length, or with a response that is not
    /// finite, is left out as a whole, and `false` is returned.
    pub fn push(&mut self, block: &[f64]) -> bool {
        let is_whole = block.len() == self.arms && block.iter().all(|y| y.is_finite());
        if is_whole {
            self.values.extend_from_slice(block);
        }
        is_whole
    }

    /// Number of blocks.
    #[must_use]
    pub const fn blocks(&self) -> usize {
        if self.arms == 0 {
            return 0;
        }
        self.values.len() / self.arms
    }

    /// Number of arms.
    #[must_use]
    pub const fn arms(&self) -> usize {
        self.arms
    }

    /// The responses of each block.
    pub fn rows(&self) -> impl Iterator<Item = &[f64]> {
        self.values.chunks_exact(self.arms.max(1))
    }

    /// The responses of one arm, block by block.
    #[must_use]
    pub fn column(&self, arm: usize) -> Vec<f64> {
        self.rows().map(|row| row[arm]).collect()
    }

    /// `y(arm) − y(baseline)`, block by block.
    #[must_use]
    pub fn differences(&self, arm: usize, baseline: usize) -> Vec<f64> {
        self.rows().map(|row| row[arm] - row[baseline]).collect()
    }
}
