//! Which CPUs share a core: work on both compared with work alone.
//!
//! Latency alone cannot find SMT siblings everywhere (on Zen 5 a sibling is at 18 ns and the other
//! cores of the complex at 19 to 22). Two hyper-threads compete for the core, two cores do not. The
//! nearest CPUs by latency are tried first, then reported siblings, and some strangers as a check;
//! once a CPU's sibling is found, no others are tried.

use std::collections::BTreeMap;
use std::time::Duration;

use super::estimate::Effort;
use super::pairs::Pairs;
use super::rounds::rounds;
use super::session::Session;
use pinwise_machine::{MachineError, Port, Probe};
use pinwise_record::Median;
use pinwise_wiring::{NO_CONTENTION, PairMatrix, SMT_CONTENTION};

/// Enough to distinguish 1.0 from 1.3.
const EFFORT: Effort = Effort {
    least: 12,
    most: 60,
    precision: 0.03,
    limit: Duration::from_millis(80),
};
/// On a machine of up to this many CPUs every pair is tried.
const ALL_PAIRS: usize = 8;
/// Candidates for a sibling: CPUs within this many times the lowest latency of
/// a row. On Zen 5 the whole complex is.
const NEAR: f64 = 1.5;
/// At most this many of them for each CPU.
const MAX_CANDIDATES: usize = 15;

/// Ratios by rows of the pair, for each kind of work.
pub(super) type Contentions = BTreeMap<(usize, usize), Ratios>;

/// The results of one pair; `None` if not measured.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ratios {
    pub(super) spin: Option<Median>,
    pub(super) integer: Option<Median>,
    pub(super) float: Option<Median>,
}

impl Ratios {
    /// The value used: that of floating-point work, else the larger of the others.
    ///
    /// While one CPU works alone the other waits in pauses, and waiting also takes a share of a
    /// core: on Zen 4 siblings a spin loop showed 1.18 and integer work 1.13, but floating-point
    /// work, which waiting does not use, 1.88 (separate cores: 1.00 to 1.02 for all three).
    pub(super) fn value(&self) -> Option<f64> {
        let others = [self.spin, self.integer].into_iter().flatten();
        let larger = others.map(|m| m.value).reduce(f64::max);
        self.float.map(|m| m.value).or(larger)
    }
}

/// Measures contention of possible siblings, within the part's time.
pub(super) fn measure(
    session: &mut Session<'_>,
    pairs: &Pairs,
    found: &mut Contentions,
) -> Result<(), MachineError> {
    let mut core_of: Vec<usize> = (0..pairs.len()).collect();
    let candidates = candidates(session, pairs);
    let width = groups_apart(pairs).min(session.effort.parallel_pairs);
    let rounds = rounds(&candidates, width);
    let count = rounds.len();
    let mut missed = 0;
    for (done, round) in rounds.into_iter().enumerate() {
        let open: Vec<(usize, usize)> = round
            .into_iter()
            .filter(|&(a, b)| pairs.len() <= ALL_PAIRS || core_of[a] != core_of[b])
            .collect();
        if session.time_left().is_zero() {
            missed += open.len();
            continue;
        }
        measure_round(session, pairs, &open, found)?;
        for &(a, b) in &open {
            let ratio = found.get(&(a, b)).and_then(Ratios::value);
            if ratio.is_some_and(|r| r > SMT_CONTENTION) {
                let (old, new) = (core_of[b], core_of[a]);
                core_of
                    .iter_mut()
                    .filter(|core| **core == old)
                    .for_each(|core| *core = new);
            }
        }
        session.report_progress(done as f64 / count as f64);
    }
    if missed > 0 {
        session.leave_out(format!(
            "Contention of {missed} pairs of CPUs (time budget used up): siblings among them rest on latency alone."
        ));
    }
    Ok(())
}

/// The ratios as evidence.
pub(super) fn matrix(pairs: &Pairs, found: &Contentions) -> Option<PairMatrix> {
    if found.is_empty() {
        return None;
    }
    let mut matrix = PairMatrix::new(pairs.latency.cpus().to_vec());
    for (&(a, b), ratios) in found {
        if let Some(value) = ratios.value() {
            matrix.set(a, b, value);
        }
    }
    Some(matrix)
}

