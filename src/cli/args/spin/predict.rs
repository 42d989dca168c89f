//! Arguments of `pinwise spin predict`.

use clap::Args;

use super::ProcessorArgs;
use crate::cli::values::parse_whole;

/// `pinwise spin predict`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin predict
  pinwise spin predict --algorithm netfx_awarelock --cpu-count 1..128
  pinwise spin predict --chip meteor-lake-p --cpu-count 22
  pinwise spin predict --pause-cycles 140 --ghz 2.8 --cpu-count 24,48
  pinwise spin predict --from broadwell --to skylake-sp --cpu-count 24

Without --chip, --pause-cycles and --pause-ns, PAUSE is measured here.")]
pub struct SpinPredictArgs {
    /// Only this algorithm; repeatable [default: all known ones]
    #[arg(long = "algorithm", short, value_name = "ID")]
    pub algorithms: Vec<String>,
    /// The processor.
    #[command(flatten)]
    pub processor: ProcessorArgs,
    /// Numbers of CPUs that programs see: `24`, `1,8,24`, `1..128`
    /// [default: this machine's]
    #[arg(long, value_name = "N")]
    pub cpu_count: Option<String>,
    /// Show what moving from this chip to that of --to changes
    #[arg(long, value_name = "CHIP", requires = "to", conflicts_with_all = ["chip", "pause_cycles", "pause_ns"])]
    pub from: Option<String>,
    /// The chip moved to, with --from
    #[arg(long, value_name = "CHIP", requires = "from")]
    pub to: Option<String>,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
}
