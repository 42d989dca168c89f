//! Fills a [`Capture`] from a running system or from a folder that holds a
//! copy of its `/sys` and `/proc`.
//!
//! Only known paths are opened, none deeper than the kernel's own; in a folder that the user gives,
//! looping links, pipes and devices are skipped. At most 64 KiB of a file are read.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{hypervisor, sys};
use pinwise_topology::devices::{self, CLASS_DIRS, DEVICE_FILES, NVIDIA_DIR, PCI_DIR};
use pinwise_topology::{Capture, Mount, Topology, wanted_cgroup_files};

/// How many folders may enclose a captured system.
const MAX_ROOT_DEPTH: usize = 4;
/// Longest file read.
const MAX_FILE_BYTES: u64 = 64 * 1024;

const CPU_DIR: &str = "sys/devices/system/cpu";
const NODE_DIR: &str = "sys/devices/system/node";

/// Single files.
const FILES: [&str; 18] = [
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/nohz_full",
    "sys/fs/cgroup/cpuset.cpus.isolated",
    "sys/devices/cpu_core/cpus",
    "sys/devices/cpu_atom/cpus",
    "sys/devices/cpu_lowpower/cpus",
    "sys/hypervisor/type",
    "sys/class/dmi/id/sys_vendor",
    "sys/class/dmi/id/product_name",
    "proc/cpuinfo",
    "proc/version",
    "proc/mounts",
    "proc/self/cgroup",
    "proc/self/cpuset",
    "proc/sys/kernel/hostname",
    "proc/sys/kernel/osrelease",
    "proc/device-tree/hypervisor/compatible",
];

/// Files of each CPU.
const CPU_FILES: [&str; 16] = [
    "online",
    "acpi_cppc/highest_perf",
    "cpu_capacity",
    "cpufreq/amd_pstate_prefcore_ranking",
    "cpufreq/cpuinfo_max_freq",
    "regs/identification/midr_el1",
    "topology/core_id",
    "topology/physical_package_id",
    "topology/core_cpus",
    "topology/core_cpus_list",
    "topology/thread_siblings",
    "topology/thread_siblings_list",
    "topology/package_cpus",
    "topology/package_cpus_list",
    "topology/core_siblings",
    "topology/core_siblings_list",
];

/// Files of each cache.
const CACHE_FILES: [&str; 6] = [
    "id",
    "level",
    "type",
    "size",
    "shared_cpu_map",
    "shared_cpu_list",
];

/// Why a folder does not contain a machine.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct CaptureReadError {
    /// The folder or file.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Captures this system, including what only a running process knows: its affinity mask, the
/// architecture, the hypervisor's signature.
///
/// # Errors
/// [`CaptureReadError`] if not even the affinity mask can be read.
pub fn capture_host() -> Result<Capture, CaptureReadError> {
    let mut reader = Reader::read_this_host();
    reader.read_devices();
    reader.finish()
}

/// As [`capture_host`], without devices.
pub(super) fn capture_cpus() -> Result<Capture, CaptureReadError> {
    Reader::read_this_host().finish()
}

/// Captures only the devices of this system.
pub(super) fn capture_devices() -> Capture {
    let mut reader = Reader::read_this_host();
    reader.read_devices();
    reader.capture
}

/// Where distributions install the list of PCI ids.
const PCI_IDS: [&str; 2] = ["/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"];

/// Names the models of a machine's devices if this system has a list of them.
pub fn name_models(topology: &mut Topology) {
    if topology.devices.is_empty() {
        return;
    }
    if let Some(list) = PCI_IDS.iter().find_map(|path| open_file(Path::new(path))) {
        // Unknown ids stay numbers.
        let _ = topology.name_models(list);
    }
}

/// Captures from a folder that holds `sys` (and perhaps `proc`) directly, in `fsroot`, or in its
/// only subfolder.
///
/// # Errors
/// [`CaptureReadError`] if there is no such folder.
pub fn capture_folder(folder: &Path) -> Result<Capture, CaptureReadError> {
    let root = find_root(folder).ok_or_else(|| CaptureReadError {
        path: folder.display().to_string(),
        reason: if folder.is_dir() {
            "it contains no sys/devices/system/cpu".to_owned()
        } else {
            "no such folder".to_owned()
        },
    })?;
    let mut reader = Reader {
        root,
        capture: Capture::new(),
    };
    reader.read_machine();
    reader.read_devices();
    Ok(reader.capture)
}

