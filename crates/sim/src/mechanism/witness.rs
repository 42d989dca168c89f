//! Observes the mechanism step by step.

use pinwise_sched::LeaveReason;

/// A thread's action. The run's threads are numbered first, then those of neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It now exists.
    Begins {
        /// The thread.
        thread: usize,
    },
    /// It became runnable and was queued on a CPU.
    Wakes {
        /// The thread.
        thread: usize,
        /// Its CPU.
        cpu: usize,
    },
    /// It started to run on a CPU.
    Arrives {
        /// The thread.
        thread: usize,
        /// Its CPU.
        cpu: usize,
    },
    /// It left its CPU.
    Leaves {
        /// The thread.
        thread: usize,
        /// The CPU it leaves.
        cpu: usize,
        /// Why it leaves.
        reason: LeaveReason,
    },
    /// It ended.
    Ends {
        /// The thread.
        thread: usize,
    },
}

/// Receives the steps of a run.
pub(crate) trait Witness {
    /// Observes a step, `at_s` seconds after the run began.
    fn observe(&mut self, at_s: f64, step: Step);

    /// Can the rest of the run be skipped?
    fn is_done(&self) -> bool {
        false
    }
}

/// Ignores all steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoWitness;

impl Witness for NoWitness {
    fn observe(&mut self, _at_s: f64, _step: Step) {}
}
