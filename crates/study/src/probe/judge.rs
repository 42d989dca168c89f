//! Judges the system's report by the measurement, level by level.
//!
//! A verdict needs figures that are clearly on one side: if they are missing or lie in between, it is
//! "inconclusive", never "agrees".

mod groups;

use groups::judge_groups;

use super::memory::{NodeLatency, reported_caches};
use super::pairs::Pairs;
use pinwise_format::{count, round_bytes};
use pinwise_record::{
    Agreement, Contradiction, DriftRecord, LadderRecord, LevelName, LevelVerdict,
};
use pinwise_stats::describe::quantile;
use pinwise_topology::{Level, Topology};
use pinwise_wiring::{LevelKind, PairMatrix, Wiring};

/// Memory of another node counts as far if a load takes at least this many times as long.
const MIN_FAR_RATIO: f64 = 1.05;
/// A reported cache size is contradicted if less than this share of it is effective, or more than the
/// inverse.
const MIN_CACHE_SHARE: f64 = 0.5;
/// At most this many groups are named in a sentence.
const MAX_NAMED: usize = 4;

/// Everything that verdicts are based on.
pub(super) struct Case<'a> {
    pub(super) topology: &'a Topology,
    pub(super) pairs: &'a Pairs,
    pub(super) contention: Option<&'a PairMatrix>,
    pub(super) wiring: &'a Wiring,
    pub(super) ladder: Option<&'a LadderRecord>,
    pub(super) nodes: &'a [NodeLatency],
    pub(super) drift: Option<&'a DriftRecord>,
    /// Pairs that changed between the start and the end of measuring, as full sentences.
    pub(super) changed: &'a [String],
    /// Did other programs use the CPUs for some of the time?
    pub(super) is_disturbed: bool,
}

/// A verdict without its level.
struct Opinion {
    verdict: Agreement,
    claim: String,
    measured: String,
    confidence: f64,
    advice: String,
}

impl Opinion {
    fn with_level(self, level: LevelName) -> LevelVerdict {
        LevelVerdict {
            level,
            verdict: self.verdict,
            claim: self.claim,
            alone: None,
            measured: self.measured,
            confidence: self.confidence,
            advice: self.advice,
        }
    }

    /// Makes a verdict inconclusive that was found while the wiring changed.
    fn withdraw_as_unstable(self) -> Self {
        let measured = format!("Before the wiring changed: {}", self.measured);
        Self::cannot_tell(self.claim, measured)
    }

    fn cannot_tell(claim: String, measured: impl Into<String>) -> Self {
        Self {
            verdict: Agreement::CannotTell,
            claim,
            measured: measured.into(),
            confidence: 0.0,
            advice: String::new(),
        }
    }
}

/// A verdict for every level that the system reports or the probes found.
pub(super) fn judge_levels(case: &Case<'_>) -> Vec<LevelVerdict> {
    let judge_wiring = |level, kind| {
        let opinion = judge_groups(case, level, kind);
        match has_moved(case) && opinion.verdict == Agreement::Contradicted {
            true => opinion.withdraw_as_unstable(),
            false => opinion,
        }
    };
    let mut verdicts = vec![
        judge_wiring(Level::Core, LevelKind::Smt).with_level(LevelName::Smt),
        judge_wiring(Level::Llc, LevelKind::Llc).with_level(LevelName::Llc),
        judge_wiring(Level::Package, LevelKind::Package).with_level(LevelName::Package),
    ];
    verdicts.extend(judge_nodes(case).map(|opinion| opinion.with_level(LevelName::Numa)));
    verdicts.extend(
        judge_caches(case)
            .into_iter()
            .map(|opinion| opinion.with_level(LevelName::Cache)),
    );
    verdicts.extend(judge_stacking(case).map(|opinion| opinion.with_level(LevelName::Stacked)));
    verdicts.extend(judge_stability(case).map(|opinion| opinion.with_level(LevelName::Placement)));
    verdicts
}

/// The contradicted verdicts, in the record's form for scripts.
pub(super) fn list_contradictions(verdicts: &[LevelVerdict]) -> Vec<Contradiction> {
    verdicts
        .iter()
        .filter(|verdict| verdict.verdict == Agreement::Contradicted)
        .map(|verdict| Contradiction {
            level: verdict.level.clone(),
            claim: verdict.claim.clone(),
            measured: verdict.measured.clone(),
            confidence: verdict.confidence,
            advice: verdict.advice.clone(),
        })
        .collect()
}

