//! Two profiles, subtracted per unit of work.
//!
//! Shares mislead here: a program that spins twice as long spends hardly more *per cent* of its
//! time spinning. So times are divided by the work done (runs, items, requests, seconds), and then
//! subtracted.

use std::collections::{BTreeMap, BTreeSet};

use super::function::file_name;
use super::{Amount, Function, Kind, Pausing, Profile};

/// Half-width of a 95 % interval, in standard errors.
const Z_95: f64 = 1.96;

/// A profile with its amount of work.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Units of work done while sampling, above 0.
    pub units: f64,
    /// Path or name of the program, so that an old and a new build count as the same.
    pub program: &'a str,
    /// Length of a PAUSE on its machine, ns, if known.
    pub pause_ns: Option<f64>,
}

/// CPU time per unit of work, before and after.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Change {
    /// The sampled amount before.
    pub before: Amount,
    /// The sampled amount after.
    pub after: Amount,
    /// CPU time per unit before, s.
    pub before_s: f64,
    /// CPU time per unit after, s.
    pub after_s: f64,
    /// Standard error of the difference by counting samples, s. Variation between runs is excluded.
    pub error_s: f64,
}

impl Change {
    fn between(before: Amount, after: Amount, units: (f64, f64)) -> Self {
        let errors = (before.error_s() / units.0, after.error_s() / units.1);
        Self {
            before,
            after,
            before_s: before.cpu_s() / units.0,
            after_s: after.cpu_s() / units.1,
            error_s: errors.0.hypot(errors.1),
        }
    }

    /// After minus before, s per unit.
    #[must_use]
    pub fn delta_s(&self) -> f64 {
        self.after_s - self.before_s
    }

    /// Half-width of the interval of the difference, s per unit.
    #[must_use]
    pub fn interval_s(&self) -> f64 {
        Z_95 * self.error_s
    }

    /// Could the change be chance?
    #[must_use]
    pub fn is_noise(&self) -> bool {
        self.delta_s().abs() <= self.interval_s()
    }
}

/// A function, before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionChange {
    /// The function; as after, if present there.
    pub function: Function,
    /// Time in its own code.
    pub own: Change,
    /// Time in it and the functions that it called.
    pub total: Change,
    /// Part of its own time that waits in spin hints.
    pub waits: Change,
}

/// A function as called from others, before and after.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeChange {
    /// The function; as after, if present there.
    pub function: Function,
    /// Index of its caller, which comes before it.
    pub parent: Option<usize>,
    /// Time in its own code.
    pub own: Change,
    /// Time in it and the functions that it called.
    pub total: Change,
}

/// The changes between two profiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// All CPU time.
    pub total: Change,
    /// CPU time that waits in spin hints.
    pub waits: Change,
    /// Functions, the largest change of own time first, whatever its sign.
    pub functions: Vec<FunctionChange>,
    /// Whether there are more PAUSEs or longer ones, if known.
    pub pausing: Option<Pausing>,
    /// The calls, callers before callees.
    pub nodes: Vec<NodeChange>,
}

impl Difference {
    /// `after` minus `before`.
    #[must_use]
    pub fn between(before: Side<'_>, after: Side<'_>) -> Self {
        let units = (before.units, after.units);
        let waits = Change::between(before.profile.waits, after.profile.waits, units);
        Self {
            total: Change::between(before.profile.total, after.profile.total, units),
            functions: compare_functions(before, after),
            pausing: Pausing::from_waits(&waits, before.pause_ns, after.pause_ns),
            nodes: join_trees(before, after),
            waits,
        }
    }
}

/// Identifies a function in both profiles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    kind: Kind,
    name: String,
    /// Empty for the program itself; for libraries without their version.
    module: String,
}

impl Identity {
    fn from_function(function: &Function, side: Side<'_>) -> Self {
        let file = function.file_name();
        let module = if file == file_name(side.program) {
            ""
        } else {
            match file.find(".so") {
                Some(end) => &file[..end],
                None => file,
            }
        };
        Self {
            kind: function.kind,
            name: function.name.clone(),
            module: module.to_owned(),
        }
    }
}

/// A function before and after.
#[derive(Debug, Default)]
struct BothAmounts<'a> {
    function: Option<&'a Function>,
    /// Amounts of its own, in total, and of waits.
    before: [Amount; 3],
    after: [Amount; 3],
}

