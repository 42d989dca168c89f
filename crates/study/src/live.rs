//! The result of a comparison of placements of a running service, beyond what
//! any comparison does.

use pinwise_machine::linux::live::TargetFacts;
use pinwise_record::{Comparison, Finding, ServiceRecord, Severity};

/// What is known of the service after the last run.
#[derive(Debug, Clone, Default)]
pub struct ServiceState {
    /// Remarks on its threads, as full sentences.
    pub notes: Vec<String>,
    /// The setting by which its program places its own threads, if known.
    pub knob: Option<String>,
    /// Arms that were rolled back for being worse than the limit.
    pub aborted: usize,
    /// Has it ended?
    pub has_ended: bool,
}

/// A service as records describe it; nothing of how it is measured yet.
#[must_use]
pub fn service_record(facts: TargetFacts) -> ServiceRecord {
    ServiceRecord {
        pid: facts.pid,
        name: facts.name,
        command: facts.command,
        unit: facts.unit,
        cgroup: facts.cgroup,
        metric_source: None,
        sample_s: None,
        settle_s: None,
    }
}

/// Puts it into the record: findings, and advice that names the service.
pub fn describe(record: &mut Comparison, state: &ServiceState) {
    for finding in &mut record.findings {
        match finding.check.as_str() {
            "arm_invalid" if state.has_ended => {
                finding.advice = "The service ended: see its own log.".to_owned();
            }
            "arm_invalid" => {
                finding.advice =
                    "Its threads' old CPUs were restored; leave the placement out.".to_owned();
            }
            "thread_counts_differ" => {
                finding.severity = Severity::Note;
                finding.advice =
                    "A service may start threads depending on its load: make sure that the load is the same."
                        .to_owned();
            }
            _ => {}
        }
    }
    if state.has_ended {
        record.header.findings.insert(
            0,
            Finding::new(
                "service_ended",
                Severity::Problem,
                "The service ended while it was measured; partial results are kept.",
                "See its own log. pinwise ends no service; a placement can show a fault of one.",
            ),
        );
    }
    for note in &state.notes {
        record.header.findings.push(Finding::new(
            "service_threads",
            Severity::Warning,
            sentence(note),
            match &state.knob {
                Some(knob) => format!("If the program places its own threads, use {knob}."),
                None => "If the program places its own threads, use its own setting.".to_owned(),
            },
        ));
    }
}

/// With a capital and a full stop.
fn sentence(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|c| c.to_ascii_uppercase());
    let mut whole: String = first.into_iter().chain(characters).collect();
    if !whole.ends_with('.') {
        whole.push('.');
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_become_sentences() {
        assert_eq!(sentence("thread 5 moved"), "Thread 5 moved.");
        assert_eq!(sentence("Done."), "Done.");
        assert_eq!(sentence(""), ".");
    }
}