/// Pairs that may be siblings, the likeliest first.
fn candidates(session: &Session<'_>, pairs: &Pairs) -> Vec<(usize, usize)> {
    let n = pairs.len();
    let mut wanted: Vec<(usize, usize, f64)> = Vec::new();
    for a in 0..n {
        let mut row: Vec<(f64, usize)> = (0..n)
            .filter(|&b| b != a && pairs.latency.at(a, b).is_finite())
            .map(|b| (pairs.latency.at(a, b), b))
            .collect();
        row.sort_by(|x, y| x.0.total_cmp(&y.0));
        let lowest = row.first().map_or(f64::NAN, |first| first.0);
        let is_near = |latency: f64| n <= ALL_PAIRS || latency <= NEAR * lowest;
        // The first stranger is the check: it must not look like a sibling.
        let reach = row
            .iter()
            .take_while(|(latency, _)| is_near(*latency))
            .count()
            + 1;
        for &(latency, b) in row.iter().take(reach.min(MAX_CANDIDATES)) {
            wanted.push((a.min(b), a.max(b), latency / lowest));
        }
        let reported = (a + 1..n).filter(|&b| pairs.are_reported_siblings(&session.topology, a, b));
        wanted.extend(reported.map(|b| (a, b, 0.0)));
    }
    wanted.sort_by(|x, y| x.2.total_cmp(&y.2).then((x.0, x.1).cmp(&(y.0, y.1))));
    let mut seen = std::collections::BTreeSet::new();
    wanted
        .into_iter()
        .map(|(a, b, _)| (a, b))
        .filter(|pair| seen.insert(*pair))
        .collect()
}

/// How many pairs can work at once without sharing a core: as many as there
/// are CPUs that are far from each other.
fn groups_apart(pairs: &Pairs) -> usize {
    let n = pairs.len();
    let row_low = |a: usize| {
        let row = (0..n).map(|b| pairs.latency.at(a, b));
        row.filter(|v| v.is_finite()).fold(f64::INFINITY, f64::min)
    };
    let mut apart: Vec<usize> = Vec::new();
    for a in 0..n {
        let reach = 2.0 * row_low(a);
        let is_far = |&b: &usize| pairs.latency.at(a, b) > reach;
        if apart.iter().all(is_far) {
            apart.push(a);
        }
    }
    apart.len().max(1)
}

/// Floating-point work for all pairs; the other kinds as well if it is slowed down, or siblings are
/// reported.
fn measure_round(
    session: &mut Session<'_>,
    pairs: &Pairs,
    round: &[(usize, usize)],
    found: &mut Contentions,
) -> Result<(), MachineError> {
    let float = measure_ratios(session, pairs, round, Port::Float)?;
    let mut ambiguous = Vec::new();
    for (&(a, b), float) in round.iter().zip(float) {
        found.entry((a, b)).or_default().float = float;
        let is_slowed = float.is_none_or(|m| m.value > NO_CONTENTION);
        let is_reported = pairs.are_reported_siblings(&session.topology, a, b);
        if is_slowed || is_reported || pairs.len() <= ALL_PAIRS {
            ambiguous.push((a, b));
        }
    }
    for port in [Port::Spin, Port::Integer] {
        let values = measure_ratios(session, pairs, &ambiguous, port)?;
        for (&pair, value) in ambiguous.iter().zip(values) {
            let entry = found.entry(pair).or_default();
            match port {
                Port::Integer => entry.integer = value,
                Port::Spin | Port::Float => entry.spin = value,
            }
        }
    }
    Ok(())
}

fn measure_ratios(
    session: &mut Session<'_>,
    pairs: &Pairs,
    round: &[(usize, usize)],
    port: Port,
) -> Result<Vec<Option<Median>>, MachineError> {
    if round.is_empty() {
        return Ok(Vec::new());
    }
    let probes: Vec<Probe> = round
        .iter()
        .map(|&(a, b)| Probe::Contention {
            a: pairs.cpu(a),
            b: pairs.cpu(b),
            port,
        })
        .collect();
    let samples = session.estimate(&probes, EFFORT)?;
    Ok(samples
        .iter()
        .map(super::estimate::Sample::median)
        .collect())
}
