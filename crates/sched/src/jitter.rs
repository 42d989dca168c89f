//! Explains what takes a CPU from a thread that is always ready to run: the gaps that the thread
//! measured, by what the kernel reports for their time.
//!
//! ```text
//! gaps of a CPU ───────────────────────┐
//! tracepoints ──► ReportDecoder ──► Explainer ──► ExplainedGap… ──► Tally
//! ```
//!
//! The time of a gap is split: each moment counts for the innermost activity of the kernel, and all
//! parts sum to the gap. A gap is counted under its largest part. Unreported time is assumed to be
//! the entry to the kernel and the exit, and counts for the gap's largest part, up to twice what is
//! usual on the CPU. If it is longer, or the kernel reports nothing in the gap, its cause is a
//! hypervisor or firmware beneath the kernel.

mod explain;
mod points;
mod tally;

pub use explain::{Explainer, Knowledge};
pub use points::ReportDecoder;
pub use tally::{Amount, Tally};

use super::Tid;

/// What took a CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// A device's interrupt.
    Interrupt {
        /// The system's number, as in `/proc/irq`.
        number: u32,
        /// Its requester, as in `/proc/interrupts`.
        name: Box<str>,
    },
    /// A CPU-local interrupt: its timer, or a message of another CPU.
    Vector(Box<str>),
    /// An interrupt that cannot be masked.
    Nmi,
    /// Deferred work of an interrupt.
    Softirq(Box<str>),
    /// Another thread.
    Thread(Box<str>),
    /// A quota on CPU time: the CPU idled although the thread was ready to run.
    Quota,
    /// A hypervisor, or firmware: the kernel reports nothing.
    HypervisorOrFirmware,
    /// Unknown: there are no reports, or they were lost.
    Unknown,
}

/// A file with the kernel's interrupt counts per CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterFile {
    /// `/proc/interrupts`.
    Interrupts,
    /// `/proc/softirqs`.
    Softirqs,
}

impl Cause {
    /// Where the kernel counts it: the file and the line's label; `None` if no counter has the same
    /// meaning (`CAL` counts two vectors; an NMI has several handlers).
    #[must_use]
    pub fn counter(&self) -> Option<(CounterFile, String)> {
        let vector = |name: &str| {
            Some(match name {
                "local_timer" => "LOC",
                "reschedule" => "RES",
                "irq_work" => "IWI",
                "thermal_apic" => "TRM",
                "threshold_apic" => "THR",
                _ => return None,
            })
        };
        match self {
            Self::Interrupt { number, .. } => Some((CounterFile::Interrupts, number.to_string())),
            Self::Vector(name) => vector(name).map(|it| (CounterFile::Interrupts, it.to_owned())),
            Self::Softirq(name) => Some((CounterFile::Softirqs, name.to_string())),
            _ => None,
        }
    }

    /// Is it the same activity? A device's interrupt has no name at its end.
    pub(crate) fn is_same_activity(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Interrupt { number: a, .. }, Self::Interrupt { number: b, .. }) => a == b,
            _ => self == other,
        }
    }
}

/// A kernel report about a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Time, ns of the clock that times gaps.
    pub time_ns: u64,
    /// What is reported.
    pub what: ReportKind,
}

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportKind {
    /// This activity starts.
    Enter(Cause),
    /// This activity ends.
    Leave(Cause),
    /// This activity ends; it took this time, ns.
    Was(Cause, u64),
    /// This thread runs from now on.
    Run {
        /// The thread.
        thread: Tid,
        /// Its name.
        name: Box<str>,
    },
    /// Earlier reports were lost.
    Lost,
}

/// A time in which a thread that only reads the clock did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// When it began, ns.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
}

impl Gap {
    /// How long it was, ns.
    #[must_use]
    pub const fn length_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }
}

/// A gap and the causes of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedGap {
    /// The gap.
    pub gap: Gap,
    /// The parts of its time by cause, ns, largest first; they sum to the gap.
    pub parts: Vec<(Cause, u64)>,
}
