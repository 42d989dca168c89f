//! Decodes loads and stores of arm64: the memory that they access, and what they move.

use super::{
    FRAME_POINTER, SP_OR_ZERO, field, operand_unless_zero, register, register_unless_zero,
    signed_field,
};
use crate::operation::{Access, Operand, Operation, Owner, Place, Registers, Step, Verb};

/// Decodes loads and stores.
pub(super) fn decode_memory(word: u32, operation: &mut Operation) {
    let base = register(word, 5);
    match field(word, 27, 3) {
        0b001 if field(word, 26, 1) == 0 => decode_exclusive(word, operation),
        0b011 => decode_literal(word, operation),
        0b101 => decode_pair(word, operation),
        0b111 => decode_single(word, operation),
        _ => {
            let loads = field(word, 22, 1) == 1;
            note_access(operation, base, loads, !loads);
        }
    }
}

/// Notes an access through a base register.
fn note_access(operation: &mut Operation, base: u8, reads: bool, writes: bool) {
    let owner = match base {
        SP_OR_ZERO | FRAME_POINTER => Owner::Stack,
        _ => Owner::Shared,
    };
    operation.access = Some(Access {
        owner,
        address: Registers::one(base),
        reads,
        writes,
    });
}

/// Decodes exclusives, CAS, and loads and stores with acquire or release semantics.
fn decode_exclusive(word: u32, operation: &mut Operation) {
    let (value, second, status) = (register(word, 0), register(word, 10), register(word, 16));
    let loads = field(word, 22, 1) == 1;
    let (is_ordered, is_pair) = (field(word, 23, 1) == 1, field(word, 21, 1) == 1);
    let is_swap = is_pair && (is_ordered || field(word, 31, 1) == 0);
    operation.is_locked = is_swap || !is_ordered;
    note_access(
        operation,
        register(word, 5),
        loads || is_swap,
        !loads || is_swap,
    );
    if is_swap {
        operation.read = register_unless_zero(value);
        operation.written = register_unless_zero(status);
    } else if loads {
        operation.written = register_unless_zero(value);
        if is_pair {
            operation.written = operation.written.with(register_unless_zero(second));
        }
    } else {
        operation.read = register_unless_zero(value);
        if !is_ordered {
            operation.written = register_unless_zero(status);
        }
    }
}

/// Decodes loads of constants next to the code, which nothing writes.
fn decode_literal(word: u32, operation: &mut Operation) {
    operation.written = loaded_register(word, register(word, 0));
    operation.access = Some(Access {
        owner: Owner::Thread,
        address: Registers::NONE,
        reads: true,
        writes: false,
    });
}

/// The loaded register, or the vector.
fn loaded_register(word: u32, number: u8) -> Registers {
    if field(word, 26, 1) == 1 {
        Registers::one(32 + number % 32)
    } else {
        register_unless_zero(number)
    }
}

/// Decodes LDP and STP.
fn decode_pair(word: u32, operation: &mut Operation) {
    let base = register(word, 5);
    let both =
        loaded_register(word, register(word, 0)).with(loaded_register(word, register(word, 10)));
    let loads = field(word, 22, 1) == 1;
    note_access(operation, base, loads, !loads);
    if loads {
        operation.written = both;
    } else {
        operation.read = both;
    }
    if field(word, 23, 1) == 1 {
        operation.written = operation.written.with(Registers::one(base));
    }
}

/// Decodes a load or store of one register: which addressing mode it has, and what it does.
fn decode_single(word: u32, operation: &mut Operation) {
    let base = register(word, 5);
    let is_scaled = field(word, 24, 1) == 1;
    let by_register = !is_scaled && field(word, 21, 1) == 1;
    match field(word, 10, 2) {
        0b00 if by_register => return decode_atomic(word, operation),
        _ if by_register => return record_single_access(word, operation, None),
        _ => {}
    }
    let offset = if is_scaled {
        i64::from(field(word, 10, 12)) << field(word, 30, 2)
    } else {
        signed_field(word, 12, 9)
    };
    record_single_access(word, operation, Some(offset));
    let moves_base = !is_scaled && field(word, 10, 1) == 1;
    if moves_base {
        operation.written = operation.written.with(Registers::one(base));
        operation.step = None;
    }
}

/// Notes what a load or store of one register does; `offset` is `None` if a register is added to
/// the base.
fn record_single_access(word: u32, operation: &mut Operation, offset: Option<i64>) {
    let (number, base) = (register(word, 0), register(word, 5));
    let is_vector = field(word, 26, 1) == 1;
    let kind = field(word, 22, 2);
    let loads = if is_vector { kind & 1 == 1 } else { kind != 0 };
    // PRFM has no effect that a program could read.
    if !is_vector && kind == 0b10 && field(word, 30, 2) == 0b11 {
        return;
    }
    note_access(operation, base, loads, !loads);
    if loads {
        operation.written = loaded_register(word, number);
    } else {
        operation.read = loaded_register(word, number);
    }
    if offset.is_none() {
        note_index(operation, register(word, 16));
    }
    operation.step = stack_slot_and_bits(word, base, offset)
        .filter(|_| kind <= 1)
        .map(|(slot, bits)| {
            let place = if is_vector { 32 + number } else { number };
            move_step(place, slot, loads, bits)
        });
}

/// Notes the index register, which is added to the base address.
fn note_index(operation: &mut Operation, index: u8) {
    if let Some(access) = &mut operation.access {
        access.address = access.address.with(register_unless_zero(index));
    }
}

/// The place and the width of an access; `None` unless it is 32 or 64 bits wide and relative to the
/// stack or frame pointer.
fn stack_slot_and_bits(word: u32, base: u8, offset: Option<i64>) -> Option<(Place, u32)> {
    let bits = match field(word, 30, 2) {
        0b10 => 32,
        0b11 => 64,
        _ => return None,
    };
    let is_on_stack = matches!(base, SP_OR_ZERO | FRAME_POINTER);
    let offset = offset.filter(|_| is_on_stack)?;
    Some((Place::Slot { base, offset }, bits))
}

/// The step of a register's move to or from a stack slot.
fn move_step(number: u8, slot: Place, loads: bool, bits: u32) -> Step {
    let (to, from) = if loads {
        let to = (number != SP_OR_ZERO).then_some(Place::Register(number));
        (to, Operand::At(slot))
    } else {
        (Some(slot), operand_unless_zero(number))
    };
    Step {
        to,
        verb: Verb::Move,
        left: from,
        right: from,
        bits,
    }
}

/// Decodes LSE atomics: LDADD, SWP and similar; LDAPR only loads.
fn decode_atomic(word: u32, operation: &mut Operation) {
    let is_plain_load = field(word, 12, 4) == 0b1100;
    operation.is_locked = !is_plain_load;
    note_access(operation, register(word, 5), true, !is_plain_load);
    operation.written = register_unless_zero(register(word, 0));
    if !is_plain_load {
        operation.read = register_unless_zero(register(word, 16));
    }
}
