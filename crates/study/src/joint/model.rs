//! What a joint plan means for each of its programs, as a few figures that a model learns from:
//! the resources that programs take from each other, as contention models of placement name them
//! (Pandia: Goodman, Varisteas and Harris, `EuroSys` 2017; Bubble-Up: Mars et al., MICRO 2011).
//!
//! A round gives a figure of every program, so each has a model of its own, and the cost of a plan
//! is put together from them.

use super::JointSearch;
use super::places::Place;
use pinwise_stats::normal::upper_tail;
use pinwise_stats::surrogate::{
    Arms, Belief, Coefficient, Normal, Reading, Surrogate, sd_of, shortfall,
};
use pinwise_topology::{CpuSet, Level, Topology};
use pinwise_workload::joint::JointProgram;

/// A figure beyond its limit costs this much, as ln, and this many times what it exceeds it by: a plan
/// that breaks a limit is only taken if none holds.
const BROKEN: f64 = 2.0;
const BEYOND: f64 = 8.0;
/// ln(cost) this far above the leader's is drawn together: a service without enough CPUs is slower by
/// powers of ten, which says little about plans that matter.
const KNEE: f64 = 0.3;
const BEND: f64 = 0.4;
/// Features of a program that do not depend on who its neighbours are.
const OWN: usize = 13;
/// Standard deviation of what any neighbour costs, and of what one costs beyond that, relative to the
/// scale of effects.
const COMMON_SD: f64 = 0.5;
const OWN_SD: f64 = 0.4;
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
        // The same if the others spread their threads over all that they have.
        let load = all / place.len() as f64;
        let loads = |cpu: usize| -> f64 {
            let others = place
                .iter()
                .enumerate()
                .filter(|&(other, _)| other != program);
            let there = others.filter(|(_, cpus)| cpus.contains(cpu));
            there
                .map(|(_, cpus)| (load / cpus.len() as f64).min(1.0))
                .sum()
        };
        let spread: f64 = own.iter().map(|cpu| 1.0 / (1.0 + loads(cpu))).sum();
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
            (all / spread.max(0.1)).ln() / all.ln(),
        ];
        let others = place
            .iter()
            .enumerate()
            .filter(|&(other, _)| other != program);
        let each: Vec<[f64; OF_NEIGHBOUR]> = others
            .map(|(_, cpus)| {
                [
                    overlap(own, cpus),
                    neighbourhood(own, &cpus.difference(own), &self.cores),
                    neighbourhood(own, cpus, &self.caches),
                    // Bandwidth of memory.
                    neighbourhood(own, cpus, &self.nodes),
                ]
            })
            .collect();
        // What neighbours have in common is learnt from all of them.
        for kind in 0..OF_NEIGHBOUR {
            let all: f64 = each.iter().map(|one| one[kind]).sum();
            features.push(all / each.len().max(1) as f64);
        }
        features.extend(each.into_iter().flatten());
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
    /// The limits, drawn together as what was learnt.
    limits: Vec<Option<f64>>,
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
            limits: Vec::new(),
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
        let knees = self.readings.iter().map(|readings| {
            let own = readings.iter().filter(|reading| reading.arm == leader);
            let own: Vec<f64> = own.map(|reading| reading.y).collect();
            pinwise_stats::describe::mean(&own) + KNEE
        });
        let knees: Vec<f64> = knees.collect();
        let limits = self.weights.iter().zip(&knees);
        self.limits = limits
            .map(|((_, limit), &knee)| limit.map(|limit| bend(limit, knee)))
            .collect();
        let both = self.surrogates.iter_mut().zip(&self.readings);
        let learned = both.zip(&knees).map(|((model, readings), &knee)| {
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
                let broken = if beyond > 0.0 { BROKEN } else { 0.0 };
                (!own.is_empty()).then(|| weight * mean + broken + BEYOND * beyond)
            })
            .sum()
    }

    /// Belief, weight and limit of each program.
    fn parts(&self) -> impl Iterator<Item = (&Belief, f64, Option<f64>)> {
        let each = self.beliefs.iter().zip(&self.weights).zip(&self.limits);
        each.map(|((belief, (weight, _)), limit)| (belief, *weight, *limit))
    }

    /// What a plan is expected to cost, as ln: the weighted mean, and what limits it breaks.
    pub(super) fn cost(&self, arm: usize) -> f64 {
        self.parts()
            .map(|(belief, weight, limit)| {
                let expected = belief.arm(arm);
                let broken = limit.map_or(0.0, |limit| {
                    BROKEN * chance_beyond(&expected, limit)
                        + BEYOND * expect_below(limit - expected.mean, expected.sd)
                });
                weight * expected.mean + broken
            })
            .sum()
    }

    /// How much better than another a plan is expected to be, if it is and keeps the limits (constrained
    /// expected improvement: Schonlau, Welch and Jones 1998).
    pub(super) fn promise(&self, arm: usize, leader: usize) -> f64 {
        // Beside a leader that keeps the limits, what may break one promises less, however uncertain.
        let keeps_limits = self
            .parts()
            .all(|(belief, _, limit)| limit.is_none_or(|limit| belief.arm(leader).mean <= limit));
        let (mut difference, mut variance, mut chance) = (0.0, 0.0, 1.0);
        for (belief, weight, limit) in self.parts() {
            let expected = belief.arm(arm);
            let sd = sd_of(&belief.difference(arm, leader));
            difference += weight * (expected.mean - belief.arm(leader).mean);
            let beyond = limit.map_or(0.0, |limit| chance_beyond(&expected, limit));
            chance *= 1.0 - beyond;
            let slope = if keeps_limits { 0.0 } else { BEYOND * beyond };
            variance += ((weight + slope) * sd).powi(2);
        }
        match keeps_limits {
            true => chance * expect_below(difference, variance.sqrt()),
            false => expect_below(self.cost(arm) - self.cost(leader), variance.sqrt()),
        }
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
    let mut sd = vec![1.5, 1.5, 1.5, 1.5, 1.0, 0.7, 0.5, 0.7, 1.5];
    let others = programs.saturating_sub(1);
    sd.extend([COMMON_SD * others as f64; OF_NEIGHBOUR]);
    sd.extend(vec![OWN_SD; OF_NEIGHBOUR * others]);
    sd
}

fn bend(y: f64, knee: f64) -> f64 {
    match y - knee {
        beyond if beyond > 0.0 => knee + BEND * (1.0 + beyond / BEND).ln(),
        _ => y,
    }
}

/// The chance that a figure is beyond its limit.
fn chance_beyond(figure: &Coefficient, limit: f64) -> f64 {
    upper_tail((limit - figure.mean) / figure.sd.max(1e-9))
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
