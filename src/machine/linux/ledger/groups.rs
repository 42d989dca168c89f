//! Where a task's cgroup is, as a folder.

use std::path::{Path, PathBuf};

use crate::machine::linux::capture::read_file;

/// A mounted hierarchy of cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    pub(super) mount: PathBuf,
    /// The controllers of version 1; empty: version 2.
    pub(super) controllers: Vec<String>,
}

/// The hierarchies in a text of `/proc/mounts`.
pub(super) fn hierarchies(mounts: &str) -> Vec<Hierarchy> {
    let read = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let &[_, mount, kind, options, ..] = fields.as_slice() else {
            return None;
        };
        let controllers = match kind {
            "cgroup" => options.split(',').map(str::to_owned).collect(),
            "cgroup2" => Vec::new(),
            _ => return None,
        };
        Some(Hierarchy {
            mount: mount.into(),
            controllers,
        })
    };
    mounts.lines().filter_map(read).collect()
}

/// All that are mounted.
pub(super) fn mounted() -> Vec<Hierarchy> {
    let mounts = read_file(Path::new("/proc/mounts")).unwrap_or_default();
    hierarchies(&String::from_utf8_lossy(&mounts))
}

/// The folder of a task's cgroup in the hierarchy in which `folder` lies;
/// `None` where the task has gone or is in a group that cannot be seen here.
pub(super) fn group_of(task: i32, folder: &Path) -> Option<PathBuf> {
    let text = read_file(Path::new(&format!("/proc/{task}/cgroup")))?;
    group_in(&String::from_utf8_lossy(&text), &mounted(), folder)
}

fn group_in(text: &str, hierarchies: &[Hierarchy], folder: &Path) -> Option<PathBuf> {
    let around = hierarchies.iter().filter(|h| folder.starts_with(&h.mount));
    let hierarchy = around.max_by_key(|h| h.mount.components().count())?;
    let is_of = |names: &str| match hierarchy.controllers.is_empty() {
        true => names.is_empty(),
        false => names
            .split(',')
            .any(|name| hierarchy.controllers.iter().any(|known| known == name)),
    };
    let path = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (names, path) = (parts.next()?, parts.next()?);
        is_of(names).then_some(path)
    })?;
    // Outside of this namespace's part of the tree.
    let is_hidden = path.split('/').any(|part| part == "..");
    let below = path.trim_start_matches('/');
    (!is_hidden).then(|| match below {
        "" => hierarchy.mount.clone(),
        _ => hierarchy.mount.join(below),
    })
}

/// The file of a group that takes tasks: threads in version 1, processes in
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
        let found = group_in(text, &hierarchies(MOUNTS), Path::new(folder));
        assert_eq!(found.as_deref(), group.map(Path::new));
    }

    #[test]
    fn the_group_of_a_task_in_each_hierarchy() {
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
