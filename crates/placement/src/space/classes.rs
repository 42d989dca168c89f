//! Units of a machine and their classes.
//!
//! Two units are of one class exactly when the trees below them are equal up to the order of
//! children, kinds of cores included: the canonical form of Aho, Hopcroft and Ullman (1974, section
//! 3.2) with the kinds at the leaves. A unit whose only child has the same CPUs is merged with it
//! and has the levels of both.

use std::collections::{BTreeMap, BTreeSet};

use crate::branches::level_letter;
use pinwise_topology::{Level, Node, NodeKind, Topology};

/// The common properties of equal units.
#[derive(Debug, Clone)]
pub(super) struct Class {
    /// Levels of a unit of this class, outermost first.
    pub(super) levels: Vec<Level>,
    /// Its children, sorted by class; empty for a CPU.
    pub(super) groups: Vec<Group>,
    /// Number of CPUs.
    pub(super) cpus: usize,
    /// Kinds of its CPUs as indices into [`Classes::kinds`].
    pub(super) kinds: BTreeSet<usize>,
    /// This class and every class inside it.
    pub(super) within: BTreeSet<usize>,
    /// The canonical form.
    text: String,
}

/// Children of one class, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) class: usize,
    pub(super) units: usize,
}

/// A unit with its CPU numbers.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    pub(super) class: usize,
    /// The CPU, if the unit is a single one.
    pub(super) cpu: Option<usize>,
    /// Is it the core of CPU 0?
    pub(super) is_boot_core: bool,
    /// Children in the order of the tree.
    pub(super) children: Vec<Self>,
}

/// A machine's units with their classes.
#[derive(Debug, Clone)]
pub(super) struct Classes {
    /// Fastest kind first, then the largest, then by canonical form: the same on machines of equal
    /// trees.
    pub(super) list: Vec<Class>,
    pub(super) root: Unit,
    /// Names of kinds, slowest first.
    pub(super) kinds: Vec<String>,
}

impl Classes {
    pub(super) fn from_topology(topology: &Topology) -> Self {
        let mut interner = ClassInterner {
            topology,
            known: BTreeMap::new(),
            list: Vec::new(),
        };
        let root = interner.intern_unit(&topology.allowed_tree());
        let mut classes = Self {
            list: interner.list,
            root,
            kinds: list_kind_names(topology),
        };
        classes.sort();
        classes
    }

    /// The canonical form of the whole machine.
    pub(super) fn text(&self) -> &str {
        &self.list[self.root.class].text
    }

    /// Numbers classes in an order that equal trees share.
    fn sort(&mut self) {
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by(|&a, &b| {
            let (a, b) = (&self.list[a], &self.list[b]);
            let fastest = b.kinds.last().cmp(&a.kinds.last());
            fastest
                .then(b.cpus.cmp(&a.cpus))
                .then_with(|| a.text.cmp(&b.text))
        });
        let mut new_numbers = vec![0; order.len()];
        for (new, &old) in order.iter().enumerate() {
            new_numbers[old] = new;
        }
        for class in &mut self.list {
            for group in &mut class.groups {
                group.class = new_numbers[group.class];
            }
            class.groups.sort_by_key(|group| group.class);
            class.within = class.within.iter().map(|&old| new_numbers[old]).collect();
        }
        let mut sorted: Vec<(usize, Class)> = new_numbers
            .iter()
            .copied()
            .zip(std::mem::take(&mut self.list))
            .collect();
        sorted.sort_by_key(|(new, _)| *new);
        self.list = sorted.into_iter().map(|(_, class)| class).collect();
        self.root.renumber(&new_numbers);
    }
}

impl Class {
    /// Is it a single CPU, perhaps merged with the units that contain only this CPU?
    pub(super) fn is_cpu(&self) -> bool {
        self.levels.last() == Some(&Level::Cpu)
    }

    /// The level that names its units; `None` for the machine.
    pub(super) fn level(&self) -> Option<Level> {
        self.levels.first().copied()
    }
}

