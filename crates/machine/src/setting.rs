//! What is set while a command runs, and only then.

use pinwise_placement::{CpuLimit, InterruptCpus};
use pinwise_topology::CpuSet;
use pinwise_workload::{Command, SchedulingPolicy};

/// What is set while a command runs, and only then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSetting {
    /// These CPUs of the host are switched off.
    Offline(CpuSet),
    /// Interrupts are taken by these CPUs, and queues of network interfaces have
    /// them.
    Interrupts(InterruptCpus),
    /// The command runs in a cgroup of its own.
    Group(OwnGroup),
    /// Another command runs meanwhile.
    Companion(Companion),
    /// The scheduler treats the command so.
    Policy(SchedulingPolicy),
    /// The command has this niceness, -20 to 19.
    Nice(i32),
}

impl RunSetting {
    /// What it does, as in "the kernel refuses …".
    #[must_use]
    pub fn action(&self) -> String {
        match self {
            Self::Offline(cpus) => format!("to switch CPUs {cpus} off"),
            Self::Interrupts(_) => "to move interrupts".to_owned(),
            Self::Group(_) => "a cgroup of the command's own".to_owned(),
            Self::Companion(companion) => format!("{} beside it", companion.name),
            Self::Policy(policy) => format!("the scheduling policy {policy}"),
            Self::Nice(nice) => format!("niceness {nice}"),
        }
    }

    /// The cgroup that it gives the command.
    #[must_use]
    pub const fn group(&self) -> Option<&OwnGroup> {
        match self {
            Self::Group(group) => Some(group),
            _ => None,
        }
    }

    /// Is it a change of the host, or a cgroup, that has to be undone?
    #[must_use]
    pub const fn needs_ledger(&self) -> bool {
        match self {
            Self::Offline(_) | Self::Interrupts(_) | Self::Group(_) => true,
            Self::Companion(_) | Self::Policy(_) | Self::Nice(_) => false,
        }
    }
}

/// A command that is kept running beside another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// Its name.
    pub name: String,
    /// What runs.
    pub command: Command,
    /// Succeeds once it is ready; `None`: it is as soon as it was started.
    pub ready: Option<Command>,
}

/// A cgroup of a command's own. Without a limit and without CPUs, it only gives the
/// command the same path as arms that have one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnGroup {
    /// Its limit on CPU time.
    pub limit: Option<CpuLimit>,
    /// The CPUs of a cpuset of its own.
    pub cpus: Option<CpuSet>,
    /// Does the scheduler put no thread of others on them and move none between them?
    /// Version 2 of cgroups can do that.
    pub is_isolated: bool,
}
