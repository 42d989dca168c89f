//! Names of placements, and their parser: `shape:…` if numbers of units and an even spread suffice,
//! else `tree:…`, which describes any placement.

use super::classes::Group;
use super::shapes::Even;
use super::{Occupancy, Part, Space};
use crate::{Branch, Branches, Placement, Shape, Wish};
use pinwise_topology::{CpuSet, Level};

/// Why a `tree:` or an even `shape:` is not possible on a machine: the missing units, and their
/// parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lacking {
    pub(crate) wanted: String,
    pub(crate) from: String,
}

impl Space {
    /// The CPUs of a shape with a total number of CPUs. Of several even placements with these
    /// numbers, one with the most units of the outermost open level, then of the next.
    pub(crate) fn spread_evenly(&self, shape: &Shape, cpus: usize) -> Result<CpuSet, Lacking> {
        let even = self.even(cpus);
        let found = most_spread(&even, &wanted_units(shape));
        let found = found.ok_or_else(|| Lacking {
            wanted: format!(
                "{} spread evenly over that many units",
                many(cpus, Level::Cpu)
            ),
            from: "this machine".to_owned(),
        })?;
        Ok(self.choose(found))
    }

    /// The CPUs of a `tree:`.
    pub(crate) fn realise(&self, branches: &Branches) -> Result<CpuSet, Lacking> {
        let root = self.classes.root.class;
        Ok(self.choose(&self.resolve_shape(root, &branches.0, "this machine")?))
    }

    fn resolve_shape(
        &self,
        class: usize,
        branches: &[Branch],
        from: &str,
    ) -> Result<Occupancy, Lacking> {
        if branches.is_empty() {
            return Ok(self.whole(class));
        }
        let mut parts: Vec<Part> = Vec::new();
        for branch in branches {
            let group = self.group_of(class, branch, from)?;
            let used_units = parts.iter().filter(|part| part.class == group.class);
            let used_units: usize = used_units.map(|part| part.units).sum();
            if branch.units > group.units - used_units {
                return Err(Lacking {
                    wanted: many(used_units + branch.units, branch.level),
                    from: format!("{from}, which has {}", group.units),
                });
            }
            let inside = format!("one {}", branch.level.noun());
            parts.push(Part {
                class: group.class,
                units: branch.units,
                below: self.resolve_shape(group.class, &branch.below, &inside)?,
            });
        }
        Ok(Occupancy::from_parts(parts))
    }

    /// The children of a unit selected by a branch.
    fn group_of(&self, class: usize, branch: &Branch, from: &str) -> Result<Group, Lacking> {
        let groups = &self.classes.list[class].groups;
        let named: Vec<(Group, Option<String>)> = groups
            .iter()
            .map(|group| (*group, self.label(groups, group.class)))
            .filter(|(group, _)| self.classes.list[group.class].level() == Some(branch.level))
            .collect();
        let found = named.iter().find(|(_, label)| *label == branch.class);
        found.map(|(group, _)| *group).ok_or_else(|| {
            let labels: Vec<&str> = named.iter().filter_map(|(_, l)| l.as_deref()).collect();
            let class = branch.class.as_deref().unwrap_or_default();
            let kinds = match (&labels[..], class) {
                ([], "") => String::new(),
                ([], class) => format!(" of class {class}"),
                (labels, "") => format!(" (say which: {})", labels.join(", ")),
                (labels, class) => format!(" of class {class} (there are {})", labels.join(", ")),
            };
            Lacking {
                wanted: format!("{}{kinds}", many(branch.units, branch.level)),
                from: from.to_owned(),
            }
        })
    }

    /// All CPUs of a unit.
    fn whole(&self, class: usize) -> Occupancy {
        let class = &self.classes.list[class];
        if class.is_cpu() {
            return Occupancy::used_cpu();
        }
        let part = |group: &Group| Part {
            class: group.class,
            units: group.units,
            below: self.whole(group.class),
        };
        Occupancy::from_parts(class.groups.iter().map(part).collect())
    }

