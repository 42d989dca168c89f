//! Reads a [`Capture`] of a Linux system into [`Facts`].
//!
//! Every file may be missing, empty, padded or wrong; an unreadable one gives a warning and is left
//! out. Old and new names of the same file are both supported (`thread_siblings` became `core_cpus`
//! in Linux 5.3).

use std::collections::{BTreeMap, BTreeSet};

use super::build::{CpuFacts, Facts, KindFacts, NodeFacts};
use super::{
    Cache, CacheType, Capture, CpuSet, Restriction, Warning, cgroup, devices, identity, online,
    read_isolated,
};

mod cache_ids;
mod kinds;
mod memory;

use cache_ids::CacheIds;
pub(super) use kinds::RANK_FILES;

const CPU_DIR: &str = "sys/devices/system/cpu";
const NODE_DIR: &str = "sys/devices/system/node";

pub(super) fn read_facts(capture: &Capture) -> (Facts, Vec<Warning>) {
    let mut reader = Reader::new(capture);
    let present = reader.read_present();
    let limits = cgroup::find_limits(capture, &mut reader.warnings);
    let online = reader.read_online(&present, &limits.restrictions);
    reader.warn_of_unseen_cpus(&present, &limits.restrictions);
    let cpus = present
        .iter()
        .map(|id| (id, reader.read_cpu(id, online.contains(id))))
        .collect();
    reader.warn_of_missing_units(&cpus);
    let caches = reader.read_caches(&cpus, &online);
    reader.warn_of_sets_without_own_cpu();
    let facts = Facts {
        identity: identity::parse_identity(capture),
        cpus,
        nodes: reader.read_nodes(),
        kinds: reader.read_kinds(&online, &caches),
        ranks: reader.read_ranks(&online),
        caches,
        restrictions: limits.restrictions,
        isolated: read_isolated(|file| reader.read_list(file)),
        nohz_full: reader
            .read_list(&format!("{CPU_DIR}/nohz_full"))
            .unwrap_or_default(),
        allowed_nodes: limits.allowed_nodes,
        quota: limits.quota,
        devices: devices::parse_devices(capture),
    };
    (facts, reader.warnings)
}

/// Kinds of CPU from the files of a capture without caches.
pub(super) fn read_kinds(
    capture: &Capture,
    online: &CpuSet,
    warnings: &mut Vec<Warning>,
) -> Vec<KindFacts> {
    let mut reader = Reader::new(capture);
    let kinds = reader.read_kinds(online, &[]);
    warnings.append(&mut reader.warnings);
    kinds
}

/// The firmware's ranking of CPUs from the files of a capture.
pub(super) fn read_ranks(capture: &Capture, online: &CpuSet) -> Vec<KindFacts> {
    Reader::new(capture).read_ranks(online)
}

/// Nodes that are a GPU's memory.
pub(super) fn list_gpu_nodes(capture: &Capture) -> BTreeSet<usize> {
    Reader::new(capture).list_gpu_nodes()
}

/// Limits the characters of a damaged file that a warning quotes.
const MAX_QUOTE: usize = 40;

type SetParser = fn(&str) -> Result<CpuSet, super::CpuSetError>;

struct Reader<'a> {
    capture: &'a Capture,
    warnings: Vec<Warning>,
    /// CPUs whose file of this name leaves out the CPU itself, and the set in the first such file.
    sets_without_own_cpu: BTreeMap<String, (CpuSet, CpuSet)>,
}

impl<'a> Reader<'a> {
    const fn new(capture: &'a Capture) -> Self {
        Self {
            capture,
            warnings: Vec::new(),
            sets_without_own_cpu: BTreeMap::new(),
        }
    }

