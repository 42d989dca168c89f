//! The machine as a typed tree, and a hash of its shape.
//!
//! Levels do not nest in one fixed order on every machine (a NUMA node may be
//! smaller or larger than a last-level cache), so the tree is built by set
//! inclusion. Machines whose trees are equal up to the order of children have
//! the same hash (the canonical form of Aho, Hopcroft and Ullman, 1974, section
//! 3.2); others have different ones, but for collisions.

use std::cmp::Reverse;

use super::{CpuSet, Level, Topology};

/// What a node of the tree represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeKind {
    /// The whole machine.
    Machine,
    /// A unit of one of the levels.
    Unit(Level),
}

/// A unit with the units inside it. Output that shows more than the levels (every cache, measured
/// groups) has its own kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node<K = NodeKind> {
    /// What the node represents.
    pub kind: K,
    /// Its CPUs.
    pub cpus: CpuSet,
    /// Units directly inside it, by lowest CPU.
    pub children: Vec<Self>,
}

impl Node {
    /// The FNV-1a hash of the kind and the sorted hashes of the children.
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
        fnv1a(bytes)
    }
}

/// The hash of Fowler, Noll and Vo (FNV-1a, 64 bits): the same on every machine
/// and in every version of pinwise.
pub fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mix = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl<K> Node<K> {
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

    /// Nests sets of CPUs below a root that holds all of `within`: each set goes below the smallest
    /// set that contains it, and of equal sets the later below the earlier. A set is left out if it
    /// is empty, reaches beyond `within`, or partly overlaps a larger set or an earlier one of its
    /// size.
    #[must_use]
    pub fn nest(root: K, within: CpuSet, mut units: Vec<(K, CpuSet)>) -> Self {
        units.retain(|(_, set)| !set.is_empty() && set.is_subset(&within));
        units.sort_by_key(|(_, set)| Reverse(set.len()));
        // The smallest unit so far that holds each CPU, 0 for the root. Comparing each unit with
        // its siblings instead took seconds for 8,000 CPUs.
        let mut smallest = vec![0; within.last().map_or(0, |last| last + 1)];
        let mut placed: Vec<(usize, Self)> = Vec::new();
        for (kind, cpus) in units {
            let mut parents: Vec<usize> = cpus.iter().map(|cpu| smallest[cpu]).collect();
            parents.dedup();
            if let [parent] = parents[..] {
                for cpu in cpus.iter() {
                    smallest[cpu] = placed.len() + 1;
                }
                placed.push((parent, Self::new_leaf(kind, cpus)));
            }
        }
        assemble_tree(Self::new_leaf(root, within), placed)
    }

    const fn new_leaf(kind: K, cpus: CpuSet) -> Self {
        Self {
            kind,
            cpus,
            children: Vec::new(),
        }
    }
}

/// The tree of the units of `topology`, each limited to the CPUs in `within`.
pub(super) fn build_tree(topology: &Topology, within: &CpuSet) -> Node {
    let restrict = |level: Level| {
        let sets = topology.units(level);
        sets.into_iter()
            .map(move |set| (level, set.intersection(within)))
    };
    // Equal sets nest in the order of the levels.
    let units = Level::ALL
        .into_iter()
        .flat_map(restrict)
        .map(|(level, set)| (NodeKind::Unit(level), set));
    Node::nest(NodeKind::Machine, within.clone(), units.collect())
}

/// Puts every unit into its parent: 0 is the root, `n` the n-th of `placed`, which precedes all its
/// contents.
fn assemble_tree<K>(mut root: Node<K>, mut placed: Vec<(usize, Node<K>)>) -> Node<K> {
    while let Some((parent, mut node)) = placed.pop() {
        node.children.sort_by_key(|child| child.cpus.first());
        match parent.checked_sub(1) {
            Some(index) => placed[index].1.children.push(node),
            None => root.children.push(node),
        }
    }
    root.children.sort_by_key(|child| child.cpus.first());
    root
}
