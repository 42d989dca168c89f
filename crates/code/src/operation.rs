//! The effect of an instruction on registers and memory, in the same terms for all architectures:
//! enough to distinguish a wait from work, and to count the turns of a loop with a known count.
//!
//! It does not model flags, carries and vectors; anything it does not follow is unknown.

use super::Flow;

/// A set of registers: general ones by their number in the architecture's encoding (31 of arm64 is
/// SP), vectors from 32 on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers(u64);

impl Registers {
    /// No register.
    pub const NONE: Self = Self(0);

    /// One register.
    #[must_use]
    pub const fn one(number: u8) -> Self {
        Self(1 << (number & 63))
    }

    /// The union with another set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Is this register in the set?
    #[must_use]
    pub const fn holds(self, number: u8) -> bool {
        self.0 & Self::one(number).0 != 0
    }

    /// The registers that are not in another set.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The registers' numbers.
    pub fn numbers(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |&number| self.holds(number))
    }
}

/// A storage place that only this thread changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A general register.
    Register(u8),
    /// Memory at a constant distance from the stack or frame pointer.
    Slot {
        /// The stack or frame pointer, as a register number.
        base: u8,
        /// Offset from it, bytes.
        offset: i64,
    },
}

/// An operand of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Constant(u64),
    /// The value at a place.
    At(Place),
    /// Anything else, such as shared memory.
    Unknown,
}

/// How a step combines its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// The right operand.
    Move,
    /// Their sum.
    Add,
    /// Left minus right.
    Subtract,
    /// Bits that both have.
    And,
    /// Their product.
    Multiply,
    /// The left operand shifted left.
    ShiftLeft,
}

/// Arithmetic that can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Destination of the result; `None` for comparisons.
    pub to: Option<Place>,
    /// The operation.
    pub verb: Verb,
    /// The first operand.
    pub left: Operand,
    /// The right operand.
    pub right: Operand,
    /// Width, 32 or 64.
    pub bits: u32,
}

/// The condition of a conditional branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Was the result zero?
    Equal,
    /// Was left less than right, unsigned?
    Below,
    /// Less or equal, unsigned?
    BelowOrEqual,
    /// Was the result negative?
    Negative,
    /// Was left less than right, signed?
    Less,
    /// Less or equal, signed?
    LessOrEqual,
    /// Are this many low bits of the register zero?
    Zero(u8, u32),
    /// Is that bit of the register clear?
    BitClear(u8, u32),
    /// A condition that is not followed.
    Other,
}

/// When a conditional branch is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// Its condition.
    pub question: Question,
    /// The branch is taken if the condition is false.
    pub is_negated: bool,
}

/// The owner of memory: the threads that may write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Relative to the stack or frame pointer: private to this function.
    Stack,
    /// Thread-local (FS, GS), or a constant beside the code: other threads do not write it.
    Thread,
    /// Shared with other threads.
    Shared,
}

/// An access of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// The owner of the memory.
    pub owner: Owner,
    /// Registers that form its address.
    pub address: Registers,
    /// Is it read?
    pub reads: bool,
    /// Is it written?
    pub writes: bool,
}

/// An instruction's effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Address of its first byte.
    pub address: u64,
    /// Length, bytes.
    pub length: usize,
    /// Its control flow.
    pub flow: Flow,
    /// Is it a spin-wait hint?
    pub is_hint: bool,
    /// Does the hint last until a time in a register (TPAUSE, UMWAIT, WFET)? The program then chooses
    /// its cost, whatever a PAUSE costs.
    pub has_deadline: bool,
    /// Does it read the processor's clock?
    pub reads_clock: bool,
    /// Is it atomic? On x86 LOCK or XCHG with memory; on arm64 exclusives and LSE atomics.
    pub is_locked: bool,
    /// Does it atomically add to memory? It then leaves another value each time, unlike an attempt to
    /// take a lock.
    pub adds_to_memory: bool,
    /// The accessed memory; of several accesses the first shared one.
    pub access: Option<Access>,
    /// Registers that it reads, except for addresses.
    pub read: Registers,
    /// Registers that it writes.
    pub written: Registers,
    /// Its arithmetic; `None` if that is not followed.
    pub step: Option<Step>,
    /// The local variable that it reads, if its arithmetic is not followed.
    pub local: Option<Place>,
    /// Does it set the flags, which a later branch may test?
    pub sets_flags: bool,
    /// When a conditional branch is taken.
    pub condition: Option<Condition>,
    /// Numbers that it counts, compares and multiplies with.
    pub constants: Vec<u64>,
}

impl Operation {
    /// An instruction without effect on registers and memory.
    pub(super) const fn idle(address: u64, length: usize, flow: Flow) -> Self {
        Self {
            address,
            length,
            flow,
            is_hint: false,
            has_deadline: false,
            reads_clock: false,
            is_locked: false,
            adds_to_memory: false,
            access: None,
            read: Registers::NONE,
            written: Registers::NONE,
            step: None,
            local: None,
            sets_flags: false,
            condition: None,
            constants: Vec::new(),
        }
    }

    /// The first address after the instruction.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.address.saturating_add(self.length as u64)
    }
}
