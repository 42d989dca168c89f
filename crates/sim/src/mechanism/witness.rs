//! Who sees what the mechanism does, step by step.

use pinwise_sched::Left;

/// What a thread does. Threads have numbers: those of the run come first, those
/// of neighbours after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It exists from now on.
    Begins {
        /// Who.
        thread: usize,
    },
    /// It became runnable and was queued on a CPU.
    Wakes {
        /// Who.
        thread: usize,
        /// Where.
        cpu: usize,
    },
    /// It came on a CPU.
    Comes {
        /// Who.
        thread: usize,
        /// Where.
        cpu: usize,
    },
    /// It left its CPU.
    Leaves {
        /// Who.
        thread: usize,
        /// From where.
        cpu: usize,
        /// How.
        left: Left,
    },
    /// It ended.
    Ends {
        /// Who.
        thread: usize,
    },
}

/// Who looks on.
pub(crate) trait Witness {
    /// Something happened, this many seconds after the run began.
    fn see(&mut self, at_s: f64, step: Step);

    /// Need the run not be played to its end?
    fn is_done(&self) -> bool {
        false
    }
}

/// Nobody looks on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Nobody;

impl Witness for Nobody {
    fn see(&mut self, _at_s: f64, _step: Step) {}
}
