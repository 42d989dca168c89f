//! Runs whose time follows from the threads' places: a performance model in closed form.
//!
//! A run is cut into a few epochs. In each, threads are where the scheduler put them; siblings
//! share issue slots and inner caches, neighbours the last-level cache, nodes' memory and links
//! between packages; partners communicate over distances; with static work distribution all wait
//! for the slowest. The structure is published (see `speed`); the figures are the description's.
//! The model is independent of the one that search uses.

mod assign;
mod cpu_table;
mod crowd;
mod keys;
mod layout;
mod speed;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::checker::Checker;
use super::demand::{Demand, Split};
use super::noise::gaussian;
use super::shape::parse_cpu_list;
use super::wiring::Wiring;
use super::workload::SimWorkload;
use super::{DescriptionError, LONGEST_RUN_S};
use assign::{assign, is_free};
use cpu_table::CpuTable;
use keys::Figures;
pub(super) use keys::Keys;
use layout::{Layout, mix};
use pinwise_format::whole;
use pinwise_placement::MemoryBinding;
use pinwise_topology::{CpuSet, Topology};
use pinwise_workload::Workload;
use speed::{Homes, SpeedModel, Speeds};

/// Environment variable that sets the number of threads.
const THREADS_VARIABLE: &str = "OMP_NUM_THREADS";
const MAX_THREADS: u32 = 65_536;
/// Limits the epochs of a run: more show nothing new.
const MAX_EPOCHS: usize = 4;
/// Limits the cached layouts.
const MAX_CACHED: usize = 1024;
/// Runs to average for the truth if chance is involved.
const TRUE_PLAYS: u32 = 64;

/// A machine whose runs follow from the threads' places.
#[derive(Debug)]
pub(super) struct Performance {
    keys: Keys,
    figures: Figures,
    table: CpuTable,
    /// Cached layouts: a search asks hundreds of times about a few dozen masks.
    known: Mutex<BTreeMap<CpuSet, Arc<Layout>>>,
}

/// A run to compute.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) workload: &'a SimWorkload,
    pub(super) cpus: &'a CpuSet,
    pub(super) memory: Option<&'a MemoryBinding>,
}

impl Order<'_> {
    fn threads(&self) -> usize {
        usize::try_from(self.workload.threads).unwrap_or(1).max(1)
    }
}

/// Threads that a run requests: by `--threads` of its command line, or by `OMP_NUM_THREADS` of its
/// environment.
pub(super) fn asked_threads(workload: &Workload) -> Option<u32> {
    let words = workload.command.argv();
    let emitted = words.iter().enumerate().rev().find_map(|(at, word)| {
        let value = word.strip_prefix("--threads")?;
        match value.strip_prefix('=') {
            Some(value) => threads_of(value),
            None if value.is_empty() => threads_of(words.get(at + 1)?),
            None => None,
        }
    });
    let variables = workload.environment.iter().rev();
    let mut set = variables.filter(|(name, _)| name == THREADS_VARIABLE);
    emitted.or_else(|| threads_of(&set.next()?.1))
}

