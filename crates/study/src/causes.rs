//! What took a CPU, in a record's words.

use pinwise_record::GapCause;
use pinwise_sched::jitter::Cause;

/// Kind, name and number of a cause. What is below the kernel counts as hardware here: callers that
/// know of a hypervisor say so instead.
pub(crate) fn words(cause: &Cause) -> (GapCause, String, Option<u32>) {
    let name = |kind, name: &str| (kind, name.to_owned(), None);
    match cause {
        Cause::Interrupt { number, name } => (GapCause::Interrupt, name.to_string(), Some(*number)),
        Cause::Vector(vector) => name(GapCause::CpuInterrupt, vector),
        Cause::Nmi => name(GapCause::Nmi, ""),
        Cause::Softirq(softirq) => name(GapCause::Softirq, softirq),
        Cause::Thread(thread) => name(GapCause::Thread, thread),
        Cause::Quota => name(GapCause::Quota, ""),
        Cause::HypervisorOrFirmware => name(GapCause::Hardware, ""),
        Cause::Unknown => name(GapCause::Unknown, ""),
    }
}
