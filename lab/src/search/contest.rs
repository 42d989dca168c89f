//! The search and its rivals on the candidates of one case.

use anyhow::Result;
use pinwise_record::{SearchAnswer, SearchRecord};
use pinwise_study::search::{self, NoObserver, SearchPlan};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::rivals::{self, Choice, Goal};
use super::search_worlds;
use super::worlds::Case;

/// Indifference zone of the methods that have one.
const WITHIN: f64 = 0.01;
/// Error probability of the methods that have one.
const ERROR: f64 = 0.05;
/// Maximum number of runs of the search.
const MAX_RUNS: usize = 200;
/// A rival without a limit ends after this many runs of every candidate.
const MAX_ROUNDS: usize = 20;
/// Runs of random search as multiples of the search's.
pub(crate) const MULTIPLES: [usize; 9] = [1, 2, 3, 4, 6, 8, 12, 16, 24];

/// The search's rivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rival {
    /// Random search with as many runs.
    Random,
    /// The medians of five runs of every candidate.
    Exhaustive,
    /// Every candidate, in rounds that drop clearly worse ones.
    Racing,
    /// Thompson sampling, independent arms.
    Thompson,
    /// Sequential halving.
    Halving,
}

impl Rival {
    pub(crate) const ALL: [Self; 5] = [
        Self::Random,
        Self::Exhaustive,
        Self::Racing,
        Self::Thompson,
        Self::Halving,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Exhaustive => "exhaustive",
            Self::Racing => "racing",
            Self::Thompson => "thompson",
            Self::Halving => "halving",
        }
    }

    /// Its name in tables.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Random => "random search, as many runs",
            Self::Exhaustive => "every candidate five times",
            Self::Racing => "every candidate, early stopping",
            Self::Thompson => "Thompson sampling, no prior",
            Self::Halving => "sequential halving",
        }
    }
}

/// The number of runs, and the true cost of the choice over the true best, minus 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Score {
    pub(crate) runs: usize,
    pub(crate) regret: f64,
}

/// The search's own statements.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchStatements {
    /// Median error of predictions of candidates that were never run.
    pub(crate) prediction_error: Option<f64>,
    /// Share of truths in their 90 % intervals.
    pub(crate) coverage: Option<f64>,
    /// It says that placement does not matter.
    pub(crate) says_same: bool,
    /// In truth a candidate is better than `os-default` by more than the indifference zone.
    pub(crate) is_different: bool,
    /// It has no answer.
    pub(crate) is_undecided: bool,
}

/// The result of a case.
#[derive(Debug, Clone)]
pub(crate) struct ContestOutcome {
    pub(crate) candidates: usize,
    pub(crate) cpus: usize,
    pub(crate) ours: Score,
    pub(crate) statements: SearchStatements,
    /// In the order of the requested rivals.
    pub(crate) rivals: Vec<Score>,
    /// Regret of random search at [`MULTIPLES`] of our runs; empty if not requested.
    pub(crate) random: Vec<f64>,
    /// Highest true cost of a candidate over the lowest, minus 1.
    pub(crate) spread: f64,
}

/// Runs the search and these rivals on one case.
pub(crate) fn run(case: &Case, names: &[Rival], seed: u64) -> Result<ContestOutcome> {
    let record = run_search(case, seed)?;
    let candidates_best = case.truths.iter().copied().fold(f64::INFINITY, f64::min);
    let known_best = record.truth.as_ref().map(|truth| truth.cost);
    let best = known_best.unwrap_or(f64::INFINITY).min(candidates_best);
    // Without an answer its choice is the leader at the end, as it is for rivals that reach their
    // last run.
    let led = record.progress.last().and_then(|point| point.true_regret);
    let chosen = match (record.true_regret.or(led), known_best) {
        (Some(regret), Some(known)) => known * (1.0 + regret),
        _ => case.truths[0],
    };
    let regret = |cost: f64| cost / best - 1.0;
    let ours = Score {
        runs: record.runs_used.max(1),
        regret: regret(chosen),
    };
    let mut outcome = ContestOutcome {
        candidates: case.truths.len(),
        cpus: case.topology.allowed.len(),
        ours,
        statements: read_answer(&record, regret(case.truths[0])),
        rivals: Vec::new(),
        random: Vec::new(),
        spread: regret(case.truths.iter().copied().fold(0.0, f64::max)),
    };
    for &rival in names {
        let score = if rival == Rival::Random {
            let leaders = find_random_leaders(case, ours.runs, seed)?;
            let at = |times: usize| regret(case.truths[leaders[times * ours.runs - 1]]);
            outcome.random = MULTIPLES.map(at).to_vec();
            let runs = ours.runs;
            let regret = at(1);
            Score { runs, regret }
        } else {
            let choice = choose(case, rival, seed)?;
            let regret = regret(case.truths[choice.best]);
            let runs = choice.runs;
            Score { runs, regret }
        };
        outcome.rivals.push(score);
    }
    Ok(outcome)
}

fn run_search(case: &Case, seed: u64) -> Result<SearchRecord> {
    let plan = SearchPlan {
        workload: case.program.clone(),
        min_effect: WITHIN,
        max_runs: Some(MAX_RUNS),
        confirmation_pairs: 0,
        ..search_worlds::plan(case.threads, seed)
    };
    let mut machine = case.machine()?;
    Ok(search::run(&plan, None, &mut machine, &mut NoObserver)?)
}

fn read_answer(record: &SearchRecord, default_regret: f64) -> SearchStatements {
    SearchStatements {
        prediction_error: record.truth.as_ref().and_then(|t| t.prediction_error),
        coverage: record.truth.as_ref().map(|truth| truth.coverage),
        says_same: record.verdict.kind == SearchAnswer::DoesNotMatter,
        is_different: default_regret > WITHIN,
        is_undecided: record.verdict.kind == SearchAnswer::Undecided,
    }
}

fn find_random_leaders(case: &Case, runs: usize, seed: u64) -> Result<Vec<usize>> {
    let most = MULTIPLES.iter().copied().max().unwrap_or(1) * runs;
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    Ok(rivals::run_random_search(
        &mut case.arms()?,
        most,
        &mut chance,
    ))
}

fn choose(case: &Case, rival: Rival, seed: u64) -> Result<Choice> {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut arms = case.arms()?;
    let goal = Goal {
        within: WITHIN.ln_1p(),
        error: ERROR,
        most_runs: MAX_ROUNDS * case.truths.len(),
    };
    Ok(match rival {
        Rival::Random | Rival::Exhaustive => rivals::run_exhaustive(&mut arms, 5, &mut chance),
        Rival::Racing => rivals::run_racing(&mut arms, goal, &mut chance),
        Rival::Thompson => rivals::run_thompson(&mut arms, goal, &mut chance),
        Rival::Halving => rivals::run_successive_halving(&mut arms, &mut chance),
    })
}