/// The opinion that measurement agrees with a claim of the report.
const fn agree_with_claim(claim: String, measured: String, confidence: f64) -> Opinion {
    Opinion {
        verdict: Agreement::Agrees,
        claim,
        measured,
        confidence,
        advice: String::new(),
    }
}

/// Is memory of other NUMA nodes slower?
fn judge_nodes(case: &Case<'_>) -> Option<Opinion> {
    let reported = case.topology.usable_memory_nodes().len();
    if reported < 2 {
        return None;
    }
    let claim = format!("The system reports {reported} NUMA nodes with memory.");
    let latency = |is_near: bool| -> Vec<f64> {
        let nodes = case.nodes.iter();
        nodes
            .filter(|n| (n.cpu_node == n.memory_node) == is_near)
            .map(|n| n.latency_ns.value)
            .collect()
    };
    let (near, far) = (latency(true), latency(false));
    if near.is_empty() || far.is_empty() {
        return Some(Opinion::cannot_tell(
            claim,
            "Loads from near and far memory were not measured.",
        ));
    }
    let ratio = quantile(&far, 0.5) / quantile(&near, 0.5);
    let measured = format!(
        "A load from another node's memory takes {ratio:.2} times one from the own node's ({:.0} against {:.0} ns).",
        quantile(&far, 0.5),
        quantile(&near, 0.5)
    );
    Some(if ratio >= MIN_FAR_RATIO {
        agree_with_claim(claim, measured, 0.9)
    } else {
        Opinion {
            verdict: Agreement::Contradicted,
            claim,
            measured,
            confidence: 0.8,
            advice: "NUMA placements and memory binding gain nothing here: leave memory alone."
                .to_owned(),
        }
    })
}

/// Are the reported cache sizes effective? What other programs, or other guests of the host, keep in a
/// shared cache is not available. One opinion for all sizes that agree, one for the others, one for
/// caches that were not seen.
fn judge_caches(case: &Case<'_>) -> Vec<Opinion> {
    let plateaus = case.ladder.map_or(&[][..], |ladder| &ladder.plateaus);
    let known = plateaus.iter().filter_map(|plateau| {
        let (effective, reported) = (plateau.effective_bytes?, plateau.reported_bytes?);
        Some(SeenCache {
            level: plateau.level?,
            effective,
            reported,
            latency_ns: plateau.latency_ns,
        })
    });
    let (right, wrong): (Vec<_>, Vec<_>) = known.partition(SeenCache::agrees);
    let seen: Vec<u8> = right
        .iter()
        .chain(&wrong)
        .map(|cache| cache.level)
        .collect();
    let right = (!right.is_empty()).then(|| {
        agree_with_claim(
            SeenCache::describe_reported(&right),
            SeenCache::describe_measured(&right),
            0.8,
        )
    });
    let others = judge_other_sizes(case, &wrong)
        .into_iter()
        .chain(judge_unseen_caches(case, &seen));
    right.into_iter().chain(others).collect()
}

/// Reported caches at whose size the ladder showed no step.
fn judge_unseen_caches(case: &Case<'_>, seen: &[u8]) -> Option<Opinion> {
    let ladder = case.ladder.filter(|ladder| !ladder.plateaus.is_empty())?;
    let reported = reported_caches(case.topology, ladder.cpu);
    let mut unseen: Vec<(u8, u64)> = reported
        .iter()
        .filter(|cache| cache.bytes > 0 && !seen.contains(&cache.level))
        .map(|cache| (cache.level, cache.bytes))
        .collect();
    unseen.sort_unstable();
    unseen.dedup_by_key(|(level, _)| *level);
    let names = |caches: &[(u8, u64)]| {
        let describe = |(level, bytes): &(u8, u64)| format!("L{level} ({})", round_bytes(*bytes));
        caches.iter().map(describe).collect::<Vec<_>>().join(", ")
    };
    let largest = ladder.points.last().map_or(0, |point| point.bytes as u64);
    let (unseen, beyond): (Vec<_>, Vec<_>) =
        unseen.into_iter().partition(|(_, bytes)| *bytes < largest);
    let mut measured: Vec<String> = Vec::new();
    if !unseen.is_empty() {
        measured.push(format!(
            "The kernel claims {}; measurement does not confirm it: loads do not get slower where it would end.",
            names(&unseen)
        ));
    }
    if !beyond.is_empty() {
        measured.push(format!(
            "The kernel claims {}; no more than {} was measured in the time given.",
            names(&beyond),
            round_bytes(largest)
        ));
    }
    let all = [unseen, beyond].concat();
    (!all.is_empty()).then(|| {
        let claim = format!("The kernel claims {}.", names(&all));
        Opinion::cannot_tell(claim, measured.join(" "))
    })
}

