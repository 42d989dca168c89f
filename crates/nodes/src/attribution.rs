//! Which part of the difference between two groups comes from what, for workloads that a step
//! profiled on their nodes: nodes are its repeats, and their spread its error.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::nodes::{Figure, Nodes};
use crate::side::{Side, is_near_centre, list_figures, match_figures};
use pinwise_format::whole;
use pinwise_profile::{Facts, Figure as Measured, Repeat, Repeats};
use pinwise_record::{AttributionRecord, FleetAttribution, PER_UNIT, PER_UNIT_FACTS};
use pinwise_stats::describe::{mean, sd};

/// Half-width of a 95 % interval, in standard errors.
const NORMAL: f64 = 1.96;

/// For each step that is a profile on both sides, paired as its figures are.
pub(crate) fn attributions(a: Side<'_>, b: Side<'_>) -> Vec<FleetAttribution> {
    match_figures(&find_profiled(a), &find_profiled(b))
        .into_iter()
        .flat_map(|(in_a, in_b)| {
            let found = match [repeats(a, &in_a.step), repeats(b, &in_b.step)] {
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

/// CPU times of steps that are profiles.
fn find_profiled<'a>(side: Side<'a>) -> Vec<&'a Figure> {
    let figures = list_figures(side).into_iter();
    figures
        .filter(|figure| figure.name == PER_UNIT[1])
        .collect()
}

fn repeats(side: Side<'_>, step: &str) -> Option<Repeats> {
    let find = |name: &str| {
        let mut figures = side.nodes.figures.iter();
        figures.find(|figure| figure.step == step && figure.name == name)
    };
    let all = PER_UNIT.map(find);
    let cpu = all[1]?;
    let value = |figure: Option<&Figure>, node: usize| {
        let value = figure?.values.get(node).copied()?;
        value.is_finite().then_some(value)
    };
    let repeat = |node: usize| {
        let cpu_s = value(all[1], node).filter(|cpu_s| *cpu_s > 0.0)?;
        let half = 0.5 * (cpu.highs.get(node)? - cpu.lows.get(node)?);
        Some(Repeat {
            units: 1.0,
            wall_s: value(all[0], node),
            cpu_s,
            samples: round_count(cpu_s, half),
            hints: value(all[2], node)? / cpu_s,
            accesses: value(all[3], node).map(|time_s| time_s / cpu_s),
            unread: value(all[4], node).unwrap_or(0.0) / cpu_s,
        })
    };
    let nodes = carrying(side, &all);
    let repeats: Vec<Repeat> = nodes.iter().filter_map(|node| repeat(*node)).collect();
    let [pause_ns, cycle_ns, memory_ns] =
        PER_UNIT_FACTS.map(|name| find(name).and_then(|figure| fact(&nodes, figure)));
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

/// Nodes near their group's centre by elapsed and by CPU time: as with ratios of figures, others do
/// not carry the difference.
fn carrying(side: Side<'_>, per_unit: &[Option<&Figure>]) -> Vec<usize> {
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
        // A node without elapsed time may still carry the rest.
        nodes.retain(|node| !log(node).is_finite() || is_near(log(node)));
    }
    nodes
}

/// Samples whose counting error is an interval of this half-width.
fn round_count(value: f64, half: f64) -> u64 {
    whole((NORMAL * value / half).powi(2).clamp(1.0, 1e15))
}

/// The nodes' mean, by their spread, which says less the fewer they are; of one
/// node by its own interval.
fn fact(nodes: &[usize], figure: &Figure) -> Option<Measured> {
    let of = |column: &[f64]| -> Vec<f64> {
        let all = Nodes::select(column, nodes);
        all.filter(|value| value.is_finite()).collect()
    };
    let values = of(&figure.values);
    if let ([value], [low], [high]) = (
        values.as_slice(),
        of(&figure.lows).as_slice(),
        of(&figure.highs).as_slice(),
    ) {
        return Some(Measured::new(*value, Some(*low), Some(*high)));
    }
    let many = values.len() as f64;
    let student = StudentsT::new(0.0, 1.0, (many - 1.0).max(1.0)).ok()?;
    (!values.is_empty()).then(|| Measured {
        value: mean(&values),
        error: sd(&values) / many.sqrt() * student.inverse_cdf(0.975) / NORMAL,
    })
}

#[cfg(test)]
mod tests;
