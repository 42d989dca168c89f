//! `search predict`: predicts placements that a search did not run.

use anyhow::{Context, bail};

use super::Exit;
use super::args::{Global, PredictArgs};
use super::machine::open_machine;
use super::opening::require_store;
use super::search::{
    find_planned_default_threads, load_search, rebuild_workload, too_many_threads_error,
};
use super::terminal::Terminal;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::{Machine, Request, Simulation};
use pinwise_placement::space::Space;
use pinwise_placement::{Placement, UsedUnits, Wish};
use pinwise_record::{Kind, PlacementPrediction, PredictedPlacement, SearchRecord};
use pinwise_study::search::predict::{Forecast, PredictionRequest, predict as forecast_all};
use pinwise_topology::{CpuSet, Topology};
use pinwise_workload::Workload;

pub(super) fn predict(
    global: &Global,
    args: &PredictArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let record = match &args.id {
        Some(id) => load_search(global, id)?,
        None => load_newest(global)?,
    };
    let mut machine = open_predicted_machine(global, &record)?;
    let (topology, warnings) = machine.topology()?;
    for warning in warnings {
        terminal.note(&warning);
    }
    let threads = choose_threads(args, &record, &topology)?;
    warn_of_unsearched_threads(threads, &record, terminal);
    let asks = match args.places.as_slice() {
        [] => list_even_placements(&topology, threads),
        places => parse_places(places, &topology, threads)?,
    };
    let forecasts = forecast_all(&record, &topology, &asks)
        .map_err(|reason| anyhow::anyhow!("record {}: {reason}", record.id))?;
    let truth = Truth::new(&record, &topology, machine.simulation())?;
    let shape = format!("{:016x}", topology.shape_hash());
    let is_searched_machine =
        machine.label() == record.host.machine_spec && shape == record.host.shape_hash;
    let answers = asks.iter().zip(&forecasts);
    let mut placements: Vec<PredictedPlacement> = answers
        .map(|(ask, forecast)| {
            predict_placement(ask, forecast, &topology, &truth, is_searched_machine)
        })
        .collect();
    if args.places.is_empty() {
        placements.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    }
    let mut prediction = PlacementPrediction {
        pinwise_version: env!("CARGO_PKG_VERSION").to_owned(),
        search: record.id.clone(),
        command: record.command.clone(),
        metric: record.metric.name.clone(),
        unit: record.metric.unit.clone(),
        better: record.metric.better.clone(),
        machine: machine.label(),
        is_searched_machine,
        placements,
        checked: 0,
        covered: 0,
        median_error: None,
    };
    prediction.summarise_errors();
    terminal.show(&prediction, pinwise_report::render_prediction)?;
    Ok(Exit::Done)
}

fn load_newest(global: &Global) -> anyhow::Result<SearchRecord> {
    let stored = require_store(global)?.find_newest(Kind::Search.schema())?;
    let Some(stored) = stored else {
        bail!("no search yet (run pinwise search -- ./prog)");
    };
    Ok(stored.decode()?)
}

/// Opens the machine of `--machine`; without it, the one that was searched.
fn open_predicted_machine(
    global: &Global,
    record: &SearchRecord,
) -> anyhow::Result<Box<dyn Machine>> {
    let searched = &record.host.machine_spec;
    if !global.machine.is_local() || !record.host.simulated {
        return open_machine(global, record.seed, CycleCounting::IfCheap);
    }
    let spec = searched.strip_prefix("sim:").unwrap_or(searched);
    super::machine::open_simulated_machine(spec, record.seed)
        .with_context(|| format!("record {}: the machine that was searched", record.id))
}

/// The number of threads of `--threads`, else that of the search's best arm.
fn choose_threads(
    args: &PredictArgs,
    record: &SearchRecord,
    topology: &Topology,
) -> anyhow::Result<usize> {
    let cpus = topology.allowed.len();
    if let Some(threads) = args.threads {
        if threads > cpus {
            return Err(too_many_threads_error(
                &format!("--threads {threads}"),
                cpus,
                "pinwise compare",
            ));
        }
        return Ok(threads);
    }
    let best = record.best.as_ref();
    let arm = best.and_then(|best| record.arms.iter().find(|arm| arm.name == *best));
    let searched = arm.and_then(|arm| arm.threads);
    let threads = searched.unwrap_or_else(|| find_planned_default_threads(&record.plan));
    // On a smaller machine at most one thread per CPU.
    Ok(threads.clamp(1, cpus.max(1)))
}

/// Warns of a number of threads that the search did not run: predictions for it are less certain
/// than their intervals say.
fn warn_of_unsearched_threads(threads: usize, record: &SearchRecord, terminal: &Terminal) {
    if record.plan.threads.contains(&threads) {
        return;
    }
    let searched: Vec<String> = record.plan.threads.iter().map(usize::to_string).collect();
    terminal.warn(&format!(
        "--threads {threads}: the search had {} only; predictions for other numbers are a guess",
        searched.join(", ")
    ));
}

