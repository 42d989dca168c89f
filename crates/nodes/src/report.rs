//! The report of a fleet.

use std::collections::{BTreeMap, BTreeSet};

use crate::findings::findings;
use crate::groups::{Group, groups};
use crate::in_common::common;
use crate::judgement::{JudgedGroup, judge};
use crate::nodes::{Figure, Nodes};
use crate::population::{Criterion, median};
use crate::words::describe_ratio;
use pinwise_format::{count, quantity, round_percent, signed_percent};
use pinwise_record::{
    FleetFigure, FleetGroup, FleetOutlier, FleetRecord, FleetReport, Header, OutlierKind,
};
use pinwise_stats::describe::quantile;
use pinwise_stats::outliers::find_bulk;

/// Maximum number of figures listed of a node; the strongest are.
const MAX_FIGURES_PER_NODE: usize = 40;

/// Nodes that the first sentence names.
const MAX_NAMED: usize = 2;

/// What a report is made with.
#[derive(Debug, Clone, Copy)]
pub struct ReportContext<'a> {
    /// The fleet's id.
    pub fleet: &'a str,
    /// Its plan; `None` if unavailable.
    pub record: Option<&'a FleetRecord>,
    /// This share of the named nodes may be named by chance on average; 0 to 1.
    pub false_discoveries: f64,
    /// The time now, RFC 3339.
    pub now: &'a str,
    /// This host.
    pub host: &'a str,
}

/// Compares the nodes of a fleet with their peers.
#[must_use]
pub fn report(nodes: &Nodes, asked: &ReportContext<'_>) -> FleetReport {
    let groups = groups(nodes);
    let judged = judge(nodes, &groups, asked.false_discoveries);
    let outliers = outliers(nodes, &groups, &judged);
    let common = groups
        .iter()
        .zip(&judged)
        .enumerate()
        .flat_map(|(place, (group, judged))| {
            let label = |what| label(nodes, judged, what);
            common(nodes, group, place, judged, label)
        })
        .collect();
    let findings = findings(nodes, &groups, &outliers, asked.record);
    let submitted = asked.record.map_or(asked.now, |record| &record.started);
    let mut tags = asked
        .record
        .map_or_else(Vec::new, |record| record.tags.clone());
    let own = FleetRecord::tag(asked.fleet);
    if !tags.contains(&own) {
        tags.push(own);
    }
    let figures_judged = judged.iter().map(JudgedGroup::figures_judged).sum();
    FleetReport {
        header: Header {
            findings,
            ..Header::new(format!("{}.report", asked.fleet), asked.now, tags)
        },
        fleet: asked.fleet.to_owned(),
        submitted: submitted.to_owned(),
        host: asked.host.to_owned(),
        asked: asked.record.map_or(nodes.len(), |record| record.asked),
        nodes: nodes.len(),
        complete: nodes.complete,
        false_discovery_rate: asked.false_discoveries,
        judged: figures_judged,
        sentence: sentence(nodes, &outliers, figures_judged, asked),
        groups: groups
            .iter()
            .map(|group| group_record(nodes, group))
            .collect(),
        outliers,
        common,
    }
}

fn sentence(
    nodes: &Nodes,
    outliers: &[FleetOutlier],
    figures_judged: usize,
    asked: &ReportContext<'_>,
) -> String {
    let all: BTreeSet<&str> = outliers.iter().map(|o| o.node.as_str()).collect();
    if nodes.is_empty() {
        return "No node to compare.".to_owned();
    }
    if all.is_empty() && figures_judged == 0 {
        return format!(
            "No setting differs among {}; no group is large enough to judge figures.",
            count(nodes.len(), "node")
        );
    }
    let rate = round_percent(asked.false_discoveries);
    if all.is_empty() {
        let many = count(nodes.len(), "node");
        return format!("None of {many} is an outlier.");
    }
    let verb = if all.len() == 1 { "differs" } else { "differ" };
    let from = if all.len() == 1 { "its" } else { "their" };
    let mut causes: Vec<String> = all.iter().map(|node| cause(node, outliers)).collect();
    let more = causes.len().saturating_sub(MAX_NAMED);
    causes.truncate(MAX_NAMED);
    if more > 0 {
        causes.push(format!("{more} more"));
    }
    let chance = match outliers.iter().any(|o| o.kind == OutlierKind::Figure) {
        true => format!(" At most {rate} of those found by figures are chance."),
        false => String::new(),
    };
    format!(
        "{} of {} {verb} from {from} peers: {}.{chance}",
        all.len(),
        count(nodes.len(), "node"),
        causes.join("; "),
    )
}