fn compare_functions(before: Side<'_>, after: Side<'_>) -> Vec<FunctionChange> {
    let mut all: BTreeMap<Identity, BothAmounts<'_>> = BTreeMap::new();
    let amounts = |time: &super::FunctionTime| [time.own, time.total, time.waits];
    let moved = find_moved(before, after);
    for time in &before.profile.functions {
        let mut identity = Identity::from_function(&time.function, before);
        if let Some(module) = moved.get(&(identity.kind, identity.name.clone())) {
            identity.module.clone_from(module);
        }
        let both = all.entry(identity).or_default();
        both.function = Some(&time.function);
        both.before = add_amounts(both.before, amounts(time));
    }
    for time in &after.profile.functions {
        let both = all
            .entry(Identity::from_function(&time.function, after))
            .or_default();
        both.function = Some(&time.function);
        both.after = add_amounts(both.after, amounts(time));
    }
    let units = (before.units, after.units);
    let mut changes: Vec<FunctionChange> = all
        .into_values()
        .filter_map(|both| {
            let change = |at: usize| Change::between(both.before[at], both.after[at], units);
            Some(FunctionChange {
                function: both.function?.clone(),
                own: change(0),
                total: change(1),
                waits: change(2),
            })
        })
        .collect();
    changes.sort_by(|a, b| {
        let size = |change: &FunctionChange| change.own.delta_s().abs();
        let by_size = size(b).total_cmp(&size(a));
        by_size.then_with(|| a.function.cmp(&b.function))
    });
    changes
}

fn add_amounts(sum: [Amount; 3], more: [Amount; 3]) -> [Amount; 3] {
    let mut all = sum;
    all.iter_mut()
        .zip(more)
        .for_each(|(sum, more)| *sum += more);
    all
}

/// Functions that moved to another module: their name occurs only once on each side, in modules
/// that the other side lacks. The value is their module after.
fn find_moved(before: Side<'_>, after: Side<'_>) -> BTreeMap<(Kind, String), String> {
    let unmatched = |side: Side<'_>, other: Side<'_>| {
        let known: BTreeSet<Identity> = list_identities(other).collect();
        let mut found: BTreeMap<(Kind, String), Vec<String>> = BTreeMap::new();
        for identity in list_identities(side).filter(|identity| !known.contains(identity)) {
            let place = found.entry((identity.kind, identity.name)).or_default();
            place.push(identity.module);
        }
        found
    };
    let only_before = unmatched(before, after);
    let only_after = unmatched(after, before);
    only_after
        .into_iter()
        .filter(|((_, name), modules)| modules.len() == 1 && !name.starts_with("0x"))
        .filter(|(place, _)| {
            only_before
                .get(place)
                .is_some_and(|modules| modules.len() == 1)
        })
        .filter_map(|(place, modules)| Some((place, modules.into_iter().next()?)))
        .collect()
}

fn list_identities(side: Side<'_>) -> impl Iterator<Item = Identity> {
    let functions = side.profile.functions.iter();
    functions.map(move |time| Identity::from_function(&time.function, side))
}

/// Joins both trees to one.
fn join_trees(before: Side<'_>, after: Side<'_>) -> Vec<NodeChange> {
    let mut joined = JoinedTree::default();
    joined.add(before, |node, amounts| node.before = amounts);
    joined.add(after, |node, amounts| node.after = amounts);
    let units = (before.units, after.units);
    let nodes = joined.nodes.into_iter();
    nodes
        .map(|node| NodeChange {
            own: Change::between(node.before.0, node.after.0, units),
            total: Change::between(node.before.1, node.after.1, units),
            function: node.function,
            parent: node.parent,
        })
        .collect()
}

/// A node of both trees; its amounts are its own and its total.
#[derive(Debug)]
struct JoinedNode {
    function: Function,
    parent: Option<usize>,
    before: (Amount, Amount),
    after: (Amount, Amount),
}

#[derive(Debug, Default)]
struct JoinedTree {
    nodes: Vec<JoinedNode>,
    places: BTreeMap<(Option<usize>, Identity), usize>,
}

impl JoinedTree {
    fn add(&mut self, side: Side<'_>, set: impl Fn(&mut JoinedNode, (Amount, Amount))) {
        let mut places: Vec<usize> = Vec::new();
        for node in side.profile.tree.nodes() {
            let parent = node.parent.map(|parent| places[parent]);
            let identity = Identity::from_function(&node.function, side);
            let next = self.nodes.len();
            let at = *self.places.entry((parent, identity)).or_insert(next);
            if at == next {
                self.nodes.push(JoinedNode {
                    function: node.function.clone(),
                    parent,
                    before: <_>::default(),
                    after: <_>::default(),
                });
            }
            self.nodes[at].function = node.function.clone();
            set(&mut self.nodes[at], (node.own, node.total));
            places.push(at);
        }
    }
}

#[cfg(test)]
mod tests;
