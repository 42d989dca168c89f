//! The units of a machine from as few files as possible.
//!
//! A program that places its own threads should not wait until thousands of files are read. The
//! file of a core, package or last-level cache is read for only one of its CPUs. All files together
//! give the same result unless they contradict each other, and then the first CPU is believed in
//! either case. Inner caches are read for one CPU of each kind, and for all of the kind only if
//! that CPU shares one with other cores. Names, versions, other inner caches and memory sizes are
//! not read.

mod caches;

use std::collections::BTreeMap;

use super::build::{CpuFacts, Facts, KindFacts, NodeFacts};
use super::{
    Capture, CpuSet, Restriction, Warning, cgroup, online, read_isolated, sysfs,
    wanted_cgroup_files,
};

const CPU_DIR: &str = "sys/devices/system/cpu";
const NODE_DIR: &str = "sys/devices/system/node";

/// The name and format of a file with a set of CPUs. A list is usually shorter than a mask.
/// `siblings` are the names before Linux 5.3.
type SetFile = (&'static str, SetFormat);

const CORE: [SetFile; 4] = [
    ("topology/core_cpus_list", SetFormat::List),
    ("topology/thread_siblings_list", SetFormat::List),
    ("topology/core_cpus", SetFormat::Mask),
    ("topology/thread_siblings", SetFormat::Mask),
];
const PACKAGE: [SetFile; 4] = [
    ("topology/package_cpus_list", SetFormat::List),
    ("topology/core_siblings_list", SetFormat::List),
    ("topology/package_cpus", SetFormat::Mask),
    ("topology/core_siblings", SetFormat::Mask),
];
const LOCAL: [SetFile; 2] = [("cpulist", SetFormat::List), ("cpumap", SetFormat::Mask)];

#[derive(Debug, Clone, Copy)]
enum SetFormat {
    List,
    Mask,
}

/// Files by path without a leading slash, read one at a time. The path `pinwise/affinity` is the
/// affinity mask, as a list.
pub trait Files {
    /// Content without surrounding white space and NUL bytes; `None` if missing or not text.
    fn text(&mut self, path: &str) -> Option<&str>;

    /// Names in a folder; empty if it cannot be listed.
    fn children(&mut self, folder: &str) -> Vec<String>;
}

impl Files for &Capture {
    fn text(&mut self, path: &str) -> Option<&str> {
        Capture::text(self, path)
    }

    fn children(&mut self, folder: &str) -> Vec<String> {
        Capture::children(self, folder).map(str::to_owned).collect()
    }
}

/// Groups CPUs by speed, from a file of each of them.
pub(super) fn read_ranks(files: &mut impl Files, online: &CpuSet) -> Vec<KindFacts> {
    let mut reader = Reader::new(files);
    let ranks = sysfs::RANK_FILES.into_iter().map(|file| {
        let mut capture = Capture::new();
        reader.capture_file_of_all_cpus(&mut capture, online, file);
        sysfs::read_ranks(&capture, online)
    });
    let mut known = ranks.filter(|ranks| !ranks.is_empty());
    known.next().unwrap_or_default()
}

pub(super) fn read_facts(files: &mut impl Files) -> (Facts, Vec<Warning>) {
    let mut reader = Reader::new(files);
    let limits = cgroup::find_limits(&reader.read_limits(), &mut reader.warnings);
    let online = reader.read_online(&limits.restrictions);
    let present = reader.read_present(&online);
    let cpus = reader.read_cpus(&present, &online);
    let kinds = reader.read_kinds(&online);
    let mut caches = reader.read_last_level_caches(&cpus, &online);
    caches.extend(reader.read_shared_inner_caches(&cpus, &kinds, &caches));
    let facts = Facts {
        cpus,
        caches,
        nodes: reader.read_nodes(),
        kinds,
        restrictions: limits.restrictions,
        isolated: reader.read_isolated(),
        allowed_nodes: limits.allowed_nodes,
        quota: limits.quota,
        ..Facts::default()
    };
    (facts, reader.warnings)
}

struct Reader<'a, F> {
    files: &'a mut F,
    warnings: Vec<Warning>,
    /// Kept to avoid allocating paths.
    path: String,
}

impl<'a, F: Files> Reader<'a, F> {
    fn new(files: &'a mut F) -> Self {
        Self {
            files,
            warnings: Vec::new(),
            path: String::new(),
        }
    }

    /// The files that limit this process.
    fn read_limits(&mut self) -> Capture {
        let mut capture = Capture::new();
        for path in ["pinwise/affinity", "proc/self/cgroup", "proc/self/cpuset"] {
            self.capture_file(&mut capture, path);
        }
        // Container hosts have long mount tables. If only version 2 is in use, its usual mount
        // point is enough.
        let own = capture.text("proc/self/cgroup").unwrap_or_default();
        let is_only_v2 = own.starts_with("0::") && own.lines().count() == 1;
        if is_only_v2 && self.read("sys/fs/cgroup/cgroup.controllers").is_some() {
            capture.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        } else {
            self.capture_file(&mut capture, "proc/mounts");
        }
        for path in wanted_cgroup_files(&capture) {
            self.capture_file(&mut capture, &path);
        }
        capture
    }

