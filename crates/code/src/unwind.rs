//! Unwinds the stacks of code that keeps no frame pointers, from registers and a copy of the stack,
//! by the call-frame information in programs (`.eh_frame`).
//!
//! Neither tables nor stacks are trusted: the cost of a table entry is bounded, every expression
//! ends, and a value outside the copy of the stack is unknown. Nothing is guessed by scanning the
//! stack.

mod frame;
mod tables;

pub use frame::frame_bytes;
pub use tables::{CallFrames, ParseBudget, Read, Rule};

use gimli::{
    CfaRule, EvaluationResult, Expression, LittleEndian, RegisterRule, UnwindExpression, Value,
};

use super::Arch;

/// Number of registers kept, by their DWARF numbers: x86-64 has 0 to 15, arm64 0 to 31.
const REGISTER_COUNT: usize = 32;
/// Limits the operations of an expression.
const MAX_OPERATIONS: u32 = 1_000;
/// arm64: bits of an address; the others may sign it (pointer authentication).
const ADDRESS_BITS: u32 = 48;

type Bytes<'a> = gimli::EndianSlice<'a, LittleEndian>;

/// Registers of a thread in one of its frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registers {
    arch: Arch,
    /// By DWARF number; `None` if unknown.
    values: [Option<u64>; REGISTER_COUNT],
    /// The executed address, or a return address.
    pub address: u64,
    /// Is `address` a return address? The call is before it.
    pub is_return: bool,
}

impl Registers {
    /// The registers of a thread that executes `address`, each with its DWARF number.
    #[must_use]
    pub fn new(arch: Arch, address: u64, known: impl IntoIterator<Item = (u16, u64)>) -> Self {
        let mut values = [None; REGISTER_COUNT];
        for (number, value) in known {
            if let Some(place) = values.get_mut(usize::from(number)) {
                *place = Some(value);
            }
        }
        Self {
            arch,
            values,
            address,
            is_return: false,
        }
    }

    /// The address whose rule leads to the caller.
    #[must_use]
    pub const fn lookup_address(&self) -> u64 {
        self.address.saturating_sub(self.is_return as u64)
    }

    /// The stack pointer.
    #[must_use]
    pub fn stack_pointer(&self) -> Option<u64> {
        self.values[usize::from(stack_register(self.arch))]
    }

    /// The value of the frame pointer register.
    #[must_use]
    pub fn frame_pointer(&self) -> Option<u64> {
        self.values[usize::from(frame_register(self.arch))]
    }

    /// These registers with another frame pointer.
    #[must_use]
    pub fn with_frame_pointer(mut self, value: u64) -> Self {
        self.set(gimli::Register(frame_register(self.arch)), Some(value));
        self
    }

    fn value(&self, register: gimli::Register) -> Option<u64> {
        if (self.arch, register.0) == (Arch::X86_64, gimli::X86_64::RA.0) {
            return Some(self.address);
        }
        *self.values.get(usize::from(register.0))?
    }

    fn set(&mut self, register: gimli::Register, value: Option<u64>) {
        if let Some(place) = self.values.get_mut(usize::from(register.0)) {
            *place = value;
        }
    }
}

const fn stack_register(arch: Arch) -> u16 {
    match arch {
        Arch::X86_64 => gimli::X86_64::RSP.0,
        Arch::Aarch64 => gimli::AArch64::SP.0,
    }
}

const fn frame_register(arch: Arch) -> u16 {
    match arch {
        Arch::X86_64 => gimli::X86_64::RBP.0,
        Arch::Aarch64 => gimli::AArch64::X29.0,
    }
}

/// The innermost part of a thread's stack.
#[derive(Debug, Clone, Copy)]
pub struct StackCopy<'a> {
    /// Address of its first byte.
    pub start: u64,
    /// The bytes upwards from there.
    pub bytes: &'a [u8],
}

impl StackCopy<'_> {
    /// Reads a little-endian number of up to 8 bytes; `None` if outside the copy.
    fn read_number(&self, address: u64, bytes: usize) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let read = self.bytes.get(at..at.checked_add(bytes)?)?;
        let mut number = [0; 8];
        number.get_mut(..bytes)?.copy_from_slice(read);
        Some(u64::from_le_bytes(number))
    }

    /// The word at an address; `None` if outside the copy.
    #[must_use]
    pub fn read_word(&self, address: u64) -> Option<u64> {
        self.read_number(address, 8)
    }
}

/// The result of looking for a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "made and taken apart once per frame: a box would cost more"
)]
pub enum Caller {
    /// The registers in the caller's frame.
    Frame(Registers),
    /// There is no caller: the thread begins here.
    None,
    /// The caller cannot be found.
    Unknown,
}

