//! The command line as it is written: one table that parsing, `--help`, man
//! pages, completions and the reference are made from.
//!
//! Nothing is interpreted here beyond the format of numbers, durations and shares; what needs the
//! machine is resolved later.

mod apply;
mod companions;
mod compare;
mod deferred;
mod fleet;
mod formats;
mod gate;
mod generate;
mod groups;
mod help;
mod jitter;
mod kernels;
mod profile;
mod run;
mod sampling;
mod scheduling;
mod search;
mod spin;
mod stored;
mod topology;
mod trace;
mod workload;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use pinwise_stats::judge::Judge;

use deferred::Deferred;

pub(super) use apply::{
    ApplyAction, ApplyArgs, InterruptArgs, LiveArgs, RestoreArgs, RulesAction, RulesArgs,
    RulesCheckArgs, RulesRunArgs, WhatIfArgs,
};
pub(super) use companions::CompanionArgs;
pub(super) use compare::CompareArgs;
pub(super) use fleet::{
    FleetAction, FleetArgs, FleetCancelArgs, FleetCollectArgs, FleetDiffArgs, FleetFailure,
    FleetNodeArgs, FleetReportArgs, FleetResumeArgs, FleetSimulateArgs, FleetStatusArgs,
    FleetSubmitArgs,
};
pub(super) use formats::refuse_format;
pub(super) use gate::{GateArgs, Undecided};
pub(super) use generate::{CompletionsArgs, GenerateArgs, Generated};
pub(super) use groups::GroupArgs;
pub(super) use help::{HelpExtent, build_command, called_command_line};
pub(super) use jitter::JitterArgs;
pub(super) use kernels::{
    BenchAction, BenchArgs, KernelArgs, RecipesArgs, ReproduceArgs, SplitChoice, Suite,
};
pub(super) use profile::{ProfileAction, ProfileArgs, ProfileDiffArgs, ProfileView};
pub(super) use run::{Per, RunArgs};
pub(super) use scheduling::SchedulingArgs;
pub(super) use search::{PredictArgs, RoundArgs, SearchAction, SearchArgs, SearchResultArgs};
pub(super) use spin::{
    ProcessorArgs, SpinAction, SpinAdviseArgs, SpinArgs, SpinAttachArgs, SpinPauseArgs,
    SpinPredictArgs, SpinReplayArgs, SpinScanArgs, UnknownGap,
};
pub(super) use stored::{
    CopyArgs, DiffArgs, HistoryArgs, Narrowing, PruneArgs, RecordAction, RecordArgs, ReportArgs,
    ServeArgs, ShowArgs, TagArgs,
};
pub(super) use topology::{TopologyAction, TopologyArgs};
pub(super) use trace::{TopArgs, TopSort, TraceAction, TraceArgs, TraceFiles, TraceImportArgs};

pub(super) use workload::WorkloadArgs;

use super::values::{
    MachineSpec, parse_count, parse_duration, parse_margin, parse_tag, parse_whole,
};

/// Finds out where threads should run, and proves it.
#[derive(Debug, Parser)]
#[command(
    name = "pinwise",
    version,
    about = "Finds out how a machine's CPUs are wired and where threads should run, and proves it with statistics that hold on a noisy machine.",
    after_help = "Examples:
  pinwise compare -- ./prog                   # where should its threads run?
  pinwise compare './old -x' './new -x'       # which of two builds is faster?
  pinwise gate main . --suite bench.toml      # may this change be merged?
  pinwise doctor                              # what distorts measurements here?
  pinwise topology --measure                  # is the reported wiring true?
  pinwise trace --pid 4711 --for 10s          # why does a service wait?
  pinwise profile --pid 4711 --for 10s        # what does it compute?
  pinwise run --place one-per-core -- ./prog  # once, placed

Exit status: 0 done; 1 a limit was exceeded (gate, --fail-if-slower, --check,
--max-spin); 2 error, or a command failed; 3 undecided (gate, --fail-if-slower,
--check, --require-verdict); 130 interrupted.",
    disable_help_subcommand = true,
    max_term_width = 80
)]
pub struct Cli {
    /// Options of all commands.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of all commands.
#[derive(Debug, Args)]
pub struct Global {
    /// The machine to work on: `local`, `sim:DESCRIPTION` such as
    /// 'sim:package:2 l3:2 core:4 pu:2', or `sim:FILE.toml`
    #[arg(
        long,
        global = true,
        value_name = "SPEC",
        default_value = "local",
        help_heading = "Global options"
    )]
    pub machine: MachineSpec,
    /// Where records are kept: `sqlite:PATH`, `postgres://USER@HOST/DATABASE`,
    /// or `none`
    /// [default: pinwise/pinwise.db in the user's data folder]
    #[arg(
        long,
        global = true,
        value_name = "STORE",
        env = "PINWISE_STORE",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub store: Option<String>,
    /// Format of standard output
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Global options"
    )]
    pub format: Format,
    /// Colour output; auto: on a terminal without `NO_COLOR`
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    pub color: ColorChoice,
    /// Only warnings and errors on standard error
    #[arg(long, short, global = true, help_heading = "Global options")]
    pub quiet: bool,
    /// Show all findings and a log, -vv in detail [env: `PINWISE_LOG`]
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Global options")]
    pub verbose: u8,
    /// The whole command line as records keep it: without the store, and empty if an argument is
    /// not text.
    #[arg(skip)]
    pub argv: Vec<String>,
}

