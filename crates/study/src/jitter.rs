//! Measures what takes CPUs from a thread that never blocks, and checks the system's isolation
//! settings against it.
//!
//! Nothing on the system is changed; findings name settings that would help.

mod answer;
mod findings;
mod noisy_cpu;
mod recorder;

use std::time::Duration;

use pinwise_machine::{GapWatcher, Isolation, JitterOrder, MachineError};
use pinwise_record::{Answer, Header, HostRecord, IsolationRecord, JitterRecord};
use pinwise_topology::{CpuSet, Topology};

use recorder::Recorder;

/// What to watch.
#[derive(Debug, Clone)]
pub struct JitterPlan {
    /// The CPUs, all watched at the same time.
    pub cpus: CpuSet,
    /// How long to watch.
    pub time: Duration,
    /// Longer interruptions count as gaps.
    pub threshold: Duration,
    /// The system's isolation settings.
    pub isolation: Isolation,
}

/// Watches the CPUs of a machine; the caller names and dates the record.
///
/// # Errors
/// [`MachineError`], see [`GapWatcher::watch_gaps`].
pub fn run(
    plan: &JitterPlan,
    machine: &mut dyn GapWatcher,
    topology: &Topology,
) -> Result<JitterRecord, MachineError> {
    let order = JitterOrder {
        cpus: &plan.cpus,
        time: plan.time,
        threshold: plan.threshold,
    };
    let mut recorder = Recorder::new(topology);
    let found = machine.watch_gaps(&order, &mut recorder)?;
    let mut record = JitterRecord {
        header: Header {
            notes: recorder.notes(&found),
            ..Header::default()
        },
        host: HostRecord::new(machine.label(), machine.is_simulated(), topology),
        threshold_us: plan.threshold.as_secs_f64() * 1e6,
        asked_s: plan.time.as_secs_f64(),
        interrupted: found.was_interrupted,
        gaps: recorder.gaps(),
        named_share: recorder.named_share(),
        cpus: recorder.cpus(&found),
        causes: recorder.causes(),
        longest: recorder.longest_gaps(found.from_ns),
        answer: Answer::default(),
        causes_unavailable: found.unreported.as_ref().map(|refusal| {
            let remedy = refusal.remedy.as_deref();
            let remedy = remedy.map(|command| format!(" (permit it with: {command})"));
            format!("{}{}", refusal.reason, remedy.unwrap_or_default())
        }),
        isolation: isolation_record(&plan.isolation),
    };
    record.findings = findings::list_findings(&record, plan, topology);
    record.answer = answer::answer(&record);
    Ok(record)
}

fn isolation_record(isolation: &Isolation) -> IsolationRecord {
    IsolationRecord {
        isolated: isolation.isolated.to_string(),
        nohz_full: isolation.nohz_full.to_string(),
        rcu_nocbs: isolation.rcu_nocbs.to_string(),
        managed_irq: isolation.has_managed_irq,
        irq_default: isolation
            .irq_default
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
    }
}
