//! Verdicts on levels that group CPUs: cores, last-level caches, packages.
//!
//! First the groups that were found are compared with those reported; if none were found, pairs
//! within and across the reported ones decide.

use super::{Case, NAMED, Opinion, agrees};
use pinwise_format::count;
use pinwise_record::Agreement;
use pinwise_stats::describe::quantile;
use pinwise_topology::{CpuSet, Level};
use pinwise_wiring::{LevelKind, NO_CONTENTION, Relation, WiringLevel, classify_relation};

/// A level that was found contradicts the report if its probability is at least this.
const SURE: f64 = 0.7;
/// Pairs across a reported boundary take at most this many times those within:
/// the boundary is not there …
const NO_BOUNDARY: f64 = 1.08;
/// … and at least this many times: it is.
const BOUNDARY: f64 = 1.25;
/// A line between cores of one last-level cache takes about twice a load from it (25 ns
/// to 14.5 on a Zen 4 server, 60 to 33 on a large mesh), to another cache of the package
/// some eight times (Zen 2: 82 ns to 10). Up to this many is near …
const NEAR_LOADS: f64 = 3.5;
/// … and from this many on far.
const FAR_LOADS: f64 = 5.0;
/// With at most this many CPUs there are no pairs to compare: absolute figures judge them.
const MAX_CPUS_WITHOUT_PAIRS: usize = 3;
/// Pairs on each side of a boundary, at least.
const MIN_PAIRS: usize = 2;
/// … and this many for a boundary to be denied with confidence.
const ENOUGH_PAIRS: usize = 4;

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
pub(super) fn groups(case: &Case<'_>, level: Level, kind: LevelKind) -> Opinion {
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
        return Opinion::cannot_tell(claim, "With one CPU, there is no pair to measure.");
    }
    let shared: Vec<CpuSet> = reported.iter().filter(|g| g.len() > 1).cloned().collect();
    if let Some(reason) = &case.wiring.cannot_tell {
        // Latency is inconclusive, but contention reveals siblings, and the machine's own loads
        // show what is near.
        let opinion = match kind {
            _ if reported.is_empty() || measured_cpus.len() > MAX_CPUS_WITHOUT_PAIRS => None,
            LevelKind::Smt => Some(no_siblings(case, claim.clone(), &shared)),
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
        return silent(claim, kind, found);
    }
    // Latency cannot name the boundary that it finds: a level of another name with the same groups
    // counts, unless cores are meant.
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
        return judge_undivided(case, kind, claim, &shared);
    }
    boundary(case, kind, claim, &shared)
}

fn contradict_claim(kind: LevelKind, claim: String, measured: String, confidence: f64) -> Opinion {
    Opinion {
        verdict: Agreement::Contradicted,
        claim,
        measured,
        confidence,
        advice: advice(kind).to_owned(),
    }
}

/// The system reports no such level, so there is nothing to contradict.
fn silent(claim: String, kind: LevelKind, found: Option<&WiringLevel>) -> Opinion {
    let Some(level) = found else {
        return Opinion::cannot_tell(claim, format!("No {} was found either.", noun(kind)));
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
        noun(kind),
        list(&level.groups),
        level.evidence
    )
}

/// The level was found, but with other groups than reported.
fn otherwise(claim: String, kind: LevelKind, level: &WiringLevel) -> Opinion {
    let measured = describe_measurement(kind, level);
    if level.confidence >= SURE {
        return contradict_claim(kind, claim, measured, level.confidence);
    }
    Opinion::cannot_tell(
        claim,
        format!("{measured} This is too uncertain to contradict it."),
    )
}

/// No siblings were found: were the reported ones tried?
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
    let of_all = match tried.len() {
        1 => String::new(),
        pairs => format!(" (90th percentile of {})", count(pairs, "pair")),
    };
    let measured = format!(
        "Work on {what} takes {high:.2} times as long in parallel as alone{of_all}: they share no core.",
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
        agrees(claim, measured, 0.9)
    } else {
        contradict_claim(LevelKind::Smt, claim, measured, 0.9)
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
    if inside.len() < MIN_PAIRS || across.len() < MIN_PAIRS {
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
        let is_enough = inside.len().min(across.len()) >= ENOUGH_PAIRS;
        contradict_claim(
            kind,
            claim,
            format!("{measured} There is no boundary."),
            if is_enough { 0.9 } else { SURE },
        )
    } else if far > BOUNDARY * near && is_separate {
        agrees(claim, measured, 0.8)
    } else {
        Opinion::cannot_tell(claim, measured)
    }
}

/// One load from the outermost measured cache but the first two, ns.
fn last_level_load_ns(case: &Case<'_>) -> Option<f64> {
    let plateaus = case.ladder?.plateaus.iter();
    let shared = plateaus.filter(|plateau| plateau.level.is_some_and(|level| level >= 3));
    shared.map(|plateau| plateau.latency_ns).next_back()
}

/// The report draws no boundary (all in one, or each alone) and none was found. Only the latency of
/// two CPUs, compared with the machine's own loads, is left to judge by: load and a large mesh
/// lengthen both, and one absolute figure contradicts nothing.
fn judge_undivided(case: &Case<'_>, kind: LevelKind, claim: String, shared: &[CpuSet]) -> Opinion {
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
    let seen = classify_relation(typical, ratio);
    let load_ns = last_level_load_ns(case);
    let loads = load_ns.map(|load_ns| typical / load_ns);
    let own = loads.map_or_else(String::new, |loads| {
        format!(", {loads:.1} times a load from the last-level cache")
    });
    let line = format!(
        "A line takes {typical:.1} ns between CPUs (median of {}{own})",
        count(latencies.len(), "pair"),
    );
    let is_two = case.pairs.len() == 2;
    // Beside other programs the loads are slow, and a line between two caches seems near.
    let loads = loads.filter(|_| !case.is_disturbed);
    let is_near = loads.is_some_and(|loads| loads <= NEAR_LOADS)
        && ratio.is_none_or(|ratio| ratio <= NO_CONTENTION);
    let is_far = loads.is_some_and(|loads| loads >= FAR_LOADS);
    if is_two && is_near && matches!(seen, Relation::Unclear | Relation::OtherLlc) {
        let measured = format!("{line}, as between cores of one cache.");
        return match shared.is_empty() {
            false => agrees(claim, measured, 0.7),
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
            // A mesh of many cores on one cache may take as long.
            matches!(seen, Relation::OtherLlc | Relation::OtherPackage) && is_two && is_far,
        ),
    };
    match (shared.is_empty(), shares, separate) {
        (false, true, _) | (true, _, true) => agrees(claim, measured, 0.7),
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

/// What a long way between CPUs means where nothing else decides, after its length.
const DISTURBED: &str =
    ", as between CPUs without a common cache; but others disturbed the probes.";
const UNSURE: &str = ", as between CPUs without a common cache, or on one that is large or busy.";
