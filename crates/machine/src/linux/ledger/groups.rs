//! Finds the folder of a task's cgroup.

use std::path::{Path, PathBuf};

use crate::linux::capture::{read_file, read_mounts};
use pinwise_topology::Mount;

/// Finds the folder of a task's cgroup in the hierarchy that contains `folder`; `None` if the task
/// has ended or its group is not visible here.
pub(super) fn find_group(task: i32, folder: &Path) -> Option<PathBuf> {
    let text = read_file(Path::new(&format!("/proc/{task}/cgroup")))?;
    parse_group(&String::from_utf8_lossy(&text), &read_mounts(), folder)
}

fn parse_group(text: &str, mounts: &[Mount], folder: &Path) -> Option<PathBuf> {
    let around = mounts.iter().filter(|m| folder.starts_with(&m.point));
    let mount = around.max_by_key(|m| Path::new(&m.point).components().count())?;
    let is_of = |names: &str| match mount.is_unified() {
        true => names.is_empty(),
        false => names.split(',').any(|name| mount.has(name)),
    };
    let path = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        is_of(names).then_some(path)
    })?;
    // The kernel shows `..` in paths of groups outside of this cgroup namespace.
    let is_hidden = path.split('/').any(|part| part == "..");
    let below = path.trim_start_matches('/');
    (!is_hidden).then(|| match below {
        "" => mount.point.clone().into(),
        _ => Path::new(&mount.point).join(below),
    })
}

/// The file of a group to which the ids of tasks are written: threads in version 1, processes in
/// version 2.
pub(super) fn tasks_file(group: &Path) -> PathBuf {
    let tasks = group.join("tasks");
    match tasks.exists() {
        true => tasks,
        false => group.join("cgroup.procs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n\
        cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n\
        cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\nproc /proc proc rw 0 0\nodd\n";

    #[track_caller]
    fn check(text: &str, folder: &str, group: Option<&str>) {
        let mounts: Vec<Mount> = pinwise_topology::mounts(MOUNTS).collect();
        let found = parse_group(text, &mounts, Path::new(folder));
        assert_eq!(found.as_deref(), group.map(Path::new));
    }

    #[test]
    fn the_group_of_a_task_is_found_in_each_hierarchy() {
        let text = "4:cpuset:/a b\n3:cpu,cpuacct:/\n0::/x/y\n";
        check(
            text,
            "/sys/fs/cgroup/cpuset/new",
            Some("/sys/fs/cgroup/cpuset/a b"),
        );
        check(text, "/sys/fs/cgroup/cpu/new", Some("/sys/fs/cgroup/cpu"));
        check(
            text,
            "/sys/fs/cgroup/unified/n",
            Some("/sys/fs/cgroup/unified/x/y"),
        );
        check(text, "/tmp/new", None);
        check("4:cpuset:/../a\n", "/sys/fs/cgroup/cpuset/new", None);
        check("", "/sys/fs/cgroup/cpuset/new", None);
    }
}
