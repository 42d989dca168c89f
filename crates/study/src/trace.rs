//! Makes a trace: passes the machine's events to the analysis and to another listener, and records
//! and judges the result.

mod answer;
mod blocking;
mod findings;
mod interrupts;
mod limits;
mod memory;
mod reconcile;
mod recorder;
mod runtimes;
mod shares;
mod timeline;
mod waiters;

use std::collections::BTreeSet;
use std::time::Duration;

pub use recorder::{TraceDetails, TraceRecorder};
pub(crate) use runtimes::is_collector;

use crate::host::host_record;
use crate::load;
use pinwise_machine::{End, Listener, MachineError, Run, Subject, TierCost, TraceOrder, Tracer};
use pinwise_record::{TierRecord, TraceCost, TraceRecord, TraceSource, TraceTier};
use pinwise_sched::{Availability, Event, Tier};
use pinwise_topology::Topology;

/// How long events may be held back before they are read. A shorter time would make a live view
/// smoother, but each read disturbs the traced program.
const ROUND: Duration = Duration::from_millis(100);

/// What to trace, and how.
#[derive(Debug, Clone)]
pub struct TracePlan<'a> {
    /// The command or process, as the machine needs it.
    pub subject: Subject<'a>,
    /// The same command or process, as the record describes it.
    pub source: TraceSource,
    /// The machine's tiers, from [`Tracer::tiers`], which is too slow to repeat for every trace.
    pub tiers: &'a [Availability],
    /// The tier; `None`: the most detailed that is permitted.
    pub tier: Option<Tier>,
    /// The trace ends after this time; `None`: when the program ends.
    pub limit: Option<Duration>,
    /// Time to measure the tier's overhead beforehand; zero: it is not measured.
    pub calibration: Duration,
    /// If given, interrupts are added up as well. The topology has the interrupts of its devices,
    /// which name them.
    pub interrupts: Option<&'a Topology>,
    /// See [`TraceOrder::leaves_daemons`].
    pub leaves_daemons: bool,
    /// Is the trace of a command kept if the user interrupts it?
    pub keeps_interrupted: bool,
    /// Tags of the record.
    pub tags: Vec<String>,
}

/// Makes a trace and its record, which the caller names and dates; `witness` also gets every event.
///
/// # Errors
/// [`MachineError`], see [`Tracer::trace`].
pub fn run_trace(
    plan: &TracePlan<'_>,
    machine: &mut dyn Tracer,
    witness: &mut dyn Listener,
) -> Result<TraceRecord, MachineError> {
    let (topology, _) = machine.topology()?;
    let expected = plan.tier.or_else(|| choose_richest(plan.tiers));
    let costs = match expected {
        Some(tier) if !plan.calibration.is_zero() => {
            machine.tracing_cost(&[tier], plan.calibration)?
        }
        _ => Vec::new(),
    };
    // The machine may fall back to another tier, but the recorder needs a scope beforehand.
    let scope = expected.map_or_else(|| Tier::Bpf.scope(), Tier::scope);
    let order = TraceOrder {
        subject: plan.subject,
        tier: expected,
        limit: plan.limit,
        round: ROUND,
        interrupts: plan.interrupts.is_some(),
        leaves_daemons: plan.leaves_daemons,
    };
    let mut both = Both {
        recorder: TraceRecorder::new(&topology, scope),
        witness,
    };
    let traced = machine.trace(&order, &mut both)?;
    let end = traced.run.as_ref().map(|run| &run.end);
    if end == Some(&End::Interrupted) && !plan.keeps_interrupted {
        return Err(MachineError::Interrupted);
    }
    let details = TraceDetails {
        source: plan.source.clone(),
        tier: if machine.is_simulated() {
            TraceTier::Simulated
        } else {
            traced.tier.into()
        },
        host: host_record(machine, &topology),
        span_ns: Some((traced.from_ns, traced.to_ns)),
        throttled: traced.throttled,
        notes: traced.notes.clone(),
        tags: plan.tags.clone(),
    };
    let mut recorder = both.recorder;
    recorder.name_other_programs(&mut |thread| machine.process_name(thread));
    let mut record = recorder.finish(details);
    limits::record(&mut record.figures, &traced);
    record.figures.memory = memory::summarize(
        &traced.pages,
        traced.from_ns,
        &record.cpus,
        &topology,
        traced.numa_balancing,
    );
    let cost = costs.iter().find(|cost| cost.tier == traced.tier);
    record.cost = cost.map(|cost| estimate_overhead(cost, &record, traced.own_cpu));
    note_unmeasured_cost(plan, &costs, machine, &mut record);
    record.tiers = tier_records(plan.tiers, &costs);
    record.exit = traced.run.as_ref().and_then(|run| exit_of(&run.end));
    if let Some(run) = &traced.run {
        let notes = describe_left_running(run, "untraced");
        record
            .notes
            .extend(notes.into_iter().chain(last_words(run)));
        let found = reconcile::reconcile(&mut record.figures, traced.scope, run);
        record.header.findings.extend(found);
    }
    if let Some((summary, named)) = traced.interrupts.as_ref().zip(plan.interrupts) {
        record.interrupts = Some(interrupts::make_record(summary, &record, named));
        let found = interrupts::list_findings(&record, named);
        record.header.findings.extend(found);
    }
    let counted = traced.run.as_ref();
    let counted = counted.and_then(|run| Some((run.user? + run.system?).as_secs_f64()));
    findings::add_live(&mut record, plan.tiers, counted);
    name_others(&mut record, machine);
    Ok(record)
}

