//! How often reported levels are right, by their confidence.

use anyhow::Result;
use pinwise_wiring::{ConfidenceFactors, Evidence, Weights, infer};

use super::corpus::KnownMachine;
use super::variations::Varied;
use crate::share::wilson_interval;
use crate::table::Table;

/// Boundaries of the classes of confidence.
const EDGES: [f64; 7] = [0.0, 0.5, 0.8, 0.9, 0.95, 0.99, 1.0];
/// Newton steps; five suffice.
const STEPS: usize = 12;
/// Ridge that keeps weights finite if a factor was never wrong, per machine.
const RIDGE: f64 = 3e-4;

/// A level that was found.
struct FoundLevel {
    machine: usize,
    factors: ConfidenceFactors,
    confidence: f64,
    is_right: bool,
}

/// The reliability tables: with the reported confidence, and with that by weights from the other
/// machines only.
pub(super) fn publish(machines: &[Varied]) -> Result<()> {
    let reported: Vec<FoundLevel> = (0..machines.len())
        .flat_map(|m| find_levels(machines, m))
        .collect();
    let printed: Vec<f64> = reported.iter().map(|level| level.confidence).collect();
    let folds: Vec<Weights> = (0..machines.len())
        .map(|out| fit(&reported, |machine| machine != out))
        .collect();
    let unseen: Vec<f64> = reported
        .iter()
        .map(|level| level.factors.confidence_with(&folds[level.machine]))
        .collect();
    for (name, confidences) in [("printed", &printed), ("unseen", &unseen)] {
        let mut table = Table::new(
            &format!("wiring-confidence-{name}"),
            "confidence | levels | machines | mean | right | 95 %",
        );
        for edges in EDGES.windows(2) {
            let row = format_class(&reported, confidences, edges[0], edges[1]);
            row.into_iter().for_each(|row| table.add_row(row));
        }
        table.publish()?;
        let log_loss = weighted_mean(&reported, |at, y| {
            let p = confidences[at].clamp(1e-3, 1.0 - 1e-3);
            -(y * p.ln() + (1.0 - y) * (1.0 - p).ln())
        });
        let brier = weighted_mean(&reported, |at, y| (confidences[at] - y).powi(2));
        println!("\nLog loss {log_loss:.4}, Brier score {brier:.4} ({name}).");
    }
    let weights = fit(&reported, |_| true).map(|weight| format!("{weight:.2}"));
    println!("\nWeights from all machines: {}.", weights.join(", "));
    Ok(())
}

fn find_levels(machines: &[Varied], machine: usize) -> Vec<FoundLevel> {
    let judge_levels = |known: &KnownMachine, evidence: &Evidence| -> Vec<FoundLevel> {
        let found = infer(evidence).levels.into_iter();
        found
            .filter_map(|level| {
                Some(FoundLevel {
                    machine,
                    factors: level.factors?,
                    confidence: level.confidence,
                    is_right: known
                        .expected
                        .iter()
                        .any(|(_, groups)| *groups == level.groups),
                })
            })
            .collect()
    };
    let cases = machines[machine].cases.iter();
    cases
        .flat_map(|known| {
            let mut reported = judge_levels(known, &known.to_evidence());
            reported.extend(judge_levels(known, &known.add_contention(1)));
            reported
        })
        .collect()
}

/// Every machine weighs the same, however many of its levels are in the class.
fn format_class(
    reported: &[FoundLevel],
    confidences: &[f64],
    from: f64,
    to: f64,
) -> Option<String> {
    let is_in = |p: f64| p >= from && (p < to || to >= 1.0);
    let mut of_machine: Vec<(usize, [f64; 3])> = Vec::new();
    for (level, &p) in reported.iter().zip(confidences).filter(|(_, p)| is_in(**p)) {
        if of_machine
            .last()
            .is_none_or(|(machine, _)| *machine != level.machine)
        {
            of_machine.push((level.machine, [0.0; 3]));
        }
        let last = of_machine.len() - 1;
        let sums = &mut of_machine[last].1;
        sums[0] += 1.0;
        sums[1] += p;
        sums[2] += f64::from(u8::from(level.is_right));
    }
    let machines = of_machine.len() as f64;
    if of_machine.is_empty() {
        return None;
    }
    let share = |which: usize| of_machine.iter().map(|(_, s)| s[which] / s[0]).sum::<f64>();
    let levels: f64 = of_machine.iter().map(|(_, sums)| sums[0]).sum();
    let (low, high) = wilson_interval(share(2), machines);
    Some(format!(
        "{from:.2} to {to:.2} | {levels} | {machines} | {:.3} | {:.3} | {low:.2}–{high:.2}",
        share(1) / machines,
        share(2) / machines
    ))
}

/// The mean over machines of the mean over their levels.
fn weighted_mean(reported: &[FoundLevel], value: impl Fn(usize, f64) -> f64) -> f64 {
    let weights = machine_weights(reported, |_| true);
    let right = |level: &FoundLevel| f64::from(u8::from(level.is_right));
    let all = reported.iter().zip(&weights).enumerate();
    all.map(|(at, (level, weight))| weight * value(at, right(level)))
        .sum()
}

/// Every used machine weighs the same, others 0.
fn machine_weights(reported: &[FoundLevel], is_used: impl Fn(usize) -> bool) -> Vec<f64> {
    let most = reported
        .iter()
        .map(|level| level.machine)
        .max()
        .unwrap_or(0);
    let mut counts = vec![0.0; most + 1];
    for level in reported.iter().filter(|level| is_used(level.machine)) {
        counts[level.machine] += 1.0;
    }
    let machines = counts.iter().filter(|count| **count > 0.0).count() as f64;
    reported
        .iter()
        .map(|level| match counts[level.machine] {
            0.0 => 0.0,
            count => 1.0 / (count * machines),
        })
        .collect()
}

/// Logistic regression of being right on the factors, by Newton's method.
fn fit(reported: &[FoundLevel], is_used: impl Fn(usize) -> bool) -> Weights {
    let weights = machine_weights(reported, is_used);
    let mut found: Weights = [0.0; 7];
    for _ in 0..STEPS {
        let mut gradient = [0.0; 7];
        let mut curvature = [[0.0; 7]; 7];
        for place in 0..7 {
            gradient[place] = -RIDGE * found[place];
            curvature[place][place] = RIDGE;
        }
        for (level, weight) in reported.iter().zip(&weights).filter(|(_, w)| **w > 0.0) {
            let p = level.factors.confidence_with(&found);
            let terms = level.factors.features();
            let error = f64::from(u8::from(level.is_right)) - p;
            for i in 0..7 {
                gradient[i] += weight * error * terms[i];
                for j in 0..7 {
                    curvature[i][j] += weight * p * (1.0 - p) * terms[i] * terms[j];
                }
            }
        }
        for (weight, step) in found.iter_mut().zip(solve(curvature, gradient)) {
            *weight += step;
        }
    }
    found
}

/// Solves a positive definite system by elimination.
fn solve(mut matrix: [[f64; 7]; 7], mut right: Weights) -> Weights {
    for pivot in 0..7 {
        for row in 0..7 {
            if row == pivot {
                continue;
            }
            let factor = matrix[row][pivot] / matrix[pivot][pivot];
            let subtracted = matrix[pivot];
            for (entry, other) in matrix[row].iter_mut().zip(subtracted) {
                *entry -= factor * other;
            }
            right[row] -= factor * right[pivot];
        }
    }
    std::array::from_fn(|place| right[place] / matrix[place][place])
}
