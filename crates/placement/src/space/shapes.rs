//! Shapes: placements that spread their threads evenly.
//!
//! A shape says how many units of each level are used in every unit around them. Threads are shared
//! out evenly at every level as far as there is room, so that equal units differ by at most one
//! thread. If sibling units are of several classes, there is a variant of each shape that begins
//! with each class; on hybrid machines each kind of core is also treated as a machine of its own.
//! The number of shapes and the time to find them grow with levels and classes, not with CPUs.

use std::collections::BTreeSet;

use super::classes::{Class, Classes};
use super::{Occupancy, Part, Space};
use pinwise_topology::Level;

const LEVELS: usize = Level::ALL.len();

/// Limits the shapes for one number of threads. Machines of 2026 have up to 65; hundreds of cores
/// without a level between them and the package have more.
const MAX_SHAPES: usize = 200;
/// Limits the combinations of numbers of units tried for one order.
const MAX_TRIED: usize = 20_000;
/// Limits the classes that variants begin with.
const MAX_FAVOURITES: usize = 8;

/// An even placement and the units of each level that it uses.
#[derive(Debug, Clone)]
pub(super) struct EvenPlacement {
    pub(super) used: [usize; LEVELS],
    pub(super) occupancy: Occupancy,
}

/// Which of several classes of units are used first.
#[derive(Debug, Clone, Copy)]
enum Order {
    /// In the order of the classes: the fastest, then the largest first.
    ByClass,
    /// Of each class in proportion to its units.
    Mixed,
    /// First the units that are or contain a unit of this class.
    First(usize),
}

/// How threads are spread.
struct Spread<'a> {
    classes: &'a Classes,
    /// Units of each level to use in every unit around them.
    per_parent: [usize; LEVELS],
    /// Only CPUs of this kind.
    kind: Option<usize>,
    order: Order,
    /// CPUs that can be used in a unit of each class, once computed.
    room: Vec<Option<usize>>,
}

impl Space {
    /// The even placements of this many threads, fewest units first, ties in a fixed order of
    /// variants.
    pub(super) fn list_even_placements(&self, threads: usize) -> Vec<EvenPlacement> {
        let mut seen = BTreeSet::new();
        let mut found = Vec::new();
        if threads == 0 || threads > self.cpus() {
            return found;
        }
        let tried = self.unit_numbers(threads);
        for (kind, order) in self.variants() {
            let before = found.clone();
            for per_parent in &tried {
                let mut spread = Spread {
                    classes: &self.classes,
                    per_parent: *per_parent,
                    kind,
                    order,
                    room: vec![None; self.classes.list.len()],
                };
                let distributed = spread.distribute(self.classes.root.class, threads);
                if let Some(occupancy) =
                    distributed.filter(|distributed| seen.insert(distributed.clone()))
                {
                    let used = self.count_used_units(&occupancy);
                    found.push(EvenPlacement { used, occupancy });
                }
            }
            if found.len() > MAX_SHAPES && !before.is_empty() {
                found = before;
            }
        }
        found.sort_by_key(|even| even.used);
        thin_evenly(found)
    }

    /// The orders and kinds for shapes, most important first.
    fn variants(&self) -> Vec<(Option<usize>, Order)> {
        let list = &self.classes.list;
        let mut variants = vec![(None, Order::ByClass)];
        let kinds = &list[self.classes.root.class].kinds;
        if kinds.len() > 1 {
            variants.extend(kinds.iter().rev().map(|&kind| (Some(kind), Order::ByClass)));
        }
        let mixed: BTreeSet<usize> = list
            .iter()
            .filter(|class| class.groups.len() > 1)
            .flat_map(|class| class.groups.iter().map(|group| group.class))
            .collect();
        if !mixed.is_empty() {
            variants.push((None, Order::Mixed));
        }
        let favourites = mixed.into_iter().take(MAX_FAVOURITES);
        variants.extend(favourites.map(|class| (None, Order::First(class))));
        variants
    }

    /// Combinations of numbers of units per level that are worth trying.
    fn unit_numbers(&self, threads: usize) -> Vec<[usize; LEVELS]> {
        let mut most = [1; LEVELS];
        for class in &self.classes.list {
            if let Some(level) = level_inside(&self.classes, class) {
                let units: usize = class.groups.iter().map(|group| group.units).sum();
                most[level as usize] = most[level as usize].max(units);
            }
        }
        let most = most.map(|units| units.min(threads));
        let all = most.iter().fold(1usize, |all, n| all.saturating_mul(*n));
        let mut tried = vec![[1; LEVELS]];
        for level in Level::ALL {
            let numbers = list_unit_numbers(most[level as usize], all <= MAX_TRIED);
            let longer = tried.iter().flat_map(|start| {
                numbers.iter().map(|&units| {
                    let mut next = *start;
                    next[level as usize] = units;
                    next
                })
            });
            tried = longer.take(MAX_TRIED).collect();
        }
        tried
    }
}

