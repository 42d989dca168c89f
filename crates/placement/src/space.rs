//! All placements of T threads on a machine, one CPU each. Placements that differ only by the
//! exchange of equal units are one. They are counted, and narrowed to *shapes*.
//!
//! The machine is a tree of its allowed CPUs whose nodes have classes: two nodes are of one class
//! exactly when their subtrees are equal, kinds of cores included, so that a P core is never
//! exchanged for an E core, nor a last-level cache of eight cores for one of which a cpuset left
//! three. An [`Occupancy`] says for every class of children how many of them are used and how. It
//! contains no CPU numbers; [`Space::choose`] picks the CPUs.

mod classes;
mod count;
mod names;
mod shapes;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use num_bigint::BigUint;

pub(crate) use names::Lacking;

use super::Placement;
use classes::{Classes, Unit};
use count::Counts;
use pinwise_topology::{CpuSet, Level, Topology, fnv1a};

/// Placements of a machine's allowed CPUs.
#[derive(Debug, Clone)]
pub struct Space {
    classes: Classes,
    /// Counted on first use.
    counts: OnceLock<Arc<Counts>>,
}

/// The used CPUs of a placement in the tree, in canonical form.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Occupancy {
    /// CPUs used.
    threads: usize,
    /// Sorted by class, then the fullest first, without unused units. A used CPU has no parts.
    parts: Vec<Part>,
}

/// Units of one class that are used alike, and their number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Part {
    class: usize,
    units: usize,
    below: Occupancy,
}

impl Occupancy {
    const fn used_cpu() -> Self {
        Self {
            threads: 1,
            parts: Vec::new(),
        }
    }

    /// Puts parts in their canonical order and joins equal ones.
    fn from_parts(mut parts: Vec<Part>) -> Self {
        parts.retain(|part| part.units > 0 && part.below.threads > 0);
        parts.sort_by(|a, b| {
            let key = |part: &Part| part.class;
            key(a).cmp(&key(b)).then_with(|| b.below.cmp(&a.below))
        });
        let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
        for part in parts {
            match joined.last_mut() {
                Some(last) if last.class == part.class && last.below == part.below => {
                    last.units += part.units;
                }
                _ => joined.push(part),
            }
        }
        Self {
            threads: joined.iter().map(|p| p.units * p.below.threads).sum(),
            parts: joined,
        }
    }

    fn parts_of_class(&self, class: usize) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.class == class)
    }

    /// A copy in which one unit is used as `to` instead of as `from`; an unused unit has no
    /// threads.
    fn replace_unit(&self, class: usize, from: &Self, to: Self) -> Self {
        let mut parts = self.parts.clone();
        for part in &mut parts {
            if part.class == class && part.below == *from {
                part.units -= 1;
            }
        }
        parts.push(Part {
            class,
            units: 1,
            below: to,
        });
        Self::from_parts(parts)
    }
}

/// A candidate: CPUs spread evenly over this many units of each level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaped {
    /// The canonical form.
    pub occupancy: Occupancy,
    /// A name that realises to this occupancy on this machine.
    pub placement: Placement,
}

/// Limits the listed neighbours of a placement. Shapes have one or two dozen; only placements in
/// which nearly every unit is used differently have more.
const MAX_NEIGHBOURS: usize = 1000;

impl Space {
    /// The number of placements of this many threads, one CPU each; 0 if there are fewer CPUs.
    #[must_use]
    pub fn count(&self, threads: usize) -> BigUint {
        self.counts().count(self.classes.root.class, threads)
    }

    fn counts(&self) -> &Counts {
        self.counts
            .get_or_init(|| Arc::new(Counts::from_classes(&self.classes)))
    }

    /// The placements of this machine's allowed CPUs.
    #[must_use]
    pub fn from_topology(topology: &Topology) -> Self {
        Self {
            classes: Classes::from_topology(topology),
            counts: OnceLock::new(),
        }
    }

