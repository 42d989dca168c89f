//! What the system reports against what was measured, level by level.
//!
//! Pure. A verdict needs figures on both sides of the question: where they
//! are missing or lie between, it is "cannot tell", never "agrees".

use super::memory::NodeLatency;
use super::pairs::Pairs;
use crate::record::{Agreement, Contradiction, DriftRecord, LadderRecord, LevelVerdict};
use crate::stats::describe::quantile;
use crate::stats::verdict::count;
use crate::topology::wiring::{
    LevelKind, NO_CONTENTION, PairMatrix, Relation, Wiring, WiringLevel, relation,
};
use crate::topology::{CpuSet, Level, Topology};

/// A level that was found contradicts the report where it is at least so sure.
const SURE: f64 = 0.7;
/// Pairs across a reported boundary take at most so many times those within:
/// the boundary is not there …
const NO_BOUNDARY: f64 = 1.08;
/// … and at least so many times: it is.
const BOUNDARY: f64 = 1.25;
/// Pairs on each side of a boundary, at least.
const LEAST_PAIRS: usize = 4;
/// A far node's memory takes at least so many times a near one's.
const FAR_NODE: f64 = 1.05;
/// A cache is contradicted where a program sees less than this share of it, or
/// more than its inverse.
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
    fn at(self, level: &str) -> LevelVerdict {
        LevelVerdict {
            level: level.to_owned(),
            verdict: self.verdict,
            claim: self.claim,
            measured: self.measured,
            confidence: self.confidence,
            advice: self.advice,
        }
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
    let mut verdicts = vec![
        groups(case, Level::Core, LevelKind::Smt).at("smt"),
        groups(case, Level::Llc, LevelKind::Llc).at("llc"),
        groups(case, Level::Package, LevelKind::Package).at("package"),
    ];
    verdicts.extend(nodes(case).map(|opinion| opinion.at("numa")));
    verdicts.extend(caches(case).into_iter().map(|opinion| opinion.at("cache")));
    verdicts.extend(stacked(case).map(|opinion| opinion.at("stacked")));
    verdicts.extend(placement(case).map(|opinion| opinion.at("placement")));
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

const fn noun(kind: LevelKind) -> &'static str {
    match kind {
        LevelKind::Smt => "core",
        LevelKind::Llc => "last-level cache",
        LevelKind::Package => "package",
        LevelKind::Other => "unit",
    }
}

/// Groups as a list for a sentence.
fn list(groups: &[CpuSet]) -> String {
    let mut named: Vec<String> = groups
        .iter()
        .take(NAMED)
        .map(|g| format!("{{{g}}}"))
        .collect();
    if groups.len() > NAMED {
        named.push(format!("… ({} in all)", groups.len()));
    }
    named.join(" ")
}

fn claim(kind: LevelKind, reported: &[CpuSet], all: &CpuSet) -> String {
    let shared: Vec<CpuSet> = reported.iter().filter(|g| g.len() > 1).cloned().collect();
    if reported.is_empty() {
        return format!("The system does not say which CPUs share a {}.", noun(kind));
    }
    if shared.is_empty() {
        return format!(
            "The system reports that no two CPUs share a {}.",
            noun(kind)
        );
    }
    if shared.len() == 1 && shared[0] == *all {
        return format!(
            "The system reports one {} for all {} CPUs.",
            noun(kind),
            all.len()
        );
    }
    format!(
        "The system reports {}: {}.",
        count(reported.len(), noun(kind)),
        list(&shared)
    )
}

fn advice(kind: LevelKind) -> &'static str {
    match kind {
        LevelKind::Smt => {
            "Do not use one-per-core or smt= placements from the report; name the CPUs (cpu:LIST) by the measured cores."
        }
        LevelKind::Llc => {
            "Do not use LLC placements from the report; name the CPUs (cpu:LIST) by the measured groups."
        }
        LevelKind::Package => {
            "Do not use package placements from the report; name the CPUs (cpu:LIST) by the measured groups."
        }
        LevelKind::Other => "",
    }
}

