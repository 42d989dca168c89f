//! The cache ladder: finds the caches that a program sees in load latency over working-set size.
//!
//! ```text
//! ns │                 ┌──── memory           a plateau per cache, a knee where
//!    │          ┌──────┘                      the working set outgrows it
//!    │   ┌──────┘ L3
//!    │───┘ L2
//!    └──────────────────────── bytes (both axes logarithmic)
//! ```
//!
//! After lmbench's `lat_mem_rd` (`McVoy` and Staelin 1996) and Saavedra and Smith (1995), who read
//! plateaus and knees by eye. Here they are fitted: a point belongs to a plateau of one latency, or
//! to the climb between two. A knee is the size at which half of the loads go to the next level. Two
//! sizes per octave are enough, four tolerate 10 % of noise. The figures alone place the knees; the
//! system's report names them. A small rise does not count as a cache: a TLB without huge pages
//! causes one as well.

mod fit;
mod sizes;

pub use sizes::next_sizes;

use std::cmp::Ordering;

use pinwise_format::{round_bytes, whole};

/// A working set and the time of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Working set, bytes.
    pub bytes: usize,
    /// One load, ns.
    pub ns: f64,
    /// Its 95 % interval, ns; `None` if unknown.
    pub interval_ns: Option<(f64, f64)>,
}

/// A reported cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedCache {
    /// 1 for L1, and so on.
    pub level: u8,
    /// Capacity, bytes.
    pub bytes: u64,
}

/// Working sets with the same latency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plateau {
    /// 1 for L1, and so on; `None` for memory.
    pub level: Option<u8>,
    /// One load, ns.
    pub latency_ns: f64,
    /// The working set that outgrows it, bytes; `None` for memory and if no tried size does.
    pub effective_bytes: Option<u64>,
    /// The reported size of this level, bytes.
    pub reported_bytes: Option<u64>,
}

/// Does the outermost cache include the one before?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inclusion {
    /// Yes: a program sees the capacity of the outer one.
    Inclusive,
    /// No: it sees the sum of both.
    Exclusive,
}

/// The result of a ladder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ladder {
    /// Fastest first, memory last; empty without a usable point.
    pub plateaus: Vec<Plateau>,
    /// `None` unless both capacities differ by more than the error of a knee.
    pub hint: Option<Inclusion>,
    /// Warnings about the figures, as full sentences.
    pub notes: Vec<String>,
}

/// A last plateau slower than this is memory, a faster one a cache. Published latencies of
/// last-level caches end at about 40 ns (meshes of Xeons and Neoverses), those of memory begin at
/// about 55 ns.
const MEMORY_NS: f64 = 48.0;

/// Cost of an unmatched knee or reported cache; matching both costs `|ln(ratio)|`. An effective
/// capacity may be a small share of the reported one: virtual machines report the socket's cache and
/// may use a part of it.
const UNMATCHED_COST: f64 = 1.5;

/// Highest level of a cache that the system need not report: a rise beyond an L3 comes from page
/// tables, or from loads that leave the package.
const MAX_UNREPORTED_LEVEL: u8 = 3;

/// Finds plateaus in the points, in any order, and names them by the reported caches of the CPU
/// (data or unified, any order).
#[must_use]
pub fn find_plateaus(points: &[Point], reported: &[ReportedCache]) -> Ladder {
    let reported = largest_per_level(reported);
    let fit = cut_at_memory(fit::fit(points), &reported);
    let mut ladder = Ladder::default();
    let knees: Vec<f64> = fit.iter().filter_map(|step| step.knee_bytes).collect();
    let levels = name_knees(&knees, &reported);
    for (step, level) in fit
        .iter()
        .zip(levels.into_iter().chain(std::iter::repeat(None)))
    {
        let is_knee = step.knee_bytes.is_some();
        if is_knee && level.is_none() {
            ladder.notes.push(format!(
                "Latency rises to more than {:.1} ns at {}, where no cache is reported to end.",
                step.latency_ns,
                round_bytes(whole(step.knee_bytes.unwrap_or(0.0)))
            ));
            continue;
        }
        ladder.plateaus.push(Plateau {
            level,
            latency_ns: step.latency_ns,
            effective_bytes: step.knee_bytes.map(whole),
            reported_bytes: level.and_then(|level| reported_bytes_of(&reported, level)),
        });
    }
    name_last(&mut ladder, &reported);
    ladder.hint = find_inclusion(&ladder.plateaus);
    ladder
}

/// Cuts the steps after memory. Memory has knees of its own, where page tables outgrow the caches. It
/// begins with the first plateau that is slow enough and larger than any cache.
fn cut_at_memory(
    mut fit: Vec<fit::PlateauAndKnee>,
    reported: &[ReportedCache],
) -> Vec<fit::PlateauAndKnee> {
    let largest = reported.iter().map(|cache| cache.bytes).max().unwrap_or(0) as f64;
    let is_memory = |step: &fit::PlateauAndKnee| {
        let is_large = step.knee_bytes.is_none_or(|bytes| bytes > 1.5 * largest);
        step.latency_ns >= MEMORY_NS && is_large
    };
    if let Some(memory) = fit.iter().position(is_memory) {
        fit.truncate(memory + 1);
        fit[memory].knee_bytes = None;
    }
    fit
}

