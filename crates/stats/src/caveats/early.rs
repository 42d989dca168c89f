//! Decides which claims wait for more blocks, since their caveats cannot be known yet. Waiting only
//! withholds claims and never makes one.

use super::time::ln_time;
use super::{BlockWithPredecessor, Circumstances, JudgedContrast, select};
use crate::decision::Decision;
use crate::describe::{mean, median};
use crate::paired::hodges_lehmann;
use crate::{Responses, interaction};
use std::f64::consts::PI;

/// With fewer blocks than this, an after-effect may escape its test.
const FEW_BLOCKS: usize = 16;
/// An after-effect of at least this many standard deviations postpones a claim.
const SUSPICIOUS_AFTER_EFFECT: f64 = 1.5;
/// A fading difference of at least so many standard deviations postpones a claim, each with the
/// number of blocks below which it applies. A difference of 10 % that is gone after sixty blocks is
/// detected after twenty if noise is 1 %.
const SUSPICIOUS_FADE: [(usize, f64); 3] = [(FEW_BLOCKS, 0.5), (32, 1.0), (usize::MAX, 1.25)];
/// A difference of this many standard deviations of the differences would be claimed after a few
/// blocks, in which a slow fade looks like noise. So it also waits until no plausible trend undoes
/// it.
const LARGE_DIFFERENCE: f64 = 2.5;
/// A plausible trend may be this many of its standard errors steeper than its estimate, …
const STEEPER: f64 = 0.7;
/// … and go on for at most this many blocks. Both were chosen by replay: see the fades in
/// docs/benchmarks.md.
const MAX_BLOCKS_AHEAD: f64 = 120.0;
/// A difference does not fade if that of the second half is at least this share of the first half's.
const MIN_STEADY_SHARE: f64 = 0.97;
/// An after-effect is suspected if the effect after the same arm is below this share of the effect
/// in other blocks …
const MIN_OWN_SHARE: f64 = 0.5;
/// … and differs from it by more than this many standard errors. Both were chosen by replay: see the
/// after-effects in docs/benchmarks.md.
const MIN_ERRORS_APART: f64 = 2.0;
/// Two arms are not called the same after fewer runs: if a tenth of the runs is far slower, the
/// chance that this many runs include none is one in ten (0.9²² = 0.098).
pub(crate) const MIN_RUNS_FOR_SAME: usize = 22;

impl JudgedContrast {
    /// Should a verdict before the end wait for some more blocks? A difference may fade, an
    /// after-effect may cause a claim before its own test can detect it, and rare slow runs may not
    /// have occurred yet.
    pub(super) fn is_early(
        &self,
        data: &Responses,
        differences: &[f64],
        around: &Circumstances,
    ) -> bool {
        if self.is_last() || self.decision == Decision::Undecided {
            return false;
        }
        if self.decision == Decision::Same {
            return differences.len() < MIN_RUNS_FOR_SAME;
        }
        let side = hodges_lehmann(differences).signum();
        let is_against = |z: Option<f64>, limit: f64| z.is_some_and(|z| z * side < -limit);
        let count = differences.len();
        let is_few = count < FEW_BLOCKS;
        let of_count = SUSPICIOUS_FADE.iter().find(|(below, _)| count < *below);
        let limit = of_count.map_or(f64::INFINITY, |(_, limit)| *limit);
        let by_time = interaction::z_of_dependence(differences, &ln_time(count));
        if is_against(by_time, limit) && !is_steady(differences)
            || may_be_undone(differences, self.blocks_left)
        {
            return true;
        }
        self.list_known_blocks(data, around).is_some_and(|known| {
            is_few && is_against(self.left_behind_z(&known), SUSPICIOUS_AFTER_EFFECT)
                || self.is_small_after_itself(&known)
        })
    }

    /// Is the effect far smaller in blocks in which one of the arms ran after itself? An after-effect
    /// as large as the claim shows itself here long before its own test can detect it.
    fn is_small_after_itself(&self, known: &[BlockWithPredecessor]) -> bool {
        let all: Vec<f64> = known.iter().map(|block| block.difference).collect();
        [true, false].into_iter().any(|is_arm_first| {
            let is_own = |at: usize| {
                let block = &known[at];
                block.is_even(self.arm, self.baseline) && block.is_arm_first == is_arm_first
            };
            let (own, rest) = (select(&all, is_own), select(&all, |at| !is_own(at)));
            if own.is_empty() || rest.is_empty() {
                return false;
            }
            let (of_own, of_rest) = (hodges_lehmann(&own), hodges_lehmann(&rest));
            let residuals: Vec<f64> = (0..all.len())
                .map(|at| (all[at] - if is_own(at) { of_own } else { of_rest }).abs())
                .collect();
            // From the median distance: the standard deviation if the values are normal.
            let spread = 1.4826 * median(&residuals).unwrap_or(0.0);
            let error = spread * (1.0 / own.len() as f64 + 1.0 / rest.len() as f64).sqrt();
            of_own / of_rest < MIN_OWN_SHARE && (of_own - of_rest).abs() > MIN_ERRORS_APART * error
        })
    }
}

/// Is the difference in the second half hardly smaller than in the first?
fn is_steady(differences: &[f64]) -> bool {
    let (early, late) = differences.split_at(differences.len() / 2);
    hodges_lehmann(late) / hodges_lehmann(early) >= MIN_STEADY_SHARE
}

/// Would a trend that the blocks so far do not rule out bring the difference to nothing while the
/// remaining ones run?
fn may_be_undone(differences: &[f64], blocks_left: f64) -> bool {
    let typical = hodges_lehmann(differences);
    let distances: Vec<f64> = differences.iter().map(|d| (d - typical).abs()).collect();
    // From the mean distance: the standard deviation if the values are normal.
    let spread = (0.5 * PI).sqrt() * mean(&distances);
    if typical.abs() < LARGE_DIFFERENCE * spread {
        return false;
    }
    let count = differences.len() as f64;
    let (early, late) = differences.split_at(differences.len() / 2);
    let seen = (hodges_lehmann(late) - hodges_lehmann(early)) * typical.signum();
    let error = 2.0 * spread / count.sqrt();
    // The middles of the halves are half of the blocks apart.
    let per_block = (seen.min(0.0) - STEEPER * error) / (0.5 * count);
    let ahead = 0.5 * count + blocks_left.min(MAX_BLOCKS_AHEAD);
    typical.abs() + per_block * ahead < 0.0
}
