//! Findings on a comparison: what disturbed it, and what its figures do not show by themselves. Each
//! check is a function from the record to a finding.

use std::collections::BTreeMap;

use serde_json::json;

use super::companions;
use super::load::{LoadChange, check_foreign_load};
use super::parts;
use super::plan::{ArmPlan, ComparePlan};
use super::results::Results;
use super::{cache_or_clock, caveats, exits, rivals, steadiness, throttling};
use pinwise_format::{percent, round_percent, signed_percent, three_digits};
use pinwise_machine::RunSetting;
use pinwise_record::{
    Arm, Comparison, ComparisonStudy, ContrastRecord, Direction, Finding, MetricRecord, RunRecord,
    Severity, Stopped,
};
use pinwise_stats::describe::quantile;
use pinwise_stats::diagnose;
use pinwise_topology::{CpuSet, Topology};

/// A larger share of stolen time is reported.
const MAX_STEAL_SHARE: f64 = 0.01;
/// A smaller drift is not reported, as a relative change.
const MIN_DRIFT: f64 = 0.05;
/// A smaller effect of the position in a block is not reported, `ln(ratio)`.
const MIN_POSITION_EFFECT: f64 = 0.01;
/// Medians whose ratio differs from the change by more than this share of it look like another
/// result.
pub(crate) const FAR_MEDIANS: f64 = 0.3;
/// Medians this far apart, `ln(ratio)`, are explained whatever the interval.
const STRIKING: f64 = 0.05;
/// A smaller change is displayed as 0.0 %.
const VISIBLE_PERCENT: f64 = 0.05;
/// If less of the CPU time was on the requested CPUs, the placement did not take effect.
const MIN_COVERAGE: f64 = 0.99;
/// Fewer runs of an arm do not show that it always has more threads than another.
const RUNS_FOR_THREADS: usize = 5;
/// Runs shorter than this are mostly process start.
const SHORT_RUN_S: f64 = 0.005;

/// All findings, worst first.
pub(super) fn list_findings(
    record: &Comparison,
    plan: &ComparePlan,
    topology: &Topology,
    results: &Results,
) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [
        check_blocks(record, plan, results),
        exits::check_exits(record),
        check_placebo(record, plan),
        compare_thread_counts(record),
        check_granted_cpus(record),
        throttling::report_dropped_blocks(results),
        throttling::report_inherited_limit(record, topology),
        check_foreign_load(record),
        check_steal(record),
        check_drift(record, results),
        compare_medians(record),
        check_position_effect(results),
        check_outliers(record),
        short_runs(record),
        caveats::warn_of_coarse_figure(record, results),
        steadiness::report_spread(record),
        cache_or_clock::compare_cache_and_clock(record),
    ]
    .into_iter()
    .flatten()
    .collect();
    findings.extend(
        record
            .contrasts
            .iter()
            .flat_map(|contrast| caveats::list_contrast_caveats(contrast, record)),
    );
    let contrasts = record.contrasts.iter();
    let checks = [parts::report_cpu_time, parts::report_waiting];
    findings
        .extend(contrasts.flat_map(|c| checks.iter().filter_map(move |check| check(c, record))));
    findings.extend(invalid_arms(record));
    findings.extend(companions::describe_companions(record));
    let own_limits = record.arms.iter();
    findings.extend(own_limits.filter_map(|arm| throttling::report_own_limit(arm, record)));
    findings.extend(throttling::report_idle_limits(record));
    findings.extend(record.arms.iter().filter_map(check_coverage));
    findings.extend(plan.known.iter().cloned());
    findings.extend(plan.arms.iter().filter_map(find_equivalent));
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.weight)));
    findings
}

pub(crate) fn all_runs(record: &Comparison) -> impl Iterator<Item = &RunRecord> {
    record.arms.iter().flat_map(|arm| &arm.runs)
}

