//! How a simulated machine is really wired, and what probes find there.
//!
//! A batch is `figure of the true wiring × noise`, and takes about as long as on a real machine, so
//! that budgets are meaningful. The reported topology is deliberately not used.

mod description;
mod drift;
mod memory;
mod transfer;
mod truth;

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::description::PROBES;
pub(super) use self::description::{Figures, Wiring};
use self::drift::Drift;
use self::truth::{Shared, Truth};
use super::noise::draw_normal;
use super::{LONGEST_RUN_S, SimulatedMachine};
use pinwise_machine::{Batches, MachineError, Probe, Prober};
use pinwise_topology::Topology;

/// Time to start and pin threads, per call.
const START_S: f64 = 1e-4;

/// Transfers of a batch: 200 round trips, short enough to avoid most interruptions of a busy
/// machine.
const TRANSFERS: f64 = 400.0;

/// Time of the work of one side of a contention batch, alone.
const CONTENTION_S: f64 = 1e-4;

/// Slowdown of two CPUs on one hardware thread: they take turns.
const STACKED_CONTENTION: f64 = 2.0;

/// Share of the batches of CPUs on one hardware thread in which steal is seen: it is counted in clock
/// ticks, which are longer than a batch.
const STACKED_STOLEN_SHARE: f64 = 0.5;

impl Wiring {
    /// Cost of a spin-wait hint, and of waking a sleeper, ns.
    pub(super) const fn hint_and_wake_ns(&self) -> (f64, f64) {
        (self.figures.pause_ns, self.figures.futex_wake_ns)
    }

    /// The machine's true topology; of several states the first.
    pub(super) fn true_topology(&self) -> &Topology {
        &self.states[0].truth.topology
    }
}

/// State of probing a simulated machine.
#[derive(Debug)]
pub(super) struct Probing {
    drift: Drift,
    chance: ChaCha8Rng,
    /// Fixes the lasting differences between pairs.
    salt: u64,
    /// `ln` of the common factor of all latencies.
    wander: f64,
    /// When `wander` was drawn, s.
    drawn_s: f64,
}

impl Probing {
    /// Uses streams 2 and 3 of the seed; runs use 1.
    pub(super) fn new(wiring: &Wiring, seed: u64) -> Self {
        let stream = |number| {
            let mut chance = ChaCha8Rng::seed_from_u64(seed);
            chance.set_stream(number);
            chance
        };
        let mut chance = stream(3);
        let salt = chance.random();
        let sd = wiring.figures.wander.map_or(0.0, |wander| wander.sd);
        Self {
            drift: Drift::new(&wiring.states, stream(2)),
            wander: sd * draw_normal(&mut chance),
            drawn_s: 0.0,
            salt,
            chance,
        }
    }

    /// The common factor of all latencies now: an Ornstein–Uhlenbeck process.
    fn wander_factor(&mut self, now_s: f64, figures: &Figures) -> f64 {
        let Some(wander) = figures.wander else {
            return 1.0;
        };
        let kept = (-(now_s - self.drawn_s) / wander.time_s).exp();
        let fresh = wander.sd * (1.0 - kept * kept).max(0.0).sqrt();
        self.wander = kept * self.wander + fresh * draw_normal(&mut self.chance);
        self.drawn_s = now_s;
        self.wander.exp()
    }
}

/// One batch of a probe without noise.
#[derive(Debug, Clone, Copy)]
struct Batch {
    value: f64,
    /// Another value and the share of batches that have it.
    other: Option<(f64, f64)>,
    background: Option<f64>,
    /// How many times a reading of the clock contains the value; 0 if it is not a reading.
    repeats: f64,
    takes_s: f64,
    /// Share of batches with steal, beyond that of the machine.
    stolen: f64,
    /// Is it disturbed by other load?
    is_latency: bool,
}

impl Batch {
    const fn new(value: f64, repeats: f64, takes_s: f64) -> Self {
        Self {
            value,
            other: None,
            background: None,
            repeats,
            takes_s,
            stolen: 0.0,
            is_latency: false,
        }
    }

    /// A batch of this many repetitions of something that takes `ns`.
    fn timed(ns: f64, repeats: f64) -> Self {
        Self::new(ns, repeats, ns * repeats * 1e-9)
    }
}

impl Prober for SimulatedMachine {
    fn probe(
        &mut self,
        probes: &[Probe],
        batches: usize,
        limit: Duration,
    ) -> Result<Vec<Batches>, MachineError> {
        let wiring = &self.description.wiring;
        let begin_s = self.now_s + START_S;
        let wander = self.probing.wander_factor(begin_s, &wiring.figures);
        self.probing.drift.forget_before(begin_s);
        let mut call = Call {
            wiring,
            probing: &mut self.probing,
            disturbance: if probes.len() > 1 {
                wiring.figures.parallel_disturbance * wander
            } else {
                wander
            },
            begin_s,
            limit_s: limit.as_secs_f64().min(LONGEST_RUN_S),
            batches,
        };
        let mut longest_s = 0.0f64;
        let results = probes
            .iter()
            .map(|probe| {
                let (batches, took_s) = call.run_probe(probe);
                longest_s = longest_s.max(took_s);
                batches
            })
            .collect();
        self.now_s = begin_s + longest_s;
        Ok(results)
    }
}

