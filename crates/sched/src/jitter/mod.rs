//! What takes a CPU from a thread that wants nothing but to run: gaps that the
//! thread saw, put down to what the kernel says it did meanwhile.
//!
//! ```text
//! gaps of a CPU ────────────────┐
//! tracepoints ──► Points ──► Explainer ──► ExplainedGap… ──► Tally
//! ```
//!
//! The time of a gap is split: each moment belongs to the innermost thing that
//! the kernel was at, and all parts together are the gap. A gap is counted under
//! its largest part. Moments of which the kernel reports nothing are the way into
//! it and out of it, and belong to the gap's largest part, up to twice what is
//! usual on the CPU; where they are more, or nothing at all is reported of the gap,
//! they belong to what is beneath the kernel, a hypervisor or firmware.

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
        /// Who asked for it, as in `/proc/interrupts`.
        name: Box<str>,
    },
    /// An interrupt of the CPUs' own: its timer, or a message of another CPU.
    Vector(Box<str>),
    /// An interrupt that cannot be masked.
    Nmi,
    /// Work that an interrupt left to be done.
    Softirq(Box<str>),
    /// Another thread.
    Thread(Box<str>),
    /// Nobody ran though the thread could have: a quota on CPU time.
    Quota,
    /// Nothing that the kernel did: a hypervisor, or firmware.
    Beneath,
    /// Nobody knows: no events, or they were lost.
    Unknown,
}

/// A file in which the kernel counts what came to its CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterFile {
    /// `/proc/interrupts`.
    Interrupts,
    /// `/proc/softirqs`.
    Softirqs,
}

impl Cause {
    /// The kernel's own count of it: the file and the line's label; `None` where it has
    /// none that means the same (`CAL` is of two vectors; an NMI has several handlers).
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

    /// Is it the same thing? A device's interrupt has no name where it ends.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Interrupt { number: a, .. }, Self::Interrupt { number: b, .. }) => a == b,
            _ => self == other,
        }
    }
}

/// Something that the kernel reports of a CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// When, ns of the clock that gaps are timed with.
    pub time_ns: u64,
    /// What.
    pub what: StepKind,
}

/// What the kernel reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepKind {
    /// It begins with this.
    Enter(Cause),
    /// It is done with this.
    Leave(Cause),
    /// It was at this until now, for this long, ns.
    Was(Cause, u64),
    /// This thread runs from now on.
    Run {
        /// Who.
        thread: Tid,
        /// Its name.
        name: Box<str>,
    },
    /// Reports since the one before were lost.
    Lost,
}

/// A time in which a thread that only reads the clock did not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// When it began, ns.
    pub from_ns: u64,
    /// When it was over.
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
    /// When.
    pub gap: Gap,
    /// What took how much of it, ns, most first; all of it together.
    pub parts: Vec<(Cause, u64)>,
}
