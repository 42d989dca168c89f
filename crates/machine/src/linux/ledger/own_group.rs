//! Makes a cgroup for a command, with a limit on CPU time and a cpuset.
//!
//! It is created before a run, entered by the command before its first instruction, and removed
//! after the run. Old values of its files need not be recorded: they are removed with it.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use super::act::{self, System};
use super::entry::{Change, Entry};
use super::{Ledger, LedgerError, groups};
use crate::linux::capture::read_mounts;
use crate::linux::{sys, usage};
use crate::{OwnGroup, Throttling};
use pinwise_placement::CpuLimit;
use pinwise_topology::{CpuSet, Mount};

/// A folder in which a group can be made.
#[derive(Debug, PartialEq, Eq)]
struct Parent {
    folder: PathBuf,
    is_v1: bool,
    /// Controllers that a group in it can have.
    controllers: Vec<&'static str>,
}

/// A cgroup for a command to join.
#[derive(Debug)]
pub(in crate::linux) struct JoinedGroup {
    folder: PathBuf,
    file: File,
}

impl JoinedGroup {
    /// Writing `0` to this descriptor moves the writing process into the group.
    pub(in crate::linux) fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Reads how much its limit has throttled so far; `None` if it cannot have a limit.
    pub(in crate::linux) fn throttling(&self) -> Option<Throttling> {
        usage::read_throttling(&self.folder)
    }
}

impl Ledger {
    /// Opens the groups in force, for a command to join.
    pub(in crate::linux) fn open_groups(&self) -> Result<Vec<JoinedGroup>, LedgerError> {
        let entries = self.writer.journal.entries.values();
        let folders = entries.filter_map(|entry| match entry {
            Entry::Folder { path } => Some(path.clone()),
            _ => None,
        });
        let joined = folders.map(|folder| {
            let path = folder.join("cgroup.procs");
            match std::fs::OpenOptions::new().write(true).open(&path) {
                Ok(file) => Ok(JoinedGroup { folder, file }),
                Err(error) => Err(LedgerError::System(path.display().to_string(), error)),
            }
        });
        joined.collect()
    }

    /// Makes a group, in version 1 one for each controller.
    pub(super) fn make_group(&mut self, wanted: &OwnGroup) -> Result<(), LedgerError> {
        let controllers: &[&str] = match wanted.cpus {
            Some(_) => &["cpu", "cpuset"],
            None => &["cpu"],
        };
        let own_pid = i32::try_from(std::process::id()).unwrap_or(0);
        let own = |point: &str| groups::find_group(own_pid, Path::new(point));
        let name = format!(
            "pinwise-{}-{:06x}",
            std::process::id(),
            sys::random_u64() & 0xff_ffff
        );
        for parent in find_parents(controllers, &read_mounts(), own)? {
            let group = parent.folder.join(&name);
            let folder = Change::Folder {
                path: group.clone(),
            };
            self.change(&folder)
                .map_err(|error| explain(error, controllers))?;
            if let (Some(limit), true) = (&wanted.limit, parent.has("cpu")) {
                set_limit(&group, limit, parent.is_v1)?;
            }
            if let (Some(cpus), true) = (&wanted.cpus, parent.has("cpuset")) {
                set_cpus(&group, cpus, wanted.is_isolated, parent.is_v1)?;
            }
        }
        Ok(())
    }
}

impl Parent {
    fn has(&self, controller: &str) -> bool {
        self.controllers.contains(&controller)
    }
}

/// Can the kernel keep other groups off a cpuset's CPUs? Version 1 cannot.
#[must_use]
pub fn cpusets_exclude_others() -> bool {
    read_mounts()
        .iter()
        .all(|mount| mount.is_unified() || !mount.has("cpuset"))
}