impl Unit {
    fn renumber(&mut self, new_numbers: &[usize]) {
        self.class = new_numbers[self.class];
        for child in &mut self.children {
            child.renumber(new_numbers);
        }
    }
}

/// Names of the kinds of CPU; equal names are numbered.
fn list_kind_names(topology: &Topology) -> Vec<String> {
    let names: Vec<&str> = topology.kinds.iter().map(|k| k.name.as_str()).collect();
    let number_if_equal = |(index, name): (usize, &&str)| {
        let others = names.iter().filter(|other| *other == name).count();
        if others > 1 {
            format!("{name}{index}")
        } else {
            (*name).to_owned()
        }
    };
    names.iter().enumerate().map(number_if_equal).collect()
}

/// What distinguishes classes: levels, kind of the CPU, children by class.
type Signature = (Vec<Level>, Option<usize>, Vec<Group>);

/// Gives equal units the same class.
struct ClassInterner<'a> {
    topology: &'a Topology,
    known: BTreeMap<Signature, usize>,
    list: Vec<Class>,
}

impl ClassInterner<'_> {
    fn intern_unit(&mut self, node: &Node) -> Unit {
        let mut levels = Vec::new();
        let mut node = node;
        loop {
            if let NodeKind::Unit(level) = node.kind {
                levels.push(level);
            }
            match &node.children[..] {
                [only] if only.cpus == node.cpus => node = only,
                _ => break,
            }
        }
        let children: Vec<Unit> = node.children.iter().map(|n| self.intern_unit(n)).collect();
        let is_leaf = levels.last() == Some(&Level::Cpu);
        let cpu = node.cpus.first().filter(|_| is_leaf);
        let is_boot_core = levels.contains(&Level::Core) && node.cpus.contains(0);
        let kind = cpu
            .and_then(|id| self.topology.cpu(id))
            .and_then(|cpu| cpu.kind);
        Unit {
            class: self.intern_class(levels, kind, &children),
            cpu,
            is_boot_core,
            children,
        }
    }

    fn intern_class(
        &mut self,
        levels: Vec<Level>,
        kind: Option<usize>,
        children: &[Unit],
    ) -> usize {
        let mut counted: BTreeMap<usize, usize> = BTreeMap::new();
        for child in children {
            *counted.entry(child.class).or_default() += 1;
        }
        let groups: Vec<Group> = counted
            .into_iter()
            .map(|(class, units)| Group { class, units })
            .collect();
        let signature = (levels.clone(), kind, groups.clone());
        if let Some(&known) = self.known.get(&signature) {
            return known;
        }
        let number = self.list.len();
        let class = self.new_class(number, levels, kind, groups);
        self.list.push(class);
        self.known.insert(signature, number);
        number
    }

    fn new_class(
        &self,
        number: usize,
        levels: Vec<Level>,
        kind: Option<usize>,
        groups: Vec<Group>,
    ) -> Class {
        let below = || {
            groups
                .iter()
                .map(|group| (&self.list[group.class], group.units))
        };
        let mut inner: Vec<String> = below().map(|(c, n)| format!("{n}{}", c.text)).collect();
        inner.sort();
        let kind_name = kind.and_then(|kind| self.topology.kinds.get(kind));
        let text = format!(
            "{}{}({})",
            levels
                .iter()
                .map(|&level| level_letter(level))
                .collect::<String>(),
            kind_name.map_or("", |kind| kind.name.as_str()),
            inner.join(",")
        );
        let own_cpus = usize::from(levels.last() == Some(&Level::Cpu));
        let mut within: BTreeSet<usize> = below().flat_map(|(c, _)| c.within.clone()).collect();
        within.insert(number);
        let mut kinds: BTreeSet<usize> = below().flat_map(|(c, _)| c.kinds.clone()).collect();
        kinds.extend(kind);
        Class {
            levels,
            cpus: own_cpus + below().map(|(c, n)| c.cpus * n).sum::<usize>(),
            groups,
            kinds,
            within,
            text,
        }
    }
}
