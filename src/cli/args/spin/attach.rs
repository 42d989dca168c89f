//! Arguments of `pinwise spin attach`.

use std::time::Duration;

use clap::Args;

use crate::cli::args::sampling::SamplingArgs;
use crate::cli::values::{parse_duration, parse_margin, parse_process};

/// `pinwise spin attach`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin attach -- ./prog
  pinwise spin attach --pid 4711 --for 5s
  pinwise spin attach --max-spin 10% -- ./prog

It samples the program and decodes the loop around each hot address, so it finds
spinning without symbols and in code generated at run time. Exit status 1: more
spinning than --max-spin.")]
pub struct SpinAttachArgs {
    /// Sample all threads of a running process (number or name)
    #[arg(long, value_name = "PID", value_parser = parse_process, conflicts_with = "argv")]
    pub pid: Option<i32>,
    /// For this long [default: until the command ends; 5s with --pid]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub limit: Option<Duration>,
    /// How samples are made.
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// Fail (status 1) if spinning takes more than this share of CPU time
    #[arg(long, value_name = "SHARE", value_parser = parse_margin)]
    pub max_spin: Option<f64>,
    /// The command with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
}
