//! Judges how far a map can be trusted, given earlier maps of the same boot.
//!
//! The CPUs of a virtual machine may float over the host's. Then each map is right only for its
//! moment, and five maps of six that contradict the report prove no more than the one that agrees.
//! So if maps of one boot disagree on a level, neither the report nor the newest map is trusted.

use pinwise_format::count;
use pinwise_record::{Agreement, LevelName, LevelVerdict, Measured, MeasuredLevel, TopologyRecord};

use super::judge::{STAYS, advise_if_moving, list_contradictions};

/// Levels that divide the CPUs.
static LEVELS: [LevelName; 3] = [LevelName::Smt, LevelName::Llc, LevelName::Package];
/// Confidence that the wiring changes if two maps differ: one of them may have been disturbed.
const CONFIDENCE_OF_TWO: f64 = 0.85;
/// Confidence if more maps differ.
const CONFIDENCE_OF_MORE: f64 = 0.95;

/// What a single map says about a level.
#[derive(Debug, PartialEq, Eq)]
enum MapVerdict<'a> {
    /// The report is right.
    AsReported,
    /// These groups instead, or none.
    Otherwise(&'a [String]),
}

/// Judges a new map again in the light of earlier ones (newest first) of the same boot, with the same
/// CPUs and report.
pub fn judge_with_earlier(record: &mut TopologyRecord, earlier: &[TopologyRecord]) {
    let Some(mut measured) = record.measured.take() else {
        return;
    };
    let maps: Vec<&Measured> = earlier
        .iter()
        .filter_map(|map| map.measured.as_deref())
        .collect();
    let unstable: Vec<(&LevelName, String)> = LEVELS
        .iter()
        .filter_map(|level| Some((level, describe_disagreement(level, &measured, &maps)?)))
        .collect();
    for (level, sentence) in &unstable {
        for verdict in measured.verdicts.iter_mut().filter(|v| v.level == **level) {
            withdraw(verdict, sentence);
        }
    }
    let is_virtual = record.machine.hypervisor.is_some();
    match explain_changes(&unstable, earlier) {
        Some((sentence, confidence)) => {
            add_moving_verdict(&mut measured.verdicts, sentence, confidence, is_virtual);
        }
        None => measured.notes.extend(describe_agreement(&measured, &maps)),
    }
    record.contradictions = list_contradictions(&measured.verdicts);
    measured.answer = measured.answer_sentence(is_virtual);
    record.measured = Some(measured);
}

/// The map's own verdict on a level; `None` if it could not judge it.
fn read_verdict<'a>(map: &'a Measured, level: &LevelName) -> Option<MapVerdict<'a>> {
    let verdict = map.verdicts.iter().find(|v| v.level == *level)?;
    match verdict.alone.unwrap_or(verdict.verdict) {
        Agreement::Agrees => Some(MapVerdict::AsReported),
        Agreement::Contradicted => {
            let measured = map.levels.iter().find(|measured| measured.kind == *level);
            let groups = measured.map_or(&[][..], |measured: &MeasuredLevel| &measured.groups);
            Some(MapVerdict::Otherwise(groups))
        }
        Agreement::CannotTell => None,
    }
}

/// How the maps disagree on a level; `None` if they do not.
fn describe_disagreement(
    level: &LevelName,
    newest: &Measured,
    earlier: &[&Measured],
) -> Option<String> {
    let maps = std::iter::once(newest).chain(earlier.iter().copied());
    let verdicts: Vec<MapVerdict<'_>> = maps.filter_map(|map| read_verdict(map, level)).collect();
    let first = verdicts.first()?;
    if verdicts.iter().all(|verdict| verdict == first) {
        return None;
    }
    let agree = verdicts
        .iter()
        .filter(|verdict| **verdict == MapVerdict::AsReported)
        .count();
    let counts = match (agree, verdicts.len() - agree) {
        (0, others) => format!("all {others} contradict the report, but not in the same way"),
        (1, 1) => "1 agrees with the report and 1 contradicts it".to_owned(),
        (1, others) => format!("1 agrees with the report and {others} contradict it"),
        (some, 1) => format!("{some} agree with the report and 1 contradicts it"),
        (some, others) => format!("{some} agree with the report and {others} contradict it"),
    };
    Some(format!(
        "Of {} of this boot {counts}: trust neither the report nor this map.",
        count(verdicts.len(), "map")
    ))
}

