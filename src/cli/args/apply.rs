//! Applying an answer: `apply`, `rules`, `restore`, and options of `compare` for running services
//! and for smaller machines.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::super::values::{parse_duration, parse_process, parse_share};

/// `pinwise apply`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  pinwise apply --place one-per-core --as taskset -- ./prog
  pinwise apply --place one-core/mem=bind --as systemd:redis.service
  pinwise apply last --as all
  pinwise apply --pid 4711 --place one-per-core --for 10m

--as prints what another tool needs for the same placement, what that tool
cannot express, and a command to verify it; nothing is changed. --pid, --unit
and --cgroup place the threads of a running program, and restore their old CPUs
at the end, however it ends.",
    args_conflicts_with_subcommands = true
)]
pub struct ApplyArgs {
    /// What else to do.
    #[command(subcommand)]
    pub action: Option<ApplyAction>,
    /// Apply the best arm of this stored record: its id, a unique beginning or end, or
    /// last
    #[arg(value_name = "RECORD", conflicts_with = "place")]
    pub record: Option<String>,
    /// Apply this arm of RECORD instead, whatever the verdict
    #[arg(long, value_name = "NAME", requires = "record")]
    pub arm: Option<String>,
    /// Where the threads should run
    #[arg(long, value_name = "PLACEMENT")]
    pub place: Option<String>,
    /// Print the placement for these tools: a comma-separated list, or all [default: taskset, or
    /// numactl if memory is placed]
    #[arg(long = "as", value_name = "TOOL", help_heading = "Print for a tool")]
    pub target: Option<String>,
    /// Number of threads of the program, for tools that need it
    #[arg(long, value_name = "N", help_heading = "Print for a tool")]
    pub threads: Option<usize>,
    /// A running process (number or name)
    #[arg(long, value_name = "PID", value_parser = parse_process, conflicts_with_all = ["unit", "cgroup", "target", "argv"], help_heading = "Place a running program")]
    pub pid: Option<i32>,
    /// A running systemd unit
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["cgroup", "target", "argv"], help_heading = "Place a running program")]
    pub unit: Option<String>,
    /// A cgroup; its path below the cgroup mount
    #[arg(long, value_name = "PATH", conflicts_with_all = ["target", "argv"], help_heading = "Place a running program")]
    pub cgroup: Option<String>,
    /// Also move its memory to the NUMA nodes of these CPUs; the same as
    /// /mem=bind in the placement
    #[arg(long, conflicts_with_all = ["target", "argv"], help_heading = "Place a running program")]
    pub memory: bool,
    /// Move a device's interrupts meanwhile: local, far, away (from the
    /// program), spread, or a CPU list; +xps also moves its transmit queues
    #[arg(long = "irq", value_name = "DEVICE=PLACE", conflicts_with_all = ["target", "argv"], help_heading = "Place a running program")]
    pub irqs: Vec<String>,
    /// For this long, not until Ctrl-C or the end of the process
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, help_heading = "Place a running program")]
    pub lasts: Option<Duration>,
    /// The program in the printed lines [default: the record's, else the word COMMAND]
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub argv: Vec<String>,
}

/// What else `pinwise apply` does.
#[derive(Debug, Subcommand)]
pub enum ApplyAction {
    /// Keep processes where a rules file says
    Rules(RulesArgs),
    /// Undo changes of system settings that were left after a crash or a power cut
    Restore(RestoreArgs),
}

/// `pinwise apply rules`
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct RulesArgs {
    /// What to do with the rules.
    #[command(subcommand)]
    pub action: RulesAction,
}

/// What to do with a rules file.
#[derive(Debug, Subcommand)]
pub enum RulesAction {
    /// Check a rules file, and show which processes it would affect now
    #[command(after_help = "Examples:
  pinwise apply rules check rules.toml
  pinwise apply rules check rules.toml --format json

Nothing is changed. A mistake is reported with its line and column, and exit
status 2. docs/rules.md describes the file.")]
    Check(RulesCheckArgs),
    /// Enforce the rules until interrupted
    #[command(after_help = "Examples:
  pinwise apply rules run --dry-run --once rules.toml
  pinwise apply rules run rules.toml
  pinwise apply rules run --log changes.jsonl rules.toml

Existing processes are placed at once, new ones when they start a program.
Processes whose CPUs somebody else set are left alone. SIGHUP reloads the file.
When it ends, even by SIGKILL, every process gets its CPUs back; with --once,
they stay placed. The overhead is negligible: the kernel reports new programs;
without CAP_NET_ADMIN, /proc is polled.")]
    Run(RulesRunArgs),
    /// Print a systemd unit that runs the rules
    #[command(after_help = "Examples:
  pinwise apply rules unit rules.toml > pinwise-rules.service

To install it: copy it to /etc/systemd/system, then systemctl daemon-reload and
systemctl enable --now pinwise-rules. systemctl reload reloads the rules.")]
    Unit(RulesCheckArgs),
}

