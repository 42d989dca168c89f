//! Decodes the effect of arm64 instructions, in the terms of `operation`.
//!
//! The text of instructions comes from a disassembler. Their effect is decoded here from the
//! instruction words, by the encoding tables of the Arm Architecture Reference Manual (DDI 0487,
//! C4.1): a few masks instead of the disassembler's hundreds of operands.

mod memory;

use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::InstDecoder;

use super::Flow;
use super::operation::{Condition, Operand, Operation, Place, Question, Registers, Step, Verb};
use memory::decode_memory;

/// Bytes of an instruction.
pub(super) const LENGTH: usize = 4;

/// Reads the first instruction word of some bytes.
pub(super) fn read_word(bytes: &[u8]) -> Option<u32> {
    let bytes = bytes.get(..LENGTH)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// A field of a word as a signed number: `bits` bits from bit `low` on.
fn signed_field(word: u32, low: u32, bits: u32) -> i64 {
    let raised = word << (32 - low - bits);
    i64::from(raised.cast_signed() >> (32 - bits))
}

/// The address at a distance in words.
fn target(address: u64, words: i64) -> u64 {
    address.wrapping_add_signed(words * 4)
}

pub(super) fn decode_flow(word: u32, address: u64) -> Flow {
    match word >> 26 {
        0b00_0101 => return Flow::Jump(Some(target(address, signed_field(word, 0, 26)))),
        0b10_0101 => return Flow::Call(Some(target(address, signed_field(word, 0, 26)))),
        _ => {}
    }
    if is_conditional(word) || is_zero_branch(word) {
        return Flow::Branch(target(address, signed_field(word, 5, 19)));
    }
    if is_bit_branch(word) {
        return Flow::Branch(target(address, signed_field(word, 5, 14)));
    }
    match word & 0xff00_0000 {
        0xd600_0000 | 0xd700_0000 => decode_register_branch(word),
        0xd400_0000 if word & 0xffe0_001f == 0xd400_0001 => Flow::System,
        0xd400_0000 => Flow::Stop,
        _ if word >> 16 == 0 => Flow::Stop,
        _ => Flow::Next,
    }
}

/// Decodes BR, BLR, RET and their forms with authentication.
const fn decode_register_branch(word: u32) -> Flow {
    match (word >> 21) & 0b111 {
        0b001 => Flow::Call(None),
        0b000 => Flow::Jump(None),
        _ => Flow::Return,
    }
}

/// B.cond and BC.cond.
pub(super) const fn is_conditional(word: u32) -> bool {
    word & 0xff00_0000 == 0x5400_0000
}

/// CBZ and CBNZ.
pub(super) const fn is_zero_branch(word: u32) -> bool {
    word & 0x7e00_0000 == 0x3400_0000
}

/// TBZ and TBNZ.
pub(super) const fn is_bit_branch(word: u32) -> bool {
    word & 0x7e00_0000 == 0x3600_0000
}

pub(super) const fn is_hint(word: u32) -> bool {
    let is_yield_or_wfe = matches!(word, 0xd503_203f | 0xd503_205f);
    let is_isb = word & 0xffff_f0ff == 0xd503_30df;
    let is_sb = word == 0xd503_30ff;
    is_yield_or_wfe || is_isb || is_sb || is_wfet(word)
}

const fn is_wfet(word: u32) -> bool {
    word & 0xffff_ffe0 == 0xd503_1000
}

/// MRS of `CNTVCT_EL0` or `CNTVCTSS_EL0`.
const fn reads_clock(word: u32) -> bool {
    matches!(word & 0xffff_ffe0, 0xd53b_e040 | 0xd53b_e0c0)
}

/// The assembler text, with absolute targets.
pub(super) fn disassemble(word: u32, address: u64) -> Option<String> {
    if is_wfet(word) {
        return Some(format!("wfet x{}", word & 31));
    }
    let bytes = word.to_le_bytes();
    let decoded = InstDecoder::default().decode(&mut U8Reader::new(&bytes));
    let text = decoded.ok()?.to_string();
    let Some((front, _)) = text.split_once('$') else {
        return Some(text);
    };
    Some(format!("{front}{:#x}", named_address(word, address)))
}

/// The address that a branch, an ADR or a load of a literal names.
fn named_address(word: u32, address: u64) -> u64 {
    match decode_flow(word, address) {
        Flow::Jump(Some(to)) | Flow::Call(Some(to)) | Flow::Branch(to) => return to,
        _ => {}
    }
    let is_adr = word & 0x1f00_0000 == 0x1000_0000;
    if !is_adr {
        return target(address, signed_field(word, 5, 19));
    }
    let offset = (signed_field(word, 5, 19) << 2) | i64::from((word >> 29) & 3);
    if word >> 31 == 1 {
        return (address & !0xfff).wrapping_add_signed(offset << 12);
    }
    address.wrapping_add_signed(offset)
}

/// The number that encodes SP, or the register that is always zero.
const SP_OR_ZERO: u8 = 31;
const FRAME_POINTER: u8 = 29;
const LINK_REGISTER: u8 = 30;

/// A field of a word: `bits` bits from bit `low` on.
const fn field(word: u32, low: u32, bits: u32) -> u32 {
    (word >> low) & ((1 << bits) - 1)
}

/// The register number in the five bits from `low` on.
fn register(word: u32, low: u32) -> u8 {
    u8::try_from(field(word, low, 5)).unwrap_or(SP_OR_ZERO)
}

pub(super) fn decode_operation(word: u32, address: u64) -> Operation {
    let mut operation = Operation::idle(address, LENGTH, decode_flow(word, address));
    operation.is_hint = is_hint(word);
    operation.has_deadline = is_wfet(word);
    operation.reads_clock = reads_clock(word);
    match field(word, 25, 4) {
        0b1000 | 0b1001 => decode_immediate_arithmetic(word, &mut operation),
        0b0101 | 0b1101 => decode_register_arithmetic(word, &mut operation),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => decode_memory(word, &mut operation),
        0b0111 | 0b1111 => decode_vector(word, &mut operation),
        0b1010 | 0b1011 => decode_system(word, &mut operation),
        _ => {}
    }
    operation
}

/// A written register; 31 is the zero register, which cannot be written.
fn register_unless_zero(number: u8) -> Registers {
    if number == SP_OR_ZERO {
        Registers::NONE
    } else {
        Registers::one(number)
    }
}

/// A read register as an operand; 31 is the zero register.
const fn operand_unless_zero(number: u8) -> Operand {
    if number == SP_OR_ZERO {
        Operand::Constant(0)
    } else {
        Operand::At(Place::Register(number))
    }
}

const fn width(word: u32) -> u32 {
    if word >> 31 == 1 { 64 } else { 32 }
}

const fn add_or_subtract(word: u32) -> Verb {
    if field(word, 30, 1) == 1 {
        Verb::Subtract
    } else {
        Verb::Add
    }
}

fn decode_immediate_arithmetic(word: u32, operation: &mut Operation) {
    let (to, from) = (register(word, 0), register(word, 5));
    match field(word, 23, 6) {
        0b10_0010 => decode_add_immediate(word, operation),
        0b10_0101 => decode_move_wide(word, operation),
        0b10_0100 => {
            operation.read = register_unless_zero(from);
            operation.sets_flags = field(word, 29, 2) == 0b11;
            operation.written = if operation.sets_flags {
                register_unless_zero(to)
            } else {
                Registers::one(to)
            };
        }
        0b10_0000 | 0b10_0001 => operation.written = register_unless_zero(to),
        _ => {
            operation.read = register_unless_zero(from);
            operation.written = register_unless_zero(to);
        }
    }
}

fn decode_add_immediate(word: u32, operation: &mut Operation) {
    let (to, from) = (register(word, 0), register(word, 5));
    let by = u64::from(field(word, 10, 12)) << (12 * field(word, 22, 1));
    operation.sets_flags = field(word, 29, 1) == 1;
    operation.read = Registers::one(from);
    let is_compare = operation.sets_flags && to == SP_OR_ZERO;
    if !is_compare {
        operation.written = Registers::one(to);
    }
    operation.step = Some(Step {
        to: (!is_compare).then_some(Place::Register(to)),
        verb: add_or_subtract(word),
        left: Operand::At(Place::Register(from)),
        right: Operand::Constant(by),
        bits: width(word),
    });
    operation.constants = vec![by];
}

/// Decodes MOVZ and MOVN; MOVK changes only a part, which is not followed.
fn decode_move_wide(word: u32, operation: &mut Operation) {
    let to = register(word, 0);
    let part = u64::from(field(word, 5, 16)) << (16 * field(word, 21, 2));
    operation.written = register_unless_zero(to);
    let whole = match field(word, 29, 2) {
        0b00 if width(word) == 32 => !part & u64::from(u32::MAX),
        0b00 => !part,
        0b10 => part,
        _ => {
            operation.constants = vec![part];
            return;
        }
    };
    operation.constants = vec![whole];
    operation.step = Some(Step {
        to: Some(Place::Register(to)),
        verb: Verb::Move,
        left: Operand::Constant(whole),
        right: Operand::Constant(whole),
        bits: width(word),
    });
}

fn decode_register_arithmetic(word: u32, operation: &mut Operation) {
    let (to, left, right) = (register(word, 0), register(word, 5), register(word, 16));
    operation.read = register_unless_zero(left).with(register_unless_zero(right));
    operation.written = register_unless_zero(to);
    let is_plain = field(word, 10, 6) == 0 && field(word, 21, 1) == 0;
    let verb = match field(word, 24, 5) {
        0b0_1011 => {
            operation.sets_flags = field(word, 29, 1) == 1;
            add_or_subtract(word)
        }
        0b0_1010 => {
            operation.sets_flags = field(word, 29, 2) == 0b11;
            match field(word, 29, 2) {
                0b01 if left == SP_OR_ZERO => Verb::Move,
                0b00 | 0b11 => Verb::And,
                _ => return,
            }
        }
        // ADC, SBC and the conditional comparisons.
        0b1_1010 => {
            let is_compare = field(word, 21, 8) == 0b1101_0010;
            operation.sets_flags = is_compare || field(word, 29, 1) == 1;
            if is_compare {
                operation.written = Registers::NONE;
            }
            return;
        }
        _ => return,
    };
    if is_plain {
        operation.step = Some(Step {
            to: (to != SP_OR_ZERO).then_some(Place::Register(to)),
            verb,
            left: operand_unless_zero(left),
            right: operand_unless_zero(right),
            bits: width(word),
        });
    }
}

/// Decodes vector and floating-point instructions; some results go to a general register.
fn decode_vector(word: u32, operation: &mut Operation) {
    let to = register(word, 0);
    let is_conversion = word & 0x5f20_fc00 == 0x1e20_0000;
    let is_lane = word & 0x9fe0_ec00 == 0x0e00_2c00;
    let is_compare = word & 0x5f20_3c00 == 0x1e20_2000 || word & 0x5f20_0c00 == 0x1e20_0400;
    operation.sets_flags = is_compare;
    operation.read = vector_sources(word, is_conversion);
    operation.written = if is_compare {
        Registers::NONE
    } else {
        Registers::one(32 + to % 32)
    };
    if is_conversion || is_lane {
        operation.written = operation.written.with(register_unless_zero(to));
    }
}

/// The sources of vector and floating-point instructions, grouped as in the Arm Architecture
/// Reference Manual (DDI 0487, C4.1).
fn vector_sources(word: u32, is_conversion: bool) -> Registers {
    let vector = |low| Registers::one(32 + register(word, low));
    let (first, second, third) = (vector(5), vector(16), vector(10));
    let is_scalar = word & 0x5f20_0000 == 0x1e20_0000;
    let is_fused = word & 0x5f00_0000 == 0x1f00_0000;
    if is_conversion {
        // SCVTF, UCVTF and FMOV from a general register.
        let is_from_general = matches!(field(word, 16, 3), 0b010 | 0b011 | 0b111);
        if is_from_general {
            register_unless_zero(register(word, 5))
        } else {
            first
        }
    } else if is_fused {
        first.with(second).with(third)
    } else if is_scalar {
        let is_immediate = field(word, 10, 3) == 0b100;
        let is_single = field(word, 10, 5) == 0b10000;
        match (is_immediate, is_single) {
            (true, _) => Registers::NONE,
            (_, true) => first,
            _ => first.with(second),
        }
    } else if word & 0x9ff8_0400 == 0x0f00_0400 {
        // MOVI and similar.
        Registers::NONE
    } else {
        // Some of the others add to the destination.
        let has_two = field(word, 21, 1) == 1 && field(word, 17, 5) != 0b10000;
        let read = first.with(vector(0));
        if has_two { read.with(second) } else { read }
    }
}

/// Decodes branches, calls, and accesses of system registers.
fn decode_system(word: u32, operation: &mut Operation) {
    operation.condition = decode_branch_condition(word);
    if matches!(operation.flow, Flow::Call(_)) {
        operation.written = Registers::one(LINK_REGISTER);
    }
    let is_read = word & 0xfff0_0000 == 0xd530_0000;
    if is_read {
        operation.written = register_unless_zero(register(word, 0));
    }
}

fn decode_branch_condition(word: u32) -> Option<Condition> {
    let by_opcode = field(word, 24, 1) == 1;
    if is_zero_branch(word) {
        let question = Question::Zero(register(word, 0), width(word));
        return Some(Condition {
            question,
            is_negated: by_opcode,
        });
    }
    if is_bit_branch(word) {
        let bit = field(word, 31, 1) << 5 | field(word, 19, 5);
        let question = Question::BitClear(register(word, 0), bit);
        return Some(Condition {
            question,
            is_negated: by_opcode,
        });
    }
    is_conditional(word).then(|| {
        let (question, is_negated) = decode_condition_code(field(word, 0, 4));
        Condition {
            question,
            is_negated,
        }
    })
}

/// The test of a condition code, and whether it is negated; C means "not below" after a subtraction.
const fn decode_condition_code(code: u32) -> (Question, bool) {
    match code {
        0 => (Question::Equal, false),
        1 => (Question::Equal, true),
        2 => (Question::Below, true),
        3 => (Question::Below, false),
        4 => (Question::Negative, false),
        5 => (Question::Negative, true),
        8 => (Question::BelowOrEqual, true),
        9 => (Question::BelowOrEqual, false),
        10 => (Question::Less, true),
        11 => (Question::Less, false),
        12 => (Question::LessOrEqual, true),
        13 => (Question::LessOrEqual, false),
        _ => (Question::Other, false),
    }
}
