//! The target of a placement: a process with its descendants, or a cgroup.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use super::super::trace::threads::read_process_of;
use super::process::{is_own, list_threads, read_command_line, read_stat};
use super::{LiveError, cgroup};
use crate::linux::LinuxMachine;
use crate::linux::capture::read_mounts;
use crate::linux::tree::children_of_threads;
use crate::{CommandRunner, End, Host, MachineError, Output, Request};
use pinwise_workload::{Command, Workload};

/// Longest wait for systemd's answer.
const SYSTEMD_TIMEOUT: Duration = Duration::from_secs(5);

/// Whose threads are placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    kind: TargetKind,
    /// Its name in sentences.
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TargetKind {
    /// A process, its start time, and its descendants.
    Process { pid: i32, start: u64 },
    /// Folders of one cgroup, and their common path.
    Cgroup {
        path: String,
        folders: Vec<PathBuf>,
        unit: Option<String>,
    },
}

/// Facts about a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetFacts {
    /// Its process, for a cgroup the first one; `None` if it has ended.
    pub pid: Option<i32>,
    /// The name of that process.
    pub name: String,
    /// Its command line.
    pub command: Vec<String>,
    /// The systemd unit, if given.
    pub unit: Option<String>,
    /// The cgroup, if given directly or by a unit.
    pub cgroup: Option<String>,
}

/// A thread of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Thread {
    pub(super) process: i32,
    pub(super) id: i32,
}

impl Target {
    /// A process and its descendants.
    ///
    /// # Errors
    /// [`LiveError`] if it does not exist or cannot be placed.
    pub fn process(pid: i32) -> Result<Self, LiveError> {
        let stat = read_stat(pid).filter(|stat| !matches!(stat.state, 'Z' | 'X'));
        let stat = stat.ok_or(LiveError::NoProcess(pid))?;
        let process = read_process_of(pid).ok_or(LiveError::NoProcess(pid))?;
        if process != pid {
            return Err(LiveError::Thread {
                thread: pid,
                process,
                name: super::super::process_name(process).unwrap_or_default(),
            });
        }
        if stat.is_kernel {
            return Err(LiveError::Kernel(pid, stat.name));
        }
        // Placing it could place its children, which may be older than pinwise: a shell starts a
        // service and then executes pinwise.
        if i32::try_from(std::process::id()) == Ok(pid) {
            return Err(LiveError::Ourselves(pid));
        }
        Ok(Self {
            name: format!("{} ({pid})", stat.name),
            kind: TargetKind::Process {
                pid,
                start: stat.start,
            },
        })
    }

    /// A cgroup by its path below the mount, with its subtree.
    ///
    /// # Errors
    /// [`LiveError`] if no hierarchy has it.
    pub fn cgroup(path: &str) -> Result<Self, LiveError> {
        Self::from_cgroup(path, None)
    }

    /// The cgroup of a systemd unit, from systemd itself or, if it does not run here, the folder
    /// with the unit's name.
    ///
    /// # Errors
    /// [`LiveError::NoUnit`] if it has none; [`MachineError`] if the user interrupts the query.
    pub fn cgroup_of_unit(
        unit: &str,
        host: &mut LinuxMachine,
    ) -> Result<Result<Self, LiveError>, MachineError> {
        let no_unit = || LiveError::NoUnit {
            unit: unit.to_owned(),
        };
        let is_unit_name = !unit.is_empty() && !unit.contains('/') && !unit.starts_with(['-', '.']);
        if !is_unit_name {
            return Ok(Err(no_unit()));
        }
        let path = match ask_systemd(unit, host)? {
            Some(path) => Some(path),
            None => cgroup::find_unit(unit),
        };
        Ok(path
            .ok_or_else(no_unit)
            .and_then(|path| Self::from_cgroup(&path, Some(unit)).map_err(|_| no_unit())))
    }

    fn from_cgroup(path: &str, unit: Option<&str>) -> Result<Self, LiveError> {
        let folders = cgroup::find_folders(path);
        if folders.is_empty() {
            let is_unit = path.ends_with(".service") && !path.contains('/');
            return Err(LiveError::NoCgroup {
                path: path.to_owned(),
                mounts: read_mounts().into_iter().map(|mount| mount.point).collect(),
                hint: is_unit.then(|| format!("for a unit write --unit {path}")),
            });
        }
        Ok(Self {
            name: match unit {
                Some(unit) => format!("unit {unit}"),
                None => format!("cgroup {path}"),
            },
            kind: TargetKind::Cgroup {
                path: path.to_owned(),
                folders,
                unit: unit.map(str::to_owned),
            },
        })
    }

    /// Describes it for [`Target::from_line`] in another process.
    pub(super) fn to_line(&self) -> String {
        match &self.kind {
            TargetKind::Process { pid, start } => format!("process {pid} {start}"),
            TargetKind::Cgroup { path, .. } => format!("cgroup {path}"),
        }
    }

