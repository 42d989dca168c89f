//! How many placements there are, and the n-th of them.
//!
//! A unit's placements by the number of its CPUs used are a generating
//! function. Units of one class that stand side by side make a multiset of
//! their placements; of `f` placements that use `s` CPUs, `k` can be taken in
//! `C(f + k - 1, k)` ways, and [`Layer`]s add one size after the other. The same
//! tables give each placement its number (Nijenhuis and Wilf, *Combinatorial
//! Algorithms*, 1978, chapter 13), so that one can be drawn at random, each with
//! the same probability, or all be listed, each once.

use num_bigint::BigUint;

use super::classes::{Classes, Group};
use super::{Occupancy, Part};

/// Placements by units (first) and CPUs used (second), no unit using more than
/// this many CPUs.
type Layer = Vec<Vec<BigUint>>;

/// Placements of a unit of each class by CPUs used.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    by_class: Vec<Vec<BigUint>>,
}

/// What is needed to find a placement by its number.
#[derive(Debug, Clone)]
pub(super) struct Ranks {
    counts: Counts,
    /// By class.
    tables: Vec<ClassRanks>,
}

#[derive(Debug, Clone)]
struct ClassRanks {
    groups: Vec<GroupRanks>,
    /// Placements in the groups from the n-th on, by CPUs used.
    rest: Vec<Vec<BigUint>>,
}

#[derive(Debug, Clone)]
struct GroupRanks {
    group: Group,
    /// By the most CPUs that a unit uses; none of single CPUs.
    layers: Vec<Layer>,
    /// Placements of the group by CPUs used.
    counts: Vec<BigUint>,
}

impl Counts {
    pub(super) fn of(classes: &Classes) -> Self {
        let mut counts = Self {
            by_class: vec![Vec::new(); classes.list.len()],
        };
        counts.fill(classes, classes.root.class);
        counts
    }

    /// Placements of a unit that use this many CPUs.
    pub(super) fn count(&self, class: usize, threads: usize) -> BigUint {
        self.by_class[class]
            .get(threads)
            .cloned()
            .unwrap_or_default()
    }

    fn fill(&mut self, classes: &Classes, class: usize) {
        if !self.by_class[class].is_empty() {
            return;
        }
        if classes.list[class].is_cpu() {
            self.by_class[class] = vec![BigUint::from(1u8); 2];
            return;
        }
        let mut all = vec![BigUint::from(1u8)];
        for group in &classes.list[class].groups {
            self.fill(classes, group.class);
            let more = self.group(classes, *group, &mut |_| {});
            all = product(&all, &more);
        }
        self.by_class[class] = all;
    }

    /// Placements of a group by CPUs used; every layer on the way is shown to
    /// `keep`.
    fn group(
        &self,
        classes: &Classes,
        group: Group,
        keep: &mut impl FnMut(&Layer),
    ) -> Vec<BigUint> {
        if classes.list[group.class].is_cpu() {
            return vec![BigUint::from(1u8); group.units + 1];
        }
        let one = || vec![BigUint::from(1u8)];
        let mut layer: Layer = (0..=group.units).map(|_| one()).collect();
        for (size, states) in self.by_class[group.class].iter().enumerate().skip(1) {
            keep(&layer);
            layer = next_layer(&layer, size, states);
        }
        keep(&layer);
        layer.pop().unwrap_or_default()
    }
}

/// Lets units use `size` CPUs, too, in one of `states` ways.
fn next_layer(smaller: &Layer, size: usize, states: &BigUint) -> Layer {
    let once = *states == BigUint::from(1u8);
    let ways = multisets(states, smaller.len());
    let mut layer: Layer = Vec::with_capacity(smaller.len());
    for units in 0..smaller.len() {
        let row = (0..=units * size).map(|threads| {
            if once {
                let fewer = units.checked_sub(1).zip(threads.checked_sub(size));
                let with = fewer.and_then(|(units, left)| layer[units].get(left));
                let without = at(smaller, units, threads);
                return with.zip(without).map_or_else(
                    || with.or(without).cloned().unwrap_or_default(),
                    |(with, without)| with + without,
                );
            }
            (0..=units.min(threads / size))
                .filter_map(|k| Some(&ways[k] * at(smaller, units - k, threads - k * size)?))
                .sum()
        });
        let row = row.collect();
        layer.push(row);
    }
    layer
}

fn at(layer: &Layer, units: usize, threads: usize) -> Option<&BigUint> {
    layer.get(units)?.get(threads)
}

/// Multisets of 0, 1, … elements of this many.
fn multisets(of: &BigUint, up_to: usize) -> Vec<BigUint> {
    let mut ways = vec![BigUint::from(1u8)];
    for k in 1..=up_to {
        let next = &ways[k - 1] * (of + (k - 1)) / k;
        ways.push(next);
    }
    ways
}

