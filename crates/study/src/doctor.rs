//! What on a machine would distort measurements, ranked, each with evidence
//! and a fix.
//!
//! Checks are pure functions of facts, so that they are tested on hosts nobody
//! owns. Nothing is changed: turbo, SMT and frequency are part of what a
//! placement does, and only the user decides to take them away. The order of
//! weights follows what each cost in measured comparisons: other users of the
//! CPUs first, then the invisible neighbours of a virtual machine, then order
//! effects and frequency.

mod disturbance;
mod settings;

use pinwise_machine::Usage;
use pinwise_machine::linux::HostFacts;
use pinwise_record::{DOCTOR_SCHEMA, Doctor, Finding, Severity};
use pinwise_topology::Topology;

/// What the checks look at.
#[derive(Debug, Clone, Default)]
pub struct Examined {
    /// Settings and state.
    pub facts: HostFacts,
    /// The machine.
    pub topology: Topology,
    /// CPU time at the start and the end of a short wait.
    pub usage: Option<(Usage, Usage)>,
}

/// What a check found.
enum CheckOutcome {
    Found(Finding),
    InOrder(&'static str),
    Unavailable(&'static str, &'static str),
}

use CheckOutcome::{Found, InOrder, Unavailable};
use disturbance::{load, pressure, quota, sched_ext, steal, thermal, tuners, virtual_machine};
use settings::{
    aslr, battery, clock, cpuset, governor, huge_pages, isolated, numa_balancing, perf, smt, swap,
    turbo,
};

const CHECKS: [fn(&Examined) -> CheckOutcome; 20] = [
    load,
    steal,
    virtual_machine,
    quota,
    tuners,
    battery,
    governor,
    thermal,
    sched_ext,
    clock,
    swap,
    pressure,
    smt,
    turbo,
    cpuset,
    numa_balancing,
    huge_pages,
    aslr,
    isolated,
    perf,
];

/// Makes all checks.
#[must_use]
pub fn diagnose(examined: &Examined) -> Doctor {
    let mut record = Doctor {
        schema: DOCTOR_SCHEMA.to_owned(),
        findings: Vec::new(),
        passed: Vec::new(),
        unavailable: std::collections::BTreeMap::new(),
    };
    for check in CHECKS {
        match check(examined) {
            Found(finding) => record.findings.push(finding),
            InOrder(name) => record.passed.push(name.to_owned()),
            Unavailable(name, reason) => {
                record
                    .unavailable
                    .insert(name.to_owned(), reason.to_owned());
            }
        }
    }
    record
        .findings
        .sort_by_key(|f| std::cmp::Reverse((f.severity, f.weight)));
    record
}

fn warning(
    check: &'static str,
    weight: u8,
    sentence: impl Into<String>,
    advice: impl Into<String>,
) -> Finding {
    Finding::new(check, Severity::Warning, sentence, advice).weighing(weight)
}

fn note(
    check: &'static str,
    weight: u8,
    sentence: impl Into<String>,
    advice: impl Into<String>,
) -> Finding {
    Finding::new(check, Severity::Note, sentence, advice).weighing(weight)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use pinwise_topology::Quota;

    fn names(examined: &Examined) -> Vec<String> {
        let record = diagnose(examined);
        record.findings.into_iter().map(|f| f.check).collect()
    }

    fn quiet() -> Examined {
        Examined {
            topology: Topology::from_synthetic("core:2 pu:1").unwrap(),
            ..Examined::default()
        }
    }

    #[test]
    fn a_quiet_host_has_no_findings() {
        assert_eq!(names(&quiet()), Vec::<String>::new());
    }

    #[test]
    fn findings_are_ranked() {
        let mut examined = quiet();
        examined.facts.huge_pages = Some("always".to_owned());
        examined.facts.tuners = vec!["irqbalance".to_owned()];
        examined.facts.governors = vec!["powersave".to_owned()];
        examined.topology.quota = Some(Quota {
            cpus: 0.5,
            source: "/sys/fs/cgroup/cpu.max".to_owned(),
        });
        examined.topology.identity.hypervisor = Some("kvm".to_owned());
        assert_eq!(
            names(&examined),
            [
                "quota",
                "virtual_machine",
                "tuners",
                "governor",
                "huge_pages"
            ]
        );
    }

    #[test]
    fn load_and_steal_are_measured_over_the_wait() {
        let usage = |at, busy0, busy1, steal| Usage {
            at: Duration::from_millis(at),
            busy: vec![
                (0, Duration::from_millis(busy0)),
                (1, Duration::from_millis(busy1)),
            ],
            steal: Duration::from_millis(steal),
        };
        let mut examined = quiet();
        examined.usage = Some((usage(1000, 500, 100, 0), usage(1500, 950, 110, 20)));
        let record = diagnose(&examined);
        assert_eq!(record.findings.len(), 2);
        assert!(
            record.findings[0].sentence.contains("CPU 0 90 %"),
            "{record:?}"
        );
        assert!(record.findings[1].sentence.contains("4.0 %"));
    }
}
