//! Arguments of `pinwise profile`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::sampling::SamplingArgs;
use crate::cli::values::{parse_count, parse_duration, parse_process, parse_whole};
use pinwise_profile::Stacks;

/// `pinwise profile`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  pinwise profile -- ./prog
  pinwise profile --runs 5 --report prog.html -- ./prog
  pinwise profile diff last~1 last
  pinwise profile --metric 'regex:([0-9.]+) req higher' -- ./bench
  pinwise profile --pid 4711 --for 10s --units 1200:request

Times are CPU time, in seconds and per unit of work: a run of a command, a
second of a process, or the unit of --units or --metric. Samples at the
instruction after a PAUSE are attributed to the PAUSE. Truncated stacks
appear under the frame [broken]."
)]
pub struct ProfileArgs {
    /// Other uses.
    #[command(subcommand)]
    pub action: Option<ProfileAction>,
    /// Profile all threads of a running process (number or name)
    #[arg(long, value_name = "PID", value_parser = parse_process, conflicts_with_all = ["argv", "place", "input", "output"])]
    pub pid: Option<i32>,
    /// Only the thread of this name or number
    #[arg(long, value_name = "THREAD")]
    pub thread: Option<String>,
    /// For this long [default: until the command ends; 10s with --pid]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub limit: Option<Duration>,
    /// How samples are made.
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// How callers are found
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    pub stacks: StacksChoice,
    /// Run the command N times; the samples of all runs are merged
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_count, conflicts_with = "pid")]
    pub runs: usize,
    /// Units of work per run, parsed from the program's output: 'regex:([0-9]+)
    /// items higher' or 'json:.requests higher'
    #[arg(long, value_name = "METRIC", conflicts_with_all = ["pid", "units"])]
    pub metric: Option<String>,
    /// Units of work per run, or during the profile of a process, with an optional
    /// name: 1200 or 1200:request
    #[arg(long, value_name = "N[:NAME]")]
    pub units: Option<String>,
    /// How much is printed.
    #[command(flatten)]
    pub view: ProfileView,
    /// Files of a profile, beside the printed text.
    #[command(flatten)]
    pub files: ProfileFiles,
    /// The command with its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub argv: Vec<String>,
}

/// How callers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StacksChoice {
    /// By frame pointers if the program was built with them, else dwarf.
    Auto,
    /// By frame pointers: cheap.
    Fp,
    /// By unwind tables, from 16 KiB of each stack.
    Dwarf,
    /// Not at all.
    None,
}

impl From<StacksChoice> for Stacks {
    fn from(choice: StacksChoice) -> Self {
        match choice {
            StacksChoice::Auto => Self::Auto,
            StacksChoice::Fp => Self::FramePointers,
            StacksChoice::Dwarf => Self::Dwarf,
            StacksChoice::None => Self::None,
        }
    }
}

/// How much of a profile is printed; the record has more.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is printed")]
pub struct ProfileView {
    /// Number of functions
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = parse_whole::<usize>)]
    pub top: usize,
    /// Number of hot instructions, with the surrounding code
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse_whole::<usize>)]
    pub instructions: usize,
    /// Functions only: no instructions, no threads
    #[arg(long, conflicts_with = "instructions")]
    pub functions: bool,
}

/// Files of a profile, beside the printed text.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct ProfileFiles {
    /// Write a self-contained HTML page with the flame graph
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write folded stacks: lines such as `a;b;c N`, outermost function first
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
}

/// Other uses of `pinwise profile`.
#[derive(Debug, Subcommand)]
pub enum ProfileAction {
    /// Subtract two profiles, per unit of work
    #[command(after_help = "Examples:
  pinwise profile diff last~1 last
  pinwise profile diff before.json after.json --top 30

Prints how much of the difference is due to spin-waits, memory, frequency and
waiting, and how much is unexplained; then functions by their change in CPU time
per run, item or request, with 95 % intervals (Poisson counts of samples).
`pinwise record report A B` writes a page with both flame graphs and that of
their difference.")]
    Diff(ProfileDiffArgs),
}

/// `pinwise profile diff`
#[derive(Debug, Args)]
pub struct ProfileDiffArgs {
    /// The earlier profile: a record's id or its prefix, `last`, `last~1` (the one
    /// before), or a file written by --export-json
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// The later profile
    #[arg(value_name = "AFTER")]
    pub after: String,
    /// Number of functions to print; the record has more
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = parse_whole::<usize>)]
    pub top: usize,
    /// Write the record
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}