/// Limits the discarded batches of a probe.
const MAX_LOST: usize = 100_000;

/// One call of `probe`.
struct Call<'a> {
    wiring: &'a Wiring,
    probing: &'a mut Probing,
    /// Factor on latencies in this call.
    disturbance: f64,
    begin_s: f64,
    limit_s: f64,
    batches: usize,
}

impl Call<'_> {
    /// Simulates a probe; returns its result and duration, s.
    fn run_probe(&mut self, probe: &Probe) -> (Batches, f64) {
        if let Some(reason) = self.find_refusal(probe) {
            return (Batches::unavailable(reason), 0.0);
        }
        let ignores_affinity = self.wiring.figures.ignores_affinity;
        let mut result = Batches {
            was_in_place: !ignores_affinity,
            ..Batches::default()
        };
        let mut spent_s = memory::preparation_s(probe).min(self.limit_s);
        // The batch of a state, which is constant while the state lasts.
        let mut cached: Option<(usize, Batch)> = None;
        let mut tries = 0;
        while result.values.len() < self.batches {
            // CPUs that take turns may lose every batch, and batches of no length would then repeat
            // for ever.
            tries += 1;
            if tries > MAX_LOST + self.batches {
                spent_s = self.limit_s;
                break;
            }
            let states = &self.wiring.states;
            let state = self.probing.drift.state_at(self.begin_s + spent_s, states);
            let batch = match cached {
                Some((cached_state, batch)) if cached_state == state && !ignores_affinity => batch,
                _ => self.expected_batch(probe, state),
            };
            cached = Some((state, batch));
            spent_s += batch.takes_s;
            if spent_s > self.limit_s {
                // Threads that wait for each other longer than the time limit share one hardware
                // thread: the hypervisor's doing.
                result.stolen += usize::from(batch.stolen > 0.0);
                spent_s = self.limit_s;
                break;
            }
            self.draw_batch(batch, &mut result);
        }
        (result, spent_s)
    }

    /// Why the probe is not available, if so.
    fn find_refusal(&self, probe: &Probe) -> Option<String> {
        let figures = &self.wiring.figures;
        let name = probe_name(probe);
        if figures.lacks.iter().any(|lacking| lacking == name) {
            return Some(format!("This machine is described as lacking {name}."));
        }
        if let Probe::Hint { hint, .. } = probe {
            return Some(format!("A simulated machine has no {}.", hint.name()));
        }
        let (cpus, node) = (probe.cpus(), probe.node());
        let truth = &self.wiring.states[0].truth;
        if let Some(cpu) = cpus.iter().find(|&&cpu| !truth.has(cpu)) {
            return Some(format!("No such CPU: {cpu}."));
        }
        if let Some(node) = node.filter(|node| !self.wiring.nodes.contains(node)) {
            return Some(format!("No such NUMA node: {node}."));
        }
        let needs_two = matches!(probe, Probe::Transfer { .. } | Probe::Contention { .. });
        if cpus.is_empty() || (needs_two && cpus[0] == cpus[1]) {
            return Some(format!("The probe {name} needs two different CPUs."));
        }
        None
    }

    /// The batch of a probe in this state of the machine, before noise.
    fn expected_batch(&mut self, probe: &Probe, state: usize) -> Batch {
        let figures = &self.wiring.figures;
        let truth = &self.wiring.states[state].truth;
        let batch = match *probe {
            Probe::Transfer { a, b, home } => {
                let (a, b) = self.running_cpus(a, b, truth);
                return self.transfer_batch(a, b, home, truth);
            }
            Probe::Contention { a, b, .. } => {
                let (a, b) = self.running_cpus(a, b, truth);
                contention_batch(truth.innermost_shared(a, b), figures)
            }
            Probe::Pause { .. } | Probe::PauseCycles { .. } | Probe::PauseCounted { .. } => {
                pause_batch(probe, figures)
            }
            // Refused before.
            Probe::Hint { .. } => Batch::new(f64::NAN, 0.0, 0.0),
            Probe::Cycle { .. } => Batch::timed(1.0 / figures.ghz, 60_000.0),
            Probe::Tick { .. } => {
                Batch::timed(1.0 / figures.tick_ghz.unwrap_or(figures.ghz), 60_000.0)
            }
            Probe::TimerStep { .. } => Batch::new(figures.timer_step_ns, 0.0, 1e-5),
            Probe::ContextSwitch { .. } => Batch::timed(figures.context_switch_ns, 200.0),
            Probe::FutexWake { waker, sleeper } if waker == sleeper => {
                Batch::timed(figures.context_switch_ns, 200.0)
            }
            Probe::FutexWake { .. } => Batch::timed(figures.futex_wake_ns, 100.0),
            Probe::Chase { .. } | Probe::Bandwidth { .. } | Probe::LoadedLatency { .. } => {
                memory::memory_batch(probe, truth, figures)
            }
        };
        self.disturb(batch)
    }

    /// Applies this call's disturbance to a latency.
    fn disturb(&self, batch: Batch) -> Batch {
        let factor = if batch.is_latency {
            self.disturbance
        } else {
            1.0
        };
        Batch {
            value: batch.value * factor,
            takes_s: batch.takes_s * factor,
            ..batch
        }
    }

    fn transfer_batch(&self, a: usize, b: usize, home: Option<usize>, truth: &Truth) -> Batch {
        let figures = &self.wiring.figures;
        let shared = truth.innermost_shared(a, b);
        let pair_factor = (figures.pair_sd * pair_deviation(a, b, self.probing.salt)).exp();
        let ns = truth.transfer_ns(a, b, home, figures) * pair_factor;
        let is_stacked = shared == Shared::Thread;
        self.disturb(Batch {
            is_latency: !is_stacked,
            stolen: if is_stacked {
                STACKED_STOLEN_SHARE
            } else {
                0.0
            },
            ..Batch::timed(ns, TRANSFERS)
        })
    }

    /// The CPUs that the threads really run on.
    fn running_cpus(&mut self, a: usize, b: usize, truth: &Truth) -> (usize, usize) {
        if !self.wiring.figures.ignores_affinity {
            return (a, b);
        }
        let cpus: Vec<usize> = truth.topology.online.iter().collect();
        let first = self.probing.chance.random_range(0..cpus.len());
        let others = cpus.len().max(2) - 1;
        let second = (first + 1 + self.probing.chance.random_range(0..others)) % cpus.len();
        (cpus[first], cpus[second])
    }

    /// Draws a batch with its noise: adds its value to the result, or why it was discarded.
    fn draw_batch(&mut self, batch: Batch, result: &mut Batches) {
        let figures = &self.wiring.figures;
        let chance = &mut self.probing.chance;
        let stolen = figures.stolen + batch.stolen;
        if figures.switched + stolen > 0.0 {
            let fate: f64 = chance.random();
            if fate < stolen {
                result.stolen += 1;
                return;
            }
            if fate < stolen + figures.switched {
                result.switched += 1;
                return;
            }
        }
        let mut factor = if batch.repeats > 0.0 {
            (figures.noise_sd * draw_normal(chance)).exp()
        } else {
            1.0
        };
        if let Some(outliers) = figures.outliers
            && chance.random::<f64>() < outliers.share
        {
            factor *= outliers.factor;
        }
        let truth = match batch.other {
            Some((other, share)) if chance.random::<f64>() < share => other,
            _ => batch.value,
        };
        let step = figures.timer_step_ns / batch.repeats;
        let value = truth * factor;
        result.values.push(
            if figures.timer_step_ns > 1.0 && step > 0.0 && step.is_finite() {
                // A batch begins anywhere within a step of the clock.
                (value / step + chance.random::<f64>()).floor() * step
            } else {
                value
            },
        );
        if let Some(background) = batch.background {
            result.background.push(background * factor.recip());
        }
    }
}