    fn read_present(&mut self) -> CpuSet {
        let numbers = self.capture.numbered_children(CPU_DIR, "cpu");
        let beyond = numbers.iter().filter(|&&id| id > CpuSet::MAX_CPU).count();
        if beyond > 0 {
            self.warnings.push(format!(
                "CPUs with numbers above {} are left out; there are {beyond}.",
                CpuSet::MAX_CPU
            ));
        }
        let listed: CpuSet = numbers.into_iter().collect();
        if !listed.is_empty() {
            return listed;
        }
        let fallback = self
            .read_list(&format!("{CPU_DIR}/online"))
            .or_else(|| self.read_list("pinwise/affinity"))
            .or_else(|| identity::list_processors(self.capture))
            .unwrap_or_default();
        if !fallback.is_empty() {
            self.warnings.push(
                "The system has no /sys/devices/system/cpu/cpu*: every CPU is taken as its own core."
                    .to_owned(),
            );
        }
        fallback
    }

    /// A process may only run on existing CPUs: if the report lacks some, it is incomplete.
    fn warn_of_unseen_cpus(&mut self, present: &CpuSet, restrictions: &[Restriction]) {
        for restriction in restrictions.iter().filter(|r| r.is_mask) {
            let unseen = restriction.leaves.difference(present);
            if !unseen.is_empty() {
                self.warnings.push(format!(
                    "The affinity mask names CPUs {unseen}, which have no folder in /sys; this report is incomplete."
                ));
            }
        }
    }

    fn read_online(&mut self, present: &CpuSet, restrictions: &[Restriction]) -> CpuSet {
        if let Some(online) = self.read_list(&format!("{CPU_DIR}/online")) {
            let is_described = |id: &usize| {
                let folder = format!("{CPU_DIR}/cpu{id}");
                let mut inside = self.capture.children(&folder);
                inside.any(|name| name == "topology") && !is_offline(self.capture, *id)
            };
            let described = || present.iter().filter(is_described).collect();
            let online =
                online::check_online_list(online, restrictions, &mut self.warnings, described);
            let missing = online.difference(present);
            if !missing.is_empty() {
                self.warnings.push(format!(
                    "CPUs {missing} are reported online but have no folder in /sys; left out."
                ));
            }
            let online = online.intersection(present);
            if !online.is_empty() {
                return online;
            }
        }
        present
            .iter()
            .filter(|id| !is_offline(self.capture, *id))
            .collect()
    }

    fn read_cpu(&mut self, id: usize, online: bool) -> CpuFacts {
        let dir = format!("{CPU_DIR}/cpu{id}/topology");
        let group = |reader: &mut Self, names: [&str; 4]| {
            let [mask, list, old_mask, old_list] = names.map(|name| format!("{dir}/{name}"));
            reader
                .read_own_set(&mask, CpuSet::parse_mask, id)
                .or_else(|| reader.read_own_set(&list, CpuSet::parse_list, id))
                .or_else(|| reader.read_own_set(&old_mask, CpuSet::parse_mask, id))
                .or_else(|| reader.read_own_set(&old_list, CpuSet::parse_list, id))
        };
        CpuFacts {
            online,
            core: group(
                self,
                [
                    "core_cpus",
                    "core_cpus_list",
                    "thread_siblings",
                    "thread_siblings_list",
                ],
            ),
            package: group(
                self,
                [
                    "package_cpus",
                    "package_cpus_list",
                    "core_siblings",
                    "core_siblings_list",
                ],
            ),
            core_id: self.read_integer(&format!("{dir}/core_id")),
            // -1 means unknown.
            package_id: self
                .read_integer(&format!("{dir}/physical_package_id"))
                .filter(|&id| id >= 0),
        }
    }

    /// Warns of CPUs without a reported core or package.
    fn warn_of_missing_units(&mut self, cpus: &BTreeMap<usize, CpuFacts>) {
        let without = |has: fn(&CpuFacts) -> bool| -> CpuSet {
            let online = cpus.iter().filter(|(_, cpu)| cpu.online && !has(cpu));
            online.map(|(&id, _)| id).collect()
        };
        let claims = cpus.values().filter_map(|cpu| cpu.core.as_ref());
        let claimed: CpuSet = claims.flat_map(CpuSet::iter).collect();
        let without_core = without(|cpu| cpu.core.is_some()).difference(&claimed);
        // If no CPU has a folder, there is a warning about that already.
        let is_listed = !self.capture.numbered_children(CPU_DIR, "cpu").is_empty();
        if is_listed && !without_core.is_empty() {
            self.warnings.push(format!(
                "No core is reported for CPUs {without_core}: each is taken as its own core."
            ));
        }
        let without_package = without(|cpu| cpu.package.is_some());
        if !without_package.is_empty() && cpus.values().any(|cpu| cpu.package.is_some()) {
            self.warnings.push(format!(
                "No package is reported for CPUs {without_package}, unlike for others."
            ));
        }
    }

