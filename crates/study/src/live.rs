//! Adapts the record of a comparison to a running service that was placed in turns.

use pinwise_machine::linux::live::TargetFacts;
use pinwise_record::{Comparison, Finding, ServiceRecord, Severity};

/// The state of the service after the last run.
#[derive(Debug, Clone, Default)]
pub struct ServiceState {
    /// Remarks on its threads, as full sentences.
    pub notes: Vec<String>,
    /// The program's setting that places its own threads, if known.
    pub knob: Option<String>,
    /// Number of arms that were rolled back for being worse than the limit.
    pub aborted: usize,
    /// Has the service ended?
    pub has_ended: bool,
}

/// The record of a service, without the fields on how it is measured.
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

/// Adds findings on the service, and adapts the advice of others to it.
pub fn add_service_findings(record: &mut Comparison, state: &ServiceState) {
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
            to_sentence(note),
            match &state.knob {
                Some(knob) => format!("If the program places its own threads, use {knob}."),
                None => "If the program places its own threads, use its own setting.".to_owned(),
            },
        ));
    }
}

/// The text with a capital and a full stop.
fn to_sentence(text: &str) -> String {
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
        assert_eq!(to_sentence("thread 5 moved"), "Thread 5 moved.");
        assert_eq!(to_sentence("Done."), "Done.");
        assert_eq!(to_sentence(""), ".");
    }
}
