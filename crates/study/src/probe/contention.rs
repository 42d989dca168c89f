//! Finds CPUs that share a core: work on two CPUs at a time is compared with work on one.
//!
//! Latency alone does not always show SMT siblings (on Zen 5 a sibling is at 18 ns and the other
//! cores of the complex at 19 to 22). Two hyper-threads compete for the core, two cores do not. For
//! each CPU, the nearest CPUs by latency are tried first, then reported siblings, and a distant CPU
//! as a check; once its sibling is found, no others are tried.

use std::collections::BTreeMap;
use std::time::Duration;

use super::estimate::Effort;
use super::pairs::Pairs;
use super::rounds::schedule_rounds;
use super::session::Session;
use pinwise_machine::{MachineError, Port, Probe};
use pinwise_record::Median;
use pinwise_wiring::{NO_CONTENTION, PairMatrix, SMT_CONTENTION};

/// Enough to tell a ratio of 1.0 from 1.3.
const EFFORT: Effort = Effort {
    least: 12,
    most: 60,
    precision: 0.03,
    limit: Duration::from_millis(80),
};
/// On a machine of up to this many CPUs every pair is tried.
const ALL_PAIRS: usize = 8;
/// A CPU is a candidate for a sibling if its latency is within this factor of the lowest. On Zen 5
/// this includes the whole complex.
const NEAR: f64 = 1.5;
/// At most this many candidates for each CPU.
const MAX_CANDIDATES: usize = 15;

/// The results by pair of CPU indices (rows of the latency matrix).
pub(super) type Contentions = BTreeMap<(usize, usize), Ratios>;

/// Time of work on both CPUs over that on one, for each kind of work; `None` if not measured.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ratios {
    pub(super) spin: Option<Median>,
    pub(super) integer: Option<Median>,
    pub(super) float: Option<Median>,
}

impl Ratios {
    /// The deciding ratio: that of floating-point work, else the larger of the others.
    ///
    /// While one CPU works alone the other waits in a PAUSE loop, which takes a share of a shared
    /// core, too: on Zen 4 siblings a spin loop showed 1.18 and integer work 1.13, but floating-point
    /// work, whose units the loop does not use, 1.88 (separate cores: 1.00 to 1.02 for all three).
    pub(super) fn deciding(&self) -> Option<f64> {
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
    let candidates = list_candidates(session, pairs);
    let width = count_distant_cpus(pairs).min(session.effort.parallel_pairs);
    let rounds = schedule_rounds(&candidates, width);
    let count = rounds.len();
    let mut missed = 0;
    for (done, round) in rounds.into_iter().enumerate() {
        let undecided: Vec<(usize, usize)> = round
            .into_iter()
            .filter(|&(a, b)| pairs.len() <= ALL_PAIRS || core_of[a] != core_of[b])
            .collect();
        if session.time_left().is_zero() {
            missed += undecided.len();
            continue;
        }
        measure_round(session, pairs, &undecided, found)?;
        for &(a, b) in &undecided {
            let ratio = found.get(&(a, b)).and_then(Ratios::deciding);
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

/// The deciding ratios as a matrix; `None` if nothing was measured.
pub(super) fn to_matrix(pairs: &Pairs, found: &Contentions) -> Option<PairMatrix> {
    if found.is_empty() {
        return None;
    }
    let mut matrix = PairMatrix::new(pairs.latency.cpus().to_vec());
    for (&(a, b), ratios) in found {
        if let Some(value) = ratios.deciding() {
            matrix.set(a, b, value);
        }
    }
    Some(matrix)
}

/// Pairs that may be siblings, the likeliest first.
fn list_candidates(session: &Session<'_>, pairs: &Pairs) -> Vec<(usize, usize)> {
    let n = pairs.len();
    let mut candidates: Vec<(usize, usize, f64)> = Vec::new();
    for a in 0..n {
        let mut row: Vec<(f64, usize)> = (0..n)
            .filter(|&b| b != a && pairs.latency.at(a, b).is_finite())
            .map(|b| (pairs.latency.at(a, b), b))
            .collect();
        row.sort_by(|x, y| x.0.total_cmp(&y.0));
        let lowest = row.first().map_or(f64::NAN, |first| first.0);
        let is_near = |latency: f64| n <= ALL_PAIRS || latency <= NEAR * lowest;
        // The first distant CPU is the check: it must not look like a sibling.
        let reach = row
            .iter()
            .take_while(|(latency, _)| is_near(*latency))
            .count()
            + 1;
        for &(latency, b) in row.iter().take(reach.min(MAX_CANDIDATES)) {
            candidates.push((a.min(b), a.max(b), latency / lowest));
        }
        let reported = (a + 1..n).filter(|&b| pairs.are_reported_siblings(&session.topology, a, b));
        candidates.extend(reported.map(|b| (a, b, 0.0)));
    }
    candidates.sort_by(|x, y| x.2.total_cmp(&y.2).then((x.0, x.1).cmp(&(y.0, y.1))));
    let mut seen = std::collections::BTreeSet::new();
    candidates
        .into_iter()
        .map(|(a, b, _)| (a, b))
        .filter(|pair| seen.insert(*pair))
        .collect()
}

/// How many CPUs are far from each other: that many pairs can be measured at once without sharing a
/// core.
fn count_distant_cpus(pairs: &Pairs) -> usize {
    let n = pairs.len();
    let lowest_latency = |a: usize| {
        let row = (0..n).map(|b| pairs.latency.at(a, b));
        row.filter(|v| v.is_finite()).fold(f64::INFINITY, f64::min)
    };
    let mut distant: Vec<usize> = Vec::new();
    for a in 0..n {
        let reach = 2.0 * lowest_latency(a);
        let is_far = |&b: &usize| pairs.latency.at(a, b) > reach;
        if distant.iter().all(is_far) {
            distant.push(a);
        }
    }
    distant.len().max(1)
}

/// Measures floating-point work on all pairs of the round; other kinds of work on pairs that it slows
/// down or that are reported as siblings.
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
