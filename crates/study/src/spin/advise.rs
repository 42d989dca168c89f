//! Advises on spin settings: measures the cost of waiting in the kernel, and says how much spinning
//! is worth that cost. It changes no setting.

use std::time::Duration;

use crate::host::host_record;
use crate::spin::probe_median;
use pinwise_machine::{MachineError, Probe, Prober};
use pinwise_record::{AdviceRecord, Answer, Header, ProcessorRecord, SpinAdviceRecord};
use pinwise_spin::advice::{Costs, advise};

/// Batches per median: switches and wake-ups scatter a lot.
const BATCHES: usize = 100;
/// The rule behind the advice, for the record.
const RULE: &str = "Spinning for as long as parking and waking costs, then parking, spends at most twice the cost of the best choice in hindsight (competitive spinning; Karlin et al. 1990).";

/// What to advise.
#[derive(Debug, Clone)]
pub struct AdvicePlan {
    /// The processor whose PAUSE counts.
    pub processor: ProcessorRecord,
    /// Number of CPUs that a program sees.
    pub cpus: u64,
    /// Time to measure wake-ups, and again for switches.
    pub time: Duration,
    /// Is the processor another one than the machine's?
    pub is_other: bool,
}

/// Advises on spin settings; `None` if neither wake-ups nor switches can be measured.
///
/// # Errors
/// [`MachineError`], see [`Prober::probe`].
pub fn run(
    plan: &AdvicePlan,
    machine: &mut dyn Prober,
) -> Result<Option<SpinAdviceRecord>, MachineError> {
    let (topology, _) = machine.topology()?;
    let mut cpus = topology.allowed.iter();
    let (first, second) = (cpus.next(), cpus.next());
    drop(cpus);
    let Some(cpu) = first else { return Ok(None) };
    let sleeper = second.unwrap_or(cpu);
    let switch = probe_median(machine, Probe::ContextSwitch { cpu }, BATCHES, plan.time)?;
    let waking = Probe::FutexWake {
        waker: cpu,
        sleeper,
    };
    let wake = probe_median(machine, waking, BATCHES, plan.time)?;
    let mut notes = Vec::new();
    if wake.is_none() {
        notes.push("A wake-up could not be measured: a context switch is used instead.".to_owned());
    }
    if switch.is_none() {
        notes.push("A context switch could not be measured: a wake-up is used instead.".to_owned());
    }
    let (Some(futex_wake_ns), Some(context_switch_ns)) = (wake.or(switch), switch.or(wake)) else {
        return Ok(None);
    };
    let costs = Costs {
        pause_ns: plan.processor.pause_ns,
        futex_wake_ns,
        context_switch_ns,
        cpus: plan.cpus,
    };
    let mut record = SpinAdviceRecord {
        header: Header {
            notes,
            ..Header::default()
        },
        processor: plan.processor.clone(),
        cpus: plan.cpus,
        futex_wake_ns,
        context_switch_ns,
        budget_ns: costs.budget_ns(),
        budget_pauses: costs.budget_pauses(),
        rule: RULE.to_owned(),
        advice: advise(&costs).iter().map(AdviceRecord::new).collect(),
        measured_on: host_record(machine, &topology).name(),
        answer: Answer::default(),
    };
    record.conclude(plan.is_other);
    Ok(Some(record))
}
