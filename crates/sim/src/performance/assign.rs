//! Assigns threads to CPUs.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::cpu_table::CpuTable;
use super::keys::Spread;
use super::layout::Layout;

/// Are some threads assigned at random? If threads fill the CPUs evenly, each CPU has its share of
/// them, and no move would help.
pub(super) const fn has_random_rest(policy: Spread, threads: usize, cpus: usize) -> bool {
    !matches!(policy, Spread::Pinned) && !threads.is_multiple_of(cpus)
}

/// Assigns a position to each thread: full rounds over all CPUs, and the rest by policy.
pub(super) fn assign_threads(
    table: &CpuTable,
    layout: &Layout,
    policy: Spread,
    threads: usize,
    chance: &mut ChaCha8Rng,
) -> Vec<usize> {
    let cpus = layout.order.len();
    let rest = threads % cpus;
    let mut assigned = Vec::with_capacity(threads);
    for _ in 0..threads / cpus {
        assigned.extend(&layout.order);
    }
    if rest == 0 {
        return assigned;
    }
    let mut order = layout.order.clone();
    match policy {
        Spread::Pinned => {}
        Spread::RandomIdle => order.shuffle(chance),
        Spread::CoreFirst => {
            order.shuffle(chance);
            order = sort_cores_first(table, &order);
        }
        Spread::LlcFirst => order = sort_llcs_first(table, &order, chance),
    }
    assigned.extend(&order[..rest]);
    assigned
}

/// Sorts the first CPU of every core before the second of any, and keeps the order otherwise.
fn sort_cores_first(table: &CpuTable, order: &[usize]) -> Vec<usize> {
    let mut used = vec![0usize; table.cores];
    let mut ranked: Vec<(usize, usize)> = order
        .iter()
        .map(|&at| {
            let count = &mut used[table.cpus[at].core];
            *count += 1;
            (*count, at)
        })
        .collect();
    ranked.sort_by_key(|&(rank, _)| rank);
    ranked.into_iter().map(|(_, at)| at).collect()
}

/// Sorts by last-level cache, starting with a random one; within each, cores come first.
fn sort_llcs_first(table: &CpuTable, order: &[usize], chance: &mut ChaCha8Rng) -> Vec<usize> {
    let llc = |at: &usize| table.cpus[*at].nested[2];
    let mut caches: Vec<Vec<usize>> = order
        .chunk_by(|a, b| llc(a) == llc(b))
        .map(<[usize]>::to_vec)
        .collect();
    // Caches near the first are filled next: only the first is random.
    let first = chance.random_range(0..caches.len());
    caches.rotate_left(first);
    for inside in &mut caches {
        inside.shuffle(chance);
        *inside = sort_cores_first(table, inside);
    }
    caches.concat()
}