    fn capture_file(&mut self, capture: &mut Capture, path: &str) {
        if let Some(text) = self.files.text(path) {
            capture.insert(path, text);
        }
    }

    fn read(&mut self, path: &str) -> Option<&str> {
        self.files.text(path).filter(|text| !text.is_empty())
    }

    /// Reads a file of a CPU, cache or node; the path is built in place.
    fn read_set(&mut self, folder: &str, (file, format): SetFile) -> Option<CpuSet> {
        self.path.clear();
        self.path.push_str(folder);
        self.path.push('/');
        self.path.push_str(file);
        let text = self.files.text(&self.path).filter(|t| !t.is_empty())?;
        let parsed = match format {
            SetFormat::List => CpuSet::parse_list(text),
            SetFormat::Mask => CpuSet::parse_mask(text),
        };
        parsed
            .map_err(|error| {
                self.warnings
                    .push(format!("/{}: {error}; ignored.", self.path))
            })
            .ok()
    }

    /// Reads the first of several files whose set contains the CPU itself. The file that was found
    /// last time is tried first.
    fn read_own_set(&mut self, folder: &str, names: &mut [SetFile], cpu: usize) -> Option<CpuSet> {
        let found = names.iter().enumerate().find_map(|(index, &name)| {
            let set = self
                .read_set(folder, name)
                .filter(|set| set.contains(cpu))?;
            Some((index, set))
        });
        let (index, set) = found?;
        names[..=index].rotate_right(1);
        Some(set)
    }

    fn read_online(&mut self, restrictions: &[Restriction]) -> CpuSet {
        let listed = self.read_set(CPU_DIR, ("online", SetFormat::List));
        if let Some(online) = listed.filter(|set| !set.is_empty()) {
            let mut warnings = Vec::new();
            let online = online::check_online_list(online, restrictions, &mut warnings, || {
                let mut folders = self.list_numbered(CPU_DIR, "cpu");
                folders.retain(|id| {
                    let inside = self.files.children(&format!("{CPU_DIR}/cpu{id}"));
                    let is_described = inside.iter().any(|name| name == "topology");
                    is_described && self.read(&format!("{CPU_DIR}/cpu{id}/online")) != Some("0")
                });
                folders.into_iter().collect()
            });
            self.warnings.extend(warnings);
            return online;
        }
        let mask = restrictions.iter().find(|r| r.is_mask);
        let folders = self.list_numbered(CPU_DIR, "cpu");
        let online: CpuSet = folders
            .into_iter()
            .filter(|id| self.read(&format!("{CPU_DIR}/cpu{id}/online")) != Some("0"))
            .collect();
        if online.is_empty() {
            return mask.map_or_else(CpuSet::new, |mask| mask.leaves.clone());
        }
        online
    }

    fn read_present(&mut self, online: &CpuSet) -> CpuSet {
        let listed = self.read_set(CPU_DIR, ("present", SetFormat::List));
        let present = listed.unwrap_or_else(|| {
            let folders = self.list_numbered(CPU_DIR, "cpu");
            folders.into_iter().collect()
        });
        present.union(online)
    }

    fn list_numbered(&mut self, folder: &str, stem: &str) -> Vec<usize> {
        let names = self.files.children(folder);
        let mut numbers: Vec<usize> = names
            .iter()
            .filter_map(|name| {
                let digits = name.strip_prefix(stem)?;
                let number: usize = digits.parse().ok()?;
                (number.to_string() == digits).then_some(number)
            })
            .collect();
        numbers.sort_unstable();
        numbers
    }

    fn read_cpus(&mut self, present: &CpuSet, online: &CpuSet) -> BTreeMap<usize, CpuFacts> {
        let mut cpus: BTreeMap<usize, CpuFacts> = present
            .iter()
            .map(|id| {
                let online = online.contains(id);
                let facts = CpuFacts {
                    online,
                    ..CpuFacts::default()
                };
                (id, facts)
            })
            .collect();
        let (mut cores, mut packages) = (CORE, PACKAGE);
        for (id, set) in self.read_units(online, &mut cores) {
            cpus.entry(id).or_default().core = Some(set);
        }
        for (id, set) in self.read_units(online, &mut packages) {
            cpus.entry(id).or_default().package = Some(set);
        }
        if self.may_have_modules() {
            for id in online.iter() {
                let text = self.read(&format!("{CPU_DIR}/cpu{id}/topology/core_id"));
                cpus.entry(id).or_default().core_id = text.and_then(|text| text.parse().ok());
            }
        }
        cpus
    }

