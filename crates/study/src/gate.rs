//! Two builds of a program over a suite of benchmarks: is any of them slower?
//!
//! Benchmarks take turns in rounds: in each round every benchmark that is still open runs once in
//! each build, one right after the other, in random order. Those that are decided stop, and if time
//! is short, those that it suffices for go first. [`GatePlan`] says what is compared, [`run`]
//! carries it out.

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
pub use history::history;

/// Two builds and how to compare them.
#[derive(Debug, Clone)]
pub struct GatePlan {
    /// What is compared with.
    pub base: BuildRecord,
    /// What is judged.
    pub head: BuildRecord,
    /// Name of the suite.
    pub suite: String,
    /// The benchmarks; at least one that both builds have.
    pub benchmarks: Vec<PlannedBenchmark>,
    /// The CPUs that all of them run on.
    pub place: Realised,
    /// Two-sided error over the whole suite.
    pub alpha: f64,
    /// Time for everything.
    pub budget: Option<Duration>,
    /// Maximum number of pairs of runs per benchmark.
    pub max_pairs: Option<usize>,
    /// Spend the error so that some is left at every look, however many there are: no end is
    /// planned, though budget and pairs may set one.
    pub is_open_ended: bool,
    /// How pairs count.
    pub score: Score,
    /// Is it a step of a history? Then decided benchmarks are measured until their ratios are known
    /// as well as a history needs, as far as the budget goes.
    pub is_chained: bool,
    /// Seed of the order of runs.
    pub seed: u64,
    /// Name under which the record is stored.
    pub id: String,
    /// When it begins, RFC 3339.
    pub started: String,
    /// The arguments that it was made from; empty if no command line was.
    pub argv: Vec<String>,
    /// Labels of the user's.
    pub tags: Vec<String>,
}

/// A benchmark as each build has it.
#[derive(Debug, Clone)]
pub struct PlannedBenchmark {
    /// Unique in the suite.
    pub name: String,
    /// What the base runs; `None` if it does not have the benchmark.
    pub base: Option<Workload>,
    /// What the head runs, likewise.
    pub head: Option<Workload>,
    /// The figure.
    pub metric: Metric,
    /// Is the CPU time judged beside it? Other programs make it vary much less than wall
    /// time.
    pub with_cpu: bool,
    /// Smallest slow-down of interest, as a share.
    pub min_effect: f64,
}

impl PlannedBenchmark {
    /// What both builds run, base first; `None` if one does not have it.
    const fn both(&self) -> Option<[&Workload; 2]> {
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
    /// Benchmarks that are decided.
    pub decided: usize,
    /// Benchmarks in total.
    pub benchmarks: usize,
    /// Those of them found slower.
    pub slower: usize,
}

/// Who watches a gate.
pub trait Observer {
    /// The gate begins; the record has its plan and no pairs yet.
    fn begin(&mut self, _record: &GateRecord) {}

    /// A run is about to begin.
    fn progress(&mut self, _progress: &GateProgress<'_>) {}

    /// Something the user should know at once, as a full sentence.
    fn warn(&mut self, _sentence: &str) {}

    /// A benchmark is decided, or has failed.
    fn decided(&mut self, _benchmark: &GateBenchmark) {}

    /// Called after a round with the record so far, after the first round and then every ten
    /// seconds at most.
    fn round(&mut self, _record: &GateRecord) {}
}

#[cfg(test)]
mod tests;
