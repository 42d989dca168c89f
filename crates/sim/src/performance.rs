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
use super::noise::draw_normal;
use super::shape::parse_cpu_list;
use super::wiring::Wiring;
use super::workload::SimWorkload;
use super::{DescriptionError, LONGEST_RUN_S};
use assign::{assign_threads, has_random_rest};
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
const MAX_CACHED_LAYOUTS: usize = 1024;
/// Runs to average for the truth if chance is involved.
const TRUTH_RUNS: u32 = 64;

/// A machine whose runs follow from the threads' places.
#[derive(Debug)]
pub(super) struct Performance {
    keys: Keys,
    figures: Figures,
    table: CpuTable,
    /// Cached layouts: a search asks hundreds of times about a few dozen masks.
    layouts: Mutex<BTreeMap<CpuSet, Arc<Layout>>>,
}

/// A workload on some CPUs: a run to compute.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedWorkload<'a> {
    pub(super) workload: &'a SimWorkload,
    pub(super) cpus: &'a CpuSet,
    pub(super) memory: Option<&'a MemoryBinding>,
}

impl PlacedWorkload<'_> {
    fn threads(&self) -> usize {
        usize::try_from(self.workload.threads).unwrap_or(1).max(1)
    }
}

/// Threads that a run requests: by `--threads` of its command line, or by `OMP_NUM_THREADS` of its
/// environment.
pub(super) fn requested_threads(workload: &Workload) -> Option<u32> {
    let words = workload.command.argv();
    let from_option = words.iter().enumerate().rev().find_map(|(at, word)| {
        let value = word.strip_prefix("--threads")?;
        match value.strip_prefix('=') {
            Some(value) => parse_threads(value),
            None if value.is_empty() => parse_threads(words.get(at + 1)?),
            None => None,
        }
    });
    let mut variables = workload.environment.iter().rev();
    from_option.or_else(|| {
        let (_, value) = variables.find(|(name, _)| name == THREADS_VARIABLE)?;
        parse_threads(value)
    })
}

/// Parses a number of threads. OpenMP accepts a list, one number per level of nesting: the first
/// counts.
fn parse_threads(text: &str) -> Option<u32> {
    let first = text.split(',').next()?.trim();
    first
        .parse()
        .ok()
        .filter(|threads| (1..=MAX_THREADS).contains(threads))
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RunOutcome {
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
            layouts: Mutex::default(),
        })
    }

    /// The layout of these CPUs; `None` if none of them exists.
    fn layout(&self, cpus: &CpuSet) -> Option<Arc<Layout>> {
        let mut layouts = self.layouts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layout) = layouts.get(cpus) {
            return Some(Arc::clone(layout));
        }
        let layout = Arc::new(Layout::new(&self.table, cpus)?);
        if layouts.len() >= MAX_CACHED_LAYOUTS {
            layouts.clear();
        }
        layouts.insert(cpus.clone(), Arc::clone(&layout));
        Some(layout)
    }

    /// Computes a run without noise.
    pub(super) fn play(&self, placed: &PlacedWorkload<'_>, chance: &mut ChaCha8Rng) -> RunOutcome {
        let Some(layout) = self.layout(placed.cpus) else {
            return RunOutcome::without_cpus(placed.workload.base_s);
        };
        let plain = Demand::default();
        let model = Model::new(self, placed, &layout, &plain);
        model.play(chance)
    }

    /// Mean time of runs, s. It is equal for masks that differ only by an exchange of equal units.
    pub(super) fn true_s(&self, placed: &PlacedWorkload<'_>) -> f64 {
        let Some(layout) = self.layout(placed.cpus) else {
            return placed.workload.base_s;
        };
        let plain = Demand::default();
        let model = Model::new(self, placed, &layout, &plain);
        let threads = placed.threads() as u64;
        let mut chance = ChaCha8Rng::seed_from_u64(mix(layout.signature, threads));
        if !has_random_rest(self.keys.policy, placed.threads(), layout.order.len()) {
            return model.play(&mut chance).wall_s;
        }
        let plays = (0..TRUTH_RUNS).map(|_| model.play(&mut chance).wall_s);
        plays.sum::<f64>() / f64::from(TRUTH_RUNS)
    }
}

