//! Arguments on how the scheduler treats the command.

use clap::Args;

use pinwise_workload::SchedulingPolicy;

/// Options of `compare` for the scheduler.
#[derive(Debug, Args)]
#[command(next_help_heading = "Other conditions")]
pub struct SchedulingArgs {
    /// Add each arm again with this policy: other, other:SLICE, batch, idle, fifo:N, rr:N
    /// or deadline:RUNTIME/DEADLINE/PERIOD; repeatable
    #[arg(
        long = "policy",
        value_name = "POLICY",
        conflicts_with_all = ["with_itself", "pid", "unit", "cgroup"]
    )]
    pub policies: Vec<SchedulingPolicy>,
    /// Add each arm again with this niceness, -20 to 19; repeatable
    #[arg(
        long = "nice",
        value_name = "N",
        allow_hyphen_values = true,
        value_parser = clap::value_parser!(i32).range(-20..=19),
        conflicts_with_all = ["with_itself", "pid", "unit", "cgroup"]
    )]
    pub nices: Vec<i32>,
    /// Add each arm again with core scheduling: no other program runs on a core together with it
    #[arg(
        long = "core-scheduling",
        conflicts_with_all = ["with_itself", "pid", "unit", "cgroup"]
    )]
    pub with_core_scheduling: bool,
}

impl SchedulingArgs {
    /// Is any of these options given?
    pub(in crate::cli) fn are_given(&self) -> bool {
        !self.policies.is_empty() || !self.nices.is_empty() || self.with_core_scheduling
    }
}