/// The largest cache of each level, by level.
fn largest_per_level(reported: &[ReportedCache]) -> Vec<ReportedCache> {
    let mut caches: Vec<ReportedCache> = reported.iter().copied().filter(|c| c.bytes > 0).collect();
    caches.sort_by_key(|cache| (cache.level, std::cmp::Reverse(cache.bytes)));
    caches.dedup_by_key(|cache| cache.level);
    caches
}

fn reported_bytes_of(reported: &[ReportedCache], level: u8) -> Option<u64> {
    let mut caches = reported.iter();
    caches
        .find(|cache| cache.level == level)
        .map(|cache| cache.bytes)
}

/// Assigns a level to each knee; `None` if no level is free for it.
///
/// Knees and reported caches are aligned in order, with the least total cost; knees in between get
/// the remaining numbers.
fn name_knees(knees: &[f64], reported: &[ReportedCache]) -> Vec<Option<u8>> {
    let matched = align_knees(knees, reported);
    let mut levels: Vec<Option<u8>> = matched
        .iter()
        .map(|index| index.map(|index| reported[index].level))
        .collect();
    let mut below = 0u8;
    for index in 0..levels.len() {
        if let Some(level) = levels[index] {
            below = level;
            continue;
        }
        let above = levels[index..].iter().flatten().next();
        let next = below.saturating_add(1);
        if above.is_none() && !can_exist(next, reported) {
            continue;
        }
        // Consecutive knees share the free levels; the larger ones are left out first.
        if above.is_none_or(|above| next < *above) {
            levels[index] = Some(next);
            below = next;
        }
    }
    levels
}

/// Can there be a cache of this level?
fn can_exist(level: u8, reported: &[ReportedCache]) -> bool {
    let highest = reported.iter().map(|cache| cache.level).max();
    level <= highest.unwrap_or(0).max(MAX_UNREPORTED_LEVEL)
}

/// Aligns knees with reported caches: the index of the cache of each knee.
fn align_knees(knees: &[f64], reported: &[ReportedCache]) -> Vec<Option<usize>> {
    let (n, m) = (knees.len(), reported.len());
    // Least cost of the first i knees and j caches.
    let mut cost = vec![vec![0.0f64; m + 1]; n + 1];
    let distance = |i: usize, j: usize| (knees[i] / reported[j].bytes as f64).ln().abs();
    for i in 0..=n {
        for j in 0..=m {
            let mut least = if i + j == 0 { 0.0 } else { f64::INFINITY };
            if i > 0 {
                least = least.min(cost[i - 1][j] + UNMATCHED_COST);
            }
            if j > 0 {
                least = least.min(cost[i][j - 1] + UNMATCHED_COST);
            }
            if i > 0 && j > 0 {
                least = least.min(cost[i - 1][j - 1] + distance(i - 1, j - 1));
            }
            cost[i][j] = least;
        }
    }
    let mut matched = vec![None; n];
    let (mut i, mut j) = (n, m);
    while i > 0 && j > 0 {
        let pair = cost[i - 1][j - 1] + distance(i - 1, j - 1);
        if pair <= cost[i - 1][j] + UNMATCHED_COST && pair <= cost[i][j - 1] + UNMATCHED_COST {
            matched[i - 1] = Some(j - 1);
            (i, j) = (i - 1, j - 1);
        } else if cost[i - 1][j] <= cost[i][j - 1] {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    matched
}

/// Names the last plateau: memory, unless it is too fast for that.
fn name_last(ladder: &mut Ladder, reported: &[ReportedCache]) {
    let below = ladder.plateaus.iter().filter_map(|p| p.level).max();
    let Some(last) = ladder.plateaus.last_mut() else {
        return;
    };
    if last.effective_bytes.is_some() || last.latency_ns >= MEMORY_NS {
        return;
    }
    let next = below.unwrap_or(0).saturating_add(1);
    if !can_exist(next, reported) {
        return;
    }
    last.level = Some(next);
    last.reported_bytes = reported_bytes_of(reported, next);
    ladder.notes.push(format!(
        "No working set was large enough to reach memory: the largest still takes {:.1} ns.",
        last.latency_ns
    ));
}

/// A knee may be off by this factor either way, so both answers must differ by more.
const KNEE_ERROR: f64 = 1.15;

fn find_inclusion(plateaus: &[Plateau]) -> Option<Inclusion> {
    let caches: Vec<&Plateau> = plateaus.iter().filter(|p| p.level.is_some()).collect();
    let [.., inner, outer] = &caches[..] else {
        return None;
    };
    let effective = outer.effective_bytes? as f64;
    let (inside, outside) = (inner.reported_bytes? as f64, outer.reported_bytes? as f64);
    let error = |expected: f64| (effective / expected).ln().abs();
    let (alone, sum) = (error(outside), error(inside + outside));
    let max_error = KNEE_ERROR.ln();
    match alone.partial_cmp(&sum)? {
        Ordering::Less if alone < max_error && sum - alone > max_error => {
            Some(Inclusion::Inclusive)
        }
        Ordering::Greater if sum < max_error && alone - sum > max_error => {
            Some(Inclusion::Exclusive)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