/// A reported cache whose effective size was measured, in bytes.
struct SeenCache {
    level: u8,
    effective: u64,
    reported: u64,
    latency_ns: f64,
}

impl SeenCache {
    fn agrees(&self) -> bool {
        let share = self.effective as f64 / self.reported as f64;
        (MIN_CACHE_SHARE..=1.0 / MIN_CACHE_SHARE).contains(&share)
    }

    fn describe_reported(caches: &[Self]) -> String {
        let sizes = caches
            .iter()
            .map(|cache| format!("an L{} of {}", cache.level, round_bytes(cache.reported)));
        let sizes: Vec<String> = sizes.collect();
        format!("The system reports {}.", sizes.join(", "))
    }

    fn describe_measured(caches: &[Self]) -> String {
        let sizes = caches.iter().map(|cache| {
            format!(
                "{} of L{} at {:.1} ns a load",
                round_bytes(cache.effective),
                cache.level,
                cache.latency_ns
            )
        });
        let sizes: Vec<String> = sizes.collect();
        format!(
            "With the current other load, a program sees {}.",
            sizes.join(", ")
        )
    }
}

/// Caches of which much less or more than reported is effective.
fn judge_other_sizes(case: &Case<'_>, caches: &[SeenCache]) -> Option<Opinion> {
    let largest = caches.last()?;
    let claim = SeenCache::describe_reported(caches);
    let measured = SeenCache::describe_measured(caches);
    let advice = match case.is_disturbed {
        true => {
            "Measure again while nothing else runs before you size working sets by it.".to_owned()
        }
        false => format!(
            "Size working sets and blocks by {}.",
            round_bytes(largest.effective)
        ),
    };
    // In a virtual machine, other guests of the host may use the rest.
    if !case.is_disturbed && case.topology.identity.hypervisor.is_none() {
        return Some(Opinion {
            verdict: Agreement::Contradicted,
            claim,
            measured,
            confidence: 0.8,
            advice,
        });
    }
    let why = match caches.iter().all(|cache| cache.effective < cache.reported) {
        true => "Other programs may use the rest.",
        false => "Other programs may have disturbed it, or the report is too small.",
    };
    let measured = format!("{claim} {measured} {why}");
    Some(Opinion {
        advice,
        ..Opinion::cannot_tell(claim, measured)
    })
}

/// Do CPUs take turns on one hardware thread?
fn judge_stacking(case: &Case<'_>) -> Option<Opinion> {
    let pairs = case.pairs.stacked_pairs();
    let (a, b, lost) = *pairs.first()?;
    let names: Vec<String> = pairs
        .iter()
        .take(MAX_NAMED)
        .map(|(a, b, _)| format!("{{{a},{b}}}"))
        .collect();
    Some(Opinion {
        verdict: Agreement::Contradicted,
        claim: format!("The system reports CPUs {a} and {b} as two hardware threads."),
        measured: format!(
            "CPUs {} never ran at the same time: the hypervisor preempted {a} or {b} {}, another program {}. They seem to take turns on one hardware thread.",
            names.join(" "),
            count(lost.stolen, "time"),
            count(lost.switched, "time")
        ),
        confidence: 0.8,
        advice: "Use one CPU of each such pair: threads on both preempt each other for a time slice, and spinning ones waste it."
            .to_owned(),
    })
}

/// The claim that the verdict on stability judges.
pub(super) const STAYS: &str = "Placements assume that the wiring does not change.";

/// What to do if the wiring changes.
pub(super) const fn advise_if_moving(is_virtual: bool) -> &'static str {
    if is_virtual {
        "Do not use core or LLC placements on this VM: its CPUs float over the host's. Ask for pinned vCPUs, or compare placements only within a run of pinwise compare."
    } else {
        "Do not use core or LLC placements here; find out what moves the CPUs."
    }
}

/// Did pairs change while they were measured, or watched?
fn has_moved(case: &Case<'_>) -> bool {
    !case.changed.is_empty() || case.drift.is_some_and(|drift| drift.changes > 0)
}

