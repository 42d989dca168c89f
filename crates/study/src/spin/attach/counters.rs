//! Registers that only count: they advance by the same amount from each sample to the next, and no
//! code nearby reads memory through them or multiplies with them.
//!
//! A poll that counts its empty turns makes no progress by counting. A walk moves the address that
//! it reads; a state jumps about.

use std::collections::BTreeMap;

use pinwise_code::{Registers, Verb, operation_at};
use pinwise_profile::{REGISTERS, Samples, Step};

/// Instructions further apart than this belong to different code, bytes.
const NEAR: u64 = 512;
/// Changes of a register that are needed to know that it counts.
const MIN_CHANGES: usize = 10;
/// A count's change is within this factor of its median: a processor's speed differs from sample to
/// sample if others share it.
const FACTOR: f64 = 4.0;
/// How x86 numbers the registers of [`REGISTERS`].
pub(super) const NUMBERS: [u8; 16] = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// How far each register that counts goes from one sample of a thread to the
/// next.
#[derive(Debug)]
pub(super) struct Counters {
    medians: [Option<f64>; REGISTERS.len()],
    /// By frame: registers that code near it computes with.
    used: BTreeMap<usize, Registers>,
}

impl Counters {
    /// From the samples of a thread seen at these frames, with the loops around them and the steps
    /// that it took.
    pub(super) fn from_samples(
        samples: &Samples,
        frames: &BTreeMap<usize, Option<(u64, u64)>>,
        steps: &[&Step],
    ) -> Self {
        Self {
            medians: std::array::from_fn(|register| median(steps, register)),
            used: find_used_registers(samples, frames),
        }
    }

    /// Between two samples at one instruction, did nothing but counts change?
    pub(super) fn is_still(&self, step: &Step) -> bool {
        let used = self.used.get(&step.from).copied();
        let mut changes = step.changes.iter().enumerate();
        changes.all(|(register, &change)| {
            change == 0
                || used.is_some_and(|used| !used.holds(NUMBERS[register]))
                    && self.is_count(register, change)
        })
    }

    fn is_count(&self, register: usize, change: i64) -> bool {
        self.medians[register].is_some_and(|median| {
            let times = change as f64 / median;
            (1.0 / FACTOR..=FACTOR).contains(&times)
        })
    }
}

/// The usual change of a register, if it has changed often enough.
fn median(steps: &[&Step], register: usize) -> Option<f64> {
    let mut changes: Vec<i64> = steps
        .iter()
        .filter_map(|step| step.changes.get(register).copied())
        .filter(|&change| change != 0)
        .collect();
    changes.sort_unstable();
    (changes.len() >= MIN_CHANGES).then(|| changes[changes.len() / 2] as f64)
}

/// Registers used in addresses and products, in the code between neighbouring frames and in the
/// loops around them.
fn find_used_registers(
    samples: &Samples,
    frames: &BTreeMap<usize, Option<(u64, u64)>>,
) -> BTreeMap<usize, Registers> {
    let place = |frame: usize| (samples.frames[frame].pid, samples.frames[frame].address);
    let mut sorted: Vec<usize> = frames.keys().copied().collect();
    sorted.sort_by_key(|&frame| place(frame));
    let pieces = sorted.chunk_by(|&a, &b| {
        let (before, after) = (place(a), place(b));
        before.0 == after.0 && after.1 - before.1 <= NEAR
    });
    let mut found = BTreeMap::new();
    for piece in pieces {
        let (pid, first) = place(piece[0]);
        let (_, last) = place(piece[piece.len() - 1]);
        let spans = piece.iter().filter_map(|frame| frames[frame]);
        let (from, to) = spans.fold((first, last), |(from, to), (start, end)| {
            (from.min(start), to.max(end))
        });
        let used = used_between(samples, pid, from, to);
        found.extend(piece.iter().map(|&frame| (frame, used)));
    }
    found
}

fn used_between(samples: &Samples, pid: i32, first: u64, last: u64) -> Registers {
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
