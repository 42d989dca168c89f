//! Chooses the placements to try in the light of an earlier measurement.
//!
//! `compare` chooses its arms by the reported topology. If a measurement contradicted one of its
//! levels, arms that depend on that level use the measured groups, or are left out if the wiring
//! changes.

use pinwise_placement::{Placement, Wish, default_placements};
use pinwise_record::{Contradiction, LevelName, TopologyRecord};
use pinwise_topology::{CpuSet, Level, Topology};

/// Placements to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The placements, `os-default` first.
    pub placements: Vec<Placement>,
    /// Why they differ from those for the reported topology, as full sentences.
    pub notes: Vec<String>,
}

/// The default placements for a program of this many threads on a machine that was measured before,
/// with the result `known`.
#[must_use]
pub fn advise_placements(
    topology: &Topology,
    threads: Option<usize>,
    known: &TopologyRecord,
) -> Advice {
    let reported = default_placements(topology, threads);
    let when = known.started.as_str();
    let is_moving = |c: &Contradiction| c.level == LevelName::Placement;
    if known.contradictions.iter().any(is_moving) {
        let (kept, dropped): (Vec<Placement>, Vec<Placement>) = reported
            .into_iter()
            .partition(|placement| !depends_on_wiring(placement));
        let notes = note_dropped(&dropped, when);
        return Advice {
            placements: kept,
            notes,
        };
    }
    let as_reported = |note: Option<&str>| Advice {
        placements: reported.clone(),
        notes: note.iter().map(|note| (*note).to_owned()).collect(),
    };
    let measured = apply_measured_wiring(topology, known);
    if measured == *topology {
        return as_reported(None);
    }
    if !is_wiring_stable(topology, known) {
        return as_reported(Some(NOT_WATCHED));
    }
    let mut notes = Vec::new();
    let placements: Vec<Placement> = default_placements(&measured, threads)
        .into_iter()
        .map(|placement| name_placement(&placement, topology, &measured, when, &mut notes))
        .collect();
    let is_all = |placement: &Placement| {
        placement
            .realise(topology)
            .is_ok_and(|place| place.cpus == topology.allowed)
    };
    if placements.iter().all(is_all) {
        return as_reported(Some(NO_DIFFERENCE));
    }
    Advice { placements, notes }
}

const NOT_WATCHED: &str = "Measurement contradicted the reported topology of this virtual machine, but whether that lasts was not watched: placements are tried as reported (check with pinwise topology --measure --watch 3m).";
const NO_DIFFERENCE: &str =
    "By measurement no placement differs from os-default here; the reported ones are tried.";

/// Does the measured wiring stay valid? The CPUs of a virtual machine may float, so only if they were
/// watched and did not.
#[must_use]
pub fn is_wiring_stable(topology: &Topology, known: &TopologyRecord) -> bool {
    let drift = known.measured.as_ref().and_then(|m| m.drift.as_ref());
    topology.identity.hypervisor.is_none() || drift.is_some_and(|drift| drift.changes == 0)
}

/// Does the placement depend on which CPUs share a core, cache, node or package?
const fn depends_on_wiring(placement: &Placement) -> bool {
    matches!(
        placement.wish,
        Wish::OnePerCore
            | Wish::OnePerLlc
            | Wish::OnePerNuma
            | Wish::Balanced
            | Wish::One(Level::Llc | Level::Numa | Level::Package, _)
    )
}

fn note_dropped(dropped: &[Placement], when: &str) -> Vec<String> {
    if dropped.is_empty() {
        return Vec::new();
    }
    let names: Vec<String> = dropped.iter().map(Placement::to_string).collect();
    vec![format!(
        "Left out: {}, because the wiring of this machine changes (measured {when}).",
        names.join(", ")
    )]
}

/// Replaces the units of every level that was contradicted by the measured ones.
#[must_use]
pub fn apply_measured_wiring(topology: &Topology, known: &TopologyRecord) -> Topology {
    let Some(measured) = &known.measured else {
        return topology.clone();
    };
    let levels = [
        (LevelName::Smt, Level::Core),
        (LevelName::Llc, Level::Llc),
        (LevelName::Package, Level::Package),
    ];
    let contradicted = levels
        .into_iter()
        .filter(|(name, _)| known.contradictions.iter().any(|c| c.level == *name));
    contradicted.fold(topology.clone(), |machine, (kind, level)| {
        let found = measured.levels.iter().find(|l| l.kind == kind);
        let lists = found.map_or(&[][..], |level| &level.groups);
        let groups: Vec<CpuSet> = lists
            .iter()
            .filter_map(|g| CpuSet::parse_list(g).ok())
            .collect();
        if groups.is_empty() && level != Level::Core {
            // No boundary was found: all CPUs are in one unit.
            return machine.with_level(level, std::slice::from_ref(&machine.online));
        }
        machine.with_level(level, &groups)
    })
}

