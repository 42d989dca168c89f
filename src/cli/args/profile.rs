//! Arguments of `pinwise profile`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::sampling::SamplingArgs;
use crate::cli::values::{parse_count, parse_duration, parse_whole};
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
second of a process, or what --units and --metric say. Time that is seen at the
instruction after a PAUSE was spent in the PAUSE and is reported as such.
Stacks that end before their outermost function stand below [broken]."
)]
pub struct ProfileArgs {
    /// Other uses.
    #[command(subcommand)]
    pub action: Option<ProfileAction>,
    /// Profile a process that runs already, with all its threads
    #[arg(long, value_name = "PID", value_parser = parse_whole::<i32>, conflicts_with_all = ["argv", "place", "input", "output"])]
    pub pid: Option<i32>,
    /// For how long [default: to the end of the command; 10s of a process]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub limit: Option<Duration>,
    /// How samples are made.
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// How callers are found
    #[arg(long, value_enum, value_name = "HOW", default_value = "auto")]
    pub stacks: StacksChoice,
    /// Run the command N times; the samples of all runs count together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_count, conflicts_with = "pid")]
    pub runs: usize,
    /// Units of work of each run, read off what the program prints: a count
    /// such as 'regex:([0-9]+) items higher' or 'json:.requests higher'
    #[arg(long, value_name = "METRIC", conflicts_with_all = ["pid", "units"])]
    pub metric: Option<String>,
    /// Units of work of each run, or done while a process is watched, and what
    /// they are called: 1200 or 1200:request
    #[arg(long, value_name = "N[:NAME]")]
    pub units: Option<String>,
    /// How much is printed.
    #[command(flatten)]
    pub view: ProfileView,
    /// What is written beside what is printed.
    #[command(flatten)]
    pub files: ProfileFiles,
    /// The command with its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub argv: Vec<String>,
}

/// How callers are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StacksChoice {
    /// By frame pointers where the program was built with them, else dwarf.
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
    /// Functions
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = parse_whole::<usize>)]
    pub top: usize,
    /// Hot instructions with the code around them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = parse_whole::<usize>)]
    pub instructions: usize,
    /// Functions only: no instructions, no threads
    #[arg(long, conflicts_with = "instructions")]
    pub functions: bool,
}

/// What is written of a profile beside what is printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct ProfileFiles {
    /// Write an HTML page with the flame graph, to open or to send
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write the stacks: a line `a;b;c N` each, outermost function first
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

Functions stand in the order of their change, CPU time per run, item or
request, with the 95 % interval that counting samples allows. Before them
stands which part is spin-waits, memory, frequency and waiting, and what is
unexplained. `pinwise record report A B` is a page with both flame graphs and
that of their difference.")]
    Diff(ProfileDiffArgs),
}

/// `pinwise profile diff`
#[derive(Debug, Args)]
pub struct ProfileDiffArgs {
    /// The profile before: a record's id or its beginning, `last`, `last~1` for
    /// the one before that, or a file that --export-json wrote
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// The profile after
    #[arg(value_name = "AFTER")]
    pub after: String,
    /// Functions that are printed; the record has more
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = parse_whole::<usize>)]
    pub top: usize,
    /// Write the record
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
}
