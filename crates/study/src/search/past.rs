//! The runs of an interrupted search, which a resumed one takes instead of running them again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::compare::{Moment, Trial};
use pinwise_machine::{CommandRunner, MachineError};
use pinwise_record::{RunRecord, SearchRecord, SearchRun, SearchStep};

/// Runs to be replayed, in order. Those of the confirmation are separate, since the resumed search may
/// run more before it.
#[derive(Debug, Default)]
pub(super) struct Past {
    search: VecDeque<SearchRun>,
    confirmation: VecDeque<SearchRun>,
    failures: Vec<Option<String>>,
    /// Are they repeated on the machine, to restore its state?
    is_repeated: bool,
    /// When the last replayed run had ended, since the start of the search.
    replayed_until: Duration,
    /// Time of the interrupted search, if its runs are not repeated.
    spent: Duration,
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
            is_repeated: is_simulated,
            replayed_until: Duration::ZERO,
            spent: if is_simulated {
                Duration::ZERO
            } else {
                Duration::try_from_secs_f64(record.elapsed_s).unwrap_or_default()
            },
        }
    }

    /// Time of the interrupted search, once all its runs are replayed.
    pub(super) fn time_spent(&self) -> Duration {
        if self.search.is_empty() {
            self.spent
        } else {
            Duration::ZERO
        }
    }

    /// While runs are replayed: when the last of them had ended.
    pub(super) fn replayed_until(&self) -> Duration {
        if self.search.is_empty() {
            Duration::ZERO
        } else {
            self.replayed_until
        }
    }

    /// The next run, and why it failed if it did: that of the interrupted search if it ran the same
    /// arm at this point, else a new one.
    pub(super) fn replay_or_run(
        &mut self,
        trial: &Trial<'_>,
        step: SearchStep,
        arm: usize,
        moment: Moment,
        machine: &mut dyn CommandRunner,
        started: Duration,
    ) -> Result<(RunRecord, Option<String>), MachineError> {
        let Some(replayed) = self.take_replayed(step, arm) else {
            let (mut run, failure) = trial.run(machine, moment, started)?;
            run.at_s += self.spent.as_secs_f64();
            return Ok((run, failure.map(|failure| failure.to_string())));
        };
        if self.is_repeated {
            trial.run(machine, moment, started)?;
        }
        let end_s = replayed.at_s + replayed.wall_s;
        self.replayed_until = Duration::try_from_secs_f64(end_s).unwrap_or_default();
        let failure = match replayed.metric.cost {
            Some(_) => None,
            None => Some(self.failure_of(arm)),
        };
        Ok((replayed, failure))
    }

    /// The earlier run at this point. If it was another one, it and all later ones are discarded.
    fn take_replayed(&mut self, step: SearchStep, arm: usize) -> Option<RunRecord> {
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

    fn failure_of(&self, arm: usize) -> String {
        let reason = self.failures.get(arm).cloned().flatten();
        reason.unwrap_or_else(|| "it failed before the search was interrupted".to_owned())
    }
}