/// Finds the folder that holds `sys`: the given one, its `fsroot` (as in hwloc's archives), or
/// either of these in its only subfolder.
fn find_root(folder: &Path) -> Option<PathBuf> {
    let mut folder = folder.to_owned();
    for _ in 0..MAX_ROOT_DEPTH {
        let candidates = [folder.clone(), folder.join("fsroot")];
        if let Some(root) = candidates.into_iter().find(|c| c.join(CPU_DIR).is_dir()) {
            return Some(root);
        }
        let inside = list_names(&folder)
            .into_iter()
            .map(|name| folder.join(name));
        let mut folders = inside.filter(|path| path.is_dir());
        let only = folders.next()?;
        if folders.next().is_some() {
            return None;
        }
        folder = only;
    }
    None
}

struct Reader {
    root: PathBuf,
    capture: Capture,
}

impl Reader {
    fn read_this_host() -> Self {
        Self {
            root: PathBuf::from("/"),
            capture: Capture::new(),
        }
    }

    /// Reads everything but devices of this system, and what only a running process knows.
    fn finish(mut self) -> Result<Capture, CaptureReadError> {
        let affinity = sys::affinity().map_err(|error| CaptureReadError {
            path: "sched_getaffinity".to_owned(),
            reason: error.to_string(),
        })?;
        self.read_machine();
        let mut capture = self.capture;
        capture.insert("pinwise/affinity", affinity.to_string());
        if let Some(arch) = sys::architecture() {
            capture.insert("pinwise/arch", arch);
        }
        if let Some(name) = hypervisor::signature() {
            capture.insert("pinwise/hypervisor", name);
        }
        Ok(capture)
    }

    /// Everything except devices.
    fn read_machine(&mut self) {
        for file in FILES {
            self.read(file);
        }
        self.read_cpus();
        self.read_nodes();
        self.read_folders("sys/devices/system/cpu/types", &["cpumap", "cpulist"]);
        self.read_folders(NVIDIA_DIR, &["numa_status"]);
        for file in wanted_cgroup_files(&self.capture) {
            self.read(&file);
        }
    }

    /// Captures devices. Their folders are reached by links, whose targets say where on the bus a
    /// device is, so the links are captured.
    fn read_devices(&mut self) {
        self.read_folders(NVIDIA_DIR, &["information"]);
        for address in list_names(&self.root.join(PCI_DIR)) {
            let dir = format!("{PCI_DIR}/{address}");
            self.read(&format!("{dir}/class"));
            if !devices::is_wanted(&self.capture, &address) {
                continue;
            }
            self.read_link(&dir, &dir);
            for file in DEVICE_FILES {
                self.read_unless_known(&dir, file);
            }
        }
        for dir in CLASS_DIRS {
            for name in list_names(&self.root.join(dir)) {
                let path = format!("{dir}/{name}");
                // Before Linux 2.6.26 the devices of a class were folders.
                if !self.read_link(&path, &path) {
                    self.read_link(&path, &format!("{path}/device"));
                }
            }
        }
    }

    /// Captures the target of a link; false if there is none.
    fn read_link(&mut self, path: &str, link: &str) -> bool {
        let target = std::fs::read_link(self.root.join(link));
        let Some(target) = target
            .ok()
            .and_then(|t| t.into_os_string().into_string().ok())
        else {
            return false;
        };
        self.capture.insert(path, target);
        true
    }

    fn read_cpus(&mut self) {
        for name in self.list_numbered(CPU_DIR, "cpu") {
            let dir = format!("{CPU_DIR}/{name}");
            for file in CPU_FILES {
                self.read_unless_known(&dir, file);
            }
            for index in self.list_numbered(&format!("{dir}/cache"), "index") {
                for file in CACHE_FILES {
                    self.read_unless_known(&format!("{dir}/cache/{index}"), file);
                }
            }
        }
    }

    fn read_nodes(&mut self) {
        for name in self.list_numbered(NODE_DIR, "node") {
            let dir = format!("{NODE_DIR}/{name}");
            for file in ["cpumap", "cpulist", "meminfo"] {
                self.read_unless_known(&dir, file);
            }
            for class in ["access0", "access1"] {
                let dir = format!("{dir}/{class}/initiators");
                for file in ["read_bandwidth", "read_latency"] {
                    self.read_unless_known(&dir, file);
                }
                for initiator in self.list_numbered(&dir, "node") {
                    let path = format!("{dir}/{initiator}");
                    self.read_link(&path, &path);
                }
            }
        }
    }

