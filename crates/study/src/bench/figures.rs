//! Computes the figures of a kernel from the comparison of its cells: rates, speed-ups, efficiency,
//! SMT yield.
//!
//! Ratios and their intervals come from the comparison; here they are only inverted, since a higher
//! rate is better.

use super::BenchPlan;
use super::cache_fit;
use super::cells::{Cell, Trial};
use super::conclusions::widest_difference;
use pinwise_record::{
    Arm, Bench, BenchCell, BenchKernel, Comparison, Estimate, Finding, KernelRecord, Question,
    Severity, Stopped,
};

/// Computes the figures of a trial.
pub(super) fn compute_figures(
    trial: &Trial,
    plan: &BenchPlan,
    facts: Option<&KernelRecord>,
    comparison: &Comparison,
) -> BenchKernel {
    let baseline_threads = trial.cells[0].threads;
    let cells: Vec<BenchCell> = trial
        .cells
        .iter()
        .zip(&comparison.arms)
        .map(|(cell, arm)| {
            let per_unit = |total: u64| {
                facts
                    .filter(|facts| facts.work > 0)
                    .map(|facts| total as f64 / facts.work as f64 * trial.work as f64)
            };
            let speed_up = speed_up_over_baseline(arm, comparison);
            let threads_ratio = cell.threads as f64 / baseline_threads as f64;
            BenchCell {
                rate: facts
                    .and_then(|facts| per_unit(facts.operations))
                    .and_then(|total| divide_by_time(total, arm.estimate)),
                bytes_per_s: facts
                    .and_then(|facts| per_unit(facts.bytes?))
                    .and_then(|total| divide_by_time(total, arm.estimate)),
                efficiency: speed_up
                    .filter(|_| shows_efficiency(trial.question))
                    .map(|speed_up| speed_up.value / threads_ratio),
                speed_up,
                ..describe_cell(trial, cell, arm)
            }
        })
        .collect();
    BenchKernel {
        kernel: trial.kernel.name.to_owned(),
        group: trial.kernel.group.name().to_owned(),
        question: trial.question,
        comparison: comparison.id.clone(),
        work: trial.work,
        operation: facts.map_or(trial.kernel.operation.to_owned(), |f| f.operation.clone()),
        working_set_bytes: facts
            .map(|f| f.working_set_bytes)
            .filter(|&bytes| bytes > 0),
        cache_fit: describe_cache_fit(trial, plan, facts),
        baseline: comparison.baseline.clone(),
        smt_yield: smt_yield(trial.question, &cells),
        placement_difference: (trial.question == Question::Scaling)
            .then(|| widest_difference(&cells))
            .flatten(),
        cells,
        confidence: 1.0 - comparison.plan.alpha,
        blocks: comparison.blocks,
        stopped: comparison.stopped,
    }
}

const fn shows_efficiency(question: Question) -> bool {
    matches!(
        question,
        Question::Scaling | Question::SmtMachine | Question::SmtCore
    )
}

/// The baseline's working set, compared with the caches.
pub(super) fn describe_cache_fit(
    trial: &Trial,
    plan: &BenchPlan,
    facts: Option<&KernelRecord>,
) -> String {
    match facts {
        Some(facts) if facts.working_set_bytes > 0 => {
            let threads = trial.cells[0].threads;
            cache_fit::describe_fit(facts.working_set_bytes, threads, &plan.caches)
        }
        _ => String::new(),
    }
}

fn describe_cell(trial: &Trial, cell: &Cell, arm: &Arm) -> BenchCell {
    BenchCell {
        name: trial.name(cell),
        threads: cell.threads,
        family: cell.family.clone(),
        placement: cell.place.placement.to_string(),
        cpus: cell.place.cpus.to_string(),
        same_as: cell.same_as.clone(),
        isa: cell.isa.name().to_owned(),
        size: cell.size,
        seconds: arm.estimate,
        rate: None,
        bytes_per_s: None,
        speed_up: None,
        efficiency: None,
        invalid: arm.invalid.clone(),
    }
}

fn divide_by_time(total: f64, seconds: Option<Estimate>) -> Option<Estimate> {
    let seconds = seconds.filter(|s| s.value > 0.0 && total > 0.0)?;
    Some(Estimate {
        value: total / seconds.value,
        low: seconds.high.map(|high| total / high),
        high: seconds.low.filter(|&low| low > 0.0).map(|low| total / low),
    })
}

/// The contrast's ratio of costs, inverted; the baseline's is 1.
fn speed_up_over_baseline(arm: &Arm, comparison: &Comparison) -> Option<Estimate> {
    if arm.name == comparison.baseline {
        return arm.estimate.map(|_| Estimate {
            value: 1.0,
            low: Some(1.0),
            high: Some(1.0),
        });
    }
    let contrast = comparison.contrasts.iter().find(|c| c.arm == arm.name)?;
    Some(Estimate {
        value: 1.0 / contrast.ratio,
        low: contrast.high.map(|high| 1.0 / high),
        high: contrast.low.filter(|&low| low > 0.0).map(|low| 1.0 / low),
    })
}

/// How much more work the second cell of an SMT question does than the first.
fn smt_yield(question: Question, cells: &[BenchCell]) -> Option<Estimate> {
    if !matches!(question, Question::SmtCore | Question::SmtMachine) {
        return None;
    }
    let gain = cells.get(1)?.speed_up?;
    Some(Estimate {
        value: gain.value - 1.0,
        low: gain.low.map(|low| low - 1.0),
        high: gain.high.map(|high| high - 1.0),
    })
}

/// Copies the comparison's warnings into `found`, one of each kind: what disturbs the machine
/// usually disturbs all trials. Invalid arms are copied for every trial.
pub(super) fn copy_findings(found: &mut Vec<Finding>, trial: &Trial, comparison: &Comparison) {
    for finding in &comparison.findings {
        let is_new = !found.iter().any(|other| other.check == finding.check);
        let concerns_one_trial = finding.check == "arm_invalid";
        if finding.severity > Severity::Note && (is_new || concerns_one_trial) {
            let mut finding = finding.clone();
            finding.sentence = format!("{}: {}", trial.kernel.name, finding.sentence);
            found.push(finding);
        }
    }
    found.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.weight)));
}

/// Why the comparisons ended: the worst reason among them.
pub(super) fn stop_reason(record: &Bench) -> Option<Stopped> {
    let reasons = || record.kernels.iter().filter_map(|kernel| kernel.stopped);
    let worst_first = [
        Stopped::Interrupted,
        Stopped::Failed,
        Stopped::Budget,
        Stopped::Runs,
    ];
    let worst = worst_first
        .into_iter()
        .find(|reason| reasons().any(|r| r == *reason));
    Some(worst.unwrap_or(Stopped::Precision))
}
