//! What causes the difference between two groups, for workloads that a step profiled on their
//! nodes. Each node counts as a repeat; the spread between nodes is the error.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::nodes::{Figure, Nodes};
use crate::side::{Side, is_near_centre, list_figures, match_figures};
use pinwise_format::whole;
use pinwise_profile::{Facts, Figure as Measured, Repeat, Repeats};
use pinwise_record::{AttributionRecord, FleetAttribution, PER_UNIT, PER_UNIT_FACTS};
use pinwise_stats::describe::{mean, sd};

/// Half-width of a 95 % interval, in standard errors.
const NORMAL: f64 = 1.96;

/// Attributes the difference of each step that profiled a workload on both sides. Steps are paired
/// as their figures are.
pub(crate) fn attribute_differences(a: Side<'_>, b: Side<'_>) -> Vec<FleetAttribution> {
    match_figures(&find_profiled(a), &find_profiled(b))
        .into_iter()
        .flat_map(|(in_a, in_b)| {
            let found = match [make_repeats(a, &in_a.step), make_repeats(b, &in_b.step)] {
                [Some(a), Some(b)] => AttributionRecord::attribute_all(&a, &b, "unit"),
                _ => Vec::new(),
            };
            found.into_iter().map(|attribution| FleetAttribution {
                step: in_a.step.clone(),
                attribution,
            })
        })
        .collect()
}

/// The CPU-time figures, which every step with a profile has.
fn find_profiled<'a>(side: Side<'a>) -> Vec<&'a Figure> {
    let figures = list_figures(side).into_iter();
    figures
        .filter(|figure| figure.name == PER_UNIT[1])
        .collect()
}

fn make_repeats(side: Side<'_>, step: &str) -> Option<Repeats> {
    let find = |name: &str| {
        let mut figures = side.nodes.figures.iter();
        figures.find(|figure| figure.step == step && figure.name == name)
    };
    let per_unit = PER_UNIT.map(find);
    let cpu = per_unit[1]?;
    let value = |figure: Option<&Figure>, node: usize| {
        let value = figure?.values.get(node).copied()?;
        value.is_finite().then_some(value)
    };
    let repeat = |node: usize| {
        let cpu_s = value(per_unit[1], node).filter(|cpu_s| *cpu_s > 0.0)?;
        let half = 0.5 * (cpu.highs.get(node)? - cpu.lows.get(node)?);
        Some(Repeat {
            units: 1.0,
            wall_s: value(per_unit[0], node),
            cpu_s,
            samples: count_samples(cpu_s, half),
            hints: value(per_unit[2], node)? / cpu_s,
            accesses: value(per_unit[3], node).map(|time_s| time_s / cpu_s),
            unread: value(per_unit[4], node).unwrap_or(0.0) / cpu_s,
        })
    };
    let nodes = select_central_nodes(side, &per_unit);
    let repeats: Vec<Repeat> = nodes.iter().filter_map(|node| repeat(*node)).collect();
    let [pause_ns, cycle_ns, memory_ns] =
        PER_UNIT_FACTS.map(|name| find(name).and_then(|figure| mean_with_error(&nodes, figure)));
    (!repeats.is_empty()).then_some(Repeats {
        repeats,
        facts: Facts {
            pause_ns,
            cycle_ns,
            memory_ns,
            ..Facts::default()
        },
    })
}

/// Nodes near their group's centre in elapsed and in CPU time. As with ratios of figures, nodes far
/// from it are left out.
fn select_central_nodes(side: Side<'_>, per_unit: &[Option<&Figure>]) -> Vec<usize> {
    let mut nodes = side.group.nodes.clone();
    for figure in per_unit.iter().take(2).copied().flatten() {
        let log = |node: &usize| {
            figure
                .values
                .get(*node)
                .map_or(f64::NAN, |value| value.ln())
        };
        let logs: Vec<f64> = side.group.nodes.iter().map(log).collect();
        let is_near = is_near_centre(&logs);
        // A node without elapsed time still counts for the other figures.
        nodes.retain(|node| !log(node).is_finite() || is_near(log(node)));
    }
    nodes
}

/// The number of samples whose counting error gives an interval of this half-width.
fn count_samples(value: f64, half: f64) -> u64 {
    whole((NORMAL * value / half).powi(2).clamp(1.0, 1e15))
}

/// The nodes' mean, with an error from their spread, widened for few nodes. A single node has the
/// error of its own interval.
fn mean_with_error(nodes: &[usize], figure: &Figure) -> Option<Measured> {
    let list_finite = |column: &[f64]| -> Vec<f64> {
        let values = Nodes::select(column, nodes);
        values.filter(|value| value.is_finite()).collect()
    };
    let values = list_finite(&figure.values);
    if let ([value], [low], [high]) = (
        values.as_slice(),
        list_finite(&figure.lows).as_slice(),
        list_finite(&figure.highs).as_slice(),
    ) {
        return Some(Measured::new(*value, Some(*low), Some(*high)));
    }
    let count = values.len() as f64;
    let student = StudentsT::new(0.0, 1.0, (count - 1.0).max(1.0)).ok()?;
    (!values.is_empty()).then(|| Measured {
        value: mean(&values),
        error: sd(&values) / count.sqrt() * student.inverse_cdf(0.975) / NORMAL,
    })
}

#[cfg(test)]
mod tests;
