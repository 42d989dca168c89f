//! Stacks folded into a tree of calls, the input of flame graphs.
//!
//! Nothing is lost: the own amounts of all nodes sum to those of the stacks, even after small parts
//! were left out.

use std::collections::BTreeMap;

use super::{Amount, Function};

/// Limits the depth; time of deeper calls counts for the deepest function that is kept.
const MAX_DEPTH: usize = 400;

/// A function as called from the nodes above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Which function.
    pub function: Function,
    /// Index of its caller, which comes before it; `None` at the root.
    pub parent: Option<usize>,
    /// Time in its own code.
    pub own: Amount,
    /// Time in it and the functions that it called.
    pub total: Amount,
}

/// The stored part of a [`Node`], from which totals follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWithoutTotal {
    /// Which function.
    pub function: Function,
    /// Index of its caller; `None` at the root.
    pub parent: Option<usize>,
    /// Time in its own code.
    pub own: Amount,
}

/// All stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Callers before callees.
    nodes: Vec<Node>,
    /// Nodes by caller and function.
    places: BTreeMap<(Option<usize>, Function), usize>,
}

impl Tree {
    /// Rebuilds a tree from its nodes; `None` if a caller does not precede its callee.
    #[must_use]
    pub fn from_nodes(nodes: Vec<NodeWithoutTotal>) -> Option<Self> {
        let mut tree = Self::default();
        for NodeWithoutTotal {
            function,
            parent,
            own,
        } in nodes
        {
            if parent.is_some_and(|parent| parent >= tree.nodes.len()) {
                return None;
            }
            let at = tree.push(parent, function);
            tree.nodes[at].own += own;
        }
        tree.sum_totals();
        Some(tree)
    }

    /// Callers before callees.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The total of all stacks.
    #[must_use]
    pub fn total(&self) -> Amount {
        self.nodes.iter().map(|node| node.own).sum()
    }

    /// Adds a stack, outermost function first. One without functions counts as left out.
    pub fn add(&mut self, stack: impl IntoIterator<Item = Function>, amount: Amount) {
        let mut at = None;
        for function in stack.into_iter().take(MAX_DEPTH) {
            at = Some(self.child_of(at, function));
        }
        let at = at.unwrap_or_else(|| self.child_of(None, Function::left_out()));
        self.nodes[at].own += amount;
        let mut above = Some(at);
        while let Some(at) = above {
            self.nodes[at].total += amount;
            above = self.nodes[at].parent;
        }
    }

