//! Arguments on commands that run beside the measured one.

use clap::Args;

/// Options of `compare` for companions.
#[derive(Debug, Args)]
#[command(next_help_heading = "Other conditions")]
pub struct CompanionArgs {
    /// Add each arm again with this command beside it; started before each run, ended
    /// after it; repeatable
    #[arg(
        long = "beside",
        value_name = "NAME=COMMAND",
        conflicts_with_all = ["with_itself", "trace", "pid", "unit", "cgroup"]
    )]
    pub companions: Vec<String>,
    /// Begin a run once this succeeds, tried for 30 s; once for all, or once for each
    /// --beside
    #[arg(long = "beside-ready", value_name = "COMMAND", requires = "companions")]
    pub ready: Vec<String>,
    /// Also read this figure of the command from what it prints during a run (or from
    /// --beside-metric-command), and say what each arm costs it; the metric is regex:… or json:…; once for each NAME
    #[arg(
        id = "companion_metrics",
        long = "beside-metric",
        value_name = "NAME=METRIC",
        requires = "companions"
    )]
    pub metrics: Vec<String>,
    /// Read the figure of --beside-metric from what this command prints at the end of each
    /// run, while NAME still runs; once for each NAME
    #[arg(
        id = "companion_metric_commands",
        long = "beside-metric-command",
        value_name = "NAME=COMMAND",
        requires = "companion_metrics"
    )]
    pub metric_commands: Vec<String>,
}
