//! A lower bound on the slow-down of arms whose run does not end within the time-out.
//!
//! There is no interval: a run that was killed shows only that it takes longer.

use std::time::Duration;

use super::advice;
use super::plan::ComparePlan;
use super::results::Results;
use pinwise_format::{duration, trimmed};
use pinwise_record::{
    Comparison, ComparisonStudy, RunRecord, Stopped, TimedOutRecord, VerdictKind,
};
use pinwise_stats::describe::median;
use pinwise_stats::verdict::ComparisonOutcome;
use pinwise_topology::Topology;

/// Smallest ratio of the time-out to the slowest run of the other arm from which a slow-down is
/// concluded: with a smaller one, the run may have been late by chance.
const MIN_RATIO: f64 = 2.0;

/// Records which arms never ended within the time-out, with a lower bound of their slow-down. An arm
/// is compared with the baseline, and the baseline with the only other arm.
pub(super) fn bound_late_arms(record: &mut Comparison, plan: &ComparePlan, results: &Results) {
    let is_time = record.metric.is_wall() && plan.service.is_none();
    if !is_time || plan.study != ComparisonStudy::Compare {
        return;
    }
    for arm in 0..plan.arms.len() {
        let other = match arm == plan.baseline {
            false => plan.baseline,
            true if plan.arms.len() == 2 => 1 - arm,
            true => continue,
        };
        let times = ended_runs_s(results, other);
        let limit = plan.arms[arm].workload.timeout;
        let is_late = results.arms[arm].has_timed_out && ended_runs_s(results, arm).is_empty();
        let Some(limit) = limit.filter(|_| is_late) else {
            continue;
        };
        let [name, other] = [arm, other].map(|arm| &plan.arms[arm].name);
        if let Some(late) = bound_slowdown(name, other, limit, &times) {
            record.arms[arm].timed_out = Some(late);
            record.arms[arm].invalid = None;
        }
    }
}

/// A lower bound of the slow-down of `name`, whose run was killed after `limit`, against `other`,
/// whose runs took `times_s`. `None` if the run may have been late by chance.
pub(crate) fn bound_slowdown(
    name: &str,
    other: &str,
    limit: Duration,
    times_s: &[f64],
) -> Option<TimedOutRecord> {
    let slowest = times_s.iter().copied().fold(0.0, f64::max);
    let limit_s = limit.as_secs_f64();
    if limit_s < MIN_RATIO * slowest {
        return None;
    }
    let at_least = limit_s / median(times_s)?;
    let times = trimmed(round_down(at_least));
    Some(TimedOutRecord {
        limit_s,
        at_least,
        change: format!("≥ {times}×"),
        sentence: format!(
            "{name} is at least {times} times slower than {other} (its run did not end within {}).",
            duration(limit)
        ),
    })
}

/// Wall-clock times of the runs that have a figure, in dropped blocks, too.
fn ended_runs_s(results: &Results, arm: usize) -> Vec<f64> {
    let state = &results.arms[arm];
    let runs = state.runs.iter().chain(&state.other_runs);
    let ended = runs.filter(|run| run.metric.value.is_some());
    ended.map(|run: &RunRecord| run.wall_s).collect()
}

/// Rounds down to two significant digits, so that "at least" stays true.
fn round_down(value: f64) -> f64 {
    let step = 10_f64.powf(value.log10().floor() - 1.0);
    // 3.4 may be 33.999… steps.
    ((value / step + 1e-9).floor() * step * 10.0).round() / 10.0
}

/// Adds late arms to the verdict. If all arms but one were late, that one is best.
pub(super) fn conclude_late_arms(
    record: &mut Comparison,
    plan: &ComparePlan,
    topology: &Topology,
    stopped: Stopped,
) {
    let late = record.arms.iter().filter_map(|arm| arm.timed_out.as_ref());
    let sentences: Vec<&str> = late.map(|late| late.sentence.as_str()).collect();
    if sentences.is_empty() {
        return;
    }
    let sentences = sentences.join(" ");
    let ended = (0..record.arms.len()).filter(|&arm| record.arms[arm].timed_out.is_none());
    let best = match ended.collect::<Vec<usize>>()[..] {
        [best] if stopped == Stopped::Failed && record.arms[best].invalid.is_none() => best,
        _ => {
            record.verdict.sentence = format!("{} {sentences}", record.verdict.sentence);
            return;
        }
    };
    record.stopped = Some(Stopped::Precision);
    record.ended = record.ending();
    record.best = Some(plan.arms[best].name.clone());
    let outcome = ComparisonOutcome::Best(best);
    let advice = advice::advise_on_outcome(record, plan, outcome, Some(best), None);
    if advice.is_none() {
        record.verdict.commands =
            advice::list_commands(record, best, &plan.arms[best].place, topology);
    }
    record.verdict.advice = advice.unwrap_or_default();
    record.verdict.kind = VerdictKind::Best;
    record.verdict.sentence = format!("{} is best: {sentences}", plan.arms[best].name);
}

#[cfg(test)]
mod tests {
    use super::round_down;

    #[test]
    fn a_bound_is_rounded_down() {
        for (value, rounded) in [(270.9, 270.0), (3.49, 3.4), (2.0, 2.0), (1999.0, 1900.0)] {
            assert!((round_down(value) - rounded).abs() < 1e-9, "{value}");
        }
    }
}
