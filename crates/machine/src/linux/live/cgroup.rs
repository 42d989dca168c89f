//! Finds cgroups by path or unit, their threads and cpusets.
//!
//! Hierarchies of version 1 and 2 are searched alike, wherever they are mounted. Paths come from
//! the user and from `/proc`: none may leave its mount.

use std::path::{Path, PathBuf};

use crate::linux::capture::{list_names, read_file, read_mounts};
use pinwise_topology::{CpuSet, Restriction};

/// Depth to which folders are searched.
const MAX_DEPTH: usize = 16;
/// Most folders that are examined.
const MAX_FOLDERS: usize = 100_000;
/// Most bytes of a list of threads that are read: some hundred thousand threads.
const MAX_LIST_BYTES: u64 = 4 * 1024 * 1024;

/// Resolves a path below a mount; `None` if it would leave the mount.
fn resolve_below(mount: &Path, path: &str) -> Option<PathBuf> {
    let path = path.trim_matches('/');
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    if path.is_empty() {
        return Some(mount.to_owned());
    }
    path.split('/').all(is_plain).then(|| mount.join(path))
}

/// Finds the folders of a cgroup in every hierarchy that has it: version 2, cpusets, systemd, then
/// others. If any of them has threads, only those are returned.
pub(super) fn find_folders(path: &str) -> Vec<PathBuf> {
    let mut mounts = read_mounts();
    mounts.sort_by_key(|mount| match mount {
        mount if mount.is_unified() => 0,
        mount if mount.has("cpuset") => 1,
        mount if mount.has("name=systemd") => 2,
        _ => 3,
    });
    let mut found: Vec<PathBuf> = mounts
        .iter()
        .filter_map(|mount| {
            // The path may already begin with the mount's own path.
            let path = path.strip_prefix(&mount.point).unwrap_or(path);
            resolve_below(Path::new(&mount.point), path)
        })
        .filter(|folder| folder.is_dir())
        .collect();
    if found.iter().any(|folder| has_threads(folder)) {
        found.retain(|folder| has_threads(folder));
    }
    found
}

/// Finds the path of a unit's cgroup: the first folder with its name in any hierarchy.
pub(super) fn find_unit(unit: &str) -> Option<String> {
    let mut mounts = read_mounts();
    mounts.retain(|mount| mount.is_unified() || mount.has("name=systemd") || mount.has("cpuset"));
    let wanted: Vec<String> = match unit.contains('.') {
        true => vec![unit.to_owned()],
        false => vec![format!("{unit}.service")],
    };
    let mut found: Vec<(bool, String)> = Vec::new();
    for mount in &mounts {
        let point = Path::new(&mount.point);
        search(point, point, &wanted, 0, &mut 0, &mut found);
    }
    // If several have the name, prefer one with threads.
    let best = found.iter().find(|(has_threads, _)| *has_threads);
    best.or(found.first()).map(|(_, path)| path.clone())
}

fn search(
    mount: &Path,
    folder: &Path,
    wanted: &[String],
    depth: usize,
    examined: &mut usize,
    found: &mut Vec<(bool, String)>,
) {
    for name in list_names(folder) {
        let path = folder.join(&name);
        *examined += 1;
        if *examined > MAX_FOLDERS || !path.is_dir() {
            continue;
        }
        if wanted.contains(&name) {
            if let Ok(below) = path.strip_prefix(mount) {
                found.push((has_threads(&path), format!("/{}", below.display())));
            }
        } else if depth < MAX_DEPTH {
            search(mount, &path, wanted, depth + 1, examined, found);
        }
    }
}

/// Lists the threads in a folder and its subtree.
pub(super) fn list_threads(folder: &Path) -> Vec<i32> {
    let mut threads = Vec::new();
    let mut examined = 0;
    collect_threads(folder, 0, &mut examined, &mut threads);
    threads.sort_unstable();
    threads.dedup();
    threads
}

fn has_threads(folder: &Path) -> bool {
    !list_threads(folder).is_empty()
}

