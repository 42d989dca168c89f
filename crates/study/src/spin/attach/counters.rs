//! Registers that only count: they advance by about the same amount from each sample to the next,
//! and no code nearby uses them in an address or a multiplication.
//!
//! A polling loop that counts its iterations makes no progress by that. A loop that walks through
//! memory changes the register that it reads through, and a register with a computed state does not
//! advance evenly.

use std::collections::BTreeMap;

use pinwise_code::{Registers, Verb, operation_at};
use pinwise_profile::{REGISTERS, Samples, Step};

/// Instructions further apart than this, in bytes, belong to different pieces of code.
const MAX_DISTANCE: u64 = 512;
/// A register that changed less often is not known to count.
const MIN_CHANGES: usize = 10;
/// Each change of a counting register is within this factor of its median change. It is large
/// because a processor's speed differs from sample to sample if others share it.
const MAX_RATIO: f64 = 4.0;
/// x86's number of each register of [`REGISTERS`], in the same order.
pub(super) const X86_NUMBERS: [u8; 16] = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// How far each counting register of a thread advances from one sample to the next.
#[derive(Debug)]
pub(super) struct Counters {
    /// In the order of [`REGISTERS`]; `None`: it hardly ever changes.
    median_changes: [Option<f64>; REGISTERS.len()],
    /// By frame: the registers that code near it uses in addresses and multiplications.
    used: BTreeMap<usize, Registers>,
}

impl Counters {
    /// Finds the counters of a thread. `frames` are those that it was seen at, each with start and
    /// end of the loop around it; `steps` are its pairs of neighbouring samples.
    pub(super) fn from_samples(
        samples: &Samples,
        frames: &BTreeMap<usize, Option<(u64, u64)>>,
        steps: &[&Step],
    ) -> Self {
        Self {
            median_changes: std::array::from_fn(|register| median_change(steps, register)),
            used: find_used_registers(samples, frames),
        }
    }

    /// Did no register but counters change between two samples at one instruction?
    pub(super) fn is_still(&self, step: &Step) -> bool {
        let used = self.used.get(&step.from).copied();
        let mut changes = step.changes.iter().enumerate();
        changes.all(|(register, &change)| {
            change == 0
                || used.is_some_and(|used| !used.holds(X86_NUMBERS[register]))
                    && self.is_count(register, change)
        })
    }

    fn is_count(&self, register: usize, change: i64) -> bool {
        self.median_changes[register].is_some_and(|median| {
            let ratio = change as f64 / median;
            (1.0 / MAX_RATIO..=MAX_RATIO).contains(&ratio)
        })
    }
}

/// The median change of a register, without the steps that left it alone; `None` if it changed too
/// rarely.
fn median_change(steps: &[&Step], register: usize) -> Option<f64> {
    let mut changes: Vec<i64> = steps
        .iter()
        .filter_map(|step| step.changes.get(register).copied())
        .filter(|&change| change != 0)
        .collect();
    changes.sort_unstable();
    (changes.len() >= MIN_CHANGES).then(|| changes[changes.len() / 2] as f64)
}

/// By frame: registers used in addresses and multiplications, in the code between neighbouring
/// frames and in the loops around them.
fn find_used_registers(
    samples: &Samples,
    frames: &BTreeMap<usize, Option<(u64, u64)>>,
) -> BTreeMap<usize, Registers> {
    let place = |frame: usize| (samples.frames[frame].pid, samples.frames[frame].address);
    let mut sorted: Vec<usize> = frames.keys().copied().collect();
    sorted.sort_by_key(|&frame| place(frame));
    let pieces = sorted.chunk_by(|&a, &b| {
        let (before, after) = (place(a), place(b));
        before.0 == after.0 && after.1 - before.1 <= MAX_DISTANCE
    });
    let mut found = BTreeMap::new();
    for piece in pieces {
        let (pid, first) = place(piece[0]);
        let (_, last) = place(piece[piece.len() - 1]);
        let spans = piece.iter().filter_map(|frame| frames[frame]);
        let (from, to) = spans.fold((first, last), |(from, to), (start, end)| {
            (from.min(start), to.max(end))
        });
        let used = find_used_between(samples, pid, from, to);
        found.extend(piece.iter().map(|&frame| (frame, used)));
    }
    found
}

fn find_used_between(samples: &Samples, pid: i32, first: u64, last: u64) -> Registers {
    let mut used = Registers::NONE;
    let Some(code) = samples.code_at(pid, first) else {
        return used;
    };
    let mut at = first;
    while at <= last {
        let Some(operation) = operation_at(code, at) else {
            break;
        };
        if let Some(access) = operation.access {
            used = used.with(access.address);
        }
        let multiplies = operation
            .step
            .is_some_and(|step| matches!(step.verb, Verb::Multiply | Verb::ShiftLeft));
        if multiplies {
            used = used.with(operation.read);
        }
        at = operation.end();
    }
    used
}
