//! Latency between pairs of CPUs: all of them where time allows, else through
//! leaders.
//!
//! ```text
//! few CPUs, or undisturbed in parallel ─► every pair
//! else: `leaders` ─► a random sample of what was skipped is measured after all
//! ```
//!
//! Pairs are measured side by side only as wide as was shown, on this machine
//! and at this moment, not to change the figures.

use std::collections::BTreeMap;
use std::time::Duration;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::estimate::{Effort, Sample};
use super::leaders;
use super::rounds::{rounds, tournament};
use super::session::Session;
use pinwise_machine::{MachineError, Probe};
use pinwise_record::HomeLatency;
use pinwise_stats::describe::quantile;
use pinwise_topology::Topology;
use pinwise_wiring::PairMatrix;

/// A batch is some 200 round trips: 30 of them take about half a millisecond.
const EFFORT: Effort = Effort {
    least: 30,
    most: 300,
    precision: 0.025,
    limit: Duration::from_millis(60),
};
/// Pairs in parallel may change each other's figures by this share.
const DISTURBANCE: f64 = 1.06;
/// Pairs that the disturbance is judged by.
const JUDGED_PAIRS: usize = 6;
/// Fewer CPUs are measured one pair after the other: it takes no time.
const LEAST_PARALLEL: usize = 8;
/// Skipped pairs that are measured after all: this share of them, within
/// these bounds.
const VERIFIED_SHARE: f64 = 0.02;
const VERIFIED: (usize, usize) = (30, 200);
/// A skipped pair disagrees where it is off by this factor: what separates
/// levels is larger, what separates places on one mesh smaller.
const DISAGREES: f64 = 1.5;

/// Latencies between pairs.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    /// The smallest over the homes of the line, ns; taken from leaders where
    /// it was not measured.
    pub(super) latency: PairMatrix,
    /// Was the entry measured? Row by row.
    pub(super) is_measured: Vec<bool>,
    /// What was measured, by rows.
    pub(super) homes: BTreeMap<(usize, usize), Vec<HomeLatency>>,
    /// Pairs without a single good batch, by rows.
    pub(super) lost: BTreeMap<(usize, usize), Lost>,
    /// Time of a pair measured alone.
    cost: Duration,
}

/// Batches of a pair that gave none.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lost {
    pub(super) switched: usize,
    pub(super) stolen: usize,
}

impl Lost {
    /// The hypervisor took the CPU from one whenever the other ran, and no
    /// program of ours did: two virtual CPUs on one hardware thread.
    pub(super) const fn looks_stacked(self) -> bool {
        self.stolen > self.switched
    }
}

impl Pairs {
    pub(super) fn new(topology: &Topology) -> Self {
        let cpus: Vec<usize> = topology.allowed.iter().collect();
        Self {
            is_measured: vec![false; cpus.len() * cpus.len()],
            latency: PairMatrix::new(cpus),
            homes: BTreeMap::new(),
            lost: BTreeMap::new(),
            cost: Duration::ZERO,
        }
    }

    pub(super) fn cpu(&self, row: usize) -> usize {
        self.latency.cpus()[row]
    }

    pub(super) fn len(&self) -> usize {
        self.latency.len()
    }

    pub(super) fn is_measured(&self, a: usize, b: usize) -> bool {
        self.is_measured[a * self.len() + b]
    }

    fn note(&mut self, (a, b): (usize, usize), home: HomeLatency) {
        let n = self.len();
        let homes = self.homes.entry((a.min(b), a.max(b))).or_default();
        homes.retain(|known| known.home_node != home.home_node);
        homes.push(home);
        let least = homes.iter().map(|known| known.median.value);
        self.latency.set(a, b, least.fold(f64::INFINITY, f64::min));
        self.is_measured[a * n + b] = true;
        self.is_measured[b * n + a] = true;
    }

    /// Does the system call these rows siblings? A hint on what to measure
    /// first, no evidence.
    pub(super) fn are_reported_siblings(&self, topology: &Topology, a: usize, b: usize) -> bool {
        let core = |row: usize| topology.cpu(self.cpu(row)).and_then(|cpu| cpu.core);
        core(a).is_some() && core(a) == core(b)
    }

    fn note_all(&mut self, answers: &[Answer]) {
        for (pair, home_node, sample) in answers {
            if let Some(median) = sample.median() {
                let home_node = *home_node;
                self.note(*pair, HomeLatency { home_node, median });
            } else if sample.unavailable.is_none() {
                self.note_lost(*pair, sample);
            }
        }
    }