    /// Keeps this many nodes with the largest totals; the others count as left out, below their
    /// callers. Also returns the amount left out.
    #[must_use]
    pub fn keep_largest(&self, max_nodes: usize) -> (Self, Amount) {
        let mut by_size: Vec<usize> = (0..self.nodes.len()).collect();
        // Callers have at least their callees' total and sort first: none is kept without its
        // caller.
        by_size.sort_by_key(|&at| (std::cmp::Reverse(self.nodes[at].total.cpu_ns), at));
        let mut is_kept = vec![false; self.nodes.len()];
        by_size
            .iter()
            .take(max_nodes)
            .for_each(|&at| is_kept[at] = true);
        let mut bounded = Self::default();
        let mut left_out = Amount::default();
        // For each node, the index of the node that counts its time: the same one, or what its caller
        // left out.
        let mut counted_at: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let parent = node.parent.map(|parent| counted_at[parent]);
            let place = if is_kept[at] {
                bounded.child_of(parent, node.function.clone())
            } else if parent.is_some_and(|p| bounded.nodes[p].function == Function::left_out()) {
                parent.unwrap_or_default()
            } else {
                bounded.child_of(parent, Function::left_out())
            };
            if !is_kept[at] {
                left_out += node.own;
            }
            bounded.nodes[place].own += node.own;
            counted_at.push(place);
        }
        bounded.sum_totals();
        (bounded, left_out)
    }

    /// Each stack that was seen, outermost first, with its amount.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<&Function>, Amount)> {
        let seen = self.nodes.iter().enumerate();
        seen.filter(|(_, node)| node.own.samples > 0)
            .map(|(at, node)| (self.path(at), node.own))
    }

    /// The functions from the root to a node.
    #[must_use]
    pub fn path(&self, at: usize) -> Vec<&Function> {
        let mut path = Vec::new();
        let mut above = self.nodes.get(at);
        while let Some(node) = above {
            path.push(&node.function);
            above = node.parent.and_then(|parent| self.nodes.get(parent));
        }
        path.reverse();
        path
    }

    /// Index of a function as called from a node; adds it if it is new.
    fn child_of(&mut self, parent: Option<usize>, function: Function) -> usize {
        let place = (parent, function);
        if let Some(&at) = self.places.get(&place) {
            return at;
        }
        let (parent, function) = place;
        self.push(parent, function)
    }

    fn push(&mut self, parent: Option<usize>, function: Function) -> usize {
        let at = self.nodes.len();
        self.places.insert((parent, function.clone()), at);
        self.nodes.push(Node {
            function,
            parent,
            own: Amount::default(),
            total: Amount::default(),
        });
        at
    }

    /// Computes totals from the nodes' own amounts.
    fn sum_totals(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let own = self.nodes[at].own;
            self.nodes[at].total += own;
            let total = self.nodes[at].total;
            if let Some(parent) = self.nodes[at].parent {
                self.nodes[parent].total += total;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use proptest::prelude::*;

    fn function(number: u8) -> Function {
        Function {
            name: format!("f{number}"),
            module: "prog".to_owned(),
            kind: Kind::User,
        }
    }

    fn tree(stacks: &[(Vec<u8>, u64)]) -> Tree {
        let mut tree = Tree::default();
        for (stack, samples) in stacks {
            let functions = stack.iter().map(|&number| function(number));
            let amount = Amount {
                samples: *samples,
                cpu_ns: 1_000_000 * samples,
            };
            tree.add(functions, amount);
        }
        tree
    }

    #[test]
    fn common_callers_share_a_node() {
        let tree = tree(&[(vec![1, 2], 3), (vec![1, 3], 4), (vec![1], 1)]);
        assert_eq!(tree.nodes().len(), 3);
        assert_eq!(tree.nodes()[0].total.samples, 8);
        assert_eq!(tree.nodes()[0].own.samples, 1);
        let (bounded, left_out) = tree.keep_largest(2);
        assert_eq!(left_out.samples, 3);
        let names: Vec<&str> = bounded
            .nodes()
            .iter()
            .map(|node| node.function.name.as_str())
            .collect();
        assert_eq!(names, ["f1", "[left out]", "f3"]);
    }

    #[test]
    fn a_tree_with_callees_before_callers_is_refused() {
        let nodes = vec![NodeWithoutTotal {
            function: function(1),
            parent: Some(0),
            own: Amount::default(),
        }];
        assert!(Tree::from_nodes(nodes).is_none());
    }

    fn stacks() -> impl Strategy<Value = Vec<(Vec<u8>, u64)>> {
        prop::collection::vec((prop::collection::vec(0u8..5, 0..6), 1u64..50), 0..30)
    }

    proptest! {
        #[test]
        fn folding_conserves_totals(stacks in stacks(), max_nodes in 0usize..40) {
            let truth: u64 = stacks.iter().map(|(_, samples)| samples).sum();
            let tree = tree(&stacks);
            prop_assert_eq!(tree.total().samples, truth);
            let (bounded, left_out) = tree.keep_largest(max_nodes);
            prop_assert_eq!(bounded.total().samples, truth);
            prop_assert!(left_out.samples <= truth);
            let roots = |tree: &Tree| -> u64 {
                let nodes = tree.nodes().iter();
                nodes.filter(|n| n.parent.is_none()).map(|n| n.total.samples).sum()
            };
            prop_assert_eq!(roots(&tree), truth);
            prop_assert_eq!(roots(&bounded), truth);
            let folded: u64 = bounded.stacks().map(|(_, amount)| amount.samples).sum();
            prop_assert_eq!(folded, truth);
        }

        #[test]
        fn a_tree_can_be_rebuilt_from_its_nodes(stacks in stacks()) {
            let tree = tree(&stacks);
            let nodes = tree.nodes().iter();
            let stored = |node: &Node| NodeWithoutTotal {
                function: node.function.clone(),
                parent: node.parent,
                own: node.own,
            };
            let nodes = nodes.map(stored).collect();
            prop_assert_eq!(Tree::from_nodes(nodes), Some(tree));
        }
    }
}
