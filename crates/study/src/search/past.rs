//! Runs that were made before a search was cut off.

use std::collections::VecDeque;
use std::time::Duration;

use crate::compare::{Moment, Trial};
use pinwise_machine::{CommandRunner, MachineError};
use pinwise_record::{RunRecord, SearchRecord, SearchRun, SearchStep};

/// Runs to be replayed, in order; those of the confirmation separately, since more may be searched
/// before it than the first time.
#[derive(Debug, Default)]
pub(super) struct Past {
    search: VecDeque<SearchRun>,
    confirmation: VecDeque<SearchRun>,
    failures: Vec<Option<String>>,
    /// Are they repeated, since nothing else restores the machine's state?
    is_played: bool,
    /// When the last replayed run had ended.
    reached: Duration,
    /// Their time, if they are not repeated.
    before: Duration,
}

impl Past {
    pub(super) fn from_record(record: Option<&SearchRecord>, is_simulated: bool) -> Self {
        let Some(record) = record else {
            return Self::default();
        };
        let (confirmation, search): (VecDeque<SearchRun>, VecDeque<SearchRun>) = record
            .runs
            .iter()
            .cloned()
            .partition(|run| run.step.is_confirmation());
        Self {
            search,
            confirmation,
            failures: record.arms.iter().map(|arm| arm.invalid.clone()).collect(),
            is_played: is_simulated,
            reached: Duration::ZERO,
            before: if is_simulated {
                Duration::ZERO
            } else {
                Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default()
            },
        }
    }

    /// Time that was spent before, and is not spent again.
    pub(super) fn before(&self) -> Duration {
        if self.search.is_empty() {
            self.before
        } else {
            Duration::ZERO
        }
    }

    /// While runs are replayed: when they had ended.
    pub(super) fn reached(&self) -> Duration {
        if self.search.is_empty() {
            Duration::ZERO
        } else {
            self.reached
        }
    }

    /// The next run: an earlier one if it is the same, else a new one. Why it failed, if it did.
    pub(super) fn run(
        &mut self,
        trial: &Trial<'_>,
        step: SearchStep,
        arm: usize,
        moment: Moment,
        machine: &mut dyn CommandRunner,
        started: Duration,
    ) -> Result<(RunRecord, Option<String>), MachineError> {
        let Some(made) = self.take_made(step, arm) else {
            let (mut run, failure) = trial.run(machine, moment, started)?;
            run.at_s += self.before.as_secs_f64();
            return Ok((run, failure.map(|failure| failure.to_string())));
        };
        if self.is_played {
            trial.run(machine, moment, started)?;
        }
        self.reached = Duration::try_from_secs_f64(made.at_s + made.wall_s).unwrap_or_default();
        let failure = match made.metric.cost {
            Some(_) => None,
            None => Some(self.why(arm)),
        };
        Ok((made, failure))
    }

    /// The earlier run at this point. If another run was made, those after it have no meaning any
    /// more.
    fn take_made(&mut self, step: SearchStep, arm: usize) -> Option<RunRecord> {
        let queue = match step {
            step if step.is_confirmation() => &mut self.confirmation,
            _ => &mut self.search,
        };
        let next = queue.pop_front()?;
        if next.arm == arm && next.step == step {
            return Some(next.run);
        }
        queue.clear();
        None
    }

    fn why(&self, arm: usize) -> String {
        let reason = self.failures.get(arm).cloned().flatten();
        reason.unwrap_or_else(|| "it failed before the search was interrupted".to_owned())
    }
}