/// The verdict on a level that groups CPUs.
fn groups(case: &Case<'_>, level: Level, kind: LevelKind) -> Opinion {
    let measured_cpus: CpuSet = case.pairs.latency.cpus().iter().copied().collect();
    let reported: Vec<CpuSet> = case
        .topology
        .units(level)
        .into_iter()
        .map(|unit| unit.intersection(&measured_cpus))
        .filter(|unit| !unit.is_empty())
        .collect();
    let claim = claim(kind, &reported, &measured_cpus);
    if measured_cpus.len() < 2 {
        return Opinion::cannot_tell(claim, "With one CPU there is no pair to measure.");
    }
    if let Some(reason) = &case.wiring.cannot_tell {
        return Opinion::cannot_tell(claim, reason.clone());
    }
    let shared: Vec<CpuSet> = reported.iter().filter(|g| g.len() > 1).cloned().collect();
    let found = case.wiring.level(kind);
    if reported.is_empty() {
        return silent(claim, kind, found);
    }
    // Latency cannot name what it divides: a level of another name with the
    // same groups counts, unless cores are meant.
    let is_it = |l: &&WiringLevel| {
        l.groups == shared
            && (l.kind == kind || [l.kind, kind].iter().all(|k| *k != LevelKind::Smt))
    };
    if let Some(level) = case.wiring.levels.iter().find(is_it) {
        return agrees(claim, level.evidence.clone(), level.confidence);
    }
    if let Some(level) = found {
        return otherwise(claim, kind, level);
    }
    if kind == LevelKind::Smt {
        return no_siblings(case, claim, &shared);
    }
    if shared.is_empty() || (shared.len() == 1 && shared[0] == measured_cpus) {
        return undivided(case, kind, claim, &shared);
    }
    boundary(case, kind, claim, &shared)
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

fn contradicted(kind: LevelKind, claim: String, measured: String, confidence: f64) -> Opinion {
    Opinion {
        verdict: Agreement::Contradicted,
        claim,
        measured,
        confidence,
        advice: advice(kind).to_owned(),
    }
}

/// The system says nothing of the level, so there is nothing to contradict.
fn silent(claim: String, kind: LevelKind, found: Option<&WiringLevel>) -> Opinion {
    let Some(level) = found else {
        return Opinion::cannot_tell(claim, format!("No {} was found either.", noun(kind)));
    };
    Opinion {
        confidence: level.confidence,
        advice: "Name the CPUs (cpu:LIST) by the measured groups.".to_owned(),
        ..Opinion::cannot_tell(claim, by_measurement(kind, level))
    }
}

fn by_measurement(kind: LevelKind, level: &WiringLevel) -> String {
    format!(
        "CPUs that share a {} by measurement: {}. {}",
        noun(kind),
        list(&level.groups),
        level.evidence
    )
}

/// The level was found, with other groups than reported.
fn otherwise(claim: String, kind: LevelKind, level: &WiringLevel) -> Opinion {
    let measured = by_measurement(kind, level);
    if level.confidence >= SURE {
        return contradicted(kind, claim, measured, level.confidence);
    }
    Opinion::cannot_tell(
        claim,
        format!("{measured} This is too unsure to contradict."),
    )
}

/// No siblings were found: were those tried that the system reports?
fn no_siblings(case: &Case<'_>, claim: String, shared: &[CpuSet]) -> Opinion {
    let ratios = |wanted: &dyn Fn(usize, usize) -> bool| -> Vec<f64> {
        let Some(contention) = case.contention else {
            return Vec::new();
        };
        let n = contention.len();
        (0..n)
            .flat_map(|a| (a + 1..n).map(move |b| (a, b)))
            .filter(|&(a, b)| wanted(case.pairs.cpu(a), case.pairs.cpu(b)))
            .map(|(a, b)| contention.at(a, b))
            .filter(|ratio| ratio.is_finite())
            .collect()
    };
    let in_one = |a: usize, b: usize| shared.iter().any(|g| g.contains(a) && g.contains(b));
    let (tried, what) = if shared.is_empty() {
        (ratios(&|_, _| true), "the nearest CPUs")
    } else {
        (ratios(&in_one), "CPUs that are reported as siblings")
    };
    if tried.is_empty() {
        return Opinion::cannot_tell(claim, "Contention between CPUs could not be measured.");
    }
    let high = quantile(&tried, 0.9);
    let measured = format!(
        "Work on {what} takes {high:.2} times as long side by side as alone (90th percentile of {}): they share no core.",
        count(tried.len(), "pair")
    );
    if high > NO_CONTENTION {
        return Opinion::cannot_tell(
            claim,
            format!(
                "Work on {what} takes {high:.2} times as long side by side as alone: between sharing a core (1.3 and more) and not (up to 1.15)."
            ),
        );
    }
    if shared.is_empty() {
        agrees(claim, measured, 0.9)
    } else {
        contradicted(LevelKind::Smt, claim, measured, 0.9)
    }
}

/// Latencies of measured pairs, in ns: within the groups, and across.
fn inside_and_across(case: &Case<'_>, groups: &[CpuSet]) -> (Vec<f64>, Vec<f64>) {
    let pairs = case.pairs;
    let group = |cpu: usize| groups.iter().position(|g| g.contains(cpu));
    let smt = case.wiring.level(LevelKind::Smt);
    let are_siblings = |a: usize, b: usize| {
        smt.is_some_and(|level| level.groups.iter().any(|g| g.contains(a) && g.contains(b)))
    };
    let (mut inside, mut across) = (Vec::new(), Vec::new());
    for a in 0..pairs.len() {
        for b in (a + 1..pairs.len()).filter(|&b| pairs.is_measured(a, b)) {
            let (cpu_a, cpu_b) = (pairs.cpu(a), pairs.cpu(b));
            if are_siblings(cpu_a, cpu_b) {
                continue;
            }
            let is_inside = group(cpu_a).is_some() && group(cpu_a) == group(cpu_b);
            if is_inside { &mut inside } else { &mut across }.push(pairs.latency.at(a, b));
        }
    }
    (inside, across)
}

/// The report draws boundaries that the inference did not find: is there any
/// difference across them?
fn boundary(case: &Case<'_>, kind: LevelKind, claim: String, shared: &[CpuSet]) -> Opinion {
    let (inside, across) = inside_and_across(case, shared);
    if inside.len() < LEAST_PAIRS || across.len() < LEAST_PAIRS {
        return Opinion::cannot_tell(
            claim,
            format!(
                "Too few pairs were measured within a {0} and across.",
                noun(kind)
            ),
        );
    }
    let (near, far) = (quantile(&inside, 0.5), quantile(&across, 0.5));
    let measured = format!(
        "Pairs within a reported {} take {near:.1} ns, pairs across {far:.1} ns (medians of {} and {}).",
        noun(kind),
        inside.len(),
        across.len()
    );
    let is_separate = quantile(&across, 0.1) > quantile(&inside, 0.9);
    if far < NO_BOUNDARY * near {
        contradicted(
            kind,
            claim,
            format!("{measured} There is no boundary."),
            0.9,
        )
    } else if far > BOUNDARY * near && is_separate {
        agrees(claim, measured, 0.8)
    } else {
        Opinion::cannot_tell(claim, measured)
    }
}

/// The report draws no boundary (all in one, or each alone) and none was
/// found. Only the absolute latency is left to judge by.
fn undivided(case: &Case<'_>, kind: LevelKind, claim: String, shared: &[CpuSet]) -> Opinion {
    let all = [case
        .pairs
        .latency
        .cpus()
        .iter()
        .copied()
        .collect::<CpuSet>()];
    let (mut latencies, _) = inside_and_across(case, &all);
    if latencies.is_empty() {
        let n = case.pairs.len();
        let every = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        latencies = every
            .map(|(a, b)| case.pairs.latency.at(a, b))
            .filter(|latency| latency.is_finite())
            .collect();
    }
    if latencies.is_empty() {
        return Opinion::cannot_tell(claim, "No pair could be measured.");
    }
    let typical = quantile(&latencies, 0.5);
    let ratio = (case.pairs.len() == 2)
        .then(|| case.contention.map(|matrix| matrix.at(0, 1)))
        .flatten();
    let seen = relation(typical, ratio);
    let measured = format!(
        "A line takes {typical:.1} ns between CPUs (median of {}): such CPUs {}.",
        count(latencies.len(), "pair"),
        seen.words()
    );
    let is_two = case.pairs.len() == 2;
    let (shares, separate) = match kind {
        LevelKind::Package => (
            matches!(
                seen,
                Relation::SameCore | Relation::SameLlc | Relation::OtherLlc
            ),
            seen == Relation::OtherPackage,
        ),
        _ => (
            matches!(seen, Relation::SameCore | Relation::SameLlc),
            // A mesh of many cores on one cache may take as long.
            matches!(seen, Relation::OtherLlc | Relation::OtherPackage) && is_two,
        ),
    };
    match (shared.is_empty(), shares, separate) {
        (false, true, _) | (true, _, true) => agrees(claim, measured, 0.7),
        (false, _, true) | (true, true, _) => contradicted(kind, claim, measured, 0.8),
        _ => Opinion::cannot_tell(claim, measured),
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

/// Sizes of caches as a program sees them.
fn caches(case: &Case<'_>) -> Vec<Opinion> {
    let Some(ladder) = case.ladder else {
        return Vec::new();
    };
    let told = |bytes: u64| {
        if bytes >= 10 << 20 {
            format!("{} MiB", bytes >> 20)
        } else if bytes >= 1 << 20 {
            format!("{:.1} MiB", bytes as f64 / 1_048_576.0)
        } else {
            format!("{} KiB", bytes >> 10)
        }
    };
    let judged = ladder.plateaus.iter().filter_map(|plateau| {
        let (level, effective) = (plateau.level?, plateau.effective_bytes?);
        let reported = plateau.reported_bytes?;
        let share = effective as f64 / reported as f64;
        let claim = format!("The system reports an L{level} of {}.", told(reported));
        let measured = format!(
            "A program sees {} of L{level} at {:.1} ns a load.",
            told(effective),
            plateau.latency_ns
        );
        Some(if (CACHE_SHARE..=1.0 / CACHE_SHARE).contains(&share) {
            agrees(claim, measured, 0.8)
        } else {
            Opinion {
                verdict: Agreement::Contradicted,
                claim,
                measured,
                confidence: 0.8,
                advice: format!(
                    "Size working sets and blocks by {}, not by the report.",
                    told(effective)
                ),
            }
        })
    });
    judged.collect()
}

/// CPUs that are one hardware thread, in turn.
fn stacked(case: &Case<'_>) -> Option<Opinion> {
    let pairs = case.pairs.stacked();
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
            "CPUs {} never ran at the same time: the hypervisor took {a} or {b} away {}, another program {}. They seem to take turns on one hardware thread.",
            named.join(" "),
            count(lost.stolen, "time"),
            count(lost.switched, "time")
        ),
        confidence: 0.8,
        advice: "Use one CPU of each such pair: threads on both stop each other for a time slice, spinning ones for nothing."
            .to_owned(),
    })
}

/// Does the wiring stay as it is?
fn placement(case: &Case<'_>) -> Option<Opinion> {
    let claim = "Placements take the wiring to stay as it is.".to_owned();
    let virtual_machine = case.topology.identity.hypervisor.is_some();
    let advice = if virtual_machine {
        "Do not use core or LLC placements on this VM: its CPUs float over the host's. Ask for pinned vCPUs, or compare placements only within a run of pinwise compare."
    } else {
        "Do not use core or LLC placements here; find out who moves the CPUs."
    };
    let opinion = |verdict, measured, confidence, advice: &str| Opinion {
        verdict,
        claim: claim.clone(),
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
