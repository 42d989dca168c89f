//! Findings on CPU quotas that throttled runs, or did not.

use super::results::Results;
use pinwise_format::{count, cpu_limit, round_percent, whole_usize};
use pinwise_record::{Arm, Comparison, Finding, RunRecord, Severity};
use pinwise_stats::describe::median;
use pinwise_topology::Topology;

/// A limit counts as reached if it throttled for at least this share of the time.
const MIN_THROTTLED_SHARE: f64 = 0.01;

/// Reports blocks that were dropped because a limit that seldom throttles throttled a run.
pub(super) fn report_dropped_blocks(results: &Results) -> Option<Finding> {
    let (blocks, runs) = match results.throttled_blocks {
        0 => return None,
        1 => ("1 block was".to_owned(), "a run in it"),
        blocks => (format!("{blocks} blocks were"), "runs in them"),
    };
    Some(
        Finding::new(
            "throttled",
            Severity::Warning,
            format!("{blocks} dropped: a CPU quota throttled {runs}, but few other runs."),
            "Other processes in the cgroup used up its quota: stop them, or raise cpu.max.",
        )
        .with_evidence("blocks", results.throttled_blocks),
    )
}

/// Reports a limit of the surrounding cgroup that throttled the arms: verdicts hold under it.
pub(super) fn report_inherited_limit(record: &Comparison, topology: &Topology) -> Option<Finding> {
    let limit = topology.quota.as_ref()?.cpus;
    // An arm's own limit has a finding of its own.
    let is_without_limit = |arm: &&Arm| !arm.runs.is_empty() && arm.setting.limit.is_none();
    let arms = record.arms.iter().filter(is_without_limit);
    let runs = arms.clone().flat_map(|arm| &arm.runs);
    let shares = arms.map(|arm| (&arm.name, throttled_share(&arm.runs)));
    let shares: Vec<(&String, f64)> = shares.collect();
    if shares.iter().all(|(_, share)| *share < MIN_THROTTLED_SHARE) {
        return None;
    }
    let parts = shares.iter();
    let parts = parts.map(|(name, share)| format!("{name} {}", round_percent(*share)));
    let parts: Vec<String> = parts.collect();
    let sentence = format!(
        "The verdict holds under the limit of {} here, which throttled runnable threads for part of the time: {}.",
        cpu_limit(limit),
        parts.join(", ")
    );
    let finding = Finding::new(
        "cpu_limit",
        Severity::Warning,
        sentence,
        advise_on_limit(limit, runs, record.host.counts.cpus),
    );
    Some(finding.with_evidence("limit_cpus", limit))
}

/// Reports how often and for how long an arm's own limit throttled its threads.
pub(super) fn report_own_limit(arm: &Arm, record: &Comparison) -> Option<Finding> {
    let limit = arm.setting.limit?.cpus;
    let share = throttled_share(&arm.runs);
    if share < MIN_THROTTLED_SHARE {
        return None;
    }
    let is_throttled = |run: &&RunRecord| run.throttled.is_some_and(|times| times > 0);
    let runs = arm.runs.len();
    let throttled = arm.runs.iter().filter(is_throttled).count();
    let throttled_s: f64 = arm.runs.iter().filter_map(|run| run.throttled_s).sum();
    let sentence = format!(
        "{} throttled its threads in {throttled} of {}, for {} of the time in which they could run.",
        arm.name,
        count(runs, "run"),
        round_percent(share),
    );
    let mut advice = advise_on_limit(limit, arm.runs.iter(), record.host.counts.cpus);
    // A figure that the program prints may concern the tail already.
    if throttled < runs && record.judges_typical_run() && record.metric.is_wall() {
        advice.push_str(
            " A limit that stops some runs lengthens the tail: --judge p90 or p99 compares it.",
        );
    }
    let finding = Finding::new("arm_throttled", Severity::Note, sentence, advice);
    Some(
        finding
            .with_evidence("arm", arm.name.clone())
            .with_evidence("limit_cpus", limit)
            .with_evidence("throttled_runs", throttled)
            .with_evidence("throttled_s", throttled_s),
    )
}

/// Appended to a verdict about an arm whose limit was hardly reached; else empty.
pub(super) fn describe_idle_limits(record: &Comparison) -> String {
    let decided = record.contrasts.iter().filter(|c| c.is_decided());
    let judged: Vec<&String> = decided.flat_map(|c| [&c.arm, &c.baseline]).collect();
    let idle = idle_arms(record).filter(|arm| judged.contains(&&arm.name));
    let idle: Vec<&str> = idle.map(|arm| arm.name.as_str()).collect();
    match idle.is_empty() {
        true => String::new(),
        false => format!(
            " {} was hardly reached: this does not show what it costs.",
            idle.join(", ")
        ),
    }
}

fn idle_arms(record: &Comparison) -> impl Iterator<Item = &Arm> {
    record.arms.iter().filter(|arm| {
        let is_limited = arm.setting.limit.is_some() && !arm.runs.is_empty();
        is_limited && throttled_share(&arm.runs) < MIN_THROTTLED_SHARE
    })
}

