//! Arguments of `run`.

use std::time::Duration;

use clap::Args;

use super::super::values::parse_duration;

/// `pinwise run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise run --place one-per-core ./prog
  pinwise run --place 0 ./prog --threads 4
  pinwise run --place one-numa/mem=bind -- ./prog
  pinwise run --place spread/bound -- ./prog
  pinwise run --place compact/bound --settle 5s -- ./prog

The command takes this process's place: signals, terminal and exit status are
its own. With /bound each of its threads gets one CPU, in the order in which
they begin, before its first instruction (docs/binding.md).")]
pub struct RunArgs {
    /// Where it runs
    #[arg(long, value_name = "PLACEMENT", default_value = "os-default")]
    pub place: String,
    /// With /bound: how long new threads are bound [default: to the end]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub settle: Option<Duration>,
    /// The command with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required = true)]
    pub argv: Vec<String>,
}
