//! The CPUs, memory nodes and CPU time that cgroups allow.
//!
//! Supports cgroup v2, v1 with and without `noprefix`, the old `cpuset` file system, and containers
//! that see only their own subtree. [`wanted_files`] says which files to capture, given the mount
//! table.

use std::collections::BTreeSet;

use super::{Capture, CpuSet, Quota, Restriction, Warning};

/// Limits for malicious captures, far above real systems: nested cgroups, bytes of a cgroup's path
/// (the kernel's `PATH_MAX`), and mounts of cgroup file systems.
const MAX_CGROUP_DEPTH: usize = 64;
const LONGEST_PATH: usize = 4096;
const MAX_MOUNTS: usize = 64;

/// Limits found in a capture.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) restrictions: Vec<Restriction>,
    pub(super) allowed_nodes: Option<BTreeSet<usize>>,
    pub(super) quota: Option<Quota>,
}

pub(super) fn find_limits(capture: &Capture, warnings: &mut Vec<Warning>) -> Limits {
    let mut restrictions = Vec::new();
    let mut parse = |path: &str| -> Option<CpuSet> {
        let text = capture.text(path).filter(|text| !text.is_empty())?;
        CpuSet::parse_list(text)
            .map_err(|error| warnings.push(format!("/{path}: {error}; ignored.")))
            .ok()
    };
    if let Some(leaves) = parse("pinwise/affinity") {
        restrictions.push(Restriction::mask("affinity mask", leaves));
    }
    let candidates = list_candidates(capture);
    let cpus = candidates.iter().flat_map(|c| c.files(&c.cpus));
    if let Some((path, leaves)) = find_first_readable(cpus, &mut parse) {
        let by = format!("cpuset /{}", parent_folder(&path));
        restrictions.push(Restriction::limit(by, leaves));
    }
    let mems = candidates.iter().flat_map(|c| c.files(&c.mems));
    let allowed_nodes = find_first_readable(mems, &mut parse).map(|(_, set)| set.iter().collect());
    Limits {
        restrictions,
        allowed_nodes,
        quota: find_quota(capture),
    }
}

/// The files under cgroup mounts that concern CPUs and memory, for a capture that has
/// `/proc/mounts` and `/proc/self/{cgroup,cpuset}`.
#[must_use]
pub fn wanted_files(capture: &Capture) -> Vec<String> {
    let mut files: Vec<String> = list_candidates(capture)
        .iter()
        .flat_map(|c| c.files(&c.cpus).chain(c.files(&c.mems)))
        .collect();
    for dir in list_quota_folders(capture) {
        files.extend(
            ["cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us"].map(|f| format!("{dir}/{f}")),
        );
    }
    files
}

/// Why the limit on CPU time is unknown, for a capture that has `/proc/mounts` and
/// `/proc/self/cgroup`; `None` if its files can be read or no cgroup can set one. `is_cgroup` says
/// whether a folder, given without a leading slash, is a cgroup.
#[must_use]
pub fn explain_unknown_quota(
    capture: &Capture,
    is_cgroup: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    // A kernel without cgroups has no such file, and with only other controllers no such line.
    let has = |controller| find_cgroup_path(capture, controller).is_some();
    let can_limit = has("cpu") || has("");
    // In a chroot the mount table leaves out what is mounted elsewhere.
    let is_mounted = list_quota_folders(capture).iter().any(|dir| is_cgroup(dir));
    (can_limit && !is_mounted).then_some("no cgroup files")
}

/// The folders of one mount that may hold this process's cpuset, the most specific first, and the
/// names of their files.
struct Candidate {
    folders: Vec<String>,
    cpus: Vec<&'static str>,
    mems: Vec<&'static str>,
}

impl Candidate {
    fn files<'a>(&'a self, names: &'a [&'static str]) -> impl Iterator<Item = String> + 'a {
        self.folders
            .iter()
            .flat_map(move |dir| names.iter().map(move |name| format!("{dir}/{name}")))
    }
}

/// Where each mount may have this process's cpuset. Version 1 shrinks `cpus` itself when a CPU goes
/// offline; its newer `effective_*` files are the second choice.
fn list_candidates(capture: &Capture) -> Vec<Candidate> {
    parse_captured_mounts(capture)
        .filter_map(|mount| {
            let (cpus, mems) = match mount.kind.as_str() {
                "cgroup2" => (vec!["cpuset.cpus.effective"], vec!["cpuset.mems.effective"]),
                "cgroup" if mount.has("cpuset") && mount.has("noprefix") => (
                    vec!["cpus", "effective_cpus"],
                    vec!["mems", "effective_mems"],
                ),
                "cgroup" if mount.has("cpuset") => (
                    vec!["cpuset.cpus", "cpuset.effective_cpus"],
                    vec!["cpuset.mems", "cpuset.effective_mems"],
                ),
                "cpuset" => (vec!["cpus"], vec!["mems"]),
                _ => return None,
            };
            let controller = if mount.is_unified() { "" } else { "cpuset" };
            let path = find_cpuset_path(capture, controller);
            // A container may see its own subtree as the root of the mount.
            let mut folders = vec![join(&mount.point, path.as_deref().unwrap_or("/"))];
            folders.push(join(&mount.point, "/"));
            folders.dedup();
            Some(Candidate {
                folders,
                cpus,
                mems,
            })
        })
        .collect()
}

