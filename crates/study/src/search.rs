//! Finds the best placement among very many in few runs.
//!
//! On a large machine T threads can be placed in about 10^17 ways; candidates are *shapes*
//! (`placement::space`), at most some dozens. From a few informative runs (`features`, D-optimal), a
//! small model learns what the program is sensitive to; it predicts all other candidates, with their
//! uncertainty (`stats::surrogate`). Then blocks of `os-default`, the leader and its strongest
//! challengers run until hardly any can beat the leader by more than the indifference zone
//! (`choice`). Moves of one thread of the winner are tried if the model leaves room for them. The
//! winner is measured afresh against `os-default` (`confirm`), since the estimate that selected it is
//! too good, and against the same shape on other CPUs (`other_cpus`), since equal CPUs may differ.

mod assemble;
mod blocks;
mod candidates;
mod choice;
mod confirm;
mod engine;
mod features;
mod least;
mod other_cpus;
mod pairs;
mod past;
pub mod predict;
mod refine;
mod state;
mod truth;
mod words;

use crate::error::StudyError;
use std::time::Duration;

use pinwise_format::count;
use pinwise_machine::{CommandRunner, Output};
use pinwise_placement::Realised;
use pinwise_placement::space::Occupancy;
use pinwise_record::{SearchRecord, to_comparison_command};
use pinwise_topology::Topology;
use pinwise_workload::{Metric, Workload};

/// A candidate.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Unique name.
    pub name: String,
    /// The command, number of threads included.
    pub workload: Workload,
    /// The CPUs that it runs on.
    pub place: Realised,
    /// The units of its CPUs; for `os-default` those of all allowed CPUs.
    pub occupancy: Occupancy,
    /// Number of threads; for `os-default` the counted number.
    pub threads: usize,
}

/// The plan of a search.
#[derive(Debug, Clone)]
pub struct SearchPlan {
    /// The command as written; `{threads}` in it stands for the number of threads.
    pub workload: Workload,
    /// Numbers of threads to search, ascending.
    pub threads: Vec<usize>,
    /// Is the number of threads set in the environment of each run?
    pub sets_threads: bool,
    /// Threads of `os-default`: set, or (if `default_is_counted`) counted.
    pub default_threads: usize,
    /// Does the program choose the number of threads with `os-default` itself?
    pub default_is_counted: bool,
    /// Indifference zone: smallest relative difference of interest.
    pub min_effect: f64,
    /// How much slower than the best, relative, the arm with the fewest resources may be.
    pub max_slowdown: f64,
    /// The metric.
    pub metric: Metric,
    /// Unit of the figure where the metric has none; empty if unknown.
    pub unit: String,
    /// Maximum number of runs of profiling, search and refinement.
    pub max_runs: Option<usize>,
    /// Time for the whole search.
    pub budget: Option<Duration>,
    /// Maximum number of pairs of the confirmation; 0 for none.
    pub confirmation_pairs: usize,
    /// Runs of `os-default` discarded at the start.
    pub warmup: usize,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Where the command's output goes.
    pub output: Output,
    /// Id of the record.
    pub id: String,
    /// Arguments on the command line; empty if there was none.
    pub argv: Vec<String>,
    /// Start time, RFC 3339.
    pub started: String,
    /// The user's labels.
    pub tags: Vec<String>,
}

/// Receives the events of a search.
pub trait Observer {
    /// The search begins or resumes; the record has the plan and earlier runs.
    fn begin(&mut self, _record: &SearchRecord) {}

    /// A run is about to begin.
    fn progress(&mut self, _progress: &Progress<'_>) {}

    /// A block is over; this is the record so far.
    fn block(&mut self, _record: &SearchRecord) {}

    /// The user should know this full sentence at once.
    fn warn(&mut self, _sentence: &str) {}
}

/// An observer that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// The progress of a search.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// `warm-up`, `profiling`, `search`, `refinement`, `confirmation`.
    pub step: &'static str,
    /// Runs so far.
    pub runs: usize,
    /// Maximum number of runs, if there is one.
    pub most_runs: Option<usize>,
    /// The candidate that runs next.
    pub arm: &'a str,
    /// The leader, and the probability of a better arm (0 to 1), if known.
    pub leader: Option<(&'a str, f64)>,
}

impl SearchPlan {
    /// Checks that settings are in their ranges.
    fn check(&self) -> Result<(), StudyError> {
        let reject = |text: &str| Err(StudyError::Plan(text.to_owned()));
        if self.threads.is_empty() {
            return reject("--threads: at least one number of threads is needed");
        }
        if !(self.min_effect > 0.0 && self.min_effect < 1.0) {
            return reject("--min-effect must lie between 0 and 100 %");
        }
        if !(self.max_slowdown > 0.0 && self.max_slowdown < 1.0) {
            return reject("--max-slowdown must lie between 0 and 100 %");
        }
        if self.max_runs == Some(0) {
            return reject("--max-runs must be at least 1");
        }
        if self.max_runs.is_none() && self.budget.is_none() {
            return reject("a budget is needed: --budget or --max-runs");
        }
        Ok(())
    }
}

impl SearchPlan {
    /// Why there is nothing to search, with a comparison to run instead.
    fn explain_nothing_to_search(&self, topology: &Topology) -> String {
        let threads = match self.threads.as_slice() {
            [threads] => count(*threads, "thread"),
            _ => "threads".to_owned(),
        };
        let why = format!("nothing to search: {threads} with a CPU each have one placement here");
        if topology.allowed.len() < 2 {
            return why;
        }
        let threads = self.threads.first().filter(|_| self.sets_threads);
        let option = threads.map(|threads| match self.workload.has_thread_placeholder() {
            true => ("--parameter", format!("threads={threads}")),
            false => ("--threads-env", threads.to_string()),
        });
        let compare = to_comparison_command(&self.argv, option);
        let compare = compare.unwrap_or_else(|| "pinwise compare".to_owned());
        format!("{why}; fewer CPUs are tried by: {compare}")
    }
}

/// Runs a search. With `past`, the record of an interrupted search, it resumes where that ended:
/// earlier runs are not repeated (on a simulated machine they are, to restore its clock and random
/// numbers).
///
/// # Errors
/// [`StudyError`] if the plan is not valid, `os-default` fails, or a command cannot be started. An
/// interrupted search is not an error: the record says so.
pub fn run(
    plan: &SearchPlan,
    past: Option<&SearchRecord>,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<SearchRecord, StudyError> {
    engine::run_search(plan, past, machine, observer)
}

#[cfg(test)]
mod tests;
