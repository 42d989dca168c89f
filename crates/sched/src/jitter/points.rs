//! Decodes tracepoints of interrupts and switches from the bytes of perf's records.
//!
//! Which tracepoints exist depends on the kernel and the architecture: each is decoded by the
//! kernel's own description, and any may be missing.

use super::{Cause, ReportKind};
use crate::perf::Native;
use crate::{Field, FormatError, Tid, TracepointFormat};

/// Names of the softirqs by number, as in `/proc/softirqs`.
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Decodes the records of the added tracepoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportDecoder {
    /// The field with a tracepoint's id, the same in all of them.
    kind: Option<Field>,
    thread: Option<Field>,
    /// By id.
    tracepoints: Vec<(u64, Tracepoint)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Tracepoint {
    Switch { next: Field, name: Field },
    InterruptEntry { number: Field, name: Field },
    InterruptExit { number: Field },
    SoftirqEntry { number: Field },
    SoftirqExit { number: Field },
    VectorEntry(Box<str>),
    VectorExit(Box<str>),
    Nmi { length: Field },
}

impl ReportDecoder {
    /// Adds a tracepoint; `system` is the folder of its description. False if the tracepoint is not
    /// used.
    ///
    /// # Errors
    /// [`FormatError`] if its fields are unknown.
    pub fn add(&mut self, system: &str, format: &TracepointFormat) -> Result<bool, FormatError> {
        let name = format.name.as_str();
        let strip_vector = |end: &str| name.strip_suffix(end).map(Box::from);
        let tracepoint = match (system, name) {
            ("sched", "sched_switch") => Tracepoint::Switch {
                next: format.number("next_pid")?,
                name: format.field("next_comm")?,
            },
            ("irq", "irq_handler_entry") => Tracepoint::InterruptEntry {
                number: format.number("irq")?,
                name: format.field("name")?,
            },
            ("irq", "irq_handler_exit") => Tracepoint::InterruptExit {
                number: format.number("irq")?,
            },
            ("irq", "softirq_entry") => Tracepoint::SoftirqEntry {
                number: format.number("vec")?,
            },
            ("irq", "softirq_exit") => Tracepoint::SoftirqExit {
                number: format.number("vec")?,
            },
            ("nmi", "nmi_handler") => Tracepoint::Nmi {
                length: format.number("delta_ns")?,
            },
            ("irq_vectors" | "ipi", _) => match (strip_vector("_entry"), strip_vector("_exit")) {
                (Some(name), _) => Tracepoint::VectorEntry(name),
                (_, Some(name)) => Tracepoint::VectorExit(name),
                _ => return Ok(false),
            },
            _ => return Ok(false),
        };
        self.kind.get_or_insert(format.number("common_type")?);
        self.thread = self.thread.or(format.number("common_pid").ok());
        self.tracepoints.push((format.id, tracepoint));
        Ok(true)
    }

    /// The thread that had the CPU when a record was written; `None` if the kernel's description
    /// has no field for it, or the record is too short.
    #[must_use]
    pub fn thread(&self, raw: &[u8]) -> Option<Tid> {
        self.thread?.small(raw, Native)
    }

    /// Decodes a record; `None` if it is of another tracepoint or too short.
    #[must_use]
    pub fn decode(&self, raw: &[u8]) -> Option<ReportKind> {
        let id = u64::try_from(self.kind?.number(raw, Native)?).ok()?;
        let (_, tracepoint) = self.tracepoints.iter().find(|(known, _)| *known == id)?;
        let number = |field: &Field| field.small(raw, Native).map(i32::cast_unsigned);
        let softirq = |field: &Field| {
            let number = number(field)?;
            let known = usize::try_from(number).ok().and_then(|at| SOFTIRQS.get(at));
            Some(Cause::Softirq(match known {
                Some(&name) => name.into(),
                None => number.to_string().into(),
            }))
        };
        Some(match tracepoint {
            Tracepoint::Switch { next, name } => ReportKind::Run {
                thread: next.small(raw, Native)?,
                name: decode_text(*name, raw)?,
            },
            Tracepoint::InterruptEntry { number: irq, name } => {
                ReportKind::Enter(Cause::Interrupt {
                    number: number(irq)?,
                    name: decode_text(*name, raw)?,
                })
            }
            Tracepoint::InterruptExit { number: irq } => ReportKind::Leave(Cause::Interrupt {
                number: number(irq)?,
                name: "".into(),
            }),
            Tracepoint::SoftirqEntry { number } => ReportKind::Enter(softirq(number)?),
            Tracepoint::SoftirqExit { number } => ReportKind::Leave(softirq(number)?),
            Tracepoint::VectorEntry(name) => ReportKind::Enter(Cause::Vector(name.clone())),
            Tracepoint::VectorExit(name) => ReportKind::Leave(Cause::Vector(name.clone())),
            Tracepoint::Nmi { length } => {
                let length_ns = length.number(raw, Native)?;
                ReportKind::Was(Cause::Nmi, u64::try_from(length_ns).unwrap_or(0))
            }
        })
    }
}

/// Decodes a text up to its zero byte. It can contain anything.
fn decode_text(field: Field, raw: &[u8]) -> Option<Box<str>> {
    let bytes = field.text(raw, Native)?;
    let end = bytes.iter().position(|byte| *byte == 0);
    let bytes = &bytes[..end.unwrap_or(bytes.len())];
    Some(String::from_utf8_lossy(bytes).into())
}

#[cfg(test)]
mod tests;
