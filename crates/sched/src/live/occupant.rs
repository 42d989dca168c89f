//! What a CPU runs.

use crate::Tid;

/// What a CPU runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupant {
    /// The source does not report it, or has not yet.
    Unknown,
    /// The CPU is idle.
    Idle,
    /// This thread.
    Thread(Tid),
}
