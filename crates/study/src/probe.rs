//! Measures how the CPUs are really wired, and contradicts the system if it is wrong.
//!
//! ```text
//! Prober::probe ─► batches ─► medians ─► pairs, contention ─► wiring::infer
//!                                     └─► costs, memory, drift      │
//!                      what the system reports ─► judge ◄───────────┘
//!                                                   └─► record::Measured
//! ```
//!
//! Every part has a share of the budget and says what it had no time for. The system's report may
//! decide what is measured first; the results depend on figures alone. Nothing is printed or stored
//! here.

mod advice;
mod assemble;
mod contention;
mod costs;
mod drift;
mod earlier;
mod estimate;
mod judge;
mod latency;
mod leaders;
mod memory;
pub(crate) mod modes;
mod pairs;
mod rounds;
mod session;

use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

pub use advice::{Advice, advise_placements, rewire, stays};
pub use earlier::consult;
use pinwise_machine::{MachineError, Prober};
use pinwise_record::{
    BandwidthRecord, ClockRecord, DriftRecord, LadderRecord, LoadedLatencyRecord, Measured,
    PauseRecord, SchedulingRecord, SurveyRecord, TopologyRecord,
};
use pinwise_topology::Topology;

use contention::Contentions;
use memory::NodeLatency;
use pairs::Pairs;
use pinwise_wiring::{Evidence, Wiring, infer};
use session::Session;

/// What to measure, and for how long.
#[derive(Debug, Clone)]
pub struct ProbePlan {
    /// Time for everything but watching; `None`: by the number of CPUs.
    pub budget: Option<Duration>,
    /// Then watch for changes for this long.
    pub watch: Option<Duration>,
    /// Only the wiring: no caches, memory and costs.
    pub wiring_only: bool,
    /// Name and circumstances; the seed draws the pairs that are checked.
    pub survey: SurveyRecord,
}

/// The progress of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// What is measured.
    pub part: &'static str,
    /// How much of the part is done, 0 to 1.
    pub fraction: f64,
    /// Time left of the budget.
    pub left: Duration,
}

/// Receives what happens while measuring.
pub trait Observer {
    /// A step was made.
    fn progress(&mut self, step: &Step);
}

/// A measurement and how it ended.
#[derive(Debug)]
pub struct ProbeOutcome {
    /// The machine as reported and as measured.
    pub topology: Topology,
    /// Both as a record.
    pub record: TopologyRecord,
    /// The user stopped it: the record holds what was done by then.
    pub is_interrupted: bool,
}

/// Budget by default: this much, and this much more for every CPU, up to a minute.
const BASE_BUDGET: Duration = Duration::from_secs(10);
const BUDGET_PER_CPU: Duration = Duration::from_millis(100);
const LARGEST_BUDGET: Duration = Duration::from_secs(60);

/// Shares of what is left of the budget when each part begins.
const SHARE_PAIRS: f64 = 0.4;
const SHARE_CONTENTION: f64 = 0.3;
const SHARE_COSTS: f64 = 0.25;
const SHARE_LADDER: f64 = 0.5;
const SHARE_NODES: f64 = 0.2;
const SHARE_BANDWIDTH: f64 = 0.75;
const SHARE_LOADED: f64 = 0.9;

/// The default budget for this many CPUs.
#[must_use]
pub fn default_budget(cpus: usize) -> Duration {
    let cpus = u32::try_from(cpus).unwrap_or(u32::MAX);
    (BASE_BUDGET.saturating_add(BUDGET_PER_CPU.saturating_mul(cpus))).min(LARGEST_BUDGET)
}

/// Everything found so far.
#[derive(Debug, Default)]
struct Findings {
    pairs: Pairs,
    contentions: Contentions,
    clock: Option<ClockRecord>,
    pause: Vec<PauseRecord>,
    scheduling: Option<SchedulingRecord>,
    ladder: Option<LadderRecord>,
    nodes: Vec<NodeLatency>,
    bandwidth: Vec<BandwidthRecord>,
    loaded: Vec<LoadedLatencyRecord>,
    notes: Vec<String>,
    changed: Vec<String>,
    drift: Option<DriftRecord>,
}

