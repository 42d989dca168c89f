//! Measures how the CPUs are wired, and compares that with what the system reports.
//!
//! ```text
//! Prober::probe ─► batches ─► medians ─► pairs, contention ─► wiring::infer
//!                                     └─► costs, memory, drift      │
//!                      what the system reports ─► judge ◄───────────┘
//!                                                   └─► record::Measured
//! ```
//!
//! Every part has a share of the budget and notes what it had no time for. The system's report may
//! decide what is measured first; results depend on measured figures alone. Nothing is printed or
//! stored here.

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

pub use advice::{Advice, advise_placements, apply_measured_wiring, is_wiring_stable};
pub use earlier::judge_with_earlier;
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
    /// Time for everything but watching; `None` for [`default_budget`].
    pub budget: Option<Duration>,
    /// How long to watch for changes afterwards.
    pub watch: Option<Duration>,
    /// Measure only the wiring: no caches, memory or costs?
    pub wiring_only: bool,
    /// Name and circumstances; the pairs to check are drawn from its seed.
    pub survey: SurveyRecord,
}

/// The progress of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The part that is being measured.
    pub part: &'static str,
    /// Done share of the part, 0 to 1.
    pub fraction: f64,
    /// Remaining budget.
    pub left: Duration,
}

/// Receives the progress of a measurement.
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
    /// Did the user stop it? Then the record has what was measured until then.
    pub is_interrupted: bool,
}

// The default budget.
const BASE_BUDGET: Duration = Duration::from_secs(10);
const BUDGET_PER_CPU: Duration = Duration::from_millis(100);
const MAX_DEFAULT_BUDGET: Duration = Duration::from_secs(60);

/// So few CPUs have pairs that are measured in a second on an idle machine.
const FEW_CPUS: usize = 4;

// Each part's share of the budget that remains when it begins.
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
    (BASE_BUDGET.saturating_add(BUDGET_PER_CPU.saturating_mul(cpus))).min(MAX_DEFAULT_BUDGET)
}

/// Everything measured so far.
#[derive(Debug, Default)]
struct Measurements {
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
    let mut rng = ChaCha8Rng::seed_from_u64(plan.survey.seed);
    rng.set_stream(2);
    let mut session = Session::new(machine, topology.clone(), observer, budget);
    let mut found = Measurements::default();
    let end = measure_parts(plan, &mut session, &mut rng, &mut found);
    let is_interrupted = matches!(end, Err(MachineError::Interrupted));
    if !is_interrupted {
        end?;
    }
    if is_interrupted {
        session.leave_out("Everything after the interrupt.");
    }
    let wiring = infer_wiring(&found, session.is_displaced);
    let mut record = TopologyRecord::new(&topology, &warnings);
    let (measured, contradictions) =
        assemble::assemble_record(&topology, found, &wiring, session.close());
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

fn measure_parts(
    plan: &ProbePlan,
    session: &mut Session<'_>,
    rng: &mut ChaCha8Rng,
    found: &mut Measurements,
) -> Result<(), MachineError> {
    // Few pairs take little time, unless the machine is busy: then nothing matters more.
    let has_few = session.topology.allowed.len() <= FEW_CPUS;
    let share = match plan.wiring_only || has_few {
        true => 0.6,
        false => SHARE_PAIRS,
    };
    session.begin("pairs", share);
    latency::measure(session, rng, &mut found.pairs)?;
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
        session.begin_beyond_budget("watching", time);
        drift::watch(session, &found.pairs, time, &mut found.drift)?;
    }
    Ok(())
}

fn measure_costs(session: &mut Session<'_>, found: &mut Measurements) -> Result<(), MachineError> {
    session.begin("costs", SHARE_COSTS);
    found.clock = costs::measure_clock(session)?;
    found.scheduling = costs::measure_scheduling(session)?;
    found.pause = costs::measure_pause(session)?;
    Ok(())
}

fn measure_memory(session: &mut Session<'_>, found: &mut Measurements) -> Result<(), MachineError> {
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

fn infer_wiring(found: &Measurements, is_displaced: bool) -> Wiring {
    let evidence = Evidence {
        latency_ns: found.pairs.latency.clone(),
        contention: contention::to_matrix(&found.pairs, &found.contentions),
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
