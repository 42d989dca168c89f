//! Compares a search on a simulated machine with the true cost of every arm.

use super::state::Engine;
use crate::compare::Trial;
use pinwise_record::{PredictedArm, TruthRecord};
use pinwise_stats::describe::median;

/// True cost of every arm, seconds; `None` if it is unknown or the arm fails.
pub(super) fn true_costs(engine: &Engine<'_>) -> Vec<Option<f64>> {
    // Simulated machines know only the true time.
    if !engine.plan.metric.is_wall() {
        return vec![None; engine.arms.len()];
    }
    let Some(simulation) = engine.machine.simulation() else {
        return vec![None; engine.arms.len()];
    };
    let arms = engine.arms.iter().zip(&engine.invalid);
    arms.map(|(arm, invalid)| {
        let trial = Trial {
            workload: &arm.workload,
            place: &arm.place,
            binding: None,
            settings: &[],
            companion: None,
            metric: &engine.plan.metric,
            output: engine.plan.output.clone(),
            padding: 0,
        };
        let cost = simulation.true_cost(&trial.request());
        cost.filter(|_| invalid.is_none())
    })
    .collect()
}

/// The arm's cost divided by that of the best, minus 1.
pub(super) fn regret(costs: &[Option<f64>], arm: usize) -> Option<f64> {
    let (_, best) = find_cheapest(costs)?;
    Some(costs[arm]? / best - 1.0)
}

fn find_cheapest(costs: &[Option<f64>]) -> Option<(usize, f64)> {
    let known = costs.iter().enumerate();
    let known = known.filter_map(|(arm, cost)| Some((arm, (*cost)?)));
    known.min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Compares the predictions with the truth.
pub(super) fn compare_with_truth(
    costs: &[Option<f64>],
    names: &[String],
    predictions: &[PredictedArm],
    anchor: usize,
) -> Option<TruthRecord> {
    let (best, cost) = find_cheapest(costs)?;
    let known: Vec<(&PredictedArm, f64)> = predictions
        .iter()
        .filter_map(|arm| Some((arm, arm.truth?)))
        .collect();
    // Predictions hold for the machine's speed during the search: see `assemble::cost_interval`.
    let is_anchor = |arm: &PredictedArm| arm.arm == names[anchor];
    let anchor = known.iter().find(|(arm, _)| is_anchor(arm));
    let level = anchor.map_or(1.0, |(arm, truth)| arm.predicted / truth);
    let is_inside =
        |(arm, truth): &&(&PredictedArm, f64)| (arm.low..=arm.high).contains(&(truth * level));
    let others = || known.iter().filter(|(arm, _)| !is_anchor(arm));
    let inside = others().filter(is_inside).count();
    let never_run = known.iter().filter(|(arm, _)| arm.runs == 0);
    let errors = never_run.map(|(arm, truth)| (arm.predicted / truth - 1.0).abs());
    Some(TruthRecord {
        best: names[best].clone(),
        cost,
        default_ratio: costs[0]? / cost,
        prediction_error: median(&errors.collect::<Vec<_>>()),
        coverage: inside as f64 / others().count().max(1) as f64,
    })
}
