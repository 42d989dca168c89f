//! Applying an answer: `apply`, `rules`, `restore`, and what `compare` takes
//! for services that run already and for smaller machines.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::super::values::{parse_duration, parse_share};

/// `pinwise apply`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:
  pinwise apply --place one-per-core --as taskset -- ./prog
  pinwise apply --place one-core/mem=bind --as systemd:redis.service
  pinwise apply last --as all
  pinwise apply --pid 4711 --place one-per-core --for 10m

With --as it prints what another tool needs for the same placement, what that
tool cannot express and a command that verifies; nothing is changed. With --pid,
--unit or --cgroup it places the threads of what runs already, and gives them
their old CPUs again in the end, however it ends.",
    args_conflicts_with_subcommands = true
)]
pub struct ApplyArgs {
    /// What else to do.
    #[command(subcommand)]
    pub action: Option<ApplyAction>,
    /// A stored record whose best arm is applied: its id, a unique beginning
    /// of it, or last
    #[arg(value_name = "RECORD", conflicts_with = "place")]
    pub record: Option<String>,
    /// Where the threads should run
    #[arg(long, value_name = "PLACEMENT")]
    pub place: Option<String>,
    /// Print it for this tool; several with commas, or all
    #[arg(long = "as", value_name = "TOOL", help_heading = "Print it for a tool")]
    pub target: Option<String>,
    /// Threads that the program starts, for tools that need the number
    #[arg(long, value_name = "N", help_heading = "Print it for a tool")]
    pub threads: Option<usize>,
    /// A process that runs
    #[arg(long, value_name = "PID", conflicts_with_all = ["unit", "cgroup", "target", "argv"], help_heading = "Place what runs already")]
    pub pid: Option<i32>,
    /// A systemd unit that runs
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["cgroup", "target", "argv"], help_heading = "Place what runs already")]
    pub unit: Option<String>,
    /// A cgroup, by its path below the cgroup mount
    #[arg(long, value_name = "PATH", conflicts_with_all = ["target", "argv"], help_heading = "Place what runs already")]
    pub cgroup: Option<String>,
    /// Move its memory to the nodes of these CPUs, too, as /mem=bind in the
    /// placement does
    #[arg(long, conflicts_with_all = ["target", "argv"], help_heading = "Place what runs already")]
    pub memory: bool,
    /// Move a device's interrupts meanwhile: local, far, away (from the
    /// program), spread, or to CPUs; +xps: and who sends on its queues
    #[arg(long = "irq", value_name = "DEVICE=PLACE", conflicts_with_all = ["target", "argv"], help_heading = "Place what runs already")]
    pub irqs: Vec<String>,
    /// How long [default: until interrupted or the process ends]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration, help_heading = "Place what runs already")]
    pub lasts: Option<Duration>,
    /// The program that the printed lines are about [default: the record's,
    /// else COMMAND]
    #[arg(last = true, value_name = "COMMAND", help_heading = None::<&'static str>)]
    pub argv: Vec<String>,
}

/// What else `pinwise apply` does.
#[derive(Debug, Subcommand)]
pub enum ApplyAction {
    /// Keep processes where a file of rules says
    Rules(RulesArgs),
    /// Put back what pinwise changed on this host and could not put back
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

Nothing is changed. A mistake is reported with its line and column, exit status
2. docs/rules.md says what may stand in the file.")]
    Check(RulesCheckArgs),
    /// Enforce the rules until interrupted
    #[command(after_help = "Examples:
  pinwise apply rules run --dry-run --once rules.toml
  pinwise apply rules run rules.toml
  pinwise apply rules run --log changes.jsonl rules.toml

Existing processes are placed at once, new ones when they start a program.
Processes whose CPUs somebody else set are left alone. SIGHUP reads the file
again. When it ends, even by SIGKILL, every process gets its CPUs back. In
return the rules cost next to nothing: the kernel reports new programs, and
where it may not (without CAP_NET_ADMIN) /proc is polled.")]
    Run(RulesRunArgs),
    /// Print a systemd unit that runs the rules
    #[command(after_help = "Examples:
  pinwise apply rules unit rules.toml > pinwise-rules.service

To install it: copy it to /etc/systemd/system, then systemctl daemon-reload and
systemctl enable --now pinwise-rules. systemctl reload reads the rules again.")]
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
    /// Append a line of JSON for every change
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Look for new processes this often where the kernel does not report them
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "100ms")]
    pub poll: Duration,
    /// Poll even where the kernel would report new processes
    #[arg(long, hide = true)]
    pub poll_only: bool,
    /// Look once and quit; what was placed stays placed
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

pinwise records every system value before it changes it, and restores
it whatever happens. This finishes what even the guardian could not, such as
after a power cut. A value that somebody else changed since is left alone.")]
pub struct RestoreArgs {
    /// Print what would be restored; change nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// What `compare` takes for a service that runs already.
#[derive(Debug, Args)]
#[command(next_help_heading = "A service that runs already")]
pub struct LiveArgs {
    /// The service's process: its threads are placed, in turns, while it runs
    #[arg(long, value_name = "PID", conflicts_with_all = ["unit", "cgroup", "commands", "recipe", "kernel", "lines", "argv"])]
    pub pid: Option<i32>,
    /// The service's systemd unit
    #[arg(long, value_name = "UNIT", conflicts_with_all = ["cgroup", "commands", "recipe", "kernel", "lines", "argv"])]
    pub unit: Option<String>,
    /// The service's cgroup; its path below the cgroup mount
    #[arg(long, value_name = "PATH", conflicts_with_all = ["commands", "recipe", "kernel", "lines", "argv"])]
    pub cgroup: Option<String>,
    /// A command that prints the service's figure; --metric says how it is read
    #[arg(long, value_name = "COMMAND", conflicts_with = "metric_url")]
    pub metric_command: Option<String>,
    /// A page with the service's figure, such as Prometheus' text
    #[arg(long, value_name = "URL")]
    pub metric_url: Option<String>,
    /// How long a placement is measured at once; a metric command that takes half
    /// of it or more measures for itself, for as long as it takes
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "2s")]
    pub sample: Duration,
    /// Time to settle after a change; with /bound placements of a command: how
    /// long its new threads are bound [default: 500ms; to the end]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub settle: Option<Duration>,
    /// Drop a placement that is worse by more; it is rolled back at once where its
    /// figure is so much worse than the baseline's running median
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    pub abort_if_worse: Option<f64>,
}

/// What `compare` takes for interrupts.
#[derive(Debug, Args)]
#[command(next_help_heading = "The whole host")]
pub struct InterruptArgs {
    /// Interrupts during an arm: local, far, away, spread; also CPUs. away: from
    /// the program; with +xps who sends on its queues goes along
    #[arg(
        long = "irq",
        value_name = "DEVICE=PLACE",
        conflicts_with_all = ["with_itself", "machines", "trace"]
    )]
    pub irqs: Vec<String>,
}

/// What `compare` takes for smaller machines.
#[derive(Debug, Args)]
#[command(next_help_heading = "The whole host")]
pub struct WhatIfArgs {
    /// Compare with a smaller machine: smt-off, cpus=N, one-node, one-package;
    /// by masks, unless --real is given
    #[arg(long = "what-if", value_name = "MACHINE")]
    pub machines: Vec<String>,
    /// Really switch the other CPUs off meanwhile
    #[arg(long, requires = "machines")]
    pub real: bool,
}