    fn note_lost(&mut self, (a, b): (usize, usize), sample: &Sample) {
        let lost = self.lost.entry((a.min(b), a.max(b))).or_default();
        lost.switched += sample.switched;
        lost.stolen += sample.stolen;
    }

    /// Pairs of CPUs that never ran at the same time since the hypervisor runs
    /// them in turn.
    pub(super) fn stacked(&self) -> Vec<(usize, usize, Lost)> {
        self.lost
            .iter()
            .filter(|((a, b), lost)| !self.is_measured(*a, *b) && lost.looks_stacked())
            .map(|(&(a, b), &lost)| (self.cpu(a), self.cpu(b), lost))
            .collect()
    }
}

/// Measures the pairs of the allowed CPUs within the part's time.
pub(super) fn measure(
    session: &mut Session<'_>,
    chance: &mut ChaCha8Rng,
    pairs: &mut Pairs,
) -> Result<(), MachineError> {
    *pairs = Pairs::new(&session.topology);
    if pairs.len() < 2 {
        return Ok(());
    }
    let width = widest_undisturbed(session, pairs, chance)?;
    session.effort.parallel_pairs = width;
    let all = tournament(pairs.len());
    let homes = usable_nodes(&session.topology).min(2);
    let needed = pairs.cost * u32::try_from(all.len() * homes / width).unwrap_or(u32::MAX);
    let missed = if pairs.len() <= LEAST_PARALLEL || needed <= session.left() {
        transfers(session, pairs, &all, width)?
    } else {
        leaders::measure(session, pairs, width, chance)?
    };
    if missed > 0 {
        session.leave_out(format!(
            "{missed} of {} pairs of CPUs (time budget used up); a larger --budget measures them.",
            all.len()
        ));
    }
    verify(session, pairs, chance)
}

/// Measures these pairs of rows, `width` of them at a time; says how many
/// there was no time for.
pub(super) fn transfers(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    wanted: &[(usize, usize)],
    width: usize,
) -> Result<usize, MachineError> {
    let rounds = rounds(wanted, width);
    let count = rounds.len();
    for (done, round) in rounds.into_iter().enumerate() {
        if session.left().is_zero() {
            break;
        }
        measure_round(session, pairs, &round)?;
        session.report_progress(done as f64 / count as f64);
    }
    let is_missed = |&&(a, b): &&(usize, usize)| !pairs.is_measured(a, b);
    Ok(wanted.iter().filter(is_missed).count())
}

/// A pair, the node its line was on, and what the probe gave.
type Answer = ((usize, usize), Option<usize>, Sample);

/// Measures pairs at once and notes what came out.
fn measure_round(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    round: &[(usize, usize)],
) -> Result<(), MachineError> {
    let answers = ask(session, pairs, round)?;
    pairs.note_all(&answers);
    Ok(())
}

/// Probes pairs at once, with the line on each node that matters.
fn ask(
    session: &mut Session<'_>,
    pairs: &Pairs,
    round: &[(usize, usize)],
) -> Result<Vec<Answer>, MachineError> {
    let homes: Vec<Vec<Option<usize>>> = round
        .iter()
        .map(|&(a, b)| homes(&session.topology, pairs.cpu(a), pairs.cpu(b)))
        .collect();
    let mut answers = Vec::new();
    for turn in 0..2 {
        let now: Vec<((usize, usize), Option<usize>)> = round
            .iter()
            .zip(&homes)
            .filter_map(|(&pair, homes)| Some((pair, *homes.get(turn)?)))
            .collect();
        if now.is_empty() {
            break;
        }
        let probes: Vec<Probe> = now
            .iter()
            .map(|&((a, b), home)| Probe::Transfer {
                a: pairs.cpu(a),
                b: pairs.cpu(b),
                home,
            })
            .collect();
        let samples = session.estimate(&probes, EFFORT)?;
        let with_pair = now.into_iter().zip(samples);
        answers.extend(with_pair.map(|((pair, home), sample)| (pair, home, sample)));
    }
    Ok(answers)
}

/// The smallest latency of a pair over the homes of its line; NaN where there
/// is none.
fn least(answers: &[Answer], wanted: (usize, usize)) -> f64 {
    answers
        .iter()
        .filter(|(pair, _, _)| *pair == wanted)
        .filter_map(|(_, _, sample)| sample.median())
        .map(|median| median.value)
        .fold(f64::NAN, f64::min)
}

