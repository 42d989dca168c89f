//! Reads which CPUs a process's cpuset allows, for both versions of cgroups.

use std::path::{Path, PathBuf};

use super::super::capture::{read_file, read_mounts};
use super::super::trace::threads::online_cpus;
use pinwise_topology::{CpuSet, Mount};

/// The mounts of cpusets, and the names of their files.
#[derive(Debug, Default)]
pub(super) struct Cpusets {
    mount: Option<PathBuf>,
    files: &'static [&'static str],
}

impl Cpusets {
    pub(super) fn find() -> Self {
        Self::find_among(read_mounts().into_iter())
    }

    /// Finds the hierarchy that has the controller: that of version 1 if it is mounted, else
    /// version 2.
    fn find_among(mounts: impl Iterator<Item = Mount>) -> Self {
        let mut found = Self::default();
        for mount in mounts {
            let has_cpusets = mount.has("cpuset");
            let files: &[&str] = match mount.kind.as_str() {
                "cgroup" if has_cpusets && mount.has("noprefix") => &["effective_cpus", "cpus"],
                "cgroup" if has_cpusets => &["cpuset.effective_cpus", "cpuset.cpus"],
                "cgroup2" if found.mount.is_none() => &["cpuset.cpus.effective"],
                _ => continue,
            };
            found = Self {
                mount: Some(mount.point.into()),
                files,
            };
        }
        found
    }

    /// Reads the online CPUs that a process's cpuset allows; `None` if not even the online ones can
    /// be read.
    pub(super) fn read(&self, process: i32) -> Option<CpuSet> {
        let online = Some(online_cpus()).filter(|online| !online.is_empty())?;
        let path = read_file(Path::new(&format!("/proc/{process}/cpuset")));
        let path = path.and_then(|path| String::from_utf8(path).ok());
        let allowed = path.and_then(|path| self.read_nearest(path.trim_end_matches('\n')));
        Some(allowed.map_or(online.clone(), |allowed| allowed.intersection(&online)))
    }

    /// Reads the CPUs of the nearest cpuset from a path upwards. In version 2, folders have the
    /// file only if the controller is enabled.
    fn read_nearest(&self, path: &str) -> Option<CpuSet> {
        let mount = self.mount.as_deref()?;
        let inside = Path::new(path.strip_prefix('/')?);
        let is_plain = |part| matches!(part, std::path::Component::Normal(_));
        if !inside.components().all(is_plain) {
            return None;
        }
        inside.ancestors().find_map(|folder| {
            let folder = mount.join(folder);
            self.files
                .iter()
                .find_map(|name| read_cpu_list(&folder.join(name)).filter(|set| !set.is_empty()))
        })
    }
}

fn read_cpu_list(path: &Path) -> Option<CpuSet> {
    let text = String::from_utf8(read_file(path)?).ok()?;
    CpuSet::parse_list(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_cpuset_decides() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(root.path().join("a/cpuset.cpus.effective"), "2-5\n").unwrap();
        let mounts = format!("cgroup2 {} cgroup2 rw,nosuid 0 0\n", root.path().display());
        let cpusets = Cpusets::find_among(pinwise_topology::mounts(&mounts));
        let found = |path: &str| cpusets.read_nearest(path).map(|set| set.to_string());
        assert_eq!(found("/a/b").as_deref(), Some("2-5"));
        assert_eq!(found("/a").as_deref(), Some("2-5"));
        // Nothing above restricts them; nothing outside is read.
        for path in ["/", "/x", "", "/a/../a", "/../etc"] {
            assert_eq!(found(path), None, "{path}");
        }
        std::fs::write(inner.join("cpuset.cpus.effective"), "\n").unwrap();
        assert_eq!(found("/a/b").as_deref(), Some("2-5"));
    }

    #[test]
    fn version_1_needs_the_controllers_mount() {
        let check = |mounts: &str, mount: Option<&str>, file: Option<&str>| {
            let cpusets = Cpusets::find_among(pinwise_topology::mounts(mounts));
            assert_eq!(cpusets.mount.as_deref(), mount.map(Path::new), "{mounts}");
            assert_eq!(cpusets.files.first().copied(), file, "{mounts}");
        };
        let old = "x /c/cpuset cgroup rw,cpuset 0 0\n";
        let new = "x /c/unified cgroup2 rw 0 0\n";
        let other = "x /c/cpu cgroup rw,cpu 0 0\n";
        let file = Some("cpuset.effective_cpus");
        check(&format!("{old}{new}{other}"), Some("/c/cpuset"), file);
        check(&format!("{new}{old}"), Some("/c/cpuset"), file);
        check(
            &format!("{other}{new}"),
            Some("/c/unified"),
            Some("cpuset.cpus.effective"),
        );
        check(
            "x /c cgroup rw,noprefix,cpuset 0 0",
            Some("/c"),
            Some("effective_cpus"),
        );
        check("", None, None);
        check("nonsense\n", None, None);
    }
}
