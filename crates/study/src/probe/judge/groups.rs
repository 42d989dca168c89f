//! Verdicts on levels that group CPUs: cores, last-level caches, packages.
//!
//! If groups were found, they are compared with the reported ones. If not, latencies of pairs within
//! the reported groups are compared with those across.

use super::{Case, MAX_NAMED, Opinion, agree_with_claim};
use pinwise_format::count;
use pinwise_record::Agreement;
use pinwise_stats::describe::quantile;
use pinwise_topology::{CpuSet, Level};
use pinwise_wiring::{LevelKind, NO_CONTENTION, Relation, WiringLevel, classify_relation};

/// A level that was found contradicts the report if its confidence is at least this.
const MIN_CONFIDENCE: f64 = 0.7;
/// There is no boundary if pairs across it take at most this many times as long as those within …
const NO_BOUNDARY: f64 = 1.08;
/// … and there is one from this many times on.
const BOUNDARY: f64 = 1.25;
/// Moving a line between cores of one last-level cache takes about twice as long as a load from it
/// (25 and 14.5 ns on a Zen 4 server, 60 and 33 on a large mesh), to another cache of the package some
/// eight times as long (Zen 2: 82 and 10 ns). Up to this many loads it counts as near …
const NEAR_LOADS: f64 = 3.5;
/// … and from this many loads on as far.
const FAR_LOADS: f64 = 5.0;
/// With at most this many CPUs there are too few pairs to compare: absolute figures decide.
const MAX_CPUS_WITHOUT_PAIRS: usize = 3;
/// Minimum number of pairs within and across a boundary …
const MIN_PAIRS: usize = 2;
/// … and the number from which a boundary is denied with more confidence.
const ENOUGH_PAIRS: usize = 4;

const fn unit_name(kind: LevelKind) -> &'static str {
    match kind {
        LevelKind::Smt => "core",
        LevelKind::Llc => "last-level cache",
        LevelKind::Package => "package",
        LevelKind::Other => "unit",
    }
}

/// The groups for a sentence, such as `{0-1} {2-3}`.
fn list_groups(groups: &[CpuSet]) -> String {
    let mut names: Vec<String> = groups
        .iter()
        .take(MAX_NAMED)
        .map(|g| format!("{{{g}}}"))
        .collect();
    if groups.len() > MAX_NAMED {
        names.push(format!("… ({} in all)", groups.len()));
    }
    names.join(" ")
}

fn describe_claim(kind: LevelKind, reported: &[CpuSet], all: &CpuSet) -> String {
    let shared: Vec<CpuSet> = reported.iter().filter(|g| g.len() > 1).cloned().collect();
    if reported.is_empty() {
        return format!(
            "The system does not say which CPUs share a {}.",
            unit_name(kind)
        );
    }
    if shared.is_empty() {
        return format!(
            "The system reports that no two CPUs share a {}.",
            unit_name(kind)
        );
    }
    if shared.len() == 1 && shared[0] == *all {
        return format!(
            "The system reports one {} for all {} CPUs.",
            unit_name(kind),
            all.len()
        );
    }
    format!(
        "The system reports {}: {}.",
        count(reported.len(), unit_name(kind)),
        list_groups(&shared)
    )
}

fn advise(kind: LevelKind) -> &'static str {
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
pub(super) fn judge_groups(case: &Case<'_>, level: Level, kind: LevelKind) -> Opinion {
    let measured_cpus: CpuSet = case.pairs.latency.cpus().iter().copied().collect();
    let reported: Vec<CpuSet> = case
        .topology
        .units(level)
        .into_iter()
        .map(|unit| unit.intersection(&measured_cpus))
        .filter(|unit| !unit.is_empty())
        .collect();
    let claim = describe_claim(kind, &reported, &measured_cpus);
    if measured_cpus.len() < 2 {
        return Opinion::cannot_tell(claim, "With one CPU, there is no pair to measure.");
    }
    let shared: Vec<CpuSet> = reported.iter().filter(|g| g.len() > 1).cloned().collect();
    if let Some(reason) = &case.wiring.cannot_tell {
        // Latencies are inconclusive, but contention reveals siblings, and cache loads show which
        // latency is short on this machine.
        let opinion = match kind {
            _ if reported.is_empty() || measured_cpus.len() > MAX_CPUS_WITHOUT_PAIRS => None,
            LevelKind::Smt => Some(judge_without_siblings(case, claim.clone(), &shared)),
            _ if shared.is_empty() || shared == [measured_cpus.clone()] => {
                Some(judge_undivided(case, kind, claim.clone(), &shared))
            }
            _ => None,
        };
        return opinion
            .filter(|opinion| opinion.verdict != Agreement::CannotTell)
            .unwrap_or_else(|| Opinion::cannot_tell(claim, reason.clone()));
    }
    let found = case.wiring.level(kind);
    if reported.is_empty() {
        return judge_unreported(claim, kind, found);
    }
    // Latency does not tell the kind of a boundary, except that of cores: a level with the same groups
    // and another name confirms the report.
    let is_same = |l: &&WiringLevel| {
        l.groups == shared
            && (l.kind == kind || [l.kind, kind].iter().all(|k| *k != LevelKind::Smt))
    };
    if let Some(level) = case.wiring.levels.iter().find(is_same) {
        return agree_with_claim(claim, level.evidence.clone(), level.confidence);
    }
    if let Some(level) = found {
        return judge_other_groups(claim, kind, level);
    }
    if kind == LevelKind::Smt {
        return judge_without_siblings(case, claim, &shared);
    }
    if shared.is_empty() || (shared.len() == 1 && shared[0] == measured_cpus) {
        return judge_undivided(case, kind, claim, &shared);
    }
    judge_boundary(case, kind, claim, &shared)
}