/// Nodes on which the line is put for a pair: those of its two CPUs, since a
/// line that lives on a third one travels through it (the artefact of tools
/// that allocate once: 267 ns instead of 132 on a two-socket EPYC 7742).
fn homes(topology: &Topology, a: usize, b: usize) -> Vec<Option<usize>> {
    if usable_nodes(topology) < 2 {
        return vec![None];
    }
    let node = |cpu: usize| {
        let index = topology.cpu(cpu)?.numa_node?;
        let node = &topology.numa_nodes[index];
        topology
            .usable_memory_nodes()
            .iter()
            .any(|usable| usable.node == node.node)
            .then_some(node.node)
    };
    let mut homes: Vec<Option<usize>> = [node(a), node(b)]
        .into_iter()
        .filter(Option::is_some)
        .collect();
    homes.dedup();
    if homes.is_empty() {
        homes.push(None);
    }
    homes
}

fn usable_nodes(topology: &Topology) -> usize {
    topology.usable_memory_nodes().len().max(1)
}

/// The largest number of pairs at once that leaves the figures as they are
/// alone: all, half, a quarter of what fits, or 1.
fn widest_undisturbed(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    chance: &mut ChaCha8Rng,
) -> Result<usize, MachineError> {
    let n = pairs.len();
    let mut rows: Vec<usize> = (0..n).collect();
    rows.shuffle(chance);
    let disjoint: Vec<(usize, usize)> = rows.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    let judged = &disjoint[..disjoint.len().min(JUDGED_PAIRS)];
    let before = alone(session, pairs, judged)?;
    if n < LEAST_PARALLEL {
        return Ok(1);
    }
    for share in [1, 2, 4] {
        let width = (disjoint.len() / share).max(1);
        if width == 1 {
            break;
        }
        let together = at_once(session, pairs, &disjoint[..width.max(judged.len())], judged)?;
        let after = alone(session, pairs, judged)?;
        let ratios: Vec<f64> = (0..judged.len())
            .map(|i| together[i] / (before[i] * after[i]).sqrt())
            .filter(|ratio| ratio.is_finite())
            .collect();
        let is_like_alone = !ratios.is_empty()
            && quantile(&ratios, 0.5) <= DISTURBANCE
            && quantile(&ratios, 0.8) <= DISTURBANCE.powi(2);
        if is_like_alone {
            return Ok(width);
        }
    }
    Ok(1)
}

/// Medians of these pairs, one after the other; also learns what one costs.
fn alone(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    judged: &[(usize, usize)],
) -> Result<Vec<f64>, MachineError> {
    let started = session.elapsed();
    for &pair in judged {
        measure_round(session, pairs, &[pair])?;
    }
    let spent = session.elapsed().saturating_sub(started);
    pairs.cost = spent / u32::try_from(judged.len().max(1)).unwrap_or(1);
    Ok(judged
        .iter()
        .map(|&(a, b)| pairs.latency.at(a, b))
        .collect())
}

/// Medians of the judged pairs while all the others run too. Only judged by,
/// not kept.
fn at_once(
    session: &mut Session<'_>,
    pairs: &Pairs,
    all: &[(usize, usize)],
    judged: &[(usize, usize)],
) -> Result<Vec<f64>, MachineError> {
    let answers = ask(session, pairs, all)?;
    Ok(judged.iter().map(|&pair| least(&answers, pair)).collect())
}

/// Measures a random sample of what was skipped, or was measured side by
/// side, alone.
fn verify(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    chance: &mut ChaCha8Rng,
) -> Result<(), MachineError> {
    let mut to_verify: Vec<(usize, usize)> = tournament(pairs.len())
        .into_iter()
        .filter(|&(a, b)| !pairs.is_measured(a, b) && pairs.latency.at(a, b).is_finite())
        .collect();
    if to_verify.is_empty() && session.effort.parallel_pairs > 1 {
        to_verify = tournament(pairs.len());
    }
    to_verify.shuffle(chance);
    to_verify.truncate(sample_size(to_verify.len()));
    for (a, b) in to_verify {
        if session.left().is_zero() {
            break;
        }
        let measured = pairs.latency.at(a, b);
        let answers = ask(session, pairs, &[(a, b)])?;
        let found = least(&answers, (a, b));
        if !found.is_finite() {
            continue;
        }
        session.effort.pairs_verified += 1;
        if found > DISAGREES * measured || measured > DISAGREES * found {
            session.effort.pairs_disagreed += 1;
        }
        pairs.note_all(&answers);
    }
    Ok(())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a small number"
)]
fn sample_size(to_verify: usize) -> usize {
    let share = (VERIFIED_SHARE * to_verify as f64) as usize;
    share.clamp(VERIFIED.0, VERIFIED.1).min(to_verify)
}
