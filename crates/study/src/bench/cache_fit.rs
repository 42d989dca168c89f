//! A working set against the caches of a machine: which ones hold it.
//!
//! Sizes are the measured ones, as programs see them, if a ladder is stored; else the reported
//! ones. If neither is known, the description is empty.

use pinwise_format::round_bytes;
use pinwise_record::{Finding, Severity, TopologyRecord};
use pinwise_topology::{Cache, CacheType, Topology};

/// A cache of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSize {
    /// 1 for L1.
    pub level: u8,
    /// Bytes.
    pub bytes: u64,
    /// CPUs that share it; 1 if unknown.
    pub shared_by: usize,
}

/// The data caches of the first CPU that may be used.
#[derive(Debug, Clone)]
pub struct DataCaches {
    /// Innermost first.
    pub sizes: Vec<CacheSize>,
    /// Were the sizes measured? Otherwise they are those that the system reports.
    pub are_measured: bool,
}

/// The machine's data caches: as measured in `known` if it has a ladder, else as reported.
#[must_use]
pub fn find_data_caches(topology: &Topology, known: Option<&TopologyRecord>) -> DataCaches {
    let reported = reported_caches(topology);
    let ladder = known.and_then(|known| known.measured.as_ref()?.ladder.as_ref());
    let measured: Vec<CacheSize> = ladder
        .map(|ladder| &ladder.plateaus[..])
        .unwrap_or_default()
        .iter()
        .filter_map(|plateau| {
            let level = plateau.level?;
            let same = reported.iter().find(|cache| cache.level == level);
            Some(CacheSize {
                level,
                bytes: plateau.effective_bytes?,
                shared_by: same.map_or(1, |cache| cache.shared_by),
            })
        })
        .collect();
    let are_measured = !measured.is_empty();
    DataCaches {
        sizes: if are_measured { measured } else { reported },
        are_measured,
    }
}

fn reported_caches(topology: &Topology) -> Vec<CacheSize> {
    let Some(cpu) = topology.allowed.first() else {
        return Vec::new();
    };
    let holds = |cache: &&Cache| cache.kind != CacheType::Instruction && cache.cpus.contains(cpu);
    let mut found: Vec<CacheSize> = topology
        .caches
        .iter()
        .filter(holds)
        .filter_map(|cache| {
            Some(CacheSize {
                level: cache.level,
                bytes: cache.size_bytes?,
                shared_by: cache.cpus.len().max(1),
            })
        })
        .collect();
    found.sort_by_key(|cache| cache.level);
    found.dedup_by_key(|cache| cache.level);
    found
}

/// Which caches hold the working set of `working_set_bytes` per thread, such as `works on 1 MiB a
/// thread: more than L1 (32 KiB), fits L2 (2 MiB)`; empty if no cache is known. Threads that share
/// a cache fill it together.
#[must_use]
pub fn describe_fit(working_set_bytes: u64, threads: usize, caches: &DataCaches) -> String {
    if caches.sizes.is_empty() {
        return String::new();
    }
    let demand = |cache: &CacheSize| {
        working_set_bytes.saturating_mul(threads.min(cache.shared_by).max(1) as u64)
    };
    let describe_cache =
        |cache: &CacheSize| format!("L{} ({})", cache.level, round_bytes(cache.bytes));
    let (fits, outgrown): (Vec<&CacheSize>, Vec<&CacheSize>) = caches
        .sizes
        .iter()
        .partition(|cache| demand(cache) <= cache.bytes);
    let holder = fits.first().map(|cache| describe_cache(cache));
    let too_small = outgrown
        .iter()
        .rfind(|cache| fits.first().is_none_or(|holder| cache.level < holder.level))
        .map(|cache| describe_cache(cache));
    let against = match (too_small, holder) {
        (None, Some(holder)) => format!("fits {holder}"),
        (Some(small), Some(holder)) => format!("more than {small}, fits {holder}"),
        (Some(small), None) => format!("more than {small}, the largest cache"),
        (None, None) => return String::new(),
    };
    let source = if caches.are_measured {
        "measured"
    } else {
        "reported"
    };
    format!(
        "works on {} a thread: {against}, sizes as {source}",
        round_bytes(working_set_bytes)
    )
}

/// The description `fit` as a finding of a comparison; `None` if it is empty.
#[must_use]
pub fn to_finding(kernel: &str, working_set_bytes: u64, fit: &str) -> Option<Finding> {
    (!fit.is_empty()).then(|| {
        Finding::new(
            "working_set",
            Severity::Note,
            format!("{kernel} {fit}."),
            "",
        )
        .with_evidence("working_set_bytes", working_set_bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CACHES: [CacheSize; 3] = [
        CacheSize {
            level: 1,
            bytes: 32 << 10,
            shared_by: 2,
        },
        CacheSize {
            level: 2,
            bytes: 1 << 20,
            shared_by: 2,
        },
        CacheSize {
            level: 3,
            bytes: 32 << 20,
            shared_by: 8,
        },
    ];

    #[track_caller]
    fn check(bytes: u64, threads: usize, expected: &str) {
        let caches = DataCaches {
            sizes: CACHES.to_vec(),
            are_measured: false,
        };
        assert_eq!(describe_fit(bytes, threads, &caches), expected);
    }

    #[test]
    fn the_smallest_cache_that_holds_the_working_set_of_all_sharers_is_named() {
        check(
            16 << 10,
            1,
            "works on 16 KiB a thread: fits L1 (32 KiB), sizes as reported",
        );
        check(
            1 << 20,
            1,
            "works on 1 MiB a thread: more than L1 (32 KiB), fits L2 (1 MiB), sizes as reported",
        );
        // Two siblings fill their L2 together.
        check(
            1 << 20,
            2,
            "works on 1 MiB a thread: more than L2 (1 MiB), fits L3 (32 MiB), sizes as reported",
        );
        check(
            3 << 29,
            1,
            "works on 1.5 GiB a thread: more than L3 (32 MiB), the largest cache, sizes as reported",
        );
        let unknown = DataCaches {
            sizes: Vec::new(),
            are_measured: true,
        };
        assert_eq!(describe_fit(1, 1, &unknown), "");
    }

    #[test]
    fn without_a_ladder_the_first_cpus_caches_are_as_reported() {
        let text = "l3:1(size=32MB) l2:2(size=1MB) l1d:1(size=32KB) core:1 pu:2";
        let topology = Topology::from_synthetic(text).unwrap();
        let found = find_data_caches(&topology, None);
        assert!(!found.are_measured);
        let sizes: Vec<(u8, u64, usize)> = found
            .sizes
            .iter()
            .map(|cache| (cache.level, cache.bytes, cache.shared_by))
            .collect();
        assert_eq!(sizes, [(1, 32 << 10, 2), (2, 1 << 20, 2), (3, 32 << 20, 4)]);
    }

    #[test]
    fn measured_sizes_replace_reported_ones() {
        let topology = Topology::from_synthetic("l2:1(size=1MB) core:1 pu:2").unwrap();
        let mut known = TopologyRecord::new(&topology, &[]);
        known.measured = Some(Box::new(pinwise_record::Measured {
            ladder: Some(pinwise_record::LadderRecord {
                plateaus: vec![pinwise_record::PlateauRecord {
                    level: Some(2),
                    effective_bytes: Some(700 << 10),
                    ..Default::default()
                }],
                ..Default::default()
            }),
            ..Default::default()
        }));
        let found = find_data_caches(&topology, Some(&known));
        assert!(found.are_measured);
        assert_eq!(
            (found.sizes[0].bytes, found.sizes[0].shared_by),
            (700 << 10, 2)
        );
    }
}
