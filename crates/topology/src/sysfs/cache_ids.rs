//! Compares the lists of CPUs that share a cache with the caches' ids.
//!
//! Both come from the firmware in different ways: in a virtual machine that describes its caches
//! badly, CPUs with one L3 id have lists that do not overlap, or the CPUs of one list have several
//! ids. The scheduler uses the lists, and so does pinwise.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cache, CacheType, CpuSet, Warning};

/// Package, level and type of caches. Ids are unique only within such a group.
type Group<'a> = (Option<&'a str>, u8, CacheType);

/// The ids of caches with their lists of CPUs.
#[derive(Debug, Default)]
pub(super) struct CacheIds<'a>(BTreeMap<Group<'a>, BTreeSet<(i64, CpuSet)>>);

impl<'a> CacheIds<'a> {
    /// Adds the id that a CPU of this package reports for a cache.
    pub(super) fn insert(&mut self, package: Option<&'a str>, cache: &Cache, id: i64) {
        let group = (package, cache.level, cache.kind);
        self.0
            .entry(group)
            .or_default()
            .insert((id, cache.cpus.clone()));
    }

    /// Ids with several lists, and lists with several ids, as warnings.
    pub(super) fn find_contradictions(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for ((_, level, _), pairs) in &self.0 {
            let mut lists: BTreeMap<i64, Vec<&CpuSet>> = BTreeMap::new();
            let mut ids: BTreeMap<&CpuSet, Vec<i64>> = BTreeMap::new();
            for (id, cpus) in pairs {
                lists.entry(*id).or_default().push(cpus);
                ids.entry(cpus).or_default().push(*id);
            }
            for (id, lists) in lists {
                let is_apart = |(index, list): (usize, &&CpuSet)| {
                    lists[..index].iter().all(|other| !other.intersects(list))
                };
                if lists.len() > 1 && lists.iter().enumerate().all(is_apart) {
                    warnings.push(format!(
                        "The L{level} with id {id} has {} lists of CPUs that do not overlap, {}: taken as one L{level} for each list, by which the scheduler goes.",
                        lists.len(),
                        join_first(&lists)
                    ));
                }
            }
            for (cpus, ids) in ids.into_iter().filter(|(_, ids)| ids.len() > 1) {
                warnings.push(format!(
                    "CPUs {cpus} are listed as sharing an L{level}, but give it {} ids, {}: taken as one L{level} by the list, by which the scheduler goes.",
                    ids.len(),
                    join_first(&ids)
                ));
            }
        }
        warnings
    }
}

/// Joins items; shows only the first few of many.
fn join_first(items: &[impl ToString]) -> String {
    const MAX_SHOWN: usize = 4;
    let shown: Vec<String> = items
        .iter()
        .take(MAX_SHOWN)
        .map(ToString::to_string)
        .collect();
    let rest = if items.len() > MAX_SHOWN { " …" } else { "" };
    shown.join("; ") + rest
}
