//! Translates the cause of a gap, as `sched` finds it, into the words of records.

use pinwise_record::GapCause;
use pinwise_sched::jitter::Cause;

/// A cause as records name it.
pub(crate) struct NamedCause {
    pub(crate) kind: GapCause,
    /// Name of the interrupt or thread; empty if the kind says all.
    pub(crate) name: String,
    /// Number of a device's interrupt.
    pub(crate) irq: Option<u32>,
}

impl NamedCause {
    /// Gaps that the kernel did not see count as hardware; callers that know that there is a
    /// hypervisor replace that.
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
