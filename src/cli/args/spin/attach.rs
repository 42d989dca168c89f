//! Arguments of `pinwise spin attach`.

use std::time::Duration;

use clap::Args;

use crate::cli::args::sampling::SamplingArgs;
use crate::cli::values::{parse_duration, parse_margin, parse_whole};

/// `pinwise spin attach`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin attach -- ./prog
  pinwise spin attach --pid 4711 --for 5s
  pinwise spin attach --max-spin 10% -- ./prog

A program is sampled and the loop around each hot address decoded, so that
spinning is found without symbols, in code made at run time, too. Exit status 1:
more spinning than --max-spin.")]
pub struct SpinAttachArgs {
    /// A process that runs already, with all its threads
    #[arg(long, value_name = "PID", value_parser = parse_whole::<i32>, conflicts_with = "argv")]
    pub pid: Option<i32>,
    /// For how long [default: to the end of the command; 5s of a process]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub limit: Option<Duration>,
    /// How samples are made.
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Fail (status 1) where more than this share of CPU time is spinning
    #[arg(long, value_name = "SHARE", value_parser = parse_margin)]
    pub max_spin: Option<f64>,
    /// The command with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
}
