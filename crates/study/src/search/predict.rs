//! Predicts, from the record of a search, placements that it never ran, on the same machine or
//! another.

use super::features::{FEATURES, UnitMap, expected_mean, no_arms};
use super::state::{HEAVY_TAILS, TAIL};
use pinwise_placement::space::Space;
use pinwise_record::{SearchRecord, SearchRun};
use pinwise_stats::surrogate::{Belief, Reading, Surrogate, interval, mean_of};
use pinwise_topology::{CpuSet, Topology};

/// Standard deviation of an effect on another machine, relative to its size on the searched one: a
/// topology tells which units CPUs share, not how fast these are.
const OTHER_MACHINE_SD: f64 = 0.3;

/// A placement to predict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PredictionRequest {
    /// The placement as the user wrote it.
    pub name: String,
    /// Its CPUs on the machine for which to predict.
    pub cpus: CpuSet,
    /// Number of threads.
    pub threads: usize,
}

/// The prediction for a placement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Expected cost, in the unit of the search's metric (for rates, its inverse); `None` on another
    /// machine, whose speed is not known.
    pub cost: Option<f64>,
    /// Expected cost over that of `os-default` on the same machine.
    pub ratio: f64,
    /// Lower end of the 90 % interval of the ratio.
    pub low: f64,
    /// Upper end of the 90 % interval of the ratio.
    pub high: f64,
    /// Number of runs of exactly this placement in the search.
    pub runs: usize,
}

/// Predicts placements of the searched program on a machine with this topology: the searched one, or
/// another.
///
/// # Errors
/// A sentence, if the record has too few runs, or was written with other features.
pub fn predict(
    record: &SearchRecord,
    topology: &Topology,
    requests: &[PredictionRequest],
) -> Result<Vec<Forecast>, String> {
    let mut model = fit_model(record)?;
    let readings = read_runs(record);
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
    let machine = TargetMachine::new(record, topology);
    let default = match is_here {
        true => 0,
        false => {
            let threads = default_threads(record).min(topology.allowed.len());
            let features = machine.unit_map.features_of_default(threads);
            model.add(features, expected_mean(threads))
        }
    };
    let arms: Vec<usize> = requests
        .iter()
        .map(
            |request| match machine.find_arm(request).filter(|_| is_here) {
                Some(arm) => arm,
                None => {
                    let PredictionRequest { cpus, threads, .. } = request;
                    let features = machine.unit_map.features_of_free(cpus, *threads);
                    model.add(features, expected_mean(*threads))
                }
            },
        )
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
            let transfer_sd = OTHER_MACHINE_SD * difference.mean;
            difference.sd = difference.sd.hypot(transfer_sd);
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

/// A model with the arms of the search, without their runs.
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
        arms.mean.push(expected_mean(threads));
    }
    Ok(Surrogate::new(arms))
}

fn default_threads(record: &SearchRecord) -> usize {
    let plan = &record.plan;
    let threads = plan.default_threads.or(plan.counted_threads);
    threads.unwrap_or(1).max(1)
}

/// The runs that the model learns from.
fn read_runs(record: &SearchRecord) -> Vec<Reading> {
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

/// The machine for which to predict.
struct TargetMachine<'a> {
    record: &'a SearchRecord,
    topology: &'a Topology,
    space: Space,
    unit_map: UnitMap<'a>,
}

impl<'a> TargetMachine<'a> {
    fn new(record: &'a SearchRecord, topology: &'a Topology) -> Self {
        Self {
            record,
            topology,
            space: Space::from_topology(topology),
            unit_map: UnitMap::new(topology),
        }
    }

    /// The arm of the search that has the same placement, on the searched machine.
    fn find_arm(&self, request: &PredictionRequest) -> Option<usize> {
        let threads = |arm: &pinwise_record::SearchArm| {
            arm.threads.unwrap_or_else(|| default_threads(self.record))
        };
        if request.cpus == self.topology.allowed && request.threads == default_threads(self.record)
        {
            return Some(0);
        }
        let id = self.space.id(&self.space.occupancy(&request.cpus)?);
        let is_same = |arm: &pinwise_record::SearchArm| {
            arm.place_id.as_deref() == Some(&id) && threads(arm) == request.threads
        };
        self.record.arms.iter().position(is_same)
    }
}
