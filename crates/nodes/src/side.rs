//! One of two groups that are compared: its figures, the other's figures that they correspond to,
//! and the nodes that carry them.

use std::collections::BTreeMap;

use crate::groups::Group;
use crate::nodes::{Figure, Nodes};
use pinwise_stats::outliers::find_bulk;

/// Values further away, in scales of their own group, are left out.
const FAR: f64 = 5.0;

/// One of two groups.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The fleet's id.
    pub fleet: &'a str,
    /// Its nodes.
    pub nodes: &'a Nodes,
    /// The group of them.
    pub group: &'a Group,
}

/// Figures that a node of the group has.
pub(crate) fn list_figures<'a>(side: Side<'a>) -> Vec<&'a Figure> {
    let has_values = |figure: &&Figure| {
        let mut values = Nodes::select(&figure.values, &side.group.nodes);
        values.any(f64::is_finite)
    };
    side.nodes.figures.iter().filter(has_values).collect()
}

/// Matches figures by step, name and unit. A name that only one figure has matches across steps of
/// different names.
pub(crate) fn match_figures<'a>(
    a: &[&'a Figure],
    b: &[&'a Figure],
) -> Vec<(&'a Figure, &'a Figure)> {
    let exact = |figure: &Figure| {
        (
            figure.step.clone(),
            figure.name.clone(),
            figure.unit.clone(),
        )
    };
    let in_b: BTreeMap<_, &Figure> = b.iter().map(|figure| (exact(figure), *figure)).collect();
    let in_a: BTreeMap<_, &Figure> = a.iter().map(|figure| (exact(figure), *figure)).collect();
    let by_name = |all: &[&'a Figure], others: &BTreeMap<_, &Figure>| {
        let mut names: BTreeMap<(&'a str, &'a str), Vec<&'a Figure>> = BTreeMap::new();
        for figure in all
            .iter()
            .filter(|figure| !others.contains_key(&exact(figure)))
        {
            let key = (figure.name.as_str(), figure.unit.as_str());
            names.entry(key).or_default().push(figure);
        }
        names
    };
    let (rest_a, rest_b) = (by_name(a, &in_b), by_name(b, &in_a));
    let mut pairs = Vec::new();
    for figure in a {
        if let Some(other) = in_b.get(&exact(figure)) {
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

/// Returns a test for being near the centre of these.
pub(crate) fn is_near_centre(logs: &[f64]) -> impl Fn(f64) -> bool + use<> {
    let bulk = find_bulk(logs).filter(|bulk| bulk.scale > 0.0);
    move |log| bulk.is_none_or(|bulk| (log - bulk.centre).abs() <= FAR * bulk.scale)
}