/// Finds the folders in which a process in group `own` can make groups with these controllers. In
/// version 2, a group with processes cannot have children with controllers, so the nearest ancestor
/// that delegates them is used.
fn find_parents(
    controllers: &[&'static str],
    mounts: &[Mount],
    own: impl Fn(&str) -> Option<PathBuf>,
) -> Result<Vec<Parent>, LedgerError> {
    let missing = || LedgerError::NoGroup(controllers.join(", "));
    let mut found: Vec<Parent> = Vec::new();
    let mut unified = Vec::new();
    for &controller in controllers {
        let mount = mounts.iter().find(|m| !m.is_unified() && m.has(controller));
        let Some(mount) = mount else {
            unified.push(controller);
            continue;
        };
        let folder = own(&mount.point).ok_or_else(missing)?;
        match found.iter_mut().find(|parent| parent.folder == folder) {
            Some(both) => both.controllers.push(controller),
            None => found.push(Parent {
                folder,
                is_v1: true,
                controllers: vec![controller],
            }),
        }
    }
    if unified.is_empty() {
        return Ok(found);
    }
    let mount = mounts.iter().find(|mount| mount.is_unified());
    let mount = mount.ok_or_else(missing)?;
    let own = own(&mount.point).ok_or_else(missing)?;
    let delegates_all = |folder: &&Path| {
        let delegated = System::read(&folder.join("cgroup.subtree_control")).unwrap_or_default();
        let delegated: Vec<&str> = delegated.split_ascii_whitespace().collect();
        unified
            .iter()
            .all(|controller| delegated.contains(controller))
    };
    let mut ancestors = own
        .ancestors()
        .take_while(|folder| folder.starts_with(&mount.point));
    found.push(Parent {
        folder: ancestors
            .find(delegates_all)
            .ok_or_else(missing)?
            .to_owned(),
        is_v1: false,
        controllers: unified,
    });
    Ok(found)
}

/// Replaces a denied permission by what is needed to get it.
fn explain(error: LedgerError, controllers: &[&str]) -> LedgerError {
    match error {
        LedgerError::System(_, error) if error.kind() == io::ErrorKind::PermissionDenied => {
            LedgerError::NoGroup(controllers.join(", "))
        }
        other => other,
    }
}

fn set_limit(group: &Path, limit: &CpuLimit, is_v1: bool) -> Result<(), LedgerError> {
    let (quota, period) = (limit.quota_us(), limit.period_us());
    if is_v1 {
        write_checked(&group.join("cpu.cfs_period_us"), &period.to_string())?;
        return write_checked(&group.join("cpu.cfs_quota_us"), &quota.to_string());
    }
    write_checked(&group.join("cpu.max"), &format!("{quota} {period}"))
}

/// Sets a group's CPUs. In version 2 they are taken from all other groups; version 1 cannot do
/// that.
fn set_cpus(
    group: &Path,
    cpus: &CpuSet,
    is_isolated: bool,
    is_v1: bool,
) -> Result<(), LedgerError> {
    if is_v1 {
        if is_isolated {
            return Err(LedgerError::NoIsolation);
        }
        // No task may join a group without memory nodes.
        let parent_nodes = group.parent().unwrap_or(group).join("cpuset.mems");
        let nodes = System::read(&parent_nodes).unwrap_or_default();
        act::write_value(&group.join("cpuset.mems"), &nodes)?;
        return write_checked(&group.join("cpuset.cpus"), &cpus.to_string());
    }
    write_checked(&group.join("cpuset.cpus"), &cpus.to_string())?;
    let partition = if is_isolated { "isolated" } else { "root" };
    write_checked(&group.join("cpuset.cpus.partition"), partition)
}

/// Writes a value and reads it back: the kernel may accept a partition and then call it invalid.
fn write_checked(file: &Path, value: &str) -> Result<(), LedgerError> {
    act::write_value(file, value).map_err(|error| match error {
        LedgerError::System(file, error) if error.kind() == io::ErrorKind::InvalidInput => {
            LedgerError::Value(file, format!("the kernel does not take {value} here"))
        }
        other => other,
    })?;
    match System::read(file) {
        Some(now) if now == value => Ok(()),
        now => Err(LedgerError::Value(
            file.display().to_string(),
            format!("{} instead of {value}", now.unwrap_or_default()),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Renders the parents as `FOLDER: CONTROLLERS`, and what is missing.
    fn check(table: &str, own: &str, controllers: &[&'static str]) -> Result<Vec<String>, String> {
        let mounts: Vec<Mount> = pinwise_topology::mounts(table).collect();
        let group_below = |point: &str| Some(Path::new(point).join(own));
        let found =
            find_parents(controllers, &mounts, group_below).map_err(|error| error.to_string())?;
        let shown = found.iter().map(|parent| {
            format!(
                "{}: {}",
                parent.folder.display(),
                parent.controllers.join(" ")
            )
        });
        Ok(shown.collect())
    }

    #[test]
    fn a_denied_group_reports_the_missing_permission() {
        let denied = |kind| {
            let error = LedgerError::System("/c/cpu/pinwise-1".to_owned(), io::Error::from(kind));
            explain(error, &["cpu"]).to_string()
        };
        assert_eq!(
            denied(io::ErrorKind::PermissionDenied),
            "no cgroup with the controllers cpu can be made here (it needs root, or a delegated \
             cgroup: systemd-run --user --scope -p Delegate=yes pinwise …)"
        );
        assert!(denied(io::ErrorKind::NotFound).starts_with("/c/cpu/pinwise-1: "));
    }

    #[test]
    fn version_1_has_a_group_in_each_hierarchy() {
        let table = "cgroup /c/cpu cgroup rw,cpu 0 0\ncgroup /c/cpuset cgroup rw,cpuset 0 0\n";
        let both = check(table, "a", &["cpu", "cpuset"]).unwrap();
        assert_eq!(both, ["/c/cpu/a: cpu", "/c/cpuset/a: cpuset"]);
        let table = "cgroup /c/both cgroup rw,cpu,cpuset 0 0\n";
        let both = check(table, "a", &["cpu", "cpuset"]).unwrap();
        assert_eq!(both, ["/c/both/a: cpu cpuset"]);
    }

    #[test]
    fn version_2_uses_the_nearest_group_that_delegates_controllers() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().display();
        let table = format!("cgroup2 {root} cgroup2 rw 0 0\n");
        std::fs::create_dir_all(folder.path().join("user/session")).unwrap();
        let hand_on = |group: &str, controllers: &str| {
            let file = folder.path().join(group).join("cgroup.subtree_control");
            std::fs::write(file, controllers).unwrap();
        };
        let missing = check(&table, "user/session", &["cpu"]).unwrap_err();
        assert!(
            missing.contains("controllers cpu can be made here (it needs root"),
            "{missing}"
        );
        hand_on("", "cpuset cpu io\n");
        hand_on("user", "cpu\n");
        hand_on("user/session", "\n");
        let cpu = check(&table, "user/session", &["cpu"]).unwrap();
        assert_eq!(cpu, [format!("{root}/user: cpu")]);
        let both = check(&table, "user/session", &["cpu", "cpuset"]).unwrap();
        assert_eq!(both, [format!("{root}/: cpu cpuset").replace("/:", ":")]);
    }

    #[test]
    fn values_are_read_back_from_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let limit = CpuLimit::new(0.5, std::time::Duration::from_millis(20)).unwrap();
        let file = folder.path().join("cpu.max");
        std::fs::write(&file, "").unwrap();
        set_limit(folder.path(), &limit, false).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "10000 20000");
        // A plain file keeps the tail of a longer value, as if the kernel had refused.
        std::fs::write(&file, "10000 200000 and more").unwrap();
        let error = set_limit(folder.path(), &limit, false).unwrap_err();
        assert!(
            error.to_string().contains("instead of 10000 20000"),
            "{error}"
        );
    }
}