/// OpenMP accepts a list, one number per level of nesting: the first counts.
fn threads_of(text: &str) -> Option<u32> {
    let first = text.split(',').next()?.trim();
    first
        .parse()
        .ok()
        .filter(|threads| (1..=MAX_THREADS).contains(threads))
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunOutcome {
    /// s.
    pub(super) wall_s: f64,
    /// CPU time of all threads, s.
    pub(super) busy_s: f64,
    /// Moves of threads to another CPU.
    pub(super) migrations: u64,
}

impl Performance {
    /// `speeds` are those of the topology's kinds, in its order.
    pub(super) fn new(
        keys: Keys,
        topology: &Topology,
        speeds: &[f64],
        wiring: &Wiring,
        checker: &Checker<'_>,
    ) -> Result<Self, DescriptionError> {
        keys.check(checker)?;
        let present = topology.cpus.iter().map(|cpu| cpu.id).collect();
        let key = "performance.slow_cpus";
        let slow = parse_cpu_list(checker, key, keys.slow_cpus.as_deref(), &present)?;
        let mut table = CpuTable::new(wiring.true_topology(), topology, speeds, &keys);
        table.slow_down(&slow.unwrap_or_default(), keys.slow_speed);
        Ok(Self {
            figures: keys.figures(wiring),
            table,
            keys,
            known: Mutex::default(),
        })
    }

    /// The layout of these CPUs; `None` if none of them exists.
    fn layout(&self, cpus: &CpuSet) -> Option<Arc<Layout>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layout) = known.get(cpus) {
            return Some(Arc::clone(layout));
        }
        let layout = Arc::new(Layout::new(&self.table, cpus)?);
        if known.len() >= MAX_CACHED {
            known.clear();
        }
        known.insert(cpus.clone(), Arc::clone(&layout));
        Some(layout)
    }

    /// A run without noise.
    pub(super) fn play(&self, order: &Order<'_>, chance: &mut ChaCha8Rng) -> RunOutcome {
        let Some(layout) = self.layout(order.cpus) else {
            return RunOutcome::nowhere(order.workload.base_s);
        };
        let plain = Demand::default();
        let scene = Scene::new(self, order, &layout, &plain);
        scene.play(chance)
    }

    /// Mean time of runs, s; the same for masks that differ only by an exchange of equal units.
    pub(super) fn true_s(&self, order: &Order<'_>) -> f64 {
        let Some(layout) = self.layout(order.cpus) else {
            return order.workload.base_s;
        };
        let plain = Demand::default();
        let scene = Scene::new(self, order, &layout, &plain);
        let threads = order.threads() as u64;
        let mut chance = ChaCha8Rng::seed_from_u64(mix(layout.signature, threads));
        if !is_free(self.keys.policy, order.threads(), layout.order.len()) {
            return scene.play(&mut chance).wall_s;
        }
        let plays = (0..TRUE_PLAYS).map(|_| scene.play(&mut chance).wall_s);
        plays.sum::<f64>() / f64::from(TRUE_PLAYS)
    }
}

impl RunOutcome {
    /// A run without an existing CPU.
    const fn nowhere(base_s: f64) -> Self {
        Self {
            wall_s: base_s,
            busy_s: base_s,
            migrations: 0,
        }
    }
}

/// The deterministic part of a run.
struct Scene<'a> {
    law: SpeedModel<'a>,
    order: &'a Order<'a>,
    layout: &'a Layout,
    /// Work of each thread relative to the average.
    weights: Vec<f64>,
    /// This placement's unexplained factor.
    unexplained: f64,
}

impl<'a> Scene<'a> {
    fn new(
        machine: &'a Performance,
        order: &'a Order<'a>,
        layout: &'a Layout,
        plain: &'a Demand,
    ) -> Self {
        let demand = order.workload.demand.as_ref().unwrap_or(plain);
        Self {
            law: SpeedModel {
                table: &machine.table,
                keys: &machine.keys,
                figures: &machine.figures,
                demand,
            },
            weights: weights(order.threads(), demand),
            unexplained: unexplained_factor(layout, order.threads(), demand),
            order,
            layout,
        }
    }

    fn play(&self, chance: &mut ChaCha8Rng) -> RunOutcome {
        let (law, threads) = (&self.law, self.order.threads());
        let draw = |chance: &mut ChaCha8Rng| {
            assign(law.table, self.layout, law.keys.policy, threads, chance)
        };
        let mut at = draw(chance);
        let homes = Homes::new(law.table, law.demand, self.order.memory, &at);
        let serial_s = self.work_s() * law.demand.serial * law.alone_at(at[0]);
        let first_s = self.parallel_s(&law.speeds(&at, &homes));
        let (epochs, changes) = self.epochs(serial_s + first_s);
        let (mut parallel_s, mut moves, mut refill_s) = (first_s, 0.0, 0.0);
        for _ in 1..epochs {
            let next = draw(chance);
            // Each simulated change represents several.
            let repeats = changes / (epochs as f64 - 1.0);
            let (moved, cold_s) = self.count_moves(&at, &next);
            moves += moved * repeats;
            refill_s += cold_s * repeats;
            at = next;
            parallel_s += self.parallel_s(&law.speeds(&at, &homes));
        }
        parallel_s /= epochs as f64;
        let running_s = parallel_s + refill_s / threads as f64;
        let cpus = threads.min(self.layout.order.len()) as f64;
        RunOutcome {
            wall_s: (serial_s + running_s) * self.unexplained,
            busy_s: (serial_s + running_s * cpus) * self.unexplained,
            migrations: whole(moves),
        }
    }

