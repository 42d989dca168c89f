//! The main job: run arms against each other in randomised blocks until the question is answered or
//! the budget is spent, and report the result.
//!
//! [`ComparePlan`] says what is compared and how; [`run`] carries it out over a
//! [`CommandRunner`](pinwise_machine::CommandRunner) and returns the record;
//! [`trace_arms`] then traces a run of each arm. An
//! [`Observer`] sees every run as it finishes, so that it can be stored and shown before the next
//! one starts; nothing here prints or writes files.

mod advice;
mod answer;
mod assemble;
mod budget;
mod cache_or_clock;
mod caveats;
mod companions;
mod contrast;
mod engine;
mod exits;
mod findings;
mod limit;
mod load;
pub mod noise;
mod outcome;
mod parts;
mod plan;
mod recommendation;
mod results;
mod rivals;
mod steadiness;
mod throttling;
pub(crate) mod timed_out;
mod timing;
mod traced;

pub(crate) use assemble::workload_record;
pub(crate) use engine::record_interrupted;
pub use engine::run;
pub(crate) use findings::{FAR_MEDIANS, all_runs};
pub(crate) use load::{foreign_cpus, report_load};
pub(crate) use outcome::{Moment, Trial, name_output_of_run, read_figures};
pub use outcome::{RunFailure, coverage_record};
pub(crate) use plan::figure_kind;
pub use plan::{ArmPlan, CompanionMetric, ComparePlan, Tuning};
pub(crate) use recommendation::{LOADED_CPUS, withhold_after_runs, withhold_narrow};
pub use traced::trace_arms;

use pinwise_record::{Comparison, RunRecord};
use pinwise_stats::confirm::Look;

/// Largest environment padding, bytes. The padding shifts the stack, whose alignment repeats after
/// one page.
pub(crate) const PADDING: usize = 4096;

/// Receives the events of an experiment.
pub trait Observer {
    /// The experiment begins; the record has the plan and no runs yet.
    fn begin(&mut self, _record: &Comparison) {}

    /// A run of arm number `arm` is over.
    fn run(&mut self, _arm: usize, _run: &RunRecord) {}

    /// A run is about to start.
    fn progress(&mut self, _progress: &Progress<'_>) {}

    /// The user should know this full sentence at once.
    fn warn(&mut self, _sentence: &str) {}

    /// The experiment is over, or its traced runs are.
    fn end(&mut self, _record: &Comparison) {}
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// The progress of an experiment.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// `warm-up`, `screening` or `confirmation`; then `trace`, one block.
    pub phase: &'static str,
    /// Share of the budget used, 0 to 1.
    pub fraction: f64,
    /// Blocks done in this phase.
    pub blocks: usize,
    /// The arm that runs next.
    pub arm: &'a str,
    /// Expected seconds until the end of the budget.
    pub left_s: f64,
    /// The last interim look.
    pub look: Option<&'a Look>,
    /// Names of the arms in the look's columns.
    pub names: &'a [String],
}