fn product(a: &[BigUint], b: &[BigUint]) -> Vec<BigUint> {
    let mut product = vec![BigUint::default(); a.len() + b.len() - 1];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            product[i + j] += a * b;
        }
    }
    product
}

impl Ranks {
    pub(super) fn of(classes: &Classes) -> Self {
        let counts = Counts::of(classes);
        let table = |groups: &[Group]| {
            let groups: Vec<GroupRanks> = groups
                .iter()
                .map(|&group| {
                    let mut layers = Vec::new();
                    let own = counts.group(classes, group, &mut |l| layers.push(l.clone()));
                    GroupRanks {
                        group,
                        layers,
                        counts: own,
                    }
                })
                .collect();
            let mut rest = vec![vec![BigUint::from(1u8)]];
            for group in groups.iter().rev() {
                rest.push(product(&group.counts, &rest[rest.len() - 1]));
            }
            rest.reverse();
            ClassRanks { groups, rest }
        };
        let tables = classes.list.iter().map(|class| table(&class.groups));
        Self {
            tables: tables.collect(),
            counts,
        }
    }

    /// The placement of this number, which is below the count.
    pub(super) fn unrank(&self, class: usize, threads: usize, mut rank: BigUint) -> Occupancy {
        let table = &self.tables[class];
        if table.groups.is_empty() && threads > 0 {
            return Occupancy::used_cpu();
        }
        let mut parts = Vec::new();
        let mut left = threads;
        for (group, rest) in table.groups.iter().zip(&table.rest[1..]) {
            let mut here = 0;
            while here < left {
                let block = match (group.counts.get(here), rest.get(left - here)) {
                    (Some(own), Some(others)) => own * others,
                    _ => BigUint::default(),
                };
                if rank < block {
                    break;
                }
                rank -= block;
                here += 1;
            }
            let others = rest.get(left - here).cloned().unwrap_or_default();
            let (own, remainder) = divided(&rank, &others);
            self.unrank_group(group, here, own, &mut parts);
            rank = remainder;
            left -= here;
        }
        Occupancy::of(parts)
    }

    fn unrank_group(
        &self,
        group: &GroupRanks,
        threads: usize,
        mut rank: BigUint,
        parts: &mut Vec<Part>,
    ) {
        let class = group.group.class;
        let mut add = |units, below| {
            parts.push(Part {
                class,
                units,
                below,
            });
        };
        if group.layers.is_empty() {
            return add(threads, Occupancy::used_cpu());
        }
        let (mut units, mut left) = (group.group.units, threads);
        for size in (1..group.layers.len()).rev() {
            let states = self.counts.count(class, size);
            let smaller = &group.layers[size - 1];
            let ways = multisets(&states, units.min(left / size));
            let mut taken = 0;
            let rest = loop {
                let rest = at(smaller, units - taken, left - taken * size);
                let block = rest.map(|rest| &ways[taken] * rest).unwrap_or_default();
                if rank < block || taken + 1 == ways.len() {
                    break rest.cloned().unwrap_or_default();
                }
                rank -= block;
                taken += 1;
            };
            let (which, remainder) = divided(&rank, &rest);
            for state in multiset(&states, taken, which) {
                add(1, self.unrank(class, size, state));
            }
            rank = remainder;
            units -= taken;
            left -= taken * size;
        }
    }
}

fn divided(rank: &BigUint, by: &BigUint) -> (BigUint, BigUint) {
    if *by == BigUint::default() {
        return (BigUint::default(), rank.clone());
    }
    (rank / by, rank % by)
}

/// The multiset of `size` numbers below `of` that has this rank, by the
/// combinatorial number system: the largest first.
fn multiset(of: &BigUint, size: usize, mut rank: BigUint) -> Vec<BigUint> {
    let mut numbers = Vec::with_capacity(size);
    let mut bound = of.clone();
    for place in (1..=size).rev() {
        // The largest number whose smaller multisets do not reach past the rank.
        let (mut low, mut high) = (BigUint::default(), bound);
        while &low + 1u8 < high {
            let middle = (&low + &high) >> 1u8;
            if below(&middle, place) <= rank {
                low = middle;
            } else {
                high = middle;
            }
        }
        rank -= below(&low, place);
        bound = &low + 1u8;
        numbers.push(low);
    }
    numbers
}

/// Multisets of this many elements below `of`.
fn below(of: &BigUint, size: usize) -> BigUint {
    (0..size).fold(BigUint::from(1u8), |ways, k| ways * (of + k) / (k + 1))
}
