//! The report of a fleet: groups, outliers, what outliers have in common, and findings.

use std::collections::{BTreeMap, BTreeSet};

use crate::findings::list_findings;
use crate::groups::{Group, group_nodes};
use crate::in_common::find_common;
use crate::judgement::{JudgedGroup, judge_groups};
use crate::nodes::{Figure, Nodes};
use crate::population::{Criterion, median};
use crate::words::{describe_ratio, join_names};
use pinwise_format::{count, quantity, round_percent, signed_percent};
use pinwise_record::{
    FleetFigure, FleetGroup, FleetOutlier, FleetRecord, FleetReport, Header, OutlierKind,
};
use pinwise_stats::describe::quantile;
use pinwise_stats::outliers::find_bulk;

/// Maximum number of figures listed of a node, the strongest first.
const MAX_FIGURES_PER_NODE: usize = 40;

/// Maximum number of nodes named in the first sentence.
const MAX_NAMED: usize = 2;

/// What a report needs beside the nodes.
#[derive(Debug, Clone, Copy)]
pub struct ReportContext<'a> {
    /// The fleet's id.
    pub fleet: &'a str,
    /// Its plan; `None` if unavailable.
    pub record: Option<&'a FleetRecord>,
    /// The share of the named nodes that may be named by chance, on average; 0 to 1.
    pub false_discoveries: f64,
    /// The time now, RFC 3339.
    pub now: &'a str,
    /// This host.
    pub host: &'a str,
}

/// Compares each node of a fleet with its peers.
#[must_use]
pub fn compare_nodes(nodes: &Nodes, context: &ReportContext<'_>) -> FleetReport {
    let groups = group_nodes(nodes);
    let judged = judge_groups(nodes, &groups, context.false_discoveries);
    let outliers = list_outliers(nodes, &groups, &judged);
    let common = groups
        .iter()
        .zip(&judged)
        .enumerate()
        .flat_map(|(place, (group, judged))| {
            let label = |criterion| format_label(nodes, judged, criterion);
            find_common(nodes, group, place, judged, label)
        })
        .collect();
    let findings = list_findings(nodes, &groups, &outliers, context.record);
    let submitted = context.record.map_or(context.now, |record| &record.started);
    let mut tags = context
        .record
        .map_or_else(Vec::new, |record| record.tags.clone());
    let own = FleetRecord::tag(context.fleet);
    if !tags.contains(&own) {
        tags.push(own);
    }
    let figures_judged = judged.iter().map(JudgedGroup::count_judged_figures).sum();
    FleetReport {
        header: Header {
            findings,
            ..Header::new(format!("{}.report", context.fleet), context.now, tags)
        },
        fleet: context.fleet.to_owned(),
        submitted: submitted.to_owned(),
        host: context.host.to_owned(),
        asked: context.record.map_or(nodes.len(), |record| record.asked),
        nodes: nodes.len(),
        complete: nodes.complete,
        false_discovery_rate: context.false_discoveries,
        judged: figures_judged,
        sentence: summarize(nodes, &outliers, figures_judged, context),
        groups: groups
            .iter()
            .map(|group| make_group_record(nodes, group))
            .collect(),
        outliers,
        common,
    }
}

fn summarize(
    nodes: &Nodes,
    outliers: &[FleetOutlier],
    figures_judged: usize,
    context: &ReportContext<'_>,
) -> String {
    let different: BTreeSet<&str> = outliers.iter().map(|o| o.node.as_str()).collect();
    if nodes.is_empty() {
        return "No node to compare.".to_owned();
    }
    if different.is_empty() && figures_judged == 0 {
        return format!(
            "No setting differs among {}; no group is large enough to judge figures.",
            count(nodes.len(), "node")
        );
    }
    let rate = round_percent(context.false_discoveries);
    if different.is_empty() {
        let many = count(nodes.len(), "node");
        return format!("None of {many} is an outlier.");
    }
    let verb = if different.len() == 1 {
        "differs"
    } else {
        "differ"
    };
    let from = if different.len() == 1 { "its" } else { "their" };
    // The farthest from its peers first.
    let mut different: Vec<&str> = different.into_iter().collect();
    let distance = |node: &str| find_strongest(node, outliers).map_or(0.0, measure_distance);
    different.sort_by(|a, b| distance(b).total_cmp(&distance(a)));
    let mut causes: Vec<String> = different
        .iter()
        .map(|node| describe_cause(node, outliers))
        .collect();
    causes.truncate(MAX_NAMED);
    let chance = match outliers.iter().any(|o| o.kind == OutlierKind::Figure) {
        true => format!(" At most {rate} of those found by figures are chance."),
        false => String::new(),
    };
    format!(
        "{} of {} {verb} from {from} peers: {}. {}.{chance}",
        different.len(),
        count(nodes.len(), "node"),
        join_names(&different, MAX_NAMED),
        causes.join("; "),
    )
}

