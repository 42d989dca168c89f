//! The state of a search: arms, runs, the model's belief, and comparisons in progress.

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
/// Deviate of a 90 % interval of Student's t with three degrees of freedom. Recorded noise has levels
/// that last for several runs, so a few runs carry less information than their number suggests:
/// normal intervals covered 67 to 86 % of the truths.
const T_DEVIATE: f64 = 2.353;
/// Factor by which variances must be widened to get that interval from a normal distribution.
pub(super) const HEAVY_TAILS: f64 = (T_DEVIATE / 1.645) * (T_DEVIATE / 1.645);

/// The prediction of ln(cost) for an arm before its first run.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstPrediction {
    pub(super) mean: f64,
    pub(super) sd: f64,
    /// ln(cost) of the first run.
    pub(super) y: f64,
}

impl FirstPrediction {
    pub(super) fn to_record(self) -> FirstPredictionRecord {
        FirstPredictionRecord {
            predicted: self.mean.exp(),
            low: (self.mean - T_DEVIATE * self.sd).exp(),
            high: (self.mean + T_DEVIATE * self.sd).exp(),
            measured: self.y.exp(),
        }
    }
}

/// A search in progress.
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
    /// By arm: the arm of which it is a move of one thread.
    pub(super) refined_from: Vec<Option<usize>>,
    /// By arm: why it failed, if it did.
    pub(super) invalid: Vec<Option<String>>,
    /// By arm.
    pub(super) first_predictions: Vec<Option<FirstPrediction>>,
    pub(super) model: Surrogate,
    /// Readings of profiling, search and refinement.
    pub(super) readings: Vec<Reading>,
    /// Readings of the confirmation.
    pub(super) fresh: Vec<Reading>,
    pub(super) runs: Vec<SearchRun>,
    pub(super) blocks: usize,
    pub(super) belief: Option<Belief>,
    pub(super) standing: Option<Standing>,
    pub(super) progress: Vec<ProgressPoint>,
    /// The leader's comparison with `os-default`.
    pub(super) pairs: Option<Pairs>,
    /// The comparison of the best shape with itself on other CPUs.
    pub(super) others: Option<Others>,
    /// The comparison of the best arm with one that has fewer resources.
    pub(super) proposal: Option<Proposal>,
    /// Did the search end because hardly any arm can beat the leader?
    pub(super) is_settled: bool,
    /// Did the shape run that is least like those before it?
    pub(super) has_tried_farthest: bool,
    /// Arms that cannot lead: moves that did not beat the leader, and the best shape on other CPUs.
    pub(super) dropped: Vec<usize>,
    /// Number of placements by number of threads.
    pub(super) counts: Vec<SpaceRecord>,
}

/// Why the search ends early.
pub(super) enum Halt {
    /// The record says why.
    Stopped(Stopped),
    /// There is no record.
    Error(StudyError),
}

impl From<StudyError> for Halt {
    fn from(error: StudyError) -> Self {
        Self::Error(error)
    }
}

/// An arm with fewer resources, compared with the best.
#[derive(Debug)]
pub(super) struct Proposal {
    pub(super) arm: usize,
    pub(super) best: usize,
    pub(super) pairs: Pairs,
}

impl Proposal {
    pub(super) fn add_run(&mut self, arm: usize, block: usize, y: f64) {
        self.pairs.add_run(arm == self.best, block, y);
    }

    pub(super) fn is_confirmed(&self, limit: f64) -> bool {
        self.pairs.interval().is_some_and(|(_, high)| high < limit)
    }

    pub(super) fn is_refuted(&self, limit: f64) -> bool {
        self.pairs.interval().is_some_and(|(low, _)| low > limit)
    }
}

/// Comparisons of an arm with the same shape on other CPUs.
#[derive(Debug)]
pub(super) struct Others {
    /// The arm.
    pub(super) against: usize,
    /// By set of other CPUs.
    pub(super) tried: Vec<Pairs>,
    /// If `os-default` led: other CPUs that are faster, compared with it.
    pub(super) over_default: Option<Pairs>,
}

impl Others {
    pub(super) fn add_run(&mut self, arm: usize, block: usize, y: f64) {
        match (&mut self.over_default, self.tried.last_mut()) {
            (Some(pairs), _) => pairs.add_run(arm == DEFAULT, block, y),
            (None, Some(pairs)) => pairs.add_run(arm == self.against, block, y),
            (None, None) => {}
        }
    }
}
