//! What outliers have in common: the setting that separates them best from the
//! other nodes of their group.

use std::collections::{BTreeMap, BTreeSet};

use crate::attributes::SHAPE;
use crate::groups::Group;
use crate::judgement::JudgedGroup;
use crate::nodes::Nodes;
use crate::population::Criterion;
use crate::words::join_names;
use pinwise_format::count;
use pinwise_record::FleetCommon;
use pinwise_stats::separate::{Split, upper_tail};

/// Minimum number of outliers: two nodes may share one of very many settings by chance.
const MIN_OUTLIERS: usize = 3;
/// A separation is reported up to this p-value, adjusted for the number of examined settings.
const MAX_ADJUSTED_P: f64 = 0.01;
/// Maximum number of figures named in a sentence.
const MAX_NAMED: usize = 2;

/// The nodes that are outliers of a figure in one direction.
struct OutlierSide {
    label: String,
    is_above: bool,
    nodes: Vec<usize>,
}

/// How well a setting separates outliers from other nodes.
#[derive(Debug, Clone, Copy)]
struct Separation {
    attribute: usize,
    value: u32,
    split: Split,
    adjusted_p: f64,
    /// Does another attribute separate them equally well?
    has_rival: bool,
}

/// Finds what the outliers of a group have in common, the clearest separation first. Figures whose
/// outliers are separated by the same setting are reported together, with the counts of the
/// clearest.
pub(crate) fn find_common(
    nodes: &Nodes,
    group: &Group,
    place: usize,
    judged: &JudgedGroup,
    label: impl Fn(Criterion) -> String,
) -> Vec<FleetCommon> {
    let outliers: BTreeSet<usize> = judged.named.keys().map(|at| group.nodes[*at]).collect();
    let mut found: BTreeMap<(usize, u32, bool), Vec<(Separation, OutlierSide)>> = BTreeMap::new();
    for side in list_sides(group, judged, label) {
        if let Some(best) = find_separation(nodes, group, &side, &outliers) {
            let key = (best.attribute, best.value, side.is_above);
            found.entry(key).or_default().push((best, side));
        }
    }
    let mut listed: Vec<FleetCommon> = found
        .into_values()
        .filter_map(|mut figures| {
            figures.sort_by(|a, b| a.0.adjusted_p.total_cmp(&b.0.adjusted_p));
            make_record(nodes, place, &figures)
        })
        .collect();
    listed.sort_by(|a, b| a.adjusted_p.total_cmp(&b.adjusted_p));
    listed
}

fn list_sides(
    group: &Group,
    judged: &JudgedGroup,
    label: impl Fn(Criterion) -> String,
) -> Vec<OutlierSide> {
    let mut sides: BTreeMap<(Criterion, bool), Vec<usize>> = BTreeMap::new();
    for (at, named) in &judged.named {
        for (criterion, _) in named {
            let z = judged.find(*criterion).map_or(0.0, |of| of.z[*at]);
            let side = sides.entry((*criterion, z > 0.0)).or_default();
            side.push(group.nodes[*at]);
        }
    }
    let many = sides
        .into_iter()
        .filter(|(_, nodes)| nodes.len() >= MIN_OUTLIERS);
    many.map(|((criterion, is_above), nodes)| OutlierSide {
        label: label(criterion),
        is_above,
        nodes,
    })
    .collect()
}

/// Finds the value that the outliers have and the other nodes lack. Of all values that at least two
/// outliers have, it is the least likely one by chance. Outliers of other figures are left out.
fn find_separation(
    nodes: &Nodes,
    group: &Group,
    side: &OutlierSide,
    outliers: &BTreeSet<usize>,
) -> Option<Separation> {
    let is_other = |node: &&usize| !outliers.contains(node);
    let others: Vec<usize> = group.nodes.iter().filter(is_other).copied().collect();
    let mut examined = 0usize;
    let mut found: Vec<Separation> = Vec::new();
    for (attribute, column) in nodes.attributes.columns.iter().enumerate() {
        let outside: BTreeMap<u32, usize> = column.count_values(&others).into_iter().collect();
        let inside = column.count_values(&side.nodes);
        for (value, inside_with) in inside.into_iter().filter(|(_, n)| *n >= 2) {
            let outside_with = outside.get(&value).copied().unwrap_or(0);
            examined += 1;
            let split = Split {
                inside: side.nodes.len(),
                inside_with,
                outside: others.len(),
                outside_with,
            };
            found.push(Separation {
                attribute,
                value,
                split,
                adjusted_p: upper_tail(split),
                has_rival: false,
            });
        }
    }
    // A setting changes the shape and says more than the shape itself.
    let is_shape = |best: &Separation| nodes.attributes.columns[best.attribute].name == SHAPE;
    found.sort_by(|a, b| {
        let by_p = a.adjusted_p.total_cmp(&b.adjusted_p);
        by_p.then(is_shape(a).cmp(&is_shape(b)))
    });
    let mut best = *found.first()?;
    let next = found.get(1).filter(|next| !is_shape(next));
    best.has_rival = next.is_some_and(|next| next.split == best.split);
    best.adjusted_p = (best.adjusted_p * examined as f64).min(1.0);
    (best.adjusted_p <= MAX_ADJUSTED_P).then_some(best)
}

fn make_record(
    nodes: &Nodes,
    group: usize,
    figures: &[(Separation, OutlierSide)],
) -> Option<FleetCommon> {
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
        join_names(&labels, MAX_NAMED),
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