    /// Reads the members of each unit from one of its CPUs.
    fn read_units(&mut self, online: &CpuSet, names: &mut [SetFile]) -> Vec<(usize, CpuSet)> {
        let mut known = CpuSet::new();
        let mut units = Vec::new();
        for id in online.iter() {
            if known.contains(id) {
                continue;
            }
            if let Some(set) = self.read_own_set(&format!("{CPU_DIR}/cpu{id}"), names, id) {
                known = known.union(&set);
                units.push((id, set));
            }
        }
        units
    }

    /// May two cores be reported as siblings with two core ids? Only AMD's family 15h (Bulldozer)
    /// does. If the processor is unknown, all ids are read.
    fn may_have_modules(&mut self) -> bool {
        let modalias = self.read(&format!("{CPU_DIR}/modalias"));
        modalias.is_none_or(|name| name.contains("ven0002fam0015"))
    }

    fn read_nodes(&mut self) -> Vec<NodeFacts> {
        let listed = self.read_set(NODE_DIR, ("online", SetFormat::List));
        let numbers: Vec<usize> = match listed {
            Some(nodes) => nodes.iter().collect(),
            None => self.list_numbered(NODE_DIR, "node"),
        };
        let gpu_nodes = self.list_gpu_nodes();
        let numbers = numbers.into_iter().filter(|node| !gpu_nodes.contains(node));
        numbers
            .map(|node| {
                let folder = format!("{NODE_DIR}/node{node}");
                let cpus = LOCAL.iter().find_map(|&name| self.read_set(&folder, name));
                NodeFacts {
                    node,
                    cpus: cpus.unwrap_or_default(),
                    ..NodeFacts::default()
                }
            })
            .collect()
    }

    fn list_gpu_nodes(&mut self) -> std::collections::BTreeSet<usize> {
        let folder = "proc/driver/nvidia/gpus";
        let mut capture = Capture::new();
        for gpu in self.files.children(folder) {
            self.capture_file(&mut capture, &format!("{folder}/{gpu}/numa_status"));
        }
        sysfs::list_gpu_nodes(&capture)
    }

    fn read_isolated(&mut self) -> CpuSet {
        read_isolated(|path| {
            let (folder, file) = path.rsplit_once('/')?;
            self.read_set(folder, (file, SetFormat::List))
        })
    }

    /// Reads the files that tell kinds of CPU, the fewest files first; each source only if the one
    /// before gave nothing.
    fn read_kinds(&mut self, online: &CpuSet) -> Vec<KindFacts> {
        let mut capture = Capture::new();
        for pmu in ["cpu_core", "cpu_atom", "cpu_lowpower"] {
            self.capture_file(&mut capture, &format!("sys/devices/{pmu}/cpus"));
        }
        if capture.len() < 2 {
            let types = format!("{CPU_DIR}/types");
            for name in self.files.children(&types) {
                for (file, _) in LOCAL.map(|(file, form)| (format!("{types}/{name}/{file}"), form))
                {
                    self.capture_file(&mut capture, &file);
                }
            }
            let has_types = capture.children(&types).next().is_some();
            let by_design =
                self.capture_file_of_all_cpus(&mut capture, online, "regs/identification/midr_el1");
            let differ = by_design && self.do_designs_differ(&capture, online);
            if has_types || differ || !by_design {
                let has_capacity =
                    self.capture_file_of_all_cpus(&mut capture, online, "cpu_capacity");
                if has_capacity && !by_design {
                    self.capture_file(&mut capture, "proc/cpuinfo");
                }
                if (has_types || differ)
                    && !has_capacity
                    && !self.capture_file_of_all_cpus(
                        &mut capture,
                        online,
                        "cpufreq/cpuinfo_max_freq",
                    )
                {
                    self.capture_file_of_all_cpus(&mut capture, online, "acpi_cppc/highest_perf");
                }
            }
        }
        sysfs::read_kinds(&capture, online, &mut self.warnings)
    }

    /// Captures a file of every CPU; stops and returns false at the first CPU that lacks it.
    fn capture_file_of_all_cpus(
        &mut self,
        capture: &mut Capture,
        online: &CpuSet,
        file: &str,
    ) -> bool {
        for id in online.iter() {
            let path = format!("{CPU_DIR}/cpu{id}/{file}");
            self.capture_file(capture, &path);
            if !capture.contains(&path) {
                return false;
            }
        }
        true
    }

    fn do_designs_differ(&self, capture: &Capture, online: &CpuSet) -> bool {
        let design = |id: usize| {
            let path = format!("{CPU_DIR}/cpu{id}/regs/identification/midr_el1");
            capture.text(&path).map(str::to_owned)
        };
        let first = online.first().and_then(design);
        online.iter().any(|id| design(id) != first)
    }
}

#[cfg(test)]
mod tests;