    /// The number of allowed CPUs.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.classes.list[self.classes.root.class].cpus
    }

    /// The even placements of this many threads in a fixed order: fewest units first.
    #[must_use]
    pub fn shapes(&self, threads: usize) -> Vec<Shaped> {
        let even = self.list_even_placements(threads);
        even.iter()
            .map(|spread| Shaped {
                placement: self.name_even(&spread.occupancy, &even),
                occupancy: spread.occupancy.clone(),
            })
            .collect()
    }

    /// The placements that differ from this one by the move of one thread: at most 1,000.
    #[must_use]
    pub fn neighbours(&self, occupancy: &Occupancy) -> Vec<Occupancy> {
        let root = self.classes.root.class;
        let mut found = BTreeSet::new();
        for fewer in self.remove_one_cpu(root, occupancy) {
            found.extend(self.add_one_cpu(root, &fewer));
            if found.len() > MAX_NEIGHBOURS {
                break;
            }
        }
        found.remove(occupancy);
        found.into_iter().take(MAX_NEIGHBOURS).collect()
    }

    /// All ways to use one CPU fewer in a unit.
    fn remove_one_cpu(&self, class: usize, used: &Occupancy) -> Vec<Occupancy> {
        if self.classes.list[class].is_cpu() {
            return vec![Occupancy::default(); used.threads];
        }
        let mut found = Vec::new();
        for part in &used.parts {
            for below in self.remove_one_cpu(part.class, &part.below) {
                found.push(used.replace_unit(part.class, &part.below, below));
            }
        }
        found
    }

    /// All ways to use one CPU more in a unit.
    fn add_one_cpu(&self, class: usize, used: &Occupancy) -> Vec<Occupancy> {
        let class = &self.classes.list[class];
        if class.is_cpu() {
            return vec![Occupancy::used_cpu(); 1 - used.threads.min(1)];
        }
        let mut found = Vec::new();
        for group in &class.groups {
            let taken: usize = used
                .parts_of_class(group.class)
                .map(|part| part.units)
                .sum();
            let unused = (taken < group.units).then(Occupancy::default);
            let uses = used.parts_of_class(group.class).map(|part| &part.below);
            for from in uses.chain(unused.as_ref()) {
                for to in self.add_one_cpu(group.class, from) {
                    found.push(used.replace_unit(group.class, from, to));
                }
            }
        }
        found
    }

    /// The occupancy of these CPUs; `None` if one of them is not allowed.
    #[must_use]
    pub fn occupancy(&self, cpus: &CpuSet) -> Option<Occupancy> {
        let found = find_occupancy(&self.classes.root, cpus);
        (found.threads == cpus.len()).then_some(found)
    }

    /// CPUs with this occupancy: the first units of each class in the tree, but the core of CPU 0
    /// last among its equals, because interrupts and kernel threads prefer it.
    #[must_use]
    pub fn choose(&self, occupancy: &Occupancy) -> CpuSet {
        self.choose_beside(occupancy, &CpuSet::new())
    }

    /// CPUs with this occupancy, and with as few of `avoided` as choosing unit by unit allows; ties
    /// as in [`Space::choose`].
    #[must_use]
    pub fn choose_beside(&self, occupancy: &Occupancy, avoided: &CpuSet) -> CpuSet {
        let mut chosen = CpuSet::new();
        take_cpus(&self.classes.root, occupancy, avoided, &mut chosen);
        chosen
    }

    /// 16 hexadecimal digits: equal for equal placements on equal trees, and different for others
    /// (except with a chance of 1 in 2^64).
    #[must_use]
    pub fn id(&self, occupancy: &Occupancy) -> String {
        let mut text = self.classes.text().to_owned();
        text.push_str(&format!("|{}", occupancy.threads));
        append_text(occupancy, &mut text);
        format!("{:016x}", mix_bits(fnv1a(text.bytes())))
    }

    /// A name that realises on this machine to this occupancy, with exactly the CPUs of
    /// [`Space::choose`]:
    /// `shape:…` if no other even placement has as many units of each level, else `tree:…`.
    #[must_use]
    pub fn placement(&self, occupancy: &Occupancy) -> Placement {
        self.name_even(occupancy, &self.list_even_placements(occupancy.threads))
    }

    /// Numbers of units of each level that a placement uses.
    fn count_used_units(&self, occupancy: &Occupancy) -> [usize; Level::ALL.len()] {
        let mut used = [0; Level::ALL.len()];
        self.count_units(self.classes.root.class, 1, occupancy, &mut used);
        used
    }

    fn count_units(
        &self,
        class: usize,
        units: usize,
        occupancy: &Occupancy,
        used: &mut [usize; Level::ALL.len()],
    ) {
        if occupancy.threads == 0 {
            return;
        }
        for &level in &self.classes.list[class].levels {
            used[level as usize] += units;
        }
        for part in &occupancy.parts {
            self.count_units(part.class, units * part.units, &part.below, used);
        }
    }
}

fn find_occupancy(unit: &Unit, cpus: &CpuSet) -> Occupancy {
    match unit.cpu {
        Some(cpu) if cpus.contains(cpu) => Occupancy::used_cpu(),
        Some(_) => Occupancy::default(),
        None => {
            let part = |child: &Unit| Part {
                class: child.class,
                units: 1,
                below: find_occupancy(child, cpus),
            };
            Occupancy::from_parts(unit.children.iter().map(part).collect())
        }
    }
}

fn take_cpus(unit: &Unit, occupancy: &Occupancy, avoided: &CpuSet, chosen: &mut CpuSet) {
    if let Some(cpu) = unit.cpu.filter(|_| occupancy.threads > 0) {
        chosen.insert(cpu);
    }
    let mut remaining: Vec<&Unit> = unit.children.iter().collect();
    remaining.sort_by_key(|child| child.is_boot_core);
    for part in &occupancy.parts {
        if !avoided.is_empty() {
            remaining.sort_by_cached_key(|child| {
                let mut taken = CpuSet::new();
                if child.class == part.class {
                    take_cpus(child, &part.below, avoided, &mut taken);
                }
                taken.intersection(avoided).len()
            });
        }
        let mut wanted = part.units;
        remaining.retain(|child| {
            let is_taken = wanted > 0 && child.class == part.class;
            if is_taken {
                wanted -= 1;
                take_cpus(child, &part.below, avoided, chosen);
            }
            !is_taken
        });
    }
}

/// Appends the canonical form of a placement.
fn append_text(occupancy: &Occupancy, text: &mut String) {
    for part in &occupancy.parts {
        text.push_str(&format!("{}x{}(", part.units, part.class));
        append_text(&part.below, text);
        text.push(')');
    }
}

/// The finaliser of Steele, Lea and Flood's `SplitMix` (OOPSLA 2014): for short texts, FNV's upper
/// bits hardly differ.
const fn mix_bits(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests;