/// How far a figure is from those of its peers; a setting has no distance.
fn measure_distance(outlier: &FleetOutlier) -> f64 {
    outlier.z.map_or(0.0, f64::abs)
}

/// The figure in which a node differs most, or a setting in which it differs.
fn find_strongest<'o>(node: &str, outliers: &'o [FleetOutlier]) -> Option<&'o FleetOutlier> {
    let own = outliers.iter().filter(|outlier| outlier.node == node);
    own.max_by(|a, b| measure_distance(a).total_cmp(&measure_distance(b)))
}

/// `n005: memory · triad −48 % (numa-nodes is 2)`: the figure in which a node differs most, with a
/// setting in which it differs.
fn describe_cause(node: &str, outliers: &[FleetOutlier]) -> String {
    let Some(strongest) = find_strongest(node, outliers) else {
        return node.to_owned();
    };
    let own = outliers.iter().filter(|outlier| outlier.node == node);
    let mut settings = own.filter_map(|outlier| Some((&outlier.figure, outlier.setting.as_ref()?)));
    let setting = settings
        .next()
        .map(|(name, value)| format!("{name} is {value}"));
    match (strongest.ratio, setting) {
        (Some(ratio), setting) => {
            let setting = setting.map_or_else(String::new, |setting| format!(" ({setting})"));
            let change = signed_percent(ratio - 1.0);
            format!("{node}: {} {change}{setting}", strongest.figure)
        }
        (None, Some(setting)) => format!("{node}: {setting}"),
        (None, None) => format!("{node}: {}", strongest.figure),
    }
}

/// The name of a criterion in reports.
fn format_label(nodes: &Nodes, judged: &JudgedGroup, criterion: Criterion) -> String {
    match criterion {
        Criterion::Figure(place) => nodes.figures[place].label(),
        Criterion::Together(place) => {
            let family = &judged.population.families[place];
            let unit = if family.unit.is_empty() {
                String::new()
            } else {
                format!(" in {}", family.unit)
            };
            format!("{} · all {}{unit}", family.step, family.figures.len())
        }
        Criterion::Widths(place) => {
            format!("{} · noise", judged.population.steps[place])
        }
    }
}

fn list_outliers(nodes: &Nodes, groups: &[Group], judged: &[JudgedGroup]) -> Vec<FleetOutlier> {
    let mut by_node: BTreeMap<usize, Vec<FleetOutlier>> = BTreeMap::new();
    for (place, (group, judged)) in groups.iter().zip(judged).enumerate() {
        for anomaly in &judged.anomalies {
            let column = &nodes.attributes.columns[anomaly.attribute];
            let text = |value| column.text(value).unwrap_or_default().to_owned();
            let (own, usual) = (text(anomaly.value), text(anomaly.usual));
            let node = &nodes.names[anomaly.node];
            let listed = by_node.entry(anomaly.node).or_default();
            listed.push(FleetOutlier {
                sentence: format!("{node}: {} is {own}; its peers have {usual}.", column.name),
                kind: OutlierKind::Setting,
                figure: column.name.clone(),
                setting: Some(own),
                typical_setting: Some(usual),
                ..empty_outlier(nodes, anomaly.node, place)
            });
        }
        for (at, named) in &judged.named {
            let figures = list_figure_outliers(nodes, judged, *at, named, place, group);
            by_node.entry(group.nodes[*at]).or_default().extend(figures);
        }
    }
    // The most clearly different node first.
    let mut sorted: Vec<Vec<FleetOutlier>> = by_node.into_values().collect();
    let best = |all: &Vec<FleetOutlier>| {
        let p = all.iter().filter_map(|o| o.adjusted_p).fold(2.0, f64::min);
        let z = all
            .iter()
            .filter_map(|o| o.z)
            .map(f64::abs)
            .fold(0.0, f64::max);
        (p, z)
    };
    sorted.sort_by(|a, b| {
        let ((pa, za), (pb, zb)) = (best(a), best(b));
        pa.total_cmp(&pb).then(zb.total_cmp(&za))
    });
    sorted.into_iter().flatten().collect()
}

/// The outliers of one node: figures before derived figures, the most distant first.
fn list_figure_outliers(
    nodes: &Nodes,
    judged: &JudgedGroup,
    at: usize,
    named: &[(Criterion, f64)],
    place: usize,
    group: &Group,
) -> Vec<FleetOutlier> {
    let size = |criterion: Criterion| judged.find(criterion).map_or(0.0, |of| of.z[at].abs());
    let kind = |criterion: Criterion| match criterion {
        Criterion::Figure(_) => 0,
        Criterion::Together(_) => 1,
        Criterion::Widths(_) => 2,
    };
    let mut named = named.to_vec();
    named.sort_by(|(a, _), (b, _)| {
        let by_size = size(*b).total_cmp(&size(*a));
        kind(*a).cmp(&kind(*b)).then(by_size)
    });
    let listed = named.into_iter().take(MAX_FIGURES_PER_NODE);
    let listed = listed.filter_map(|(criterion, adjusted_p)| {
        make_figure_outlier(nodes, judged, criterion, adjusted_p, at, group)
    });
    listed
        .map(|outlier| FleetOutlier {
            group: place,
            ..outlier
        })
        .collect()
}