fn invalid_arms(record: &Comparison) -> Vec<Finding> {
    record
        .arms
        .iter()
        .filter_map(|arm| {
            let reason = arm.invalid.as_ref()?;
            Some(Finding::new(
                "arm_invalid",
                Severity::Problem,
                format!("{} excluded: {reason}", arm.name),
                "Make the command succeed every time, or accept failures with --ignore-failure.",
            ))
        })
        .collect()
}

/// Reports requested arms that are equivalent to this one.
fn find_equivalent(arm: &ArmPlan) -> Option<Finding> {
    let ArmPlan { name, same_as, .. } = arm;
    let moves = |setting: &RunSetting| matches!(setting, RunSetting::Interrupts(_));
    let what = match arm.settings.iter().any(moves) {
        true => "interrupts",
        false => arm.place.resource_noun(),
    };
    (!same_as.is_empty()).then(|| {
        Finding::new(
            "arms_merged",
            Severity::Note,
            match same_as.as_slice() {
                [other] => {
                    format!("{other} means the same {what} as {name} here and was merged with it.")
                }
                others => format!(
                    "{} mean the same {what} as {name} here and were merged with it.",
                    others.join(", ")
                ),
            },
            "",
        )
    })
}

/// The placebo is the baseline itself: any difference is a false alarm.
fn check_placebo(record: &Comparison, plan: &ComparePlan) -> Option<Finding> {
    let name = &plan.arms[plan.placebo?].name;
    let contrast = record.contrasts.iter().find(|c| c.arm == *name)?;
    let baseline = &contrast.baseline;
    if contrast.is_decided() {
        return Some(Finding::new(
            "placebo_differs",
            Severity::Problem,
            format!(
                "The placebo differed from {baseline}, although it is the same: a false alarm, expected in at most {} of comparisons.",
                round_percent(record.plan.alpha)
            ),
            "Run again; if it happens again, something depends on the order of runs.",
        ));
    }
    Some(Finding::new(
        "placebo_passed",
        Severity::Note,
        format!("The placebo did not differ from {baseline}, as expected."),
        "",
    ))
}

fn check_blocks(record: &Comparison, plan: &ComparePlan, results: &Results) -> Option<Finding> {
    let contrasts = rivals::pair_columns(plan, &results.columns).pairs.len();
    let least = plan.least_blocks(contrasts + 1);
    let is_judged = results.stopped != Stopped::Failed && !plan.is_timing;
    let is_short = record.blocks < least && is_judged;
    is_short.then(|| {
        Finding::new(
            "too_few_blocks",
            Severity::Problem,
            format!(
                "Too few blocks for a verdict on {} arms: {} of at least {least}.",
                results.columns.len(),
                record.blocks
            ),
            format!(
                "Give {}, or name fewer arms.",
                plan.more_effort(record.stopped.as_ref())
            ),
        )
        .with_evidence("blocks", record.blocks)
        .with_evidence("least_blocks", least)
    })
}

fn compare_thread_counts(record: &Comparison) -> Option<Finding> {
    // Identical arms differ in this only by chance: threads are counted by polling.
    if record.study == ComparisonStudy::Noise {
        return None;
    }
    let counts: Vec<(&Arm, Vec<u32>)> = record
        .arms
        .iter()
        .map(|arm| (arm, arm.runs.iter().filter_map(|run| run.threads).collect()))
        .filter(|(_, counts): &(&Arm, Vec<u32>)| counts.len() >= RUNS_FOR_THREADS)
        .collect();
    // How many processes of a pipeline are seen at once changes from run to run.
    let has_more = |counts: &[u32], others: &[u32]| counts.iter().min() > others.iter().max();
    let differ = |same_command: bool| {
        counts.iter().any(|(arm, counts_of_arm)| {
            counts.iter().any(|(other, others)| {
                has_more(counts_of_arm, others) && (!same_command || arm.command == other.command)
            })
        })
    };
    if !differ(false) {
        return None;
    }
    let most = counts.iter().filter_map(|(arm, counts)| {
        let most = counts.iter().max()?;
        Some((arm.name.as_str(), *most))
    });
    let by_name: BTreeMap<&str, u32> = most.clone().collect();
    let list = most.map(|(arm, most)| format!("{arm}: {most}"));
    let list: Vec<String> = list.collect();
    let list = list.join(", ");
    let finding = if differ(true) {
        Finding::new(
            "thread_counts_differ",
            Severity::Warning,
            format!(
                "The program starts different numbers of threads ({list}): their effect and that of the placement cannot be separated."
            ),
            "Fix the number with --threads-env N, or in the command.",
        )
    } else {
        // Intended: the commands differ, or sweep over numbers of threads.
        Finding::new(
            "thread_counts_differ",
            Severity::Note,
            format!("The commands start different numbers of threads ({list})."),
            "",
        )
    };
    Some(finding.with_evidence("threads", json!(by_name)))
}

