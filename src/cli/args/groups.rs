//! Arguments on limits and cpusets as arms.

use clap::Args;

use crate::cli::values::parse_limit;
use pinwise_placement::CpuLimit;

/// Options of `compare` for cgroups of a command's own.
#[derive(Debug, Args)]
#[command(next_help_heading = "Other conditions")]
pub struct GroupArgs {
    /// Add an arm under a limit on CPU time, such as 2 or 0.5/20ms, in a cgroup of its
    /// own; repeatable
    #[arg(
        long = "limit",
        value_name = "CPUS[/PERIOD]",
        value_parser = parse_limit,
        value_delimiter = ',',
        conflicts_with_all = ["with_itself", "trace", "pid", "unit", "cgroup"]
    )]
    pub limits: Vec<CpuLimit>,
    /// Add an arm in a cpuset of its own; cgroup v2 keeps other programs away; repeatable
    #[arg(
        long,
        value_name = "PLACEMENT",
        conflicts_with_all = ["with_itself", "trace", "pid", "unit", "cgroup"]
    )]
    pub exclusive: Vec<String>,
    /// Add an isolated arm: as --exclusive, and bound, without load balancing or interrupts;
    /// one thread on each CPU; needs cgroup v2; repeatable
    #[arg(
        long,
        value_name = "PLACEMENT",
        conflicts_with_all = ["with_itself", "trace", "pid", "unit", "cgroup", "irqs"]
    )]
    pub isolate: Vec<String>,
    /// Add each limited or placed arm again with as many threads as fit, set by
    /// environment variables as --threads-env does
    #[arg(
        long,
        conflicts_with_all = ["with_itself", "threads_env", "pid", "unit", "cgroup"]
    )]
    pub fit_threads: bool,
}

impl GroupArgs {
    /// Do runs get cgroups of their own?
    pub(in crate::cli) fn are_given(&self) -> bool {
        !self.limits.is_empty() || !self.exclusive.is_empty() || !self.isolate.is_empty()
    }
}
