//! Counts placements.
//!
//! A unit's placements by the number of its CPUs used are a generating function. Sibling units of
//! one class make a multiset of their placements; of `f` placements that use `s` CPUs, `k` can be
//! taken in `C(f + k - 1, k)` ways, and [`Layer`]s add one size after the other (Nijenhuis and
//! Wilf, *Combinatorial Algorithms*, 1978, chapter 13).

use num_bigint::BigUint;

use super::classes::{Classes, Group};

/// Numbers of placements by units (first index) and CPUs used (second), where no unit uses more
/// CPUs than the sizes added so far.
type Layer = Vec<Vec<BigUint>>;

/// Numbers of placements of a unit of each class by CPUs used.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    by_class: Vec<Vec<BigUint>>,
}

impl Counts {
    pub(super) fn from_classes(classes: &Classes) -> Self {
        let mut counts = Self {
            by_class: vec![Vec::new(); classes.list.len()],
        };
        counts.fill(classes, classes.root.class);
        counts
    }

    /// The number of placements of a unit that use this many CPUs.
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
            let more = self.count_group(classes, *group);
            all = multiply(&all, &more);
        }
        self.by_class[class] = all;
    }

    /// Numbers of placements of a group by CPUs used.
    fn count_group(&self, classes: &Classes, group: Group) -> Vec<BigUint> {
        if classes.list[group.class].is_cpu() {
            return vec![BigUint::from(1u8); group.units + 1];
        }
        let one = || vec![BigUint::from(1u8)];
        let mut layer: Layer = (0..=group.units).map(|_| one()).collect();
        for (size, states) in self.by_class[group.class].iter().enumerate().skip(1) {
            layer = next_layer(&layer, size, states);
        }
        layer.pop().unwrap_or_default()
    }
}

/// Adds the placements in which units use exactly `size` CPUs, each in one of `states` ways.
fn next_layer(smaller: &Layer, size: usize, states: &BigUint) -> Layer {
    let has_one_state = *states == BigUint::from(1u8);
    let ways = count_multisets(states, smaller.len());
    let mut layer: Layer = Vec::with_capacity(smaller.len());
    for units in 0..smaller.len() {
        let row = (0..=units * size).map(|threads| {
            if has_one_state {
                let fewer = units.checked_sub(1).zip(threads.checked_sub(size));
                let with = fewer.and_then(|(units, left)| layer[units].get(left));
                let without = entry(smaller, units, threads);
                return with.zip(without).map_or_else(
                    || with.or(without).cloned().unwrap_or_default(),
                    |(with, without)| with + without,
                );
            }
            (0..=units.min(threads / size))
                .filter_map(|k| Some(&ways[k] * entry(smaller, units - k, threads - k * size)?))
                .sum()
        });
        let row = row.collect();
        layer.push(row);
    }
    layer
}

fn entry(layer: &Layer, units: usize, threads: usize) -> Option<&BigUint> {
    layer.get(units)?.get(threads)
}

/// Numbers of multisets of 0, 1, … `up_to` elements, taken from this many.
fn count_multisets(elements: &BigUint, up_to: usize) -> Vec<BigUint> {
    let mut ways = vec![BigUint::from(1u8)];
    for k in 1..=up_to {
        let next = &ways[k - 1] * (elements + (k - 1)) / k;
        ways.push(next);
    }
    ways
}

fn multiply(a: &[BigUint], b: &[BigUint]) -> Vec<BigUint> {
    let mut product = vec![BigUint::default(); a.len() + b.len() - 1];
    for (i, a) in a.iter().enumerate() {
        for (j, b) in b.iter().enumerate() {
            product[i + j] += a * b;
        }
    }
    product
}
