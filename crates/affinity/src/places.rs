//! A CPU for each thread.

use super::bind::{BindError, Bound, bind};
use pinwise_topology::CpuSet;

/// CPUs that threads take in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// Never empty.
    order: Vec<usize>,
    cpus: CpuSet,
    threads: usize,
}

impl Places {
    pub(super) fn new(order: Vec<usize>, threads: usize) -> Self {
        Self {
            cpus: order.iter().copied().collect(),
            order,
            threads,
        }
    }

    /// Threads that the places were chosen for.
    #[must_use]
    pub const fn threads(&self) -> usize {
        self.threads
    }

    /// The CPU of a thread, counted from 0. Threads beyond the CPUs start
    /// again with the first.
    #[must_use]
    pub fn cpu(&self, thread: usize) -> usize {
        self.order[thread % self.order.len()]
    }

    /// All CPUs used: the mask for threads that are left to the scheduler
    /// within it.
    #[must_use]
    pub const fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// Binds the calling thread to the CPU of thread number `thread`, until
    /// what is returned is dropped.
    ///
    /// # Errors
    /// [`BindError`] where the kernel refuses, and who forbids it.
    pub fn bind(&self, thread: usize) -> Result<Bound, BindError> {
        bind(&CpuSet::single(self.cpu(thread)))
    }

    /// Confines the calling thread to all of the CPUs, until what is returned
    /// is dropped. For programs whose threads come and go, this is the safer
    /// choice: the scheduler may still balance them.
    ///
    /// # Errors
    /// [`BindError`] where the kernel refuses, and who forbids it.
    pub fn confine(&self) -> Result<Bound, BindError> {
        bind(&self.cpus)
    }
}
