//! Arguments of `compare`.

use anyhow::Context;
use clap::Args;

use super::{
    CompanionArgs, ExperimentArgs, GroupArgs, InterruptArgs, LiveArgs, SchedulingArgs, Undecided,
    WhatIfArgs,
};
use crate::cli::values::{parse_count, parse_share};
use pinwise_workload::Sweep;

/// `pinwise compare`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  pinwise compare -- xz -T2 -k -c big.tar
  pinwise compare --place os-default --place one-core -- ./prog
  pinwise compare './old -x' './new -x' --fail-if-slower 2%
  pinwise compare --parameter threads=1,2,4 'prog -t {threads}'
  pinwise compare --self --budget 2m -- ./prog",
    after_long_help = "Examples:
  pinwise compare -- xz -T2 -k -c big.tar
  pinwise compare --place one-core --place 'spread*2' -- ./prog
  pinwise compare './old -x' './new -x' --fail-if-slower 2%
  pinwise compare --parameter threads=1,2,4 'prog -t {threads}'
  pinwise compare --kernel 'fft --threads 2' --place one-core --place spread
  pinwise compare --metric 'regex:([0-9.]+) req/s higher' -- ./bench

Placements: os-default, compact, one-per-core, spread, one-llc, cpu:0-3,
near:gpu0 …; `pinwise topology --help` has them all.
Metrics: wall (or time), user, system, cpu, max-rss, cycles, instructions, or
the program's own: '… higher|lower' with regex:… or json:.path; for a service
also prometheus:NAME, rate(NAME), p99(NAME).
See man pinwise-compare or docs/cli.md for every option."
)]
pub struct CompareArgs {
    /// Where the command runs; repeat for each arm; one alone is timed, os-default beside
    /// it compares it with the default [default: a few that fit the machine and the
    /// program's threads]
    #[arg(
        long = "place",
        value_name = "PLACEMENT",
        help_heading = "What is compared"
    )]
    pub places: Vec<String>,
    /// Also run placements with this memory policy; repeatable
    #[arg(
        long = "memory",
        value_name = "POLICY",
        conflicts_with_all = ["with_itself", "pid", "unit", "cgroup"],
        help_heading = "What is compared"
    )]
    pub memory_policies: Vec<String>,
    /// A command line to compare; repeat for each arm
    #[arg(long = "command", value_name = "COMMAND", conflicts_with_all = ["lines", "argv"], help_heading = "What is compared")]
    pub commands: Vec<String>,
    /// A real program with prepared input; a recipe of `pinwise bench recipes`, or a file
    /// such as ./my.toml
    #[arg(
        long,
        value_name = "RECIPE",
        conflicts_with_all = ["commands", "lines", "argv", "shell", "input", "output", "prepare", "conclude"],
        help_heading = "What is compared"
    )]
    pub recipe: Option<String>,
    /// Name of a command; given once per command, in their order
    #[arg(
        long = "name",
        short = 'n',
        visible_alias = "command-name",
        value_name = "NAME",
        conflicts_with_all = ["kernel", "recipe"],
        help_heading = "What is compared"
    )]
    pub names: Vec<String>,
    /// A built-in workload and its options, such as 'fft --size 65536 --threads 2';
    /// see pinwise bench kernel --list
    #[arg(long, value_name = "KERNEL", conflicts_with_all = ["lines", "argv", "commands", "parameters", "parameter_lists", "recipe"], help_heading = "What is compared")]
    pub kernel: Option<String>,
    /// Compare the kernel's instruction sets: v1,v3,native or all
    #[arg(
        long,
        value_name = "LIST",
        requires = "kernel",
        help_heading = "What is compared"
    )]
    pub isa: Option<String>,
    /// Values of a parameter: threads=1,2,4; or a range, size=1..8 or, in steps,
    /// 0.5..2..0.5; {NAME} is replaced in commands, names, --prepare, --conclude, --env
    /// and --input; with --recipe, it sets the recipe's parameter NAME
    #[arg(
        long = "parameter",
        short = 'P',
        value_name = "NAME=VALUES",
        help_heading = "What is compared"
    )]
    pub parameters: Vec<String>,
    /// The same as --parameter NAME=VALUES
    #[arg(
        long = "parameter-list",
        short = 'L',
        num_args = 2,
        value_names = ["NAME", "VALUES"],
        help_heading = "What is compared"
    )]
    pub parameter_lists: Vec<String>,
    /// The metric to compare; see Metrics below
    /// [default: wall, plus CPU time if two commands run in one placement; the
    /// recipe's metric; a kernel's own seconds]
    #[arg(long, value_name = "METRIC", help_heading = "What is compared")]
    pub metric: Option<String>,
    /// Compare the others with this arm [default: os-default; beside a cpuset the first limit]
    #[arg(long, value_name = "ARM", help_heading = "What is compared")]
    pub baseline: Option<String>,
    /// Compare the command with itself: shows this machine's noise; a verdict of faster or
    /// slower is a false alarm
    #[arg(
        long = "self",
        conflicts_with_all = [
            "names", "commands", "recipe", "kernel", "parameters", "parameter_lists", "baseline",
            "placebo", "fail_if_slower", "require_verdict", "trace", "emit", "pid", "unit",
            "cgroup", "machines",
        ],
        help_heading = "What is compared"
    )]
    pub with_itself: bool,
    /// Number of identical arms for --self
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = parse_count, requires = "with_itself", help_heading = "What is compared")]
    pub arms: usize,
    /// Add the baseline again under another name; as a check, it must come out the same
    #[arg(long, help_heading = "What is compared")]
    pub placebo: bool,
    /// Fail if slower by more than SHARE, CPU time too; runs until every arm is decided or
    /// the budget is spent; exits with 1 if one is certainly slower, with 0 if certainly
    /// none is
    #[arg(long, value_name = "SHARE", value_parser = parse_share, help_heading = "What is compared")]
    pub fail_if_slower: Option<f64>,
    /// Exit status of --fail-if-slower if undecided: 3, pass (0) or fail (1)
    #[arg(
        id = "undecided_limit",
        long = "undecided",
        value_enum,
        value_name = "STATUS",
        default_value = "3",
        requires = "fail_if_slower",
        help_heading = "What is compared"
    )]
    pub undecided: Undecided,
    /// Afterwards, trace one extra run of each arm
    #[arg(long, help_heading = "What is compared")]
    pub trace: bool,
    /// Run until every arm is decided; or, with --precision, until every interval is that
    /// narrow; --budget, --max-runs or Ctrl-C may end it earlier
    #[arg(long, help_heading = "How long and how precise")]
    pub open_ended: bool,
    /// Exit with 3 if there is no verdict; with --fail-if-slower, also run until there
    /// is one
    #[arg(long, help_heading = "What is compared")]
    pub require_verdict: bool,
    /// Afterwards, print the best arm for this tool; see `pinwise apply --as`
    #[arg(long, value_name = "TOOL", help_heading = "What is compared")]
    pub emit: Option<String>,
    /// Options on services.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Options on interrupts.
    #[command(flatten)]
    pub interrupts: InterruptArgs,
    /// Options on limits and cpusets.
    #[command(flatten)]
    pub groups: GroupArgs,
    /// Options on the scheduler.
    #[command(flatten)]
    pub scheduling: SchedulingArgs,
    /// Options on companions.
    #[command(flatten)]
    pub companions: CompanionArgs,
    /// Options on smaller machines.
    #[command(flatten)]
    pub what_if: WhatIfArgs,
    /// The user's default placements.
    #[arg(skip)]
    pub default_places: Vec<String>,
    /// What all experiments take.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}

impl CompareArgs {
    /// The parameters and their values, in whichever way they were written.
    pub(in crate::cli) fn sweeps(&self) -> anyhow::Result<Vec<Sweep>> {
        let pairs = self.parameter_lists.chunks(2).map(|pair| pair.join("="));
        let texts = self.parameters.iter().cloned().chain(pairs);
        texts
            .map(|text| text.parse().context("--parameter"))
            .collect()
    }
}
