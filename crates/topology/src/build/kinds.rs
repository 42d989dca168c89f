//! Kinds of CPU of a hybrid machine, and their order by speed.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Cache, CacheType, CpuKind, CpuSet};

/// CPUs of one kind and their speed, in any unit that grows with speed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KindFacts {
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Larger is faster; only the order counts.
    pub speed: u64,
}

/// Minimum ratio of capacities between kinds: those of favoured cores of one design differ by less
/// (of a GB10's ten X925: 997, 1,017 and 1,024; of its A725: 718 and 731).
pub(crate) const CAPACITY_STEP: f64 = 1.1;

/// The same for the highest frequencies, in which favoured cores of one design differ more; Zen 5
/// and Zen 5c of a Ryzen AI 9 HX 370 have 5.1 and 3.3 GHz.
pub(crate) const FREQUENCY_STEP: f64 = 1.25;

/// Joins kinds that differ only in speed, by at most `step`, and whose cores have caches of the
/// same sizes.
pub(crate) fn join_alike(mut kinds: Vec<KindFacts>, caches: &[Cache], step: f64) -> Vec<KindFacts> {
    let first_cpu_caches = |kind: &KindFacts| -> BTreeSet<(u8, CacheType, Option<u64>)> {
        let first = kind.cpus.first();
        let own = caches.iter().filter(|cache| cache.level <= 2);
        let own = own.filter(|cache| first.is_some_and(|cpu| cache.cpus.contains(cpu)));
        own.map(|cache| (cache.level, cache.kind, cache.size_bytes))
            .collect()
    };
    kinds.sort_by_key(|kind| kind.speed);
    let mut joined: Vec<KindFacts> = Vec::new();
    for kind in kinds {
        match joined.last_mut() {
            Some(slower)
                if kind.speed as f64 <= step * slower.speed as f64
                    && first_cpu_caches(slower) == first_cpu_caches(&kind) =>
            {
                slower.cpus = slower.cpus.union(&kind.cpus);
                slower.speed = kind.speed;
            }
            _ => joined.push(kind),
        }
    }
    joined
}

/// Groups CPUs by the sizes of their cores' own caches, which differ on hybrid machines; for
/// systems that do not report kinds. Empty if a size is unknown.
pub(super) fn group_kinds_by_caches(caches: &[Cache], online: &CpuSet) -> Vec<KindFacts> {
    let mut sizes: BTreeMap<usize, [Option<u64>; 3]> = BTreeMap::new();
    for cache in caches {
        let slot = match (cache.level, cache.kind) {
            (1, CacheType::Data) => 0,
            (1, CacheType::Instruction) => 1,
            (2, _) => 2,
            _ => continue,
        };
        for cpu in cache.cpus.iter() {
            sizes.entry(cpu).or_default()[slot] = cache.size_bytes;
        }
    }
    let mut kinds: BTreeMap<[Option<u64>; 3], CpuSet> = BTreeMap::new();
    for cpu in online.iter() {
        let own = sizes.get(&cpu).copied().unwrap_or_default();
        if own[0].is_none() || own[2].is_none() {
            return Vec::new();
        }
        kinds.entry(own).or_default().insert(cpu);
    }
    let kinds = kinds.into_values().map(|cpus| KindFacts {
        speed: cache_speed(cpus.first(), caches),
        cpus,
    });
    kinds.collect()
}

/// A speed for [`KindFacts`] by caches: grows with the core's share of the L1 data cache, and for
/// equal ones with its share of the L2.
pub(crate) fn cache_speed(cpu: Option<usize>, caches: &[Cache]) -> u64 {
    let share_kib = |level: u8| {
        let mut own = caches.iter().filter(|cache| cache.level == level);
        let own = own.find(|cache| {
            cache.kind != CacheType::Instruction && cpu.is_some_and(|cpu| cache.cpus.contains(cpu))
        });
        let share = own.and_then(|cache| Some((cache.size_bytes?, cache.cpus.len() as u64)));
        share.map_or(0, |(bytes, cpus)| bytes / cpus.max(1) / 1024)
    };
    let first = share_kib(1).min(u64::from(u32::MAX));
    (first << 32) + share_kib(2).min(u64::from(u32::MAX))
}

/// Groups that differ, slowest first; none if all CPUs are alike.
fn sort_by_speed(mut groups: Vec<KindFacts>, online: &CpuSet) -> Vec<KindFacts> {
    for group in &mut groups {
        group.cpus = group.cpus.intersection(online);
    }
    groups.retain(|group| !group.cpus.is_empty());
    groups.sort_by_key(|group| group.speed);
    match groups.len() {
        0 | 1 => Vec::new(),
        _ => groups,
    }
}

/// Groups CPUs by speed, fastest first; empty if all are equally fast.
pub(crate) fn sort_ranks(facts: Vec<KindFacts>, online: &CpuSet) -> Vec<CpuSet> {
    let mut groups: Vec<KindFacts> = Vec::new();
    for group in sort_by_speed(facts, online).into_iter().rev() {
        match groups.last_mut() {
            Some(last) if last.speed == group.speed => last.cpus = last.cpus.union(&group.cpus),
            _ => groups.push(group),
        }
    }
    match groups.len() {
        1 => Vec::new(),
        _ => groups.into_iter().map(|group| group.cpus).collect(),
    }
}

/// Names the kinds `E`, `M`, `P` by speed; empty if all CPUs are alike.
pub(super) fn name_kinds(facts: Vec<KindFacts>, online: &CpuSet) -> Vec<CpuKind> {
    let facts = sort_by_speed(facts, online);
    let last = facts.len().saturating_sub(1);
    facts
        .into_iter()
        .enumerate()
        .map(|(rank, kind)| CpuKind {
            name: match rank {
                0 => "E",
                rank if rank == last => "P",
                _ => "M",
            }
            .to_owned(),
            cpus: kind.cpus,
        })
        .collect()
}
