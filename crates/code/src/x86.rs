//! Decodes the effect of x86 instructions, in the terms of `operation`.

use iced_x86::{
    Code as Encoding, ConditionCode, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register, UsedMemory,
};

use super::Flow;
use super::operation::{
    Access, Condition, Operand, Operation, Owner, Place, Question, Registers, Step, Verb,
};

/// Bytes of the longest instruction.
pub(super) const MAX_INSTRUCTION_BYTES: usize = 15;

pub(super) fn decode_flow(one: &Instruction) -> Flow {
    let target = || {
        let is_near = matches!(
            one.op0_kind(),
            OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
        );
        is_near.then(|| one.near_branch_target())
    };
    match one.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump(target()),
        FlowControl::IndirectBranch => Flow::Jump(None),
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
            target().map_or(Flow::Next, Flow::Branch)
        }
        FlowControl::Return => Flow::Return,
        FlowControl::Call => classify_call(one, target()),
        FlowControl::IndirectCall => Flow::Call(None),
        FlowControl::Interrupt => classify_interrupt(one),
        FlowControl::Exception => Flow::Stop,
    }
}

/// The decoder also classifies SYSCALL and similar as calls.
fn classify_call(one: &Instruction, target: Option<u64>) -> Flow {
    match one.code() {
        Encoding::Syscall | Encoding::Sysenter => Flow::System,
        _ => Flow::Call(target),
    }
}

fn classify_interrupt(one: &Instruction) -> Flow {
    let is_system_call = one.mnemonic() == Mnemonic::Int && one.immediate8() == 0x80;
    if is_system_call {
        Flow::System
    } else {
        Flow::Stop
    }
}

pub(super) fn is_hint(one: &Instruction) -> bool {
    matches!(
        one.mnemonic(),
        Mnemonic::Pause | Mnemonic::Tpause | Mnemonic::Umwait
    )
}

pub(super) fn decode_operation(one: &Instruction) -> Operation {
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(one);
    let mut operation = Operation::idle(one.ip(), one.len(), decode_flow(one));
    for used in info.used_registers() {
        let set = register_number(used.register()).map_or(Registers::NONE, Registers::one);
        if reads(used.access()) {
            operation.read = operation.read.with(set);
        }
        if writes(used.access()) {
            operation.written = operation.written.with(set);
        }
    }
    operation.access = decode_access(one, info.used_memory());
    if let Some(access) = operation.access {
        operation.read = operation.read.without(access.address);
    }
    operation.is_hint = is_hint(one);
    operation.has_deadline = matches!(one.mnemonic(), Mnemonic::Tpause | Mnemonic::Umwait);
    operation.reads_clock = matches!(one.mnemonic(), Mnemonic::Rdtsc | Mnemonic::Rdtscp);
    operation.is_locked = is_locked(one);
    operation.adds_to_memory = one.has_lock_prefix()
        && matches!(
            one.mnemonic(),
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Xadd
        );
    operation.step = decode_step(one);
    operation.local = read_local(one, operation.access).filter(|_| operation.step.is_none());
    operation.sets_flags = one.rflags_modified() != 0;
    operation.condition = decode_condition(one);
    operation.constants = collect_constants(one);
    operation
}

const fn reads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

