//! Gaps in the time that CPUs give to a thread, and what took it.

use serde::{Deserialize, Serialize};

use crate::named::open_enum;
use crate::{Entry, Header, HostRecord, StoredRecord};
use pinwise_format::{count_of, seconds};

/// For how long threads that only read the clock were kept from it, CPU by CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.jitter/1")]
pub struct JitterRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The machine it ran on.
    pub host: HostRecord,
    /// What is longer than this between two readings of the clock is a gap, µs.
    pub threshold_us: f64,
    /// For how long each CPU should be watched, s.
    pub asked_s: f64,
    /// Did the user end it before?
    pub interrupted: bool,
    /// Gaps of all CPUs together.
    pub gaps: u64,
    /// Share of the gaps whose cause is known; `null` if there are none.
    pub named_share: Option<f64>,
    /// Every CPU that was watched.
    pub cpus: Vec<JitterCpuRecord>,
    /// What took the time, of all CPUs together, most first.
    pub causes: Vec<JitterCauseRecord>,
    /// The longest gaps, longest first.
    pub longest: Vec<GapRecord>,
    /// Why causes are unknown, and what would reveal them; `null` if the kernel reported them.
    pub causes_unavailable: Option<String>,
    /// How the system is set to keep CPUs free.
    pub isolation: IsolationRecord,
}

open_enum! {
    /// A kind of what takes a CPU from a thread.
    GapCause {
        /// A device's interrupt.
        Interrupt = "interrupt",
        /// An interrupt of the CPUs' own: a timer, or a message of another CPU.
        CpuInterrupt = "cpu-interrupt",
        /// An interrupt that cannot be masked.
        Nmi = "nmi",
        /// Deferred work of an interrupt.
        Softirq = "softirq",
        /// Another thread.
        Thread = "thread",
        /// A quota on CPU time: the CPU was idle though the thread was ready.
        Quota = "quota",
        /// The hypervisor: the kernel did nothing during the gap.
        Hypervisor = "hypervisor",
        /// Firmware (SMI) or hardware: the kernel did nothing during the gap.
        Hardware = "hardware",
        /// Not known.
        Unknown = "unknown",
    }
}

/// How much something took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JitterCauseRecord {
    /// What kind of thing.
    pub kind: GapCause,
    /// Its name: the owner of the interrupt, the softirq, the thread; empty if the kind says it
    /// all.
    pub name: String,
    /// An interrupt's number, as in `/proc/irq`; `null` for anything else.
    pub irq: Option<u32>,
    /// The PCI device that raises it; `null` if there is none.
    pub device: Option<String>,
    /// The CPUs that it took time from, as a list.
    pub cpus: String,
    /// Gaps that it took most of.
    pub gaps: u64,
    /// Time that it took, of all gaps, ms.
    pub lost_ms: f64,
    /// The most it took of one gap, µs.
    pub longest_us: f64,
}

/// A CPU that was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JitterCpuRecord {
    /// The CPU.
    pub cpu: usize,
    /// For how long it was watched, s.
    pub watched_s: f64,
    /// Time between two readings of the clock, ns: nothing shorter is seen.
    pub resolution_ns: f64,
    /// The usual time for entering and leaving the kernel, µs, which counts as part of the work
    /// done there. `null` if the kernel reported too little.
    pub entry_us: Option<f64>,
    /// Gaps.
    pub gaps: u64,
    /// The median length, µs; `null` if there are none.
    pub median_us: Option<f64>,
    /// The length that 99 % of them do not exceed, µs.
    pub p99_us: Option<f64>,
    /// The longest, µs.
    pub longest_us: Option<f64>,
    /// All gaps together as a share of the time.
    pub lost_share: f64,
    /// Gaps that the full buffer could not take: only their number is known.
    pub unwritten: u64,
    /// What took the time, most first.
    pub causes: Vec<JitterCauseRecord>,
    /// How long the thread was queued behind others, ms; `null` if unknown.
    pub queued_ms: Option<f64>,
    /// Time that the hypervisor gave to others, ms, in steps of 10 ms on most systems; `null` if
    /// unknown.
    pub steal_ms: Option<f64>,
    /// Interrupts that the system counted during the measurement.
    pub interrupts: Vec<CountedRecord>,
    /// Softirqs that the system counted during the measurement.
    pub softirqs: Vec<CountedRecord>,
}