/// This process's path for cpusets: `/proc/self/cpuset`, which works in any hierarchy, else the
/// line of `/proc/self/cgroup`.
fn find_cpuset_path(capture: &Capture, controller: &str) -> Option<String> {
    capture
        .text("proc/self/cpuset")
        .filter(|path| path.starts_with('/') && path.len() <= LONGEST_PATH)
        .map(str::to_owned)
        .or_else(|| find_cgroup_path(capture, controller))
}

/// The path in `/proc/self/cgroup` for a controller; `""` is cgroup v2.
fn find_cgroup_path(capture: &Capture, controller: &str) -> Option<String> {
    capture.text("proc/self/cgroup")?.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        let path = fields.next()?;
        controllers
            .split(',')
            .any(|name| name == controller && path.len() <= LONGEST_PATH)
            .then(|| path.to_owned())
    })
}

/// The tightest limit of this process's cgroup and its ancestors.
fn find_quota(capture: &Capture) -> Option<Quota> {
    list_quota_folders(capture)
        .into_iter()
        .filter_map(|dir| read_quota(capture, &dir))
        .min_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

fn read_quota(capture: &Capture, dir: &str) -> Option<Quota> {
    let files = QuotaFiles::read(|name| capture.text(&format!("{dir}/{name}")))?;
    Some(Quota {
        cpus: files.micros as f64 / files.period_micros as f64,
        source: format!("/{dir}/{}", files.name),
    })
}

/// A quota on CPU time as the files of a cgroup set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaFiles {
    /// The file with the limit: `cpu.max`, or `cpu.cfs_quota_us` of version 1.
    pub name: &'static str,
    /// CPU time in each period, microseconds; never 0.
    pub micros: u64,
    /// The period, microseconds; never 0.
    pub period_micros: u64,
}

impl QuotaFiles {
    /// Reads the quota of a cgroup, of whose folder `read` returns a file without its last line end;
    /// `None` if there is no limit.
    pub fn read<T: AsRef<str>>(read: impl Fn(&str) -> Option<T>) -> Option<Self> {
        // Parsed as whole microseconds: as floating point, `inf` would be a limit too.
        let micros = |text: &str| text.parse::<u64>().ok().filter(|&v| v > 0);
        let quota = |name, limit: &str, period: &str| {
            Some(Self {
                name,
                micros: micros(limit)?,
                period_micros: micros(period)?,
            })
        };
        if let Some(text) = read("cpu.max") {
            let (limit, period) = text.as_ref().split_once(' ')?;
            return quota("cpu.max", limit, period);
        }
        let period = read("cpu.cfs_period_us")?;
        let limit = read("cpu.cfs_quota_us")?;
        quota("cpu.cfs_quota_us", limit.as_ref(), period.as_ref())
    }
}

fn list_quota_folders(capture: &Capture) -> Vec<String> {
    list_folders(capture, "cpu")
}

/// The folders of the process's cgroup of a controller and of its ancestors, the most specific first,
/// for a capture that has `/proc/mounts` and `/proc/self/cgroup`.
#[must_use]
pub fn list_folders(capture: &Capture, controller: &str) -> Vec<String> {
    let mut folders = Vec::new();
    for mount in parse_captured_mounts(capture) {
        let controller = match mount.kind.as_str() {
            "cgroup2" => "",
            "cgroup" if mount.has(controller) => controller,
            _ => continue,
        };
        let own = find_cgroup_path(capture, controller).unwrap_or_else(|| "/".to_owned());
        let mut path = own.as_str();
        for _ in 0..MAX_CGROUP_DEPTH {
            folders.push(join(&mount.point, path));
            if path == "/" || path.is_empty() {
                break;
            }
            path = path
                .rsplit_once('/')
                .map_or("/", |(up, _)| if up.is_empty() { "/" } else { up });
        }
    }
    folders
}

/// A mounted file system of cgroups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The mount point.
    pub point: String,
    /// `cgroup2`, `cgroup` (version 1) or `cpuset` (older than cgroups).
    pub kind: String,
    /// Its options; for version 1 also its controllers, or `name=…`.
    pub options: Vec<String>,
}

impl Mount {
    /// Was it mounted with this option or controller?
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|own| own == option)
    }

    /// Is it of version 2?
    #[must_use]
    pub fn is_unified(&self) -> bool {
        self.kind == "cgroup2"
    }
}

/// The file systems of cgroups in the text of `/proc/mounts`, at most `MAX_MOUNTS` of them.
pub fn mounts(table: &str) -> impl Iterator<Item = Mount> {
    let mounts = table.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        matches!(kind, "cgroup2" | "cgroup" | "cpuset").then(|| Mount {
            // proc_pid_mounts(5): escaped blanks and backslashes.
            point: point.replace("\\040", " ").replace("\\134", "\\"),
            kind: kind.to_owned(),
            options: options.split(',').map(str::to_owned).collect(),
        })
    });
    mounts.take(MAX_MOUNTS)
}

fn parse_captured_mounts(capture: &Capture) -> impl Iterator<Item = Mount> {
    mounts(capture.text("proc/mounts").unwrap_or_default())
}

fn find_first_readable(
    files: impl Iterator<Item = String>,
    parse: &mut impl FnMut(&str) -> Option<CpuSet>,
) -> Option<(String, CpuSet)> {
    files
        .into_iter()
        .find_map(|path| parse(&path).map(|set| (path, set)))
}

/// Joins a mount point and a cgroup path into a capture path (no leading slash).
fn join(point: &str, path: &str) -> String {
    let path = path.trim_matches('/');
    let point = point.trim_matches('/');
    if path.is_empty() {
        point.to_owned()
    } else {
        format!("{point}/{path}")
    }
}

fn parent_folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(dir, _)| dir)
}
