//! Arms whose run does not end within the time-out: how much slower they are at least.
//!
//! No interval is claimed: a run that was killed says only that it takes longer.

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

/// A time-out that is not this many times the slowest run of the other arm proves nothing: one run
/// may be late by chance.
const SURE: f64 = 2.0;

/// Notes which arms never ended, and how much slower that makes them at least. An arm is
/// held against the baseline, and the baseline against the only other arm.
pub(super) fn judge(record: &mut Comparison, plan: &ComparePlan, results: &Results) {
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
        let is_late = results.arms[arm].is_late && ended_runs_s(results, arm).is_empty();
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

/// How much slower `name`, whose run was killed after `limit`, is than `other` at least,
/// whose runs took these times; `None` where chance could be why.
pub(crate) fn bound_slowdown(
    name: &str,
    other: &str,
    limit: Duration,
    times_s: &[f64],
) -> Option<TimedOutRecord> {
    let slowest = times_s.iter().copied().fold(0.0, f64::max);
    let limit_s = limit.as_secs_f64();
    if limit_s < SURE * slowest {
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

/// Wall-clock times of the runs that gave a figure, whatever became of their blocks.
fn ended_runs_s(results: &Results, arm: usize) -> Vec<f64> {
    let state = &results.arms[arm];
    let runs = state.runs.iter().chain(&state.other_runs);
    let ended = runs.filter(|run| run.metric.value.is_some());
    ended.map(|run: &RunRecord| run.wall_s).collect()
}

/// Two significant digits, so that "at least" stays true.
fn round_down(value: f64) -> f64 {
    let step = 10_f64.powf(value.log10().floor() - 1.0);
    // 3.4 is 34 steps, less what rounding took.
    ((value / step + 1e-9).floor() * step * 10.0).round() / 10.0
}

/// States it in the verdict. If all arms but one never ended, that one is the answer.
pub(super) fn conclude(
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
    let advice = advice::to_do(record, plan, outcome, Some(best), None);
    if advice.is_none() {
        record.verdict.commands = advice::commands(record, best, &plan.arms[best].place, topology);
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