/// All placements that spread this many threads evenly.
fn list_even_placements(topology: &Topology, threads: usize) -> Vec<PredictionRequest> {
    let space = Space::from_topology(topology);
    let shapes = space.shapes(threads).into_iter();
    shapes
        .map(|shape| PredictionRequest {
            name: shape.placement.to_string(),
            cpus: space.choose(&shape.occupancy),
            threads,
        })
        .collect()
}

/// Parses the placements of `--place`. Those with more CPUs than threads are reduced to one CPU per
/// thread, except `os-default` and lists of CPUs, on which threads are left to the scheduler.
fn parse_places(
    places: &[String],
    topology: &Topology,
    threads: usize,
) -> anyhow::Result<Vec<PredictionRequest>> {
    let places = places.iter();
    places
        .map(|name| {
            let placement: Placement = name.parse().context("--place")?;
            let realised = placement.realise(topology).context("--place")?;
            if placement.memory.is_some() {
                bail!("search does not support memory policies (--place {name})");
            }
            let cpus = realised.cpus.len();
            if cpus < threads {
                bail!(
                    "--place {name}: that is {}, for {threads} threads; every thread gets a CPU of its own (--threads says how many)",
                    pinwise_format::count(cpus, "CPU")
                );
            }
            let is_free = matches!(placement.wish, Wish::OsDefault | Wish::Cpus(_) | Wish::Mask(_));
            let is_larger = cpus > threads && !is_free;
            let (placement, realised) = match is_larger {
                true => reduce_to(placement, threads, topology)?,
                false => (placement, realised.cpus),
            };
            Ok(PredictionRequest {
                name: placement.to_string(),
                cpus: realised,
                threads,
            })
        })
        .collect()
}

fn reduce_to(
    placement: Placement,
    threads: usize,
    topology: &Topology,
) -> anyhow::Result<(Placement, CpuSet)> {
    let reduced = Placement {
        count: Some(threads),
        ..placement
    };
    let cpus = reduced.realise(topology).context("--place")?.cpus;
    Ok((reduced, cpus))
}

/// The true costs on a simulated machine.
struct Truth<'a> {
    simulation: Option<&'a dyn Simulation>,
    workload: Workload,
    sets_threads: bool,
    /// The true cost of `os-default`; `None` on a real machine, or for another metric than wall
    /// time.
    default_cost: Option<f64>,
}

impl<'a> Truth<'a> {
    fn new(
        record: &SearchRecord,
        topology: &Topology,
        simulation: Option<&'a dyn Simulation>,
    ) -> anyhow::Result<Self> {
        let mut truth = Self {
            simulation,
            workload: rebuild_workload(record)?,
            sets_threads: record.plan.sets_threads,
            default_cost: None,
        };
        // The simulation knows only times of whole runs.
        if record.metric.is_wall() {
            let workload = truth.workload.clone();
            let default = match record.plan.default_threads {
                Some(threads) => workload.with_threads(threads, truth.sets_threads),
                None => workload,
            };
            truth.default_cost = truth.cost(&default, &topology.allowed);
        }
        Ok(truth)
    }

    fn cost(&self, workload: &Workload, cpus: &CpuSet) -> Option<f64> {
        self.simulation?.true_cost(&Request::new(workload, cpus))
    }

    /// The true cost of a placement, and its ratio to that of `os-default`.
    fn cost_and_ratio(&self, ask: &PredictionRequest) -> Option<(f64, f64)> {
        let default_cost = self.default_cost?;
        let workload = self.workload.with_threads(ask.threads, self.sets_threads);
        let cost = self.cost(&workload, &ask.cpus)?;
        Some((cost, cost / default_cost))
    }
}

fn predict_placement(
    ask: &PredictionRequest,
    forecast: &Forecast,
    topology: &Topology,
    truth: &Truth<'_>,
    is_searched_machine: bool,
) -> PredictedPlacement {
    // The speed of another machine's cores is unknown.
    let predicted = forecast.cost.filter(|_| is_searched_machine);
    let truth = truth.cost_and_ratio(ask);
    let error = truth.map(|(cost, ratio)| match predicted {
        Some(predicted) => predicted / cost - 1.0,
        None => forecast.ratio / ratio - 1.0,
    });
    PredictedPlacement {
        place: ask.name.clone(),
        label: pinwise_record::label_placement(&ask.name, &UsedUnits::count(topology, &ask.cpus)),
        threads: ask.threads,
        cpus: ask.cpus.to_string(),
        cost: predicted,
        ratio: forecast.ratio,
        low: forecast.low,
        high: forecast.high,
        runs: forecast.runs,
        truth: truth.map(|(cost, _)| cost),
        true_ratio: truth.map(|(_, ratio)| ratio),
        error: error.filter(|error| error.is_finite()),
    }
}
