//! Runs companions without the program, to compare their figures with those beside it.

use std::time::Duration;

use rand::RngExt;

use super::Engine;
use crate::compare::outcome::{Moment, Trial};
use crate::error::StudyError;
use pinwise_machine::{Output, RunSetting};
use pinwise_record::{AloneRecord, MetricReading, Phase};
use pinwise_workload::{Command, Metric, Workload};

/// Time of a run alone before any run beside the companion has finished.
const FIRST_RUN: Duration = Duration::from_secs(1);

/// The runs of companions without the program.
pub(super) struct Companions {
    /// Runs alone in whole blocks, by companion.
    pub(super) alone: Vec<Vec<AloneRecord>>,
    /// Duration of the last run beside a companion.
    pub(super) last_run: Duration,
    /// Of the current block, by companion: before which run it runs alone, and its figure.
    current: Vec<(usize, Option<MetricReading>)>,
    /// By companion; one that failed alone is not tried again.
    failed: Vec<bool>,
}

impl Companions {
    pub(super) fn new(companions: usize) -> Self {
        Self {
            alone: vec![Vec::new(); companions],
            last_run: FIRST_RUN,
            current: Vec::new(),
            failed: vec![false; companions],
        }
    }

    /// Keeps the current block's runs: it is whole.
    pub(super) fn keep_block(&mut self, block: usize) {
        for (alone, (_, metric)) in self.alone.iter_mut().zip(self.current.drain(..)) {
            alone.extend(metric.map(|metric| AloneRecord { block, metric }));
        }
    }
}

impl Engine<'_> {
    /// Draws before which run of a block each companion runs alone; a warm-up has no such run.
    pub(super) fn draw_turns(&mut self, runs: usize, phase: Phase) {
        let companions = match phase {
            Phase::Warmup => 0,
            _ => self.plan.companions.len(),
        };
        self.companions.current = (0..companions)
            .map(|_| (self.order.random_range(0..runs), None))
            .collect();
    }

    /// Runs those companions alone whose turn is before this run of the block.
    pub(super) fn run_companions_alone(&mut self, slot: usize) -> Result<(), StudyError> {
        for number in 0..self.companions.current.len() {
            if self.companions.current[number].0 == slot && !self.companions.failed[number] {
                self.companions.current[number].1 = self.run_alone(number)?;
            }
        }
        Ok(())
    }

    /// Runs one companion for as long as a run of the program takes, beside `sleep` instead of the
    /// program.
    fn run_alone(&mut self, number: usize) -> Result<Option<MetricReading>, StudyError> {
        let plan = self.plan;
        let metric = &plan.companions[number];
        let mut arms = plan.arms.iter();
        let beside = arms.find_map(|arm| arm.companion().filter(|c| c.name == metric.name));
        let seconds = format!("{:.3}", self.companions.last_run.as_secs_f64());
        let sleep = Command::from_argv(vec!["sleep".to_owned(), seconds]);
        let (Some(companion), Ok(sleep)) = (beside, sleep) else {
            return Ok(None);
        };
        let trial = Trial {
            workload: &Workload::new(sleep),
            place: &plan.arms[plan.baseline].place,
            binding: None,
            settings: &[RunSetting::Companion(companion.clone())],
            companion: Some(metric),
            metric: &Metric::wall(),
            output: Output::Discard,
            padding: 0,
        };
        let moment = Moment {
            phase: Phase::Confirmation,
            block: 0,
            order: 0,
            block_runs: 1,
            at: Duration::ZERO,
        };
        let (run, failure) = trial.run(self.machine, moment, self.started)?;
        if let Some(failure) = failure {
            self.companions.failed[number] = true;
            self.observer
                .warn(&format!("{} alone: {failure}", metric.name));
        }
        Ok(run.companion)
    }
}
