//! Arguments of `pinwise spin scan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::cli::values::{parse_count, parse_duration};

/// `pinwise spin scan`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise spin scan /lib/x86_64-linux-gnu/libgomp.so.1
  pinwise spin scan --chip skylake-sp --cpu-count 48 ./server
  pinwise spin scan --max-blind-gap 1us --unknown pass target/release/server")]
pub struct SpinScanArgs {
    /// Programs, libraries and object files (ELF, x86-64 or arm64)
    #[arg(required = true, value_name = "BINARY")]
    pub binaries: Vec<PathBuf>,
    /// Report gaps on this chip; repeatable [default: broadwell, skylake-sp,
    /// ice-lake-sp, meteor-lake-p and zen-4; without a limit this machine's, too]
    #[arg(long = "chip", value_name = "CHIP")]
    pub chips: Vec<String>,
    /// Also report gaps on this machine, with its PAUSE measured
    #[arg(long)]
    pub here: bool,
    /// Number of CPUs that the program sees, for algorithms that depend on it
    /// [default: this machine's]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub cpu_count: Option<usize>,
    /// Exit with status 1 if a loop looks less often than this on one of the chips: the
    /// time between two looks is its blind gap
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub max_blind_gap: Option<Duration>,
    /// How to treat loops whose gap is not known from the code
    #[arg(long, value_enum, default_value_t = UnknownGap::Fail, requires = "max_blind_gap")]
    pub unknown: UnknownGap,
}

/// How to treat loops whose gap is not known from the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum UnknownGap {
    /// They fail the limit.
    Fail,
    /// They pass, and are reported.
    Pass,
}
