//! Counts the hints of a loop by executing its arithmetic with the values that the preceding code
//! sets.
//!
//! Unknown values stay unknown, and a branch on one ends the attempt: the count is known only if it
//! depends on nothing but the code.

use std::collections::HashMap;

use super::graph::{Graph, Members};
use pinwise_code::{Arch, Condition, Flow, Operand, Operation, Owner, Place, Question, Step, Verb};

/// Limits the instructions that are executed for a count.
const MAX_STEPS: u32 = 300_000;

/// Registers that a called function may change.
fn is_scratch(arch: Arch, register: u8) -> bool {
    match arch {
        Arch::X86_64 => matches!(register, 0..=2 | 6..=11),
        Arch::Aarch64 => register < 19 || register == 30,
    }
}

/// Known registers, slots and flags.
#[derive(Debug, Clone, Default)]
struct KnownState {
    values: HashMap<Place, u64>,
    flags: Option<FlagSource>,
}

/// The last operation that set the flags.
#[derive(Debug, Clone, Copy)]
struct FlagSource {
    verb: Verb,
    left: u64,
    right: u64,
    result: u64,
    bits: u32,
}

const fn keep_low_bits(value: u64, bits: u32) -> u64 {
    if bits >= 64 {
        value
    } else {
        value & ((1 << bits) - 1)
    }
}

/// Sign-extends a number of this many bits.
const fn sign_extend(value: u64, bits: u32) -> i64 {
    let unused = 64 - bits;
    (value << unused).cast_signed() >> unused
}

impl KnownState {
    fn value(&self, operand: Operand, bits: u32) -> Option<u64> {
        let value = match operand {
            Operand::Constant(value) => value,
            Operand::At(place) => *self.values.get(&place)?,
            Operand::Unknown => return None,
        };
        Some(keep_low_bits(value, bits))
    }

    fn apply(&mut self, operation: &Operation, arch: Arch) {
        let executed = operation.step.and_then(|step| self.execute(&step));
        self.forget(operation, arch);
        if let Some(Step {
            to: Some(to), bits, ..
        }) = operation.step
            && let Some(executed) = executed
        {
            self.values.insert(to, keep_low_bits(executed.result, bits));
        }
        if operation.sets_flags {
            self.flags = executed;
        }
    }

    fn execute(&self, step: &Step) -> Option<FlagSource> {
        let right = self.value(step.right, step.bits)?;
        let left = match step.verb {
            Verb::Move => right,
            _ => self.value(step.left, step.bits)?,
        };
        let result = match step.verb {
            Verb::Move => right,
            Verb::Add => left.wrapping_add(right),
            Verb::Subtract => left.wrapping_sub(right),
            Verb::And => left & right,
            Verb::Multiply => left.wrapping_mul(right),
            Verb::ShiftLeft => left << (right & u64::from(step.bits - 1)),
        };
        Some(FlagSource {
            verb: step.verb,
            left,
            right,
            result: keep_low_bits(result, step.bits),
            bits: step.bits,
        })
    }

    /// Drops the values that an instruction changes.
    fn forget(&mut self, operation: &Operation, arch: Arch) {
        for register in operation.written.numbers() {
            self.values.remove(&Place::Register(register));
            // Slots move with their base register.
            self.values
                .retain(|place, _| !matches!(place, Place::Slot { base, .. } if *base == register));
        }
        let writes_stack = operation
            .access
            .is_some_and(|access| access.writes && access.owner == Owner::Stack);
        match operation.step.and_then(|step| step.to) {
            Some(slot @ Place::Slot { .. }) => {
                self.values.remove(&slot);
            }
            _ if writes_stack => self
                .values
                .retain(|place, _| matches!(place, Place::Register(_))),
            _ => {}
        }
        if matches!(operation.flow, Flow::Call(_) | Flow::System) {
            self.flags = None;
            self.values.retain(
                |place, _| !matches!(place, Place::Register(one) if is_scratch(arch, *one)),
            );
        }
    }

