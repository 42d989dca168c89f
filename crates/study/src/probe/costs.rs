//! Measures the cost of single operations: the spin-wait hint, a context switch, a wake-up, and the
//! clocks.

use std::time::Duration;

use super::estimate::{Effort, Sample};
use super::modes::{MIN_RATIO, find_two_modes};
use super::session::Session;
use pinwise_machine::{MachineError, Probe};
use pinwise_record::{ClockRecord, PauseRecord, SchedulingRecord};
use pinwise_topology::Level;

const EFFORT: Effort = Effort {
    least: 25,
    most: 200,
    precision: 0.01,
    limit: Duration::from_millis(40),
};
/// For switches and wake-ups, which go through the scheduler and vary more.
const SCHEDULER_EFFORT: Effort = Effort {
    least: 25,
    most: 200,
    precision: 0.05,
    limit: Duration::from_millis(200),
};
/// PAUSE is measured on at most this many CPUs; if there are more, on one CPU of each core.
const MAX_CPUS: usize = 64;

/// Measures the clocks of the first CPU.
pub(super) fn measure_clock(
    session: &mut Session<'_>,
) -> Result<Option<ClockRecord>, MachineError> {
    let Some(cpu) = session.topology.allowed.first() else {
        return Ok(None);
    };
    let mut value = |probe| -> Result<Option<f64>, MachineError> {
        Ok(session.median(probe, EFFORT)?.map(|median| median.value))
    };
    let tick = value(Probe::Tick { cpu })?;
    let cycle = value(Probe::Cycle { cpu })?;
    let step_ns = value(Probe::TimerStep { cpu })?;
    let ghz = |ns: Option<f64>| ns.filter(|ns| *ns > 0.0).map(|ns| 1.0 / ns);
    Ok(Some(ClockRecord {
        tick_ghz: ghz(tick),
        core_ghz: ghz(cycle),
        step_ns,
    }))
}

/// Measures the spin-wait hint on every CPU, up to [`MAX_CPUS`].
pub(super) fn measure_pause(session: &mut Session<'_>) -> Result<Vec<PauseRecord>, MachineError> {
    let all: Vec<usize> = session.topology.allowed.iter().collect();
    let one_per_core = session.topology.allowed_units(Level::Core);
    let cpus: Vec<usize> = if all.len() <= MAX_CPUS {
        all.clone()
    } else {
        one_per_core
            .iter()
            .filter_map(|core| core.first())
            .take(MAX_CPUS)
            .collect()
    };
    if cpus.len() < all.len() {
        session.leave_out(format!(
            "The cost of PAUSE on {} of {} CPUs: one of each core stands for the rest, on {MAX_CPUS} cores.",
            all.len() - cpus.len(),
            all.len()
        ));
    }
    let mut records = Vec::new();
    for (done, &cpu) in cpus.iter().enumerate() {
        if session.time_left().is_zero() {
            session.leave_out(format!(
                "The cost of PAUSE on {} CPUs (time budget used up).",
                cpus.len() - done
            ));
            break;
        }
        session.report_progress(done as f64 / cpus.len() as f64);
        let sample = sample_one(session, Probe::Pause { cpu }, EFFORT)?;
        let Some(pause_ns) = sample.median() else {
            continue;
        };
        let cycles = sample_one(session, Probe::PauseCycles { cpu }, EFFORT)?;
        records.push(PauseRecord {
            cpu,
            pause_ns,
            pause_cycles: cycles.median(),
            modes: find_two_modes(&sample.values, MIN_RATIO),
        });
    }
    Ok(records)
}

/// Measures a context switch on the first CPU, and a wake-up from it to the next.
pub(super) fn measure_scheduling(
    session: &mut Session<'_>,
) -> Result<Option<SchedulingRecord>, MachineError> {
    let mut cpus = session.topology.allowed.iter();
    let (first, second) = (cpus.next(), cpus.next());
    drop(cpus);
    let Some(cpu) = first else { return Ok(None) };
    let context_switch_ns = session.median(Probe::ContextSwitch { cpu }, SCHEDULER_EFFORT)?;
    let futex_wake_ns = match second {
        Some(sleeper) => {
            let waker = cpu;
            session.median(Probe::FutexWake { waker, sleeper }, SCHEDULER_EFFORT)?
        }
        None => None,
    };
    let is_known = context_switch_ns.is_some() || futex_wake_ns.is_some();
    Ok(is_known.then_some(SchedulingRecord {
        context_switch_ns,
        futex_wake_ns,
    }))
}

pub(super) fn sample_one(
    session: &mut Session<'_>,
    probe: Probe,
    effort: Effort,
) -> Result<Sample, MachineError> {
    let samples = session.estimate(&[probe], effort)?;
    Ok(samples.into_iter().next().unwrap_or_default())
}
