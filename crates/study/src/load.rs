//! Names the processes that cause the load in findings.

use pinwise_format::count;
use pinwise_machine::BusyProcess;
use pinwise_record::{Comparison, Finding, Stopped};

/// At most this many processes are named.
const MAX_NAMED: usize = 3;
/// Processes that use fewer CPUs are not named.
const MIN_CPUS: f64 = 0.2;

/// Adds to why nothing could be compared that others preempted a program of low priority, if it was
/// killed for being late.
pub(crate) fn blame_niceness(
    record: &mut Comparison,
    find_busiest: impl FnOnce() -> Vec<BusyProcess>,
) {
    let nice = record.findings.iter().find(|found| found.check == "nice");
    let Some(nice) = nice.and_then(|found| found.evidence.get("nice")?.as_i64()) else {
        return;
    };
    let runs = record.arms.iter();
    let mut runs = runs.flat_map(|arm| arm.runs.iter().chain(&arm.other_runs));
    if record.stopped != Some(Stopped::Failed) || !runs.any(|run| run.timed_out) {
        return;
    }
    let busy = find_busiest().into_iter().find(|one| one.cpus >= MIN_CPUS);
    if let Some(BusyProcess { name, process, .. }) = busy {
        let cause = format!(
            " Likely cause: it ran at nice {nice} and yielded to busy processes such as {name} ({process})."
        );
        record.verdict.sentence.push_str(&cause);
    }
}

fn concerns_load(finding: &Finding) -> bool {
    matches!(
        finding.check.as_str(),
        "foreign_load" | "load" | "other_processes" | "queued"
    )
}

/// Names the processes that use the CPUs now in the advice of findings about load. `find_busiest`
/// takes a moment, and is called only if there is such a finding.
pub fn name_busiest(findings: &mut [Finding], find_busiest: impl FnOnce() -> Vec<BusyProcess>) {
    if !findings.iter().any(concerns_load) {
        return;
    }
    let busy = find_busiest();
    let busy: Vec<&BusyProcess> = busy.iter().filter(|one| one.cpus >= MIN_CPUS).collect();
    let named = busy.iter().take(MAX_NAMED).map(|one| {
        let BusyProcess {
            name,
            process,
            cpus,
        } = one;
        format!("{name} ({process}) {:.0} %", 100.0 * cpus)
    });
    let mut named: Vec<String> = named.collect();
    if let Some(first) = named.first_mut() {
        first.push_str(" of a CPU");
    }
    if busy.len() > MAX_NAMED {
        named.push(count(busy.len() - MAX_NAMED, "other"));
    }
    if named.is_empty() {
        return;
    }
    let busiest = format!("Busiest now: {}.", named.join(", "));
    for finding in findings.iter_mut().filter(|finding| concerns_load(finding)) {
        let advice = format!("{} {busiest}", finding.advice);
        finding.advice = advice.trim_start().to_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::Severity;

    #[test]
    fn background_work_is_not_reported_as_load() {
        let is_load = |busy, cpus| crate::compare::report_load(busy, cpus, "", "").is_some();
        for (busy, cpus) in [(0.11, 2), (0.2, 2), (0.1, 1), (2.0, 64)] {
            assert!(!is_load(busy, cpus), "{busy} of {cpus}");
        }
        for (busy, cpus) in [(0.3, 2), (0.3, 1), (4.0, 64)] {
            assert!(is_load(busy, cpus), "{busy} of {cpus}");
        }
    }

    #[test]
    fn low_priority_is_blamed_for_a_late_run_only_on_a_busy_machine() {
        let text = include_str!("../../../tests/data/records/comparison.json");
        let mut record: Comparison = serde_json::from_str(text).unwrap();
        record.verdict.sentence = "Too late.".to_owned();
        record.stopped = Some(Stopped::Failed);
        record.arms[0].runs[0].timed_out = true;
        let busy = |cpus| {
            vec![BusyProcess {
                process: 7,
                name: "cc1plus".to_owned(),
                cpus,
            }]
        };
        blame_niceness(&mut record, || busy(1.0));
        assert_eq!(record.verdict.sentence, "Too late.");
        let nice = Finding::new("nice", Severity::Warning, "", "").with_evidence("nice", 19);
        record.findings.push(nice);
        blame_niceness(&mut record, || busy(0.05));
        assert_eq!(record.verdict.sentence, "Too late.");
        blame_niceness(&mut record, || busy(1.0));
        let sentence = &record.verdict.sentence;
        assert!(sentence.contains("nice 19"), "{sentence}");
        assert!(sentence.contains("cc1plus (7)"), "{sentence}");
    }

    #[test]
    fn findings_about_load_name_the_busiest_processes() {
        let finding = |check: &'static str| Finding::new(check, Severity::Warning, "", "Stop it.");
        let mut findings = [finding("foreign_load"), finding("steal")];
        let busy = |process: i32, cpus| BusyProcess {
            process,
            name: "cc1plus".to_owned(),
            cpus,
        };
        let mut all = vec![busy(7, 0.984), busy(8, 0.5), busy(9, 0.01)];
        name_busiest(&mut findings, || all.clone());
        let advice = "Stop it. Busiest now: cc1plus (7) 98 % of a CPU, cc1plus (8) 50 %.";
        assert_eq!(findings[0].advice, advice);
        assert_eq!(findings[1].advice, "Stop it.");
        all.extend((10..14).map(|process| busy(process, 0.3)));
        let mut findings = [finding("other_processes")];
        name_busiest(&mut findings, || all.clone());
        assert!(findings[0].advice.ends_with("cc1plus (10) 30 %, 3 others."));
    }
}