/// The placement by the list of its measured CPUs if the reported topology gives others, with a note.
fn name_placement(
    placement: &Placement,
    reported: &Topology,
    measured: &Topology,
    when: &str,
    notes: &mut Vec<String>,
) -> Placement {
    let Ok(wanted) = placement.realise(measured) else {
        return placement.clone();
    };
    let is_same = placement
        .realise(reported)
        .is_ok_and(|given| given.cpus == wanted.cpus);
    if is_same {
        return placement.clone();
    }
    let by_list = Placement::new(Wish::Cpus(wanted.cpus));
    notes.push(format!(
        "{placement} is {by_list} by measurement of {when}; the system reports otherwise."
    ));
    by_list
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::{Measured, MeasuredLevel};

    fn known_record(topology: &Topology, level: LevelName, groups: &[&str]) -> TopologyRecord {
        let mut record = TopologyRecord::new(topology, &[]);
        record.contradictions.push(Contradiction {
            level: level.clone(),
            claim: String::new(),
            measured: String::new(),
            confidence: 0.9,
            advice: String::new(),
        });
        record.measured = Some(Box::new(Measured {
            levels: vec![MeasuredLevel {
                kind: level,
                groups: groups.iter().map(|g| (*g).to_owned()).collect(),
                ..MeasuredLevel::default()
            }],
            ..Measured::default()
        }));
        record
    }

    fn names(advice: &Advice) -> Vec<String> {
        advice.placements.iter().map(Placement::to_string).collect()
    }

    #[test]
    fn placements_use_measured_siblings_that_are_not_reported() {
        let topology = Topology::from_synthetic("l3:1 core:4 pu:1").unwrap();
        let advice = advise_placements(
            &topology,
            Some(2),
            &known_record(&topology, LevelName::Smt, &["0-1", "2-3"]),
        );
        assert!(names(&advice).contains(&"cpu:0,2".to_owned()), "{advice:?}");
        assert!(
            advice
                .notes
                .iter()
                .any(|note| note.starts_with("one-per-core is cpu:0,2"))
        );
    }

    #[test]
    fn a_map_of_a_virtual_machine_is_used_only_if_it_was_watched() {
        let mut topology = Topology::from_synthetic("l3:1 core:4 pu:1").unwrap();
        topology.identity.hypervisor = Some("kvm".to_owned());
        let mut record = known_record(&topology, LevelName::Smt, &["0-1", "2-3"]);
        let advice = advise_placements(&topology, Some(2), &record);
        assert_eq!(advice.placements, default_placements(&topology, Some(2)));
        assert_eq!(advice.notes, [NOT_WATCHED]);
        record.measured.as_mut().unwrap().drift = Some(pinwise_record::DriftRecord::default());
        let advice = advise_placements(&topology, Some(2), &record);
        assert!(names(&advice).contains(&"cpu:0,2".to_owned()), "{advice:?}");
    }

    #[test]
    fn reported_placements_are_tried_if_measured_ones_do_not_differ() {
        let topology = Topology::from_synthetic("l3:1 core:2 pu:1").unwrap();
        let advice = advise_placements(
            &topology,
            Some(1),
            &known_record(&topology, LevelName::Smt, &["0-1"]),
        );
        assert_eq!(advice.placements, default_placements(&topology, Some(1)));
        assert_eq!(advice.notes, [NO_DIFFERENCE]);
    }

    #[test]
    fn placements_that_depend_on_wiring_are_left_out_if_cpus_float() {
        let topology = Topology::from_synthetic("l3:2 core:2 pu:1").unwrap();
        let plain = default_placements(&topology, Some(2));
        let advice = advise_placements(
            &topology,
            Some(2),
            &known_record(&topology, LevelName::Placement, &[]),
        );
        assert!(plain.iter().any(depends_on_wiring));
        assert!(!advice.placements.iter().any(depends_on_wiring));
        assert!(advice.notes[0].contains("one-llc"), "{advice:?}");
    }

    #[test]
    fn a_confirmed_report_gives_the_default_placements() {
        let topology = Topology::from_synthetic("l3:2 core:2 pu:1").unwrap();
        let record = TopologyRecord::new(&topology, &[]);
        let advice = advise_placements(&topology, Some(2), &record);
        assert_eq!(advice.placements, default_placements(&topology, Some(2)));
        assert_eq!(advice.notes, Vec::<String>::new());
    }
}
