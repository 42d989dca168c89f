//! Groups of nodes that should be alike.
//!
//! Nodes with different kinds of processor are never in one group. For every other attribute, a
//! value that many nodes have makes a population of its own, such as a BIOS or kernel that is being
//! rolled out. A value that few nodes have is an anomaly: these nodes stay in the group of the
//! others, since a group of their own would be too small to compare. Populations by version or
//! tuning that are too small to be judged well also stay together; populations of different
//! hardware never do.

use crate::attributes::{ABSENT, Attribute, HARDWARE, KIND, SHAPE, SHAPING};
use crate::nodes::Nodes;
use pinwise_stats::outliers::MIN_MEMBERS;

/// A value makes a population if more than this share of the nodes have it. `find_populations` has
/// two exceptions for small groups.
const MIN_POPULATION_SHARE: f64 = 0.1;
/// Minimum size of a group by a version or a tuning: fewer nodes are judged better together with
/// others.
const MIN_TUNING_GROUP: usize = 20;
/// An attribute varies freely, such as a serial number or the name of a rack, if its populations
/// cover less than this share of the nodes.
const MIN_COVERED_SHARE: f64 = 2.0 / 3.0;

/// Nodes that should be alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The processor, and what differs from other groups with the same one.
    pub name: String,
    /// Indices into `Nodes`.
    pub nodes: Vec<usize>,
    /// The usual value of each attribute, in the order of `Attributes`; `None` if its values vary
    /// freely.
    pub(crate) usual: Vec<Option<u32>>,
}

/// A setting of a node that differs from its group's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anomaly {
    pub(crate) node: usize,
    /// Index of the attribute.
    pub(crate) attribute: usize,
    pub(crate) value: u32,
    pub(crate) usual: u32,
}

/// The values that many of some nodes have, for one attribute.
struct Populations {
    /// Values with their number of nodes, the most frequent first.
    values: Vec<(u32, usize)>,
    is_free: bool,
}

impl Populations {
    fn has(&self, value: u32) -> bool {
        self.values.iter().any(|(known, _)| *known == value)
    }
}

/// Divides a fleet's nodes into groups, the largest first.
#[must_use]
pub fn group_nodes(nodes: &Nodes) -> Vec<Group> {
    let all: Vec<usize> = (0..nodes.len()).collect();
    let kinds: Vec<&Attribute> = { KIND.iter() }
        .filter_map(|name| nodes.attributes.find(name))
        .collect();
    let mut open = vec![all];
    for kind in kinds {
        open = open
            .iter()
            .flat_map(|nodes| group_by_value(kind, nodes))
            .collect();
    }
    let mut done: Vec<Vec<usize>> = Vec::new();
    while let Some(members) = open.pop() {
        match split_by_populations(nodes, &members) {
            Some(parts) => open.extend(parts),
            None if members.is_empty() => {}
            None => done.push(members),
        }
    }
    done.sort_by_key(|members| (std::cmp::Reverse(members.len()), members.first().copied()));
    let mut groups: Vec<Group> = done
        .into_iter()
        .map(|members| make_group(nodes, members))
        .collect();
    name_groups(nodes, &mut groups);
    groups
}

/// Lists settings of a group's nodes that differ from the group's.
pub(crate) fn find_anomalies(nodes: &Nodes, group: &Group) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let columns = &nodes.attributes.columns;
    for (attribute, (column, usual)) in columns.iter().zip(&group.usual).enumerate() {
        let Some(usual) = *usual else { continue };
        let populations = find_populations(column, &group.nodes);
        for node in &group.nodes {
            let value = column.value_of(*node);
            if value != ABSENT && !populations.has(value) {
                found.push(Anomaly {
                    node: *node,
                    attribute,
                    value,
                    usual,
                });
            }
        }
    }
    remove_consequences(nodes, found)
}

/// Drops an anomaly of the shape if another anomaly of the same node explains it.
fn remove_consequences(nodes: &Nodes, found: Vec<Anomaly>) -> Vec<Anomaly> {
    let name = |d: &Anomaly| nodes.attributes.columns[d.attribute].name.as_str();
    let shaped: std::collections::BTreeSet<usize> = found
        .iter()
        .filter(|d| SHAPING.contains(&name(d)))
        .map(|d| d.node)
        .collect();
    let is_consequence = |d: &Anomaly| name(d) == SHAPE && shaped.contains(&d.node);
    found
        .iter()
        .copied()
        .filter(|d| !is_consequence(d))
        .collect()
}

fn group_by_value(attribute: &Attribute, nodes: &[usize]) -> Vec<Vec<usize>> {
    let mut parts: Vec<(u32, Vec<usize>)> = Vec::new();
    for node in nodes {
        let value = attribute.value_of(*node);
        match parts.iter_mut().find(|(known, _)| *known == value) {
            Some((_, part)) => part.push(*node),
            None => parts.push((value, vec![*node])),
        }
    }
    parts.into_iter().map(|(_, part)| part).collect()
}

