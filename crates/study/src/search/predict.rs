//! Predictions of a finished search for placements that it never ran, here or on another machine.

use super::features::{FEATURES, UnitMap, no_arms, usual_mean};
use super::state::{HEAVY_TAILS, TAIL};
use pinwise_placement::space::Space;
use pinwise_record::{SearchRecord, SearchRun};
use pinwise_stats::surrogate::{Belief, Reading, Surrogate, interval, mean_of};
use pinwise_topology::{CpuSet, Topology};

/// Standard deviation of an effect on another machine, relative to here. The tree of a machine says
/// how its CPUs share, not how fast the shared units are.
const ELSEWHERE: f64 = 0.3;

/// A placement to be predicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// As it was written.
    pub name: String,
    /// Its CPUs on the machine asked about.
    pub cpus: CpuSet,
    /// Threads.
    pub threads: usize,
}

/// What is expected of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Expected cost, in the unit of the search's metric (of rates: the
    /// inverse); `None` on another machine, whose speed is not known.
    pub cost: Option<f64>,
    /// Expected cost over that of `os-default` on the machine asked about.
    pub ratio: f64,
    /// Lower end of the 90 % interval of the ratio.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Runs of this very placement that it is based on.
    pub runs: usize,
}

/// Predicts placements of the searched program on a machine: the one that was
/// searched, or another, of which only the tree is known.
///
/// # Errors
/// A sentence, if the record holds too few runs, or was written with other features.
pub fn predict(
    record: &SearchRecord,
    topology: &Topology,
    asks: &[Ask],
) -> Result<Vec<Forecast>, String> {
    let mut model = fit_model(record)?;
    let readings = readings(record);
    if readings.len() < 2 {
        return Err(format!(
            "search {} has {} usable: too few to predict from",
            record.id,
            match readings.len() {
                1 => "1 run".to_owned(),
                _ => "no runs".to_owned(),
            }
        ));
    }
    let is_here = record.host.shape_hash == format!("{:016x}", topology.shape_hash());
    let here = Here::new(record, topology);
    let default = match is_here {
        true => 0,
        false => {
            let threads = default_threads(record).min(topology.allowed.len());
            let features = here.unit_map.features_of_default(threads);
            model.add(features, usual_mean(threads))
        }
    };
    let arms: Vec<usize> = asks
        .iter()
        .map(|ask| match here.arm(ask).filter(|_| is_here) {
            Some(arm) => arm,
            None => {
                let is_free = ask.threads < ask.cpus.len();
                let features = here.unit_map.features(&ask.cpus, ask.threads, is_free);
                model.add(features, usual_mean(ask.threads))
            }
        })
        .collect();
    let belief = model.learn(&readings);
    let inflation = record.model.as_ref().map_or(1.0, |model| model.inflation);
    let widening = HEAVY_TAILS * inflation;
    Ok(arms
        .into_iter()
        .map(|arm| {
            let runs = readings.iter().filter(|reading| reading.arm == arm).count();
            forecast(&belief, arm, default, widening, is_here, runs)
        })
        .collect())
}

fn forecast(
    belief: &Belief,
    arm: usize,
    default: usize,
    widening: f64,
    is_here: bool,
    runs: usize,
) -> Forecast {
    let mut differences = belief.difference(arm, default);
    let mean = mean_of(&differences);
    if !is_here {
        for difference in &mut differences {
            let elsewhere = ELSEWHERE * difference.mean;
            difference.sd = difference.sd.hypot(elsewhere);
        }
    }
    // `os-default` relative to itself is certain.
    let (low, high) = match arm == default {
        true => (0.0, 0.0),
        false => interval(&differences, TAIL, widening),
    };
    Forecast {
        cost: is_here.then(|| belief.arm(arm).mean.exp()),
        ratio: mean.exp(),
        low: low.exp(),
        high: high.exp(),
        runs,
    }
}

/// The searched arms as the model knows them.
fn fit_model(record: &SearchRecord) -> Result<Surrogate, String> {
    let mut arms = no_arms();
    for arm in &record.arms {
        if arm.features.len() != FEATURES.len() {
            return Err(format!(
                "search {} was written by pinwise {}, which described placements differently; search again",
                record.id, record.pinwise_version
            ));
        }
        arms.features.push(arm.features.clone());
        let threads = arm.threads.unwrap_or_else(|| default_threads(record));
        arms.mean.push(usual_mean(threads));
    }
    Ok(Surrogate::new(arms))
}

fn default_threads(record: &SearchRecord) -> usize {
    let plan = &record.plan;
    let threads = plan.default_threads.or(plan.counted_threads);
    threads.unwrap_or(1).max(1)
}

/// The runs that the model learns from.
fn readings(record: &SearchRecord) -> Vec<Reading> {
    let is_used = |run: &&SearchRun| {
        let is_valid = record
            .arms
            .get(run.arm)
            .is_some_and(|arm| arm.invalid.is_none());
        is_valid && run.step.is_search()
    };
    let runs = record.runs.iter().filter(is_used);
    runs.filter_map(|run| {
        Some(Reading {
            arm: run.arm,
            block: run.run.block,
            y: run.run.metric.cost?.ln(),
        })
    })
    .collect()
}

/// The machine asked about, and what of the search was run on equal CPUs.
struct Here<'a> {
    record: &'a SearchRecord,
    topology: &'a Topology,
    space: Space,
    unit_map: UnitMap<'a>,
}

impl<'a> Here<'a> {
    fn new(record: &'a SearchRecord, topology: &'a Topology) -> Self {
        Self {
            record,
            topology,
            space: Space::from_topology(topology),
            unit_map: UnitMap::new(topology),
        }
    }

    /// The searched arm that is this very placement.
    fn arm(&self, ask: &Ask) -> Option<usize> {
        let threads = |arm: &pinwise_record::SearchArm| {
            arm.threads.unwrap_or_else(|| default_threads(self.record))
        };
        if ask.cpus == self.topology.allowed && ask.threads == default_threads(self.record) {
            return Some(0);
        }
        let id = self.space.id(&self.space.occupancy(&ask.cpus)?);
        let arms = self.record.arms.iter();
        let is_it = |arm: &pinwise_record::SearchArm| {
            arm.place_id.as_deref() == Some(&id) && threads(arm) == ask.threads
        };
        arms.clone().position(is_it)
    }
}