    /// Distinguishes a class from its siblings of the same level: by its kind of CPU if each has
    /// another, else by a letter in the order of classes.
    fn label(&self, siblings: &[Group], class: usize) -> Option<String> {
        let list = &self.classes.list;
        let same: Vec<usize> = siblings
            .iter()
            .map(|group| group.class)
            .filter(|&other| list[other].level() == list[class].level())
            .collect();
        if same.len() < 2 {
            return None;
        }
        let kinds = same.iter().filter_map(|&class| {
            let mut kinds = list[class].kinds.iter();
            kinds.next().filter(|_| list[class].kinds.len() == 1)
        });
        let mut kinds: Vec<&usize> = kinds.collect();
        let own = list[class].kinds.first();
        kinds.sort();
        kinds.dedup();
        match own.filter(|_| kinds.len() == same.len()) {
            Some(&kind) => self.classes.kinds.get(kind).cloned(),
            None => same.iter().position(|&other| other == class).map(letters),
        }
    }

    /// A name, given the even placements of as many threads.
    pub(super) fn name_even(&self, occupancy: &Occupancy, even: &[Even]) -> Placement {
        let own = even.iter().find(|even| even.occupancy == *occupancy);
        let alone =
            own.filter(|own| even.iter().filter(|other| other.used == own.used).count() == 1);
        let shape = alone.map(|own| self.shape_of(own));
        let wish = shape.filter(|shape| {
            most_spread(even, &wanted_units(shape)).is_some_and(|found| found == occupancy)
        });
        let root = self.classes.root.class;
        Placement::new(match wish {
            Some(shape) => Wish::Shape(shape),
            None => Wish::Tree(Branches(self.branches(root, occupancy))),
        })
    }

    /// The numbers of units at the levels that distinguish placements.
    fn shape_of(&self, even: &Even) -> Shape {
        let units = |level: Level| {
            self.distinguishes(level)
                .then_some(even.used[level as usize])
        };
        Shape {
            packages: units(Level::Package),
            numa_nodes: units(Level::Numa),
            llcs: units(Level::Llc),
            cores: units(Level::Core),
            cpus: Some(even.occupancy.threads),
            cpus_per_core: None,
        }
    }

    /// Does this level have several units that differ from those of the level around them and from
    /// CPUs?
    fn distinguishes(&self, level: Level) -> bool {
        let root = self.classes.root.class;
        let others = self.classes.list.iter().enumerate();
        let mut others = others.filter(|(number, _)| *number != root).map(|(_, c)| c);
        others.any(|class| class.level() == Some(level) && !class.is_cpu())
    }

    fn branches(&self, class: usize, occupancy: &Occupancy) -> Vec<Branch> {
        let groups = &self.classes.list[class].groups;
        let branch = |part: &Part| {
            let class = &self.classes.list[part.class];
            let below = match part.below.threads < class.cpus {
                true => self.branches(part.class, &part.below),
                false => Vec::new(),
            };
            Branch {
                units: part.units,
                level: class.level().unwrap_or(Level::Cpu),
                class: self.label(groups, part.class),
                below,
            }
        };
        occupancy.parts.iter().map(branch).collect()
    }
}

fn wanted_units(shape: &Shape) -> [Option<usize>; Level::ALL.len()] {
    let Shape {
        packages,
        numa_nodes,
        llcs,
        cores,
        cpus,
        cpus_per_core: _,
    } = *shape;
    [packages, numa_nodes, llcs, cores, cpus]
}

/// The even placement with these numbers of units that uses most at the open levels, the first in a
/// tie.
fn most_spread<'a>(
    even: &'a [Even],
    wanted: &[Option<usize>; Level::ALL.len()],
) -> Option<&'a Occupancy> {
    let fits = |even: &&Even| {
        let mut pairs = wanted.iter().zip(&even.used);
        pairs.all(|(wanted, used)| wanted.is_none_or(|wanted| wanted == *used))
    };
    let fitting = even.iter().rev().filter(fits);
    fitting
        .max_by_key(|even| even.used)
        .map(|even| &even.occupancy)
}

fn many(units: usize, level: Level) -> String {
    let plural = if units == 1 { "" } else { "s" };
    format!("{units} {}{plural}", level.noun())
}

/// A, B, …, Z, A1, B1, …
fn letters(index: usize) -> String {
    let letter = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[index % 26] as char;
    match index / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}
