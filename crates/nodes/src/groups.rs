//! Groups of nodes that should be alike.
//!
//! Nodes with another kind of processor are never equals. For every other attribute, a value that
//! many hold makes a population of its own: a BIOS or kernel being rolled out. A value that few
//! hold is an anomaly of those nodes, and they stay with the others: in a group of their own they
//! would be compared with nobody. Populations by version or tuning that are too small to be judged
//! well also stay together; those of other hardware never do.

use crate::attributes::{ABSENT, Attribute, HARDWARE, KIND, SHAPE, SHAPING};
use crate::nodes::Nodes;
use pinwise_stats::outliers::MIN_MEMBERS;

/// A value is a population if more than this share of the nodes hold it. With few nodes, one alone
/// never is; nor, for other hardware, a fifth of them that could not be judged by themselves.
const POPULATION: f64 = 0.1;
/// Nodes that make a group by a version or a tuning: fewer are judged better among others than by
/// themselves.
const LARGE: usize = 20;
/// An attribute varies freely if populations cover less than this: a serial number, say, or the
/// name of a rack.
const COVERED: f64 = 2.0 / 3.0;

/// Nodes that should be alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What it is called.
    pub name: String,
    /// Places of its nodes.
    pub nodes: Vec<usize>,
    /// Its nodes' usual value of each attribute, as indices into `Attributes`; `None` if values
    /// differ freely.
    pub(crate) usual: Vec<Option<u32>>,
}

/// A setting of a node that is not its group's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Anomaly {
    pub(crate) node: usize,
    /// Place of the attribute.
    pub(crate) attribute: usize,
    pub(crate) value: u32,
    pub(crate) usual: u32,
}

/// What an attribute's values are among some nodes.
struct Values {
    /// Those held by many, the most frequent first.
    populations: Vec<(u32, usize)>,
    is_free: bool,
}

impl Values {
    fn has(&self, value: u32) -> bool {
        self.populations.iter().any(|(known, _)| *known == value)
    }
}

/// The groups of a fleet's nodes, the largest first.
#[must_use]
pub fn groups(nodes: &Nodes) -> Vec<Group> {
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
        match split(nodes, &members) {
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
    name(nodes, &mut groups);
    groups
}

/// Settings of a group's nodes that are not the group's.
pub(crate) fn anomalies(nodes: &Nodes, group: &Group) -> Vec<Anomaly> {
    let mut found = Vec::new();
    let columns = &nodes.attributes.columns;
    for (attribute, (column, usual)) in columns.iter().zip(&group.usual).enumerate() {
        let Some(usual) = *usual else { continue };
        let values = values(column, &group.nodes);
        for node in &group.nodes {
            let value = column.value_of(*node);
            if value != ABSENT && !values.has(value) {
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

/// A shape that follows from another setting is not reported separately.
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

fn values(attribute: &Attribute, nodes: &[usize]) -> Values {
    let counts = attribute.count_values(nodes);
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let is_hardware = is_hardware(attribute);
    let is_few = |count: usize| {
        let is_small = count as f64 <= POPULATION * all as f64;
        let is_odd = is_hardware && count < MIN_MEMBERS && 5 * count <= all;
        is_small || is_odd || (count == 1 && all > 3)
    };
    let many = counts.iter().filter(|(_, count)| !is_few(*count));
    let covered: usize = many.clone().map(|(_, count)| count).sum();
    Values {
        populations: many.copied().collect(),
        is_free: all == 0 || (covered as f64) < COVERED * all as f64,
    }
}

/// Splits nodes by the first attribute with several populations; `None` if there is none. Nodes
/// with another value join the part that they agree with most in everything else.
fn split(nodes: &Nodes, members: &[usize]) -> Option<Vec<Vec<usize>>> {
    let columns = &nodes.attributes.columns;
    let shape_last = |column: &&Attribute| column.name == SHAPE;
    let mut order: Vec<&Attribute> = columns.iter().collect();
    order.sort_by_key(shape_last);
    let (column, populations) = order.iter().find_map(|column| {
        let values = values(column, members);
        let is_hardware = [&HARDWARE[..], &SHAPING]
            .concat()
            .contains(&column.name.as_str());
        let is_group = |(_, count): &&(u32, usize)| is_hardware || *count >= LARGE;
        let parts = values.populations.iter().filter(is_group);
        let parts: Vec<u32> = parts.map(|(value, _)| *value).collect();
        (!values.is_free && parts.len() > 1).then_some((*column, parts))
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
    let usual: Vec<Vec<Option<u32>>> = parts.iter().map(|part| modes(columns, part)).collect();
    for node in others {
        let agreement = |usual: &Vec<Option<u32>>| {
            let pairs = columns.iter().zip(usual);
            pairs
                .filter(|(c, mode)| Some(c.value_of(node)) == **mode)
                .count()
        };
        // Of equally good parts the largest, which is the first.
        let best = (0..parts.len()).max_by_key(|at| (agreement(&usual[*at]), usize::MAX - at))?;
        parts[best].push(node);
    }
    for part in &mut parts {
        part.sort_unstable();
    }
    Some(parts)
}

/// Is it hardware, rather than a version or a tuning?
fn is_hardware(attribute: &Attribute) -> bool {
    let name = attribute.name.as_str();
    HARDWARE.contains(&name) || SHAPING.contains(&name)
}

fn modes(columns: &[Attribute], nodes: &[usize]) -> Vec<Option<u32>> {
    let mode = |column: &Attribute| column.count_values(nodes).first().map(|(value, _)| *value);
    columns.iter().map(mode).collect()
}

fn make_group(nodes: &Nodes, members: Vec<usize>) -> Group {
    let usual = nodes.attributes.columns.iter().map(|column| {
        let values = values(column, &members);
        let first = values.populations.first().map(|(value, _)| *value);
        first.filter(|_| !values.is_free)
    });
    Group {
        name: String::new(),
        usual: usual.collect(),
        nodes: members,
    }
}

/// Each group by its processor, and by what sets it apart from others of the
/// same.
fn name(nodes: &Nodes, groups: &mut [Group]) {
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