    fn read_folders(&mut self, dir: &str, files: &[&str]) {
        for name in list_names(&self.root.join(dir)) {
            for file in files {
                self.read(&format!("{dir}/{name}/{file}"));
            }
        }
    }

    /// Reads a file unless the fact is already known from a preferred one: new names are preferred
    /// to old ones, masks (which all kernels have) to lists.
    fn read_unless_known(&mut self, dir: &str, file: &str) {
        let preferred: &[&str] = match file {
            "topology/core_cpus_list" | "topology/thread_siblings" => &["topology/core_cpus"],
            "topology/thread_siblings_list" => &["topology/core_cpus", "topology/thread_siblings"],
            "topology/package_cpus_list" | "topology/core_siblings" => &["topology/package_cpus"],
            "topology/core_siblings_list" => &["topology/package_cpus", "topology/core_siblings"],
            "shared_cpu_list" => &["shared_cpu_map"],
            "cpulist" => &["cpumap"],
            "local_cpulist" => &["local_cpus"],
            _ => &[],
        };
        let is_known = preferred
            .iter()
            .any(|name| self.capture.contains(&format!("{dir}/{name}")));
        if !is_known {
            self.read(&format!("{dir}/{file}"));
        }
    }

    fn read(&mut self, path: &str) {
        if let Some(content) = read_file(&self.root.join(path)) {
            self.capture.insert(path, keep_cpu_lines(path, content));
        }
    }

    fn list_numbered(&self, dir: &str, stem: &str) -> Vec<String> {
        let is_numbered = |name: &String| {
            name.strip_prefix(stem)
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        let mut found = list_names(&self.root.join(dir));
        found.retain(is_numbered);
        found
    }
}

/// Keeps the lines of a file that matter for topology. Captures are shared: other mounts would
/// reveal network shares and homes, drivers would reveal serial numbers, and the rest of `meminfo`
/// changes all the time.
fn keep_cpu_lines(path: &str, content: Vec<u8>) -> Vec<u8> {
    let is_wanted: fn(&str) -> bool = if path == "proc/mounts" {
        |line| {
            let kind = line.split_ascii_whitespace().nth(2);
            kind.is_some_and(|kind| ["cgroup", "cgroup2", "cpuset"].contains(&kind))
        }
    } else if path.ends_with("/meminfo") {
        |line| line.contains("MemTotal")
    } else if path.ends_with("/information") {
        |line| line.starts_with("Model:") || line.starts_with("Device Minor:")
    } else {
        return content;
    };
    let text = String::from_utf8_lossy(&content);
    let kept = text.lines().filter(|line| is_wanted(line));
    kept.flat_map(|line| [line, "\n"])
        .collect::<String>()
        .into_bytes()
}

/// Content of a regular file, up to [`MAX_FILE_BYTES`] bytes; opened so that a pipe cannot block.
pub(super) fn read_file(path: &Path) -> Option<Vec<u8>> {
    read_at_most(path, MAX_FILE_BYTES)
}

/// As [`read_file`], as text without surrounding white space.
pub(super) fn read_text(path: &Path) -> Option<String> {
    let content = read_file(path)?;
    Some(String::from_utf8_lossy(&content).trim().to_owned())
}

/// Opens a regular file, without blocking on a pipe or device.
fn open_file(path: &Path) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(path)
        .ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

fn read_at_most(path: &Path, longest: u64) -> Option<Vec<u8>> {
    let file = open_file(path)?;
    let mut content = Vec::new();
    file.take(longest).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Reads which cgroup file systems are mounted.
pub(super) fn read_mounts() -> Vec<Mount> {
    let table = read_file(Path::new("/proc/mounts")).unwrap_or_default();
    pinwise_topology::mounts(&String::from_utf8_lossy(&table)).collect()
}

/// Lists the names in a folder, sorted; empty if it cannot be listed.
pub(super) fn list_names(folder: &Path) -> Vec<String> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the Edge lists folders of /sys and of captures"
    )]
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    found.sort_unstable();
    found
}
