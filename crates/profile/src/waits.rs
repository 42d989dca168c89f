//! The after-PAUSE rule: time seen at the instruction after a spin hint was spent in the hint.
//!
//! An interrupt is taken between instructions, and a hint delays it until the hint ends. Of the
//! samples of spinning loops 0 % are on PAUSE and 97 to 99 % on the instruction after it, with
//! hardware and with timer sampling alike (measured on AMD Zen 3; docs/spin.md). Precise modes show
//! the hint itself, which counts as well.

use super::{Samples, Stack, is_at_access};
use pinwise_code::{Arch, Code, Instruction, decode_one};

/// Lengths of x86 hints, bytes: 2 (PAUSE) to 6 (UMWAIT with its prefixes).
const HINT_LENGTHS: std::ops::RangeInclusive<u64> = 2..=6;

/// The spin hint that ends at `address`, if there is one.
#[must_use]
pub fn hint_before(code: &Code, address: u64) -> Option<Instruction> {
    let lengths = match code.arch {
        Arch::X86_64 => HINT_LENGTHS,
        Arch::Aarch64 => 4..=4,
    };
    lengths
        .filter_map(|length| decode_one(code, address.checked_sub(length)?))
        .find(|found| found.is_hint && found.address + found.length as u64 == address)
}

/// Is a thread that is seen at this address waiting in a spin hint?
#[must_use]
pub fn waits_in_hint(code: &Code, address: u64) -> bool {
    let is_hint = || decode_one(code, address).is_some_and(|found| found.is_hint);
    hint_before(code, address).is_some() || is_hint()
}

impl Samples {
    /// Is this the stack of a thread that waits in a spin hint?
    #[must_use]
    pub fn is_waiting(&self, stack: &Stack) -> bool {
        let leaf = stack.frames.first().and_then(|&leaf| self.frames.get(leaf));
        leaf.filter(|leaf| !leaf.is_kernel).is_some_and(|leaf| {
            self.code_at(leaf.pid, leaf.address)
                .is_some_and(|code| waits_in_hint(code, leaf.address))
        })
    }

    /// Does time seen at this frame belong to a memory access? `None` if its code could not be
    /// read.
    pub(super) fn is_at_access(&self, frame: usize) -> Option<bool> {
        let frame = self.frames.get(frame).filter(|frame| !frame.is_kernel)?;
        is_at_access(self.code_at(frame.pid, frame.address)?, frame)
    }
}
