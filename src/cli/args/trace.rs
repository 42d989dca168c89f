//! Arguments of what looks at the scheduler: `trace` and `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::values::{parse_duration, parse_tag, parse_whole};

/// `pinwise trace`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  pinwise trace -- ./prog
  pinwise trace --place one-core --tier switch -- ./prog
  pinwise trace --pid 4711 --for 10s
  pinwise trace --interrupts -- ./prog
  pinwise trace --export perfetto:prog.pftrace -- ./prog
  pinwise trace import perf.data
  pinwise trace tiers

Tiers, poorest first: proc (T0, polling), switch (T1, perf records of the
program's threads), cpu-wide (T2, of all CPUs), tracepoint (T3), bpf (T4). The
richest one that is permitted is taken; `trace tiers` says which those are, and
their cost. Processes that the command leaves running are left, and named."
)]
pub struct TraceArgs {
    /// Other uses.
    #[command(subcommand)]
    pub action: Option<TraceAction>,
    /// Trace a process that runs already, with all its threads
    #[arg(long, value_name = "PID", value_parser = parse_whole::<i32>, conflicts_with_all = ["argv", "all"])]
    pub pid: Option<i32>,
    /// Trace everything on the machine
    #[arg(long, conflicts_with = "argv")]
    pub all: bool,
    /// For how long [default: to the end of the command; 10s of a process]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub limit: Option<Duration>,
    /// How events are collected: proc, switch, cpu-wide, tracepoint, bpf
    /// [default: the richest that is permitted]
    #[arg(long, value_name = "TIER")]
    pub tier: Option<String>,
    /// Add up what interrupts and softirqs took of each CPU and of the program
    /// (as root; each costs about 1 µs more)
    #[arg(long)]
    pub interrupts: bool,
    /// Do not measure beforehand what the tier costs (it takes half a second)
    #[arg(long)]
    pub no_cost: bool,
    /// Where the command runs
    #[arg(
        long,
        value_name = "PLACEMENT",
        default_value = "os-default",
        conflicts_with_all = ["pid", "all"]
    )]
    pub place: String,
    /// File for standard input of the command [default: nothing]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Standard output and error of the command: `discard`, or `inherit`
    #[arg(long, value_name = "WHERE", default_value = "discard")]
    pub output: String,
    /// What is written beside what is printed.
    #[command(flatten)]
    pub files: TraceFiles,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
    /// The command with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub argv: Vec<String>,
}

/// What is written of a trace beside what is printed.
#[derive(Debug, Args)]
pub struct TraceFiles {
    /// Also write every event: `perfetto` or `csv`, with `:FILE`; repeatable
    /// [default file: pinwise.pftrace, pinwise.csv]
    #[arg(long = "export", value_name = "FORMAT")]
    pub exports: Vec<String>,
    /// Write the record
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Label the record
    #[arg(long = "tag", value_name = "TAG", value_parser = parse_tag)]
    pub tags: Vec<String>,
}

/// Other uses of `pinwise trace`.
#[derive(Debug, Subcommand)]
pub enum TraceAction {
    /// Read a trace that perf or ftrace made
    #[command(after_help = "Examples:
  perf sched record -- ./prog; pinwise trace import perf.data
  pinwise trace import --pid 4711 trace.txt
  pinwise trace import --topology server.xml --export perfetto perf.data

Takes perf.data with sched:sched_switch (perf sched record) or switch records
(perf record --sample-cpu --switch-events -e dummy), and ftrace's text (trace,
trace_pipe, trace-cmd report). The machine is the one at hand unless --topology
or --machine says otherwise.")]
    Import(TraceImportArgs),
    /// List the tiers, what each needs, and what each costs here
    #[command(after_help = "Examples:
  pinwise trace tiers
  pinwise trace tiers --for 5s --format json")]
    Tiers {
        /// Time for measuring what they cost
        #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
        limit: Duration,
    },
}

/// `pinwise trace import`
#[derive(Debug, Args)]
pub struct TraceImportArgs {
    /// The file
    pub file: PathBuf,
    /// Only this process and what it starts [default: of perf record the
    /// command, else everything]
    #[arg(long, value_name = "PID", value_parser = parse_whole::<i32>)]
    pub pid: Option<i32>,
    /// The machine it was made on: what `topology --from` takes
    #[arg(long, value_name = "PATH")]
    pub topology: Option<PathBuf>,
    /// What is written beside what is printed.
    #[command(flatten)]
    pub files: TraceFiles,
}

/// `pinwise top`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise top
  pinwise top --pid 4711 --interval 500ms
  pinwise top --once

Keys: q quit, s sort, f filter, p pin the chosen thread, u undo that, P keep
pins, arrows move, ? help. Pins are undone on leaving, however pinwise ends.")]
pub struct TopArgs {
    /// Only this process and what it starts
    #[arg(long, value_name = "PID", value_parser = parse_whole::<i32>)]
    pub pid: Option<i32>,
    /// Time between two frames
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    pub interval: Duration,
    /// Print one frame and quit
    #[arg(long)]
    pub once: bool,
    /// By what threads are sorted
    #[arg(long, value_enum, value_name = "BY", default_value = "cpu")]
    pub sort: TopSort,
    /// Only threads whose name holds this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// How events are collected [default: the richest that is permitted]
    #[arg(long, value_name = "TIER")]
    pub tier: Option<String>,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
}

/// By what threads are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TopSort {
    /// CPU time.
    Cpu,
    /// Migrations.
    Migrations,
    /// Time queued.
    Wait,
    /// The CPU they are on.
    Place,
    /// Name.
    Name,
}
