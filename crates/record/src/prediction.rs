//! A search's predictions for placements that it did not run, as a record.

use serde::{Deserialize, Serialize};

use super::metric::Direction;
use pinwise_placement::UsedUnits;
use pinwise_stats::describe::describe;

/// Predictions, best first if placements were not named.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.prediction/1")]
pub struct PlacementPrediction {
    /// Version of pinwise that wrote it.
    pub pinwise_version: String,
    /// The search's id.
    pub search: String,
    /// The command that was searched.
    pub command: Vec<String>,
    /// Name of the metric whose cost is predicted.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is good: costs are values, or the inverse of values.
    pub better: Direction,
    /// The machine predicted for: `local` or `sim:…`.
    pub machine: String,
    /// Is it the machine that was searched?
    pub is_searched_machine: bool,
    /// The prediction for each placement.
    pub placements: Vec<PredictedPlacement>,
    /// Number of placements whose truth is known.
    pub checked: usize,
    /// How many of them have their true ratio in the predicted 90 % interval.
    pub covered: usize,
    /// Median absolute error, as a share; `null` if none is known.
    pub median_error: Option<f64>,
}

/// The prediction for a placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PredictedPlacement {
    /// As `--place` takes it.
    pub place: String,
    /// Its common name, such as `8 cores in one LLC`; the placement, if that is a word.
    pub label: String,
    /// Number of threads.
    pub threads: usize,
    /// Its CPUs on the machine predicted for, as a list.
    pub cpus: String,
    /// Expected cost in the metric's unit (for rates the inverse); `null` for another machine,
    /// whose speed is unknown.
    pub cost: Option<f64>,
    /// Expected cost divided by that of `os-default` on the machine predicted for.
    pub ratio: f64,
    /// Lower end of the 90 % interval of the ratio.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Runs of this very placement that it is based on.
    pub runs: usize,
    /// On a simulated machine: the true cost, s; `null` if unknown.
    pub truth: Option<f64>,
    /// The true cost divided by that of `os-default`.
    pub true_ratio: Option<f64>,
    /// Predicted divided by true, minus 1: for the cost if it is predicted, else for the ratio.
    pub error: Option<f64>,
}

/// A readable name of a placement: for shapes and trees the numbers of units used, else its own
/// text.
#[must_use]
pub fn label_placement(placement: &str, used: &UsedUnits) -> String {
    match placement.split_once(':') {
        Some(("shape", _)) => used.describe(),
        Some(("tree", _)) => format!("{}, unevenly", used.describe()),
        _ => placement.to_owned(),
    }
}

impl PlacementPrediction {
    /// Counts the placements whose truth is known, and summarises their errors.
    pub fn summarise_errors(&mut self) {
        let mut errors: Vec<f64> = Vec::new();
        self.covered = 0;
        for placement in &self.placements {
            let (Some(truth), Some(error)) = (placement.true_ratio, placement.error) else {
                continue;
            };
            errors.push(error.abs());
            if (placement.low..=placement.high).contains(&truth) {
                self.covered += 1;
            }
        }
        self.checked = errors.len();
        self.median_error = describe(&errors).map(|described| described.median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(truth: Option<f64>, error: Option<f64>) -> PredictedPlacement {
        PredictedPlacement {
            place: "compact*4".to_owned(),
            label: String::new(),
            threads: 4,
            cpus: "0-3".to_owned(),
            cost: Some(1.0),
            ratio: 0.9,
            low: 0.85,
            high: 0.95,
            runs: 0,
            truth,
            true_ratio: truth,
            error,
        }
    }

    #[test]
    fn only_placements_with_known_truth_are_checked() {
        let mut record = PlacementPrediction {
            pinwise_version: "0".to_owned(),
            search: "x".to_owned(),
            command: Vec::new(),
            metric: "wall".to_owned(),
            unit: "s".to_owned(),
            better: Direction::Lower,
            machine: "local".to_owned(),
            is_searched_machine: true,
            placements: vec![predicted(None, None)],
            checked: 7,
            covered: 7,
            median_error: Some(1.0),
        };
        record.summarise_errors();
        assert_eq!((record.checked, record.covered), (0, 0));
        assert_eq!(record.median_error, None);
        record.placements = vec![
            predicted(Some(0.9), Some(0.01)),
            predicted(Some(0.8), Some(-0.05)),
            predicted(None, None),
            predicted(Some(0.95), Some(0.02)),
        ];
        record.summarise_errors();
        assert_eq!((record.checked, record.covered), (3, 2));
        assert_eq!(record.median_error, Some(0.02));
        let text = serde_json::to_string(&record).unwrap();
        let again: PlacementPrediction = crate::read(&text).unwrap();
        assert_eq!(again, record);
    }
}