/// Finds the caller by a rule of these tables.
#[must_use]
pub fn find_caller(
    tables: &CallFrames,
    rule: &Rule,
    registers: &Registers,
    stack: &StackCopy<'_>,
) -> Caller {
    if rule.is_outermost() {
        return Caller::None;
    }
    let frame = Frame {
        tables,
        rule,
        registers,
        stack,
    };
    let (Some(next), Some(before)) = (frame.find_caller(), registers.stack_pointer()) else {
        return Caller::Unknown;
    };
    if next.address == 0 {
        return Caller::None;
    }
    let has_popped = next.stack_pointer().is_some_and(|pointer| pointer > before);
    // On arm64 a function may use no stack.
    let is_stackless = registers.arch == Arch::Aarch64
        && !registers.is_return
        && next.stack_pointer() == Some(before)
        && next.address != registers.address;
    if has_popped || is_stackless {
        Caller::Frame(next)
    } else {
        Caller::Unknown
    }
}

/// Finds the caller by the frame pointer, for code without tables.
#[must_use]
pub fn find_caller_by_frame_pointer(registers: &Registers, stack: &StackCopy<'_>) -> Caller {
    let arch = registers.arch;
    let (Some(pointer), Some(top)) = (registers.frame_pointer(), registers.stack_pointer()) else {
        return Caller::Unknown;
    };
    if pointer == 0 {
        return Caller::None;
    }
    let above = pointer.checked_add(16).filter(|_| pointer >= top);
    let (Some(above), Some(saved)) = (above, stack.read_word(pointer)) else {
        return Caller::Unknown;
    };
    let Some(address) = stack.read_word(above - 8) else {
        return Caller::Unknown;
    };
    let address = strip_signature(arch, address);
    if address == 0 {
        return Caller::None;
    }
    let known = [(frame_register(arch), saved), (stack_register(arch), above)];
    let mut next = Registers::new(arch, address, known);
    next.is_return = true;
    Caller::Frame(next)
}

/// Removes the signature from an address.
const fn strip_signature(arch: Arch, address: u64) -> u64 {
    match arch {
        Arch::X86_64 => address,
        Arch::Aarch64 => address & ((1 << ADDRESS_BITS) - 1),
    }
}

/// A rule applied to registers and stack.
struct Frame<'a> {
    tables: &'a CallFrames,
    rule: &'a Rule,
    registers: &'a Registers,
    stack: &'a StackCopy<'a>,
}

impl Frame<'_> {
    fn find_caller(&self) -> Option<Registers> {
        let cfa = self.cfa()?;
        let mut next = self.registers.clone();
        let arch = next.arch;
        next.set(gimli::Register(stack_register(arch)), Some(cfa));
        for (register, rule) in self.rule.registers() {
            if *register != self.rule.return_register() {
                next.set(*register, self.read_saved_register(*register, rule, cfa));
            }
        }
        let return_register = self.rule.return_register();
        let mut rules = self.rule.registers().iter();
        let address = match rules.find(|(register, _)| *register == return_register) {
            Some((_, rule)) => self.read_saved_register(return_register, rule, cfa)?,
            // On arm64 the return address may be in a register only.
            None => self.registers.value(return_register)?,
        };
        next.address = strip_signature(arch, address);
        // An interrupted function continues with the instruction itself.
        next.is_return = !self.rule.is_signal();
        if arch == Arch::Aarch64 {
            next.set(return_register, None);
        }
        Some(next)
    }

    /// The canonical frame address: the stack pointer before the call.
    fn cfa(&self) -> Option<u64> {
        match self.rule.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let base = self.registers.value(*register)?;
                base.checked_add_signed(*offset)
            }
            CfaRule::Expression(expression) => self.evaluate(*expression, None),
        }
    }

    /// A register's value in the caller.
    fn read_saved_register(
        &self,
        register: gimli::Register,
        rule: &RegisterRule<usize>,
        cfa: u64,
    ) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => self.registers.value(register),
            RegisterRule::Offset(offset) => {
                let at = cfa.checked_add_signed(*offset)?;
                // Below the stack pointer: already popped.
                if at < self.stack.start && !self.registers.is_return {
                    return self.registers.value(register);
                }
                self.stack.read_word(at)
            }
            RegisterRule::ValOffset(offset) => cfa.checked_add_signed(*offset),
            RegisterRule::Register(other) => self.registers.value(*other),
            RegisterRule::Expression(expression) => {
                self.stack.read_word(self.evaluate(*expression, Some(cfa))?)
            }
            RegisterRule::ValExpression(expression) => self.evaluate(*expression, Some(cfa)),
            RegisterRule::Constant(value) => Some(*value),
            _ => None,
        }
    }

    fn evaluate(&self, expression: UnwindExpression<usize>, first: Option<u64>) -> Option<u64> {
        let Expression(bytes) = self.tables.expression(expression)?;
        let mut evaluation = gimli::Evaluation::new(bytes, self.rule.encoding());
        evaluation.set_max_iterations(MAX_OPERATIONS);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(self.registers.value(register)?);
                    evaluation.resume_with_register(value).ok()?
                }
                EvaluationResult::RequiresMemory { address, size, .. } => {
                    let value = self.stack.read_number(address, usize::from(size))?;
                    evaluation.resume_with_memory(Value::Generic(value)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().last()?.location {
            gimli::Location::Address { address } => Some(address),
            gimli::Location::Value {
                value: Value::Generic(value),
            } => Some(value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