/// `pinwise apply rules check` and `unit`
#[derive(Debug, Args)]
pub struct RulesCheckArgs {
    /// The rules (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// `pinwise apply rules run`
#[derive(Debug, Args)]
pub struct RulesRunArgs {
    /// The rules (TOML)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Change nothing; print what would be changed
    #[arg(long)]
    pub dry_run: bool,
    /// Append one line of JSON per change
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// How often to poll for new processes if the kernel does not report them
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub poll: Duration,
    /// Poll even if the kernel would report new processes
    #[arg(long, hide = true)]
    pub poll_only: bool,
    /// Place the existing processes and quit; they stay placed
    #[arg(long)]
    pub once: bool,
    /// File that records which processes were changed
    /// [default: /run/pinwise-rules/rules, or pinwise/rules in `XDG_RUNTIME_DIR`]
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
}

/// `pinwise apply restore`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pinwise apply restore --dry-run
  pinwise apply restore

pinwise records every system setting before it changes it, and restores it when
it ends, even by SIGKILL. This command is for what that misses, such as a power
cut. A setting that somebody else has changed since is left alone.")]
pub struct RestoreArgs {
    /// Print what would be restored; change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Options of `compare` for a running service.
#[derive(Debug, Args)]
#[command(next_help_heading = "A running service")]
pub struct LiveArgs {
    /// The service's process (number or name); its threads are moved between placements in turn
    #[arg(long, value_name = "PID", value_parser = parse_process, conflicts_with_all = ["unit", "cgroup", "commands", "recipe", "kernel", "lines", "argv"])]
    pub pid: Option<i32>,
    /// The service's systemd unit
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["cgroup", "commands", "recipe", "kernel", "lines", "argv"])]
    pub unit: Option<String>,
    /// The service's cgroup; its path below the cgroup mount
    #[arg(long, value_name = "PATH", conflicts_with_all = ["commands", "recipe", "kernel", "lines", "argv"])]
    pub cgroup: Option<String>,
    /// A command that prints the service's metric; --metric says how to parse it
    #[arg(long, value_name = "COMMAND", conflicts_with = "metric_url")]
    pub metric_command: Option<String>,
    /// A URL that serves the service's metric, such as Prometheus text
    #[arg(long, value_name = "URL")]
    pub metric_url: Option<String>,
    /// How long one sample of a placement takes; if --metric-command runs for at least
    /// half of it, its own run is the sample
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
    pub sample: Duration,
    /// Time for a service to settle after a change [default: 500ms]; for a command: how
    /// long a /bound placement binds new threads [default: until it ends]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub settle: Option<Duration>,
    /// Drop a placement worse by more than SHARE; it is rolled back as soon as
    /// its metric is that much worse than the baseline's running median
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub abort_if_worse: Option<f64>,
}

/// Options of `compare` for interrupts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Other conditions")]
pub struct InterruptArgs {
    /// Move a device's interrupts during an arm: local, far, away (from the program),
    /// spread, or a CPU list; +xps also moves its transmit queues
    #[arg(
        long = "irq",
        value_name = "DEVICE=PLACE",
        conflicts_with_all = ["with_itself", "machines", "trace"]
    )]
    pub irqs: Vec<String>,
}

/// Options of `compare` for smaller machines.
#[derive(Debug, Args)]
#[command(next_help_heading = "Other conditions")]
pub struct WhatIfArgs {
    /// Compare with a smaller machine: smt-off, cpus=N, one-node, one-package;
    /// by affinity masks, unless --real is given
    #[arg(long = "what-if", value_name = "MACHINE")]
    pub machines: Vec<String>,
    /// With --what-if: really take the other CPUs offline
    #[arg(long, requires = "machines")]
    pub real: bool,
}