    /// Parses what [`Target::to_line`] wrote.
    pub(super) fn from_line(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "process" => {
                let (pid, start) = rest.split_once(' ')?;
                Some(Self {
                    kind: TargetKind::Process {
                        pid: pid.parse().ok()?,
                        start: start.parse().ok()?,
                    },
                    name: pid.to_owned(),
                })
            }
            "cgroup" => Self::cgroup(rest).ok(),
            _ => None,
        }
    }

    /// Its name in sentences, such as `redis-server (4711)`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads facts about it.
    #[must_use]
    pub fn facts(&self) -> TargetFacts {
        let pid = self.first_process();
        let stat = pid.and_then(read_stat);
        TargetFacts {
            pid,
            name: stat.map(|stat| stat.name).unwrap_or_default(),
            command: pid.map(read_command_line).unwrap_or_default(),
            unit: match &self.kind {
                TargetKind::Cgroup { unit, .. } => unit.clone(),
                TargetKind::Process { .. } => None,
            },
            cgroup: match &self.kind {
                TargetKind::Cgroup { path, .. } => Some(path.clone()),
                TargetKind::Process { .. } => None,
            },
        }
    }

    /// The process, or the first one of the cgroup; `None` if none exists any more.
    #[must_use]
    pub fn first_process(&self) -> Option<i32> {
        match &self.kind {
            TargetKind::Process { pid, .. } => self.exists().then_some(*pid),
            TargetKind::Cgroup { .. } => self.threads().first().map(|thread| thread.process),
        }
    }

    /// Does any of its processes still exist?
    #[must_use]
    pub fn exists(&self) -> bool {
        match &self.kind {
            TargetKind::Process { pid, start } => read_stat(*pid)
                .is_some_and(|now| now.start == *start && !matches!(now.state, 'Z' | 'X')),
            TargetKind::Cgroup { .. } => !self.threads().is_empty(),
        }
    }

    /// Lists its present processes, in the order of their ids.
    pub(super) fn processes(&self) -> BTreeSet<i32> {
        match &self.kind {
            TargetKind::Process { pid, .. } if self.exists() => list_process_tree(*pid),
            TargetKind::Process { .. } => BTreeSet::new(),
            TargetKind::Cgroup { .. } => {
                self.threads().iter().map(|thread| thread.process).collect()
            }
        }
    }

    /// Lists its present threads, process by process, without those of pinwise and of the kernel.
    pub(super) fn threads(&self) -> Vec<Thread> {
        match &self.kind {
            TargetKind::Process { .. } => {
                let processes = self.processes().into_iter();
                let threads = processes.flat_map(|process| {
                    let ids = list_threads(process).into_iter();
                    ids.map(move |id| Thread { process, id })
                });
                threads.collect()
            }
            TargetKind::Cgroup { folders, .. } => {
                let mut may_be_placed: BTreeMap<i32, bool> = BTreeMap::new();
                let ids: BTreeSet<i32> = folders
                    .iter()
                    .flat_map(|f| cgroup::list_threads(f))
                    .collect();
                let threads = ids.into_iter().filter_map(|id| {
                    let process = read_process_of(id)?;
                    Some(Thread { process, id })
                });
                let mut threads: Vec<Thread> = threads
                    .filter(|thread| {
                        *may_be_placed.entry(thread.process).or_insert_with(|| {
                            let is_kernel = read_stat(thread.process).is_none_or(|s| s.is_kernel);
                            !is_kernel && !is_own(thread.process)
                        })
                    })
                    .collect();
                threads.sort_unstable();
                threads
            }
        }
    }
}

/// Lists a process and its descendants, without pinwise.
fn list_process_tree(first: i32) -> BTreeSet<i32> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    let mut found = BTreeSet::from([first]);
    let mut waiting = vec![first];
    while let Some(process) = waiting.pop() {
        for child in children_of_threads(process, &list_threads(process)) {
            if child != own && found.insert(child) {
                waiting.push(child);
            }
        }
    }
    found
}

/// Asks `systemctl` for the cgroup of a unit; `None` if it is not installed or knows none.
fn ask_systemd(unit: &str, host: &mut LinuxMachine) -> Result<Option<String>, MachineError> {
    let words = [
        "systemctl",
        "show",
        "-p",
        "ControlGroup",
        "--value",
        "--",
        unit,
    ];
    let Ok(command) = Command::from_argv(words.map(str::to_owned).to_vec()) else {
        return Ok(None);
    };
    let (topology, _) = host.topology()?;
    let workload = Workload {
        timeout: Some(SYSTEMD_TIMEOUT),
        ..Workload::new(command)
    };
    let run = host.run(&Request {
        output: Output::Keep,
        ..Request::new(&workload, &topology.allowed)
    });
    match run {
        Ok(run) if run.end == End::Status(0) => {
            let output = run.output.unwrap_or_default();
            let path = String::from_utf8_lossy(&output).trim().to_owned();
            Ok(Some(path).filter(|path| path.starts_with('/') && path.len() > 1))
        }
        Err(MachineError::Interrupted) => Err(MachineError::Interrupted),
        Ok(_) | Err(_) => Ok(None),
    }
}