/// Reports how much of a bound arm's CPU time was spent on the requested CPUs.
fn check_coverage(arm: &Arm) -> Option<Finding> {
    let mut runs = arm.runs.iter().filter_map(|run| run.coverage.as_ref());
    let mut total = runs.next()?.clone();
    runs.for_each(|run| total.add(run));
    let severity = match total.share() {
        Some(share) if share < MIN_COVERAGE => Severity::Warning,
        _ => Severity::Note,
    };
    let finding = Finding::new(
        "coverage",
        severity,
        format!("{}: {}", arm.name, total.sentence()),
        total.advice(),
    );
    Some(
        finding
            .with_evidence("share_where_asked", total.share())
            .with_evidence("threads", total.threads)
            .with_evidence("moved_threads", total.moved_threads),
    )
}

fn check_granted_cpus(record: &Comparison) -> Option<Finding> {
    let (arm, run) = record.arms.iter().find_map(|arm| {
        let requested = CpuSet::parse_list(&arm.cpus).ok()?;
        let run = arm.runs.iter().find(|run| {
            CpuSet::parse_list(&run.granted_cpus).is_ok_and(|granted| granted != requested)
        })?;
        Some((arm, run))
    })?;
    Some(Finding::new(
        "granted_differs",
        Severity::Problem,
        format!(
            "{} asked for CPUs {} and was granted {}.",
            arm.name, arm.cpus, run.granted_cpus
        ),
        "A cpuset or CPU hotplug changed the allowed CPUs meanwhile: run again.",
    ))
}