    fn evaluate(&self, condition: Condition) -> Option<bool> {
        let is_true = match condition.question {
            Question::Zero(register, bits) => {
                let value = self.value(Operand::At(Place::Register(register)), bits)?;
                value == 0
            }
            Question::BitClear(register, bit) => {
                let value = self.value(Operand::At(Place::Register(register)), 64)?;
                value >> bit & 1 == 0
            }
            question => self.flags?.evaluate(question)?,
        };
        Some(is_true != condition.is_negated)
    }
}

impl FlagSource {
    fn evaluate(self, question: Question) -> Option<bool> {
        let (left, right) = (
            sign_extend(self.left, self.bits),
            sign_extend(self.right, self.bits),
        );
        let result = sign_extend(self.result, self.bits);
        let below = match self.verb {
            Verb::Subtract => Some(self.left < self.right),
            Verb::And => Some(false),
            _ => None,
        };
        let less = match self.verb {
            Verb::Subtract => Some(left < right),
            Verb::Add => Some(i128::from(left) + i128::from(right) < 0),
            Verb::And => Some(result < 0),
            _ => None,
        };
        match question {
            Question::Equal => Some(result == 0),
            Question::Negative => Some(result < 0),
            Question::Below => below,
            Question::BelowOrEqual => below.map(|below| below || result == 0),
            Question::Less => less,
            Question::LessOrEqual => less.map(|less| less || result == 0),
            Question::Zero(..) | Question::BitClear(..) | Question::Other => None,
        }
    }
}

/// Counts the hints that a loop executes from entry to exit; `None` if that depends on more than the
/// code. `front` is the code before the loop, `hints` the number of hints in an instruction.
pub(super) fn count_hints(
    arch: Arch,
    graph: &Graph,
    members: &Members,
    front: &[Operation],
    hints: &dyn Fn(&Operation) -> u64,
) -> Option<u64> {
    let first = graph.operations[*members.first()?].address;
    let (mut known, mut at) = find_entry(arch, graph, members, front, first)?;
    let mut counted = 0u64;
    for _ in 0..MAX_STEPS {
        let Some(index) = graph.index(at).filter(|i| members.binary_search(i).is_ok()) else {
            return Some(counted);
        };
        let operation = &graph.operations[index];
        counted += hints(operation);
        at = match operation.flow {
            Flow::Branch(to) if known.evaluate(operation.condition?)? => to,
            Flow::Jump(to) => to?,
            _ => operation.end(),
        };
        known.apply(operation, arch);
    }
    None
}

/// Finds where the preceding code enters the loop, and the values known there; `None` if other code
/// enters it as well.
fn find_entry(
    arch: Arch,
    graph: &Graph,
    members: &Members,
    front: &[Operation],
    first: u64,
) -> Option<(KnownState, u64)> {
    let mut known = KnownState::default();
    let mut entry = first;
    for operation in front {
        if has_other_entries(graph, operation, front) {
            known = KnownState::default();
        }
        match operation.flow {
            Flow::Jump(Some(to)) if is_member(graph, members, to) => {
                entry = is_last(front, operation.address).then_some(to)?;
            }
            Flow::Branch(to) if is_member(graph, members, to) => return None,
            Flow::Jump(_) | Flow::Return | Flow::Stop => {
                known = KnownState::default();
                entry = first;
            }
            _ => known.apply(operation, arch),
        }
    }
    let entries = members
        .iter()
        .flat_map(|&member| graph.predecessors(member));
    let is_only_way = entries
        .filter(|from| members.binary_search(from).is_err())
        .all(|&from| is_last(front, graph.operations[from].address));
    is_only_way.then_some((known, entry))
}

fn is_last(front: &[Operation], address: u64) -> bool {
    front.last().is_some_and(|last| last.address == address)
}

fn is_member(graph: &Graph, members: &Members, address: u64) -> bool {
    let index = graph.index(address);
    index.is_some_and(|index| members.binary_search(&index).is_ok())
}

/// Can other known code jump to this operation of the preceding code?
fn has_other_entries(graph: &Graph, operation: &Operation, front: &[Operation]) -> bool {
    let Some(index) = graph.index(operation.address) else {
        return false;
    };
    graph.predecessors(index).iter().any(|&from| {
        let from = graph.operations[from].address;
        !front
            .iter()
            .any(|before| before.address == from && before.end() == operation.address)
    })
}
