//! The machine as a typed tree, and a hash of its shape.
//!
//! Levels do not nest in one fixed order on every machine (a NUMA node may be
//! smaller or larger than a last-level cache), so the tree is built by set
//! inclusion. Two machines have the same hash exactly when their trees are
//! equal up to the order of children (the canonical form of Aho, Hopcroft and
//! Ullman, 1974, section 3.2).

use super::{CpuSet, Level, Topology};

/// What a node of the tree stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// The whole machine.
    Machine,
    /// A unit of one of the levels.
    Unit(Level),
}

/// A unit with the units inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Units directly inside it, by lowest CPU.
    pub children: Vec<Self>,
}

impl Node {
    /// FNV-1a over the kind and the sorted hashes of the children.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let mut below: Vec<u64> = self.children.iter().map(Self::hash).collect();
        below.sort_unstable();
        let tag: u8 = match self.kind {
            NodeKind::Machine => 0,
            NodeKind::Unit(Level::Package) => 1,
            NodeKind::Unit(Level::Numa) => 2,
            NodeKind::Unit(Level::Llc) => 3,
            NodeKind::Unit(Level::Core) => 4,
            NodeKind::Unit(Level::Cpu) => 5,
        };
        let bytes = std::iter::once(tag).chain(below.into_iter().flat_map(u64::to_le_bytes));
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }

    /// Calls `visit` with every node and its depth, parents first.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Self, usize)) {
        self.walk_from(0, visit);
    }

    fn walk_from<'a>(&'a self, depth: usize, visit: &mut impl FnMut(&'a Self, usize)) {
        visit(self, depth);
        for child in &self.children {
            child.walk_from(depth + 1, visit);
        }
    }

    /// Puts a unit where it belongs; one that overlaps a sibling without
    /// containing it is left out.
    fn place(&mut self, unit: Self) {
        if let Some(home) = self
            .children
            .iter_mut()
            .find(|child| unit.cpus.is_subset(&child.cpus))
        {
            home.place(unit);
        } else if !self.children.iter().any(|c| c.cpus.intersects(&unit.cpus)) {
            self.children.push(unit);
        }
    }

    fn sort(&mut self) {
        self.children.sort_by_key(|child| child.cpus.first());
        for child in &mut self.children {
            child.sort();
        }
    }
}

/// The tree of the units of `topology`, each cut to the CPUs in `within`.
pub(super) fn build(topology: &Topology, within: &CpuSet) -> Node {
    let cut = |level: Level| {
        let sets = topology.units(level);
        sets.into_iter()
            .map(move |set| (level, set.intersection(within)))
    };
    let mut units: Vec<(Level, CpuSet)> = Level::ALL.into_iter().flat_map(cut).collect();
    units.retain(|(_, set)| !set.is_empty());
    // Larger sets first; equal sets in the order of the levels.
    units.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(&b.0)));
    let mut root = Node {
        kind: NodeKind::Machine,
        cpus: within.clone(),
        children: Vec::new(),
    };
    for (level, cpus) in units {
        root.place(Node {
            kind: NodeKind::Unit(level),
            cpus,
            children: Vec::new(),
        });
    }
    root.sort();
    root
}
