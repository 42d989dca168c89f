//! What came of an experiment, before it is put into words.

use std::time::Duration;

use super::outcome::ArmState;
use pinwise_record::Stopped;
use pinwise_stats::Responses;
use pinwise_stats::caveats::Circumstances;
use pinwise_stats::confirm::Look;

/// What the engine hands to the assembly of the record.
pub(super) struct Results {
    pub(super) arms: Vec<ArmState>,
    /// Arms of the columns of `data` and of the look.
    pub(super) columns: Vec<usize>,
    pub(super) data: Responses,
    /// What happened around the runs of the data's blocks.
    pub(super) around: Circumstances,
    pub(super) look: Option<Look>,
    pub(super) confirmation_time: Duration,
    pub(super) screened: usize,
    pub(super) warmup_blocks: usize,
    pub(super) throttled_blocks: usize,
    pub(super) stopped: Stopped,
    pub(super) elapsed: Duration,
}
