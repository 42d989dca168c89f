//! What an instruction does to registers and memory, the same words for all
//! architectures: as much as it takes to distinguish a wait from work, and to count
//! the turns of a loop whose code says how many.
//!
//! It does not model flags, carries and vectors; what it does not follow it
//! calls unknown.

use super::Flow;

/// A set of registers: general ones by their number in the architecture's
/// encoding (31 of arm64 is SP), those of vectors from 32 on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Registers(u64);

impl Registers {
    /// None of them.
    pub const NONE: Self = Self(0);

    /// One register.
    #[must_use]
    pub const fn one(number: u8) -> Self {
        Self(1 << (number & 63))
    }

    /// With all of another set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Is it among them?
    #[must_use]
    pub const fn holds(self, number: u8) -> bool {
        self.0 & Self::one(number).0 != 0
    }

    /// Without those of another set.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Their numbers.
    pub fn numbers(self) -> impl Iterator<Item = u8> {
        (0..64).filter(move |&number| self.holds(number))
    }
}

/// Where a value is kept that only this thread changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// A general register.
    Register(u8),
    /// Memory at a constant distance from the stack or frame pointer.
    Slot {
        /// Register it is counted from.
        base: u8,
        /// Bytes from there.
        offset: i64,
    },
}

/// What a step computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A number.
    Constant(u64),
    /// What is kept there.
    At(Place),
    /// Anything else, such as memory that others may write.
    Unknown,
}

/// How a step combines its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// The right one.
    Move,
    /// Their sum.
    Add,
    /// The left one less the right one.
    Subtract,
    /// Bits that both have.
    And,
    /// Their product.
    Multiply,
    /// The left one shifted left.
    ShiftLeft,
}

/// Arithmetic that can be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Where the result goes; `None` for comparisons.
    pub to: Option<Place>,
    /// What is done.
    pub verb: Verb,
    /// With this.
    pub left: Operand,
    /// And this.
    pub right: Operand,
    /// Width, 32 or 64.
    pub bits: u32,
}

/// What a conditional branch asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Was the result zero?
    Equal,
    /// Was the left one less, without signs?
    Below,
    /// Less or equal, without signs?
    BelowOrEqual,
    /// Was the result negative?
    Negative,
    /// Was the left one less, with signs?
    Less,
    /// Less or equal, with signs?
    LessOrEqual,
    /// Is the register zero in this many low bits?
    Zero(u8, u32),
    /// Is that bit of the register clear?
    BitClear(u8, u32),
    /// Something that is not followed.
    Other,
}

/// When a conditional branch is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// What it asks.
    pub question: Question,
    /// It is taken where the answer is no.
    pub is_negated: bool,
}

/// To whom memory belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Counted from the stack or frame pointer: this function's.
    Stack,
    /// Thread-local (FS, GS): this thread's.
    Thread,
    /// Others may write it.
    Shared,
}

/// An access of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// To whom it belongs.
    pub owner: Owner,
    /// Registers that its address is made of.
    pub address: Registers,
    /// Is it read?
    pub reads: bool,
    /// Is it written?
    pub writes: bool,
}

/// An instruction by what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// Address of its first byte.
    pub address: u64,
    /// Bytes.
    pub length: usize,
    /// Where it leads.
    pub flow: Flow,
    /// A spin-wait hint.
    pub is_hint: bool,
    /// A hint that lasts until a moment in a register (TPAUSE, UMWAIT, WFET): what it costs is
    /// what the program asks for, whatever a PAUSE costs.
    pub has_deadline: bool,
    /// It reads the processor's clock.
    pub reads_clock: bool,
    /// Atomic: LOCK or XCHG with memory; exclusives and LSE atomics.
    pub is_locked: bool,
    /// Atomic, and adds to memory: each time leaves another value, unlike an
    /// attempt to take a lock.
    pub adds_to_memory: bool,
    /// The memory that it accesses. Of several the first that is shared.
    pub access: Option<Access>,
    /// Registers that it reads, those of addresses left out.
    pub read: Registers,
    /// Registers that it writes.
    pub written: Registers,
    /// Its arithmetic; `None` where that is not followed.
    pub step: Option<Step>,
    /// The local variable that it reads, where its arithmetic is not followed.
    pub local: Option<Place>,
    /// Does a later branch see its outcome?
    pub sets_flags: bool,
    /// When a conditional branch is taken.
    pub condition: Option<Condition>,
    /// Numbers that it counts, compares and multiplies with.
    pub constants: Vec<u64>,
}

impl Operation {
    /// One that does nothing to registers and memory.
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

    /// The address after it.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.address.saturating_add(self.length as u64)
    }
}
