//! Decodes single instructions: their text, control flow, and effect in the terms of `operation`.

use iced_x86::{Decoder, DecoderOptions, Formatter, Instruction as X86Instruction, IntelFormatter};

use super::operation::Operation;
use super::{Arch, Code, aarch64, x86};

/// The control flow after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// To the next one.
    Next,
    /// Always to this address; `None` if it is computed.
    Jump(Option<u64>),
    /// To this address or the next instruction.
    Branch(u64),
    /// Into a function and back; `None` if it is computed.
    Call(Option<u64>),
    /// Out of a function.
    Return,
    /// Into the kernel and back.
    System,
    /// Nowhere: it faults or halts.
    Stop,
}

/// An instruction as decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// Address of its first byte.
    pub address: u64,
    /// Length, bytes.
    pub length: usize,
    /// Assembler text, in Intel's operand order on x86; targets of calls and jumps are absolute.
    pub text: String,
    /// Its control flow.
    pub flow: Flow,
    /// Is it a spin-wait hint? On x86 PAUSE, TPAUSE and UMWAIT; on arm64 YIELD, ISB, WFE, WFET and SB.
    pub is_hint: bool,
}

/// Decodes the instruction at an address; `None` outside the code or if there is none.
#[must_use]
pub fn decode_one(code: &Code, address: u64) -> Option<Instruction> {
    Reader::new(code.arch).read(code.bytes_from(address), address)
}

/// Disassembles from `from`, where an instruction begins, up to `to`. Invalid bytes are skipped one
/// (arm64: four) at a time.
#[must_use]
pub fn disassemble(code: &Code, from: u64, to: u64) -> Vec<Instruction> {
    let mut reader = Reader::new(code.arch);
    let mut found = Vec::new();
    let mut address = from.max(code.start);
    while address < to.min(code.end()) {
        let next = reader.read(code.bytes_from(address), address);
        let length = next
            .as_ref()
            .map_or(code.arch.skipped_bytes(), |one| one.length);
        found.extend(next);
        address = address.saturating_add(length as u64);
    }
    found
}

/// Decodes the effect of the instruction at an address; `None` outside the code or if there is none.
#[must_use]
pub fn operation_at(code: &Code, address: u64) -> Option<Operation> {
    let bytes = code.bytes_from(address);
    match code.arch {
        Arch::X86_64 => decode_x86(bytes, address).map(|one| x86::decode_operation(&one)),
        Arch::Aarch64 => Some(aarch64::decode_operation(
            aarch64::read_word(bytes)?,
            address,
        )),
    }
}

/// Length of the instruction at an address, bytes; `None` outside the code or if there is none. Much
/// faster than [`operation_at`].
#[must_use]
pub fn length_at(code: &Code, address: u64) -> Option<usize> {
    let bytes = code.bytes_from(address);
    match code.arch {
        Arch::X86_64 => decode_x86(bytes, address).map(|one| one.len()),
        Arch::Aarch64 => aarch64::read_word(bytes).map(|_| aarch64::LENGTH),
    }
}

/// A disassembler, whose formatter is reused between instructions.
struct Reader {
    arch: Arch,
    formatter: IntelFormatter,
}

impl Reader {
    fn new(arch: Arch) -> Self {
        let mut formatter = IntelFormatter::new();
        let options = formatter.options_mut();
        options.set_hex_prefix("0x");
        options.set_hex_suffix("");
        options.set_uppercase_hex(false);
        options.set_branch_leading_zeros(false);
        options.set_show_branch_size(false);
        options.set_space_after_operand_separator(true);
        Self { arch, formatter }
    }

    fn read(&mut self, bytes: &[u8], address: u64) -> Option<Instruction> {
        match self.arch {
            Arch::X86_64 => self.read_x86(bytes, address),
            Arch::Aarch64 => read_aarch64(bytes, address),
        }
    }

    fn read_x86(&mut self, bytes: &[u8], address: u64) -> Option<Instruction> {
        let one = decode_x86(bytes, address)?;
        let mut text = String::new();
        self.formatter.format(&one, &mut text);
        Some(Instruction {
            address,
            length: one.len(),
            text,
            flow: x86::decode_flow(&one),
            is_hint: x86::is_hint(&one),
        })
    }
}

/// Decodes the first instruction of some bytes.
fn decode_x86(bytes: &[u8], address: u64) -> Option<X86Instruction> {
    let bytes = &bytes[..bytes.len().min(x86::MAX_INSTRUCTION_BYTES)];
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let one = (decoder.can_decode()).then(|| decoder.decode())?;
    (!one.is_invalid()).then_some(one)
}

fn read_aarch64(bytes: &[u8], address: u64) -> Option<Instruction> {
    let word = aarch64::read_word(bytes)?;
    Some(Instruction {
        address,
        length: aarch64::LENGTH,
        text: aarch64::disassemble(word, address)?,
        flow: aarch64::decode_flow(word, address),
        is_hint: aarch64::is_hint(word),
    })
}
