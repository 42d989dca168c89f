//! Decides whether the placement of the best arm is recommended: the measured gain must hold where
//! the program will run.

use pinwise_format::{count, percent, shell};
use pinwise_record::{
    Arm, Comparison, ContrastRecord, ContrastVerdict, MetricRecord, NotRecommended, PlacementKind,
    RunRecord,
};
use pinwise_stats::confirm::{Contrast, Look};
use pinwise_stats::describe::median;
use pinwise_stats::verdict::ComparisonOutcome;

use super::exits;
use super::findings;
use super::load;

/// If other processes use a larger share of the CPUs, the gain may be due to where they run.
const BUSY_SHARE: f64 = 0.2;
/// Assumed cost of a busy process to a program that has no core to move to: more than each program
/// of `docs/benchmarks.md` lost on one core.
const NEIGHBOUR_COST: f64 = 0.1;
/// CPUs that other processes must use in a block before a gain in it counts as one under load.
pub(crate) const LOADED_CPUS: f64 = 0.5;

/// Why the best arm's placement is not recommended, as a code and a sentence; `None` if it is
/// recommended, or if there is none to apply.
pub(super) fn withhold_recommendation(
    record: &Comparison,
    best: Option<usize>,
) -> Option<(NotRecommended, String)> {
    let arm = &record.arms[best?];
    if exits::describe_failed(record, Some(arm)).is_some() {
        return Some((NotRecommended::Failed, String::new()));
    }
    if arm.placement.kind == PlacementKind::OsDefault {
        return None;
    }
    let contrast = record.contrasts.iter().find(|c| c.arm == arm.name);
    let min_effect = record.plan.min_effect;
    if contrast.is_some_and(|c| c.depends_on_load && !gains_under_every_load(c, min_effect)) {
        let sentence = "No placement is recommended: the difference depends on other load. Compare under the load that matters, or on a quiet machine.";
        return Some((NotRecommended::DependsOnLoad, sentence.to_owned()));
    }
    if contrast.is_some_and(|c| !outweighs(c.ratio, min_effect)) {
        let sentence = format!(
            "No placement is recommended: as estimated, it gains less than the smallest effect of interest, {} (--min-effect).",
            percent(min_effect)
        );
        return Some((NotRecommended::SmallGain, sentence));
    }
    let runs = || load::runs_alone(record);
    let cpus = record.host.counts.cpus;
    withhold_after_runs(runs, &record.metric, cpus, [&record.id, &arm.name])
        .or_else(|| withhold_small_gain(record, arm, contrast?))
}

/// The arm to recommend; and once more if it is not the best one, but has more room.
pub(super) fn choose_arm(
    record: &Comparison,
    best: Option<usize>,
) -> (Option<usize>, Option<usize>) {
    let roomier = best.and_then(|arm| find_roomier(record, arm));
    (roomier.or(best), roomier)
}

/// An arm to recommend in place of the best one, if that is withheld because it leaves the program no
/// other core: as estimated it gains as much, within the smallest effect of interest, and is not.
fn find_roomier(record: &Comparison, best: usize) -> Option<usize> {
    let (reason, _) = withhold_recommendation(record, Some(best))?;
    let find = |arm: &Arm| record.contrasts.iter().find(|c| c.arm == arm.name);
    let gain = find(&record.arms[best])?.ratio;
    let mut others = 0..record.arms.len();
    let is_as_good = |&other: &usize| {
        find(&record.arms[other]).is_some_and(|contrast| {
            contrast.verdict == ContrastVerdict::Faster
                && contrast.ratio <= gain * (1.0 + record.plan.min_effect)
        }) && withhold_recommendation(record, Some(other)).is_none()
    };
    (reason == NotRecommended::QuietOnly)
        .then(|| others.find(is_as_good))
        .flatten()
}

/// Appended to the answer: why this arm is recommended and not the best one; empty without one.
pub(super) fn describe_roomier(record: &Comparison, arm: Option<usize>) -> String {
    let Some(arm) = arm.map(|arm| &record.arms[arm]) else {
        return String::new();
    };
    format!(
        " {} gains as much, as estimated, and has {}, to move away from busy programs.",
        arm.name,
        count(arm.placement.cores, "core")
    )
}

