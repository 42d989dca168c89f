//! Judges two or three CPUs. Their few figures cannot show a gap, so published latencies decide, and
//! contention if it was measured.
//!
//! The result is "inconclusive" if the published ranges (in `relation`) overlap.

use super::relation::{
    APART_FROM_NS, EDGES_NS, LLC_FROM_NS, LLC_TO_NS, Relation, classify_relation,
};
use super::{Evidence, LevelKind, Wiring, WiringLevel};
use pinwise_topology::CpuSet;

/// Limits the CPUs that are judged this way.
pub(super) const MAX_CPUS: usize = 3;

/// What two CPUs share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Share {
    Core,
    Cache,
    Neither,
    Inconclusive,
}

struct Pair {
    rows: (usize, usize),
    cpus: (usize, usize),
    ns: f64,
    ratio: Option<f64>,
    share: Share,
}

/// Judges up to three rows of the evidence.
pub(super) fn infer_few(evidence: &Evidence, rows: &[usize]) -> Wiring {
    let pairs = list_pairs(evidence, rows);
    let mut wiring = Wiring {
        notes: pairs
            .iter()
            .filter(|pair| pair.share == Share::Neither)
            .map(Pair::to_sentence)
            .collect(),
        ..Wiring::default()
    };
    if let Some(pair) = pairs.iter().find(|pair| pair.share == Share::Inconclusive) {
        wiring.cannot_tell = Some(pair.explain_ambiguity());
        return wiring;
    }
    let cpus = &evidence.latency_ns.cpus();
    for (kind, shares) in [
        (LevelKind::Smt, &[Share::Core][..]),
        (LevelKind::Llc, &[Share::Core, Share::Cache][..]),
    ] {
        let linked: Vec<&Pair> = pairs.iter().filter(|p| shares.contains(&p.share)).collect();
        let groups = join_pairs(&linked, rows, cpus);
        let is_known = wiring.levels.iter().any(|level| level.groups == groups);
        // Three CPUs with one cache are flat; two CPUs have at most one level.
        let is_all = groups.iter().any(|group| group.len() == rows.len());
        let is_informative = kind == LevelKind::Smt || !is_all || rows.len() == 2;
        if !groups.is_empty() && !is_known && is_informative {
            wiring.levels.push(make_level(kind, groups, &pairs, shares));
        }
    }
    wiring.is_flat = wiring.levels.is_empty() && pairs.iter().all(|p| p.share == Share::Cache);
    wiring
}

fn list_pairs(evidence: &Evidence, rows: &[usize]) -> Vec<Pair> {
    let latency = &evidence.latency_ns;
    let mut pairs = Vec::new();
    for (place, &b) in rows.iter().enumerate() {
        for &a in &rows[..place] {
            let ns = latency.at(a, b);
            let ratio = evidence.contention.as_ref().map(|c| c.at(a, b));
            let ratio = ratio.filter(|ratio| ratio.is_finite());
            pairs.push(Pair {
                rows: (a, b),
                cpus: (latency.cpus()[a], latency.cpus()[b]),
                ns,
                ratio,
                share: judge_pair(ns, ratio),
            });
        }
    }
    pairs
}

fn judge_pair(ns: f64, ratio: Option<f64>) -> Share {
    match classify_relation(ns, ratio) {
        Relation::SameCore => Share::Core,
        Relation::SameLlc => Share::Cache,
        Relation::OtherLlc | Relation::OtherPackage => Share::Neither,
        Relation::Unclear | Relation::Stacked => Share::Inconclusive,
    }
}

/// Joins the rows of pairs to groups of two or more.
fn join_pairs(pairs: &[&Pair], rows: &[usize], cpus: &[usize]) -> Vec<CpuSet> {
    let mut groups: Vec<Vec<usize>> = rows.iter().map(|&row| vec![row]).collect();
    for pair in pairs {
        let holding = |row: usize, groups: &[Vec<usize>]| {
            groups.iter().position(|group| group.contains(&row))
        };
        let places = (holding(pair.rows.0, &groups), holding(pair.rows.1, &groups));
        if let (Some(a), Some(b)) = places
            && a != b
        {
            let merged = groups.remove(a.max(b));
            groups[a.min(b)].extend(merged);
        }
    }
    let mut groups: Vec<CpuSet> = groups
        .into_iter()
        .filter(|group| group.len() > 1)
        .map(|group| group.into_iter().map(|row| cpus[row]).collect())
        .collect();
    groups.sort_by_key(CpuSet::first);
    groups
}

fn make_level(
    kind: LevelKind,
    groups: Vec<CpuSet>,
    pairs: &[Pair],
    shares: &[Share],
) -> WiringLevel {
    let side = |is_inside: bool| {
        let of_side = pairs
            .iter()
            .filter(|p| shares.contains(&p.share) == is_inside);
        of_side.map(|pair| pair.ns).fold(f64::NAN, f64::min)
    };
    let evidence: Vec<String> = pairs
        .iter()
        .filter(|pair| shares.contains(&pair.share))
        .map(Pair::to_sentence)
        .collect();
    let inside_ns = side(true);
    WiringLevel {
        kind,
        groups,
        inside_ns,
        outside_ns: Some(side(false)).filter(|ns| ns.is_finite()),
        confidence: compute_confidence(pairs, shares),
        factors: None,
        evidence: evidence.join(" "),
    }
}

/// The confidence is 0.95 if contention agrees. Published ranges are close together, so latency alone
/// gives 0.5 at the edge of a range and up to 0.8 away from it.
fn compute_confidence(pairs: &[Pair], shares: &[Share]) -> f64 {
    pairs
        .iter()
        .filter(|pair| shares.contains(&pair.share))
        .map(|pair| {
            if pair.ratio.is_some() {
                return 0.95;
            }
            let nearest = EDGES_NS.map(|edge| (pair.ns.max(1.0) / edge).ln().abs());
            0.5 + nearest.into_iter().fold(0.3, f64::min)
        })
        .fold(1.0, f64::min)
}

impl Pair {
    fn contention_words(&self) -> String {
        self.ratio.map_or_else(String::new, |ratio| {
            format!(", work beside each other takes {ratio:.2} times as long")
        })
    }

    fn to_sentence(&self) -> String {
        let (a, b) = self.cpus;
        let claim = match self.share {
            Share::Core => "as SMT siblings are",
            Share::Cache => "as cores with one last-level cache are",
            Share::Neither => "farther than cores with one last-level cache usually are",
            Share::Inconclusive => "which fits several wirings",
        };
        let (ns, contention) = (self.ns, self.contention_words());
        format!("CPUs {a} and {b} are {ns:.1} ns apart{contention}, {claim}.")
    }

    fn explain_ambiguity(&self) -> String {
        let (a, b) = self.cpus;
        let (ns, contention) = (self.ns, self.contention_words());
        if !ns.is_finite() {
            return format!("The pair of CPUs {a} and {b} was not measured.");
        }
        let claim = match self.ratio {
            _ if classify_relation(ns, None) == Relation::Stacked => {
                "as if they took turns on one CPU"
            }
            _ if ns < LLC_FROM_NS => "between SMT siblings and cores with one last-level cache",
            _ if (LLC_TO_NS..APART_FROM_NS).contains(&ns) => {
                "between cores with one last-level cache and with two"
            }
            _ => "and latency and contention contradict each other",
        };
        format!("CPUs {a} and {b} are {ns:.1} ns apart{contention}, {claim}.")
    }
}