fn find_populations(attribute: &Attribute, nodes: &[usize]) -> Populations {
    let counts = attribute.count_values(nodes);
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let is_few = |count: usize| {
        let is_small = count as f64 <= MIN_POPULATION_SHARE * all as f64;
        // Too few to be judged by themselves, and at most a fifth.
        let is_odd = is_hardware(attribute) && count < MIN_MEMBERS && 5 * count <= all;
        is_small || is_odd || (count == 1 && all > 3)
    };
    let many = counts.iter().filter(|(_, count)| !is_few(*count));
    let covered: usize = many.clone().map(|(_, count)| count).sum();
    Populations {
        values: many.copied().collect(),
        is_free: all == 0 || (covered as f64) < MIN_COVERED_SHARE * all as f64,
    }
}

/// Splits nodes by the first attribute with several populations; `None` if no attribute has. Nodes
/// with a rare value join the part with which they agree in most other attributes.
fn split_by_populations(nodes: &Nodes, members: &[usize]) -> Option<Vec<Vec<usize>>> {
    let columns = &nodes.attributes.columns;
    let is_shape = |column: &&Attribute| column.name == SHAPE;
    let mut order: Vec<&Attribute> = columns.iter().collect();
    order.sort_by_key(is_shape);
    let (column, populations) = order.iter().find_map(|column| {
        let populations = find_populations(column, members);
        let is_group =
            |(_, count): &&(u32, usize)| is_hardware(column) || *count >= MIN_TUNING_GROUP;
        let parts = populations.values.iter().filter(is_group);
        let parts: Vec<u32> = parts.map(|(value, _)| *value).collect();
        (!populations.is_free && parts.len() > 1).then_some((*column, parts))
    })?;
    let mut parts: Vec<Vec<usize>> = vec![Vec::new(); populations.len()];
    let mut others = Vec::new();
    for node in members {
        let value = column.value_of(*node);
        match populations.iter().position(|known| *known == value) {
            Some(part) => parts[part].push(*node),
            None => others.push(*node),
        }
    }
    let usual: Vec<Vec<Option<u32>>> = parts.iter().map(|part| find_modes(columns, part)).collect();
    for node in others {
        let agreement = |usual: &Vec<Option<u32>>| {
            let pairs = columns.iter().zip(usual);
            pairs
                .filter(|(c, mode)| Some(c.value_of(node)) == **mode)
                .count()
        };
        // Of equally good parts, the first is the largest.
        let best = (0..parts.len()).max_by_key(|at| (agreement(&usual[*at]), usize::MAX - at))?;
        parts[best].push(node);
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    Some(parts)
}

/// Does it describe hardware, rather than a version or a tuning?
fn is_hardware(attribute: &Attribute) -> bool {
    let name = attribute.name.as_str();
    HARDWARE.contains(&name) || SHAPING.contains(&name)
}

fn find_modes(columns: &[Attribute], nodes: &[usize]) -> Vec<Option<u32>> {
    let mode = |column: &Attribute| column.count_values(nodes).first().map(|(value, _)| *value);
    columns.iter().map(mode).collect()
}

fn make_group(nodes: &Nodes, members: Vec<usize>) -> Group {
    let usual = nodes.attributes.columns.iter().map(|column| {
        let populations = find_populations(column, &members);
        let first = populations.values.first().map(|(value, _)| *value);
        first.filter(|_| !populations.is_free)
    });
    Group {
        name: String::new(),
        usual: usual.collect(),
        nodes: members,
    }
}

/// Names each group by its processor, and by the settings that differ from other groups with the
/// same processor.
fn name_groups(nodes: &Nodes, groups: &mut [Group]) {
    let columns = &nodes.attributes.columns;
    let processor = |group: &Group| {
        let listed = columns.iter().zip(&group.usual).find_map(|(c, usual)| {
            let is_name = c.name == "cpu";
            usual.filter(|_| is_name).and_then(|value| c.text(value))
        });
        listed.unwrap_or("unknown processor").to_owned()
    };
    let bases: Vec<String> = groups.iter().map(processor).collect();
    let names: Vec<String> = groups
        .iter()
        .zip(&bases)
        .map(|(group, base)| {
            let same = groups
                .iter()
                .zip(&bases)
                .filter(|(_, other)| *other == base);
            let same: Vec<&Group> = same.map(|(group, _)| group).collect();
            let mut name = base.clone();
            for (at, column) in columns.iter().enumerate() {
                let differs = same.iter().any(|other| other.usual[at] != group.usual[at]);
                if !differs || column.name == SHAPE {
                    continue;
                }
                if let Some(value) = group.usual[at].and_then(|value| column.text(value)) {
                    name.push_str(&format!(", {} {value}", column.name));
                }
            }
            name
        })
        .collect();
    for (group, name) in groups.iter_mut().zip(names) {
        group.name = name;
    }
}
