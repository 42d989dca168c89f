//! What a joint plan means for each of its programs, as a few figures that a model learns from:
//! the resources that programs take from each other, as contention models of placement name them
//! (Pandia: Goodman, Varisteas and Harris, `EuroSys` 2017; Bubble-Up: Mars et al., MICRO 2011).
//!
//! A round gives a figure of every program, so each has a model of its own, and the cost of a plan
//! is put together from them.

use super::JointSearch;
use super::places::Place;
use pinwise_stats::normal::upper_tail;
use pinwise_stats::surrogate::{Arms, Belief, Normal, Reading, Surrogate, sd_of, shortfall};
use pinwise_topology::{CpuSet, Level, Topology};
use pinwise_workload::joint::JointProgram;

/// A figure beyond its limit costs this many times what it exceeds it by: a plan that breaks a limit
/// is only taken if none holds.
const BEYOND: f64 = 8.0;
/// ln(cost) this far above the leader's is drawn together: a service without enough CPUs is slower by
/// powers of ten, which says little about plans that matter.
const KNEE: f64 = 0.3;
const BEND: f64 = 0.4;
/// Features of a program that do not depend on who its neighbours are.
const OWN: usize = 8;
/// Features for each neighbour.
const OF_NEIGHBOUR: usize = 4;

/// The machine's units.
pub(super) struct Units {
    cpus: usize,
    cores: Vec<CpuSet>,
    caches: Vec<CpuSet>,
    nodes: Vec<CpuSet>,
}

impl Units {
    pub(super) fn new(topology: &Topology) -> Self {
        Self {
            cpus: topology.allowed.len(),
            cores: topology.units(Level::Core),
            caches: topology.units(Level::Llc),
            nodes: match topology.units(Level::Numa) {
                nodes if nodes.len() >= topology.packages.len() => nodes,
                _ => topology.units(Level::Package),
            },
        }
    }

    /// What a program has in a plan: its CPUs, and what each other program takes of them, of their
    /// cores, caches and nodes.
    fn features(&self, place: &Place, program: usize) -> Vec<f64> {
        let own = &place[program];
        let all = self.cpus.max(2) as f64;
        let users = |cpu: usize| place.iter().filter(|cpus| cpus.contains(cpu)).count();
        let share: f64 = own.iter().map(|cpu| 1.0 / users(cpu).max(1) as f64).sum();
        let lack = (all / share.max(0.1)).ln() / all.ln();
        let used = |units: &[CpuSet]| units.iter().filter(|unit| unit.intersects(own)).count();
        let span = |units: &[CpuSet]| {
            let others = units.len().saturating_sub(1).max(1);
            used(units).saturating_sub(1) as f64 / others as f64
        };
        let mut features = vec![
            lack,
            // Where more CPUs no longer help is learnt, too.
            (lack - 0.2).max(0.0),
            (lack - 0.4).max(0.0),
            (lack - 0.6).max(0.0),
            1.0 - share / own.len().max(1) as f64,
            1.0 - used(&self.cores) as f64 / own.len().max(1) as f64,
            span(&self.caches),
            span(&self.nodes),
        ];
        for (other, cpus) in place.iter().enumerate() {
            if other != program {
                features.push(overlap(own, cpus));
                features.push(neighbourhood(own, &cpus.difference(own), &self.cores));
                features.push(neighbourhood(own, cpus, &self.caches));
                // Bandwidth of memory.
                features.push(neighbourhood(own, cpus, &self.nodes));
            }
        }
        features
    }
}

/// The share of its CPUs that another has as well.
fn overlap(own: &CpuSet, other: &CpuSet) -> f64 {
    own.intersection(other).len() as f64 / own.len().max(1) as f64
}

/// How much of the units around its CPUs another has.
fn neighbourhood(own: &CpuSet, other: &CpuSet, units: &[CpuSet]) -> f64 {
    let around = units.iter().filter(|unit| unit.intersects(own));
    let around = around.map(|unit| {
        let mine = unit.intersection(own).len() as f64;
        mine * unit.intersection(other).len() as f64 / unit.len().max(1) as f64
    });
    around.sum::<f64>() / own.len().max(1) as f64
}

/// The models of all programs.
pub(super) struct Models {
    units: Units,
    surrogates: Vec<Surrogate>,
    beliefs: Vec<Belief>,
    /// Of each program.
    readings: Vec<Vec<Reading>>,
    /// Weight of each program; they sum to 1. ln(cost) of its limit.
    weights: Vec<(f64, Option<f64>)>,
}

impl Models {
    pub(super) fn new(search: &JointSearch, places: &[Place], units: Units) -> Self {
        let programs = search.programs.len();
        let arms = |program: usize| Arms {
            features: places
                .iter()
                .map(|place| units.features(place, program))
                .collect(),
            relative_sd: relative_sd(programs),
            absolute_sd: vec![0.0; OWN + OF_NEIGHBOUR * (programs - 1)],
            mean: vec![0.0; places.len()],
            loose: vec![0],
        };
        let limit =
            |program: &JointProgram| program.limit.map(|limit| program.metric.cost(limit).ln());
        let weights = search.weights();
        Self {
            surrogates: (0..programs).map(|p| Surrogate::new(arms(p))).collect(),
            units,
            beliefs: Vec::new(),
            readings: vec![Vec::new(); programs],
            weights: weights
                .into_iter()
                .zip(search.programs.iter().map(limit))
                .collect(),
        }
    }

