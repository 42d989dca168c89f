//! The results of an experiment, before they are put into words.

use std::time::Duration;

use super::outcome::ArmState;
use pinwise_record::{AloneRecord, Stopped};
use pinwise_stats::Responses;
use pinwise_stats::caveats::Circumstances;
use pinwise_stats::confirm::{Contrast, Look, Question};
use pinwise_stats::diagnose::{self, Totals};

/// An arm that was dropped before the end as clearly behind the best: its results until then are
/// valid.
pub(super) struct DroppedArm {
    pub(super) arm: usize,
    /// Its contrast with the baseline at the look that dropped it.
    pub(super) contrast: Contrast,
    /// Number of blocks until then.
    pub(super) blocks: usize,
    pub(super) totals: Option<Totals>,
}

/// Compares totals and tails of two columns of `data`.
pub(super) fn compare_totals(data: &Responses, arm: usize, baseline: usize) -> Option<Totals> {
    let costs = |column: usize| -> Vec<f64> {
        let column = data.column(column);
        column.iter().map(|response| response.exp()).collect()
    };
    diagnose::compare_totals(&costs(arm), &costs(baseline))
}

impl Results {
    /// The CPU time of the only arm against the baseline's, if it was judged.
    pub(super) fn cpu_contrast(&self) -> Option<&Contrast> {
        self.cpu_look.as_ref()?.contrasts.first()
    }
}

/// What the engine measured; the record is written from it.
pub(super) struct Results {
    pub(super) arms: Vec<ArmState>,
    /// Runs of each companion of the plan without the program.
    pub(super) alone: Vec<Vec<AloneRecord>>,
    /// Arms of the columns of `data` and of the look.
    pub(super) columns: Vec<usize>,
    /// Arms that the look no longer has.
    pub(super) dropped: Vec<DroppedArm>,
    pub(super) data: Responses,
    /// Order and load of the runs in the blocks of `data`.
    pub(super) circumstances: Circumstances,
    pub(super) look: Option<Look>,
    /// The question to the statistics.
    pub(super) question: Question,
    /// The last look at CPU time, if that was judged as well.
    pub(super) cpu_look: Option<Look>,
    pub(super) confirmation_time: Duration,
    pub(super) screened: usize,
    pub(super) warmup_blocks: usize,
    pub(super) throttled_blocks: usize,
    pub(super) stopped: Stopped,
    pub(super) elapsed: Duration,
}
