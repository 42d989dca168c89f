//! The units of a machine from as few files as possible.
//!
//! A program that places its own threads should start faster than a few thousand files can be read:
//! nothing is read of a CPU whose core, package or last-level cache another CPU has listed already.
//! The full report gives the same result unless it contradicts itself, and then the first CPU is
//! believed in both. For caches between core and last-level cache one CPU of each kind is read, and
//! all only if it shares one with other cores. Names, versions, other inner caches and memory sizes
//! are not read.

mod caches;

use std::collections::BTreeMap;

use super::build::{CpuFacts, Facts, KindFacts, NodeFacts};
use super::{
    Capture, CpuSet, Restriction, Warning, cgroup, online, read_isolated, sysfs,
    wanted_cgroup_files,
};

const CPU_DIR: &str = "sys/devices/system/cpu";
const NODE_DIR: &str = "sys/devices/system/node";

/// The format of a CPU set file, and its name; the list is the shorter format, and the names
/// without `core_cpus` are those before Linux 5.3.
type Named = (&'static str, Form);

const CORE: [Named; 4] = [
    ("topology/core_cpus_list", Form::List),
    ("topology/thread_siblings_list", Form::List),
    ("topology/core_cpus", Form::Mask),
    ("topology/thread_siblings", Form::Mask),
];
const PACKAGE: [Named; 4] = [
    ("topology/package_cpus_list", Form::List),
    ("topology/core_siblings_list", Form::List),
    ("topology/package_cpus", Form::Mask),
    ("topology/core_siblings", Form::Mask),
];
const LOCAL: [Named; 2] = [("cpulist", Form::List), ("cpumap", Form::Mask)];

#[derive(Debug, Clone, Copy)]
enum Form {
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
pub(super) fn ranks(files: &mut impl Files, online: &CpuSet) -> Vec<KindFacts> {
    let mut reader = Reader::new(files);
    let ranks = sysfs::RANK_FILES.into_iter().map(|file| {
        let mut capture = Capture::new();
        reader.read_of_all_cpus(&mut capture, online, file);
        sysfs::ranks(&capture, online)
    });
    let mut known = ranks.filter(|ranks| !ranks.is_empty());
    known.next().unwrap_or_default()
}

pub(super) fn read(files: &mut impl Files) -> (Facts, Vec<Warning>) {
    let mut reader = Reader::new(files);
    let limits = cgroup::limits(&reader.read_limits(), &mut reader.warnings);
    let online = reader.read_online(&limits.restrictions);
    let present = reader.read_present(&online);
    let cpus = reader.read_cpus(&present, &online);
    let kinds = reader.read_kinds(&online);
    let mut caches = reader.last_level_caches(&cpus, &online);
    caches.extend(reader.shared_inner_caches(&cpus, &kinds, &caches));
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
            self.keep(&mut capture, path);
        }
        // On container hosts a mount table is long. If only version 2 is in use, it is mounted
        // here.
        let own = capture.text("proc/self/cgroup").unwrap_or_default();
        let only_v2 = own.starts_with("0::") && own.lines().count() == 1;
        if only_v2 && self.read("sys/fs/cgroup/cgroup.controllers").is_some() {
            capture.insert("proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        } else {
            self.keep(&mut capture, "proc/mounts");
        }
        for path in wanted_cgroup_files(&capture) {
            self.keep(&mut capture, &path);
        }
        capture
    }

    fn keep(&mut self, capture: &mut Capture, path: &str) {
        if let Some(text) = self.files.text(path) {
            capture.insert(path, text);
        }
    }

    fn read(&mut self, path: &str) -> Option<&str> {
        self.files.text(path).filter(|text| !text.is_empty())
    }

    /// Reads a file of a CPU, cache or node; the path is built in place.
    fn set(&mut self, folder: &str, (file, form): Named) -> Option<CpuSet> {
        self.path.clear();
        self.path.push_str(folder);
        self.path.push('/');
        self.path.push_str(file);
        let text = self.files.text(&self.path).filter(|t| !t.is_empty())?;
        let parsed = match form {
            Form::List => CpuSet::parse_list(text),
            Form::Mask => CpuSet::parse_mask(text),
        };
        parsed
            .map_err(|error| {
                self.warnings
                    .push(format!("/{}: {error}; ignored.", self.path))
            })
            .ok()
    }

    /// The first of several files whose CPUs include its own. The file that was found last time is
    /// tried first.
    fn own(&mut self, folder: &str, names: &mut [Named], cpu: usize) -> Option<CpuSet> {
        let found = names.iter().enumerate().find_map(|(index, &name)| {
            let set = self.set(folder, name).filter(|set| set.contains(cpu))?;
            Some((index, set))
        });
        let (index, set) = found?;
        names[..=index].rotate_right(1);
        Some(set)
    }

    fn read_online(&mut self, restrictions: &[Restriction]) -> CpuSet {
        let listed = self.set(CPU_DIR, ("online", Form::List));
        if let Some(online) = listed.filter(|set| !set.is_empty()) {
            let mut warnings = Vec::new();
            let online = online::check_list(online, restrictions, &mut warnings, || {
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
        let listed = self.set(CPU_DIR, ("present", Form::List));
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
    fn read_units(&mut self, online: &CpuSet, names: &mut [Named]) -> Vec<(usize, CpuSet)> {
        let mut known = CpuSet::new();
        let mut units = Vec::new();
        for id in online.iter() {
            if known.contains(id) {
                continue;
            }
            if let Some(set) = self.own(&format!("{CPU_DIR}/cpu{id}"), names, id) {
                known = known.union(&set);
                units.push((id, set));
            }
        }
        units
    }

    /// Only AMD's family 15h (Bulldozer) calls two cores siblings, and gives them two core ids. If
    /// the processor is unknown, all ids are read.
    fn may_have_modules(&mut self) -> bool {
        let modalias = self.read(&format!("{CPU_DIR}/modalias"));
        modalias.is_none_or(|name| name.contains("ven0002fam0015"))
    }

    fn read_nodes(&mut self) -> Vec<NodeFacts> {
        let listed = self.set(NODE_DIR, ("online", Form::List));
        let numbers: Vec<usize> = match listed {
            Some(nodes) => nodes.iter().collect(),
            None => self.list_numbered(NODE_DIR, "node"),
        };
        let gpus = self.gpu_nodes();
        let numbers = numbers.into_iter().filter(|node| !gpus.contains(node));
        numbers
            .map(|node| {
                let folder = format!("{NODE_DIR}/node{node}");
                let cpus = LOCAL.iter().find_map(|&name| self.set(&folder, name));
                NodeFacts {
                    node,
                    cpus: cpus.unwrap_or_default(),
                    ..NodeFacts::default()
                }
            })
            .collect()
    }

    fn gpu_nodes(&mut self) -> std::collections::BTreeSet<usize> {
        let folder = "proc/driver/nvidia/gpus";
        let mut capture = Capture::new();
        for gpu in self.files.children(folder) {
            self.keep(&mut capture, &format!("{folder}/{gpu}/numa_status"));
        }
        sysfs::gpu_nodes(&capture)
    }

    fn read_isolated(&mut self) -> CpuSet {
        read_isolated(|path| {
            let (folder, file) = path.rsplit_once('/')?;
            self.set(folder, (file, Form::List))
        })
    }

    /// The files that give kinds of CPU, fewest first; each source is used only if the one before
    /// gave nothing.
    fn read_kinds(&mut self, online: &CpuSet) -> Vec<KindFacts> {
        let mut capture = Capture::new();
        for pmu in ["cpu_core", "cpu_atom", "cpu_lowpower"] {
            self.keep(&mut capture, &format!("sys/devices/{pmu}/cpus"));
        }
        if capture.len() < 2 {
            let types = format!("{CPU_DIR}/types");
            for name in self.files.children(&types) {
                for (file, _) in LOCAL.map(|(file, form)| (format!("{types}/{name}/{file}"), form))
                {
                    self.keep(&mut capture, &file);
                }
            }
            let has_types = capture.children(&types).next().is_some();
            let by_design =
                self.read_of_all_cpus(&mut capture, online, "regs/identification/midr_el1");
            let differ = by_design && self.differ(&capture, online);
            if has_types || differ || !by_design {
                let has_capacity = self.read_of_all_cpus(&mut capture, online, "cpu_capacity");
                if has_capacity && !by_design {
                    self.keep(&mut capture, "proc/cpuinfo");
                }
                if (has_types || differ)
                    && !has_capacity
                    && !self.read_of_all_cpus(&mut capture, online, "cpufreq/cpuinfo_max_freq")
                {
                    self.read_of_all_cpus(&mut capture, online, "acpi_cppc/highest_perf");
                }
            }
        }
        sysfs::kinds(&capture, online, &mut self.warnings)
    }

    /// Reads a file of every CPU, if the first has it.
    fn read_of_all_cpus(&mut self, capture: &mut Capture, online: &CpuSet, file: &str) -> bool {
        for id in online.iter() {
            let path = format!("{CPU_DIR}/cpu{id}/{file}");
            self.keep(capture, &path);
            if !capture.contains(&path) {
                return false;
            }
        }
        true
    }

    fn differ(&self, capture: &Capture, online: &CpuSet) -> bool {
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
