//! The data that a moved thread must fetch again.
//!
//! On its new CPU a thread misses what it had in the caches that the two CPUs do not share: at most
//! its working set. It comes from the smallest cache that both share, or from memory. Bandwidths
//! are those of one miss after another, not of streams.

use super::Scheduler;
use pinwise_topology::{CacheType, Topology};

/// Extra work for a thread that moves between CPUs, s.
pub(super) fn refill_s(
    topology: &Topology,
    scheduler: &Scheduler,
    working_set_bytes: Option<u64>,
    from: usize,
    to: usize,
) -> f64 {
    let Some(working_set) = working_set_bytes.filter(|_| from != to) else {
        return 0.0;
    };
    let data = topology
        .caches
        .iter()
        .filter(|cache| cache.kind != CacheType::Instruction && cache.cpus.contains(from));
    let (mut lost, mut is_shared) = (0, false);
    for cache in data {
        if cache.cpus.contains(to) {
            is_shared = true;
        } else {
            lost = lost.max(cache.size_bytes.unwrap_or(0));
        }
    }
    let speed = if is_shared {
        scheduler.cache_gb_per_s
    } else {
        scheduler.memory_gb_per_s
    };
    speed.map_or(0.0, |speed| lost.min(working_set) as f64 / (speed * 1e9))
}