/// Why a small gain that was measured only on a quiet machine is not recommended.
fn withhold_small_gain(
    record: &Comparison,
    arm: &Arm,
    contrast: &ContrastRecord,
) -> Option<(NotRecommended, String)> {
    if !arm.setting.beside.is_empty() || gains_beside_others(contrast, record.plan.min_effect) {
        return None;
    }
    let baseline = record.arms.iter().find(|a| a.name == record.baseline)?;
    let cores = [&baseline.placement, &arm.placement].map(|placement| placement.cores);
    let (runs, named) = (baseline.runs.iter(), [record.id.as_str(), &arm.name]);
    withhold_narrow(contrast.ratio, &record.metric, cores, runs, named)
}

/// Why an arm is not recommended that, unlike the baseline, leaves the program no core to move to if
/// another process takes one, and gains little: its gain was not seen beside others. `ratio`: its
/// cost divided by the baseline's; `cores`: the baseline's and its own; `runs`: the baseline's; then
/// the record and the arm, for a command.
pub(crate) fn withhold_narrow<'r>(
    ratio: f64,
    metric: &MetricRecord,
    [all, own]: [usize; 2],
    runs: impl Iterator<Item = &'r RunRecord>,
    [id, arm]: [&str; 2],
) -> Option<(NotRecommended, String)> {
    let is_narrow = own < all && busy_threads(runs).is_none_or(|busy| own as f64 <= busy);
    (is_narrow && !outweighs(ratio, NEIGHBOUR_COST)).then(|| {
        let change = metric.effect(ratio, None, None).value;
        let sentence = format!(
            "No placement is recommended beside other programs: the gain of {} was not seen there, and on {} this program cannot move away from them. If it has the machine to itself: pinwise apply {id} --arm {}",
            percent(change.abs() / 100.0),
            count(own, "core"),
            shell::word(arm)
        );
        (NotRecommended::QuietOnly, sentence)
    })
}

/// Why no placement is recommended after runs like these, whatever its gain, as a code and a
/// sentence. `cpus`: those of the machine; then the record and the arm, for a command.
pub(crate) fn withhold_after_runs<'r, I: Iterator<Item = &'r RunRecord>>(
    runs: impl Fn() -> I,
    metric: &MetricRecord,
    cpus: usize,
    [id, arm]: [&str; 2],
) -> Option<(NotRecommended, String)> {
    // Short runs mostly measure how close to its parent a process starts, which changes from minute
    // to minute.
    if findings::short_run_s(runs(), metric).is_some() {
        let sentence = "No placement is recommended for runs that are mostly process startup: give the command more work per run.";
        return Some((NotRecommended::ShortRuns, sentence.to_owned()));
    }
    let cpus = cpus.max(1);
    let busy = load::foreign_cpus(runs()).filter(|busy| *busy > BUSY_SHARE * cpus as f64)?;
    let sentence = format!(
        "No placement is recommended while other processes use {busy:.1} of {cpus} CPUs: measure again without them, or, if this load is the usual one: pinwise apply {id} --arm {}",
        shell::word(arm)
    );
    Some((NotRecommended::BusyMachine, sentence))
}

/// Is the gain of this ratio of costs larger than a relative `cost`?
fn outweighs(ratio: f64, cost: f64) -> bool {
    ratio * (1.0 + cost) <= 1.0
}

/// CPUs that a typical run keeps busy, at least one.
fn busy_threads<'r>(runs: impl Iterator<Item = &'r RunRecord>) -> Option<f64> {
    let busy = runs.filter_map(|run| Some(run.cpu_s()? / run.wall_s));
    let busy = median(&busy.collect::<Vec<f64>>())?;
    Some(busy.round().max(1.0))
}

/// Was there a gain under light, medium and heavy load?
fn gains_under_every_load(contrast: &ContrastRecord, min_effect: f64) -> bool {
    contrast.load_levels.as_ref().is_some_and(|levels| {
        let mut levels = levels.all();
        levels.all(|level| outweighs(level.ratio, min_effect))
    })
}

/// Did other processes run during some of the blocks, and was there a gain in those as well?
fn gains_beside_others(contrast: &ContrastRecord, min_effect: f64) -> bool {
    contrast.load_levels.as_ref().is_some_and(|levels| {
        levels.heavy.foreign_cpus >= LOADED_CPUS && outweighs(levels.heavy.ratio, min_effect)
    })
}

