//! Whether the placement of the best arm is recommended: what was measured here must hold where the
//! program will run.

use pinwise_format::{count, percent};
use pinwise_record::{
    Arm, Comparison, ContrastRecord, MetricRecord, NotRecommended, PlacementKind, RunRecord,
};
use pinwise_stats::describe::median;

use super::findings;
use super::load;

/// If others use more of the machine than this, a placement may fit them rather than the program.
const BUSY_SHARE: f64 = 0.2;
/// How much a busy process may cost a program that has no core to move to: more than each program
/// of `docs/benchmarks.md` lost on one core.
const NEIGHBOUR_COST: f64 = 0.1;
/// CPUs that others must use before a gain counts as seen beside them.
const LOADED_CPUS: f64 = 0.5;

/// Why the best arm's placement is not recommended, and the text that says so; `None` if it is, or if
/// there is none to apply.
pub(super) fn withheld(
    record: &Comparison,
    best: Option<usize>,
) -> Option<(NotRecommended, String)> {
    let arm = &record.arms[best?];
    if arm.placement.kind == PlacementKind::OsDefault {
        return None;
    }
    let contrast = record.contrasts.iter().find(|c| c.arm == arm.name);
    let min_effect = record.plan.min_effect;
    if contrast.is_some_and(|c| c.depends_on_load) {
        let sentence = "No placement is recommended: the difference depends on other load. Compare under the load that matters, or on a quiet machine.";
        return Some((NotRecommended::DependsOnLoad, sentence.to_owned()));
    }
    if contrast.is_some_and(|c| !gains(c.ratio, min_effect)) {
        let sentence = format!(
            "No placement is recommended: as estimated, it gains less than the smallest effect of interest, {} (--min-effect).",
            percent(min_effect)
        );
        return Some((NotRecommended::SmallGain, sentence));
    }
    let runs = || load::runs_alone(record);
    withheld_here(runs, &record.metric, record.host.counts.cpus)
        .or_else(|| quiet_only(record, arm, contrast?))
}

/// The same if its small gain was seen on a quiet machine only.
fn quiet_only(
    record: &Comparison,
    arm: &Arm,
    contrast: &ContrastRecord,
) -> Option<(NotRecommended, String)> {
    let is_risky = !gains(contrast.ratio, NEIGHBOUR_COST)
        && arm.setting.beside.is_empty()
        && is_cornered(record, arm)
        && !gains_beside_others(contrast, record.plan.min_effect);
    is_risky.then(|| {
        let change = record.metric.effect(contrast.ratio, None, None).value;
        let sentence = format!(
            "No placement is recommended: the gain of {} was not seen beside busy programs, and on {} this program cannot move away from them. Compare again under the load that matters.",
            percent(change.abs() / 100.0),
            count(arm.placement.cores, "core")
        );
        (NotRecommended::QuietOnly, sentence)
    })
}

/// Why no placement is recommended after such runs, whatever its gain, and that as a sentence.
pub(crate) fn withheld_here<'r, I: Iterator<Item = &'r RunRecord>>(
    runs: impl Fn() -> I,
    metric: &MetricRecord,
    cpus: usize,
) -> Option<(NotRecommended, String)> {
    // Short runs mostly measure how near to its parent a process starts, which changes from one minute to the next.
    if findings::short_run_s(runs(), metric).is_some() {
        let sentence = "No placement is recommended for runs that are mostly process startup: give the command more work per run.";
        return Some((NotRecommended::ShortRuns, sentence.to_owned()));
    }
    let cpus = cpus.max(1);
    let busy = load::foreign_cpus(runs()).filter(|busy| *busy > BUSY_SHARE * cpus as f64)?;
    let sentence = format!(
        "No placement is recommended while other processes use {busy:.1} of {cpus} CPUs: measure again without them. If this load is the usual one, pinwise apply --arm takes the arm that you name."
    );
    Some((NotRecommended::BusyMachine, sentence))
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

/// Did others run in some of the blocks, and was there a gain in those as well?
fn gains_beside_others(contrast: &ContrastRecord, min_effect: f64) -> bool {
    contrast.load_levels.as_ref().is_some_and(|levels| {
        levels.heavy.foreign_cpus >= LOADED_CPUS && gains(levels.heavy.ratio, min_effect)
    })
}
