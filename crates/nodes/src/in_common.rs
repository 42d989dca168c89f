//! What outliers have in common: the setting that separates them best from the
//! rest of their group.

use std::collections::{BTreeMap, BTreeSet};

use crate::attributes::SHAPE;
use crate::groups::Group;
use crate::judgement::JudgedGroup;
use crate::nodes::Nodes;
use crate::population::Criterion;
use crate::words::names;
use pinwise_format::count;
use pinwise_record::FleetCommon;
use pinwise_stats::separate::{Split, upper_tail};

/// Fewest outliers that can have something in common: two may by chance, in
/// one of very many settings.
const MIN_OUTLIERS: usize = 3;
/// A separation is reported at this p-value, adjusted for all that were examined.
const SIGNIFICANT: f64 = 0.01;
/// Figures that are named in a sentence.
const NAMED: usize = 2;

/// Outliers of a figure, all to one side.
struct Side {
    label: String,
    is_above: bool,
    nodes: Vec<usize>,
}

/// The best separation of some outliers.
#[derive(Debug, Clone, Copy)]
struct Best {
    attribute: usize,
    value: u32,
    split: Split,
    adjusted_p: f64,
    /// Another attribute separates them as well.
    has_rival: bool,
}

/// What the outliers of a group have in common, the clearest first. Figures whose outliers the same
/// setting separates are reported together, with the counts of the clearest.
pub(crate) fn common(
    nodes: &Nodes,
    group: &Group,
    place: usize,
    judged: &JudgedGroup,
    label: impl Fn(Criterion) -> String,
) -> Vec<FleetCommon> {
    let outliers: BTreeSet<usize> = judged.named.keys().map(|at| group.nodes[*at]).collect();
    let mut found: BTreeMap<(usize, u32, bool), Vec<(Best, Side)>> = BTreeMap::new();
    for side in sides(group, judged, label) {
        if let Some(best) = best(nodes, group, &side, &outliers) {
            let key = (best.attribute, best.value, side.is_above);
            found.entry(key).or_default().push((best, side));
        }
    }
    let mut listed: Vec<FleetCommon> = found
        .into_values()
        .filter_map(|mut figures| {
            figures.sort_by(|a, b| a.0.adjusted_p.total_cmp(&b.0.adjusted_p));
            list_common(nodes, place, &figures)
        })
        .collect();
    listed.sort_by(|a, b| a.adjusted_p.total_cmp(&b.adjusted_p));
    listed
}

fn sides(group: &Group, judged: &JudgedGroup, label: impl Fn(Criterion) -> String) -> Vec<Side> {
    let mut sides: BTreeMap<(Criterion, bool), Vec<usize>> = BTreeMap::new();
    for (at, named) in &judged.named {
        for (what, _) in named {
            let z = judged.find(*what).map_or(0.0, |of| of.z[*at]);
            let side = sides.entry((*what, z > 0.0)).or_default();
            side.push(group.nodes[*at]);
        }
    }
    let many = sides
        .into_iter()
        .filter(|(_, nodes)| nodes.len() >= MIN_OUTLIERS);
    many.map(|((what, is_above), nodes)| Side {
        label: label(what),
        is_above,
        nodes,
    })
    .collect()
}

/// The attribute and value that the outliers have and the others lack: of all that at least two
/// outliers have, the least likely by chance. Nodes that are outliers for something else are left
/// out.
fn best(nodes: &Nodes, group: &Group, side: &Side, outliers: &BTreeSet<usize>) -> Option<Best> {
    let is_other = |node: &&usize| !outliers.contains(node);
    let others: Vec<usize> = group.nodes.iter().filter(is_other).copied().collect();
    let mut looked_at = 0usize;
    let mut found: Vec<Best> = Vec::new();
    for (attribute, column) in nodes.attributes.columns.iter().enumerate() {
        let outside: BTreeMap<u32, usize> = column.count_values(&others).into_iter().collect();
        let inside = column.count_values(&side.nodes);
        for (value, inside_with) in inside.into_iter().filter(|(_, n)| *n >= 2) {
            let outside_with = outside.get(&value).copied().unwrap_or(0);
            looked_at += 1;
            let split = Split {
                inside: side.nodes.len(),
                inside_with,
                outside: others.len(),
                outside_with,
            };
            found.push(Best {
                attribute,
                value,
                split,
                adjusted_p: upper_tail(split),
                has_rival: false,
            });
        }
    }
    // A shape follows from a setting, which says more.
    let is_shape = |best: &Best| nodes.attributes.columns[best.attribute].name == SHAPE;
    found.sort_by(|a, b| {
        let by_p = a.adjusted_p.total_cmp(&b.adjusted_p);
        by_p.then(is_shape(a).cmp(&is_shape(b)))
    });
    let mut best = *found.first()?;
    let next = found.get(1).filter(|next| !is_shape(next));
    best.has_rival = next.is_some_and(|next| next.split == best.split);
    best.adjusted_p = (best.adjusted_p * looked_at as f64).min(1.0);
    (best.adjusted_p <= SIGNIFICANT).then_some(best)
}

fn list_common(nodes: &Nodes, group: usize, figures: &[(Best, Side)]) -> Option<FleetCommon> {
    let (best, side) = figures.first()?;
    let attribute = &nodes.attributes.columns[best.attribute];
    let value = attribute.text(best.value)?.to_owned();
    let labels: Vec<String> = figures.iter().map(|(_, side)| side.label.clone()).collect();
    let word = if side.is_above { "high" } else { "low" };
    let split = best.split;
    let mut sentence = format!(
        "{} of {} with {word} {} have {} {value}; {} of {} do.",
        split.inside_with,
        count(split.inside, "node"),
        names(&labels, NAMED),
        attribute.name,
        split.outside_with,
        count(split.outside, "other"),
    );
    if best.has_rival {
        sentence.push_str(" Another setting separates them as well.");
    }
    Some(FleetCommon {
        group,
        figures: labels,
        nodes: side
            .nodes
            .iter()
            .map(|node| nodes.names[*node].clone())
            .collect(),
        setting: attribute.name.clone(),
        value,
        outliers_with: split.inside_with,
        others_with: split.outside_with,
        others: split.outside,
        adjusted_p: best.adjusted_p,
        sentence,
    })
}
