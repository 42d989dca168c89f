//! The two groups of a comparison: their figures, matched by name, and the test for nodes near
//! their group's centre.

use std::collections::BTreeMap;

use crate::groups::Group;
use crate::nodes::{Figure, Nodes};
use pinwise_stats::outliers::find_bulk;

/// Values further from their group's centre than this many robust scales are left out.
const FAR: f64 = 5.0;

/// One of the two groups.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The fleet's id.
    pub fleet: &'a str,
    /// All nodes of the fleet.
    pub nodes: &'a Nodes,
    /// The group among them.
    pub group: &'a Group,
}

/// Lists figures that at least one node of the group has.
pub(crate) fn list_figures<'a>(side: Side<'a>) -> Vec<&'a Figure> {
    let has_values = |figure: &&Figure| {
        let mut values = Nodes::select(&figure.values, &side.group.nodes);
        values.any(f64::is_finite)
    };
    side.nodes.figures.iter().filter(has_values).collect()
}

/// Matches figures by step, name and unit. Of the figures left, those whose name and unit are
/// unique on each side match although their steps have different names.
pub(crate) fn match_figures<'a>(
    a: &[&'a Figure],
    b: &[&'a Figure],
) -> Vec<(&'a Figure, &'a Figure)> {
    let full_key = |figure: &Figure| {
        (
            figure.step.clone(),
            figure.name.clone(),
            figure.unit.clone(),
        )
    };
    let in_b: BTreeMap<_, &Figure> = b.iter().map(|figure| (full_key(figure), *figure)).collect();
    let in_a: BTreeMap<_, &Figure> = a.iter().map(|figure| (full_key(figure), *figure)).collect();
    let by_name = |all: &[&'a Figure], others: &BTreeMap<_, &Figure>| {
        let mut names: BTreeMap<(&'a str, &'a str), Vec<&'a Figure>> = BTreeMap::new();
        for figure in all
            .iter()
            .filter(|figure| !others.contains_key(&full_key(figure)))
        {
            let key = (figure.name.as_str(), figure.unit.as_str());
            names.entry(key).or_default().push(figure);
        }
        names
    };
    let (rest_a, rest_b) = (by_name(a, &in_b), by_name(b, &in_a));
    let mut pairs = Vec::new();
    for figure in a {
        if let Some(other) = in_b.get(&full_key(figure)) {
            pairs.push((*figure, *other));
            continue;
        }
        let key = (figure.name.as_str(), figure.unit.as_str());
        if let (Some([_]), Some([other])) = (
            rest_a.get(&key).map(Vec::as_slice),
            rest_b.get(&key).map(Vec::as_slice),
        ) {
            pairs.push((*figure, *other));
        }
    }
    pairs
}

/// Returns a predicate: is a logarithm near the centre of these?
pub(crate) fn is_near_centre(logs: &[f64]) -> impl Fn(f64) -> bool + use<> {
    let bulk = find_bulk(logs).filter(|bulk| bulk.scale > 0.0);
    move |log| bulk.is_none_or(|bulk| (log - bulk.centre).abs() <= FAR * bulk.scale)
}