/// `n005: memory · triad −48 %`: the figure in which a node departs most, or a setting of its own.
fn cause(node: &str, outliers: &[FleetOutlier]) -> String {
    let own = || outliers.iter().filter(|outlier| outlier.node == node);
    let distance = |outlier: &&FleetOutlier| outlier.z.map_or(0.0, f64::abs);
    let strongest = own().max_by(|a, b| distance(a).total_cmp(&distance(b)));
    let Some(outlier) = strongest else {
        return node.to_owned();
    };
    match (&outlier.setting, outlier.ratio) {
        (None, Some(ratio)) => {
            format!("{node}: {} {}", outlier.figure, signed_percent(ratio - 1.0))
        }
        (Some(setting), _) => format!("{node}: {} is {setting}", outlier.figure),
        _ => format!("{node}: {}", outlier.figure),
    }
}

/// The name of a figure in reports.
fn label(nodes: &Nodes, judged: &JudgedGroup, what: Criterion) -> String {
    match what {
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
            format!("{} · width of intervals", judged.population.steps[place])
        }
    }
}

fn outliers(nodes: &Nodes, groups: &[Group], judged: &[JudgedGroup]) -> Vec<FleetOutlier> {
    // Nodes, the most clearly different first.
    let mut of_nodes: BTreeMap<usize, Vec<FleetOutlier>> = BTreeMap::new();
    for (place, (group, judged)) in groups.iter().zip(judged).enumerate() {
        for anomaly in &judged.anomalies {
            let column = &nodes.attributes.columns[anomaly.attribute];
            let text = |value| column.text(value).unwrap_or_default().to_owned();
            let (own, usual) = (text(anomaly.value), text(anomaly.usual));
            let node = &nodes.names[anomaly.node];
            let listed = of_nodes.entry(anomaly.node).or_default();
            listed.push(FleetOutlier {
                sentence: format!("{node}: {} is {own}; its peers have {usual}.", column.name),
                kind: OutlierKind::Setting,
                figure: column.name.clone(),
                setting: Some(own),
                typical_setting: Some(usual),
                ..blank(nodes, anomaly.node, place)
            });
        }
        for (at, named) in &judged.named {
            let figures = figures_of(nodes, judged, *at, named, place, group);
            of_nodes
                .entry(group.nodes[*at])
                .or_default()
                .extend(figures);
        }
    }
    let mut sorted: Vec<Vec<FleetOutlier>> = of_nodes.into_values().collect();
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

/// The anomalies of a node: figures before derived ones, the farthest first.
fn figures_of(
    nodes: &Nodes,
    judged: &JudgedGroup,
    at: usize,
    named: &[(Criterion, f64)],
    place: usize,
    group: &Group,
) -> Vec<FleetOutlier> {
    let size = |what: Criterion| judged.find(what).map_or(0.0, |of| of.z[at].abs());
    let kind = |what: Criterion| match what {
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
    let listed = listed.filter_map(|(what, adjusted_p)| {
        figure_outlier(nodes, judged, what, adjusted_p, at, group)
    });
    listed
        .map(|outlier| FleetOutlier {
            group: place,
            ..outlier
        })
        .collect()
}

fn blank(nodes: &Nodes, node: usize, group: usize) -> FleetOutlier {
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

fn figure_outlier(
    nodes: &Nodes,
    judged: &JudgedGroup,
    what: Criterion,
    adjusted_p: f64,
    at: usize,
    group: &Group,
) -> Option<FleetOutlier> {
    let of = judged.find(what)?;
    let (node, z) = (group.nodes[at], of.z[at]);
    let mut outlier = FleetOutlier {
        figure: label(nodes, judged, what),
        z: Some(z),
        adjusted_p: Some(adjusted_p),
        ..blank(nodes, node, 0)
    };
    let name = outlier.node.clone();
    let label = outlier.figure.clone();
    if let Criterion::Together(family) = what {
        let ratio = ratio_together(judged, family, at)?;
        outlier.ratio = Some(ratio);
        outlier.sentence = format!("{name}: {label} together are {}.", describe_ratio(ratio));
        return Some(outlier);
    }
    let measure = judged.population.measure(what)?;
    let own = measure.plain(measure.column.values[at]);
    let typical = measure.plain(of.bulk.centre);
    let ratio = own / typical;
    outlier.value = Some(own);
    outlier.typical = Some(typical);
    outlier.ratio = ratio.is_finite().then_some(ratio);
    if let Criterion::Figure(place) = what {
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

/// The geometric mean of a family's ratios.
fn ratio_together(judged: &JudgedGroup, family: usize, at: usize) -> Option<f64> {
    let family = &judged.population.families[family];
    let ratios: Vec<f64> = family
        .figures
        .iter()
        .filter_map(|figure| {
            let what = Criterion::Figure(*figure);
            let measure = judged.population.measure(what)?;
            let away = measure.column.values[at] - judged.find(what)?.bulk.centre;
            measure.is_log.then_some(away)
        })
        .collect();
    let sum: f64 = ratios.iter().sum();
    (!ratios.is_empty() && sum.is_finite()).then(|| (sum / ratios.len() as f64).exp())
}

fn group_record(nodes: &Nodes, group: &Group) -> FleetGroup {
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
            .filter_map(|figure| figure_record(figure, group))
            .collect(),
    }
}

fn figure_record(figure: &Figure, group: &Group) -> Option<FleetFigure> {
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