    /// All features of all programs, for a choice of first plans.
    pub(super) fn joint_arms(&self) -> Arms {
        let parts = || self.surrogates.iter().map(Surrogate::arms);
        let count = parts().next().map_or(0, |arms| arms.mean.len());
        Arms {
            features: (0..count)
                .map(|arm| parts().flat_map(|p| p.features[arm].clone()).collect())
                .collect(),
            relative_sd: parts().flat_map(|p| p.relative_sd.clone()).collect(),
            absolute_sd: parts().flat_map(|p| p.absolute_sd.clone()).collect(),
            mean: vec![0.0; count],
            loose: Vec::new(),
        }
    }

    /// Takes in a round: ln(cost) of each program.
    pub(super) fn take(&mut self, arm: usize, block: usize, costs: &[f64]) {
        for (readings, &y) in self.readings.iter_mut().zip(costs) {
            readings.push(Reading { arm, block, y });
        }
    }

    /// Adds a plan.
    pub(super) fn add(&mut self, place: &Place) {
        for (program, model) in self.surrogates.iter_mut().enumerate() {
            model.add(self.units.features(place, program), 0.0);
        }
    }

    /// Learns from all rounds; plans that come close to `leader` matter.
    pub(super) fn learn(&mut self, leader: usize) {
        let both = self.surrogates.iter_mut().zip(&self.readings);
        let learned = both.map(|(model, readings)| {
            let own = readings.iter().filter(|reading| reading.arm == leader);
            let own: Vec<f64> = own.map(|reading| reading.y).collect();
            let knee = pinwise_stats::describe::mean(&own) + KNEE;
            let bent: Vec<Reading> = readings
                .iter()
                .map(|reading| Reading {
                    y: bend(reading.y, knee),
                    ..*reading
                })
                .collect();
            model.learn(&bent)
        });
        self.beliefs = learned.collect();
    }

    /// What a plan cost in its rounds, as ln; `None` if it had none.
    pub(super) fn measured(&self, arm: usize) -> Option<f64> {
        let parts = self.readings.iter().zip(&self.weights);
        parts
            .map(|(readings, (weight, limit))| {
                let own = readings.iter().filter(|reading| reading.arm == arm);
                let own: Vec<f64> = own.map(|reading| reading.y).collect();
                let mean = pinwise_stats::describe::mean(&own);
                let beyond = limit.map_or(0.0, |limit| (mean - limit).max(0.0));
                (!own.is_empty()).then(|| weight * mean + BEYOND * beyond)
            })
            .sum()
    }

    /// What a plan is expected to cost, as ln: the weighted mean, and what limits it breaks.
    pub(super) fn cost(&self, arm: usize) -> f64 {
        let parts = self.beliefs.iter().zip(&self.weights);
        parts
            .map(|(belief, (weight, limit))| {
                let expected = belief.arm(arm);
                let beyond = limit.map_or(0.0, |limit| {
                    expect_below(limit - expected.mean, expected.sd)
                });
                weight * expected.mean + BEYOND * beyond
            })
            .sum()
    }

    /// How much better than another a plan is expected to be, if it is (expected improvement: Jones,
    /// Schonlau and Welch, J. Global Optim. 1998).
    pub(super) fn promise(&self, arm: usize, leader: usize) -> f64 {
        let parts = self.beliefs.iter().zip(&self.weights);
        let variance: f64 = parts
            .map(|(belief, (weight, limit))| {
                let sd = sd_of(&belief.difference(arm, leader));
                let expected = belief.arm(arm);
                // Near its limit a figure counts for more.
                let near = limit.map_or(0.0, |limit| {
                    let z = (expected.mean - limit) / expected.sd.max(1e-9);
                    BEYOND * upper_tail(-z) * upper_tail(z - 2.0)
                });
                ((weight + near) * sd).powi(2)
            })
            .sum();
        expect_below(self.cost(arm) - self.cost(leader), variance.sqrt())
    }

    /// How unlike two plans are, 0 to 1.
    pub(super) fn distance(&self, a: usize, b: usize) -> f64 {
        let squares = self.surrogates.iter().flat_map(|model| {
            let [a, b] = [a, b].map(|arm| model.arms().features[arm].iter());
            a.zip(b).map(|(x, y)| (x - y).powi(2))
        });
        let mean = squares.sum::<f64>() / self.surrogates.len().max(1) as f64;
        1.0 - (-mean / 0.05).exp()
    }
}

fn relative_sd(programs: usize) -> Vec<f64> {
    let mut sd = vec![1.5, 1.5, 1.5, 1.5, 1.0, 0.7, 0.5, 0.7];
    for _ in 1..programs {
        sd.extend([0.7, 0.7, 0.7, 0.7]);
    }
    sd
}

fn bend(y: f64, knee: f64) -> f64 {
    match y - knee {
        beyond if beyond > 0.0 => knee + BEND * (1.0 + beyond / BEND).ln(),
        _ => y,
    }
}

/// How far a normal value is expected to lie below 0, values above counting as none.
fn expect_below(mean: f64, sd: f64) -> f64 {
    let law = Normal {
        weight: 1.0,
        mean,
        sd: sd.max(1e-9),
    };
    shortfall(&[law], 1.0)
}
