//! Names, costs and large numbers of a search, in words.

use crate::style::{power_of_ten, quantity, range};
use pinwise_format::{count, percent};
use pinwise_record::{Direction, ModelJudgement, SearchModelRecord, SearchRecord, SpaceRecord};

/// The value of the metric that has this cost.
pub(super) fn value(record: &SearchRecord, cost: f64) -> String {
    let value = match record.metric.better {
        Direction::Higher => cost.recip(),
        Direction::Lower | Direction::Other(_) => cost,
    };
    quantity(value, &record.metric.unit)
}

/// The values between two costs; the unit once if it is the same.
pub(super) fn value_range(record: &SearchRecord, low: f64, high: f64) -> String {
    let (low, high) = match record.metric.better {
        Direction::Higher => (value(record, high), value(record, low)),
        Direction::Lower | Direction::Other(_) => (value(record, low), value(record, high)),
    };
    range(&low, &high)
}

/// `45 shapes of 2.8·10^17 placements of 128 threads.`
pub(super) fn placements(space: &[SpaceRecord]) -> Option<String> {
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
        large(placements)
    ))
}

/// A number of placements that may have dozens of digits.
fn large(placements: f64) -> String {
    if !placements.is_finite() {
        return "very many placements".to_owned();
    }
    if placements < 1e6 {
        let ending = if placements > 1.5 { "s" } else { "" };
        return format!("{placements:.0} placement{ending}");
    }
    format!("{} placements", power_of_ten(placements))
}

/// What the model is worth.
pub(super) fn model(model: &SearchModelRecord) -> String {
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
    fn numbers_of_placements() {
        let space = |threads, placements: &str, shapes| SpaceRecord {
            threads,
            placements: placements.to_owned(),
            shapes,
        };
        let one = [space(128, "282429536481000000", 45)];
        assert_eq!(
            placements(&one).unwrap(),
            "45 shapes of 2.8·10^17 placements of 128 threads."
        );
        let two = [space(1, "1", 1), space(4, "12", 5)];
        assert_eq!(
            placements(&two).unwrap(),
            "6 shapes of 13 placements of 1 to 4 threads (2 numbers)."
        );
        assert_eq!(
            placements(&[space(1, "1", 1)]).unwrap(),
            "1 shape of 1 placement of 1 thread."
        );
        let damaged = [space(2, "many", 3)];
        assert!(placements(&damaged).unwrap().contains("very many"));
        assert_eq!(placements(&[]), None);
    }
}