fn collect_threads(folder: &Path, depth: usize, examined: &mut usize, threads: &mut Vec<i32>) {
    *examined += 1;
    if *examined > MAX_FOLDERS {
        return;
    }
    for name in ["cgroup.threads", "tasks"] {
        if let Some(list) = read_list(&folder.join(name)) {
            threads.extend(
                list.lines()
                    .filter_map(|line| line.trim().parse::<i32>().ok()),
            );
            break;
        }
    }
    if depth < MAX_DEPTH {
        for name in list_names(folder) {
            let child = folder.join(name);
            if child.is_dir() && !child.is_symlink() {
                collect_threads(&child, depth + 1, examined, threads);
            }
        }
    }
}

fn read_list(path: &Path) -> Option<String> {
    use std::io::Read;
    #[expect(clippy::disallowed_methods, reason = "the Edge reads cgroups")]
    let file = std::fs::File::open(path).ok()?;
    let mut list = String::new();
    file.take(MAX_LIST_BYTES).read_to_string(&mut list).ok()?;
    Some(list)
}

/// Reads the cpusets of a process, each with the CPUs that it allows.
pub(super) fn read_cpusets(process: i32) -> Vec<Restriction> {
    let own = read_file(Path::new(&format!("/proc/{process}/cgroup"))).unwrap_or_default();
    let own = String::from_utf8_lossy(&own);
    let mut found = Vec::new();
    for mount in read_mounts() {
        let controller = if mount.is_unified() { "" } else { "cpuset" };
        if !mount.is_unified() && !mount.has("cpuset") {
            continue;
        }
        let Some(path) = parse_path(&own, controller) else {
            continue;
        };
        // In a container's own tree, paths may begin at its root.
        let point = Path::new(&mount.point);
        let folders = [resolve_below(point, path), Some(point.to_owned())];
        let names = [
            "cpuset.cpus.effective",
            "cpuset.effective_cpus",
            "cpuset.cpus",
            "cpus",
        ];
        let file = folders.into_iter().flatten().find_map(|folder| {
            let text = names
                .iter()
                .find_map(|name| read_list(&folder.join(name)))?;
            let leaves = CpuSet::parse_list(text.trim()).ok()?;
            (!leaves.is_empty()).then_some((folder, leaves))
        });
        if let Some((folder, leaves)) = file {
            let by = format!("cpuset {}", folder.display());
            found.push(Restriction::limit(by, leaves));
        }
    }
    found
}

/// Parses the path of a controller in `/proc/PID/cgroup`; `""` is version 2.
fn parse_path<'a>(text: &'a str, controller: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let has_controller = controllers.split(',').any(|name| name == controller);
        has_controller.then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_stay_below_their_mount() {
        let mount = Path::new("/sys/fs/cgroup");
        for (path, expected) in [
            (
                "/system.slice/redis.service",
                Some("/sys/fs/cgroup/system.slice/redis.service"),
            ),
            ("a/b/", Some("/sys/fs/cgroup/a/b")),
            ("/", Some("/sys/fs/cgroup")),
            ("../../etc", None),
            ("a/../b", None),
            ("a//b", None),
        ] {
            assert_eq!(
                resolve_below(mount, path).as_deref(),
                expected.map(Path::new),
                "{path}"
            );
        }
    }

    #[test]
    fn lines_of_a_process_are_distinguished() {
        let text = "4:cpuset,cpu:/a:b\n1:name=systemd:/c\n0::/d\n";
        assert_eq!(parse_path(text, "cpuset"), Some("/a:b"));
        assert_eq!(parse_path(text, ""), Some("/d"));
        assert_eq!(parse_path(text, "memory"), None);
        assert_eq!(parse_path("x\n3:", ""), None);
    }

    proptest! {
        #[test]
        fn any_table_is_read(text in "(\\PC{0,30}\n|[0-9]:[a-z,=]{0,9}:/[a-z. ]{0,9}\n){0,4}", path in "[a-z./]{0,20}") {
            let _ = parse_path(&text, "cpuset");
            if let Some(folder) = resolve_below(Path::new("/m"), &path) {
                prop_assert!(folder.starts_with("/m"));
                let is_up = |part| part == std::path::Component::ParentDir;
                prop_assert!(!folder.components().any(is_up));
            }
        }
    }
}
