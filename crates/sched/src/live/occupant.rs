//! What a CPU is doing.

use crate::Tid;

/// What is on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupant {
    /// The source does not report it, or has not yet.
    Unknown,
    /// Nothing.
    Idle,
    /// This thread.
    Thread(Tid),
}
