//! Arguments that name a processor: a chip of the table, or figures.

use clap::Args;

/// The processor whose PAUSE is used.
#[derive(Debug, Args)]
#[command(next_help_heading = "Processor [default: this machine, measured]")]
pub struct ProcessorArgs {
    /// A known chip, such as skylake-sp, broadwell, zen-4
    #[arg(long, value_name = "CHIP", conflicts_with_all = ["pause_cycles", "pause_ns"])]
    pub chip: Option<String>,
    /// A PAUSE in core cycles; needs --ghz
    #[arg(
        long,
        value_name = "CYCLES",
        requires = "ghz",
        conflicts_with = "pause_ns"
    )]
    pub pause_cycles: Option<f64>,
    /// A PAUSE in nanoseconds
    #[arg(long, value_name = "NS", allow_negative_numbers = true)]
    pub pause_ns: Option<f64>,
    /// The core's clock frequency, instead of the typical or measured one
    #[arg(long, value_name = "GHZ", allow_negative_numbers = true)]
    pub ghz: Option<f64>,
}