    fn read_caches(&mut self, cpus: &BTreeMap<usize, CpuFacts>, online: &CpuSet) -> Vec<Cache> {
        let mut seen = BTreeSet::new();
        let mut caches = Vec::new();
        let mut ids = CacheIds::default();
        for cpu in online.iter() {
            let dir = format!("{CPU_DIR}/cpu{cpu}/cache");
            for index in self.capture.numbered_children(&dir, "index") {
                let dir = format!("{dir}/index{index}");
                let Some(mut cache) = self.read_cache(&dir, cpu, cpus[&cpu].core.as_ref()) else {
                    continue;
                };
                cache.cpus = cache.cpus.intersection(online);
                if let Some(id) = self.read_integer(&format!("{dir}/id")) {
                    let package = format!("{CPU_DIR}/cpu{cpu}/topology/physical_package_id");
                    ids.insert(self.capture.text(&package), &cache, id);
                }
                if seen.insert((cache.level, cache.kind, cache.cpus.clone())) {
                    caches.push(cache);
                }
            }
        }
        self.warnings.extend(ids.find_contradictions());
        let covered: CpuSet = caches.iter().flat_map(|cache| cache.cpus.iter()).collect();
        let without_cache = online.difference(&covered);
        if !covered.is_empty() && !without_cache.is_empty() {
            self.warnings.push(format!(
                "No cache is reported for CPUs {without_cache}, unlike for others."
            ));
        }
        caches
    }

    /// A cache of a CPU; if its sharers are not reported, they are the CPUs of its core.
    fn read_cache(&mut self, dir: &str, cpu: usize, core: Option<&CpuSet>) -> Option<Cache> {
        let level = self.read_integer(&format!("{dir}/level"))?;
        let kind = self.read_text(&format!("{dir}/type"))?;
        let kind = match kind {
            "Data" => Some(CacheType::Data),
            "Instruction" => Some(CacheType::Instruction),
            "Unified" => Some(CacheType::Unified),
            _ => None,
        };
        let known = u8::try_from(level).ok().filter(|level| *level > 0);
        let (Some(level), Some(kind)) = (known, kind) else {
            self.warnings
                .push(format!("/{dir}: no such cache level or type; ignored."));
            return None;
        };
        let cpus = self
            .read_own_set(&format!("{dir}/shared_cpu_map"), CpuSet::parse_mask, cpu)
            .or_else(|| {
                self.read_own_set(&format!("{dir}/shared_cpu_list"), CpuSet::parse_list, cpu)
            })
            .or_else(|| core.cloned())
            .unwrap_or_else(|| CpuSet::single(cpu));
        Some(Cache {
            level,
            kind,
            size_bytes: self
                .parse_file(&format!("{dir}/size"), parse_size, "a size")
                .filter(|&bytes| bytes > 0),
            cpus,
        })
    }

    fn read_nodes(&mut self) -> Vec<NodeFacts> {
        let gpu_nodes = self.list_gpu_nodes();
        let numbers = self.capture.numbered_children(NODE_DIR, "node");
        numbers
            .into_iter()
            .filter(|number| !gpu_nodes.contains(number))
            .map(|node| {
                let cpus = self.read_node_cpus(node);
                let meminfo = format!("{NODE_DIR}/node{node}/meminfo");
                NodeFacts {
                    node,
                    memory_bytes: self.parse_file(&meminfo, parse_mem_total, "memory in kB"),
                    attributes: self.read_memory_attributes(node, &cpus),
                    cpus,
                }
            })
            .collect()
    }

