//! Arguments of `pinwise spin pause`.

use std::time::Duration;

use clap::Args;

use crate::cli::values::{parse_duration, parse_whole};

/// `pinwise spin pause`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin pause
  pinwise spin pause --check
  pinwise spin pause --cpus 0 --for 10s
  pinwise spin pause --check --max-blind-gap 500us

With --check the exit status is 0 if no known algorithm would wait too long, and
1 if one would or if PAUSE could not be measured.")]
pub struct SpinPauseArgs {
    /// Only these CPUs [default: all allowed ones]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Total time for all CPUs; the cost of PAUSE may change every few seconds in a
    /// virtual machine [default: 2s plus 0.1s per CPU]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub time: Option<Duration>,
    /// Only report whether known algorithms would wait too long
    #[arg(long)]
    pub check: bool,
    /// Longest acceptable time that an algorithm spins before it parks
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "50ms")]
    pub max_total: Duration,
    /// Longest acceptable time between two looks at the lock (the blind gap)
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2ms")]
    pub max_blind_gap: Duration,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
}