const fn writes(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// The number of a register: general ones by their encoding, vectors from 32 on. x87 and MMX registers
/// count as the first vectors, since general registers do not show them either.
fn register_number(register: Register) -> Option<u8> {
    let number = u8::try_from(register.number()).ok()?;
    if register.is_gpr() {
        let full = register.full_register().number();
        u8::try_from(full).ok()
    } else if register.is_vector_register() || register.is_st() || register.is_mm() {
        Some(32 + number % 32)
    } else {
        None
    }
}

/// The memory that an instruction accesses. The tables that targets of calls and jumps are read from
/// are left out: no thread waits for them.
fn decode_access(one: &Instruction, used: &[UsedMemory]) -> Option<Access> {
    let through_table = matches!(
        decode_flow(one),
        Flow::Call(_) | Flow::Jump(_) | Flow::Return
    );
    let all = used.iter().filter(|memory| {
        memory.access() != OpAccess::None && memory.access() != OpAccess::NoMemAccess
    });
    let mut found: Option<Access> = None;
    for memory in all {
        let mut this = Access {
            owner: memory_owner(one, memory),
            address: address_registers(memory),
            reads: reads(memory.access()) && !through_table,
            writes: writes(memory.access()),
        };
        if through_table && this.owner == Owner::Shared {
            continue;
        }
        match found {
            Some(before) if before.owner == Owner::Shared => {
                if this.owner == Owner::Shared {
                    this.reads |= before.reads;
                    this.writes |= before.writes;
                    this.address = this.address.with(before.address);
                    found = Some(this);
                }
            }
            Some(_) if this.owner != Owner::Shared => {}
            _ => found = Some(this),
        }
    }
    found
}

fn address_registers(memory: &UsedMemory) -> Registers {
    [memory.base(), memory.index()]
        .into_iter()
        .filter_map(register_number)
        .fold(Registers::NONE, |set, one| set.with(Registers::one(one)))
}

/// The owner of accessed memory. RBP may be the frame pointer or hold the address of an object: the
/// sign of the offset decides, since locals are below the frame pointer, and fields above the
/// beginning of an object.
fn memory_owner(one: &Instruction, memory: &UsedMemory) -> Owner {
    let is_thread = matches!(memory.segment(), Register::FS | Register::GS);
    // A stack pointer is compared with the limit of the stack, or with the word by which a Java
    // thread is stopped: no thread waits for either.
    let is_limit = one.mnemonic() == Mnemonic::Cmp
        && (one.op0_register() == Register::RSP || one.op1_register() == Register::RSP);
    match memory.base() {
        _ if is_thread || is_limit => Owner::Thread,
        Register::RSP => Owner::Stack,
        Register::RBP if memory.displacement().cast_signed() < 0 => Owner::Stack,
        _ => Owner::Shared,
    }
}

fn is_locked(one: &Instruction) -> bool {
    let is_exchange = one.mnemonic() == Mnemonic::Xchg
        && (one.op0_kind() == OpKind::Memory || one.op1_kind() == OpKind::Memory);
    one.has_lock_prefix() || is_exchange
}

fn decode_condition(one: &Instruction) -> Option<Condition> {
    if !matches!(decode_flow(one), Flow::Branch(_)) {
        return None;
    }
    let (question, is_negated) = match one.condition_code() {
        ConditionCode::e => (Question::Equal, false),
        ConditionCode::ne => (Question::Equal, true),
        ConditionCode::b => (Question::Below, false),
        ConditionCode::ae => (Question::Below, true),
        ConditionCode::be => (Question::BelowOrEqual, false),
        ConditionCode::a => (Question::BelowOrEqual, true),
        ConditionCode::s => (Question::Negative, false),
        ConditionCode::ns => (Question::Negative, true),
        ConditionCode::l => (Question::Less, false),
        ConditionCode::ge => (Question::Less, true),
        ConditionCode::le => (Question::LessOrEqual, false),
        ConditionCode::g => (Question::LessOrEqual, true),
        _ => (Question::Other, false),
    };
    Some(Condition {
        question,
        is_negated,
    })
}

/// Collects immediate operands, and the factor of a LEA that multiplies.
fn collect_constants(one: &Instruction) -> Vec<u64> {
    let immediates = (0..one.op_count()).filter(|&index| is_immediate(one.op_kind(index)));
    let mut found: Vec<u64> = immediates
        .map(|index| keep_low_bits(one.immediate(index), operand_bits(one)))
        .collect();
    if let Some(Step {
        verb: Verb::Multiply,
        right: Operand::Constant(factor),
        ..
    }) = decode_step(one)
    {
        found.push(factor);
    }
    found
}

const fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

/// Operand width, bits.
fn operand_bits(one: &Instruction) -> u32 {
    let bytes = match one.op0_kind() {
        OpKind::Register => one.op0_register().size(),
        OpKind::Memory => one.memory_size().size(),
        _ => 8,
    };
    u32::try_from(bytes.min(8) * 8).unwrap_or(64)
}

/// The low bits of a number.
const fn keep_low_bits(value: u64, bits: u32) -> u64 {
    if bits >= 64 {
        value
    } else {
        value & ((1 << bits) - 1)
    }
}

fn decode_step(one: &Instruction) -> Option<Step> {
    let bits = operand_bits(one);
    if !matches!(bits, 32 | 64) || one.has_lock_prefix() {
        return None;
    }
    let (left, right) = (decode_operand(one, 0, bits), decode_operand(one, 1, bits));
    let is_same = one.op_count() == 2 && left == right && left != Operand::Unknown;
    let (verb, left, right) = match one.mnemonic() {
        Mnemonic::Lea => return decode_lea(one, bits),
        Mnemonic::Movss
        | Mnemonic::Movsd
        | Mnemonic::Movd
        | Mnemonic::Movq
        | Mnemonic::Vmovss
        | Mnemonic::Vmovsd
        | Mnemonic::Vmovd
        | Mnemonic::Vmovq => return decode_scalar_move(one),
        Mnemonic::Mov => (Verb::Move, right, right),
        Mnemonic::Xor | Mnemonic::Sub if is_same => (Verb::Move, left, Operand::Constant(0)),
        Mnemonic::Add => (Verb::Add, left, right),
        // With an unknown carry, the result is unknown, too.
        Mnemonic::Adc => (Verb::Add, left, Operand::Unknown),
        Mnemonic::Sbb => (Verb::Subtract, left, Operand::Unknown),
        Mnemonic::Sub | Mnemonic::Cmp => (Verb::Subtract, left, right),
        Mnemonic::And | Mnemonic::Test => (Verb::And, left, right),
        Mnemonic::Inc => (Verb::Add, left, Operand::Constant(1)),
        Mnemonic::Dec => (Verb::Subtract, left, Operand::Constant(1)),
        Mnemonic::Shl => (Verb::ShiftLeft, left, right),
        Mnemonic::Imul if one.op_count() == 2 => (Verb::Multiply, left, right),
        Mnemonic::Imul if one.op_count() == 3 => {
            (Verb::Multiply, right, decode_operand(one, 2, bits))
        }
        _ => return None,
    };
    let sets_flags_alone = matches!(one.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    let to = decode_place(one, 0);
    if to.is_none() && !sets_flags_alone {
        return None;
    }
    Some(Step {
        to: to.filter(|_| !sets_flags_alone),
        verb,
        left,
        right,
        bits,
    })
}

/// The local variable that an instruction reads.
fn read_local(one: &Instruction, access: Option<Access>) -> Option<Place> {
    access.filter(|access| access.reads)?;
    let mut places = (0..one.op_count()).filter_map(|index| decode_place(one, index));
    places.find(|place| matches!(place, Place::Slot { .. }))
}

/// Decodes a scalar's move between vectors, general registers and the stack.
fn decode_scalar_move(one: &Instruction) -> Option<Step> {
    let at = |index| {
        let register = one.op_register(index);
        let is_vector = one.op_kind(index) == OpKind::Register && register.is_vector_register();
        if is_vector {
            register_number(register).map(Place::Register)
        } else {
            decode_place(one, index)
        }
    };
    let (to, from) = (at(0)?, Operand::At(at(1)?));
    let is_single = matches!(
        one.mnemonic(),
        Mnemonic::Movss | Mnemonic::Movd | Mnemonic::Vmovss | Mnemonic::Vmovd
    );
    (one.op_count() == 2).then_some(Step {
        to: Some(to),
        verb: Verb::Move,
        left: from,
        right: from,
        bits: if is_single { 32 } else { 64 },
    })
}

/// Decodes LEA as a sum, or as a product if it has only an index or if base and index are the same
/// register.
fn decode_lea(one: &Instruction, bits: u32) -> Option<Step> {
    let to = decode_place(one, 0);
    let at = |register| {
        register_number(register).map_or(Operand::Unknown, |number| {
            Operand::At(Place::Register(number))
        })
    };
    let (base, index) = (one.memory_base(), one.memory_index());
    let (displacement, scale) = (one.memory_displacement64(), one.memory_index_scale());
    let (verb, left, right) = if index == Register::None {
        (Verb::Add, at(base), Operand::Constant(displacement))
    } else if displacement != 0 {
        return None;
    } else if base == index {
        let factor = Operand::Constant(u64::from(scale) + 1);
        (Verb::Multiply, at(base), factor)
    } else if base == Register::None {
        let factor = Operand::Constant(u64::from(scale));
        (Verb::Multiply, at(index), factor)
    } else if scale == 1 {
        (Verb::Add, at(base), at(index))
    } else {
        return None;
    };
    Some(Step {
        to,
        verb,
        left,
        right,
        bits,
    })
}

fn decode_operand(one: &Instruction, index: u32, bits: u32) -> Operand {
    if index >= one.op_count() {
        return Operand::Unknown;
    }
    if is_immediate(one.op_kind(index)) {
        return Operand::Constant(keep_low_bits(one.immediate(index), bits));
    }
    decode_place(one, index).map_or(Operand::Unknown, Operand::At)
}

/// Decodes an operand that is a general register of 32 or 64 bits, or a stack slot of any size.
fn decode_place(one: &Instruction, index: u32) -> Option<Place> {
    match one.op_kind(index) {
        OpKind::Register => {
            let register = one.op_register(index);
            let is_whole = register.is_gpr32() || register.is_gpr64();
            is_whole.then(|| register_number(register).map(Place::Register))?
        }
        OpKind::Memory => {
            let base = one.memory_base();
            let offset = one.memory_displacement64().cast_signed();
            let is_own = base == Register::RSP || base == Register::RBP && offset < 0;
            let is_slot = is_own
                && one.memory_index() == Register::None
                && one.segment_prefix() == Register::None;
            is_slot.then(|| register_number(base).map(|base| Place::Slot { base, offset }))?
        }
        _ => None,
    }
}
