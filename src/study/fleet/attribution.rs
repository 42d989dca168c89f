//! Which part of the difference between two groups stands where, of workloads
//! that a step profiled on their nodes: nodes are its repeats, and their spread
//! its error.

use super::diff::Side;
use super::nodes::{Figure, Nodes};
use crate::profile::{Facts, Figure as Measured, Repeat, Repeats};
use crate::record::{AttributionRecord, FleetAttribution, PER_UNIT, PER_UNIT_FACTS};
use crate::stats::describe::{mean, sd};

/// Half-width of a 95 % interval, in standard errors.
const NORMAL: f64 = 1.96;

/// Of each step that is a profile on both sides.
pub(super) fn attributions(a: Side<'_>, b: Side<'_>) -> Vec<FleetAttribution> {
    let profiled = |figure: &&Figure| figure.name == PER_UNIT[1];
    let steps = a.nodes.figures.iter().filter(profiled);
    steps
        .flat_map(|figure| {
            let sides = [a, b].map(|side| repeats(side, &figure.step));
            let found = match &sides {
                [Some(a), Some(b)] => AttributionRecord::all(a, b, "unit"),
                _ => Vec::new(),
            };
            found.into_iter().map(|attribution| FleetAttribution {
                step: figure.step.clone(),
                attribution,
            })
        })
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
            samples: counted(cpu_s, half),
            hints: value(all[2], node)? / cpu_s,
            accesses: value(all[3], node).map(|time_s| time_s / cpu_s),
            unread: value(all[4], node).unwrap_or(0.0) / cpu_s,
        })
    };
    let nodes = side.group.nodes.iter();
    let repeats: Vec<Repeat> = nodes.filter_map(|node| repeat(*node)).collect();
    let [pause_ns, cycle_ns, memory_ns] =
        PER_UNIT_FACTS.map(|name| find(name).and_then(|figure| fact(side, figure)));
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

/// Samples whose counting error is an interval of this half-width.
fn counted(value: f64, half: f64) -> u64 {
    let samples = (NORMAL * value / half).powi(2).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped: a float becomes the nearest whole number"
    )]
    let whole = samples.clamp(1.0, 1e15) as u64;
    whole
}

/// The nodes' mean, by their spread; of one node by its own interval.
fn fact(side: Side<'_>, figure: &Figure) -> Option<Measured> {
    let of = |column: &[f64]| -> Vec<f64> {
        let all = Nodes::of(column, &side.group.nodes);
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
    (!values.is_empty()).then(|| Measured {
        value: mean(&values),
        error: sd(&values) / (values.len() as f64).sqrt(),
    })
}