/// Is the best arm, as estimated, ahead by less than the smallest effect of interest, `ln(ratio)`? `cpu`
/// is what decided it, if that was CPU time.
pub(super) fn is_small_gain(
    outcome: ComparisonOutcome,
    cpu: Option<&Contrast>,
    look: &Look,
    delta: f64,
) -> bool {
    let ComparisonOutcome::Best(best) = outcome else {
        return false;
    };
    let own = look.contrasts.iter().find(|contrast| contrast.arm == best);
    let only = match look.contrasts.as_slice() {
        [only] => Some(only),
        _ => None,
    };
    let decisive = cpu.or(own).or(only);
    decisive.is_some_and(|contrast| contrast.estimate.abs() < delta)
}

#[cfg(test)]
mod tests {
    use pinwise_record::{LoadLevelRecord, LoadLevelsRecord};
    use pinwise_stats::caveats::Caveats;
    use pinwise_stats::confirm::Decision;
    use pinwise_stats::paired::Interval;

    use super::*;

    #[test]
    fn an_arm_that_leaves_no_other_core_gives_way_to_one_as_good_that_does() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        record.arms.truncate(3);
        let baseline = record
            .arms
            .iter()
            .position(|arm| arm.name == record.baseline);
        let baseline = baseline.unwrap();
        let mut others = (0..3).filter(|arm| *arm != baseline);
        let (narrow, roomy) = (others.next().unwrap(), others.next().unwrap());
        let contrast = record.contrasts[0].clone();
        record.contrasts.clear();
        for (arm, cores, ratio) in [(baseline, 8, 1.0), (narrow, 4, 0.924), (roomy, 8, 0.927)] {
            record.arms[arm].placement.cores = cores;
            record.arms[arm].placement.kind = PlacementKind::Confined;
            for run in &mut record.arms[arm].runs {
                (run.wall_s, run.user_s, run.sys_s) = (1.0, Some(4.0), Some(0.0));
                run.foreign_cpu_s = Some(0.0);
            }
            if arm != baseline {
                record.contrasts.push(ContrastRecord {
                    arm: record.arms[arm].name.clone(),
                    verdict: ContrastVerdict::Faster,
                    ratio,
                    depends_on_load: false,
                    load_levels: None,
                    ..contrast.clone()
                });
            }
        }
        assert_eq!(find_roomier(&record, narrow), Some(roomy));
        assert_eq!(find_roomier(&record, roomy), None);
        // It must gain as much.
        record.contrasts[1].ratio = 0.95;
        assert_eq!(find_roomier(&record, narrow), None);
    }

    #[test]
    fn a_gain_whose_size_alone_depends_on_load_is_one() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let record: Comparison = serde_json::from_str(text).unwrap();
        let mut contrast = record.contrasts[0].clone();
        let level = |ratio: f64| LoadLevelRecord {
            foreign_cpus: 1.0,
            ratio,
            change: String::new(),
        };
        let mut gains = |heavy: f64| {
            contrast.load_levels = Some(LoadLevelsRecord {
                light: level(0.2),
                medium: Some(level(0.5)),
                heavy: level(heavy),
            });
            gains_under_every_load(&contrast, 0.01)
        };
        assert!(gains(0.7));
        assert!(!gains(0.995), "less than the smallest effect");
        assert!(!gains(1.1));
    }

    #[test]
    fn an_arm_that_is_ahead_by_next_to_nothing_is_not_to_be_used() {
        let contrast = |estimate: f64| Contrast {
            arm: 1,
            baseline: 0,
            estimate,
            interval: Interval {
                low: estimate - 0.002,
                high: estimate + 0.009,
            },
            confidence: 0.95,
            p_adjusted: 0.04,
            nominal_level: 0.05,
            decision: Decision::Slower,
            caveats: Caveats::default(),
        };
        let look = |estimate| Look {
            blocks: 40,
            winner: 0,
            behind: vec![0.0, estimate],
            is_settled: true,
            resolution: None,
            contrasts: vec![contrast(estimate)],
        };
        let small = |outcome, estimate| is_small_gain(outcome, None, &look(estimate), 0.01);
        assert!(small(ComparisonOutcome::Best(0), 0.003));
        assert!(!small(ComparisonOutcome::Best(0), 0.02));
        assert!(!small(ComparisonOutcome::Same, 0.003));
        let cpu = contrast(0.006);
        let by_cpu = is_small_gain(ComparisonOutcome::Best(0), Some(&cpu), &look(0.2), 0.01);
        assert!(by_cpu);
    }
}
