//! The layout of a mask's CPUs: an order and a number that are the same for masks that differ only
//! by an exchange of equal units.

use super::cpu_table::{CpuTable, CpuUnits};
use pinwise_topology::CpuSet;

/// The CPUs of a mask in an order independent of their numbers: unit by unit, equal units in any
/// order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// Positions in the table.
    pub(super) order: Vec<usize>,
    /// Equal for equal layouts, almost never for others.
    pub(super) signature: u64,
}

impl Layout {
    /// The layout of the existing CPUs; `None` if none exists.
    pub(super) fn new(table: &CpuTable, cpus: &CpuSet) -> Option<Self> {
        let positions = table.positions(cpus);
        if positions.is_empty() {
            return None;
        }
        let mut order = Vec::with_capacity(positions.len());
        let signature = arrange_units(table, &positions, 0, &mut order);
        Some(Self { order, signature })
    }
}

/// Appends these positions to `order`, with the units of this level and below in the order of their
/// signatures; returns the signature of all of them.
fn arrange_units(
    table: &CpuTable,
    positions: &[usize],
    level: usize,
    order: &mut Vec<usize>,
) -> u64 {
    let unit = |at: &usize| table.cpus[*at].nested.get(level).copied();
    if level == 4 {
        let mut kinds: Vec<(u64, usize)> = positions
            .iter()
            .map(|&at| (table.cpus[at].kind as u64, at))
            .collect();
        kinds.sort_unstable();
        order.extend(kinds.iter().map(|&(_, at)| at));
        return kinds.iter().fold(1, |sum, &(kind, _)| mix(sum, kind + 1));
    }
    let mut units: Vec<(u64, Vec<usize>)> = positions
        .chunk_by(|a, b| unit(a) == unit(b))
        .map(|inside| {
            let mut arranged = Vec::with_capacity(inside.len());
            let signature = arrange_units(table, inside, level + 1, &mut arranged);
            let first = table.cpus[inside[0]];
            let signature = mix(signature, unit_property(table, &first, level));
            (signature, arranged)
        })
        .collect();
    // The fullest first, so that thread 0 starts where most threads fit.
    units.sort_by_key(|(signature, arranged)| (std::cmp::Reverse(arranged.len()), *signature));
    for (_, arranged) in &units {
        order.extend(arranged);
    }
    let level = level as u64 + 2;
    units
        .iter()
        .fold(level, |sum, (signature, _)| mix(sum, *signature))
}

/// A number that distinguishes a unit from others with the same used CPUs: its size.
fn unit_property(table: &CpuTable, first: &CpuUnits, level: usize) -> u64 {
    match level {
        0 => table.cores_of[first.package].to_bits(),
        2 => table.llc_bytes[first.llc].to_bits(),
        3 => table.l2_bytes[first.core].to_bits(),
        _ => 0,
    }
}

/// Mixes two numbers as in splitmix64 (Steele, Lea and Flood 2014).
pub(super) const fn mix(a: u64, b: u64) -> u64 {
    let mut z = a
        .rotate_left(25)
        .wrapping_add(b.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
