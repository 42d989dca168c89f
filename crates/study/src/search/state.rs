//! The state of a search: what was run, what is believed, what is proposed.

use std::time::Duration;

use super::choice::{DEFAULT, Standing};
use super::features::UnitMap;
use super::pairs::Pairs;
use super::past::Past;
use super::{Candidate, Observer, SearchPlan};
use crate::error::StudyError;
use pinwise_machine::CommandRunner;
use pinwise_placement::space::Space;
use pinwise_record::{FirstPredictionRecord, ProgressPoint, SearchRun, SpaceRecord, Stopped};
use pinwise_stats::surrogate::{Belief, Reading, Surrogate};
use pinwise_topology::Topology;

/// Probability of a better arm at which the search stops.
pub(super) const ERROR: f64 = 0.05;
/// The tail of a 90 % interval on either side.
pub(super) const TAIL: f64 = 0.05;
/// Deviate of a 90 % interval of Student's t with three degrees of freedom.
/// Noise that was recorded comes in levels that last for several runs, so that
/// few of them are worth less than their number: normal intervals held 67 to 86
/// % of the truths there.
const NINETY: f64 = 2.353;
/// The same relative to the normal distribution, as a factor of variances.
pub(super) const HEAVY_TAILS: f64 = (NINETY / 1.645) * (NINETY / 1.645);

/// The prediction for an arm before its first run.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstPrediction {
    pub(super) mean: f64,
    pub(super) sd: f64,
    /// ln(cost) of that run.
    pub(super) y: f64,
}

impl FirstPrediction {
    pub(super) fn record(self) -> FirstPredictionRecord {
        FirstPredictionRecord {
            predicted: self.mean.exp(),
            low: (self.mean - NINETY * self.sd).exp(),
            high: (self.mean + NINETY * self.sd).exp(),
            measured: self.y.exp(),
        }
    }
}

/// A search on its way.
pub(super) struct Engine<'a> {
    pub(super) plan: &'a SearchPlan,
    pub(super) machine: &'a mut dyn CommandRunner,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) topology: &'a Topology,
    pub(super) space: &'a Space,
    pub(super) unit_map: &'a UnitMap<'a>,
    pub(super) past: Past,
    pub(super) started: Duration,
    pub(super) arms: Vec<Candidate>,
    pub(super) refined_from: Vec<Option<usize>>,
    pub(super) invalid: Vec<Option<String>>,
    pub(super) first_predictions: Vec<Option<FirstPrediction>>,
    pub(super) model: Surrogate,
    pub(super) readings: Vec<Reading>,
    /// The readings of the confirmation.
    pub(super) fresh: Vec<Reading>,
    pub(super) runs: Vec<SearchRun>,
    pub(super) blocks: usize,
    pub(super) belief: Option<Belief>,
    pub(super) standing: Option<Standing>,
    pub(super) progress: Vec<ProgressPoint>,
    pub(super) pairs: Option<Pairs>,
    pub(super) others: Option<Others>,
    pub(super) proposal: Option<Proposal>,
    pub(super) is_settled: bool,
    /// Was the shape run that is least like those before it?
    pub(super) has_tried_farthest: bool,
    /// Arms that cannot lead: moves that did not earn it, and other CPUs that were tried for the
    /// best shape.
    pub(super) dropped: Vec<usize>,
    /// Number of placements.
    pub(super) counts: Vec<SpaceRecord>,
}

/// Why the search goes no further.
pub(super) enum Halt {
    /// An ordinary end.
    Stopped(Stopped),
    /// No record.
    Error(StudyError),
}

impl From<StudyError> for Halt {
    fn from(error: StudyError) -> Self {
        Self::Error(error)
    }
}

/// A proposal beside the best.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) arm: usize,
    pub(super) best: usize,
    pub(super) pairs: Pairs,
}

impl Proposal {
    pub(super) fn take(&mut self, arm: usize, block: usize, y: f64) {
        self.pairs.take(arm == self.best, block, y);
    }

    pub(super) fn is_confirmed(&self, limit: f64) -> bool {
        self.pairs.interval().is_some_and(|(_, high)| high < limit)
    }

    pub(super) fn is_refuted(&self, limit: f64) -> bool {
        self.pairs.interval().is_some_and(|(low, _)| low > limit)
    }
}

/// Pairs of an arm and its shape on other CPUs.
#[derive(Debug)]
pub(super) struct Others {
    pub(super) against: usize,
    pub(super) tried: Vec<Pairs>,
    /// If `os-default` led: other CPUs that are faster, compared with it.
    pub(super) over_default: Option<Pairs>,
}

impl Others {
    pub(super) fn take(&mut self, arm: usize, block: usize, y: f64) {
        match (&mut self.over_default, self.tried.last_mut()) {
            (Some(pairs), _) => pairs.take(arm == DEFAULT, block, y),
            (None, Some(pairs)) => pairs.take(arm == self.against, block, y),
            (None, None) => {}
        }
    }
}
