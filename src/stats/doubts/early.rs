//! Claims that wait for more blocks: what speaks against them cannot be known
//! yet. Waiting only withholds; it never makes a claim.

use super::{Circumstances, Judged, Known, ln_time, part};
use crate::stats::confirm::Decision;
use crate::stats::describe::median;
use crate::stats::paired::hodges_lehmann;
use crate::stats::{Responses, interaction};

/// Of fewer blocks than this, an after-effect may hide from its test.
const FEW_BLOCKS: usize = 16;
/// Standard deviations from which on a claim is put off.
const SUSPICIOUS: f64 = 1.5;
/// Of fewer blocks than this, the effect where an arm followed itself is looked
/// at before a claim. With [`LEFT_OVER`] and [`APART`] chosen by replay: an arm that
/// gains 5 % after the other is found in 87 % of experiments, 54 % without, for
/// 1 to 2 % more blocks of clean ones (`docs/method.md`).
const FEW_OWN: usize = 24;
/// Share of the effect elsewhere that has to be left where an arm followed itself.
const LEFT_OVER: f64 = 0.5;
/// Standard errors that the two have to be apart.
const APART: f64 = 2.5;

impl Judged {
    /// Before the end, is a claim worth some more blocks first? A difference that
    /// fades may be gone soon, and in few blocks an after-effect may make a claim
    /// before its own test can find it.
    pub(super) fn is_early(
        &self,
        data: &Responses,
        differences: &[f64],
        around: &Circumstances,
    ) -> bool {
        let is_claim = matches!(self.decision, Decision::Faster | Decision::Slower);
        if self.is_last || !is_claim {
            return false;
        }
        let whole = hodges_lehmann(differences);
        let towards = |z: Option<f64>| z.is_some_and(|z| z * whole.signum() < -SUSPICIOUS);
        let fades = towards(interaction::z(differences, &ln_time(differences.len())));
        if fades || differences.len() >= FEW_OWN {
            return fades;
        }
        self.known(data, around).is_some_and(|known| {
            let is_few = differences.len() < FEW_BLOCKS;
            is_few && towards(self.left_behind(&known)) || self.needs_the_other(&known)
        })
    }

    /// Is the effect, in blocks where one of the two ran after itself, far less
    /// than in the others? An after-effect as large as the claim looks so long
    /// before its own test finds it.
    fn needs_the_other(&self, known: &[Known]) -> bool {
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
            // Of the median distance, the standard deviation where normal.
            let spread = 1.4826 * median(&residuals).unwrap_or(0.0);
            let error = spread * (1.0 / own.len() as f64 + 1.0 / rest.len() as f64).sqrt();
            of_own / of_rest < LEFT_OVER && (of_own - of_rest).abs() > APART * error
        })
    }
}
