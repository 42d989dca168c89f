//! The seam for sampling: a program's use of CPU time, down to the instruction.

use std::time::Duration;

use super::{Host, MachineError, Run, Subject};
use pinwise_profile::{Event, Samples, Stacks};

/// A machine that can sample CPU time.
pub trait Sampler: Host {
    /// Samples where a command's or process's CPU time goes.
    ///
    /// # Errors
    /// [`MachineError`] if the requested event is not available, the process is gone, the command
    /// cannot be started, code is not executed (a simulated machine), or the user interrupts before
    /// it begins. Sampling ends without an error if a process ends, the user stops watching it, or
    /// a command is interrupted ([`End::Interrupted`](crate::End)).
    fn sample(&mut self, order: &SampleOrder<'_>) -> Result<SamplingResult, MachineError>;
}

/// What to sample.
#[derive(Debug, Clone, Copy)]
pub struct SampleOrder<'a> {
    /// What to sample; not everything.
    pub subject: Subject<'a>,
    /// The sampling event; `None`: the best that is permitted.
    pub event: Option<Event>,
    /// Samples per second of a thread's CPU time.
    pub hz: u32,
    /// How callers are found.
    pub stacks: Stacks,
    /// The longest time to sample; a process is then left running, a command is killed as by its
    /// time-out. `None`: to the end. What a command leaves running continues.
    pub limit: Option<Duration>,
}

/// The result of sampling.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingResult {
    /// The samples.
    pub samples: Samples,
    /// How the command ran, if one was started.
    pub run: Option<Run>,
    /// CPU time of pinwise itself meanwhile, without names and code afterwards.
    pub own_cpu: Duration,
    /// Further notes as full sentences: what was not permitted and what would permit it, a process
    /// that ended.
    pub notes: Vec<String>,
}
