//! Chooses sizes of working sets by the machine's caches.

use super::{BenchRequest, Cell, MachineFacts, cells_of_thread_count};
use crate::bench::cache_fit::CacheSize;
use pinwise_kernels::work::{Isa, Kernel};
use pinwise_placement::{Placement, RealiseError};

/// The cache level in a kernel's name.
pub(super) fn cache_level_of(kernel: &Kernel) -> u8 {
    let digit = kernel.name.rsplit_once("-l").map(|(_, level)| level);
    digit.and_then(|level| level.parse().ok()).unwrap_or(1)
}

/// Chooses the bytes per thread such that the threads that share a cache fill half of it; `None` (the kernel's
/// default) if the cache is not known or the kernel does not take that size.
pub(super) fn choose_size(
    kernel: &Kernel,
    level: u8,
    threads: usize,
    caches: &[CacheSize],
) -> Option<u64> {
    let cache = caches.iter().find(|cache| cache.level == level)?;
    let sharing = threads.min(cache.shared_by).max(1) as u64;
    accept_size(kernel, cache.bytes / 2 / sharing)
}

/// `bytes` if the kernel's size is one of bytes and may be this large.
fn accept_size(kernel: &Kernel, bytes: u64) -> Option<u64> {
    let limits = kernel.size?;
    (limits.of.contains("bytes") && (limits.least..=limits.most).contains(&bytes)).then_some(bytes)
}

/// One thread at half of each cache, and at four times the last one.
pub(super) fn cells_of_sizes(
    kernel: &Kernel,
    request: &BenchRequest,
    facts: MachineFacts<'_>,
    isa: Isa,
) -> Result<Vec<Cell>, RealiseError> {
    let halves = facts.caches.iter().map(|cache| cache.bytes / 2);
    let beyond = facts.caches.last().map(|cache| 4 * cache.bytes);
    let sizes = halves
        .chain(beyond)
        .filter_map(|bytes| accept_size(kernel, bytes));
    let places = match request.places.first() {
        Some(place) => vec![place.clone()],
        None => vec![Placement::os_default()],
    };
    let threads = request.threads.first().copied().unwrap_or(1);
    let mut cells = Vec::new();
    for bytes in sizes {
        for mut cell in cells_of_thread_count(threads, &places, isa, facts.topology)? {
            cell.size = Some(bytes);
            cells.push(cell);
        }
    }
    Ok(cells)
}
