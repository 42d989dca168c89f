//! Finds the best placement among very many in few runs.
//!
//! On a large machine T threads can be placed in about 10^17 ways; what is tried are *shapes*
//! (`placement::space`), at most some dozens. A few informative runs (`features`, D-optimal) teach
//! a small model what the program is sensitive to; the model predicts all others and says how sure
//! it is (`stats::surrogate`). Then blocks of `os-default`, the leader and its most dangerous
//! challengers run until hardly any can beat the leader by more than the indifference zone
//! (`choice`). Moves of one thread of the winner are tried if the model leaves room for them. The
//! winner is measured afresh against `os-default` (`confirm`): a screening estimate is never the
//! result, and against itself on other CPUs (`other_cpus`): equal CPUs may not behave alike.

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
    /// What runs, number of threads included.
    pub workload: Workload,
    /// The CPUs that it runs on.
    pub place: Realised,
    /// Its CPUs' units; for `os-default` those of all allowed CPUs.
    pub occupancy: Occupancy,
    /// Threads; of `os-default` those that were counted.
    pub threads: usize,
}

/// A search that can be carried out.
#[derive(Debug, Clone)]
pub struct SearchPlan {
    /// The program as written; `{threads}` in it is replaced by their number.
    pub workload: Workload,
    /// Numbers of threads to search, ascending.
    pub threads: Vec<usize>,
    /// Are threads set by the environment of each run?
    pub sets_threads: bool,
    /// Threads of `os-default`: set, or (if `default_is_counted`) counted.
    pub default_threads: usize,
    /// Does the program choose the threads of `os-default` itself?
    pub default_is_counted: bool,
    /// Indifference zone, as a share.
    pub within: f64,
    /// How much worse the least resource may be, as a share.
    pub least_within: f64,
    /// What is compared.
    pub metric: Metric,
    /// Unit of the figure where the metric has none; empty if unknown.
    pub unit: String,
    /// Maximum number of runs of profiling, search and refinement.
    pub max_runs: Option<usize>,
    /// Time for everything.
    pub budget: Option<Duration>,
    /// Maximum number of pairs of the confirmation; 0 for none.
    pub confirmation_pairs: usize,
    /// Runs of `os-default` discarded at the start.
    pub warmup: usize,
    /// Seed of the order of runs.
    pub seed: u64,
    /// What becomes of the command's output.
    pub output: Output,
    /// Name under which the record is stored.
    pub id: String,
    /// The arguments that it was made from; empty if no command line was.
    pub argv: Vec<String>,
    /// When it begins, RFC 3339.
    pub started: String,
    /// Labels of the user's.
    pub tags: Vec<String>,
}

/// Who watches a search.
pub trait Observer {
    /// The search begins, or resumes; the record has its plan, and the runs made before.
    fn begin(&mut self, _record: &SearchRecord) {}

    /// A run is about to begin: the candidate's name, runs so far, the leader.
    fn progress(&mut self, _progress: &Progress<'_>) {}

    /// A block is over: what is known now, to be stored.
    fn block(&mut self, _record: &SearchRecord) {}

    /// Something the user should know at once, as a full sentence.
    fn warn(&mut self, _sentence: &str) {}
}

/// A watcher that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

/// The progress of a search.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// `warm-up`, `profiling`, `search`, `refinement`, `confirmation`.
    pub step: &'static str,
    /// Runs that count so far.
    pub runs: usize,
    /// The maximum number of runs, if that is known.
    pub most_runs: Option<usize>,
    /// The candidate that runs next.
    pub arm: &'a str,
    /// The leader, and the probability of a better arm (0 to 1), if known.
    pub leader: Option<(&'a str, f64)>,
}

impl SearchPlan {
    /// Checks figures that no type can check.
    fn check(&self) -> Result<(), StudyError> {
        let bad = |text: &str| Err(StudyError::Plan(text.to_owned()));
        if self.threads.is_empty() {
            return bad("--threads: at least one number of threads is needed");
        }
        if !(self.within > 0.0 && self.within < 1.0) {
            return bad("--min-effect must lie between 0 and 100 %");
        }
        if !(self.least_within > 0.0 && self.least_within < 1.0) {
            return bad("--max-slowdown must lie between 0 and 100 %");
        }
        if self.max_runs == Some(0) {
            return bad("--max-runs must be at least 1");
        }
        if self.max_runs.is_none() && self.budget.is_none() {
            return bad("a budget is needed: --budget or --max-runs");
        }
        Ok(())
    }
}

impl SearchPlan {
    /// Why there is nothing to search, and the comparison that measures what can be.
    fn nothing_to_search(&self, topology: &Topology) -> String {
        let threads = match self.threads.as_slice() {
            [threads] => count(*threads, "thread"),
            _ => "threads".to_owned(),
        };
        let why = format!("nothing to search: {threads} with a CPU each have one placement here");
        if topology.allowed.len() < 2 {
            return why;
        }
        let each = self.threads.first().filter(|_| self.sets_threads);
        let option = each.map(|threads| match self.workload.has_thread_placeholder() {
            true => ("--parameter", format!("threads={threads}")),
            false => ("--threads-env", threads.to_string()),
        });
        let compare = to_comparison_command(&self.argv, option);
        let compare = compare.unwrap_or_else(|| "pinwise compare".to_owned());
        format!("{why}; fewer CPUs are tried by: {compare}")
    }
}

/// Carries out a plan. With `past`, a record that was cut off, it resumes where that ended: earlier
/// runs are not repeated (on a simulated machine they are, since nothing else restores its clock
/// and random numbers).
///
/// # Errors
/// [`StudyError`] if the plan is refused, `os-default` fails, or a command cannot be started at
/// all. Interrupted searches are not errors: the record says so.
pub fn run(
    plan: &SearchPlan,
    past: Option<&SearchRecord>,
    machine: &mut dyn CommandRunner,
    observer: &mut dyn Observer,
) -> Result<SearchRecord, StudyError> {
    engine::carry_out(plan, past, machine, observer)
}

#[cfg(test)]
mod tests;
