//! Measures latencies between pairs of CPUs: one pair at a time or several, with the cache line on
//! each node that matters (its *home*).

use std::collections::BTreeMap;
use std::time::Duration;

use super::estimate::{Effort, Sample};
use super::rounds::schedule_rounds;
use super::session::Session;
use pinwise_machine::{MachineError, Probe};
use pinwise_record::HomeLatency;
use pinwise_topology::Topology;
use pinwise_wiring::PairMatrix;

/// A batch is about 200 round trips: 30 of them take about half a millisecond.
const EFFORT: Effort = Effort {
    least: 30,
    most: 300,
    precision: 0.025,
    limit: Duration::from_millis(60),
};

/// Latencies between pairs. Keys of maps are pairs of rows of the matrix, the smaller row first.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    /// The smallest latency over the homes of the line, ns; estimated from leaders if the pair was
    /// not measured.
    pub(super) latency: PairMatrix,
    /// Was the entry of the matrix measured? Row by row.
    pub(super) is_measured: Vec<bool>,
    /// The measured latencies for each home.
    pub(super) homes: BTreeMap<(usize, usize), Vec<HomeLatency>>,
    /// The latency that 90 % of a pair's batches exceed, ns.
    pub(super) floors: BTreeMap<(usize, usize), f64>,
    /// Pairs without a single good batch.
    pub(super) lost: BTreeMap<(usize, usize), LostBatches>,
    /// Time that it takes to measure a pair.
    pub(super) cost: Duration,
}

/// Discarded batches of a pair that has no good one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LostBatches {
    pub(super) switched: usize,
    pub(super) stolen: usize,
}

impl LostBatches {
    /// Did the hypervisor, rather than other programs, preempt one CPU while the other ran, as for two
    /// virtual CPUs on one hardware thread?
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
            floors: BTreeMap::new(),
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

    fn add_latency(&mut self, (a, b): (usize, usize), home: HomeLatency) {
        let n = self.len();
        let homes = self.homes.entry((a.min(b), a.max(b))).or_default();
        homes.retain(|known| known.home_node != home.home_node);
        homes.push(home);
        let latencies = homes.iter().map(|known| known.median.value);
        self.latency
            .set(a, b, latencies.fold(f64::INFINITY, f64::min));
        self.is_measured[a * n + b] = true;
        self.is_measured[b * n + a] = true;
    }

    /// Does the system report these rows as siblings? A hint on what to measure first, not
    /// evidence.
    pub(super) fn are_reported_siblings(&self, topology: &Topology, a: usize, b: usize) -> bool {
        let core = |row: usize| topology.cpu(self.cpu(row)).and_then(|cpu| cpu.core);
        core(a).is_some() && core(a) == core(b)
    }

    pub(super) fn add_answers(&mut self, answers: &[Answer]) {
        for Answer {
            pair: (a, b),
            home_node,
            sample,
        } in answers
        {
            if let Some(median) = sample.median() {
                let home_node = *home_node;
                let floor = self.floors.entry((*a.min(b), *a.max(b)));
                let floor = floor.or_insert(f64::INFINITY);
                *floor = floor.min(sample.floor());
                self.add_latency((*a, *b), HomeLatency { home_node, median });
            } else if sample.unavailable.is_none() {
                self.add_lost_batches((*a, *b), sample);
            }
        }
    }

    fn add_lost_batches(&mut self, (a, b): (usize, usize), sample: &Sample) {
        let lost = self.lost.entry((a.min(b), a.max(b))).or_default();
        lost.switched += sample.switched;
        lost.stolen += sample.stolen;
    }

    /// Pairs of CPUs that never ran at the same time because the hypervisor runs them in turns.
    pub(super) fn stacked_pairs(&self) -> Vec<(usize, usize, LostBatches)> {
        self.lost
            .iter()
            .filter(|((a, b), lost)| !self.is_measured(*a, *b) && lost.looks_stacked())
            .map(|(&(a, b), &lost)| (self.cpu(a), self.cpu(b), lost))
            .collect()
    }
}

/// Measures these pairs of rows, `width` of them at a time; returns how many were not measured.
pub(super) fn measure_transfers(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    wanted: &[(usize, usize)],
    width: usize,
) -> Result<usize, MachineError> {
    let rounds = schedule_rounds(wanted, width);
    let count = rounds.len();
    for (done, round) in rounds.into_iter().enumerate() {
        if session.time_left().is_zero() {
            break;
        }
        measure_round(session, pairs, &round)?;
        session.report_progress(done as f64 / count as f64);
    }
    let is_missed = |&&(a, b): &&(usize, usize)| !pairs.is_measured(a, b);
    Ok(wanted.iter().filter(is_missed).count())
}

/// The result of a probe.
pub(super) struct Answer {
    /// Rows of the matrix.
    pair: (usize, usize),
    /// The node that the line was on.
    home_node: Option<usize>,
    sample: Sample,
}

/// Measures pairs in parallel and keeps the results.
pub(super) fn measure_round(
    session: &mut Session<'_>,
    pairs: &mut Pairs,
    round: &[(usize, usize)],
) -> Result<(), MachineError> {
    let answers = probe_pairs(session, pairs, round)?;
    pairs.add_answers(&answers);
    Ok(())
}

/// Probes pairs in parallel, with the line on each node that matters.
pub(super) fn probe_pairs(
    session: &mut Session<'_>,
    pairs: &Pairs,
    round: &[(usize, usize)],
) -> Result<Vec<Answer>, MachineError> {
    let homes: Vec<Vec<Option<usize>>> = round
        .iter()
        .map(|&(a, b)| choose_homes(&session.topology, pairs.cpu(a), pairs.cpu(b)))
        .collect();
    let mut answers = Vec::new();
    for turn in 0..2 {
        let requests: Vec<((usize, usize), Option<usize>)> = round
            .iter()
            .zip(&homes)
            .filter_map(|(&pair, homes)| Some((pair, *homes.get(turn)?)))
            .collect();
        if requests.is_empty() {
            break;
        }
        let probes: Vec<Probe> = requests
            .iter()
            .map(|&((a, b), home)| Probe::Transfer {
                a: pairs.cpu(a),
                b: pairs.cpu(b),
                home,
            })
            .collect();
        let samples = session.estimate(&probes, EFFORT)?;
        let requests = requests.into_iter().zip(samples);
        answers.extend(requests.map(|((pair, home_node), sample)| Answer {
            pair,
            home_node,
            sample,
        }));
    }
    Ok(answers)
}

/// The smallest latency of a pair over the homes of its line, ns; NaN if it has none.
pub(super) fn smallest_latency(answers: &[Answer], pair: (usize, usize)) -> f64 {
    answers
        .iter()
        .filter(|answer| answer.pair == pair)
        .filter_map(|answer| answer.sample.median())
        .map(|median| median.value)
        .fold(f64::NAN, f64::min)
}

/// The nodes on which to place the line for a pair: those of its two CPUs. A line on a third node
/// travels through it (the artefact of tools that allocate once: 267 ns instead of 132 on a two-socket
/// EPYC 7742).
fn choose_homes(topology: &Topology, a: usize, b: usize) -> Vec<Option<usize>> {
    if count_usable_nodes(topology) < 2 {
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

pub(super) fn count_usable_nodes(topology: &Topology) -> usize {
    topology.usable_memory_nodes().len().max(1)
}