    fn work_s(&self) -> f64 {
        self.order.workload.base_s.min(LONGEST_RUN_S)
    }

    /// Time of all parallel work at these speeds.
    fn parallel_s(&self, speeds: &Speeds) -> f64 {
        let demand = self.law.demand;
        let work_s = self.work_s() * (1.0 - demand.serial);
        let threads = self.order.threads() as f64;
        let computed = match demand.split {
            Split::Static => {
                let own = speeds.stretch.iter().zip(&self.weights);
                own.map(|(stretch, weight)| stretch * weight)
                    .fold(0.0, f64::max)
                    / threads
            }
            Split::Dynamic => {
                let rate: f64 = speeds.stretch.iter().map(|stretch| stretch.recip()).sum();
                rate.recip()
            }
        };
        let barrier_ns = 2.0 * threads.log2() * speeds.farthest_ns;
        work_s * (computed + demand.barriers_per_s * barrier_ns * 1e-9)
    }

    /// Simulated epochs, and the true number of reassignments.
    fn epochs(&self, wall_s: f64) -> (usize, f64) {
        let (policy, threads) = (self.law.keys.policy, self.order.threads());
        let Some(rebalance_s) = self.law.keys.rebalance_s else {
            return (1, 0.0);
        };
        if !is_free(policy, threads, self.layout.order.len()) {
            return (1, 0.0);
        }
        let changes = (wall_s / rebalance_s).floor();
        let epochs = (1..MAX_EPOCHS)
            .filter(|&epoch| changes >= epoch as f64)
            .count()
            + 1;
        (epochs, changes)
    }

    /// Threads that moved, and the seconds they need to refill caches.
    fn count_moves(&self, from: &[usize], to: &[usize]) -> (f64, f64) {
        let (law, mut moved, mut cold_s) = (&self.law, 0.0, 0.0);
        let own = law.demand.private_bytes as f64 * law.demand.migration;
        for (&from, &to) in from.iter().zip(to) {
            if from == to {
                continue;
            }
            moved += 1.0;
            let (from, to) = (&law.table.cpus[from], &law.table.cpus[to]);
            if from.core == to.core {
                continue;
            }
            let (lost, gb_per_s) = if from.llc == to.llc {
                (law.table.l2_bytes[from.core], law.figures.cache_gb_per_s)
            } else {
                (law.table.llc_bytes[from.llc], law.figures.core_gb_per_s)
            };
            cold_s += own.min(lost * law.demand.migration) / (gb_per_s * 1e9);
        }
        (moved, cold_s)
    }
}

/// Work of each thread relative to the average: always the same threads have more of it, and the
/// largest has `imbalance` more.
fn weights(threads: usize, demand: &Demand) -> Vec<f64> {
    let draw = |thread: usize| {
        let bits = mix(demand.unexplained_seed, thread as u64) >> 11;
        bits as f64 / 2f64.powi(53)
    };
    let draws: Vec<f64> = (0..threads).map(draw).collect();
    let mean = draws.iter().sum::<f64>() / threads as f64;
    let most = draws.iter().copied().fold(0.0, f64::max);
    let span = (most - mean).max(f64::MIN_POSITIVE);
    let weight = |draw: f64| (1.0 + demand.imbalance * (draw - mean) / span).max(0.0);
    if most <= mean {
        return vec![1.0; threads];
    }
    draws.into_iter().map(weight).collect()
}

/// A placement's factor that no model can explain.
fn unexplained_factor(layout: &Layout, threads: usize, demand: &Demand) -> f64 {
    if demand.unexplained_sd <= 0.0 {
        return 1.0;
    }
    let key = mix(
        mix(layout.signature, threads as u64),
        demand.unexplained_seed,
    );
    let mut chance = ChaCha8Rng::seed_from_u64(key);
    // The first numbers of neighbouring seeds are independent; one is skipped for runs that draw
    // from the same signature.
    let _: f64 = chance.random();
    (demand.unexplained_sd * gaussian(&mut chance)).exp()
}

#[cfg(test)]
mod tests;
