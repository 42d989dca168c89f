//! The last-level caches, and those within them that several cores share.
//!
//! Private L2 caches are not read: placements do not use them.

use std::collections::BTreeMap;

use super::super::build::{CpuFacts, KindFacts};
use super::super::{Cache, CacheType, CpuSet, sysfs};
use super::{CPU_DIR, Files, Reader, SetFile, SetFormat};

const SHARED_CPU_FILES: [SetFile; 2] = [
    ("shared_cpu_list", SetFormat::List),
    ("shared_cpu_map", SetFormat::Mask),
];

/// From this level on there are no instruction-only caches.
const UNIFIED_FROM: u8 = 3;

impl<F: Files> Reader<'_, F> {
    /// Reads the CPUs that share each last-level cache from one of them. If the cache at the index
    /// where the previous CPU had its outermost cache has the same level, it is taken as the
    /// outermost here, too; otherwise all caches of the CPU are read.
    pub(super) fn read_last_level_caches(
        &mut self,
        units: &BTreeMap<usize, CpuFacts>,
        online: &CpuSet,
    ) -> Vec<Cache> {
        let mut shared = SHARED_CPU_FILES;
        let mut previous: Option<(usize, u8)> = None;
        let mut known = CpuSet::new();
        let mut caches = Vec::new();
        for id in online.iter() {
            if known.contains(id) {
                continue;
            }
            let folder = format!("{CPU_DIR}/cpu{id}/cache");
            let is_same_as_previous = |&(index, level): &(usize, u8)| {
                level >= UNIFIED_FROM && self.read_level(&folder, index) == Some(level)
            };
            let outermost = previous.filter(is_same_as_previous);
            let Some((index, level)) = outermost.or_else(|| self.find_outermost(&folder)) else {
                continue;
            };
            previous = Some((index, level));
            let cpus = self
                .read_own_set(&format!("{folder}/index{index}"), &mut shared, id)
                .or_else(|| find_core(units, id).cloned())
                .unwrap_or_else(|| CpuSet::single(id));
            known = known.union(&cpus);
            let size = self.read(&format!("{folder}/index{index}/size"));
            caches.push(Cache {
                level,
                kind: CacheType::Unified,
                size_bytes: size.and_then(sysfs::parse_size),
                cpus,
            });
        }
        caches
    }

    /// Caches that several cores share within a last-level cache (the L2 of four E-cores).
    pub(super) fn read_shared_inner_caches(
        &mut self,
        cpus: &BTreeMap<usize, CpuFacts>,
        kinds: &[KindFacts],
        last_level: &[Cache],
    ) -> Vec<Cache> {
        let online: CpuSet = cpus
            .iter()
            .filter(|(_, cpu)| cpu.online)
            .map(|(&id, _)| id)
            .collect();
        let of_kinds = CpuSet::union_of(kinds.iter().map(|kind| &kind.cpus));
        let groups = kinds.iter().map(|kind| kind.cpus.intersection(&online));
        let mut inner = Vec::new();
        for group in groups.chain([online.difference(&of_kinds)]) {
            let Some(first) = group.first() else { continue };
            let last = self.find_outermost(&format!("{CPU_DIR}/cpu{first}/cache"));
            let Some((last, _)) = last else { continue };
            let own = self.read_inner_caches(first, last);
            let core = find_core(cpus, first);
            let id = |cpu: usize| cpus.get(&cpu).and_then(|facts| facts.core_id);
            // The two cores of a Bulldozer module have different ids.
            let is_beside = |cpu: usize| {
                let is_sibling = core.is_some_and(|core| core.contains(cpu));
                cpu != first && !(is_sibling && id(cpu) == id(first))
            };
            let is_shared = |cache: &Cache| cache.cpus.iter().any(is_beside);
            if !own.iter().any(is_shared) {
                continue;
            }
            let mut known = CpuSet::new();
            for id in group.iter() {
                if !known.contains(id) {
                    let own = self.read_inner_caches(id, last);
                    let innermost = own.last().map(|cache| known.union(&cache.cpus));
                    known = innermost.unwrap_or(known);
                    inner.extend(own);
                }
            }
        }
        inner.retain(|cache| !last_level.iter().any(|last| last.cpus == cache.cpus));
        inner
    }

    /// The caches of a CPU from level 2 on with indices below `last`, the outermost first.
    fn read_inner_caches(&mut self, cpu: usize, last: usize) -> Vec<Cache> {
        let folder = format!("{CPU_DIR}/cpu{cpu}/cache");
        let mut shared = SHARED_CPU_FILES;
        let mut caches = Vec::new();
        for index in (0..last).rev() {
            let Some(level) = self.read_level(&folder, index).filter(|&level| level > 1) else {
                break;
            };
            if let Some(cpus) =
                self.read_own_set(&format!("{folder}/index{index}"), &mut shared, cpu)
            {
                caches.push(Cache {
                    level,
                    kind: CacheType::Unified,
                    size_bytes: None,
                    cpus,
                });
            }
        }
        caches
    }

    fn read_level(&mut self, folder: &str, index: usize) -> Option<u8> {
        let text = self.read(&format!("{folder}/index{index}/level"))?;
        text.parse().ok().filter(|&level| level > 0)
    }

    /// Index and level of the outermost data cache.
    fn find_outermost(&mut self, folder: &str) -> Option<(usize, u8)> {
        let mut found: Option<(usize, u8)> = None;
        for index in self.list_numbered(folder, "index") {
            let Some(level) = self.read_level(folder, index) else {
                continue;
            };
            let kind = self.read(&format!("{folder}/index{index}/type"));
            let holds_data = matches!(kind, Some("Data" | "Unified"));
            if holds_data && found.is_none_or(|(_, highest)| level >= highest) {
                found = Some((index, level));
            }
        }
        found
    }
}

/// The CPUs of a CPU's core.
fn find_core(cpus: &BTreeMap<usize, CpuFacts>, id: usize) -> Option<&CpuSet> {
    let mut cores = cpus.values().filter_map(|cpu| cpu.core.as_ref());
    cores.find(|core| core.contains(id))
}