/// Reports arms whose limit hardly throttled: they do not show what the limit costs a program that
/// needs more.
pub(super) fn report_idle_limits(record: &Comparison) -> Option<Finding> {
    let arms: Vec<&Arm> = idle_arms(record).collect();
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let runs = arms.iter().flat_map(|arm| &arm.runs);
    let used = runs.filter_map(|run| Some(run.cpu_s()? / run.wall_s));
    let most = used.fold(0.0, f64::max);
    (!arms.is_empty()).then(|| {
        let sentence = format!(
            "{} throttled it for less than {} of the time in which it could run: no run used more than {most:.2} CPUs on average.",
            names.join(", "),
            round_percent(MIN_THROTTLED_SHARE),
        );
        let advice = "What a limit costs shows only where it is reached: give the command more work, or end what else keeps the CPUs busy.";
        Finding::new("limit_not_reached", Severity::Note, sentence, advice)
            .with_evidence("most_cpus", most)
    })
}

/// Advises on the limit of a machine of `cpus` CPUs that throttled these runs.
fn advise_on_limit<'r>(
    limit: f64,
    runs: impl Iterator<Item = &'r RunRecord>,
    cpus: usize,
) -> String {
    match limit {
        ..1.0 => {
            // What a run would have used without the limit, on average.
            let wanted = runs
                .filter_map(|run| Some((run.cpu_s()? + run.throttled_s?) / run.wall_s))
                .filter(|wanted| wanted.is_finite());
            let wanted: Vec<f64> = wanted.collect();
            let wanted = median(&wanted).map_or(1, whole_usize).clamp(1, cpus.max(1));
            format!(
                "Raise the limit to {}: even one busy thread exceeds it.",
                count(wanted, "CPU")
            )
        }
        ..2.0 => "Run one busy thread, which fits into the limit.".to_owned(),
        _ => format!(
            "Run at most {} busy threads, which fit into the limit.",
            limit.floor()
        ),
    }
}

/// Throttled time as a share of the time in which the threads of these runs ran or were throttled.
fn throttled_share(runs: &[RunRecord]) -> f64 {
    let sum = |part: fn(&RunRecord) -> Option<f64>| runs.iter().filter_map(part).sum::<f64>();
    let (throttled_s, cpu_s) = (sum(|run| run.throttled_s), sum(RunRecord::cpu_s));
    match throttled_s > 0.0 {
        true => throttled_s / (throttled_s + cpu_s),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::CpuLimitRecord;

    #[test]
    fn the_limit_that_is_advised_fits_the_work_of_all_threads() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let record: Comparison = serde_json::from_str(text).unwrap();
        let mut run = record.arms[0].runs[0].clone();
        let mut advise = |used_s, throttled_s, cpus| {
            (run.wall_s, run.user_s, run.sys_s) = (2.0, Some(used_s), Some(0.0));
            run.throttled_s = Some(throttled_s);
            advise_on_limit(0.5, [&run].into_iter(), cpus)
        };
        assert!(advise(1.0, 2.9, 2).starts_with("Raise the limit to 2 CPUs:"));
        assert!(advise(1.0, 0.9, 2).starts_with("Raise the limit to 1 CPU:"));
        assert!(advise(1.0, 15.0, 2).starts_with("Raise the limit to 2 CPUs:"));
        assert!(advise(0.1, 0.1, 2).starts_with("Raise the limit to 1 CPU:"));
    }

    #[test]
    fn limits_that_are_never_reached_are_named() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        assert_eq!(report_idle_limits(&record), None);
        for (arm, throttled_s) in record.arms.iter_mut().zip([0.0, 0.004, 0.02]) {
            arm.setting.limit = Some(CpuLimitRecord {
                cpus: 1.5,
                period_s: 0.1,
            });
            arm.runs.truncate(2);
            for run in &mut arm.runs {
                (run.wall_s, run.user_s, run.sys_s) = (2.0, Some(0.8), Some(0.02));
                run.throttled_s = Some(throttled_s);
            }
        }
        let names: Vec<String> = record.arms.iter().map(|arm| arm.name.clone()).collect();
        let last = record.contrasts.len() - 1;
        record.contrasts[last].arm.clone_from(&names[1]);
        record.contrasts[last].verdict = pinwise_record::ContrastVerdict::Slower;
        let said = describe_idle_limits(&record);
        assert!(said.contains(&format!("{} was hardly", names[1])), "{said}");
        for contrast in &mut record.contrasts {
            contrast.verdict = pinwise_record::ContrastVerdict::Undecided;
        }
        assert_eq!(describe_idle_limits(&record), "");
        let found = report_idle_limits(&record).unwrap();
        let said = format!("{}, {} throttled it for less than 1 %", names[0], names[1]);
        assert!(found.sentence.starts_with(&said), "{}", found.sentence);
        assert!(found.sentence.contains("0.41 CPUs"), "{}", found.sentence);
        assert_eq!(report_own_limit(&record.arms[1], &record), None);
        assert!(report_own_limit(&record.arms[2], &record).is_some());
    }
}
