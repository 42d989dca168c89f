//! A model of the cost of joint plans, learnt from rounds.
//!
//! Its features are the resources that programs take from each other, as in contention models of
//! placement (Pandia: Goodman, Varisteas and Harris, `EuroSys` 2017; Bubble-Up: Mars et al., MICRO
//! 2011). A round gives a figure of every program, so each program has a model of its own; the cost
//! of a plan is computed from them.

use super::JointSearch;
use super::places::Place;
use pinwise_stats::normal::upper_tail;
use pinwise_stats::surrogate::{
    Arms, Belief, Coefficient, Normal, Reading, Surrogate, sd_of, shortfall,
};
use pinwise_topology::{CpuSet, Level, Topology};
use pinwise_workload::joint::JointProgram;

/// Added to the ln(cost) of a plan for each broken limit, so that such a plan is taken only if no plan
/// keeps all limits.
const BROKEN_LIMIT_COST: f64 = 2.0;
/// Added to ln(cost) for each unit of `ln` by which a figure exceeds its limit.
const EXCESS_COST: f64 = 8.0;
/// From this far above the leader's, ln(cost) is compressed: a service without enough CPUs is slower
/// by powers of ten, which says little about plans that matter.
const KNEE: f64 = 0.3;
/// Scale of the compression.
const COMPRESSION: f64 = 0.4;
/// Features of a program that do not tell its neighbours apart.
const SHARED_FEATURES: usize = 13;
/// Features for each neighbour.
const NEIGHBOUR_FEATURES: usize = 4;
/// Prior standard deviation of the cost of any neighbour, relative to the scale of effects.
const COMMON_SD: f64 = 0.5;
/// Prior standard deviation of what a particular neighbour costs beyond that.
const INDIVIDUAL_SD: f64 = 0.4;

/// The machine's cores, last-level caches and memory nodes.
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

    /// The features of a program in a plan: its CPUs, and what the other programs take of these CPUs,
    /// of their cores, caches and nodes.
    fn features(&self, place: &Place, program: usize) -> Vec<f64> {
        let own = &place[program];
        let all = self.cpus.max(2) as f64;
        let users = |cpu: usize| place.iter().filter(|cpus| cpus.contains(cpu)).count();
        let share: f64 = own.iter().map(|cpu| 1.0 / users(cpu).max(1) as f64).sum();
        let lack = (all / share.max(0.1)).ln() / all.ln();
        // The lack of CPUs if the other programs spread their load over all of their CPUs.
        let load = all / place.len() as f64;
        let loads = |cpu: usize| -> f64 {
            let others = place
                .iter()
                .enumerate()
                .filter(|&(other, _)| other != program);
            let sharing = others.filter(|(_, cpus)| cpus.contains(cpu));
            sharing
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
            // Hinges, from which the model learns from which number on further CPUs do not help.
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
        let each: Vec<[f64; NEIGHBOUR_FEATURES]> = others
            .map(|(_, cpus)| {
                [
                    overlap(own, cpus),
                    share_of_units(own, &cpus.difference(own), &self.cores),
                    share_of_units(own, cpus, &self.caches),
                    // Bandwidth of memory.
                    share_of_units(own, cpus, &self.nodes),
                ]
            })
            .collect();
        // Means over the neighbours, from which the model learns what any neighbour costs.
        for kind in 0..NEIGHBOUR_FEATURES {
            let all: f64 = each.iter().map(|one| one[kind]).sum();
            features.push(all / each.len().max(1) as f64);
        }
        features.extend(each.into_iter().flatten());
        features
    }
}

/// The share of the program's CPUs that the other program may use, too.
fn overlap(own: &CpuSet, other: &CpuSet) -> f64 {
    own.intersection(other).len() as f64 / own.len().max(1) as f64
}

/// The share of the units of the program's CPUs that the other program may use, on average over
/// these CPUs.
fn share_of_units(own: &CpuSet, other: &CpuSet, units: &[CpuSet]) -> f64 {
    let shared = units
        .iter()
        .filter(|unit| unit.intersects(own))
        .map(|unit| {
            let own_cpus = unit.intersection(own).len() as f64;
            own_cpus * unit.intersection(other).len() as f64 / unit.len().max(1) as f64
        });
    shared.sum::<f64>() / own.len().max(1) as f64
}

/// The models of all programs.
pub(super) struct Models {
    units: Units,
    surrogates: Vec<Surrogate>,
    beliefs: Vec<Belief>,
    /// By program.
    readings: Vec<Vec<Reading>>,
    /// By program.
    goals: Vec<Goal>,
    /// By program: the limit, compressed like the readings.
    compressed_limits: Vec<Option<f64>>,
}

