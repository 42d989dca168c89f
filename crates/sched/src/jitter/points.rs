//! Tracepoints of interrupts and switches, from the bytes of perf's records.
//!
//! Their set depends on the kernel and the architecture: each is read by the kernel's own
//! description, and a missing one is fine.

use super::{Cause, StepKind};
use crate::perf::Native;
use crate::{Field, FormatError, Tid, TracepointFormat};

/// Names of the softirqs by number, as `/proc/softirqs` has them.
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// The formats of the tracepoints' records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Points {
    kind: Option<Field>,
    thread: Option<Field>,
    points: Vec<(u64, Point)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Point {
    Switch { next: Field, name: Field },
    InterruptEntry { number: Field, name: Field },
    InterruptExit { number: Field },
    SoftirqEntry { number: Field },
    SoftirqExit { number: Field },
    VectorEntry(Box<str>),
    VectorExit(Box<str>),
    Nmi { length: Field },
}

impl Points {
    /// Learns the format of a tracepoint; `system`: the folder of its description. False if the
    /// tracepoint is not used.
    ///
    /// # Errors
    /// [`FormatError`] if its fields are unknown.
    pub fn add(&mut self, system: &str, format: &TracepointFormat) -> Result<bool, FormatError> {
        let name = format.name.as_str();
        let vector = |end: &str| name.strip_suffix(end).map(Box::from);
        let point = match (system, name) {
            ("sched", "sched_switch") => Point::Switch {
                next: format.number("next_pid")?,
                name: format.field("next_comm")?,
            },
            ("irq", "irq_handler_entry") => Point::InterruptEntry {
                number: format.number("irq")?,
                name: format.field("name")?,
            },
            ("irq", "irq_handler_exit") => Point::InterruptExit {
                number: format.number("irq")?,
            },
            ("irq", "softirq_entry") => Point::SoftirqEntry {
                number: format.number("vec")?,
            },
            ("irq", "softirq_exit") => Point::SoftirqExit {
                number: format.number("vec")?,
            },
            ("nmi", "nmi_handler") => Point::Nmi {
                length: format.number("delta_ns")?,
            },
            ("irq_vectors" | "ipi", _) => match (vector("_entry"), vector("_exit")) {
                (Some(name), _) => Point::VectorEntry(name),
                (_, Some(name)) => Point::VectorExit(name),
                _ => return Ok(false),
            },
            _ => return Ok(false),
        };
        self.kind.get_or_insert(format.number("common_type")?);
        self.thread = self.thread.or(format.number("common_pid").ok());
        self.points.push((format.id, point));
        Ok(true)
    }

    /// The thread that had the CPU when a record was written; `None` if the kernel's description
    /// has no field for it, or the record is too short.
    #[must_use]
    pub fn thread(&self, raw: &[u8]) -> Option<Tid> {
        self.thread?.small(raw, Native)
    }

    /// The content of a record; `None` if it is another one or too short.
    #[must_use]
    pub fn read(&self, raw: &[u8]) -> Option<StepKind> {
        let id = u64::try_from(self.kind?.number(raw, Native)?).ok()?;
        let (_, point) = self.points.iter().find(|(known, _)| *known == id)?;
        let number = |field: &Field| field.small(raw, Native).map(i32::cast_unsigned);
        let softirq = |field: &Field| {
            let number = number(field)?;
            let known = usize::try_from(number).ok().and_then(|at| SOFTIRQS.get(at));
            Some(Cause::Softirq(match known {
                Some(&name) => name.into(),
                None => number.to_string().into(),
            }))
        };
        Some(match point {
            Point::Switch { next, name } => StepKind::Run {
                thread: next.small(raw, Native)?,
                name: text(*name, raw)?,
            },
            Point::InterruptEntry { number: irq, name } => StepKind::Enter(Cause::Interrupt {
                number: number(irq)?,
                name: text(*name, raw)?,
            }),
            Point::InterruptExit { number: irq } => StepKind::Leave(Cause::Interrupt {
                number: number(irq)?,
                name: "".into(),
            }),
            Point::SoftirqEntry { number } => StepKind::Enter(softirq(number)?),
            Point::SoftirqExit { number } => StepKind::Leave(softirq(number)?),
            Point::VectorEntry(name) => StepKind::Enter(Cause::Vector(name.clone())),
            Point::VectorExit(name) => StepKind::Leave(Cause::Vector(name.clone())),
            Point::Nmi { length } => {
                let length_ns = length.number(raw, Native)?;
                StepKind::Was(Cause::Nmi, u64::try_from(length_ns).unwrap_or(0))
            }
        })
    }
}

/// A text up to its zero byte; untrusted when shown.
fn text(field: Field, raw: &[u8]) -> Option<Box<str>> {
    let bytes = field.text(raw, Native)?;
    let end = bytes.iter().position(|byte| *byte == 0);
    let bytes = &bytes[..end.unwrap_or(bytes.len())];
    Some(String::from_utf8_lossy(bytes).into())
}

#[cfg(test)]
mod tests;
