//! Compares two builds of a program over a suite of benchmarks: is any benchmark slower?
//!
//! Benchmarks take turns: in each round every undecided benchmark runs once in each build, one right
//! after the other, in random order. Decided benchmarks stop; if time is short, those that are
//! closest to a verdict go first. [`GatePlan`] says what is compared, [`run`] runs it.

mod assemble;
mod engine;
mod history;
mod measured;
mod words;

use std::time::Duration;

use crate::compare::figure_kind;
use pinwise_placement::Realised;
use pinwise_record::{BuildRecord, GateBenchmark, GateRecord};
use pinwise_stats::confirm::{Question, Score};
use pinwise_stats::judge::Judge;
use pinwise_workload::{Better, Metric, Workload};

pub use engine::run;
pub use history::chain_gates;

/// Two builds and how to compare them.
#[derive(Debug, Clone)]
pub struct GatePlan {
    /// The build to compare with.
    pub base: BuildRecord,
    /// The build that is judged.
    pub head: BuildRecord,
    /// Name of the suite.
    pub suite: String,
    /// The benchmarks; both builds have at least one of them.
    pub benchmarks: Vec<PlannedBenchmark>,
    /// The CPUs that all of them run on.
    pub place: Realised,
    /// Two-sided error rate over the whole suite.
    pub alpha: f64,
    /// Time for the whole gate.
    pub budget: Option<Duration>,
    /// Maximum number of pairs of runs per benchmark.
    pub max_pairs: Option<usize>,
    /// Spend the error rate so that some is left at every look, however many there are? Budget and
    /// pairs may still end the gate, but looks are not planned by them.
    pub is_open_ended: bool,
    /// How pairs are weighted.
    pub score: Score,
    /// Is the gate a step of a history? Then decided benchmarks are measured until their ratios are
    /// precise enough for a history, within the budget.
    pub is_chained: bool,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Id of the record.
    pub id: String,
    /// Start time, RFC 3339.
    pub started: String,
    /// Arguments on the command line; empty if there was none.
    pub argv: Vec<String>,
    /// The user's labels.
    pub tags: Vec<String>,
}

/// A benchmark with its command in each build.
#[derive(Debug, Clone)]
pub struct PlannedBenchmark {
    /// Unique in the suite.
    pub name: String,
    /// The base's command; `None` if it does not have the benchmark.
    pub base: Option<Workload>,
    /// The head's command; `None` if it does not have the benchmark.
    pub head: Option<Workload>,
    /// The metric.
    pub metric: Metric,
    /// Is CPU time judged, too? Other programs make it vary much less than wall-clock time.
    pub with_cpu: bool,
    /// Smallest slow-down of interest, relative.
    pub min_effect: f64,
}

impl PlannedBenchmark {
    /// The commands of base and head; `None` if one does not have the benchmark.
    const fn workloads(&self) -> Option<[&Workload; 2]> {
        match (&self.base, &self.head) {
            (Some(base), Some(head)) => Some([base, head]),
            _ => None,
        }
    }

    fn question(&self, plan: &GatePlan) -> Question {
        Question {
            is_open_ended: plan.is_open_ended,
            judge: Judge::Typical,
            score: plan.score,
            alpha: plan.alpha,
            delta: self.min_effect.ln_1p(),
            figure: figure_kind(&self.metric),
            is_rate: self.metric.better() == Better::Higher,
        }
    }
}

/// The progress of a gate.
#[derive(Debug, Clone, Copy)]
pub struct GateProgress<'a> {
    /// Share of the budget used, 0 to 1.
    pub fraction: f64,
    /// Expected seconds until the end of the budget; infinite without one.
    pub left_s: f64,
    /// The benchmark that runs next.
    pub benchmark: &'a str,
    /// Number of decided benchmarks.
    pub decided: usize,
    /// Number of benchmarks.
    pub benchmarks: usize,
    /// Number of benchmarks found slower.
    pub slower: usize,
}

/// Receives the events of a gate.
pub trait Observer {
    /// The gate begins; the record has the plan and no pairs yet.
    fn begin(&mut self, _record: &GateRecord) {}

    /// A run is about to begin.
    fn progress(&mut self, _progress: &GateProgress<'_>) {}

    /// The user should know this full sentence at once.
    fn warn(&mut self, _sentence: &str) {}

    /// A benchmark is decided, or has failed.
    fn decided(&mut self, _benchmark: &GateBenchmark) {}

    /// The record so far: after the first round, then after rounds at least ten seconds apart.
    fn round(&mut self, _record: &GateRecord) {}
}

#[cfg(test)]
mod tests;