/// Says that the cost of tracing is unknown, if it was to be measured.
fn note_unmeasured_cost(
    plan: &TracePlan<'_>,
    costs: &[TierCost],
    machine: &dyn Tracer,
    record: &mut TraceRecord,
) {
    if costs.is_empty() && !plan.calibration.is_zero() && !machine.is_simulated() {
        let note = "What tracing cost was not measured: the machine was too busy.";
        record.header.notes.push(note.to_owned());
    }
}

/// Names the busiest untraced processes in the findings that blame other programs, unless events
/// name them, and then writes the conclusion from all findings.
fn name_others(record: &mut TraceRecord, machine: &mut dyn Tracer) {
    if record.figures.waits.behind.is_empty() {
        let traced = record.threads.iter().filter_map(|thread| thread.process);
        let traced: BTreeSet<i32> = traced.collect();
        load::name_busiest(&mut record.header.findings, || {
            let mut busy = machine.busiest();
            busy.retain(|one| !traced.contains(&one.process));
            busy
        });
    }
    // It repeats the advice of a finding.
    answer::write(record);
}

/// A note on processes that a command left running; `how` says how they continue.
pub(crate) fn describe_left_running(run: &Run, how: &str) -> Option<String> {
    let left = &run.left_running;
    (!left.is_empty()).then(|| {
        format!(
            "The command left {} running: they keep running, {how}.",
            left.join(", ")
        )
    })
}

/// How a command failed, with the end of its standard error.
pub(crate) fn last_words(run: &Run) -> Option<String> {
    let how = match &run.end {
        End::Status(0) => return None,
        End::Status(status) => format!("The command ended with exit status {status}"),
        End::Signal(signal) => format!("The command was killed by signal {signal}"),
        End::TimedOut => "pinwise ended the command after its time limit".to_owned(),
        End::Interrupted => "pinwise ended the command because it was interrupted".to_owned(),
        End::NoFigure(why) => format!("The service could not be measured: {why}"),
        End::LeftBehind(who) => format!("The command left {} running", who.join(", ")),
    };
    let words = String::from_utf8_lossy(&run.stderr_tail);
    let last = words.trim().lines().last().unwrap_or_default();
    Some(if last.is_empty() {
        format!("{how}.")
    } else {
        format!("{how}: {last}")
    })
}

/// The most detailed tier that is available.
#[must_use]
pub fn choose_richest(tiers: &[Availability]) -> Option<Tier> {
    let permitted = tiers.iter().filter(|tier| tier.refusal.is_none());
    permitted.map(|tier| tier.tier).max()
}

/// All tiers of a machine with their overhead, which takes about `time` in total to measure.
///
/// # Errors
/// [`MachineError`], see [`Tracer::tracing_cost`].
pub fn measure_tiers(
    machine: &mut dyn Tracer,
    time: Duration,
) -> Result<Vec<TierRecord>, MachineError> {
    let tiers = machine.tiers();
    let permitted: Vec<Tier> = tiers
        .iter()
        .filter(|tier| tier.refusal.is_none())
        .map(|tier| tier.tier)
        .collect();
    let many = u32::try_from(permitted.len().max(1)).unwrap_or(1);
    let costs = if time.is_zero() {
        Vec::new()
    } else {
        machine.tracing_cost(&permitted, time / many)?
    };
    Ok(tier_records(&tiers, &costs))
}

fn tier_records(tiers: &[Availability], costs: &[TierCost]) -> Vec<TierRecord> {
    let record = |tier: &Availability| {
        let refusal = tier.refusal.as_ref();
        let cost = costs.iter().find(|cost| cost.tier == tier.tier);
        TierRecord {
            tier: tier.tier.into(),
            available: refusal.is_none(),
            reason: refusal.map(|refusal| refusal.reason.clone()),
            remedy: refusal.and_then(|refusal| refusal.remedy.clone()),
            cost_ns_per_switch: cost.map(|cost| cost.ns_per_switch),
            cost_low_ns: cost.map(|cost| cost.low_ns),
            cost_high_ns: cost.map(|cost| cost.high_ns),
        }
    };
    tiers.iter().map(record).collect()
}

fn estimate_overhead(cost: &TierCost, record: &TraceRecord, own_cpu: Duration) -> TraceCost {
    let totals = &record.figures.totals;
    let switches = totals.switches.unwrap_or(0) as f64;
    let added_s = switches * cost.ns_per_switch.max(0.0) * 1e-9;
    TraceCost {
        ns_per_switch: cost.ns_per_switch,
        percent_of_cpu: if totals.cpu_s > 0.0 {
            100.0 * added_s / totals.cpu_s
        } else {
            0.0
        },
        own_cpu_s: own_cpu.as_secs_f64(),
    }
}

/// The exit status that a shell reports for a command that Ctrl-C ended.
const INTERRUPTED: i32 = 128 + 2;

/// The exit status, as a shell reports it; `None` if the command was ended as requested (`--for`).
pub(crate) fn exit_of(end: &End) -> Option<i32> {
    match end {
        End::Status(status) => Some(*status),
        End::Signal(signal) => Some(128 + signal),
        End::TimedOut => None,
        End::Interrupted => Some(INTERRUPTED),
        End::LeftBehind(_) | End::NoFigure(_) => Some(128 + 9),
    }
}

struct Both<'a> {
    recorder: TraceRecorder,
    witness: &'a mut dyn Listener,
}

impl Listener for Both<'_> {
    fn events(&mut self, events: &[Event]) {
        self.recorder.add(events);
        self.witness.events(events);
    }

    fn round(&mut self, now_ns: u64) -> bool {
        self.witness.round(now_ns)
    }
}

/// A listener that ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoListener;

impl Listener for NoListener {
    fn events(&mut self, _events: &[Event]) {}
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}
