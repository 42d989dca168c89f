//! `predict`: a search's predictions for placements that it did not run.

use anyhow::{Context, bail};

use super::Exit;
use super::args::{Global, PredictArgs};
use super::machine::open_machine;
use super::opening::needed_store;
use super::search::{beyond, default_threads, read_search, workload_of};
use super::terminal::Terminal;
use pinwise_machine::linux::CycleCounting;
use pinwise_machine::{Machine, Request, Simulation};
use pinwise_placement::space::Space;
use pinwise_placement::{Placement, UsedUnits};
use pinwise_record::{Kind, PlacementPrediction, PredictedPlacement, SearchRecord};
use pinwise_study::search::predict::{Ask, Forecast, predict as forecast_all};
use pinwise_topology::{CpuSet, Topology};
use pinwise_workload::Workload;

pub(super) fn predict(
    global: &Global,
    args: &PredictArgs,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let record = match &args.id {
        Some(id) => read_search(global, id)?,
        None => find_newest_search(global)?,
    };
    let mut machine = machine_asked_about(global, &record)?;
    let (topology, warnings) = machine.topology()?;
    for warning in warnings {
        terminal.note(&warning);
    }
    let threads = threads(args, &record, &topology)?;
    print_threads(threads, &record, terminal);
    let asks = match args.places.as_slice() {
        [] => shapes(&topology, threads),
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
        .map(|(ask, forecast)| placement(ask, forecast, &topology, &truth, is_searched_machine))
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
    terminal.show(&prediction, pinwise_report::prediction)?;
    Ok(Exit::Done)
}

fn find_newest_search(global: &Global) -> anyhow::Result<SearchRecord> {
    let stored = needed_store(global)?.find_newest(Kind::Search.schema())?;
    let Some(stored) = stored else {
        bail!("no search yet (run pinwise search -- ./prog)");
    };
    Ok(stored.decode()?)
}

/// The machine of `--machine`; without it, the one that was searched.
fn machine_asked_about(global: &Global, record: &SearchRecord) -> anyhow::Result<Box<dyn Machine>> {
    let searched = &record.host.machine_spec;
    if !global.machine.is_local() || !record.host.simulated {
        return open_machine(global, record.seed, CycleCounting::IfCheap);
    }
    let spec = searched.strip_prefix("sim:").unwrap_or(searched);
    super::machine::simulated_machine(spec, record.seed)
        .with_context(|| format!("record {}: the machine that was searched", record.id))
}

fn threads(
    args: &PredictArgs,
    record: &SearchRecord,
    topology: &Topology,
) -> anyhow::Result<usize> {
    let cpus = topology.allowed.len();
    if let Some(threads) = args.threads {
        if threads > cpus {
            return Err(beyond(
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
    let threads = searched.unwrap_or_else(|| default_threads(&record.plan));
    // A smaller machine is asked about with as many threads as it has CPUs.
    Ok(threads.clamp(1, cpus.max(1)))
}

/// Numbers of threads that the search did not have are less certain than the
/// intervals say.
fn print_threads(threads: usize, record: &SearchRecord, terminal: &Terminal) {
    if record.plan.threads.contains(&threads) {
        return;
    }
    let searched: Vec<String> = record.plan.threads.iter().map(usize::to_string).collect();
    terminal.warn(&format!(
        "--threads {threads}: the search had {} only; predictions for other numbers are a guess",
        searched.join(", ")
    ));
}

/// All even placements of the machine.
fn shapes(topology: &Topology, threads: usize) -> Vec<Ask> {
    let space = Space::from_topology(topology);
    let shapes = space.shapes(threads).into_iter();
    shapes
        .map(|shape| Ask {
            name: shape.placement.to_string(),
            cpus: space.choose(&shape.occupancy),
            threads,
        })
        .collect()
}

/// Placements that were named; those of more CPUs than threads are cut to as
/// many, but for `os-default`, which is left to the scheduler.
fn parse_places(
    places: &[String],
    topology: &Topology,
    threads: usize,
) -> anyhow::Result<Vec<Ask>> {
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
            let is_cut = cpus > threads && placement != Placement::os_default();
            let (placement, realised) = match is_cut {
                true => cut(placement, threads, topology)?,
                false => (placement, realised.cpus),
            };
            Ok(Ask {
                name: placement.to_string(),
                cpus: realised,
                threads,
            })
        })
        .collect()
}

fn cut(
    placement: Placement,
    threads: usize,
    topology: &Topology,
) -> anyhow::Result<(Placement, CpuSet)> {
    let fewer = Placement {
        count: Some(threads),
        ..placement
    };
    let cpus = fewer.realise(topology).context("--place")?.cpus;
    Ok((fewer, cpus))
}

/// What a simulated machine knows of true costs.
struct Truth<'a> {
    simulation: Option<&'a dyn Simulation>,
    workload: Workload,
    sets_threads: bool,
    of_default: Option<f64>,
}

impl<'a> Truth<'a> {
    fn new(
        record: &SearchRecord,
        topology: &Topology,
        simulation: Option<&'a dyn Simulation>,
    ) -> anyhow::Result<Self> {
        let mut truth = Self {
            simulation,
            workload: workload_of(record)?,
            sets_threads: record.plan.sets_threads,
            of_default: None,
        };
        // Only times are known, and only those of the whole run.
        if record.metric.is_wall() {
            let as_it_is = truth.workload.clone();
            let default = match record.plan.default_threads {
                Some(threads) => as_it_is.with_threads(threads, truth.sets_threads),
                None => as_it_is,
            };
            truth.of_default = truth.cost(&default, &topology.allowed);
        }
        Ok(truth)
    }

    fn cost(&self, workload: &Workload, cpus: &CpuSet) -> Option<f64> {
        self.simulation?.true_cost(&Request::new(workload, cpus))
    }

    /// The true cost of a placement, and its ratio to that of `os-default`.
    fn measure(&self, ask: &Ask) -> Option<(f64, f64)> {
        let of_default = self.of_default?;
        let workload = self.workload.with_threads(ask.threads, self.sets_threads);
        let cost = self.cost(&workload, &ask.cpus)?;
        Some((cost, cost / of_default))
    }
}

fn placement(
    ask: &Ask,
    forecast: &Forecast,
    topology: &Topology,
    truth: &Truth<'_>,
    is_searched_machine: bool,
) -> PredictedPlacement {
    // The speed of another machine's cores is unknown.
    let predicted = forecast.cost.filter(|_| is_searched_machine);
    let truth = truth.measure(ask);
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
