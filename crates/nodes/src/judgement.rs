//! Which nodes are outliers: all groups judged together, so that the rate of false
//! discoveries is one over the whole fleet.

use std::collections::BTreeMap;

use crate::groups::{Anomaly, Group, anomalies};
use crate::nodes::Nodes;
use crate::population::{Criterion, Population};
use pinwise_stats::discovery::{adjust_p_values, adjust_within_member, simes};
use pinwise_stats::outliers::{JudgedFigure, MIN_MEMBERS};

/// A group, judged.
#[derive(Debug)]
pub(crate) struct JudgedGroup {
    pub(crate) population: Population,
    pub(crate) judged: Vec<(Criterion, JudgedFigure)>,
    /// Settings of its nodes that are not the group's.
    pub(crate) anomalies: Vec<Anomaly>,
    /// What is named of its nodes, by position in the group: what, and the rate of false
    /// discoveries at which it is just named.
    pub(crate) named: BTreeMap<usize, Vec<(Criterion, f64)>>,
    /// Nodes that had anything to be judged.
    members: usize,
}

/// Judges all groups at a rate of false discoveries.
pub(crate) fn judge(nodes: &Nodes, groups: &[Group], rate: f64) -> Vec<JudgedGroup> {
    let mut open: Vec<JudgedGroup> = groups.iter().map(|g| JudgedGroup::new(nodes, g)).collect();
    for (judged, group) in open.iter_mut().zip(groups) {
        let apart = apart_by_setting(judged, group);
        judged.judged = judged.population.judge(&apart);
    }
    select(&mut open, groups, rate);
    open
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
            judged: Vec::new(),
            anomalies: anomalies(nodes, group),
            named: BTreeMap::new(),
            members: 0,
        }
    }

    /// Figures of nodes that were judged.
    pub(crate) fn figures_judged(&self) -> usize {
        let single = self
            .judged
            .iter()
            .filter(|(what, _)| matches!(what, Criterion::Figure(_)));
        let finite = |judged: &JudgedFigure| judged.z.iter().filter(|z| z.is_finite()).count();
        single.map(|(_, judged)| finite(judged)).sum()
    }

    /// The judgement of a figure.
    pub(crate) fn find(&self, what: Criterion) -> Option<&JudgedFigure> {
        let mut all = self.judged.iter();
        all.find(|(known, _)| *known == what)
            .map(|(_, judged)| judged)
    }
}

/// A node with other settings counts as another machine until the opposite is shown: it is judged,
/// but is not used to judge others; unless half of the nodes are like that.
fn apart_by_setting(judged: &JudgedGroup, group: &Group) -> Vec<bool> {
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

fn select(open: &mut [JudgedGroup], groups: &[Group], rate: f64) {
    let mut chances: Vec<f64> = Vec::new();
    for (judged, group) in open.iter_mut().zip(groups) {
        let of_node = |place: usize| {
            let finite: Vec<f64> = chances_of(judged, place).map(|(_, p)| p).collect();
            if finite.is_empty() {
                f64::NAN
            } else {
                simes(finite.into_iter())
            }
        };
        let of_nodes: Vec<f64> = (0..group.nodes.len()).map(of_node).collect();
        judged.members = of_nodes.iter().filter(|p| p.is_finite()).count();
        chances.extend(of_nodes);
    }
    let members: usize = open.iter().map(|judged| judged.members).sum();
    let adjusted = adjust_p_values(&chances);
    let selected = adjusted.iter().filter(|p| **p <= rate).count();
    let mut rest = adjusted.as_slice();
    for (judged, group) in open.iter_mut().zip(groups) {
        let (own, others) = rest.split_at(group.nodes.len());
        rest = others;
        judged.named.clear();
        for (place, _) in own.iter().enumerate().filter(|(_, p)| **p <= rate) {
            let named = named_figures(judged, place, selected, members, rate);
            judged.named.insert(place, named);
        }
    }
}

/// What of a node was judged, and the chances.
fn chances_of(judged: &JudgedGroup, place: usize) -> impl Iterator<Item = (Criterion, f64)> + '_ {
    let all = judged.judged.iter();
    let all = all.filter_map(move |(what, judged)| Some((*what, *judged.p.get(place)?)));
    all.filter(|(_, p)| p.is_finite())
}

/// The figures of a selected node that are named. Combined figures are reported only if none of
/// them is named alone.
fn named_figures(
    judged: &JudgedGroup,
    place: usize,
    selected: usize,
    members: usize,
    rate: f64,
) -> Vec<(Criterion, f64)> {
    let (whats, p): (Vec<Criterion>, Vec<f64>) = chances_of(judged, place).unzip();
    let within = adjust_within_member(&p, selected, members);
    let named = whats.into_iter().zip(within).filter(|(_, p)| *p <= rate);
    let named: Vec<(Criterion, f64)> = named.collect();
    let is_alone = |figure: &usize| {
        let what = Criterion::Figure(*figure);
        named.iter().any(|(known, _)| *known == what)
    };
    let is_named = |what: &Criterion| match what {
        Criterion::Together(family) => {
            let family = &judged.population.families[*family];
            !family.figures.iter().any(&is_alone)
        }
        Criterion::Figure(_) | Criterion::Widths(_) => true,
    };
    named
        .iter()
        .copied()
        .filter(|(what, _)| is_named(what))
        .collect()
}