impl RunOutcome {
    /// A run without an existing CPU.
    const fn without_cpus(base_s: f64) -> Self {
        Self {
            wall_s: base_s,
            busy_s: base_s,
            migrations: 0,
        }
    }
}

/// What does not change from run to run.
struct Model<'a> {
    speed_model: SpeedModel<'a>,
    placed: &'a PlacedWorkload<'a>,
    layout: &'a Layout,
    /// Work of each thread relative to the average.
    weights: Vec<f64>,
    /// This placement's unexplained factor.
    unexplained: f64,
}

impl<'a> Model<'a> {
    fn new(
        machine: &'a Performance,
        placed: &'a PlacedWorkload<'a>,
        layout: &'a Layout,
        plain: &'a Demand,
    ) -> Self {
        let demand = placed.workload.demand.as_ref().unwrap_or(plain);
        Self {
            speed_model: SpeedModel {
                table: &machine.table,
                keys: &machine.keys,
                figures: &machine.figures,
                demand,
            },
            weights: work_weights(placed.threads(), demand),
            unexplained: unexplained_factor(layout, placed.threads(), demand),
            placed,
            layout,
        }
    }

    fn play(&self, chance: &mut ChaCha8Rng) -> RunOutcome {
        let (speed_model, threads) = (&self.speed_model, self.placed.threads());
        let (table, policy) = (speed_model.table, speed_model.keys.policy);
        let draw =
            |chance: &mut ChaCha8Rng| assign_threads(table, self.layout, policy, threads, chance);
        let mut at = draw(chance);
        let homes = Homes::new(table, speed_model.demand, self.placed.memory, &at);
        let serial_s = self.work_s() * speed_model.demand.serial * speed_model.stretch_alone(at[0]);
        let first_s = self.parallel_s(&speed_model.compute_speeds(&at, &homes));
        let (epochs, changes) = self.count_epochs(serial_s + first_s);
        let (mut parallel_s, mut moves, mut refill_s) = (first_s, 0.0, 0.0);
        for _ in 1..epochs {
            let next = draw(chance);
            // Each simulated change represents several.
            let repeats = changes / (epochs as f64 - 1.0);
            let (moved, cold_s) = self.count_moves(&at, &next);
            moves += moved * repeats;
            refill_s += cold_s * repeats;
            at = next;
            parallel_s += self.parallel_s(&speed_model.compute_speeds(&at, &homes));
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
        self.placed.workload.base_s.min(LONGEST_RUN_S)
    }

    /// Time of all parallel work at these speeds.
    fn parallel_s(&self, speeds: &Speeds) -> f64 {
        let demand = self.speed_model.demand;
        let work_s = self.work_s() * (1.0 - demand.serial);
        let threads = self.placed.threads() as f64;
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
    fn count_epochs(&self, wall_s: f64) -> (usize, f64) {
        let (policy, threads) = (self.speed_model.keys.policy, self.placed.threads());
        let Some(rebalance_s) = self.speed_model.keys.rebalance_s else {
            return (1, 0.0);
        };
        if !has_random_rest(policy, threads, self.layout.order.len()) {
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
        let SpeedModel {
            table,
            figures,
            demand,
            ..
        } = self.speed_model;
        let (mut moved, mut cold_s) = (0.0, 0.0);
        let working_set = demand.private_bytes as f64 * demand.migration;
        for (&from, &to) in from.iter().zip(to) {
            if from == to {
                continue;
            }
            moved += 1.0;
            let (from, to) = (&table.cpus[from], &table.cpus[to]);
            if from.core == to.core {
                continue;
            }
            let (lost, gb_per_s) = if from.llc == to.llc {
                (table.l2_bytes[from.core], figures.cache_gb_per_s)
            } else {
                (table.llc_bytes[from.llc], figures.core_gb_per_s)
            };
            cold_s += working_set.min(lost * demand.migration) / (gb_per_s * 1e9);
        }
        (moved, cold_s)
    }
}

/// Work of each thread relative to the average. The same threads have more of it in every run, and
/// the largest has `imbalance` more.
fn work_weights(threads: usize, demand: &Demand) -> Vec<f64> {
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
    (demand.unexplained_sd * draw_normal(&mut chance)).exp()
}

#[cfg(test)]
mod tests;