fn contradict_claim(kind: LevelKind, claim: String, measured: String, confidence: f64) -> Opinion {
    Opinion {
        verdict: Agreement::Contradicted,
        claim,
        measured,
        confidence,
        advice: advise(kind).to_owned(),
    }
}

/// Judges a level that the system does not report: measurement cannot contradict it.
fn judge_unreported(claim: String, kind: LevelKind, found: Option<&WiringLevel>) -> Opinion {
    let Some(level) = found else {
        return Opinion::cannot_tell(claim, format!("No {} was found either.", unit_name(kind)));
    };
    Opinion {
        confidence: level.confidence,
        advice: "Name the CPUs (cpu:LIST) by the measured groups.".to_owned(),
        ..Opinion::cannot_tell(claim, describe_measurement(kind, level))
    }
}

fn describe_measurement(kind: LevelKind, level: &WiringLevel) -> String {
    format!(
        "CPUs that share a {} by measurement: {}. {}",
        unit_name(kind),
        list_groups(&level.groups),
        level.evidence
    )
}

/// Judges a level that was found with other groups than reported.
fn judge_other_groups(claim: String, kind: LevelKind, level: &WiringLevel) -> Opinion {
    let measured = describe_measurement(kind, level);
    if level.confidence >= MIN_CONFIDENCE {
        return contradict_claim(kind, claim, measured, level.confidence);
    }
    Opinion::cannot_tell(
        claim,
        format!("{measured} This is too uncertain to contradict it."),
    )
}

/// Judges SMT if no siblings were found. This contradicts reported siblings only if contention
/// between them was measured.
fn judge_without_siblings(case: &Case<'_>, claim: String, shared: &[CpuSet]) -> Opinion {
    let ratios = |is_selected: &dyn Fn(usize, usize) -> bool| -> Vec<f64> {
        let Some(contention) = case.contention else {
            return Vec::new();
        };
        let n = contention.len();
        (0..n)
            .flat_map(|a| (a + 1..n).map(move |b| (a, b)))
            .filter(|&(a, b)| is_selected(case.pairs.cpu(a), case.pairs.cpu(b)))
            .map(|(a, b)| contention.at(a, b))
            .filter(|ratio| ratio.is_finite())
            .collect()
    };
    let are_siblings = |a: usize, b: usize| shared.iter().any(|g| g.contains(a) && g.contains(b));
    let (tried, what) = if shared.is_empty() {
        (ratios(&|_, _| true), "the nearest CPUs")
    } else {
        (ratios(&are_siblings), "CPUs that are reported as siblings")
    };
    if tried.is_empty() {
        return Opinion::cannot_tell(claim, "Contention between CPUs could not be measured.");
    }
    let high = quantile(&tried, 0.9);
    let sample = match tried.len() {
        1 => String::new(),
        pairs => format!(" (90th percentile of {})", count(pairs, "pair")),
    };
    let measured = format!(
        "Work on {what} takes {high:.2} times as long in parallel as alone{sample}: they share no core.",
    );
    if high > NO_CONTENTION {
        return Opinion::cannot_tell(
            claim,
            format!(
                "Work on {what} takes {high:.2} times as long in parallel as alone: between sharing a core (1.3 and more) and not (up to 1.15)."
            ),
        );
    }
    if shared.is_empty() {
        agree_with_claim(claim, measured, 0.9)
    } else {
        contradict_claim(LevelKind::Smt, claim, measured, 0.9)
    }
}