/// The level of a unit's children.
fn level_inside(classes: &Classes, class: &Class) -> Option<Level> {
    let levels = class.groups.iter();
    levels
        .filter_map(|group| classes.list[group.class].level())
        .min()
}

/// All numbers to `max`, or only some: 1, 2, 3, 4, 6, 8, 12, … and `max`.
fn list_unit_numbers(max: usize, is_complete: bool) -> Vec<usize> {
    if is_complete {
        return (1..=max).collect();
    }
    let steps = std::iter::successors(Some(1usize), |n| n.checked_mul(2));
    let mut numbers: Vec<usize> = steps
        .flat_map(|n| [n, n + n / 2])
        .take_while(|&n| n < max)
        .collect();
    numbers.push(max);
    numbers.dedup();
    numbers
}

/// At most [`MAX_SHAPES`] of them, evenly from the first to the last.
fn thin_evenly(found: Vec<EvenPlacement>) -> Vec<EvenPlacement> {
    let last = found.len().saturating_sub(1);
    if last < MAX_SHAPES {
        return found;
    }
    let kept: BTreeSet<usize> = (0..MAX_SHAPES)
        .map(|n| n * last / (MAX_SHAPES - 1))
        .collect();
    let numbered = found.into_iter().enumerate();
    numbered
        .filter(|(index, _)| kept.contains(index))
        .map(|(_, even)| even)
        .collect()
}

/// Units of a class that are used alike.
struct Units {
    class: usize,
    units: usize,
    /// CPUs in each: those that can be used, or once threads are shared out, those that are.
    each: usize,
}

impl Spread<'_> {
    /// Distributes threads within a unit of a class; `None` if there is no room.
    fn distribute(&mut self, class: usize, threads: usize) -> Option<Occupancy> {
        if self.count_room(class) < threads {
            return None;
        }
        if self.classes.list[class].is_cpu() {
            return Some(Occupancy::used_cpu());
        }
        let mut parts = Vec::new();
        for Units { class, units, each } in self.share_out(class, threads) {
            if each > 0 && units > 0 {
                let below = self.distribute(class, each)?;
                parts.push(Part {
                    class,
                    units,
                    below,
                });
            }
        }
        Some(Occupancy::from_parts(parts))
    }

    /// CPUs that can be used in a unit of a class.
    fn count_room(&mut self, class: usize) -> usize {
        if let Some(room) = self.room[class] {
            return room;
        }
        let described = &self.classes.list[class];
        let room = if described.is_cpu() {
            let is_usable = self.kind.is_none_or(|kind| described.kinds.contains(&kind));
            usize::from(is_usable)
        } else {
            let picked = self.list_used_units(class);
            picked.iter().map(|used| used.units * used.each).sum()
        };
        self.room[class] = Some(room);
        room
    }

    /// The units to use inside a unit, with the room in each.
    fn list_used_units(&mut self, class: usize) -> Vec<Units> {
        let described = &self.classes.list[class];
        let mut groups = Vec::with_capacity(described.groups.len());
        for group in &described.groups {
            let room = self.count_room(group.class);
            if room > 0 {
                groups.push(Units {
                    class: group.class,
                    units: group.units,
                    each: room,
                });
            }
        }
        let wanted = level_inside(self.classes, described)
            .map_or(usize::MAX, |level| self.per_parent[level as usize]);
        if let Order::First(first) = self.order {
            groups.sort_by_key(|used| !self.classes.list[used.class].within.contains(&first));
        }
        let all: usize = groups.iter().map(|used| used.units).sum();
        let wanted = wanted.min(all);
        let mut seen = 0;
        let mut taken = 0;
        for used in &mut groups {
            seen += used.units;
            let upto = match self.order {
                Order::Mixed => wanted * seen / all,
                Order::ByClass | Order::First(_) => wanted.min(seen),
            };
            used.units = upto - taken;
            taken = upto;
        }
        groups
    }

    /// Shares threads out among the used units. Small units are filled first; the others get the
    /// same number, or one more for the remainder.
    fn share_out(&mut self, class: usize, threads: usize) -> Vec<Units> {
        let mut picked = self.list_used_units(class);
        let mut shares = Vec::new();
        let mut remaining = threads;
        loop {
            let units: usize = picked.iter().map(|used| used.units).sum();
            if units == 0 {
                return shares;
            }
            let each = remaining / units;
            let small = picked.iter().position(|used| used.each <= each);
            let Some(small) = small else {
                let mut extra = remaining % units;
                for Units { class, units, .. } in picked {
                    let larger = extra.min(units);
                    extra -= larger;
                    for (units, each) in [(larger, each + 1), (units - larger, each)] {
                        shares.push(Units { class, units, each });
                    }
                }
                return shares;
            };
            let full = picked.remove(small);
            remaining -= full.units * full.each;
            shares.push(full);
        }
    }
}
