//! What took a CPU, in a record's words.

use pinwise_record::GapCause;
use pinwise_sched::jitter::Cause;

/// A cause as records name it.
pub(crate) struct NamedCause {
    pub(crate) kind: GapCause,
    /// Empty if the kind says all.
    pub(crate) name: String,
    /// The number of a device's interrupt.
    pub(crate) irq: Option<u32>,
}

impl NamedCause {
    /// What is below the kernel counts as hardware here: callers that know of a hypervisor say so
    /// instead.
    pub(crate) fn new(cause: &Cause) -> Self {
        let (kind, name) = match cause {
            Cause::Interrupt { name, .. } => (GapCause::Interrupt, &**name),
            Cause::Vector(vector) => (GapCause::CpuInterrupt, &**vector),
            Cause::Nmi => (GapCause::Nmi, ""),
            Cause::Softirq(softirq) => (GapCause::Softirq, &**softirq),
            Cause::Thread(thread) => (GapCause::Thread, &**thread),
            Cause::Quota => (GapCause::Quota, ""),
            Cause::HypervisorOrFirmware => (GapCause::Hardware, ""),
            Cause::Unknown => (GapCause::Unknown, ""),
        };
        Self {
            kind,
            name: name.to_owned(),
            irq: match cause {
                Cause::Interrupt { number, .. } => Some(*number),
                _ => None,
            },
        }
    }
}