    /// NVIDIA GPUs on POWER9 and Grace show their memory as NUMA nodes, which are not for a
    /// program's threads and pages.
    fn list_gpu_nodes(&self) -> BTreeSet<usize> {
        let gpus = "proc/driver/nvidia/gpus";
        self.capture
            .children(gpus)
            .filter_map(|gpu| {
                let status = self.capture.text(&format!("{gpus}/{gpu}/numa_status"))?;
                let line = status.lines().find(|line| line.starts_with("Node:"))?;
                line.trim_start_matches("Node:").trim().parse().ok()
            })
            .collect()
    }

    /// Content of a file; `None` if it is missing, empty or not text.
    fn read_text(&mut self, path: &str) -> Option<&'a str> {
        let text = self.capture.text(path);
        if text.is_none() && self.capture.contains(path) {
            self.warnings.push(format!("/{path}: no text; ignored."));
        }
        text.filter(|text| !text.is_empty())
    }

    fn read_list(&mut self, path: &str) -> Option<CpuSet> {
        self.read_set(path, CpuSet::parse_list)
    }

    fn read_mask(&mut self, path: &str) -> Option<CpuSet> {
        self.read_set(path, CpuSet::parse_mask)
    }

    fn read_set(&mut self, path: &str, parse: SetParser) -> Option<CpuSet> {
        // A kernel that supports tickless CPUs but has none prints this as their mask.
        let text = self.read_text(path).filter(|text| *text != "(null)")?;
        match parse(text) {
            Ok(set) => Some(set),
            Err(error) => {
                self.warnings.push(format!("/{path}: {error}; ignored."));
                None
            }
        }
    }

    /// A set of CPUs that must contain the file's own CPU.
    fn read_own_set(&mut self, path: &str, parse: SetParser, cpu: usize) -> Option<CpuSet> {
        let set = self.read_set(path, parse)?;
        if set.contains(cpu) {
            return Some(set);
        }
        // The set of an offline CPU is empty.
        if !set.is_empty() {
            let file = path.strip_prefix(&format!("{CPU_DIR}/cpu{cpu}/"));
            let file = file.unwrap_or(path).to_owned();
            let (cpus, _) = self
                .sets_without_own_cpu
                .entry(file)
                .or_insert((CpuSet::new(), set));
            cpus.insert(cpu);
        }
        None
    }

    /// Gives one warning per file name; a large machine may have such a file for every CPU.
    fn warn_of_sets_without_own_cpu(&mut self) {
        for (file, (cpus, set)) in std::mem::take(&mut self.sets_without_own_cpu) {
            let first = cpus.first().unwrap_or(0);
            let rest = match cpus.len() {
                1 => String::new(),
                many => format!(" The same of {} more CPUs, {cpus} in all.", many - 1),
            };
            self.warnings.push(format!(
                "/{CPU_DIR}/cpu{first}/{file}: CPUs {set} are without CPU {first} itself; ignored.{rest}"
            ));
        }
    }

    fn read_integer(&mut self, path: &str) -> Option<i64> {
        self.parse_file(path, |text| text.parse().ok(), "a number")
    }

    fn parse_file<T>(&mut self, path: &str, parse: fn(&str) -> Option<T>, noun: &str) -> Option<T> {
        let text = self.read_text(path)?;
        let parsed = parse(text);
        if parsed.is_none() {
            let start: String = text.chars().take(MAX_QUOTE).collect();
            self.warnings
                .push(format!("/{path}: '{start}' is not {noun}; ignored."));
        }
        parsed
    }
}

fn is_offline(capture: &Capture, id: usize) -> bool {
    capture.text(&format!("{CPU_DIR}/cpu{id}/online")) == Some("0")
}

/// Sizes as sysfs prints them: `32K`, `1024K`, `32M` or plain bytes.
pub(super) fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" | "kB" | "KB" => 1024,
        "M" | "MB" => 1024 * 1024,
        "G" | "GB" => 1024 * 1024 * 1024,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn parse_mem_total(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains("MemTotal:"))?;
    let kib = line.split("MemTotal:").nth(1)?.trim();
    kib.trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

fn parse_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}
