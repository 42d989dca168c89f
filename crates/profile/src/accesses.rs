//! Time at memory accesses: seen at an instruction that reads or writes memory, or at the one after
//! it.
//!
//! The sampling interrupt is taken between instructions, so an instruction that is stalled on
//! memory delays it until it retires, as a spin hint does. All waiting for memory therefore shows
//! there, together with some time that did not wait: an upper bound of the cost of memory. The stack
//! and thread-local variables are left out.

use super::Frame;
use pinwise_code::{Arch, Code, Owner, length_at, operation_at};

/// If the function's beginning is unknown, decoding begins this many bytes before an address: x86
/// resynchronises within a few instructions.
const BYTES_BEFORE: u64 = 40;
/// Limits the bytes from a function's beginning that are decoded.
const MAX_DISTANCE_BYTES: u64 = 4096;

/// Does time seen at this frame belong to a memory access? `None` if the code is unknown.
#[must_use]
pub fn is_at_access(code: &Code, frame: &Frame) -> Option<bool> {
    let accesses_shared_memory = |address| {
        let access = operation_at(code, address)?.access;
        Some(access.is_some_and(|access| access.owner == Owner::Shared))
    };
    let here = accesses_shared_memory(frame.address)?;
    let offset = frame.symbol.as_ref().map(|symbol| symbol.offset);
    if here || offset == Some(0) {
        return Some(here);
    }
    let beginning = offset.and_then(|offset| frame.address.checked_sub(offset));
    let before = find_instruction_before(code, frame.address, beginning);
    Some(before.and_then(accesses_shared_memory).unwrap_or(false))
}

/// Finds the start of the instruction that ends at an address.
fn find_instruction_before(code: &Code, address: u64, beginning: Option<u64>) -> Option<u64> {
    if code.arch == Arch::Aarch64 {
        return address.checked_sub(4);
    }
    let near = beginning.filter(|from| code.holds(*from) && address - from <= MAX_DISTANCE_BYTES);
    if let Some(found) = near.and_then(|from| find_last_start(code, from, address)) {
        return Some(found);
    }
    let first = code.start.max(address.saturating_sub(BYTES_BEFORE));
    let votes: Vec<u64> = (first..address)
        .filter_map(|from| find_last_start(code, from, address))
        .collect();
    let count = |start: u64| votes.iter().filter(|vote| **vote == start).count();
    votes.iter().copied().max_by_key(|vote| count(*vote))
}

/// Decodes from `from`; returns the start of the last instruction if it ends exactly at `to`.
fn find_last_start(code: &Code, from: u64, to: u64) -> Option<u64> {
    let mut at = from;
    loop {
        let next = at.checked_add(length_at(code, at)? as u64)?;
        if next >= to {
            return (next == to).then_some(at);
        }
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Symbol;

    /// `mov rax,[rdi]; add rax,rcx; imul rax,rdx; push rbx; mov rbx,[rsp+8];
    /// add rbx,rax; vaddpd ymm0,ymm0,[rsi]; ret`
    const BYTES: [u8; 24] = [
        0x48, 0x8b, 0x07, 0x48, 0x01, 0xc8, 0x48, 0x0f, 0xaf, 0xc2, 0x53, 0x48, 0x8b, 0x5c, 0x24,
        0x08, 0x48, 0x01, 0xc3, 0xc5, 0xfd, 0x58, 0x06, 0xc3,
    ];

    fn is_access_at(offset: u64, symbol: Option<u64>) -> Option<bool> {
        let code = Code {
            arch: Arch::X86_64,
            start: 0x1000,
            bytes: BYTES.to_vec(),
        };
        let frame = Frame {
            pid: 1,
            address: 0x1000 + offset,
            is_kernel: false,
            module: None,
            file_address: None,
            symbol: symbol.map(|offset| Symbol {
                name: "f".to_owned(),
                offset,
                source: None,
                inlined: Vec::new(),
            }),
        };
        is_at_access(&code, &frame)
    }

    #[test]
    fn the_instruction_after_a_load_counts_and_the_stack_does_not() {
        for is_named in [true, false] {
            let is_access = |offset| is_access_at(offset, is_named.then_some(offset));
            assert_eq!(is_access(0), Some(true), "the load");
            assert_eq!(is_access(3), Some(true), "after it");
            assert_eq!(is_access(6), Some(false), "arithmetic");
            assert_eq!(is_access(10), Some(false), "push");
            assert_eq!(is_access(11), Some(false), "a load from the stack");
            assert_eq!(is_access(19), Some(true), "a vector's operand");
            assert_eq!(is_access(23), Some(true), "after it");
            assert_eq!(is_access(24), None, "no code");
        }
    }
}