fn empty_outlier(nodes: &Nodes, node: usize, group: usize) -> FleetOutlier {
    FleetOutlier {
        node: nodes.names[node].clone(),
        group,
        kind: OutlierKind::Figure,
        figure: String::new(),
        unit: String::new(),
        value: None,
        typical: None,
        ratio: None,
        z: None,
        adjusted_p: None,
        setting: None,
        typical_setting: None,
        record: Some(nodes.records[node].clone()),
        sentence: String::new(),
    }
}

fn make_figure_outlier(
    nodes: &Nodes,
    judged: &JudgedGroup,
    criterion: Criterion,
    adjusted_p: f64,
    at: usize,
    group: &Group,
) -> Option<FleetOutlier> {
    let figure = judged.find(criterion)?;
    let (node, z) = (group.nodes[at], figure.z[at]);
    let mut outlier = FleetOutlier {
        figure: format_label(nodes, judged, criterion),
        z: Some(z),
        adjusted_p: Some(adjusted_p),
        ..empty_outlier(nodes, node, 0)
    };
    let name = outlier.node.clone();
    let label = outlier.figure.clone();
    if let Criterion::Together(family) = criterion {
        let ratio = mean_family_ratio(judged, family, at)?;
        outlier.ratio = Some(ratio);
        outlier.sentence = format!("{name}: {label} together are {}.", describe_ratio(ratio));
        return Some(outlier);
    }
    let measure = judged.population.find_measure(criterion)?;
    let own = measure.to_unit(measure.column.values[at]);
    let typical = measure.to_unit(figure.bulk.centre);
    let ratio = own / typical;
    outlier.value = Some(own);
    outlier.typical = Some(typical);
    outlier.ratio = ratio.is_finite().then_some(ratio);
    if let Criterion::Figure(place) = criterion {
        outlier.unit.clone_from(&nodes.figures[place].unit);
    }
    let value = quantity(own, &outlier.unit);
    outlier.sentence = if measure.is_log {
        format!("{name}: {label} is {value}, {}.", describe_ratio(ratio))
    } else {
        let usual = quantity(typical, &outlier.unit);
        format!("{name}: {label} is {value}; {usual} is usual.")
    };
    Some(outlier)
}

/// The geometric mean of a node's ratios to the usual values of a family.
fn mean_family_ratio(judged: &JudgedGroup, family: usize, at: usize) -> Option<f64> {
    let family = &judged.population.families[family];
    let ratios: Vec<f64> = family
        .figures
        .iter()
        .filter_map(|figure| {
            let criterion = Criterion::Figure(*figure);
            let measure = judged.population.find_measure(criterion)?;
            let away = measure.column.values[at] - judged.find(criterion)?.bulk.centre;
            measure.is_log.then_some(away)
        })
        .collect();
    let sum: f64 = ratios.iter().sum();
    (!ratios.is_empty() && sum.is_finite()).then(|| (sum / ratios.len() as f64).exp())
}

fn make_group_record(nodes: &Nodes, group: &Group) -> FleetGroup {
    let columns = nodes.attributes.columns.iter().zip(&group.usual);
    let identity = columns.filter_map(|(column, usual)| {
        let value = column.text((*usual)?)?;
        Some((column.name.clone(), value.to_owned()))
    });
    FleetGroup {
        name: group.name.clone(),
        nodes: group.nodes.len(),
        identity: identity.collect(),
        figures: nodes
            .figures
            .iter()
            .filter_map(|figure| make_figure_record(figure, group))
            .collect(),
    }
}

fn make_figure_record(figure: &Figure, group: &Group) -> Option<FleetFigure> {
    let mut values: Vec<f64> = { Nodes::select(&figure.values, &group.nodes) }
        .filter(|value| value.is_finite())
        .collect();
    values.sort_unstable_by(f64::total_cmp);
    let (least, greatest) = (*values.first()?, *values.last()?);
    let logs = (least > 0.0).then(|| values.iter().map(|v| v.ln()).collect::<Vec<f64>>());
    Some(FleetFigure {
        step: figure.step.clone(),
        name: figure.name.clone(),
        unit: figure.unit.clone(),
        nodes: values.len(),
        median: median(&values),
        spread: logs
            .and_then(|logs| find_bulk(&logs))
            .map(|bulk| bulk.scale),
        p5: quantile(&values, 0.05),
        p95: quantile(&values, 0.95),
        least,
        greatest,
    })
}
