//! Times a single arm; there is no verdict.

use super::plan::Tuning;
use pinwise_format::quantity;
use pinwise_record::{Comparison, PlacementKind, Stopped, VerdictKind};
use pinwise_stats::Responses;
use pinwise_stats::describe::median_interval;

/// Fewer runs say little about how runs vary; hyperfine's default minimum.
const MIN_RUNS: usize = 10;
/// Confidence of the interval of the typical run, as in all records.
const CONFIDENCE: f64 = 0.95;

/// Is the interval of the typical run as narrow as requested, or else as the smallest effect of
/// interest?
pub(super) fn is_settled(data: &Responses, tuning: &Tuning) -> bool {
    let costs: Vec<f64> = data.rows().map(|row| row[0]).collect();
    let wanted = tuning.precision.unwrap_or(tuning.min_effect).ln_1p();
    costs.len() >= MIN_RUNS
        && median_interval(&costs, CONFIDENCE).is_some_and(|(low, high)| high - low <= 2.0 * wanted)
}

/// Writes the measured time as the answer; nothing if no run counted.
pub(super) fn conclude_timing(record: &mut Comparison) {
    let [arm] = record.arms.as_slice() else {
        return;
    };
    let Some(estimate) = arm
        .estimate
        .filter(|_| record.stopped != Some(Stopped::Failed))
    else {
        return;
    };
    let figure = |value: f64| quantity(value, &record.metric.unit);
    let interval = estimate.low.zip(estimate.high).map(|(low, high)| {
        let (low, high) = (figure(low), figure(high));
        format!(", interval {low} to {high}")
    });
    let (label, value) = (&record.metric.label, figure(estimate.value));
    record.verdict.sentence = format!(
        "Typically, {label} at {} is {value}{}.",
        arm.name,
        interval.unwrap_or_default()
    );
    record.verdict.advice = match arm.placement.kind {
        PlacementKind::OsDefault => "To compare, add another --place or command.",
        _ => "To compare it with the default, add --place os-default.",
    }
    .to_owned();
    record.verdict.kind = VerdictKind::Timed;
}
