//! What limits on CPU time did to runs, as findings.

use super::results::Results;
use pinwise_format::{count, cpu_limit, round_percent};
use pinwise_record::{Arm, Comparison, Finding, RunRecord, Severity};
use pinwise_topology::Topology;

/// A limit that holds back for less of the time than this is not worth mentioning.
const HELD_BACK: f64 = 0.01;

/// Blocks in which a limit that seldom does so stopped a run.
pub(super) fn dropped_blocks(results: &Results) -> Option<Finding> {
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

/// A limit that stops runs in every block is part of the placement.
pub(super) fn outer_limit(record: &Comparison, topology: &Topology) -> Option<Finding> {
    let limit = topology.quota.as_ref()?.cpus;
    // What an arm's own limit held back has a finding of its own.
    let is_open = |arm: &&Arm| !arm.runs.is_empty() && arm.setting.limit.is_none();
    let arms = record.arms.iter().filter(is_open);
    let shares = arms.map(|arm| (&arm.name, share_held_back(&arm.runs)));
    let shares: Vec<(&String, f64)> = shares.collect();
    if shares.iter().all(|(_, share)| *share < HELD_BACK) {
        return None;
    }
    let each = shares.iter();
    let each = each.map(|(name, share)| format!("{name} {}", round_percent(*share)));
    let each: Vec<String> = each.collect();
    let sentence = format!(
        "The verdict holds under the limit of {} here, which throttled runnable threads for part of the time: {}.",
        cpu_limit(limit),
        each.join(", ")
    );
    let finding = Finding::new("cpu_limit", Severity::Warning, sentence, fitting(limit));
    Some(finding.with_evidence("limit_cpus", limit))
}

/// How often and for how long an arm's own limit held its threads back.
pub(super) fn own_limit(arm: &Arm, record: &Comparison) -> Option<Finding> {
    let limit = arm.setting.limit?.cpus;
    let share = share_held_back(&arm.runs);
    if share < HELD_BACK {
        return None;
    }
    let is_stopped = |run: &&RunRecord| run.throttled.is_some_and(|times| times > 0);
    let (stopped, runs) = (arm.runs.iter().filter(is_stopped).count(), arm.runs.len());
    let held_s: f64 = arm.runs.iter().filter_map(|run| run.throttled_s).sum();
    let sentence = format!(
        "{} throttled its threads in {stopped} of {}, for {} of the time in which they could run.",
        arm.name,
        count(runs, "run"),
        round_percent(share),
    );
    let mut advice = fitting(limit);
    // A figure of the program's own may be of the tail already.
    if stopped < runs && record.plan.judge == "typical" && record.metric.is_wall() {
        advice.push_str(
            " A limit that stops some runs lengthens the tail: --judge p90 or p99 compares it.",
        );
    }
    let finding = Finding::new("arm_throttled", Severity::Note, sentence, advice);
    Some(
        finding
            .with_evidence("arm", arm.name.clone())
            .with_evidence("limit_cpus", limit)
            .with_evidence("throttled_runs", stopped)
            .with_evidence("throttled_s", held_s),
    )
}

/// What a verdict on a limit that was hardly reached does not say, behind its sentence; else empty.
pub(super) fn describe_idle_limits(record: &Comparison) -> String {
    let decided = record.contrasts.iter().filter(|found| found.is_decided());
    let judged: Vec<&String> = decided
        .flat_map(|found| [&found.arm, &found.baseline])
        .collect();
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
        is_limited && share_held_back(&arm.runs) < HELD_BACK
    })
}

/// Arms whose limit held hardly anything back: they show what the default does, and nothing of what
/// the limit costs a program that needs more.
pub(super) fn idle_limits(record: &Comparison) -> Option<Finding> {
    let arms: Vec<&Arm> = idle_arms(record).collect();
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    let runs = arms.iter().flat_map(|arm| &arm.runs);
    let used = runs.filter_map(|run| Some(run.cpu_s()? / run.wall_s));
    let most = used.fold(0.0, f64::max);
    (!arms.is_empty()).then(|| {
        let sentence = format!(
            "{} throttled it for less than {} of the time in which it could run: no run used more than {most:.2} CPUs on average.",
            names.join(", "),
            round_percent(HELD_BACK),
        );
        let advice = "What a limit costs shows only where it is reached: give the command more work, or end what else keeps the CPUs busy.";
        Finding::new("limit_not_reached", Severity::Note, sentence, advice)
            .with_evidence("most_cpus", most)
    })
}

fn fitting(limit: f64) -> String {
    match limit {
        ..1.0 => "Raise the limit to 1 CPU: even one busy thread exceeds it.".to_owned(),
        ..2.0 => "Run one busy thread, which fits into the limit.".to_owned(),
        _ => format!(
            "Run at most {} busy threads, which fit into the limit.",
            limit.floor()
        ),
    }
}

/// How much of the time in which CPUs had threads of these runs a limit held them back.
fn share_held_back(runs: &[RunRecord]) -> f64 {
    let sum = |part: fn(&RunRecord) -> Option<f64>| runs.iter().filter_map(part).sum::<f64>();
    let (held_s, cpu_s) = (sum(|run| run.throttled_s), sum(RunRecord::cpu_s));
    match held_s > 0.0 {
        true => held_s / (held_s + cpu_s),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::CpuLimitRecord;

    #[test]
    fn limits_that_are_never_reached_are_named() {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        assert_eq!(idle_limits(&record), None);
        for (arm, held_s) in record.arms.iter_mut().zip([0.0, 0.004, 0.02]) {
            arm.setting.limit = Some(CpuLimitRecord {
                cpus: 1.5,
                period_s: 0.1,
            });
            arm.runs.truncate(2);
            for run in &mut arm.runs {
                (run.wall_s, run.user_s, run.sys_s) = (2.0, Some(0.8), Some(0.02));
                run.throttled_s = Some(held_s);
            }
        }
        let names =
            |arms: &[Arm]| -> Vec<String> { arms.iter().map(|arm| arm.name.clone()).collect() };
        let names = names(&record.arms);
        let last = record.contrasts.len() - 1;
        record.contrasts[last].arm.clone_from(&names[1]);
        record.contrasts[last].verdict = pinwise_record::ContrastVerdict::Slower;
        let said = describe_idle_limits(&record);
        assert!(said.contains(&format!("{} was hardly", names[1])), "{said}");
        for contrast in &mut record.contrasts {
            contrast.verdict = pinwise_record::ContrastVerdict::Undecided;
        }
        assert_eq!(describe_idle_limits(&record), "");
        let found = idle_limits(&record).unwrap();
        let said = format!("{}, {} throttled it for less than 1 %", names[0], names[1]);
        assert!(found.sentence.starts_with(&said), "{}", found.sentence);
        assert!(found.sentence.contains("0.41 CPUs"), "{}", found.sentence);
        assert_eq!(own_limit(&record.arms[1], &record), None);
        assert!(own_limit(&record.arms[2], &record).is_some());
    }
}