/// Format of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// Exactly the stored record.
    Json,
    /// One line per run, or per pair of CPUs of a measured machine.
    Csv,
    /// A table.
    Markdown,
    /// A page for a browser.
    Html,
    /// Machines only: hwloc 2 XML, with what was measured as groups and
    /// distances.
    Xml,
    /// As hyperfine's --export-json.
    Hyperfine,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compare placements of a command, or commands, or parameters
    Compare(Deferred<CompareArgs>),
    /// Find the best of very many placements in a few runs
    Search(Deferred<SearchArgs>),
    /// Judge a change: two builds over a suite of benchmarks
    Gate(Deferred<GateArgs>),
    /// Measure built-in workloads: scaling, SMT, memory, caches
    Bench(Deferred<BenchArgs>),
    /// Show how the CPUs are wired, as reported and as measured
    Topology(Deferred<TopologyArgs>),
    /// Check this machine for things that distort measurements
    #[command(after_help = "Examples:
  pinwise doctor
  pinwise doctor --format json

Every check is reported with its evidence, its severity and advice; nothing is
changed.")]
    Doctor,
    /// Trace what the scheduler does with a program's threads
    Trace(Deferred<TraceArgs>),
    /// Watch threads on CPUs, live
    Top(Deferred<TopArgs>),
    /// Show where CPU time goes, down to the instruction
    Profile(Deferred<ProfileArgs>),
    /// Find spin-waits and what they cost; predict and replay locks
    Spin(Deferred<SpinArgs>),
    /// Run a command once in a placement
    Run(Deferred<RunArgs>),
    /// Print a placement for other tools, or place running processes
    Apply(Deferred<ApplyArgs>),
    /// List, show, compare, tag and remove stored records
    Record(Deferred<RecordArgs>),
    /// Show records and running experiments in a browser
    Serve(Deferred<ServeArgs>),
    /// Run a study on the nodes of a cluster and compare them
    Fleet(Deferred<FleetArgs>),
    /// Run the experiments of five published performance reports
    Reproduce(Deferred<ReproduceArgs>),
    /// Print shell completions
    Completions(Deferred<CompletionsArgs>),
    /// Write man pages, completions or the command-line reference
    #[command(hide = true)]
    Generate(Deferred<GenerateArgs>),
}

/// How long, how precise, how often: shared by all experiments.
#[derive(Debug, Args)]
#[command(next_help_heading = "How long and how precise")]
pub struct EffortArgs {
    /// Total time, such as 500ms, 30s, 2m [default: 60s, none with --max-runs]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub budget: Option<Duration>,
    /// Maximum runs per arm; if weak arms are dropped early, on average over the arms
    #[arg(long, short = 'r', visible_alias = "runs", short_alias = 'M', value_name = "N", value_parser = parse_count)]
    pub max_runs: Option<usize>,
    /// Run until every interval is ± this share wide, such as 2%
    #[arg(long, value_name = "SHARE", value_parser = parse_margin, allow_hyphen_values = true)]
    pub precision: Option<f64>,
    /// Smallest effect of interest: less than this is "the same"
    #[arg(long, value_name = "SHARE", value_parser = parse_margin, default_value = "1%", allow_hyphen_values = true)]
    pub min_effect: f64,
    /// Rounds (each arm once) to discard at the start [default: 1, or 2 if the first was slow]
    #[arg(long, short = 'w', value_name = "N", value_parser = parse_whole::<usize>)]
    pub warmup: Option<usize>,
    /// Seed for the order of runs [default: random, recorded]
    #[arg(long, value_name = "SEED", value_parser = parse_whole::<u64>)]
    pub seed: Option<u64>,
    /// Compare this: typical, mean, or a percentile such as p99 (p51 to p99)
    #[arg(long, value_name = "WHAT", default_value_t = Judge::Typical)]
    pub judge: Judge,
    /// Weight of rounds (each arm once) for --judge typical: less under load (weighted),
    /// or equal (rank)
    #[arg(long, value_enum, value_name = "SCORE", default_value = "weighted")]
    pub score: ScoreChoice,
}

/// How blocks count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScoreChoice {
    /// Blocks that ran under load count less.
    Weighted,
    /// All blocks count alike.
    Rank,
}

/// Files to write beside what is printed.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results as files")]
pub struct ResultArgs {
    /// Write the record
    #[arg(long, value_name = "FILE")]
    pub export_json: Option<PathBuf>,
    /// Write one line per run
    #[arg(long, value_name = "FILE")]
    pub export_csv: Option<PathBuf>,
    /// Write a table
    #[arg(long, value_name = "FILE")]
    pub export_markdown: Option<PathBuf>,
    /// Write runs as hyperfine's --export-json does
    #[arg(long, value_name = "FILE")]
    pub export_hyperfine: Option<PathBuf>,
    /// Write a self-contained HTML page
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Label the record
    #[arg(long = "tag", value_name = "TAG", value_parser = parse_tag)]
    pub tags: Vec<String>,
}

/// Arguments of all experiments: effort, the command and how it runs, results.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// Options on effort.
    #[command(flatten)]
    pub effort: EffortArgs,
    /// Options on running.
    #[command(flatten)]
    pub workload: WorkloadArgs,
    /// Options on results.
    #[command(flatten)]
    pub results: ResultArgs,
    /// A command as one line (quotes as in a shell); compare takes several
    #[arg(value_name = "COMMAND_LINE", conflicts_with = "argv", help_heading = None::<&'static str>)]
    pub lines: Vec<String>,
    /// The command with its arguments
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub argv: Vec<String>,
}
