//! Arguments of the built-in workloads and of the commands that use them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{EffortArgs, JitterArgs, ResultArgs};
use crate::cli::values::{parse_count, parse_duration, parse_number_or_bytes};

/// `pinwise bench kernel`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise bench kernel --list
  pinwise bench kernel whetstone --threads 2 --work 100
  pinwise bench kernel fft --seconds 2s --isa v3
  pinwise bench kernel triad --threads 2 --size 1GiB --bind 0,1

A unit of work takes about 10 ms on one core of 2026. The same work gives the
same checksum for any number of threads, split, instruction set and placement.")]
pub struct KernelArgs {
    /// The kernel; see --list
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub name: Option<String>,
    /// List all kernels, what they do, and what they count
    #[arg(long)]
    pub list: bool,
    /// Threads that share the work
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = parse_count)]
    pub threads: usize,
    /// Units of work in total [default: 100]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub work: Option<usize>,
    /// Work for this long instead
    #[arg(long, value_name = "TIME", value_parser = parse_duration, conflicts_with = "work")]
    pub seconds: Option<Duration>,
    /// Size of a unit or of the data, such as 1048576, 64KiB or 1GiB; --list
    /// shows what it means for each kernel
    #[arg(long, value_name = "SIZE", value_parser = parse_number_or_bytes)]
    pub size: Option<u64>,
    /// Instruction set of the hot loop: v1, v2, v3, v4 (of x86-64) or native
    #[arg(long, value_name = "ISA", default_value = "native")]
    pub isa: String,
    /// How units are distributed over threads
    #[arg(long, value_enum, value_name = "HOW", default_value = "static")]
    pub split: SplitChoice,
    /// Bind thread i to the i-th of these CPUs [default: threads are not bound]
    #[arg(long, value_name = "CPUS")]
    pub bind: Option<String>,
    /// Folder for the kernel's files [default: the folder for temporary files]
    #[arg(long, value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// How units are distributed over threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitChoice {
    /// In equal shares, beforehand.
    Static,
    /// An idle thread takes the next unit.
    Dynamic,
}

/// `pinwise bench`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  pinwise bench whetstone fft
  pinwise bench --suite smt
  pinwise bench --suite memory --threads 1..4
  pinwise bench --suite smt --machine 'sim:package:1 core:4 pu:2'
  pinwise bench mandelbrot --isa v1,native

Each kernel is one randomised comparison, whose arms are thread counts and
places (two more for SMT); the threads share the same work. Without --budget
there is time for about 12 blocks of each, between 1 and 10 minutes in total;
without --precision a comparison ends when all intervals are within ±0.5 %.",
    args_conflicts_with_subcommands = true
)]
pub struct BenchArgs {
    /// What else to do with workloads.
    #[command(subcommand)]
    pub action: Option<BenchAction>,
    /// Kernels; see `pinwise bench kernel --list`
    #[arg(value_name = "KERNEL", conflicts_with = "suite")]
    pub kernels: Vec<String>,
    /// A set of kernels with the placements and threads that suit its question
    #[arg(long, value_enum, value_name = "SUITE")]
    pub suite: Option<Suite>,
    /// Where the threads run; repeatable [default: depends on the suite]
    #[arg(long = "place", value_name = "PLACEMENT")]
    pub places: Vec<String>,
    /// Numbers of threads: 1..4 or 1,2,4 [default: depends on the suite]
    #[arg(long, value_name = "LIST")]
    pub threads: Option<String>,
    /// Instruction sets: v1,v3,native or all [default: native]
    #[arg(long, value_name = "LIST")]
    pub isa: Option<String>,
    /// Units of work per run, in total [default: 10 × the largest thread count, at most 100]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub work: Option<usize>,
    /// Options on effort.
    #[command(flatten)]
    pub effort: EffortArgs,
    /// Options on results.
    #[command(flatten)]
    pub results: ResultArgs,
}

/// What else `pinwise bench` does.
#[derive(Debug, Subcommand)]
pub enum BenchAction {
    /// Run a built-in workload once
    Kernel(KernelArgs),
    /// Measure interruptions of each CPU and their causes
    Jitter(JitterArgs),
    /// List recipes: real programs with prepared input for compare --recipe
    Recipes(RecipesArgs),
}

/// Sets of kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// The gain from the second CPU of a core.
    Smt,
    /// Memory bandwidth and latency by CPU.
    Memory,
    /// Cache bandwidth and latency, level by level.
    Caches,
    /// Speedup by number of threads.
    Scaling,
    /// All of these.
    All,
}

impl Suite {
    /// Its name on the command line.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// `pinwise bench recipes`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise bench recipes
  pinwise bench recipes compile
  pinwise compare --recipe compile
  pinwise compare --recipe ./my.toml")]
pub struct RecipesArgs {
    /// Print this recipe in full
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// `pinwise reproduce`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise reproduce --list
  pinwise reproduce hyperthread-fill --simulated
  pinwise reproduce --all --simulated
  pinwise reproduce pinned-single-thread --budget 2m

With --simulated, results follow from modelled mechanisms. Figures used to fit
the model are marked 'given'; they do not count as reproduced.")]
pub struct ReproduceArgs {
    /// The field report
    #[arg(value_name = "NAME", required_unless_present_any = ["list", "all"])]
    pub name: Option<String>,
    /// List the reports and their experiments
    #[arg(long, conflicts_with = "all")]
    pub list: bool,
    /// Run the experiments of all reports
    #[arg(long, conflicts_with = "name")]
    pub all: bool,
    /// Simulate the report's machine instead of using this one
    #[arg(long)]
    pub simulated: bool,
    /// Options on effort.
    #[command(flatten)]
    pub effort: EffortArgs,
}
