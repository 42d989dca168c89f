//! Runs that failed: they end a comparison, with the reason as its verdict, or `--ignore-failure`
//! accepts them; how long a command takes to fail recommends nothing.

use std::collections::BTreeMap;

use pinwise_format::{capitalise, count, shell};
use pinwise_record::{
    Arm, CommandRecord, Comparison, Finding, NotRecommended, RunRecord, Severity, Stopped,
    VerdictKind,
};

/// The most exit statuses in a sentence.
const MAX_STATUSES: usize = 3;
/// How to accept a status that is no failure.
const ACCEPT: &str =
    "If that status means success, end the command with `|| true` (with --shell sh).";

fn is_failure(run: &RunRecord) -> bool {
    run.exit.is_some_and(|exit| exit != 0)
}

fn valid_arms(record: &Comparison) -> impl Iterator<Item = &Arm> {
    let arms = record.arms.iter();
    arms.filter(|arm| arm.invalid.is_none() && !arm.runs.is_empty())
}

/// The statuses of runs that failed, the most frequent first: `1 or 3`.
fn list_statuses<'r>(runs: impl Iterator<Item = &'r RunRecord>) -> String {
    let mut statuses: BTreeMap<i32, usize> = BTreeMap::new();
    for status in runs
        .filter(|run| is_failure(run))
        .filter_map(|run| run.exit)
    {
        *statuses.entry(status).or_default() += 1;
    }
    let mut ranked: Vec<(i32, usize)> = statuses.into_iter().collect();
    ranked.sort_by_key(|(_, runs)| std::cmp::Reverse(*runs));
    let shown = ranked.iter().take(MAX_STATUSES);
    let mut shown: Vec<String> = shown.map(|(status, _)| status.to_string()).collect();
    if ranked.len() > MAX_STATUSES {
        shown.push("…".to_owned());
    }
    shown.join(" or ")
}

/// Runs that failed, as a finding.
pub(super) fn check_exits(record: &Comparison) -> Option<Finding> {
    let failing: Vec<&Arm> = valid_arms(record)
        .filter(|arm| arm.runs.iter().any(is_failure))
        .collect();
    // With several arms, the runs of the only one that failed.
    let (arms, of_arm) = match failing.as_slice() {
        [only] if record.arms.len() > 1 => (failing.clone(), format!(" of {}", only.name)),
        _ => (valid_arms(record).collect(), String::new()),
    };
    let runs: Vec<&RunRecord> = arms.into_iter().flat_map(|arm| &arm.runs).collect();
    let failed = runs.iter().filter(|run| is_failure(run)).count();
    let many = match failed {
        0 => return None,
        all if all == runs.len() => format!("All {}", count(all, "run")),
        some => format!("{some} of {}", count(runs.len(), "run")),
    };
    let statuses = list_statuses(runs.into_iter());
    Some(
        Finding::new(
            "exit_statuses",
            Severity::Warning,
            format!("{many}{of_arm} exited with status {statuses}."),
            format!("The command may have failed: run it once and read its output. {ACCEPT}"),
        )
        .with_weight(8)
        .with_evidence("runs", failed),
    )
}

/// Says of all arms, or of the best one, that every run failed: `all 16 runs exited with status 1`.
/// `None` if that is not so.
pub(super) fn describe_failed(record: &Comparison, best: Option<&Arm>) -> Option<String> {
    let has_failed = |arm: &Arm| !arm.runs.is_empty() && arm.runs.iter().all(is_failure);
    let all: Vec<&Arm> = valid_arms(record).collect();
    let (arms, of_arm) = match best.filter(|best| has_failed(best)) {
        _ if !all.is_empty() && all.iter().all(|arm| has_failed(arm)) => (all, String::new()),
        Some(best) => (vec![best], format!(" of {}", best.name)),
        None => return None,
    };
    let runs = arms.iter().flat_map(|arm| &arm.runs);
    let many = count(runs.clone().count(), "run");
    let statuses = list_statuses(runs);
    Some(format!("all {many}{of_arm} exited with status {statuses}"))
}

/// Withholds the recommendation of a comparison, or of its best arm, of which every run failed.
pub(super) fn withhold_failed(record: &mut Comparison) {
    let best = record
        .arms
        .iter()
        .find(|arm| Some(&arm.name) == record.best.as_ref());
    let Some(failed) = describe_failed(record, best) else {
        return;
    };
    let shown = best.or_else(|| valid_arms(record).next());
    let commands = shown.map(read_output_of);
    let verdict = &mut record.verdict;
    verdict.sentence = match verdict.kind {
        VerdictKind::Timed => format!("{}. {}", capitalise(&failed), verdict.sentence),
        _ => format!("No recommendation: {failed}. {}", verdict.sentence),
    };
    verdict.advice = ACCEPT.to_owned();
    verdict.commands = commands.into_iter().collect();
    verdict.not_recommended = Some(NotRecommended::Failed);
}

