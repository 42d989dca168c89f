//! Arguments of `run`.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::super::values::parse_duration;

/// A kind of device that gets one process (rank) each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Per {
    /// A GPU.
    Gpu,
    /// A network card.
    Network,
    /// A disk or its controller.
    Storage,
    /// Another accelerator.
    Accelerator,
}

/// `pinwise run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise run --place one-per-core ./prog
  pinwise run --place cpu:0 -- ./prog --threads 4
  pinwise run --place one-numa/mem=bind -- ./prog
  pinwise run --place spread/bound -- ./prog
  pinwise run --place compact/bound --settle 5s -- ./prog

The command replaces this process (exec): signals, terminal and exit status are
its own. With /bound each thread is bound to one CPU, in the order in which they
start, before its first instruction (docs/apply.md). `--per gpu --ranks 4`
starts a rank for each of 4 GPUs; under torchrun, MPI or Slurm, `--per gpu`
places this process as one rank (docs/devices.md).")]
pub struct RunArgs {
    /// Where the command runs
    #[arg(long, value_name = "PLACEMENT", default_value = "os-default")]
    pub place: String,
    /// With /bound: stop binding new threads after this time [default: when the
    /// command ends]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub settle: Option<Duration>,
    /// One process (MPI rank) per device; it gets cores near the device, the
    /// memory of their NUMA node, and sees no other GPU
    #[arg(long, value_name = "TYPE")]
    pub per: Option<Per>,
    /// Start N ranks here [default: this process is one rank, given by the
    /// launcher's environment]
    #[arg(long, value_name = "N", requires = "per", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub ranks: Option<u16>,
    /// The command with its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required = true)]
    pub argv: Vec<String>,
}
