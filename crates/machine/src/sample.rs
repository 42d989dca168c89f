//! The interface for sampling where a program's CPU time goes, down to the instruction.

use std::time::Duration;

use super::{Host, MachineError, Run, Subject};
use pinwise_profile::{Event, Samples, Stacks};

/// A machine that can sample CPU time.
pub trait Sampler: Host {
    /// Samples where a command's or process's CPU time goes.
    ///
    /// # Errors
    /// [`MachineError`] if the requested event is not available, the process is gone, the command
    /// cannot be started, the machine is simulated and executes no code, or the user interrupts
    /// before sampling begins. Sampling ends without an error if a process ends, the user stops
    /// watching it, or a command is interrupted ([`End::Interrupted`](crate::End)).
    fn sample(&mut self, order: &SampleOrder<'_>) -> Result<SamplingResult, MachineError>;
}

/// The request to sample.
#[derive(Debug, Clone, Copy)]
pub struct SampleOrder<'a> {
    /// A command or a process; whole machines are not sampled.
    pub subject: Subject<'a>,
    /// The sampling event; `None` for the best that is permitted.
    pub event: Option<Event>,
    /// Samples per second of a thread's CPU time.
    pub hz: u32,
    /// How callers are found.
    pub stacks: Stacks,
    /// Longest time to sample; `None` for no limit. At the end a process is left running, and a
    /// command is killed as if it had timed out, but not what it started in the background.
    pub limit: Option<Duration>,
}

/// The result of sampling.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingResult {
    /// The samples.
    pub samples: Samples,
    /// How the command ran, if one was started.
    pub run: Option<Run>,
    /// CPU time that the kernel counted meanwhile for a process that was running already, threads that
    /// ended included.
    pub counted: Option<CountedTime>,
    /// CPU time that pinwise itself used while sampling, without the later reading of symbols and
    /// code.
    pub own_cpu: Duration,
    /// Notes for the user as full sentences, such as what was not permitted and how to permit it.
    pub notes: Vec<String>,
}

/// CPU time of a process, as the kernel counts it in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedTime {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}