/// How a program counts in the cost of a plan.
struct Goal {
    /// Its weight; all weights sum to 1.
    weight: f64,
    /// `ln(cost)` of its limit.
    limit: Option<f64>,
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
            absolute_sd: vec![0.0; SHARED_FEATURES + NEIGHBOUR_FEATURES * (programs - 1)],
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
            compressed_limits: Vec::new(),
            readings: vec![Vec::new(); programs],
            goals: weights
                .into_iter()
                .zip(search.programs.iter().map(limit))
                .map(|(weight, limit)| Goal { weight, limit })
                .collect(),
        }
    }

    /// The features of all programs together, to choose the first plans.
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

    /// Adds a round of plan `arm`: ln(cost) of each program.
    pub(super) fn add_round(&mut self, arm: usize, block: usize, costs: &[f64]) {
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

    /// Learns from all rounds; costs far above those of `leader` are compressed.
    pub(super) fn learn(&mut self, leader: usize) {
        let knees = self.readings.iter().map(|readings| {
            let of_leader = readings.iter().filter(|reading| reading.arm == leader);
            let costs: Vec<f64> = of_leader.map(|reading| reading.y).collect();
            pinwise_stats::describe::mean(&costs) + KNEE
        });
        let knees: Vec<f64> = knees.collect();
        let goals = self.goals.iter().zip(&knees);
        self.compressed_limits = goals
            .map(|(goal, &knee)| goal.limit.map(|limit| compress(limit, knee)))
            .collect();
        let programs = self.surrogates.iter_mut().zip(&self.readings);
        let beliefs = programs.zip(&knees).map(|((model, readings), &knee)| {
            let compressed: Vec<Reading> = readings
                .iter()
                .map(|reading| Reading {
                    y: compress(reading.y, knee),
                    ..*reading
                })
                .collect();
            model.learn(&compressed)
        });
        self.beliefs = beliefs.collect();
    }

    /// Measured ln(cost) of a plan, penalties for limits included; `None` if it has not run.
    pub(super) fn measured_cost(&self, arm: usize) -> Option<f64> {
        let programs = self.readings.iter().zip(&self.goals);
        programs
            .map(|(readings, goal)| {
                let of_arm = readings.iter().filter(|reading| reading.arm == arm);
                let costs: Vec<f64> = of_arm.map(|reading| reading.y).collect();
                let mean = pinwise_stats::describe::mean(&costs);
                let excess = goal.limit.map_or(0.0, |limit| (mean - limit).max(0.0));
                let broken = if excess > 0.0 { BROKEN_LIMIT_COST } else { 0.0 };
                (!costs.is_empty()).then_some(goal.weight * mean + broken + EXCESS_COST * excess)
            })
            .sum()
    }

    /// Belief, weight and compressed limit of each program.
    fn programs(&self) -> impl Iterator<Item = (&Belief, f64, Option<f64>)> {
        let limits = &self.compressed_limits;
        let programs = self.beliefs.iter().zip(&self.goals).zip(limits);
        programs.map(|((belief, goal), limit)| (belief, goal.weight, *limit))
    }

    /// Expected ln(cost) of a plan, with expected penalties for limits.
    pub(super) fn expected_cost(&self, arm: usize) -> f64 {
        self.programs()
            .map(|(belief, weight, limit)| {
                let expected = belief.arm(arm);
                let broken = limit.map_or(0.0, |limit| {
                    BROKEN_LIMIT_COST * chance_beyond(&expected, limit)
                        + EXCESS_COST * expect_below(limit - expected.mean, expected.sd)
                });
                weight * expected.mean + broken
            })
            .sum()
    }

    /// Expected improvement of a plan over the leader, in ln(cost), times the chance that it keeps
    /// the limits (constrained expected improvement: Schonlau, Welch and Jones 1998).
    pub(super) fn expected_improvement(&self, arm: usize, leader: usize) -> f64 {
        // If the leader breaks a limit, improvement in the penalty counts instead of the chance.
        let keeps_limits = self
            .programs()
            .all(|(belief, _, limit)| limit.is_none_or(|limit| belief.arm(leader).mean <= limit));
        let (mut difference, mut variance, mut chance) = (0.0, 0.0, 1.0);
        for (belief, weight, limit) in self.programs() {
            let expected = belief.arm(arm);
            let sd = sd_of(&belief.difference(arm, leader));
            difference += weight * (expected.mean - belief.arm(leader).mean);
            let beyond = limit.map_or(0.0, |limit| chance_beyond(&expected, limit));
            chance *= 1.0 - beyond;
            let slope = if keeps_limits {
                0.0
            } else {
                EXCESS_COST * beyond
            };
            variance += ((weight + slope) * sd).powi(2);
        }
        match keeps_limits {
            true => chance * expect_below(difference, variance.sqrt()),
            false => {
                let difference = self.expected_cost(arm) - self.expected_cost(leader);
                expect_below(difference, variance.sqrt())
            }
        }
    }

    /// How much two plans differ in their features, from 0 to 1.
    pub(super) fn feature_distance(&self, a: usize, b: usize) -> f64 {
        let squares = self.surrogates.iter().flat_map(|model| {
            let [a, b] = [a, b].map(|arm| model.arms().features[arm].iter());
            a.zip(b).map(|(x, y)| (x - y).powi(2))
        });
        let mean = squares.sum::<f64>() / self.surrogates.len().max(1) as f64;
        1.0 - (-mean / 0.05).exp()
    }
}

/// Prior standard deviation of the effect of each feature, relative to the scale of effects.
fn relative_sd(programs: usize) -> Vec<f64> {
    let mut sd = vec![1.5, 1.5, 1.5, 1.5, 1.0, 0.7, 0.5, 0.7, 1.5];
    let others = programs.saturating_sub(1);
    sd.extend([COMMON_SD * others as f64; NEIGHBOUR_FEATURES]);
    sd.extend(vec![INDIVIDUAL_SD; NEIGHBOUR_FEATURES * others]);
    sd
}

/// `y` up to the knee; above it grows with the logarithm only.
fn compress(y: f64, knee: f64) -> f64 {
    match y - knee {
        excess if excess > 0.0 => knee + COMPRESSION * (1.0 + excess / COMPRESSION).ln(),
        _ => y,
    }
}

/// The probability that a figure exceeds its limit.
fn chance_beyond(figure: &Coefficient, limit: f64) -> f64 {
    upper_tail((limit - figure.mean) / figure.sd.max(1e-9))
}

/// Expected distance of a normal value below 0; values above count as 0.
fn expect_below(mean: f64, sd: f64) -> f64 {
    let value = Normal {
        weight: 1.0,
        mean,
        sd: sd.max(1e-9),
    };
    shortfall(&[value], 1.0)
}
