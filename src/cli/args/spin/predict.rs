//! Arguments of `pinwise spin predict`.

use clap::Args;

use super::ProcessorArgs;
use crate::cli::values::parse_whole;

/// `pinwise spin predict`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin predict
  pinwise spin predict --algorithm netfx_awarelock --cpus 1..128
  pinwise spin predict --cpu meteor-lake-p --cpus 22
  pinwise spin predict --pause-cycles 140 --ghz 2.8 --cpus 24,48
  pinwise spin predict --from broadwell --to skylake-sp --cpus 24

Without --cpu, --pause-cycles and --pause-ns, PAUSE is measured here.")]
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
    pub cpus: Option<String>,
    /// Show what moving from this chip to that of --to changes
    #[arg(long, value_name = "CHIP", requires = "to", conflicts_with_all = ["cpu", "pause_cycles", "pause_ns"])]
    pub from: Option<String>,
    /// The chip moved to, with --from
    #[arg(long, value_name = "CHIP", requires = "from")]
    pub to: Option<String>,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
}
