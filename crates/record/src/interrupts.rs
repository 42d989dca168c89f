//! Time that interrupts and softirqs took during a trace.

use serde::{Deserialize, Serialize};

use super::jitter::{GapCause, name_cause};

/// Time that interrupts and softirqs took while a trace ran.
///
/// Each moment belongs to the innermost activity of the kernel. An activity without a beginning or
/// an end, or with lost records inside, counts nowhere.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterruptsRecord {
    /// Time that they took on CPUs while threads of the program ran there, seconds: it is part of
    /// the program's CPU time.
    pub stolen_s: f64,
    /// `stolen_s` as a share of the program's CPU time, per cent; `null` if that is unknown.
    pub stolen_percent: Option<f64>,
    /// Each cause, most time first.
    pub causes: Vec<InterruptCauseRecord>,
    /// Number of kernel events that the figures are based on; each event delays what runs there.
    pub reports: u64,
    /// How often events were lost; if so, the figures are lower bounds.
    pub gaps: u64,
    /// Beginnings without an end and ends without a beginning.
    pub unmatched: u64,
}

/// Time that a cause took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterruptCauseRecord {
    /// The kind of cause.
    pub kind: GapCause,
    /// Its name: the owner of the interrupt, or the softirq; empty if the kind says it all.
    pub name: String,
    /// An interrupt's number, as in `/proc/irq`; `null` for anything else.
    pub irq: Option<u32>,
    /// The PCI device that raises it; `null` if there is none.
    pub device: Option<String>,
    /// How often it occurred.
    pub count: u64,
    /// How often by the kernel's own counter (`/proc/interrupts`, `/proc/softirqs`); `null` if
    /// there is none.
    pub counted: Option<u64>,
    /// Did the kernel count clearly more than it reported? Then these figures are lower bounds.
    pub is_lower_bound: bool,
    /// The time it took, seconds.
    pub seconds: f64,
    /// Part of it that was taken from threads of the program, seconds.
    pub stolen_s: f64,
    /// The CPUs that it occurred on, in order.
    pub cpus: Vec<InterruptCpuRecord>,
}

/// Time that a cause took from a CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InterruptCpuRecord {
    /// The CPU.
    pub cpu: usize,
    /// How often it occurred.
    pub count: u64,
    /// The time it took, seconds.
    pub seconds: f64,
    /// As a share of the trace's time, per cent.
    pub percent: f64,
    /// Part of it that was taken from threads of the program, seconds.
    pub stolen_s: f64,
    /// As a share of the program's CPU time there, per cent; `null` if it did not run there, or if
    /// unknown.
    pub stolen_percent: Option<f64>,
}

impl InterruptCauseRecord {
    /// Its name: `eth0-rx-1 (IRQ 38)`, `softirq NET_RX`.
    #[must_use]
    pub fn label(&self) -> String {
        name_cause(&self.kind, &self.name, self.irq)
    }
}
