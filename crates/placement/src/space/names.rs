//! Names of placements, and their parser: `shape:…` if numbers of units and an even spread suffice,
//! else `tree:…`, which describes any placement.

use super::classes::Group;
use super::shapes::EvenPlacement;
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
    /// numbers, the one with the most units of the outermost level without a number, then of the
    /// next.
    pub(crate) fn spread_evenly(&self, shape: &Shape, cpus: usize) -> Result<CpuSet, Lacking> {
        let even = self.list_even_placements(cpus);
        let found = most_spread(&even, &wanted_units(shape));
        let found = found.ok_or_else(|| Lacking {
            wanted: format!(
                "{} spread evenly over that many units",
                format_units(cpus, Level::Cpu)
            ),
            from: "this machine".to_owned(),
        })?;
        Ok(self.choose(found))
    }

    /// The CPUs of a `tree:`.
    pub(crate) fn realise(&self, branches: &Branches) -> Result<CpuSet, Lacking> {
        let root = self.classes.root.class;
        Ok(self.choose(&self.resolve_branches(root, &branches.0, "this machine")?))
    }

    fn resolve_branches(
        &self,
        class: usize,
        branches: &[Branch],
        from: &str,
    ) -> Result<Occupancy, Lacking> {
        if branches.is_empty() {
            return Ok(self.use_all_cpus(class));
        }
        let mut parts: Vec<Part> = Vec::new();
        for branch in branches {
            let group = self.find_group(class, branch, from)?;
            let used_units = parts.iter().filter(|part| part.class == group.class);
            let used_units: usize = used_units.map(|part| part.units).sum();
            if branch.units > group.units - used_units {
                return Err(Lacking {
                    wanted: format_units(used_units + branch.units, branch.level),
                    from: format!("{from}, which has {}", group.units),
                });
            }
            let inside = format!("one {}", branch.level.noun());
            parts.push(Part {
                class: group.class,
                units: branch.units,
                below: self.resolve_branches(group.class, &branch.below, &inside)?,
            });
        }
        Ok(Occupancy::from_parts(parts))
    }

    /// The children of a unit that a branch selects.
    fn find_group(&self, class: usize, branch: &Branch, from: &str) -> Result<Group, Lacking> {
        let groups = &self.classes.list[class].groups;
        let named: Vec<(Group, Option<String>)> = groups
            .iter()
            .map(|group| (*group, self.find_label(groups, group.class)))
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
                wanted: format!("{}{kinds}", format_units(branch.units, branch.level)),
                from: from.to_owned(),
            }
        })
    }

    /// All CPUs of a unit.
    fn use_all_cpus(&self, class: usize) -> Occupancy {
        let class = &self.classes.list[class];
        if class.is_cpu() {
            return Occupancy::used_cpu();
        }
        let part = |group: &Group| Part {
            class: group.class,
            units: group.units,
            below: self.use_all_cpus(group.class),
        };
        Occupancy::from_parts(class.groups.iter().map(part).collect())
    }

    /// What distinguishes a class from its siblings of the same level: its kind of CPU if all kinds
    /// differ, else a letter in the order of classes.
    fn find_label(&self, siblings: &[Group], class: usize) -> Option<String> {
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
            None => same
                .iter()
                .position(|&other| other == class)
                .map(index_label),
        }
    }

    /// Names a placement, given the even placements of as many threads.
    pub(super) fn name_even(&self, occupancy: &Occupancy, even: &[EvenPlacement]) -> Placement {
        let own = even.iter().find(|even| even.occupancy == *occupancy);
        let unique =
            own.filter(|own| even.iter().filter(|other| other.used == own.used).count() == 1);
        let shape = unique.map(|own| self.name_shape(own));
        let wish = shape.filter(|shape| {
            most_spread(even, &wanted_units(shape)).is_some_and(|found| found == occupancy)
        });
        let root = self.classes.root.class;
        Placement::new(match wish {
            Some(shape) => Wish::Shape(shape),
            None => Wish::Tree(Branches(self.list_branches(root, occupancy))),
        })
    }

    /// The numbers of units at the levels that distinguish placements.
    fn name_shape(&self, even: &EvenPlacement) -> Shape {
        let units = |level: Level| {
            self.is_distinguishing(level)
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

    /// Is this level of use in a shape: are there several of its units, which are neither CPUs nor
    /// the same as the units of the level around them?
    fn is_distinguishing(&self, level: Level) -> bool {
        let root = self.classes.root.class;
        let others = self.classes.list.iter().enumerate();
        let mut others = others.filter(|(number, _)| *number != root).map(|(_, c)| c);
        others.any(|class| class.level() == Some(level) && !class.is_cpu())
    }

    fn list_branches(&self, class: usize, occupancy: &Occupancy) -> Vec<Branch> {
        let groups = &self.classes.list[class].groups;
        let branch = |part: &Part| {
            let class = &self.classes.list[part.class];
            let below = match part.below.threads < class.cpus {
                true => self.list_branches(part.class, &part.below),
                false => Vec::new(),
            };
            Branch {
                units: part.units,
                level: class.level().unwrap_or(Level::Cpu),
                class: self.find_label(groups, part.class),
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

/// The even placement with these numbers of units that uses most units at the levels without a
/// number, the first in a tie.
fn most_spread<'a>(
    even: &'a [EvenPlacement],
    wanted: &[Option<usize>; Level::ALL.len()],
) -> Option<&'a Occupancy> {
    let fits = |even: &&EvenPlacement| {
        let mut pairs = wanted.iter().zip(&even.used);
        pairs.all(|(wanted, used)| wanted.is_none_or(|wanted| wanted == *used))
    };
    let fitting = even.iter().rev().filter(fits);
    fitting
        .max_by_key(|even| even.used)
        .map(|even| &even.occupancy)
}

fn format_units(units: usize, level: Level) -> String {
    let plural = if units == 1 { "" } else { "s" };
    format!("{units} {}{plural}", level.noun())
}

/// A, B, …, Z, A1, B1, …
fn index_label(index: usize) -> String {
    let letter = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[index % 26] as char;
    match index / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}
