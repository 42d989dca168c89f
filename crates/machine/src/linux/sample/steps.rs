//! Compares the registers of a thread: how far they changed between consecutive samples, and which
//! of them point into its own stack.

use std::collections::{BTreeMap, VecDeque};

use super::records::Registers;
use pinwise_profile::{REGISTERS, Step};

/// Limits the consecutive samples that are kept.
const MAX_STEPS: usize = 50_000;
/// Largest distance of two samples in one loop, bytes.
const MAX_LOOP_BYTES: u64 = 512;
/// Index of the stack pointer in [`REGISTERS`].
const STACK_POINTER: usize = 7;
/// Bytes below the stack pointer that a function may use (System V ABI, "red zone").
const RED_ZONE: u64 = 128;
/// Bytes above the stack pointer that count as frames of callers. More could be other data: stacks
/// of threads and goroutines can be short.
const CALLER_BYTES: u64 = 4096;

/// Limits the register sets kept per thread and instruction, and such instructions.
const MAX_STATES: usize = 4;
const MAX_INSTRUCTIONS: usize = 20_000;

/// The last sample of a thread.
#[derive(Debug)]
struct LastSample {
    time_ns: u64,
    frame: usize,
    address: u64,
    registers: Vec<u64>,
}

/// Collects the registers of samples.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// By thread.
    last: BTreeMap<usize, LastSample>,
    /// Earlier register sets by thread and frame, the latest last.
    states: BTreeMap<(usize, usize), VecDeque<Vec<u64>>>,
    steps: Vec<Step>,
    stack_pointers: BTreeMap<usize, u16>,
}

impl Steps {
    pub(super) fn add_sample(
        &mut self,
        time_ns: u64,
        thread: usize,
        frame: usize,
        address: u64,
        is_kernel: bool,
        registers: &Registers<'_>,
    ) {
        let values: Vec<u64> = registers.values().collect();
        if is_kernel || values.len() != REGISTERS.len() {
            self.last.remove(&thread);
            return;
        }
        let pointers = find_stack_pointers(&values);
        let in_all_samples = self.stack_pointers.entry(frame).or_insert(pointers);
        *in_all_samples &= pointers;
        let recurs = self.add_state(thread, frame, &values);
        let now = LastSample {
            time_ns,
            frame,
            address,
            registers: values,
        };
        let Some(before) = self.last.insert(thread, now) else {
            return;
        };
        let now = &self.last[&thread];
        if self.steps.len() >= MAX_STEPS || before.address.abs_diff(address) > MAX_LOOP_BYTES {
            return;
        }
        let pairs = now.registers.iter().zip(&before.registers);
        self.steps.push(Step {
            from: before.frame,
            to: frame,
            ns: time_ns.saturating_sub(before.time_ns),
            recurs,
            changes: pairs
                .map(|(now, before)| now.wrapping_sub(*before).cast_signed())
                .collect(),
        });
    }

    /// Keeps these registers; returns whether the thread had the same ones there recently.
    fn add_state(&mut self, thread: usize, frame: usize, values: &[u64]) -> bool {
        let key = (thread, frame);
        if self.states.len() >= MAX_INSTRUCTIONS && !self.states.contains_key(&key) {
            return false;
        }
        let states = self.states.entry(key).or_default();
        let known = states.iter().position(|state| state == values);
        let state = match known.and_then(|at| states.remove(at)) {
            Some(state) => state,
            None => values.to_vec(),
        };
        states.push_back(state);
        if states.len() > MAX_STATES {
            states.pop_front();
        }
        known.is_some()
    }

    /// See [`Samples::steps`](pinwise_profile::Samples::steps) and
    /// [`Samples::stack_pointers`](pinwise_profile::Samples::stack_pointers).
    pub(super) fn finish(self) -> (Vec<Step>, BTreeMap<usize, u16>) {
        (self.steps, self.stack_pointers)
    }
}

/// Finds the registers that point into the thread's stack, one bit each.
fn find_stack_pointers(values: &[u64]) -> u16 {
    let top = values[STACK_POINTER];
    let own = top.saturating_sub(RED_ZONE)..top.saturating_add(CALLER_BYTES);
    let bits = values.iter().zip(0..);
    bits.filter(|(value, _)| own.contains(value))
        .fold(0, |all, (_, bit)| all | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_recurs_if_it_is_among_the_last_four() {
        let mut steps = Steps::default();
        let recurs: Vec<bool> = [1, 2, 1, 2, 3, 4, 5, 1, 5]
            .map(|value| steps.add_state(0, 0, &[value]))
            .into();
        let expected = [false, false, true, true, false, false, false, false, true];
        assert_eq!(recurs, expected);
        // Neither at another instruction nor in another thread.
        assert!(!steps.add_state(0, 1, &[5]) && !steps.add_state(1, 0, &[5]));
    }

    #[test]
    fn registers_that_point_into_the_own_stack_are_found() {
        let top = 0x7fff_0000;
        let mut values = [0; REGISTERS.len()];
        values[STACK_POINTER] = top;
        // Below and above its own range, and the ends of that.
        let near = [
            (0, top - 129),
            (3, top - 128),
            (12, top + 4095),
            (15, top + 4096),
        ];
        for (register, value) in near {
            values[register] = value;
        }
        assert_eq!(find_stack_pointers(&values), 1 << 3 | 1 << 7 | 1 << 12);
    }
}
