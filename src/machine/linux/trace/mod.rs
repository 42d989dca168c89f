//! Collecting what the scheduler does on this host.
//!
//! Five tiers stand behind one trait, [`Source`]: it is opened before the
//! command starts, drained now and then, and closed after the last thread has
//! ended. [`Machine::trace`](crate::machine::Machine::trace) drives it beside
//! the supervision of the command; nothing here decides what events mean.

mod bpf;

use std::os::fd::RawFd;

use crate::trace::{Event, Refusal, Tid, Tier};

/// Whose threads a source shall see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A command that this process will start after the source is open.
    Child,
    /// A process that runs already.
    Process(Tid),
    /// All.
    Everything,
}

/// Events of one tier as they come.
pub(super) trait Source {
    /// Descriptors that become readable when a buffer fills up and should be
    /// drained before the round is over; may be none.
    fn descriptors(&self) -> Vec<RawFd>;

    /// Takes what has been recorded and appends it, in the order of time over
    /// all CPUs, to `events`. Events that might yet be overtaken by earlier
    /// ones are held back.
    fn drain(&mut self, events: &mut Vec<Event>);

    /// Stops recording and appends all that is left.
    fn finish(&mut self, events: &mut Vec<Event>);
}

/// What stands in the way of a source.
pub(super) type Opened = Result<Box<dyn Source>, Refusal>;

/// Opens a tier.
pub(super) fn open(tier: Tier, target: Target) -> Opened {
    match tier {
        Tier::Bpf => bpf::open(target),
        _ => Err(Refusal {
            reason: "not built yet".to_owned(),
            remedy: None,
        }),
    }
}
