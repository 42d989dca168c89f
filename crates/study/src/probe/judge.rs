//! The system's report against what was measured, level by level.
//!
//! Pure. A verdict needs figures on both sides of the question: if they are missing or lie in
//! between, it is "inconclusive", never "agrees".

mod groups;

use groups::groups;

use super::memory::{NodeLatency, reported_caches};
use super::pairs::Pairs;
use pinwise_format::{count, round_bytes};
use pinwise_record::{
    Agreement, Contradiction, DriftRecord, LadderRecord, LevelName, LevelVerdict,
};
use pinwise_stats::describe::quantile;
use pinwise_topology::{Level, Topology};
use pinwise_wiring::{LevelKind, PairMatrix, Wiring};

/// A far node's memory takes at least this many times as long as a near one's.
const FAR_NODE: f64 = 1.05;
/// A cache is contradicted if a program sees less than this share of it, or more than its inverse.
const CACHE_SHARE: f64 = 0.5;
/// Groups that are named in a sentence before "and so on".
const NAMED: usize = 4;

/// Everything that verdicts rest on.
pub(super) struct Case<'a> {
    pub(super) topology: &'a Topology,
    pub(super) pairs: &'a Pairs,
    pub(super) contention: Option<&'a PairMatrix>,
    pub(super) wiring: &'a Wiring,
    pub(super) ladder: Option<&'a LadderRecord>,
    pub(super) nodes: &'a [NodeLatency],
    pub(super) drift: Option<&'a DriftRecord>,
    /// What changed between the start and the end of measuring.
    pub(super) changed: &'a [String],
    /// Others used the CPUs for some of the time.
    pub(super) is_disturbed: bool,
}

/// What one verdict says, before it has a level.
struct Opinion {
    verdict: Agreement,
    claim: String,
    measured: String,
    confidence: f64,
    advice: String,
}

