//! Does this machine have SMT, and can its gain be measured?
//!
//! A stored measurement overrides the report: if they contradict each other, the measured siblings
//! are used. If siblings change, as on a virtual machine whose vCPUs float, no figure has a fixed
//! meaning, and a finding says so.

use crate::probe::{apply_measured_wiring, is_wiring_stable};
use pinwise_record::{Agreement, LevelName, SmtRecord, SmtState, TopologyRecord};
use pinwise_topology::{CpuSet, Level, Topology};

/// What is known about SMT.
#[derive(Debug, Clone, PartialEq)]
pub struct Smt {
    /// For the record.
    pub record: SmtRecord,
    /// Cores with the CPUs that may be used, by report or by measurement; empty if there is nothing
    /// to test.
    pub cores: Vec<CpuSet>,
}

impl Smt {
    /// The last core with several CPUs: the first ones usually serve most
    /// interrupts.
    #[must_use]
    pub fn shared_core(&self) -> Option<&CpuSet> {
        self.cores.iter().rfind(|core| core.len() > 1)
    }
}

/// What the reported topology and an earlier measurement say about SMT.
#[must_use]
pub fn find_smt(topology: &Topology, known: Option<&TopologyRecord>) -> Smt {
    if let Some(known) = known {
        if let Some(sentence) = describe_drift(known) {
            return without_cores(SmtState::Unstable, sentence, SIBLINGS_CHANGE);
        }
        if known
            .contradictions
            .iter()
            .any(|c| c.level == LevelName::Smt)
        {
            return describe_contradiction(topology, known);
        }
    }
    if topology.has_smt() {
        return reported_smt(topology, known);
    }
    let (sentence, advice) = explain_absence(topology, known);
    without_cores(SmtState::Absent, sentence, advice)
}

const SIBLINGS_CHANGE: &str = "The gain from a second CPU depends on where the hypervisor currently runs it: figures are a mixture, and no placement inside this machine changes that.";
const SIBLINGS_MAY_BE_HIDDEN: &str =
    "A hypervisor may hide siblings: check with pinwise topology --measure --watch 3m.";
const SIBLINGS_MAY_MOVE: &str =
    "The siblings are those found when measured; whether they stay was not watched.";

fn without_cores(state: SmtState, sentence: String, advice: &str) -> Smt {
    Smt {
        record: SmtRecord {
            state,
            sentence,
            advice: advice.to_owned(),
        },
        cores: Vec::new(),
    }
}

fn reported_smt(topology: &Topology, known: Option<&TopologyRecord>) -> Smt {
    let cores = topology.allowed_units(Level::Core);
    let shared: Vec<&CpuSet> = cores.iter().filter(|core| core.len() > 1).collect();
    let most = shared.iter().map(|core| core.len()).max().unwrap_or(0);
    let verdicts = known.and_then(|known| Some(&known.measured.as_ref()?.verdicts));
    let is_confirmed = verdicts.is_some_and(|verdicts| {
        verdicts
            .iter()
            .any(|v| v.level == LevelName::Smt && v.verdict == Agreement::Agrees)
    });
    let basis = if is_confirmed {
        "as reported and as measured"
    } else {
        "as reported"
    };
    let sentence = if shared.len() == cores.len() {
        format!("Every core has {most} CPUs, {basis}.")
    } else {
        let (some, all) = (shared.len(), cores.len());
        format!("{some} of {all} cores have {most} CPUs, {basis}.")
    };
    Smt {
        record: SmtRecord {
            state: SmtState::Reported,
            sentence,
            advice: String::new(),
        },
        cores,
    }
}

/// A measurement contradicts the reported siblings: the measured ones are used.
fn describe_contradiction(topology: &Topology, known: &TopologyRecord) -> Smt {
    let machine = apply_measured_wiring(topology, known);
    let contradiction = known
        .contradictions
        .iter()
        .find(|c| c.level == LevelName::Smt);
    let clause = contradiction.map_or_else(String::new, |c| format!("{} {}", c.claim, c.measured));
    if !machine.has_smt() {
        let sentence = format!("Measurement found no two CPUs that share a core. {clause}");
        let advice = "Avoid one-per-core and other placements that depend on siblings here.";
        return without_cores(SmtState::Absent, sentence, advice);
    }
    let advice = if is_wiring_stable(topology, known) {
        "The measured siblings are used here."
    } else {
        SIBLINGS_MAY_MOVE
    };
    Smt {
        record: SmtRecord {
            state: SmtState::Measured,
            sentence: clause,
            advice: advice.to_owned(),
        },
        cores: machine.allowed_units(Level::Core),
    }
}

/// A sentence on CPUs that shared a core, or a hardware thread, at some times but not at others.
fn describe_drift(known: &TopologyRecord) -> Option<String> {
    let drift = known.measured.as_ref()?.drift.as_ref()?;
    let is_near = |kind: &LevelName| matches!(kind, LevelName::Smt | LevelName::Stacked);
    let unstable = drift.pairs.iter().find(|pair| {
        let near = pair.states.iter().filter(|state| is_near(&state.kind));
        pair.states.len() > 1 && (1..pair.states.len()).contains(&near.count())
    })?;
    let share: f64 = unstable
        .states
        .iter()
        .filter(|state| is_near(&state.kind))
        .map(|state| state.share)
        .sum();
    Some(format!(
        "SMT siblings change: CPUs {} and {} shared a core, or a hardware thread, in {:.0} % of {:.0} s that they were watched.",
        unstable.a,
        unstable.b,
        100.0 * share,
        drift.watched_s
    ))
}

