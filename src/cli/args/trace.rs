//! Arguments of the commands that watch the scheduler: `trace` and `top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::values::{parse_duration, parse_process, parse_tag, parse_whole};

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

Tiers, from least to most detailed: proc (T0, polling), switch (T1, perf records
of the program's threads), cpu-wide (T2, of all CPUs), tracepoint (T3), bpf
(T4). The most detailed permitted one is used; `trace tiers` lists them and
their overhead. Processes that outlive the command are reported, not killed."
)]
pub struct TraceArgs {
    /// Other uses.
    #[command(subcommand)]
    pub action: Option<TraceAction>,
    /// Trace all threads of a running process (number or name)
    #[arg(short, long, value_name = "PID", value_parser = parse_process, conflicts_with_all = ["argv", "all"])]
    pub pid: Option<i32>,
    /// Trace the whole machine
    #[arg(long, conflicts_with = "argv")]
    pub all: bool,
    /// For this long [default: until the command ends; 10s with --pid]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    pub limit: Option<Duration>,
    /// How events are collected: proc, switch, cpu-wide, tracepoint, bpf
    /// [default: the most detailed that is permitted]
    #[arg(long, value_name = "TIER")]
    pub tier: Option<String>,
    /// Sum up interrupt and softirq time per CPU and within the program; needs root;
    /// adds about 1 µs to each
    #[arg(long)]
    pub interrupts: bool,
    /// Skip measuring the tier's overhead beforehand (half a second)
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
    /// File for standard input of the command [default: none]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Standard output and error of the command: `discard` or `inherit`
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
    /// Also write every event as `perfetto` or `csv`, with optional `:FILE`; repeatable
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
    /// Read a trace recorded by perf or ftrace
    #[command(after_help = "Examples:
  perf sched record -- ./prog; pinwise trace import perf.data
  pinwise trace import --pid 4711 trace.txt
  pinwise trace import --topology server.xml --export perfetto perf.data

Takes perf.data with sched:sched_switch (perf sched record) or switch records
(perf record --sample-cpu --switch-events -e dummy), what perf script prints,
and ftrace's text (trace, trace_pipe, trace-cmd report). The trace is assumed
to be from this machine unless --topology or --machine says otherwise.")]
    Import(TraceImportArgs),
    /// List the tiers, their requirements, and their overhead here
    #[command(after_help = "Examples:
  pinwise trace tiers
  pinwise trace tiers --for 5s --format json")]
    Tiers {
        /// Time for measuring their overhead
        #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
        limit: Duration,
    },
}

/// `pinwise trace import`
#[derive(Debug, Args)]
pub struct TraceImportArgs {
    /// The file
    pub file: PathBuf,
    /// Only this process and its descendants [default: perf record's command, else
    /// everything]
    #[arg(long, value_name = "PID", value_parser = parse_whole::<i32>)]
    pub pid: Option<i32>,
    /// The machine it was recorded on; see `topology --from`
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

Keys: q quit, s sort, f filter, p pin the selected thread, u unpin, P keep pins,
arrows move, ? help. Unless kept with P, pins are undone on exit, however
pinwise ends.")]
pub struct TopArgs {
    /// Only this process (number or name) and its descendants
    #[arg(long, value_name = "PID", value_parser = parse_process)]
    pub pid: Option<i32>,
    /// Time between frames
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "1s")]
    pub interval: Duration,
    /// Print one frame and quit
    #[arg(long)]
    pub once: bool,
    /// Sort threads by this column
    #[arg(long, value_enum, value_name = "BY", default_value = "cpu")]
    pub sort: TopSort,
    /// Only threads whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// How events are collected: proc, switch, cpu-wide, tracepoint, bpf
    /// [default: the most detailed that is permitted]
    #[arg(long, value_name = "TIER")]
    pub tier: Option<String>,
    /// Seed of a simulated machine [default: random]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
}

/// The order of threads.
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
