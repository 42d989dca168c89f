//! Arguments of `search` and `predict`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::WorkloadArgs;
use crate::cli::values::{parse_count, parse_duration, parse_margin, parse_tag, parse_whole};

/// `pinwise search`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  pinwise search -- ./prog
  pinwise search --threads 16 --budget 2m -- ./prog
  pinwise search --threads 1..max --report found.html -- ./prog -t {threads}
  pinwise search --resume 20261121-2132
  pinwise search --machine sim:machine.toml --seed 1 -- prog
  pinwise search --joint plan.toml            # several programs together

{threads} in the command is replaced by the number of threads; --threads also
sets the variables of --threads-env.

A joint plan has two to six programs (services, limits: docs/search.md):
  [[program]]
  name = \"query\"
  command = \"./bench --threads 4\"
  metric = \"regex:p99 ([0-9.]+) lower\"   # default: wall
  [[program]]
  name = \"batch\"
  command = \"xz -T4 -k -c big.tar\"",
    args_conflicts_with_subcommands = true
)]
pub struct SearchArgs {
    /// What else to do with a search.
    #[command(subcommand)]
    pub action: Option<SearchAction>,
    /// Threads to run: a number, a list such as 4,8,16, or a range such as 1..16 or
    /// 1..max, of which some are tried [default: counted in a run]
    #[arg(long, value_name = "THREADS", help_heading = "What is searched")]
    pub threads: Option<String>,
    /// The metric to optimise, as for `pinwise compare`: wall, cpu, max-rss …, or the
    /// program's own: 'regex:… higher|lower', 'json:.path higher|lower' [default: wall]
    #[arg(long, value_name = "METRIC", help_heading = "What is searched")]
    pub metric: Option<String>,
    /// Stop when nothing better by more than this is likely; it grows with the noise of
    /// runs, to 3 % at most
    #[arg(long, value_name = "SHARE", value_parser = parse_margin, default_value = "1%", help_heading = "What is searched")]
    pub min_effect: f64,
    /// Also report the smallest placement that is at most this much slower than the best
    #[arg(long, value_name = "SHARE", value_parser = parse_margin, default_value = "5%", help_heading = "What is searched")]
    pub max_slowdown: f64,
    /// Continue a search that was interrupted, killed, or ran out of budget; its
    /// command and options are stored, and --budget may be larger
    #[arg(
        long,
        value_name = "ID",
        conflicts_with_all = [
            "threads", "metric", "min_effect", "max_slowdown", "seed", "input", "output", "prepare",
            "conclude", "timeout", "ignore_failure", "shell", "environment", "threads_env", "tags",
            "line", "argv",
        ],
        help_heading = "What is searched"
    )]
    pub resume: Option<String>,
    /// Find where the programs of this file should run together
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = [
            "threads", "metric", "max_slowdown", "resume", "input", "output", "prepare", "conclude",
            "ignore_failure", "shell", "environment", "threads_env", "line", "argv",
        ],
        help_heading = "What is searched"
    )]
    pub joint: Option<PathBuf>,
    /// Exit with status 3 if there is no verdict
    #[arg(long, help_heading = "What is searched")]
    pub require_verdict: bool,
    /// Total time, such as 90s or 2m [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true, help_heading = "How long")]
    pub budget: Option<Duration>,
    /// Maximum number of runs of profiling and search [default: 200, or no limit with
    /// --budget; of a joint plan 80, with those that confirm]
    #[arg(long, short = 'r', alias = "runs", value_name = "N", value_parser = parse_count, help_heading = "How long")]
    pub max_runs: Option<usize>,
    /// Maximum number of pairs of runs to confirm the best against os-default; 0 for
    /// none [default: 30; of a joint plan 10]
    #[arg(long, value_name = "PAIRS", value_parser = parse_whole::<usize>, help_heading = "How long")]
    pub confirm: Option<usize>,
    /// Seed for the order of runs [default: random, recorded]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>, help_heading = "How long")]
    pub seed: Option<u64>,
    /// Options on running.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Options on results.
    #[command(flatten)]
    pub results: SearchResultArgs,
    /// The command as one line (quotes as in a shell)
    #[arg(value_name = "COMMAND_LINE", conflicts_with = "argv", help_heading = None::<&'static str>)]
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
    /// Carry out one round of a joint plan
    #[command(hide = true)]
    Round(RoundArgs),
}

/// `pinwise search round`, which `--joint` runs.
#[derive(Debug, Args)]
pub struct RoundArgs {
    /// The round as JSON
    pub round: String,
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
    /// Write a self-contained HTML page
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

Nothing is run. On a simulated machine, which knows the truth, each prediction
is printed with its error.")]
pub struct PredictArgs {
    /// The search's id, its prefix, or `last` [default: the newest search]
    pub id: Option<String>,
    /// A placement to predict; repeatable [default: the best evenly spread ones]
    #[arg(long = "place", value_name = "PLACEMENT")]
    pub places: Vec<String>,
    /// Threads [default: those of the best placement]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub threads: Option<usize>,
}
