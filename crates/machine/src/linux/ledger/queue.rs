//! The entry for a network queue whose CPUs were set.

use std::fmt;

use super::words::{format_cpus, parse_cpus, parse_some_cpus};
use pinwise_topology::CpuSet;
use pinwise_topology::interrupts::Queue;

/// A queue whose CPUs were set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetQueue {
    /// The queue.
    pub queue: Queue,
    /// The CPUs before; empty if none.
    pub before: CpuSet,
    /// The CPUs that were set.
    pub asked: CpuSet,
}

impl SetQueue {
    pub(super) fn to_words(&self) -> String {
        let (before, asked) = (format_cpus(&self.before), format_cpus(&self.asked));
        format!("queue {} {before} {asked}", self.queue)
    }

    /// Parses the words after the first one.
    pub(super) fn from_words(words: &[&str]) -> Option<Self> {
        let &[interface, name, before, asked] = words else {
            return None;
        };
        Some(Self {
            queue: Queue::from_name(interface, name)?,
            before: parse_cpus(before)?,
            asked: parse_some_cpus(asked)?,
        })
    }
}

impl fmt::Display for SetQueue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.before.is_empty() {
            true => write!(out, "queue {}: no CPUs of its own", self.queue),
            false => write!(out, "queue {}: CPUs {}", self.queue, self.before),
        }
    }
}
