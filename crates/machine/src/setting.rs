//! Settings in force only while a command runs.

use pinwise_placement::{CpuLimit, InterruptCpus};
use pinwise_topology::CpuSet;
use pinwise_workload::{Command, SchedulingPolicy};

/// A setting in force only while a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunSetting {
    /// These CPUs of the host are switched off.
    Offline(CpuSet),
    /// Interrupts and network queues use these CPUs.
    Interrupts(InterruptCpus),
    /// The command runs in its own cgroup.
    Group(OwnGroup),
    /// Another command runs meanwhile.
    Companion(Companion),
    /// The scheduling policy of the command.
    Policy(SchedulingPolicy),
    /// The niceness of the command, -20 to 19.
    Nice(i32),
    /// Core scheduling: no other program's thread runs on the same core at the same time.
    CoreScheduling,
}

impl RunSetting {
    /// Its effect, as in "the kernel refuses …".
    #[must_use]
    pub fn action(&self) -> String {
        match self {
            Self::Offline(cpus) => format!("to switch CPUs {cpus} off"),
            Self::Interrupts(_) => "to move interrupts".to_owned(),
            Self::Group(_) => "a cgroup of the command's own".to_owned(),
            Self::Companion(companion) => format!("{} beside it", companion.name),
            Self::Policy(policy) => format!("the scheduling policy {policy}"),
            Self::Nice(nice) => format!("niceness {nice}"),
            Self::CoreScheduling => "core scheduling".to_owned(),
        }
    }

    /// Its cgroup for the command, if any.
    #[must_use]
    pub const fn group(&self) -> Option<&OwnGroup> {
        match self {
            Self::Group(group) => Some(group),
            _ => None,
        }
    }

    /// Is it a change of the host or a cgroup, which must be undone?
    #[must_use]
    pub const fn needs_ledger(&self) -> bool {
        match self {
            Self::Offline(_) | Self::Interrupts(_) | Self::Group(_) => true,
            Self::Companion(_) | Self::Policy(_) | Self::Nice(_) | Self::CoreScheduling => false,
        }
    }
}

/// A command that keeps running during another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// Its name.
    pub name: String,
    /// What runs.
    pub command: Command,
    /// Succeeds once it is ready; `None`: ready at once.
    pub ready: Option<Command>,
    /// Where its own figure is read from, if it has one.
    pub figure: Option<FigureSource>,
}

/// Where the figure of a companion is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureSource {
    /// What it prints during a run.
    Itself,
    /// What this command prints at the end of a run.
    Command(Command),
}

/// A command's own cgroup. Without a limit and without CPUs, it only gives the command the same
/// start as arms that have one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnGroup {
    /// Its limit on CPU time.
    pub limit: Option<CpuLimit>,
    /// The CPUs of its own cpuset.
    pub cpus: Option<CpuSet>,
    /// Is the scheduler kept from placing other threads on them and moving any between them?
    /// Version 2 of cgroups can do that.
    pub is_isolated: bool,
}
