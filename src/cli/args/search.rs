//! Arguments of `search` and `predict`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::WorkloadArgs;
use crate::cli::values::{
    BudgetChoice, parse_budget, parse_count, parse_margin, parse_tag, parse_whole,
};

/// `pinwise search`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  pinwise search -- ./prog
  pinwise search --threads 16 --budget 2m -- ./prog
  pinwise search --threads 1..max --report found.html -- ./prog -t {threads}
  pinwise search --resume 20261121-2132
  pinwise search --machine sim:machine.toml --seed 1 -- prog

{threads} in the command stands for the number of threads; with --threads the
variables of --threads-env are set, too. A search is stored as it grows: one
that was interrupted or cut off goes on with --resume. `pinwise search predict`
then says what any other placement would cost.",
    args_conflicts_with_subcommands = true
)]
pub struct SearchArgs {
    /// What else to do with a search.
    #[command(subcommand)]
    pub action: Option<SearchAction>,
    /// Threads to run: a number, numbers such as 4,8,16, or a range such as
    /// 1..16 or 1..max, of which some are tried [default: counted in a run]
    #[arg(long, value_name = "THREADS", help_heading = "What is searched")]
    pub threads: Option<String>,
    /// The figure to minimise: wall (or time), user, system, cpu,
    /// max-rss, cycles, instructions, or the program's own: 'regex:…
    /// higher|lower', 'json:.path higher|lower' [default: wall]
    #[arg(long, value_name = "METRIC", help_heading = "What is searched")]
    pub metric: Option<String>,
    /// Indifference zone: what is better by less need not be found; where runs
    /// vary much it is half of their noise, up to 3 %
    #[arg(long, value_name = "SHARE", value_parser = parse_margin, default_value = "1%", help_heading = "What is searched")]
    pub within: f64,
    /// The least resource may be worse than the best by this share
    #[arg(long, value_name = "SHARE", value_parser = parse_margin, default_value = "5%", help_heading = "What is searched")]
    pub least_within: f64,
    /// Go on with a search that was interrupted, cut off, or ran out of its
    /// budget; it has its command and options, and may get a larger budget
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = [
            "threads", "metric", "within", "least_within", "seed", "input", "output", "prepare",
            "cleanup", "timeout", "ignore_failure", "shell", "environment", "threads_env", "tags",
            "line", "argv",
        ],
        help_heading = "What is searched"
    )]
    pub resume: Option<String>,
    /// Exit with status 3 if there is no verdict
    #[arg(long, help_heading = "What is searched")]
    pub require_verdict: bool,
    /// Time for everything or runs of the search: 90s or 40 [default: 200 runs; with
    /// a time, no limit of runs]
    #[arg(long, value_name = "TIME|RUNS", value_parser = parse_budget, help_heading = "How long")]
    pub budget: Option<BudgetChoice>,
    /// Most runs of profiling and search, where --budget is a time
    #[arg(long, value_name = "N", value_parser = parse_count, help_heading = "How long")]
    pub max_runs: Option<usize>,
    /// Most pairs of runs that confirm the best against os-default; 0 for none
    /// [default: 30]
    #[arg(long, value_name = "PAIRS", value_parser = parse_whole::<usize>, help_heading = "How long")]
    pub confirm: Option<usize>,
    /// Seed of the order of runs; repeats it [default: random, recorded]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>, help_heading = "How long")]
    pub seed: Option<u64>,
    /// Options on running.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Options on results.
    #[command(flatten)]
    pub results: SearchResultArgs,
    /// The command as one line (quotes as in a shell)
    #[arg(value_name = "COMMAND LINE", conflicts_with = "argv", help_heading = None::<&'static str>)]
    pub line: Option<String>,
    /// The command with its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub argv: Vec<String>,
}

/// What else `pinwise search` does.
#[derive(Debug, Subcommand)]
pub enum SearchAction {
    /// Predict the cost of placements that a search did not run
    Predict(PredictArgs),
}

/// Files to write beside what is printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results as files")]
pub struct SearchResultArgs {
    /// Write the record
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Write one line per run
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,
    /// Write an HTML page to open or to send
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Label the record
    #[arg(long = "tag", value_name = "TAG", value_parser = parse_tag)]
    pub tags: Vec<String>,
}

/// `pinwise search predict`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise search predict
  pinwise search predict last --place spread --place compact
  pinwise search predict 20261121-2132 --threads 16
  pinwise search predict last --machine sim:machine.toml

Nothing is run. Where a simulated machine knows the truth, the error of every
prediction is printed beside it.")]
pub struct PredictArgs {
    /// The search's id, its beginning, or `last` [default: the newest search]
    pub id: Option<String>,
    /// A placement to predict; repeat for each [default: the best of all even
    /// ones]
    #[arg(long = "place", value_name = "PLACEMENT")]
    pub places: Vec<String>,
    /// Threads [default: those of the best placement]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub threads: Option<usize>,
}
