//! Arguments of `pinwise spin advise`.

use clap::Args;

use super::ProcessorArgs;
use crate::cli::values::parse_whole;

/// `pinwise spin advise`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin advise
  pinwise spin advise --chip skylake-sp --cpu-count 48
  pinwise spin advise --pause-ns 43

Wake-ups and context switches are measured here even with --chip.")]
pub struct SpinAdviseArgs {
    /// The processor.
    #[command(flatten)]
    pub processor: ProcessorArgs,
    /// Number of CPUs that programs see [default: this machine's]
    #[arg(long, value_name = "N", value_parser = parse_whole::<u64>)]
    pub cpu_count: Option<u64>,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
}