/// Writes the verdict of a comparison in which no arms could be compared.
pub(super) fn conclude_without_look(record: &mut Comparison, stopped: Stopped) {
    record.verdict.sentence = describe_no_look(record, stopped);
    let failed = find_failed(record).map(read_output_of);
    record.verdict.commands = failed.into_iter().collect();
}

fn describe_no_look(record: &Comparison, stopped: Stopped) -> String {
    match stopped {
        Stopped::Failed => describe_failure(record),
        Stopped::Interrupted => "Undecided: interrupted before there was enough data.".to_owned(),
        _ => "Undecided: no complete block.".to_owned(),
    }
}

/// The arm whose failure ended the comparison: the baseline if it failed, else the first that did.
fn find_failed(record: &Comparison) -> Option<&Arm> {
    let mut failed = record.arms.iter().filter(|arm| arm.invalid.is_some());
    let first = failed.clone().next();
    failed.find(|arm| arm.name == record.baseline).or(first)
}

/// Why nothing could be compared.
fn describe_failure(record: &Comparison) -> String {
    let cause = find_failed(record);
    let reason = cause.and_then(|arm| arm.invalid.as_deref()).unwrap_or("?");
    let name = cause.map_or("", |arm| arm.name.as_str());
    // A reason of several lines ends with the command's own output.
    let stop = if reason.contains('\n') { "" } else { "." };
    if record.arms.iter().all(|arm| arm.invalid.is_some()) {
        return format!("No arm could be measured: {reason}{stop}");
    }
    // Without another arm of the same command, the reason names the arm.
    let is_command = |arm: &&Arm| cause.is_some_and(|cause| cause.command == arm.command);
    match record.arms.iter().filter(is_command).count() {
        1 => format!("No verdict: {reason}{stop}"),
        _ => format!("No verdict because {name} could not be measured: {reason}{stop}"),
    }
}

/// The arm's command with its input, wherever it runs; repeated until it fails if it rarely does.
fn read_output_of(arm: &Arm) -> CommandRecord {
    let line = shell::line(&arm.command);
    let line = match &arm.workload.input {
        Some(input) => format!("{line} < {}", shell::word(input)),
        None => line,
    };
    match arm.runs.iter().any(|run| !is_failure(run)) {
        true => CommandRecord {
            what: "to see it fail".to_owned(),
            line: format!("while {line}; do :; done"),
        },
        false => CommandRecord {
            what: "to read its output".to_owned(),
            line,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Comparison {
        let text = include_str!("../../../../tests/data/records/comparison.json");
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn runs_that_ended_with_another_status_than_0_are_reported() {
        let mut record = example();
        let sentence = |record: &Comparison| Some(check_exits(record)?.sentence);
        for run in record.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
            run.exit = Some(0);
        }
        assert_eq!(sentence(&record), None);
        let all = record.arms.iter().flat_map(|arm| &arm.runs).count();
        record.arms[0].runs[0].exit = Some(3);
        let Arm { runs, name, .. } = &record.arms[0];
        let some = format!("1 of {} runs of {name} exited with status 3.", runs.len());
        assert_eq!(sentence(&record), Some(some));
        for run in record.arms.iter_mut().flat_map(|arm| &mut arm.runs) {
            run.exit = Some(1);
        }
        let every = format!("All {all} runs exited with status 1.");
        assert_eq!(sentence(&record), Some(every));
        // The reason of an arm that was excluded is reported elsewhere.
        for arm in &mut record.arms {
            arm.invalid = Some("it failed".to_owned());
        }
        assert_eq!(sentence(&record), None);
    }

    fn set_exits(record: &mut Comparison, arm: &str, exit: i32) {
        let arms = record.arms.iter_mut().filter(|one| one.name == arm);
        arms.flat_map(|arm| &mut arm.runs)
            .for_each(|run| run.exit = Some(exit));
    }

    #[test]
    fn an_arm_of_which_every_run_failed_is_not_recommended() {
        let mut record = example();
        let names: Vec<String> = record.arms.iter().map(|arm| arm.name.clone()).collect();
        let best = record.best.clone().unwrap();
        let before = record.verdict.clone();
        for name in names.iter().filter(|name| **name != best) {
            set_exits(&mut record, name, 1);
        }
        withhold_failed(&mut record);
        assert_eq!(record.verdict, before);
        set_exits(&mut record, &best, 1);
        let all = record.arms.iter().flat_map(|arm| &arm.runs).count();
        withhold_failed(&mut record);
        let start = format!("No recommendation: all {all} runs exited with status 1. ");
        assert!(record.verdict.sentence.starts_with(&start));
        assert_eq!(record.verdict.commands[0].line, "pigz -p 8 -k access.log");
        assert!(record.verdict.advice.contains("`|| true`"));
        assert!(record.recommended_arm().is_none());

        let mut record = example();
        set_exits(&mut record, &best, 3);
        withhold_failed(&mut record);
        let of_best = format!("runs of {best} exited with status 3. ");
        assert!(record.verdict.sentence.contains(&of_best));
        assert_eq!(record.verdict.not_recommended, Some(NotRecommended::Failed));
    }
}