/// Makes a verdict inconclusive, with the reason in front.
fn withdraw(verdict: &mut LevelVerdict, sentence: &str) {
    verdict.alone = Some(verdict.verdict);
    verdict.verdict = Agreement::CannotTell;
    verdict.measured = format!("{sentence} This one: {}", verdict.measured);
    verdict.confidence = 0.0;
    verdict.advice = String::new();
}

/// A sentence on why the wiring is known to change, with its confidence; `None` if it is not known
/// to change.
fn explain_changes(
    unstable: &[(&LevelName, String)],
    earlier: &[TopologyRecord],
) -> Option<(String, f64)> {
    if !unstable.is_empty() {
        let levels: Vec<&str> = unstable.iter().map(|(level, _)| level.as_str()).collect();
        let confidence = if earlier.len() > 1 {
            CONFIDENCE_OF_MORE
        } else {
            CONFIDENCE_OF_TWO
        };
        let sentence = format!(
            "{} of this boot differ ({}): the wiring changes, or cannot be measured here.",
            count(earlier.len() + 1, "map"),
            levels.join(", ")
        );
        return Some((sentence, confidence));
    }
    let (map, verdict) = earlier.iter().find_map(|map| {
        // Conclusions that a map took from an earlier one do not count.
        let is_moving = |v: &&LevelVerdict| {
            v.level == LevelName::Placement
                && v.verdict == Agreement::Contradicted
                && v.alone.is_none()
        };
        let mut verdicts = map.measured.iter().flat_map(|measured| &measured.verdicts);
        Some((map, verdicts.find(is_moving)?))
    })?;
    let sentence = format!(
        "The map of {} in this boot saw it change. {}",
        map.started, verdict.measured
    );
    Some((sentence, verdict.confidence))
}

/// Adds the verdict that the wiring changes, unless this map observed that itself.
fn add_moving_verdict(
    verdicts: &mut Vec<LevelVerdict>,
    sentence: String,
    confidence: f64,
    is_virtual: bool,
) {
    let own = verdicts
        .iter()
        .position(|v| v.level == LevelName::Placement);
    if own.is_some_and(|index| verdicts[index].verdict == Agreement::Contradicted) {
        return;
    }
    let alone = own.map_or(Agreement::CannotTell, |index| {
        verdicts.remove(index).verdict
    });
    verdicts.push(LevelVerdict {
        level: LevelName::Placement,
        verdict: Agreement::Contradicted,
        alone: Some(alone),
        claim: STAYS.to_owned(),
        measured: sentence,
        confidence,
        advice: advise_if_moving(is_virtual).to_owned(),
    });
}