/// Why no reported siblings may be used, as a sentence and advice.
fn explain_absence(topology: &Topology, known: Option<&TopologyRecord>) -> (String, &'static str) {
    if topology.cores.iter().any(|core| core.len() > 1) {
        let by = topology.restrictions.first();
        let by = by.map_or("a restriction", |restriction| restriction.by.as_str());
        let sentence = format!(
            "Cores have several CPUs here, but this process may use one of each: the {by} allows only {}.",
            topology.allowed
        );
        return (sentence, "Widen it to measure what the others add.");
    }
    let offline = topology.cpus.iter().filter(|cpu| !cpu.online).count();
    if offline > 0 {
        let sentence = format!(
            "Every online core has one CPU; {offline} CPUs are offline, perhaps including the siblings."
        );
        return (
            sentence,
            "/sys/devices/system/cpu/smt/control says whether SMT is switched off.",
        );
    }
    match (&topology.identity.hypervisor, known) {
        (Some(hypervisor), None) => (
            format!("This virtual machine ({hypervisor}) reports one CPU per core: no SMT."),
            SIBLINGS_MAY_BE_HIDDEN,
        ),
        (Some(hypervisor), Some(_)) => (
            format!(
                "This virtual machine ({hypervisor}) reports one CPU per core, and measurement found no siblings either."
            ),
            "",
        ),
        (None, _) => (
            "Every core has one CPU: this machine has no SMT, or it is switched off in firmware."
                .to_owned(),
            "",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::{
        Contradiction, DriftPair, DriftRecord, DriftState, Measured, MeasuredLevel,
    };

    fn machine(text: &str) -> Topology {
        Topology::from_synthetic(text).unwrap()
    }

    fn known_record(
        topology: &Topology,
        measured: Measured,
        is_contradicted: bool,
    ) -> TopologyRecord {
        let mut record = TopologyRecord::new(topology, &[]);
        record.measured = Some(Box::new(measured));
        if is_contradicted {
            record.contradictions.push(Contradiction {
                level: LevelName::Smt,
                claim: "The system says so.".to_owned(),
                measured: "Probes say otherwise.".to_owned(),
                confidence: 0.9,
                advice: String::new(),
            });
        }
        record
    }

    #[test]
    fn siblings_are_as_reported_without_a_measurement() {
        let found = find_smt(&machine("core:2 pu:2"), None);
        assert_eq!(found.record.state, SmtState::Reported);
        assert_eq!(found.shared_core().unwrap().to_string(), "2-3");
        assert_eq!(found.record.sentence, "Every core has 2 CPUs, as reported.");
    }

    #[test]
    fn absence_of_smt_is_explained() {
        let none = find_smt(&machine("core:4 pu:1"), None);
        assert_eq!(none.record.state, SmtState::Absent);
        assert!(none.shared_core().is_none());
        let mut cut = machine("core:2 pu:2");
        cut.allowed = CpuSet::parse_list("0,2").unwrap();
        let none = find_smt(&cut, None);
        assert!(none.record.sentence.contains("may use one of each"));
        let mut guest = machine("core:2 pu:1");
        guest.identity.hypervisor = Some("kvm".to_owned());
        assert_eq!(find_smt(&guest, None).record.advice, SIBLINGS_MAY_BE_HIDDEN);
    }

    #[test]
    fn measured_siblings_replace_the_report() {
        let topology = machine("core:4 pu:1");
        let measured = Measured {
            levels: vec![MeasuredLevel {
                kind: LevelName::Smt,
                groups: vec!["0,2".to_owned(), "1,3".to_owned()],
                ..MeasuredLevel::default()
            }],
            ..Measured::default()
        };
        let found = find_smt(&topology, Some(&known_record(&topology, measured, true)));
        assert_eq!(found.record.state, SmtState::Measured);
        assert_eq!(found.shared_core().unwrap().to_string(), "1,3");
    }

    #[test]
    fn siblings_that_measurement_refutes_are_not_used() {
        let topology = machine("core:2 pu:2");
        let found = find_smt(
            &topology,
            Some(&known_record(&topology, Measured::default(), true)),
        );
        assert_eq!(found.record.state, SmtState::Absent);
        assert!(
            found
                .record
                .sentence
                .contains("no two CPUs that share a core")
        );
    }

    #[test]
    fn siblings_that_change_make_smt_unstable() {
        let topology = machine("core:2 pu:1");
        let state = |kind, share: f64| DriftState {
            kind,
            share,
            ..DriftState::default()
        };
        let measured = Measured {
            drift: Some(DriftRecord {
                watched_s: 60.0,
                pairs: vec![DriftPair {
                    a: 0,
                    b: 1,
                    states: vec![
                        state(LevelName::Llc, 0.7),
                        state(LevelName::Smt, 0.25),
                        state(LevelName::Stacked, 0.05),
                    ],
                    ..DriftPair::default()
                }],
                ..DriftRecord::default()
            }),
            ..Measured::default()
        };
        let found = find_smt(&topology, Some(&known_record(&topology, measured, false)));
        assert_eq!(found.record.state, SmtState::Unstable);
        assert!(
            found.record.sentence.contains("in 30 % of 60 s"),
            "{found:?}"
        );
    }
}
