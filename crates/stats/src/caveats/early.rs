//! Claims that wait for more blocks, since their caveats cannot be known yet. Waiting only
//! withholds; it never makes a claim.

use super::time::ln_time;
use super::{BlockWithPredecessor, Circumstances, JudgedContrast, part};
use crate::decision::Decision;
use crate::describe::{mean, median};
use crate::paired::hodges_lehmann;
use crate::{Responses, interaction};
use std::f64::consts::PI;

/// With fewer blocks than this, an after-effect may escape its test.
const FEW_BLOCKS: usize = 16;
/// An after-effect of at least this many standard deviations postpones a claim.
const SUSPICIOUS: f64 = 1.5;
/// The same for a fading difference, in few blocks, in more and in many: 10 % that are gone after
/// sixty blocks stand out from noise of 1 % after twenty.
const FADING: [(usize, f64); 3] = [(FEW_BLOCKS, 0.5), (32, 1.0), (usize::MAX, 1.25)];
/// A difference of this many standard deviations of the differences is seen in a few blocks, in
/// which a slow fade looks like noise: it also waits until no trend could undo it.
const STANDS_OUT: f64 = 2.5;
/// How much steeper than seen a trend may be, in its standard errors, and how many blocks it may go
/// on for. Chosen by replay: see the fades in docs/benchmarks.md.
const STEEPER: f64 = 0.7;
const BLOCKS_AHEAD: f64 = 120.0;
/// A difference whose second half is at least this share of its first does not
/// fade.
const STEADY: f64 = 0.97;
/// How much of the effect elsewhere must remain when an arm followed itself. With [`APART`] chosen
/// by replay: see the after-effects in docs/benchmarks.md.
const LEFT_OVER: f64 = 0.5;
/// Minimum distance of the two in standard errors.
const APART: f64 = 2.0;
/// A tenth of the runs that are far slower is missed by this many with one chance in ten (0.9²² =
/// 0.098): two arms are not called the same earlier.
pub(super) const MIN_RUNS_FOR_SAME: usize = 22;

impl JudgedContrast {
    /// Before the end, should a verdict wait for some more blocks? A fading difference may be gone
    /// soon, with few blocks an after-effect may make a claim before its own test can find it, and
    /// rare slow runs may not have occurred yet.
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
        let against = |z: Option<f64>, limit: f64| z.is_some_and(|z| z * side < -limit);
        let count = differences.len();
        let is_few = count < FEW_BLOCKS;
        let of_count = FADING.iter().find(|(below, _)| count < *below);
        let limit = of_count.map_or(f64::INFINITY, |(_, limit)| *limit);
        let by_time = interaction::z(differences, &ln_time(count));
        if against(by_time, limit) && !is_steady(differences)
            || may_be_undone(differences, self.blocks_left)
        {
            return true;
        }
        self.known_blocks(data, around).is_some_and(|known| {
            is_few && against(self.left_behind_z(&known), SUSPICIOUS)
                || self.needs_the_other(&known)
        })
    }

    /// Is the effect far smaller in blocks in which one of the two ran after itself? An
    /// after-effect as large as the claim shows this long before its own test finds it.
    fn needs_the_other(&self, known: &[BlockWithPredecessor]) -> bool {
        let all: Vec<f64> = known.iter().map(|block| block.difference).collect();
        [true, false].into_iter().any(|is_arm_first| {
            let is_own = |at: usize| {
                let block = &known[at];
                block.is_even(self.arm, self.baseline) && block.is_arm_first == is_arm_first
            };
            let (own, rest) = (part(&all, is_own), part(&all, |at| !is_own(at)));
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
            of_own / of_rest < LEFT_OVER && (of_own - of_rest).abs() > APART * error
        })
    }
}

/// Is hardly any of the difference gone in the second half?
fn is_steady(differences: &[f64]) -> bool {
    let (early, late) = differences.split_at(differences.len() / 2);
    hodges_lehmann(late) / hodges_lehmann(early) >= STEADY
}

/// Would a trend that the blocks so far do not rule out bring the difference to nothing while the
/// remaining ones run?
fn may_be_undone(differences: &[f64], blocks_left: f64) -> bool {
    let typical = hodges_lehmann(differences);
    let distances: Vec<f64> = differences.iter().map(|d| (d - typical).abs()).collect();
    // From the mean distance: the standard deviation if the values are normal.
    let spread = (0.5 * PI).sqrt() * mean(&distances);
    if typical.abs() < STANDS_OUT * spread {
        return false;
    }
    let count = differences.len() as f64;
    let (early, late) = differences.split_at(differences.len() / 2);
    let seen = (hodges_lehmann(late) - hodges_lehmann(early)) * typical.signum();
    let error = 2.0 * spread / count.sqrt();
    // The middles of the halves are half of the blocks apart.
    let per_block = (seen.min(0.0) - STEEPER * error) / (0.5 * count);
    let ahead = 0.5 * count + blocks_left.min(BLOCKS_AHEAD);
    typical.abs() + per_block * ahead < 0.0
}