/// A note on maps that do not disagree: they agree, or some could not judge a level.
fn describe_agreement(newest: &Measured, earlier: &[&Measured]) -> Option<String> {
    let maps = || std::iter::once(newest).chain(earlier.iter().copied());
    let mixed = LEVELS.iter().find_map(|level| {
        let judging = maps().filter(|map| map.verdicts.iter().any(|v| v.level == *level));
        let (sure, open): (Vec<_>, Vec<_>) =
            judging.partition(|map| read_verdict(map, level).is_some());
        let is_mixed = !sure.is_empty() && !open.is_empty();
        is_mixed.then(|| {
            format!(
                "Of {} of this boot {} could judge the {}, the others could not: the finding may hold only at times.",
                count(sure.len() + open.len(), "map"),
                sure.len(),
                level.noun()
            )
        })
    });
    if mixed.is_some() {
        return mixed;
    }
    let is_decisive = |map: &&&Measured| {
        LEVELS
            .iter()
            .any(|level| read_verdict(map, level).is_some())
    };
    match earlier.iter().filter(is_decisive).count() {
        0 => None,
        1 => Some("An earlier map of this boot agrees on every level.".to_owned()),
        maps => Some(format!(
            "{maps} earlier maps of this boot agree on every level."
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_topology::Topology;

    /// A map with this verdict on the LLC and these measured groups.
    fn map(verdict: Agreement, groups: &[&str]) -> TopologyRecord {
        let topology = Topology::from_synthetic("l3:1 core:4 pu:1").unwrap();
        let mut record = TopologyRecord::new(&topology, &[]);
        record.machine.hypervisor = Some("kvm".to_owned());
        let verdicts = vec![LevelVerdict {
            level: LevelName::Llc,
            verdict,
            alone: None,
            claim: "One.".to_owned(),
            measured: "Seen.".to_owned(),
            confidence: 0.9,
            advice: String::new(),
        }];
        record.contradictions = list_contradictions(&verdicts);
        record.measured = Some(Box::new(Measured {
            verdicts,
            levels: vec![MeasuredLevel {
                kind: LevelName::Llc,
                groups: groups.iter().map(|g| (*g).to_owned()).collect(),
                ..MeasuredLevel::default()
            }],
            ..Measured::default()
        }));
        record
    }

    /// The sentence and the contradicted levels of the newest map after consulting earlier ones.
    fn consult_earlier(
        mut newest: TopologyRecord,
        earlier: &[TopologyRecord],
    ) -> (String, Vec<LevelName>) {
        judge_with_earlier(&mut newest, earlier);
        let levels = newest.contradictions.iter().map(|c| c.level.clone());
        let levels = levels.collect();
        let measured = newest.measured.unwrap();
        (measured.verdicts[0].measured.clone(), levels)
    }

    const HALVES: [&str; 2] = ["0-1", "2-3"];

    #[test]
    fn no_map_is_trusted_if_one_agrees_with_the_report_and_five_contradict_it() {
        let against = map(Agreement::Contradicted, &HALVES);
        let mut earlier = vec![against.clone(); 4];
        earlier.push(map(Agreement::Agrees, &[]));
        let (listed, contradicted) = consult_earlier(against, &earlier);
        assert!(
            listed.starts_with(
                "Of 6 maps of this boot 1 agrees with the report and 5 contradict it: trust neither"
            ),
            "{listed}"
        );
        assert_eq!(contradicted, [LevelName::Placement]);
    }

    #[test]
    fn maps_that_contradict_differently_are_unstable_too() {
        let others = map(Agreement::Contradicted, &["0,2", "1,3"]);
        let (listed, contradicted) =
            consult_earlier(map(Agreement::Contradicted, &HALVES), &[others]);
        assert!(
            listed.contains("all 2 contradict the report, but not in the same way"),
            "{listed}"
        );
        assert_eq!(contradicted, [LevelName::Placement]);
    }

    #[test]
    fn maps_that_cannot_judge_a_level_are_counted() {
        let note = |earlier: &[TopologyRecord]| {
            let mut record = map(Agreement::Agrees, &[]);
            judge_with_earlier(&mut record, earlier);
            record.measured.unwrap().notes.concat()
        };
        let [sure, open] = [Agreement::Agrees, Agreement::CannotTell].map(|v| map(v, &[]));
        assert_eq!(
            note(&[open.clone(), sure.clone(), open]),
            "Of 4 maps of this boot 2 could judge the last-level caches, the others could not: the finding may hold only at times."
        );
        assert_eq!(
            note(&[sure.clone(), sure]),
            "2 earlier maps of this boot agree on every level."
        );
    }

    #[test]
    fn maps_that_agree_or_cannot_tell_change_nothing() {
        let newest = map(Agreement::Contradicted, &HALVES);
        let earlier = [newest.clone(), map(Agreement::CannotTell, &[])];
        let (listed, contradicted) = consult_earlier(newest.clone(), &earlier);
        assert_eq!((listed.as_str(), contradicted.len()), ("Seen.", 1));
        assert_eq!(consult_earlier(newest, &[]).1, [LevelName::Llc]);
    }

    #[test]
    fn a_change_that_an_earlier_map_observed_counts() {
        let mut moving = map(Agreement::Agrees, &[]);
        let verdicts = &mut moving.measured.as_mut().unwrap().verdicts;
        verdicts.push(LevelVerdict {
            level: LevelName::Placement,
            verdict: Agreement::Contradicted,
            ..verdicts[0].clone()
        });
        let mut next = map(Agreement::Agrees, &[]);
        judge_with_earlier(&mut next, std::slice::from_ref(&moving));
        assert_eq!(next.contradictions[0].level, LevelName::Placement);
        // It is taken from the map that observed it, and only once.
        let mut last = map(Agreement::Agrees, &[]);
        judge_with_earlier(&mut last, &[next.clone(), moving]);
        let sentence = &last.contradictions[0].measured;
        assert_eq!(sentence.matches("The map of").count(), 1, "{sentence}");
        assert_eq!(consult_earlier(map(Agreement::Agrees, &[]), &[next]).1, []);
    }
}