/// Measures a machine.
///
/// # Errors
/// [`MachineError`] if it cannot be read or measured at all. An interrupt is not an error: see
/// [`ProbeOutcome::is_interrupted`].
pub fn measure(
    plan: &ProbePlan,
    machine: &mut dyn Prober,
    observer: &mut dyn Observer,
) -> Result<ProbeOutcome, MachineError> {
    let (topology, warnings) = machine.topology()?;
    let survey = SurveyRecord {
        machine_spec: machine.label(),
        ..plan.survey.clone()
    };
    let budget = plan
        .budget
        .unwrap_or_else(|| default_budget(topology.allowed.len()));
    let mut chance = ChaCha8Rng::seed_from_u64(plan.survey.seed);
    chance.set_stream(2);
    let mut session = Session::new(machine, topology.clone(), observer, budget);
    let mut found = Findings::default();
    let end = find(plan, &mut session, &mut chance, &mut found);
    let is_interrupted = matches!(end, Err(MachineError::Interrupted));
    if !is_interrupted {
        end?;
    }
    if is_interrupted {
        session.leave_out("Everything after the interrupt.");
    }
    let wiring = wiring(&found, session.is_displaced);
    let mut record = TopologyRecord::new(&topology, &warnings);
    let (measured, contradictions) = assemble::assemble(&topology, found, &wiring, session.close());
    let answer = measured.answer_sentence(topology.identity.hypervisor.is_some());
    record.measured = Some(Box::new(Measured {
        survey,
        answer,
        ..measured
    }));
    record.contradictions = contradictions;
    Ok(ProbeOutcome {
        topology,
        record,
        is_interrupted,
    })
}

fn find(
    plan: &ProbePlan,
    session: &mut Session<'_>,
    chance: &mut ChaCha8Rng,
    found: &mut Findings,
) -> Result<(), MachineError> {
    session.begin("pairs", if plan.wiring_only { 0.6 } else { SHARE_PAIRS });
    latency::measure(session, chance, &mut found.pairs)?;
    session.begin(
        "contention",
        if plan.wiring_only {
            0.9
        } else {
            SHARE_CONTENTION
        },
    );
    contention::measure(session, &found.pairs, &mut found.contentions)?;
    if !plan.wiring_only {
        measure_costs(session, found)?;
        measure_memory(session, found)?;
    }
    session.begin("check", 1.0);
    found.changed = drift::recheck(session, &found.pairs, &found.contentions)?;
    if let Some(time) = plan.watch {
        session.extend("watching", time);
        drift::watch(session, &found.pairs, time, &mut found.drift)?;
    }
    Ok(())
}

fn measure_costs(session: &mut Session<'_>, found: &mut Findings) -> Result<(), MachineError> {
    session.begin("costs", SHARE_COSTS);
    found.clock = costs::measure_clock(session)?;
    found.scheduling = costs::measure_scheduling(session)?;
    found.pause = costs::pause(session)?;
    Ok(())
}

fn measure_memory(session: &mut Session<'_>, found: &mut Findings) -> Result<(), MachineError> {
    session.begin("caches", SHARE_LADDER);
    found.ladder = memory::measure_ladder(session, &mut found.notes)?;
    session.begin("NUMA nodes", SHARE_NODES);
    found.nodes = memory::measure_node_latencies(session)?;
    session.begin("bandwidth", SHARE_BANDWIDTH);
    found.bandwidth = memory::measure_bandwidth(session)?;
    session.begin("loaded latency", SHARE_LOADED);
    found.loaded = memory::measure_under_load(session)?;
    Ok(())
}

fn wiring(found: &Findings, is_displaced: bool) -> Wiring {
    let evidence = Evidence {
        latency_ns: found.pairs.latency.clone(),
        contention: contention::matrix(&found.pairs, &found.contentions),
    };
    let cannot_tell = if is_displaced {
        "Threads did not stay on the CPUs that they were pinned to: this system ignores affinity, or takes CPUs away."
    } else if found.pairs.len() > 1 && found.pairs.homes.is_empty() {
        "No pair of CPUs gave a single undisturbed batch: the machine is too busy, or its CPUs take turns on one hardware thread."
    } else {
        return infer(&evidence);
    };
    Wiring {
        cannot_tell: Some(cannot_tell.to_owned()),
        ..Wiring::default()
    }
}