impl Opinion {
    fn at(self, level: LevelName) -> LevelVerdict {
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

    /// Results found while the wiring changed prove nothing.
    fn weaken_as_unstable(self) -> Self {
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
pub(super) fn verdicts(case: &Case<'_>) -> Vec<LevelVerdict> {
    let wired = |level, kind| {
        let opinion = groups(case, level, kind);
        match has_moved(case) && opinion.verdict == Agreement::Contradicted {
            true => opinion.weaken_as_unstable(),
            false => opinion,
        }
    };
    let mut verdicts = vec![
        wired(Level::Core, LevelKind::Smt).at(LevelName::Smt),
        wired(Level::Llc, LevelKind::Llc).at(LevelName::Llc),
        wired(Level::Package, LevelKind::Package).at(LevelName::Package),
    ];
    verdicts.extend(nodes(case).map(|opinion| opinion.at(LevelName::Numa)));
    verdicts.extend(
        caches(case)
            .into_iter()
            .map(|opinion| opinion.at(LevelName::Cache)),
    );
    verdicts.extend(judge_stacking(case).map(|opinion| opinion.at(LevelName::Stacked)));
    verdicts.extend(placement(case).map(|opinion| opinion.at(LevelName::Placement)));
    verdicts
}

/// The contradicted ones, as scripts read them.
pub(super) fn contradictions(verdicts: &[LevelVerdict]) -> Vec<Contradiction> {
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

const fn agrees(claim: String, measured: String, confidence: f64) -> Opinion {
    Opinion {
        verdict: Agreement::Agrees,
        claim,
        measured,
        confidence,
        advice: String::new(),
    }
}

/// Are far nodes far?
fn nodes(case: &Case<'_>) -> Option<Opinion> {
    let reported = case.topology.usable_memory_nodes().len();
    if reported < 2 {
        return None;
    }
    let claim = format!("The system reports {reported} NUMA nodes with memory.");
    let latency = |is_near: bool| -> Vec<f64> {
        let chosen = case.nodes.iter();
        chosen
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
    Some(if ratio >= FAR_NODE {
        agrees(claim, measured, 0.9)
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

/// Sizes of caches as a program sees them now: this excludes what others keep in a shared cache,
/// and in the host's. One opinion for all that agree, one for the others.
fn caches(case: &Case<'_>) -> Vec<Opinion> {
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
        agrees(
            SeenCache::claim(&right),
            SeenCache::measured_sizes(&right),
            0.8,
        )
    });
    let open = other_sizes(case, &wrong)
        .into_iter()
        .chain(unseen_caches(case, &seen));
    right.into_iter().chain(open).collect()
}

/// Reported caches whose end the ladder did not show.
fn unseen_caches(case: &Case<'_>, seen: &[u8]) -> Option<Opinion> {
    let ladder = case.ladder.filter(|ladder| !ladder.plateaus.is_empty())?;
    let reported = reported_caches(case.topology, ladder.cpu);
    let mut unseen: Vec<(u8, u64)> = reported
        .iter()
        .filter(|cache| cache.bytes > 0 && !seen.contains(&cache.level))
        .map(|cache| (cache.level, cache.bytes))
        .collect();
    unseen.sort_unstable();
    unseen.dedup_by_key(|(level, _)| *level);
    let named = |(level, bytes): &(u8, u64)| format!("L{level} ({})", round_bytes(*bytes));
    let named: Vec<String> = unseen.iter().map(named).collect();
    (!named.is_empty()).then(|| {
        let named = named.join(", ");
        let claim = format!("The kernel claims {named}.");
        let measured = format!(
            "The kernel claims {named}; measurement does not confirm it: loads do not get slower where it would end."
        );
        Opinion::cannot_tell(claim, measured)
    })
}

/// A cache that the system reports and a program has seen.
struct SeenCache {
    level: u8,
    effective: u64,
    reported: u64,
    latency_ns: f64,
}

impl SeenCache {
    fn agrees(&self) -> bool {
        let share = self.effective as f64 / self.reported as f64;
        (CACHE_SHARE..=1.0 / CACHE_SHARE).contains(&share)
    }

    fn claim(caches: &[Self]) -> String {
        let sizes = caches
            .iter()
            .map(|cache| format!("an L{} of {}", cache.level, round_bytes(cache.reported)));
        let sizes: Vec<String> = sizes.collect();
        format!("The system reports {}.", sizes.join(", "))
    }

    fn measured_sizes(caches: &[Self]) -> String {
        let seen = caches.iter().map(|cache| {
            format!(
                "{} of L{} at {:.1} ns a load",
                round_bytes(cache.effective),
                cache.level,
                cache.latency_ns
            )
        });
        let seen: Vec<String> = seen.collect();
        format!(
            "With the current other load, a program sees {}.",
            seen.join(", ")
        )
    }
}

/// The caches for which a program sees much less or more than is reported.
fn other_sizes(case: &Case<'_>, caches: &[SeenCache]) -> Option<Opinion> {
    let largest = caches.last()?;
    let (claim, measured) = (SeenCache::claim(caches), SeenCache::measured_sizes(caches));
    let advice = match case.is_disturbed {
        true => {
            "Measure again while nothing else runs before you size working sets by it.".to_owned()
        }
        false => format!(
            "Size working sets and blocks by {}.",
            round_bytes(largest.effective)
        ),
    };
    // The host's other guests may use the rest.
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

/// CPUs that take turns on one hardware thread.
fn judge_stacking(case: &Case<'_>) -> Option<Opinion> {
    let pairs = case.pairs.stacked_pairs();
    let (a, b, lost) = *pairs.first()?;
    let named: Vec<String> = pairs
        .iter()
        .take(NAMED)
        .map(|(a, b, _)| format!("{{{a},{b}}}"))
        .collect();
    Some(Opinion {
        verdict: Agreement::Contradicted,
        claim: format!("The system reports CPUs {a} and {b} as two hardware threads."),
        measured: format!(
            "CPUs {} never ran at the same time: the hypervisor preempted {a} or {b} {}, another program {}. They seem to take turns on one hardware thread.",
            named.join(" "),
            count(lost.stolen, "time"),
            count(lost.switched, "time")
        ),
        confidence: 0.8,
        advice: "Use one CPU of each such pair: threads on both preempt each other for a time slice, and spinning ones waste it."
            .to_owned(),
    })
}

/// The claim about the wiring over time.
pub(super) const STAYS: &str = "Placements assume that the wiring does not change.";

/// What to do if it does not.
pub(super) const fn may_move(is_virtual: bool) -> &'static str {
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

/// Does the wiring stay as it is?
fn placement(case: &Case<'_>) -> Option<Opinion> {
    let advice = may_move(case.topology.identity.hypervisor.is_some());
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
    let drift = case.drift?;
    Some(opinion(Agreement::Agrees, drift.sentence.clone(), 0.95, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pinwise_record::PlateauRecord;

    #[test]
    fn a_cache_that_the_ladder_does_not_show_is_not_agreed_with() {
        let text = "l3:1(size=32MB) l2:2(size=1MB) l1d:1(size=48KB) core:1 pu:1";
        let topology = Topology::from_synthetic(text).unwrap();
        let plateau = |level, effective_bytes, reported_bytes| PlateauRecord {
            level,
            latency_ns: 4.0,
            effective_bytes,
            reported_bytes,
        };
        let check = |plateaus: Vec<PlateauRecord>| -> Vec<(Agreement, String)> {
            let ladder = LadderRecord {
                cpu: 0,
                points: Vec::new(),
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
            let opinions = caches(&case).into_iter();
            opinions.map(|o| (o.verdict, o.measured)).collect()
        };
        let (l1, l2) = (Some(48 << 10), Some(1 << 20));
        let inner = [plateau(Some(1), l1, l1), plateau(Some(2), l2, l2)];
        let mut shown = check([&inner[..], &[plateau(None, None, None)]].concat());
        assert_eq!(shown.len(), 2, "{shown:?}");
        let (verdict, measured) = shown.pop().unwrap();
        assert_eq!(verdict, Agreement::CannotTell);
        let not_seen = "The kernel claims L3 (32 MiB); measurement does not confirm it: ";
        assert!(measured.starts_with(not_seen), "{measured}");
        assert_eq!(shown[0].0, Agreement::Agrees);
        let l3 = Some(32 << 20);
        let outer = plateau(Some(3), l3, l3);
        assert_eq!(check([&inner[..], &[outer]].concat()).len(), 1);
        assert!(check(Vec::new()).is_empty());
    }
}
