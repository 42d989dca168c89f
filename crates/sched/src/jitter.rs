//! What takes a CPU from a thread that only wants to run: gaps that the thread saw, attributed to
//! what the kernel reports for them.
//!
//! ```text
//! gaps of a CPU ────────────────┐
//! tracepoints ──► Points ──► Explainer ──► ExplainedGap… ──► Tally
//! ```
//!
//! The time of a gap is split: each moment belongs to the innermost activity of the kernel, and all
//! parts sum to the gap. A gap is counted under its largest part. Unreported moments are the entry
//! to the kernel and the exit, and belong to the gap's largest part, up to twice what is usual on
//! the CPU; if they are longer, or nothing of the gap is reported, they belong to a hypervisor or
//! firmware beneath the kernel.

mod explain;
mod points;
mod tally;

pub use explain::{Explainer, Knowledge};
pub use points::Points;
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
    /// The CPU idled although the thread could have run: a quota on CPU time.
    Quota,
    /// Not the kernel's: a hypervisor, or firmware.
    HypervisorOrFirmware,
    /// Unknown: no events, or they were lost.
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
    /// The kernel's own count of it: the file and the line's label; `None` if none has the same
    /// meaning (`CAL` is of two vectors; an NMI has several handlers).
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
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Interrupt { number: a, .. }, Self::Interrupt { number: b, .. }) => a == b,
            _ => self == other,
        }
    }
}

/// A kernel report about a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Time, ns of the clock that times gaps.
    pub time_ns: u64,
    /// The kind of step.
    pub what: StepKind,
}

/// The content of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    /// This begins.
    Enter(Cause),
    /// This ends.
    Leave(Cause),
    /// This ends now, after this long, ns.
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

/// A gap and what took its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedGap {
    /// The gap.
    pub gap: Gap,
    /// The parts of its time by cause, ns, largest first; they sum to the gap.
    pub parts: Vec<(Cause, u64)>,
}