/// Latencies of measured pairs, in ns: within the groups, and across. SMT siblings do not count.
fn split_latencies(case: &Case<'_>, groups: &[CpuSet]) -> (Vec<f64>, Vec<f64>) {
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

/// Judges reported boundaries that inference did not find, by whether latencies across them differ
/// from those within.
fn judge_boundary(case: &Case<'_>, kind: LevelKind, claim: String, shared: &[CpuSet]) -> Opinion {
    let (inside, across) = split_latencies(case, shared);
    if inside.len() < MIN_PAIRS || across.len() < MIN_PAIRS {
        return Opinion::cannot_tell(
            claim,
            format!(
                "Too few pairs were measured within a {0} and across.",
                unit_name(kind)
            ),
        );
    }
    let (near, far) = (quantile(&inside, 0.5), quantile(&across, 0.5));
    let measured = format!(
        "Pairs within a reported {} take {near:.1} ns, pairs across {far:.1} ns (medians of {} and {}).",
        unit_name(kind),
        inside.len(),
        across.len()
    );
    let is_separate = quantile(&across, 0.1) > quantile(&inside, 0.9);
    if far < NO_BOUNDARY * near {
        let is_enough = inside.len().min(across.len()) >= ENOUGH_PAIRS;
        contradict_claim(
            kind,
            claim,
            format!("{measured} There is no boundary."),
            if is_enough { 0.9 } else { MIN_CONFIDENCE },
        )
    } else if far > BOUNDARY * near && is_separate {
        agree_with_claim(claim, measured, 0.8)
    } else {
        Opinion::cannot_tell(claim, measured)
    }
}

/// Latency of a load from the outermost measured cache beyond L2, ns.
fn last_level_load_ns(case: &Case<'_>) -> Option<f64> {
    let plateaus = case.ladder?.plateaus.iter();
    let shared = plateaus.filter(|plateau| plateau.level.is_some_and(|level| level >= 3));
    shared.map(|plateau| plateau.latency_ns).next_back()
}

/// Judges a report without a boundary (all CPUs in one unit, or each alone) if none was found either,
/// by the latency between CPUs relative to that of cache loads. Other load and a large mesh lengthen
/// both, so that an absolute figure alone contradicts nothing.
fn judge_undivided(case: &Case<'_>, kind: LevelKind, claim: String, shared: &[CpuSet]) -> Opinion {
    let all = [case
        .pairs
        .latency
        .cpus()
        .iter()
        .copied()
        .collect::<CpuSet>()];
    let (mut latencies, _) = split_latencies(case, &all);
    if latencies.is_empty() {
        let n = case.pairs.len();
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        latencies = pairs
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
    let seen = classify_relation(typical, ratio);
    let load_ns = last_level_load_ns(case);
    let loads = load_ns.map(|load_ns| typical / load_ns);
    let in_loads = loads.map_or_else(String::new, |loads| {
        format!(", {loads:.1} times a load from the last-level cache")
    });
    let line = format!(
        "A line takes {typical:.1} ns between CPUs (median of {}{in_loads})",
        count(latencies.len(), "pair"),
    );
    let is_two = case.pairs.len() == 2;
    // Beside other programs loads are slow, so that another cache would seem near.
    let loads = loads.filter(|_| !case.is_disturbed);
    let is_near = loads.is_some_and(|loads| loads <= NEAR_LOADS)
        && ratio.is_none_or(|ratio| ratio <= NO_CONTENTION);
    let is_far = loads.is_some_and(|loads| loads >= FAR_LOADS);
    if is_two && is_near && matches!(seen, Relation::Unclear | Relation::OtherLlc) {
        let measured = format!("{line}, as between cores of one cache.");
        return match shared.is_empty() {
            false => agree_with_claim(claim, measured, 0.7),
            true => Opinion::cannot_tell(claim, measured),
        };
    }
    let measured = match (kind, seen) {
        (LevelKind::Package, Relation::OtherLlc) => format!("{line}, as within one package."),
        _ => format!("{line}: such CPUs {}.", seen.words()),
    };
    let (shares, separate) = match kind {
        LevelKind::Package => (
            matches!(
                seen,
                Relation::SameCore | Relation::SameLlc | Relation::OtherLlc
            ),
            seen == Relation::OtherPackage && is_far,
        ),
        _ => (
            matches!(seen, Relation::SameCore | Relation::SameLlc),
            // A mesh of many cores with one cache may take as long.
            matches!(seen, Relation::OtherLlc | Relation::OtherPackage) && is_two && is_far,
        ),
    };
    match (shared.is_empty(), shares, separate) {
        (false, true, _) | (true, _, true) => agree_with_claim(claim, measured, 0.7),
        (false, _, true) | (true, true, _) => contradict_claim(kind, claim, measured, 0.8),
        _ if matches!(seen, Relation::OtherLlc | Relation::OtherPackage) => {
            let why = match case.is_disturbed {
                true => DISTURBED,
                false => UNSURE,
            };
            Opinion::cannot_tell(claim, format!("{line}{why}"))
        }
        _ => Opinion::cannot_tell(claim, measured),
    }
}

/// The end of a sentence on a long latency between CPUs, if nothing else decides.
const DISTURBED: &str =
    ", as between CPUs without a common cache; but others disturbed the probes.";
const UNSURE: &str = ", as between CPUs without a common cache, or on one that is large or busy.";
