//! Arguments of `compare`.

use anyhow::Context;
use clap::Args;

use super::{ExperimentArgs, InterruptArgs, LiveArgs, Undecided, WhatIfArgs};
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
  pinwise compare --place os-default --place one-core --place spread*2 -- ./prog
  pinwise compare './old -x' './new -x' --fail-if-slower 2%
  pinwise compare --parameter threads=1,2,4 'prog -t {threads}'
  pinwise compare --kernel 'fft --threads 2' --isa v1,native
  pinwise compare --metric 'regex:([0-9.]+) req/s higher' -- ./bench

Placements: os-default, compact, one-per-core, spread, one-llc, cpu:0-3,
near:gpu0 …; `pinwise topology --help` has them all.
Metrics: wall (or time), user, system, cpu, max-rss, cycles, instructions, or
the program's: '… higher|lower' with regex:… or json:.path, of a service also
prometheus:NAME, rate(NAME), p99(NAME).
All about each option: man pinwise-compare, or docs/cli.md."
)]
pub struct CompareArgs {
    /// Where the command runs; repeat for each arm [default: a few that fit
    /// the machine and the program's threads]
    #[arg(
        long = "place",
        value_name = "PLACEMENT",
        help_heading = "What is compared"
    )]
    pub places: Vec<String>,
    /// A memory policy as one more arm; of each placement; repeat for each
    #[arg(
        long = "memory",
        value_name = "POLICY",
        conflicts_with_all = ["with_itself", "pid", "unit", "cgroup"],
        help_heading = "What is compared"
    )]
    pub memory_policies: Vec<String>,
    /// A command line as one arm; repeat for each
    #[arg(long = "command", value_name = "COMMAND", conflicts_with_all = ["lines", "argv"], help_heading = "What is compared")]
    pub commands: Vec<String>,
    /// A real program as a ready workload: a name of `pinwise bench recipes`, or a
    /// file such as ./my.toml
    #[arg(
        long,
        value_name = "RECIPE",
        conflicts_with_all = ["commands", "lines", "argv", "shell", "input", "output", "prepare", "cleanup"],
        help_heading = "What is compared"
    )]
    pub recipe: Option<String>,
    /// Name of a command: of the one at the same position
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
    /// pinwise bench kernel --list shows them
    #[arg(long, value_name = "KERNEL", conflicts_with_all = ["lines", "argv", "commands", "parameters", "recipe"], help_heading = "What is compared")]
    pub kernel: Option<String>,
    /// Instruction sets of the kernel as arms: v1,v3,native or all
    #[arg(
        long,
        value_name = "LIST",
        requires = "kernel",
        help_heading = "What is compared"
    )]
    pub isa: Option<String>,
    /// A parameter's values: threads=1,2,4; also size=1..8; written {NAME} in the
    /// command, or one of the recipe
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
    /// The figure to compare; see Metrics below
    /// [default: wall, with CPU time beside it where two commands run in one
    /// place; the recipe's; of a kernel its own seconds]
    #[arg(long, value_name = "METRIC", help_heading = "What is compared")]
    pub metric: Option<String>,
    /// Compare the others with this arm [default: os-default, else the first]
    #[arg(long, value_name = "ARM", help_heading = "What is compared")]
    pub baseline: Option<String>,
    /// Compare the command with itself; whatever differs is this machine's
    /// noise, and a verdict of faster or slower is a false alarm
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
    /// How many labelled arms --self has
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = parse_count, requires = "with_itself", help_heading = "What is compared")]
    pub arms: usize,
    /// Add a second baseline under another name: it must come out the same
    #[arg(long, help_heading = "What is compared")]
    pub placebo: bool,
    /// Exit with 1 if an arm is surely slower by more; with 0 if all are surely not;
    /// it goes on until that is known of each
    #[arg(long, value_name = "SHARE", value_parser = parse_share, help_heading = "What is compared")]
    pub fail_if_slower: Option<f64>,
    /// What --fail-if-slower exits with if undecided: status3, pass (0) or fail (1)
    #[arg(
        id = "undecided_limit",
        long = "undecided",
        value_enum,
        value_name = "STATUS",
        default_value = "status3",
        requires = "fail_if_slower",
        help_heading = "What is compared"
    )]
    pub undecided: Undecided,
    /// Then trace one more run of every arm: what did the scheduler do?
    #[arg(long, help_heading = "What is compared")]
    pub trace: bool,
    /// Go on until the answer is known; with --precision: every interval that
    /// narrow; --budget, --max-runs and Ctrl-C may end it before
    #[arg(long, help_heading = "How long and how precise")]
    pub open_ended: bool,
    /// Exit with 3 if there is no verdict; with --fail-if-slower: go on until there is
    /// one as well
    #[arg(long, help_heading = "What is compared")]
    pub require_verdict: bool,
    /// Then print the best arm for this tool; as `pinwise apply --as` does
    #[arg(long, value_name = "TOOL", help_heading = "What is compared")]
    pub emit: Option<String>,
    /// Options on services.
    #[command(flatten)]
    pub live: LiveArgs,
    /// Options on interrupts.
    #[command(flatten)]
    pub interrupts: InterruptArgs,
    /// Options on smaller machines.
    #[command(flatten)]
    pub what_if: WhatIfArgs,
    /// Placements that the user has set for where none is named.
    #[arg(skip)]
    pub usual_places: Vec<String>,
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
