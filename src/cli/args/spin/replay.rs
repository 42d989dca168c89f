//! Arguments of `pinwise spin replay`.

use std::time::Duration;

use clap::Args;

use crate::cli::values::{parse_count, parse_duration, parse_whole};

/// `pinwise spin replay`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin replay --pause-ns 43 --cpu-count 24
  pinwise spin replay --algorithm coreclr_monitor --delays 8..9ms
  pinwise spin replay --as-chip skylake-sp --cpu-count 24 --items 10
  pinwise spin replay --experiment handoff --delays 500us,1ms,2..4ms --realtime
  pinwise spin replay --experiment contend --algorithm futex --threads 2,8

Experiments:
  producer-consumer  a worker holds a lock for --hold per item; a sender wants
                     it --delays after it was taken
  handoff            a waiter arrives when the lock is taken; the lock is
                     released --delays later
  contend            --threads take the lock repeatedly

Another processor's spin hints are emulated by this one's plus a chain of
additions, or by the chain alone; the real duration of a hint is measured and
reported, too.")]
pub struct SpinReplayArgs {
    /// The experiment: producer-consumer, handoff or contend
    #[arg(long, value_name = "NAME", default_value = "producer-consumer")]
    pub experiment: String,
    /// How to wait for the lock: an id of `spin predict`, or `futex` to park at once;
    /// repeatable, to compare algorithms
    #[arg(
        long = "algorithm",
        value_name = "ID",
        default_value = "netfx_awarelock"
    )]
    pub algorithms: Vec<String>,
    /// Imitate this chip's spin hints (duration at its typical clock)
    #[arg(long, value_name = "CHIP", conflicts_with = "pause_ns")]
    pub as_chip: Option<String>,
    /// Give spin hints this duration, in nanoseconds
    #[arg(long, value_name = "NS", value_parser = parse_ns, allow_negative_numbers = true)]
    pub pause_ns: Option<f64>,
    /// Number of CPUs that algorithms assume [default: those allowed here]
    #[arg(long, value_name = "N", value_parser = parse_cpus)]
    pub cpu_count: Option<u64>,
    /// Times from taking the lock until the sender wants it or, for handoff, until the lock is
    /// released; such as `1..9ms` (in steps of one) or `500us,2ms`
    #[arg(long, value_name = "TIMES", default_value = "1..9ms")]
    pub delays: String,
    /// How long the lock is held for an item (producer-consumer)
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = parse_duration)]
    pub hold: Duration,
    /// Items per delay and repeat; times are reported per 100
    #[arg(long, value_name = "N", default_value = "10", value_parser = parse_count)]
    pub items: usize,
    /// Repeat everything K times
    #[arg(long, value_name = "K", default_value = "2", value_parser = parse_count)]
    pub repeat: usize,
    /// Numbers of contending threads, such as 2,8 [default: 1, 2 and 4 per CPU]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_count)]
    pub threads: Vec<usize>,
    /// Run at real-time priority, with less disturbance by other programs (needs
    /// `CAP_SYS_NICE`)
    #[arg(long)]
    pub realtime: bool,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
}

/// Reads the length of a hint.
fn parse_ns(text: &str) -> Result<f64, String> {
    /// No hint of any chip is longer: a thousand times the longest known.
    const LONGEST_NS: f64 = 100_000.0;
    match text.parse::<f64>() {
        Ok(ns) if ns > 0.0 && ns <= LONGEST_NS => Ok(ns),
        _ => Err("write nanoseconds, above 0 and at most 100000, such as 43".to_owned()),
    }
}

/// Reads a number of CPUs.
fn parse_cpus(text: &str) -> Result<u64, String> {
    /// The limit of the largest kernels.
    const MAX_CPUS: u64 = 1 << 16;
    match text.parse() {
        Ok(cpus) if (1..=MAX_CPUS).contains(&cpus) => Ok(cpus),
        _ => Err("write a number of CPUs, at least 1 and at most 65536".to_owned()),
    }
}
