//! Finds the frame pointer from the stack pointer, by the beginning of the function's code.
//!
//! The kernel shows only the stack pointer of a blocked thread. A function that keeps a frame pointer
//! takes a fixed part of the stack at its beginning, by pushing registers and moving the stack
//! pointer. That is the distance of both pointers at each of its calls.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Mnemonic, OpKind, Register};

/// Bytes from the stack pointer up to the frame pointer after the beginning of an x86-64 function with
/// this code; `None` if the distance varies or is unknown.
#[must_use]
pub fn frame_bytes(code: &[u8]) -> Option<u64> {
    let mut bytes = None;
    for instruction in Decoder::new(64, code, DecoderOptions::NONE) {
        let (first, second) = (instruction.op0_register(), instruction.op1_register());
        let moves_stack = first == Register::RSP && instruction.op0_kind() == OpKind::Register;
        match instruction.mnemonic() {
            // The code ends within this instruction.
            _ if instruction.is_invalid() => return bytes,
            Mnemonic::Mov if (first, second) == (Register::RBP, Register::RSP) => bytes = Some(0),
            Mnemonic::Sub if moves_stack => {
                let room = match instruction.op1_kind() {
                    OpKind::Immediate8to64 | OpKind::Immediate32to64 => instruction.immediate(1),
                    _ => return None,
                };
                bytes = bytes.map(|bytes: u64| bytes.saturating_add(room));
            }
            Mnemonic::Push => {
                let pushed = u64::from(instruction.stack_pointer_increment().unsigned_abs());
                bytes = bytes.map(|bytes| bytes + pushed);
            }
            Mnemonic::Pop => return None,
            _ if moves_stack && instruction.mnemonic() != Mnemonic::Cmp => return None,
            _ if instruction.flow_control() != FlowControl::Next => return bytes,
            _ => {}
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_pushed_bytes_and_the_reserved_ones() {
        // push rbp; mov rbp, rsp; push r15, r14, r12, rbx; sub rsp, 0x20; mov rbx, rdi; jne.
        let rust =
            b"\x55\x48\x89\xe5\x41\x57\x41\x56\x41\x54\x53\x48\x83\xec\x20\x48\x89\xfb\x75\x10";
        assert_eq!(frame_bytes(rust), Some(0x40));
        // endbr64; push rbp; mov rbp, rsp; push r12; mov r12, rdi; push rbx; call.
        let gcc = b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x41\x54\x49\x89\xfc\x53\xe8\0\0\0\0";
        assert_eq!(frame_bytes(gcc), Some(0x10));
        // push rbp; mov rbp, rsp; sub rsp, 0x1000; ret.
        let large = b"\x55\x48\x89\xe5\x48\x81\xec\0\x10\0\0\xc3";
        assert_eq!(frame_bytes(large), Some(0x1000));
        // No frame pointer; a stack that is aligned, or of a size that a register has.
        for code in [
            &b"\x53\x48\x83\xec\x20\xc3"[..],
            b"\x55\x48\x89\xe5\x48\x83\xe4\xf0\xc3",
            b"\x55\x48\x89\xe5\x48\x29\xc4\xc3",
            b"",
        ] {
            assert_eq!(frame_bytes(code), None, "{code:x?}");
        }
    }
}
