//! The seam for sampling: where a program's CPU time goes, down to the
//! instruction.

use std::time::Duration;

use super::{Host, MachineError, Run, Subject};
use pinwise_profile::{Event, Samples, Stacks};

/// A machine whose CPUs can be sampled.
pub trait Sampler: Host {
    /// Samples where a command's or process's CPU time goes.
    ///
    /// # Errors
    /// [`MachineError`] where the event asked for is not available, the process is
    /// gone, the command cannot be started, code is not executed (a simulated
    /// machine), or the user interrupts before it begins. A process that ends, or that
    /// the user no longer wants to watch, ends the sampling without an error, as does a
    /// command that is interrupted ([`End::Interrupted`](crate::End)).
    fn sample(&mut self, order: &SampleOrder<'_>) -> Result<Sampled, MachineError>;
}

/// Samples to be made.
#[derive(Debug, Clone, Copy)]
pub struct SampleOrder<'a> {
    /// Of whom; everything is not possible.
    pub subject: Subject<'a>,
    /// What makes them; `None`: the best that is permitted.
    pub event: Option<Event>,
    /// Samples per second of a thread's CPU time.
    pub hz: u32,
    /// How callers are found.
    pub stacks: Stacks,
    /// For how long at most; a process is then left as it was, a command is
    /// killed as by its time-out. `None`: to the end. What a command leaves
    /// running runs on.
    pub limit: Option<Duration>,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The samples.
    pub samples: Samples,
    /// How the command ran, where one was started.
    pub run: Option<Run>,
    /// CPU time that pinwise itself used meanwhile, without that for names and
    /// code afterwards.
    pub own_cpu: Duration,
    /// What else should be known of it, as full sentences: what was not
    /// permitted and what would permit it, a process that ended.
    pub notes: Vec<String>,
}
