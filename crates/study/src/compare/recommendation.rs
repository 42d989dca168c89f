//! Whether the placement of the best arm is recommended: what was measured here has
//! to hold where the program will run.

use pinwise_format::{count, percent};
use pinwise_record::{
    Arm, Comparison, ContrastRecord, MetricRecord, NotRecommended, PlacementKind, RunRecord,
};
use pinwise_stats::describe::median;

use super::findings;

/// Others using more of the machine than this make a placement an answer to
/// them, not to the program.
const BUSY_SHARE: f64 = 0.2;
/// What a busy process may cost a program that has no core to move to: more than
/// each program of `docs/benchmarks.md` lost on one core.
const NEIGHBOUR_COST: f64 = 0.1;
/// CPUs that others have to use for a gain to be seen beside them.
const LOADED_CPUS: f64 = 0.5;

/// Why the best arm's placement is not recommended, and that as sentences; `None`
/// where it is, or where there is none to apply.
pub(super) fn withheld(
    record: &Comparison,
    best: Option<usize>,
) -> Option<(NotRecommended, String)> {
    let arm = &record.arms[best?];
    if arm.placement.kind == PlacementKind::OsDefault {
        return None;
    }
    let contrast = record.contrasts.iter().find(|c| c.arm == arm.name);
    let reason = reason(record, arm, contrast)?;
    let sentence = sentence(&reason, record, arm, contrast);
    Some((reason, format!("No placement is recommended{sentence}")))
}

fn reason(
    record: &Comparison,
    arm: &Arm,
    contrast: Option<&ContrastRecord>,
) -> Option<NotRecommended> {
    let min_effect = record.plan.min_effect;
    if contrast.is_some_and(|c| c.depends_on_load) {
        return Some(NotRecommended::DependsOnLoad);
    }
    if contrast.is_some_and(|c| !gains(c.ratio, min_effect)) {
        return Some(NotRecommended::SmallGain);
    }
    let runs = || findings::all_runs(record);
    let here = reason_here(runs, &record.metric, record.host.counts.cpus);
    if here.is_some() {
        return here;
    }
    let is_risky = contrast.is_some_and(|contrast| {
        !gains(contrast.ratio, NEIGHBOUR_COST)
            && is_cornered(record, arm)
            && !gains_beside_others(contrast, min_effect)
    });
    is_risky.then_some(NotRecommended::QuietOnly)
}

/// Why no placement is recommended after such runs, whatever it gains, and that
/// as a sentence.
pub(crate) fn withheld_here<'r, I: Iterator<Item = &'r RunRecord>>(
    runs: impl Fn() -> I,
    metric: &MetricRecord,
    cpus: usize,
) -> Option<(NotRecommended, String)> {
    let reason = reason_here(&runs, metric, cpus)?;
    let sentence = sentence_here(&reason, runs(), cpus);
    Some((reason, format!("No placement is recommended{sentence}")))
}

fn reason_here<'r, I: Iterator<Item = &'r RunRecord>>(
    runs: impl Fn() -> I,
    metric: &MetricRecord,
    cpus: usize,
) -> Option<NotRecommended> {
    // How near to its parent it starts is what they measure, and that changes
    // from one minute to the next.
    if findings::short_run_s(runs(), metric).is_some() {
        return Some(NotRecommended::ShortRuns);
    }
    let busy = findings::foreign_cpus(runs())?;
    (busy > BUSY_SHARE * cpus.max(1) as f64).then_some(NotRecommended::BusyMachine)
}

/// Would the gain make up for a cost of this share?
fn gains(ratio: f64, cost: f64) -> bool {
    ratio * (1.0 + cost) <= 1.0
}

/// Does the arm leave the program no core to move to when others want one, while
/// the baseline does?
fn is_cornered(record: &Comparison, arm: &Arm) -> bool {
    let Some(baseline) = record.arms.iter().find(|a| a.name == record.baseline) else {
        return false;
    };
    let cores = arm.placement.cores;
    cores < baseline.placement.cores
        && busy_threads(baseline).is_none_or(|busy| cores as f64 <= busy)
}

/// Threads that a typical run keeps busy, at least one.
fn busy_threads(arm: &Arm) -> Option<f64> {
    let runs = arm.runs.iter();
    let busy = runs.filter_map(|run| Some(run.cpu_s()? / run.wall_s));
    let busy = median(&busy.collect::<Vec<f64>>())?;
    Some(busy.round().max(1.0))
}

/// Did others run in some of the blocks, and was there a gain in those, too?
fn gains_beside_others(contrast: &ContrastRecord, min_effect: f64) -> bool {
    contrast.load_levels.as_ref().is_some_and(|levels| {
        levels.heavy.foreign_cpus >= LOADED_CPUS && gains(levels.heavy.ratio, min_effect)
    })
}

fn sentence(
    reason: &NotRecommended,
    record: &Comparison,
    arm: &Arm,
    contrast: Option<&ContrastRecord>,
) -> String {
    match reason {
        NotRecommended::DependsOnLoad => {
            ": the difference depends on what else runs. Compare under the load that matters, or on a quiet machine."
                .to_owned()
        }
        NotRecommended::SmallGain => format!(
            ": as estimated, it gains less than the smallest effect of interest, {} (--min-effect).",
            percent(record.plan.min_effect)
        ),
        NotRecommended::ShortRuns | NotRecommended::BusyMachine => {
            sentence_here(reason, findings::all_runs(record), record.host.counts.cpus)
        }
        NotRecommended::QuietOnly => {
            let change = contrast.map(|c| record.metric.effect(c.ratio, None, None).value);
            format!(
                ": the gain of {} was not seen beside busy programs, and on {} this one cannot move away from them. Compare again beside the load that matters.",
                percent(change.unwrap_or_default().abs() / 100.0),
                count(arm.placement.cores, "core")
            )
        }
        NotRecommended::Other(_) => ".".to_owned(),
    }
}

fn sentence_here<'r>(
    reason: &NotRecommended,
    runs: impl Iterator<Item = &'r RunRecord>,
    cpus: usize,
) -> String {
    match reason {
        NotRecommended::ShortRuns => {
            " for runs that are mostly process start-up: give the command more work per run."
                .to_owned()
        }
        _ => format!(
            " while others use {:.1} of {} CPUs: measure again when they do not, or when the program will have to live with them.",
            findings::foreign_cpus(runs).unwrap_or_default(),
            cpus.max(1)
        ),
    }
}
