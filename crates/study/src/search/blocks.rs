//! Blocks of runs, and the result of each run.

use std::time::Duration;

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Progress;
use super::choice::DEFAULT;
use super::state::{Engine, FirstPrediction, Halt};
use crate::compare::{Moment, PADDING, Trial, name_output_of_run};
use crate::error::StudyError;
use pinwise_machine::MachineError;
use pinwise_record::{Phase, SearchRun, SearchStep, Stopped};
use pinwise_stats::surrogate::{Belief, Reading};

impl Engine<'_> {
    /// Runs every arm once, in random order. A failed run does not count; the other arms' runs do.
    pub(super) fn run_block(&mut self, step: SearchStep, arms: &[usize]) -> Result<(), Halt> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.plan.seed);
        rng.set_stream(2 + self.blocks as u64);
        let mut order = arms.to_vec();
        order.shuffle(&mut rng);
        for (slot, &arm) in order.iter().enumerate() {
            if self.invalid[arm].is_some() {
                continue;
            }
            let moment = Moment {
                phase: match step {
                    SearchStep::Warmup => Phase::Warmup,
                    step if step.is_confirmation() => Phase::Confirmation,
                    _ => Phase::Screening,
                },
                block: self.blocks,
                order: slot,
                block_runs: arms.len(),
                at: Duration::ZERO,
            };
            let padding = rng.random_range(0..PADDING);
            self.run_arm(step, arm, moment, padding)?;
        }
        self.blocks += 1;
        let record = self.record(None);
        self.observer.block(&record);
        Ok(())
    }

    fn run_arm(
        &mut self,
        step: SearchStep,
        arm: usize,
        moment: Moment,
        padding: usize,
    ) -> Result<(), Halt> {
        self.report_progress(step, arm);
        let plan = &self.arms[arm];
        let run_name = format!("{}-{:04}", step_name(step), moment.block);
        let trial = Trial {
            workload: &plan.workload,
            place: &plan.place,
            binding: None,
            settings: &[],
            companion: None,
            metric: &self.plan.metric,
            output: name_output_of_run(&self.plan.output, &plan.name, &run_name),
            padding,
        };
        let outcome =
            self.past
                .replay_or_run(&trial, step, arm, moment, self.machine, self.started);
        let (run, failure) = match outcome {
            Ok(outcome) => outcome,
            Err(MachineError::Interrupted) => return Err(Halt::Stopped(Stopped::Interrupted)),
            Err(error) => return Err(Halt::Error(error.into())),
        };
        if let Some(cost) = run.metric.cost.filter(|_| failure.is_none()) {
            self.add_cost(step, arm, moment.block, cost);
        }
        self.runs.push(SearchRun { arm, step, run });
        match failure {
            Some(failure) => self.exclude_failed(arm, failure),
            None => Ok(()),
        }
    }

    /// Adds the cost of a run to the figures of its step.
    fn add_cost(&mut self, step: SearchStep, arm: usize, block: usize, cost: f64) {
        let y = cost.ln();
        match step {
            SearchStep::Warmup => {}
            SearchStep::Confirmation => {
                if let Some(pairs) = &mut self.pairs {
                    pairs.add_run(arm == DEFAULT, block, y);
                }
                self.fresh.push(Reading { arm, block, y });
            }
            SearchStep::OtherCpus => {
                if let Some(others) = &mut self.others {
                    others.add_run(arm, block, y);
                }
            }
            SearchStep::Least => {
                if let Some(proposal) = &mut self.proposal {
                    proposal.add_run(arm, block, y);
                }
            }
            SearchStep::Profiling | SearchStep::Search | SearchStep::Refinement => {
                let is_first = self.readings.iter().all(|reading| reading.arm != arm);
                let has_prediction = |belief: &&Belief| is_first && arm < belief.arms();
                if let Some(belief) = self.belief.as_ref().filter(has_prediction) {
                    self.first_predictions[arm] = Some(FirstPrediction {
                        mean: belief.arm(arm).mean,
                        sd: belief.run_sd(arm),
                        y,
                    });
                }
                self.readings.push(Reading { arm, block, y });
            }
        }
    }

    /// Excludes an arm that failed, with its earlier runs; without `os-default` the search ends.
    fn exclude_failed(&mut self, arm: usize, failure: String) -> Result<(), Halt> {
        let name = &self.arms[arm].name;
        if arm == DEFAULT {
            return Err(Halt::Error(StudyError::Failed(format!(
                "{name}: {failure}"
            ))));
        }
        self.observer.warn(&format!("{name}: {failure}"));
        self.readings.retain(|reading| reading.arm != arm);
        self.invalid[arm] = Some(failure);
        Ok(())
    }

    fn report_progress(&mut self, step: SearchStep, arm: usize) {
        let leader = self.standing.as_ref();
        let progress = Progress {
            step: step_name(step),
            runs: self.runs.len(),
            most_runs: self.plan.max_runs,
            arm: &self.arms[arm].name,
            leader: leader.map(|s| (self.arms[s.leader].name.as_str(), s.probability_of_better())),
        };
        self.observer.progress(&progress);
    }
}

const fn step_name(step: SearchStep) -> &'static str {
    match step {
        SearchStep::Warmup => "warm-up",
        SearchStep::Profiling => "profiling",
        SearchStep::Search => "search",
        SearchStep::Refinement => "refinement",
        SearchStep::Confirmation => "confirmation",
        SearchStep::OtherCpus => "other-cpus",
        SearchStep::Least => "least",
    }
}
