//! Jitter: gaps in which a CPU did not run its thread, and their causes.

use serde::{Deserialize, Serialize};

use crate::named::open_enum;
use crate::{Answer, Entry, Header, HostRecord, StoredRecord};

/// Gaps of threads that only read the clock, CPU by CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "schema", rename = "pinwise.jitter/1")]
pub struct JitterRecord {
    /// The fields of every stored record.
    #[serde(flatten)]
    pub header: Header,
    /// The machine it ran on.
    pub host: HostRecord,
    /// A time between two readings of the clock longer than this is a gap, µs.
    pub threshold_us: f64,
    /// Requested time of watching each CPU, s.
    pub asked_s: f64,
    /// Did the user end it earlier?
    pub interrupted: bool,
    /// Gaps of all CPUs together.
    pub gaps: u64,
    /// Share of the gaps whose cause is known; `null` if there are none.
    pub named_share: Option<f64>,
    /// Every CPU that was watched.
    pub cpus: Vec<JitterCpuRecord>,
    /// The causes over all CPUs together, the longest time first.
    pub causes: Vec<JitterCauseRecord>,
    /// The longest gaps, longest first.
    pub longest: Vec<GapRecord>,
    /// How much time was lost and to what, and what would change it.
    pub answer: Answer,
    /// Why causes are unknown, and what would reveal them; `null` if the kernel reported them.
    pub causes_unavailable: Option<String>,
    /// The system's settings that keep CPUs free.
    pub isolation: IsolationRecord,
}

open_enum! {
    /// A kind of cause of a gap.
    GapCause {
        /// A device's interrupt.
        Interrupt = "interrupt",
        /// An interrupt between or within CPUs: a timer, or a message of another CPU.
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
        /// Unknown.
        Unknown = "unknown",
    }
}

/// The time that a cause took.
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
    /// Gaps of which it took the largest part.
    pub gaps: u64,
    /// Time that it took in all gaps, ms.
    pub lost_ms: f64,
    /// The longest time that it took in one gap, µs.
    pub longest_us: f64,
}

/// A CPU that was watched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JitterCpuRecord {
    /// The CPU.
    pub cpu: usize,
    /// How long it was watched, s.
    pub watched_s: f64,
    /// Time between two readings of the clock, ns: shorter gaps are not seen.
    pub resolution_ns: f64,
    /// Typical time for entering and leaving the kernel, µs; it is attributed to the causes. `null`
    /// if the kernel reported too little.
    pub entry_us: Option<f64>,
    /// Gaps.
    pub gaps: u64,
    /// The median length, µs; `null` if there are none.
    pub median_us: Option<f64>,
    /// The 99th percentile of their lengths, µs.
    pub p99_us: Option<f64>,
    /// The longest, µs.
    pub longest_us: Option<f64>,
    /// Total length of the gaps as a share of the time.
    pub lost_share: f64,
    /// Gaps that the full buffer could not take: only their number is known.
    pub unwritten: u64,
    /// What took the time, most first.
    pub causes: Vec<JitterCauseRecord>,
    /// How long the thread was queued behind other threads, ms; `null` if unknown.
    pub queued_ms: Option<f64>,
    /// Time that the hypervisor gave to other guests, ms, in steps of 10 ms on most systems; `null`
    /// if unknown.
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
    /// How often it occurred.
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
    /// Its parts, the longest first; they add up to the gap.
    pub parts: Vec<GapPartRecord>,
}

/// A part of a gap with its cause.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GapPartRecord {
    /// What kind of thing.
    pub kind: GapCause,
    /// Its name.
    pub name: String,
    /// An interrupt's number.
    pub irq: Option<u32>,
    /// Its length, µs.
    pub us: f64,
}

/// Settings that keep CPUs free; CPUs as lists, empty if not set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct IsolationRecord {
    /// CPUs that the scheduler leaves alone unless a thread asks for them (`isolcpus`).
    pub isolated: String,
    /// CPUs without a tick while they run one thread (`nohz_full`).
    pub nohz_full: String,
    /// CPUs whose RCU callbacks run on other CPUs (`rcu_nocbs`).
    pub rcu_nocbs: String,
    /// Are interrupts that the kernel places itself kept off isolated CPUs
    /// (`isolcpus=managed_irq`)?
    pub managed_irq: bool,
    /// CPUs that interrupts use by default (`irqaffinity`).
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
    /// Its name for display.
    #[must_use]
    pub fn label(&self) -> String {
        name_cause(&self.kind, &self.name, self.irq)
    }
}

impl JitterRecord {
    /// What was watched: `CPU 3`, `16 CPUs`.
    #[must_use]
    pub fn name_cpus(&self) -> String {
        match self.cpus.as_slice() {
            [cpu] => format!("CPU {}", cpu.cpu),
            cpus => format!("{} CPUs", cpus.len()),
        }
    }
}

impl StoredRecord for JitterRecord {
    fn entry(&self) -> Entry {
        Entry {
            is_complete: !self.interrupted,
            ..self.header.to_entry::<Self>(
                self.host.name(),
                format!("jitter of {}", self.name_cpus()),
                self.answer.sentence.clone(),
            )
        }
    }
}