/// Something that the system counts, CPU by CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CountedRecord {
    /// A number of `/proc/irq`, or letters as in `/proc/interrupts`.
    pub label: String,
    /// Its name; empty if the label says it.
    pub name: String,
    /// How often it came.
    pub count: u64,
}

/// One gap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GapRecord {
    /// The CPU.
    pub cpu: usize,
    /// When it began, s from the start.
    pub at_s: f64,
    /// How long it was, µs.
    pub length_us: f64,
    /// What took it, most first; all parts together are the gap.
    pub parts: Vec<GapPartRecord>,
}

/// Something that took a part of a gap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GapPartRecord {
    /// What kind of thing.
    pub kind: GapCause,
    /// Its name.
    pub name: String,
    /// An interrupt's number.
    pub irq: Option<u32>,
    /// How much it took, µs.
    pub us: f64,
}

/// How a system is set to keep CPUs free, CPUs as lists; empty if it is not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IsolationRecord {
    /// CPUs that the scheduler leaves alone unless a thread asks for them (`isolcpus`).
    pub isolated: String,
    /// CPUs without a tick while they run one thread (`nohz_full`).
    pub nohz_full: String,
    /// CPUs whose RCU callbacks others run (`rcu_nocbs`).
    pub rcu_nocbs: String,
    /// Are interrupts that the kernel places itself kept off isolated CPUs
    /// (`isolcpus=managed_irq`)?
    pub managed_irq: bool,
    /// CPUs that interrupts may use unless something else is set (`irqaffinity`).
    pub irq_default: String,
}

/// The name of a cause: `local_timer`, `virtio2-rx (IRQ 38)`, `softirq RCU`.
pub(crate) fn name_cause(kind: &GapCause, name: &str, irq: Option<u32>) -> String {
    let name = match irq {
        Some(irq) if name.is_empty() => format!("IRQ {irq}"),
        Some(irq) => format!("{name} (IRQ {irq})"),
        None => name.to_owned(),
    };
    match kind {
        GapCause::Interrupt | GapCause::CpuInterrupt => name,
        kind if name.is_empty() => kind.to_string(),
        kind => format!("{kind} {name}"),
    }
}

impl JitterCauseRecord {
    /// What it is called.
    #[must_use]
    pub fn label(&self) -> String {
        name_cause(&self.kind, &self.name, self.irq)
    }
}

impl StoredRecord for JitterRecord {
    fn entry(&self) -> Entry {
        let worst = self.cpus.iter().filter_map(|cpu| cpu.longest_us);
        let worst = worst.reduce(f64::max);
        let cause = self.causes.first();
        let cause = cause.filter(|cause| cause.kind != GapCause::Unknown);
        let cause = cause.map(|cause| format!(", most time to {}", cause.label()));
        let least = seconds(self.threshold_us * 1e-6);
        let verdict = worst.map_or_else(
            || format!("no gap above {least}"),
            |worst| {
                format!(
                    "{} above {least}, the longest {}{}",
                    count_of(self.gaps, "gap", "gaps"),
                    seconds(worst * 1e-6),
                    cause.unwrap_or_default()
                )
            },
        );
        let cpus = match self.cpus.as_slice() {
            [cpu] => format!("CPU {}", cpu.cpu),
            cpus => format!("{} CPUs", cpus.len()),
        };
        Entry {
            is_complete: !self.interrupted,
            ..self
                .header
                .to_entry::<Self>(self.host.name(), format!("jitter of {cpus}"), verdict)
        }
    }
}
