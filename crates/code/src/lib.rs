//! Machine code as a value: bytes at an address, and the instructions in them.
//!
//! Pure: it takes bytes and returns text and properties. Nothing here runs anything or opens a
//! file.
//!
//! ```
//! use pinwise_code::{Arch, Code, Flow, disassemble};
//!
//! // A wait for a lock: reads it, and pauses while it is taken.
//! let bytes = vec![0x8b, 0x07, 0x85, 0xc0, 0x74, 0x04, 0xf3, 0x90, 0xeb, 0xf6, 0xc3];
//! let code = Code { arch: Arch::X86_64, start: 0x1000, bytes };
//! let instructions = disassemble(&code, code.start, code.end());
//! let hint = instructions.iter().find(|one| one.is_hint).unwrap();
//! assert_eq!((hint.address, hint.text.as_str()), (0x1006, "pause"));
//! assert_eq!(instructions[4].flow, Flow::Jump(Some(code.start)));
//! ```

mod aarch64;
mod decode;
pub mod elf;
mod name;
mod operation;
pub mod unwind;
mod x86;

pub use decode::{Flow, Instruction, decode_one, disassemble, length_at, operation_at};
pub use name::demangle;
pub use operation::{
    Access, Condition, Operand, Operation, Owner, Place, Question, Registers, Step, Verb,
};

/// A decodable instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// x86 in 64-bit mode.
    X86_64,
    /// arm64.
    Aarch64,
}

impl Arch {
    /// The architecture of this machine; `None` if its code cannot be decoded.
    #[must_use]
    pub const fn here() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    /// Bytes to skip if no instruction could be decoded.
    const fn skipped_bytes(self) -> usize {
        match self {
            Self::X86_64 => 1,
            Self::Aarch64 => aarch64::LENGTH,
        }
    }
}

/// A stretch of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Its instruction set.
    pub arch: Arch,
    /// Address of the first byte.
    pub start: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl Code {
    /// The first address after the bytes.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    /// Is the address within this code?
    #[must_use]
    pub fn holds(&self, address: u64) -> bool {
        (self.start..self.end()).contains(&address)
    }

    /// The bytes from an address on; empty outside.
    #[must_use]
    pub fn bytes_from(&self, address: u64) -> &[u8] {
        let offset = address.checked_sub(self.start);
        let offset = offset.and_then(|offset| usize::try_from(offset).ok());
        offset
            .and_then(|offset| self.bytes.get(offset..))
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod decode_tests;
