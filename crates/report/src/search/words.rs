//! Formats values, numbers of placements and the model of a search.

use crate::style::{format_range, quantity};
use pinwise_format::{count, percent, power_of_ten};
use pinwise_record::{Direction, ModelJudgement, SearchModelRecord, SearchRecord, SpaceRecord};

/// Formats the value of the metric for a cost.
pub(super) fn format_value(record: &SearchRecord, cost: f64) -> String {
    let value = match record.metric.better {
        Direction::Higher => cost.recip(),
        Direction::Lower | Direction::Other(_) => cost,
    };
    quantity(value, &record.metric.unit)
}

/// Formats the range of values between two costs.
pub(super) fn format_value_range(record: &SearchRecord, low: f64, high: f64) -> String {
    let (low, high) = match record.metric.better {
        Direction::Higher => (format_value(record, high), format_value(record, low)),
        Direction::Lower | Direction::Other(_) => {
            (format_value(record, low), format_value(record, high))
        }
    };
    format_range(&low, &high)
}

/// Describes the searched space, such as `45 shapes of 2.8·10^17 placements of 128 threads.`
pub(super) fn describe_space(space: &[SpaceRecord]) -> Option<String> {
    let (first, last) = (space.first()?, space.last()?);
    let shapes: usize = space.iter().map(|space| space.shapes).sum();
    let placements: f64 = space
        .iter()
        .map(|space| space.placements.parse().unwrap_or(f64::NAN))
        .sum();
    let threads = match space.len() {
        1 => count(first.threads, "thread"),
        many => format!(
            "{} to {} threads ({many} numbers)",
            first.threads, last.threads
        ),
    };
    Some(format!(
        "{} of {} of {threads}.",
        count(shapes, "shape"),
        format_placements(placements)
    ))
}

/// Formats a number of placements, which may have dozens of digits.
fn format_placements(placements: f64) -> String {
    if !placements.is_finite() {
        return "very many placements".to_owned();
    }
    if placements < 1e6 {
        let ending = if placements > 1.5 { "s" } else { "" };
        return format!("{placements:.0} placement{ending}");
    }
    format!("{} placements", power_of_ten(placements))
}

/// Describes how well the model predicts.
pub(super) fn describe_model(model: &SearchModelRecord) -> String {
    let worth = match &model.judgement {
        ModelJudgement::Fits => "The model of placements fits",
        ModelJudgement::Misfits => "The model explains part of what placements cost",
        ModelJudgement::Useless => "The model predicts nothing here",
        ModelJudgement::Other(_) => "The model's worth is unknown",
    };
    let missed = model.prediction_error.map_or_else(String::new, |error| {
        format!(", predictions of first runs were off by {}", percent(error))
    });
    let noise = percent(model.noise_sd);
    format!("{worth}; runs vary by {noise}{missed}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_described_by_shapes_placements_and_threads() {
        let space = |threads, placements: &str, shapes| SpaceRecord {
            threads,
            placements: placements.to_owned(),
            shapes,
        };
        let one = [space(128, "282429536481000000", 45)];
        assert_eq!(
            describe_space(&one).unwrap(),
            "45 shapes of 2.8·10^17 placements of 128 threads."
        );
        let two = [space(1, "1", 1), space(4, "12", 5)];
        assert_eq!(
            describe_space(&two).unwrap(),
            "6 shapes of 13 placements of 1 to 4 threads (2 numbers)."
        );
        assert_eq!(
            describe_space(&[space(1, "1", 1)]).unwrap(),
            "1 shape of 1 placement of 1 thread."
        );
        let damaged = [space(2, "many", 3)];
        assert!(describe_space(&damaged).unwrap().contains("very many"));
        assert_eq!(describe_space(&[]), None);
    }
}
