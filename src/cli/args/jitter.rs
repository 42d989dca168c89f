//! Arguments of `pinwise bench jitter`.

use std::time::Duration;

use clap::Args;

use crate::cli::values::{parse_duration, parse_threshold, parse_whole};

/// `pinwise bench jitter`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise bench jitter
  pinwise bench jitter --for 1m
  pinwise bench jitter --cpus 2-3 --threshold 20us
  pinwise bench jitter --format csv > jitter.csv

A thread on each CPU reads the clock in a loop. For gaps longer than the
threshold, the kernel's tracepoints show what took the CPU; this needs root, or
CAP_PERFMON and a readable tracefs. Without them, gaps are measured but have no
causes.")]
pub struct JitterArgs {
    /// Only these CPUs [default: all allowed ones]
    #[arg(long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Measure for this long, all CPUs at the same time
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, default_value = "5s")]
    pub time: Duration,
    /// Shortest gap to count; 1us or more
    #[arg(long, value_name = "TIME", value_parser = parse_threshold, default_value = "5us")]
    pub threshold: Duration,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
}