/// Does the wiring stay the same?
fn judge_stability(case: &Case<'_>) -> Option<Opinion> {
    let advice = advise_if_moving(case.topology.identity.hypervisor.is_some());
    let opinion = |verdict, measured, confidence, advice: &str| Opinion {
        verdict,
        claim: STAYS.to_owned(),
        measured,
        confidence,
        advice: advice.to_owned(),
    };
    if let Some(drift) = case.drift.filter(|drift| drift.changes > 0) {
        return Some(opinion(
            Agreement::Contradicted,
            drift.sentence.clone(),
            if drift.changes > 1 { 0.95 } else { 0.85 },
            advice,
        ));
    }
    if !case.changed.is_empty() {
        return Some(opinion(
            Agreement::Contradicted,
            format!(
                "The wiring changed while it was measured: {}",
                case.changed.join(" ")
            ),
            0.85,
            advice,
        ));
    }
    judge_unchanged(case.drift?).map(|(verdict, measured)| opinion(verdict, measured, 0.95, ""))
}

/// A wiring that may change more often than once in this time is not called stable: an experiment
/// takes as long.
const STABLE_S: f64 = 60.0;

/// What watching shows if nothing changed; `None` if something did.
fn judge_unchanged(drift: &DriftRecord) -> Option<(Agreement, String)> {
    if drift.changes > 0 {
        return None;
    }
    let sentence = &drift.sentence;
    // No change within T bounds the rate by 3 / T.
    Some(match drift.watched_s >= 3.0 * STABLE_S {
        true => (Agreement::Agrees, sentence.clone()),
        false => (
            Agreement::CannotTell,
            format!("{sentence} Watch it for 3 minutes for a bound of a minute: --watch 3m."),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::{LadderPoint, PlateauRecord};

    #[test]
    fn a_short_watch_does_not_confirm_that_the_wiring_stays() {
        let judge = |watched_s, changes| {
            let drift = DriftRecord {
                watched_s,
                pairs: Vec::new(),
                changes,
                median_dwell_s: None,
                longest_dwell_s: watched_s,
                valid_s: None,
                sentence: "It did not change.".to_owned(),
            };
            judge_unchanged(&drift).map(|(verdict, _)| verdict)
        };
        assert_eq!(judge(30.0, 0), Some(Agreement::CannotTell));
        assert_eq!(judge(180.0, 0), Some(Agreement::Agrees));
        assert_eq!(judge(180.0, 1), None);
    }

    #[test]
    fn a_cache_that_the_ladder_does_not_show_is_inconclusive() {
        let text = "l3:1(size=32MB) l2:2(size=1MB) l1d:1(size=48KB) core:1 pu:1";
        let topology = Topology::from_synthetic(text).unwrap();
        let plateau = |level, effective_bytes, reported_bytes| PlateauRecord {
            level,
            latency_ns: 4.0,
            effective_bytes,
            reported_bytes,
        };
        let judge = |largest: usize, plateaus: Vec<PlateauRecord>| -> Vec<(Agreement, String)> {
            let ladder = LadderRecord {
                cpu: 0,
                points: vec![LadderPoint {
                    bytes: largest,
                    ..LadderPoint::default()
                }],
                plateaus,
                hint: None,
            };
            let case = Case {
                topology: &topology,
                pairs: &Pairs::default(),
                contention: None,
                wiring: &Wiring::default(),
                ladder: Some(&ladder),
                nodes: &[],
                drift: None,
                changed: &[],
                is_disturbed: false,
            };
            let opinions = judge_caches(&case).into_iter();
            opinions.map(|o| (o.verdict, o.measured)).collect()
        };
        let (l1, l2) = (Some(48 << 10), Some(1 << 20));
        let inner = [plateau(Some(1), l1, l1), plateau(Some(2), l2, l2)];
        let without_l3 = [&inner[..], &[plateau(None, None, None)]].concat();
        let mut shown = judge(128 << 20, without_l3.clone());
        assert_eq!(shown.len(), 2, "{shown:?}");
        let (verdict, measured) = shown.pop().unwrap();
        assert_eq!(verdict, Agreement::CannotTell);
        let not_seen = "The kernel claims L3 (32 MiB); measurement does not confirm it: ";
        assert!(measured.starts_with(not_seen), "{measured}");
        assert_eq!(shown[0].0, Agreement::Agrees);
        let l3 = Some(32 << 20);
        let outer = plateau(Some(3), l3, l3);
        assert_eq!(judge(128 << 20, [&inner[..], &[outer]].concat()).len(), 1);
        assert!(judge(128 << 20, Vec::new()).is_empty());
        // What is smaller than the cache shows nothing of its end.
        let (_, short) = judge(16 << 20, without_l3).pop().unwrap();
        let not_reached = "The kernel claims L3 (32 MiB); no more than 16 MiB was measured";
        assert!(short.starts_with(not_reached), "{short}");
    }
}