fn check_steal(record: &Comparison) -> Option<Finding> {
    let (stolen, wall) = all_runs(record)
        .filter_map(|run| Some((run.steal_s?, run.wall_s)))
        .fold((0.0, 0.0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    let share = stolen / wall;
    (share > MAX_STEAL_SHARE).then(|| {
        Finding::new(
            "steal",
            Severity::Warning,
            format!(
                "The hypervisor gave {} of a CPU to other virtual machines meanwhile.",
                percent(share)
            ),
            "Expect wider intervals; a dedicated host would be quieter.",
        )
        .with_evidence("steal_share", share)
    })
}

fn check_drift(record: &Comparison, results: &Results) -> Option<Finding> {
    let drift = diagnose::drift(&results.data);
    let load = LoadChange::from_record(record).filter(|load| load.is_more() == (drift > 0.0));
    let cause = load.map_or_else(String::new, |load| {
        let word = if load.is_more() { "more" } else { "less" };
        format!(", as other processes used {word}: {}", load.describe())
    });
    let (severity, tail) = match record.arms.len() {
        1 => (
            Severity::Warning,
            "a figure of another time is not comparable",
        ),
        _ => (Severity::Note, "comparing within blocks removes it"),
    };
    (drift.abs() > MIN_DRIFT.ln_1p()).then(|| {
        Finding::new(
            "drift",
            severity,
            format!(
                "All arms became {} over the experiment, by a factor of {:.2}{cause}; {tail}.",
                record.metric.word_of(drift.exp()),
                drift.abs().exp()
            ),
            "",
        )
        .with_evidence("ratio_last_third_to_first", drift.exp())
    })
}

/// Explains medians in the table that seem to contradict the change: on the other side of the
/// baseline's, or much closer or farther. Medians of equal arms differ by chance; so an undecided
/// arm is reported only if its median differs by the smallest effect and lies outside the interval
/// of the change, or differs by [`STRIKING`].
fn compare_medians(record: &Comparison) -> Option<Finding> {
    if !record.judges_typical_run() {
        return None;
    }
    let delta = record.plan.min_effect.ln_1p();
    let contradicting = record.contrasts.iter().filter_map(|contrast| {
        let median_ratio = ratio_of_medians(contrast, record)?;
        let change = contrast.ratio.ln();
        let is_large = median_ratio.ln().abs() >= delta;
        let is_far = (median_ratio.ln() - change).abs() > delta.max(FAR_MEDIANS * change.abs());
        let is_opposite = (median_ratio > 1.0) != (change > 0.0)
            && record.metric.effect(contrast.ratio, None, None).value.abs() >= VISIBLE_PERCENT;
        // Nothing needs explaining if the interval contains the ratio, or is not known.
        let is_within = contrast.low.is_none_or(|low| low <= median_ratio)
            && contrast.high.is_none_or(|high| median_ratio <= high);
        let is_striking = contrast.low.is_some() && median_ratio.ln().abs() >= STRIKING;
        let is_shown = contrast.is_decided() || is_large && !is_within || is_striking;
        let is_contrary = is_opposite || is_far;
        (is_shown && is_contrary).then(|| {
            let effect = record.metric.effect(median_ratio, None, None);
            format!("{} {}", contrast.arm, effect.text)
        })
    });
    let contradicting: Vec<String> = contradicting.collect();
    (!contradicting.is_empty()).then(|| {
        Finding::new(
            "medians_differ",
            Severity::Note,
            format!(
                "By the medians of all runs, 'typical', it would be {}; trust 'change': it compares runs of the same block, so drift cancels.",
                contradicting.join(", ")
            ),
            "",
        )
    })
}

/// Cost of the arm's median run over that of the baseline's; `None` if the table shows both with the
/// same digits.
fn ratio_of_medians(contrast: &ContrastRecord, record: &Comparison) -> Option<f64> {
    let median = |name: &String| {
        let arm = record.arms.iter().find(|arm| arm.name == *name)?;
        Some(arm.estimate.as_ref()?.value)
    };
    let (arm, baseline) = median(&contrast.arm).zip(median(&contrast.baseline))?;
    let ratio = match record.metric.better {
        Direction::Higher => baseline / arm,
        _ => arm / baseline,
    };
    (three_digits(arm) != three_digits(baseline)).then_some(ratio)
}

fn check_position_effect(results: &Results) -> Option<Finding> {
    let effect = diagnose::position_effect(&results.data, &results.circumstances.slots)?;
    (effect.abs() > MIN_POSITION_EFFECT).then(|| {
        Finding::new(
            "position_effect",
            Severity::Note,
            format!(
                "The last run of a block costs {} relative to the first; the random order cancels it.",
                signed_percent(effect.exp_m1())
            ),
            "",
        )
        .with_evidence("ratio_last_to_first", effect.exp())
    })
}

fn check_outliers(record: &Comparison) -> Option<Finding> {
    let count: usize = record
        .arms
        .iter()
        .map(|arm| {
            let logs: Vec<f64> = arm
                .runs
                .iter()
                .filter_map(|run| run.metric.cost.map(f64::ln))
                .collect();
            diagnose::outliers(&logs)
        })
        .sum();
    let runs = all_runs(record).count();
    (count > 0).then(|| {
        Finding::new(
            "outliers",
            Severity::Note,
            format!(
                "{count} of {runs} runs {} arm's median; kept: rank statistics are robust to them.",
                if count == 1 {
                    "lies far from its"
                } else {
                    "lie far from their"
                }
            ),
            "",
        )
        .with_evidence("runs", count)
    })
}

/// Median wall-clock time of the runs, seconds, if it is judged and mostly process start-up.
pub(super) fn short_run_s<'r>(
    runs: impl Iterator<Item = &'r RunRecord>,
    metric: &MetricRecord,
) -> Option<f64> {
    let walls: Vec<f64> = runs.map(|run| run.wall_s).collect();
    let typical = quantile(&walls, 0.5);
    (typical < SHORT_RUN_S && metric.is_wall()).then_some(typical)
}

fn short_runs(record: &Comparison) -> Option<Finding> {
    short_run_s(all_runs(record), &record.metric).map(|typical| {
        Finding::new(
            "short_runs",
            Severity::Warning,
            format!(
                "A run takes {:.1} ms, much of it process startup.",
                typical * 1e3
            ),
            "Give the command more work per run.",
        )
        .with_evidence("median_wall_s", typical)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Comparison {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn thread_counts_differ_if_all_runs_say_so() {
        let mut record = example();
        let set = |record: &mut Comparison, threads: &[&[u32]]| {
            record.arms.truncate(threads.len());
            for (arm, threads) in record.arms.iter_mut().zip(threads) {
                let runs = arm.runs.iter_mut().zip(threads.iter().cycle());
                runs.for_each(|(run, threads)| run.threads = Some(*threads));
            }
        };
        let command = record.arms[0].command.clone();
        record
            .arms
            .iter_mut()
            .for_each(|arm| arm.command.clone_from(&command));
        // A pipeline, whose processes are not always seen at once.
        set(&mut record, &[&[2, 2, 4], &[2]]);
        assert_eq!(compare_thread_counts(&record), None);
        set(&mut record, &[&[8, 9], &[3, 4]]);
        let found = compare_thread_counts(&record).unwrap();
        assert!(found.sentence.contains(": 9, "), "{}", found.sentence);
        assert_eq!(found.severity, Severity::Warning);
        for arm in &mut record.arms {
            arm.runs.truncate(RUNS_FOR_THREADS - 1);
        }
        assert_eq!(compare_thread_counts(&record), None);
    }

    #[test]
    fn medians_that_contradict_the_change_are_explained() {
        let mut record = example();
        assert_eq!(compare_medians(&record), None);
        let baseline = record.baseline.clone();
        let set = |record: &mut Comparison, name: &str, value: f64| {
            let arm = record.arms.iter_mut().find(|arm| arm.name == name);
            let estimate = arm.unwrap().estimate.as_mut().unwrap();
            std::mem::replace(&mut estimate.value, value)
        };
        let typical = set(&mut record, "one-per-core", 0.21);
        // Within blocks the arm is faster; its median is slower.
        let found = compare_medians(&record).unwrap().sentence;
        assert!(found.contains("one-per-core +"), "{found}");
        // Both say faster, but the median by much more.
        set(&mut record, "one-per-core", 0.5 * typical);
        let found = compare_medians(&record).unwrap().sentence;
        assert!(found.contains("one-per-core −"), "{found}");
        for contrast in &mut record.contrasts {
            contrast.verdict = pinwise_record::ContrastVerdict::Undecided;
        }
        assert!(compare_medians(&record).is_some());
        let mut without_intervals = record.clone();
        for contrast in &mut without_intervals.contrasts {
            (contrast.low, contrast.high) = (None, None);
        }
        assert_eq!(compare_medians(&without_intervals), None);
        let mut wide = record.clone();
        for contrast in &mut wide.contrasts {
            (contrast.low, contrast.high) = (Some(0.3), Some(3.0));
        }
        assert!(compare_medians(&wide).is_some());
        let of_baseline = set(&mut record, &baseline, 1.0);
        set(&mut record, &baseline, of_baseline);
        set(&mut record, "one-per-core", 1.005 * of_baseline);
        assert_eq!(compare_medians(&record), None);
    }
}