fn contention_batch(shared: Shared, figures: &Figures) -> Batch {
    let ratio = match shared {
        Shared::Thread => STACKED_CONTENTION,
        Shared::Core => figures.smt_contention,
        _ => figures.other_contention,
    };
    Batch {
        stolen: match shared {
            Shared::Thread => STACKED_STOLEN_SHARE,
            _ => 0.0,
        },
        // Both times are long compared with any clock's step.
        ..Batch::new(ratio, f64::INFINITY, CONTENTION_S * (1.0 + ratio))
    }
}

fn pause_batch(probe: &Probe, figures: &Figures) -> Batch {
    let is_cycles = matches!(
        probe,
        Probe::PauseCycles { .. } | Probe::PauseCounted { .. }
    );
    let unit = if is_cycles { figures.ghz } else { 1.0 };
    let modes = figures.pause_modes;
    Batch {
        value: figures.pause_ns * unit,
        other: modes.map(|mode| (mode.ns * unit, mode.share)),
        ..Batch::timed(figures.pause_ns, 1000.0)
    }
}

/// A standard normal figure of the pair, the same in every call.
fn pair_deviation(a: usize, b: usize, salt: u64) -> f64 {
    let pair = ((a.min(b) as u64) << 32) | a.max(b) as u64;
    let mut chance = ChaCha8Rng::seed_from_u64(salt ^ pair);
    draw_normal(&mut chance)
}

/// The probe's word in `lacks`.
const fn probe_name(probe: &Probe) -> &'static str {
    PROBES[match probe {
        Probe::Transfer { .. } => 0,
        Probe::Contention { .. } => 1,
        Probe::Pause { .. } => 2,
        Probe::PauseCycles { .. } => 3,
        Probe::Cycle { .. } => 4,
        Probe::Tick { .. } => 5,
        Probe::TimerStep { .. } => 6,
        Probe::Chase { .. } => 7,
        Probe::Bandwidth { .. } => 8,
        Probe::LoadedLatency { .. } => 9,
        Probe::ContextSwitch { .. } => 10,
        Probe::FutexWake { .. } => 11,
        Probe::PauseCounted { .. } => 12,
        Probe::Hint { .. } => 13,
    }]
}

#[cfg(test)]
mod tests;
