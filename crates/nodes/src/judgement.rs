//! Which nodes are outliers. All groups are judged together, so that the rate of false discoveries
//! holds for the whole fleet.

use std::collections::BTreeMap;

use crate::groups::{Anomaly, Group, find_anomalies};
use crate::nodes::Nodes;
use crate::population::{Criterion, Population};
use pinwise_stats::discovery::{adjust_p_values, adjust_within_member, simes};
use pinwise_stats::outliers::{JudgedFigure, MIN_MEMBERS};

/// A group and the judgement of its nodes.
#[derive(Debug)]
pub(crate) struct JudgedGroup {
    pub(crate) population: Population,
    figures: Vec<(Criterion, JudgedFigure)>,
    /// Settings of its nodes that differ from the group's.
    pub(crate) anomalies: Vec<Anomaly>,
    /// The outliers by position in the group, each with its criteria and their adjusted p-values.
    pub(crate) named: BTreeMap<usize, Vec<(Criterion, f64)>>,
    /// Number of nodes with a p-value.
    members: usize,
}

/// Judges all groups at a rate of false discoveries, 0 to 1.
pub(crate) fn judge_groups(nodes: &Nodes, groups: &[Group], rate: f64) -> Vec<JudgedGroup> {
    let mut judged_groups: Vec<JudgedGroup> =
        groups.iter().map(|g| JudgedGroup::new(nodes, g)).collect();
    for (judged, group) in judged_groups.iter_mut().zip(groups) {
        let apart = find_differently_set(judged, group);
        judged.figures = judged.population.judge(&apart);
    }
    name_outliers(&mut judged_groups, groups, rate);
    judged_groups
}

impl JudgedGroup {
    fn new(nodes: &Nodes, group: &Group) -> Self {
        let is_judged = group.nodes.len() >= MIN_MEMBERS;
        let none = || Group {
            name: String::new(),
            nodes: Vec::new(),
            usual: Vec::new(),
        };
        let population = if is_judged {
            Population::new(nodes, group)
        } else {
            Population::new(nodes, &none())
        };
        Self {
            population,
            figures: Vec::new(),
            anomalies: find_anomalies(nodes, group),
            named: BTreeMap::new(),
            members: 0,
        }
    }

    /// Number of judged figures over all nodes.
    pub(crate) fn count_judged_figures(&self) -> usize {
        let figures = self
            .figures
            .iter()
            .filter(|(criterion, _)| matches!(criterion, Criterion::Figure(_)));
        let count_finite =
            |judged: &JudgedFigure| judged.z.iter().filter(|z| z.is_finite()).count();
        figures.map(|(_, judged)| count_finite(judged)).sum()
    }

    /// The judgement of one criterion.
    pub(crate) fn find(&self, criterion: Criterion) -> Option<&JudgedFigure> {
        let mut figures = self.figures.iter();
        figures
            .find(|(known, _)| *known == criterion)
            .map(|(_, judged)| judged)
    }
}

/// Marks the nodes whose settings differ from the group's, unless at least half of the nodes do.
/// They are judged, but the others are not judged by them.
fn find_differently_set(judged: &JudgedGroup, group: &Group) -> Vec<bool> {
    let mut apart = vec![false; group.nodes.len()];
    for anomaly in &judged.anomalies {
        if let Ok(place) = group.nodes.binary_search(&anomaly.node) {
            apart[place] = true;
        }
    }
    let many = apart.iter().filter(|is_apart| **is_apart).count();
    if 2 * many >= apart.len() || apart.len() - many < MIN_MEMBERS {
        apart.fill(false);
    }
    apart
}

fn name_outliers(judged_groups: &mut [JudgedGroup], groups: &[Group], rate: f64) {
    let mut p_values: Vec<f64> = Vec::new();
    for (judged, group) in judged_groups.iter_mut().zip(groups) {
        let combine_p_values = |place: usize| {
            let p_values_of_node: Vec<f64> = list_p_values(judged, place).map(|(_, p)| p).collect();
            if p_values_of_node.is_empty() {
                f64::NAN
            } else {
                simes(p_values_of_node.into_iter())
            }
        };
        let node_p_values: Vec<f64> = (0..group.nodes.len()).map(combine_p_values).collect();
        judged.members = node_p_values.iter().filter(|p| p.is_finite()).count();
        p_values.extend(node_p_values);
    }
    let members: usize = judged_groups.iter().map(|judged| judged.members).sum();
    let adjusted = adjust_p_values(&p_values);
    let selected = adjusted.iter().filter(|p| **p <= rate).count();
    let mut rest = adjusted.as_slice();
    for (judged, group) in judged_groups.iter_mut().zip(groups) {
        let (own, others) = rest.split_at(group.nodes.len());
        rest = others;
        judged.named.clear();
        for (place, _) in own.iter().enumerate().filter(|(_, p)| **p <= rate) {
            let named = select_criteria(judged, place, selected, members, rate);
            judged.named.insert(place, named);
        }
    }
}

/// The criteria by which a node was judged, with finite p-values.
fn list_p_values(
    judged: &JudgedGroup,
    place: usize,
) -> impl Iterator<Item = (Criterion, f64)> + '_ {
    let figures = judged.figures.iter();
    let all =
        figures.filter_map(move |(criterion, judged)| Some((*criterion, *judged.p.get(place)?)));
    all.filter(|(_, p)| p.is_finite())
}

/// Selects the criteria that are named for an outlier. Combined figures are named only if none of
/// them is named alone.
fn select_criteria(
    judged: &JudgedGroup,
    place: usize,
    selected: usize,
    members: usize,
    rate: f64,
) -> Vec<(Criterion, f64)> {
    let (criteria, p): (Vec<Criterion>, Vec<f64>) = list_p_values(judged, place).unzip();
    let within = adjust_within_member(&p, selected, members);
    let named = criteria.into_iter().zip(within).filter(|(_, p)| *p <= rate);
    let named: Vec<(Criterion, f64)> = named.collect();
    let is_alone = |figure: &usize| {
        let criterion = Criterion::Figure(*figure);
        named.iter().any(|(known, _)| *known == criterion)
    };
    let is_named = |criterion: &Criterion| match criterion {
        Criterion::Together(family) => {
            let family = &judged.population.families[*family];
            !family.figures.iter().any(&is_alone)
        }
        Criterion::Figure(_) | Criterion::Widths(_) => true,
    };
    named
        .iter()
        .copied()
        .filter(|(criterion, _)| is_named(criterion))
        .collect()
}
