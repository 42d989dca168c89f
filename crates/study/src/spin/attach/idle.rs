//! Threads that wait, although none of their loops shows it: those that do nothing but read the
//! clock, and those that cycle through functions while nothing ever changes.
//!
//! A poll for work calls functions that could do anything; the samples show that they do not. A
//! thread makes no progress if it is seen at one instruction again and again with all its general
//! registers unchanged or only counted on, or as at one of a few earlier times (a function without
//! a loop has other arguments from each place that calls it), and if it writes no memory but its
//! stack and computes no vectors. Work that repeats itself to the last register would be mistaken
//! for waiting; a thread that waits for a time is recognised by reading the clock.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::{Counters, NUMBERS};
use super::sites::{Sites, is_in_vdso};
use pinwise_code::{Owner, Registers, operation_at};
use pinwise_profile::{Frame, Samples, Stack, Step};
use pinwise_spin::loops::SpinLoop;

/// Functions that read the clock.
const CLOCKS: [&str; 8] = [
    "clock_gettime",
    "gettimeofday",
    "__vdso_time",
    "runtime.nanotime",
    "javaTimeNanos",
    "System.nanoTime",
    "steady_clock::now",
    "time::Instant::now",
];
/// Functions of the kernel's page in every program that read no clock.
const NO_CLOCKS: [&str; 2] = ["getcpu", "getrandom"];
/// A thread waits for a time if it is seen reading the clock this often: a thread that only notes
/// the time of its work does work most of the time.
const CLOCK_SHARE: f64 = 0.7;
/// Samples of a thread that are needed for that verdict.
const MIN_SAMPLES: u64 = 30;
/// Pairs of samples at one instruction that are needed to judge a thread, and the share of them
/// without any change but counting.
const MIN_PAIRS: usize = 20;
const STILL_SHARE: f64 = 0.9;
/// A thread works if a larger share of its samples is at instructions that write memory or compute
/// vectors, or in loops that continue what earlier turns left there. Progress in registers shows in
/// these: a loop that only retries has none in any of its turns.
const MAX_WRITING_SHARE: f64 = 0.05;
/// If a smaller share of a loop's samples is in code that continues earlier turns, the loop exits
/// before it gets there.
const MIN_CONTINUED_SHARE: f64 = 0.01;
/// Vector registers are numbered from here on.
const VECTORS: u8 = 32;

/// Threads that get nowhere.
#[derive(Debug, Default)]
pub(super) struct Idle {
    clocks: BTreeSet<usize>,
    still: BTreeSet<usize>,
}

/// What a thread was seen at, in samples.
#[derive(Debug, Default)]
struct IdleSamples {
    all: u64,
    reading: u64,
    writing: u64,
    /// Samples in loops whose progress registers need not show, by process, start and end.
    hiding: BTreeMap<(i32, u64, u64), Hiding>,
    /// Instructions of the program's own, with the loops around them.
    frames: BTreeMap<usize, Option<(u64, u64)>>,
}

/// Samples of a loop whose progress registers need not show.
#[derive(Debug, Default)]
struct Hiding {
    all: u64,
    /// At instructions that neither write memory nor vectors.
    silent: u64,
    /// Samples in code that makes progress.
    going_on: u64,
}

impl IdleSamples {
    fn note(&mut self, samples: &Samples, stack: &Stack, found: Option<&SpinLoop>, writes: bool) {
        let (frame, count) = (stack.frames[0], stack.count);
        let span = found.map(|found| (found.start, found.end));
        self.frames.insert(frame, span);
        if reads_clock(samples, frame) {
            self.reading += count;
        }
        if writes {
            self.writing += count;
        }
        let Frame { pid, address, .. } = samples.frames[frame];
        let Some(found) = found.filter(|found| !found.hidden_progress.is_empty()) else {
            return;
        };
        let hiding = self.hiding.entry((pid, found.start, found.end));
        let hiding = hiding.or_default();
        hiding.all += count;
        hiding.silent += if writes { 0 } else { count };
        let mut runs = found.hidden_progress.iter();
        if runs.any(|&(from, to)| (from..to).contains(&address)) {
            hiding.going_on += count;
        }
    }

    /// Samples in work, whether or not at an instruction that shows it.
    fn working(&self) -> u64 {
        let goes_on = |one: &&Hiding| one.going_on as f64 > MIN_CONTINUED_SHARE * one.all as f64;
        let hiding = self.hiding.values().filter(goes_on);
        self.writing + hiding.map(|one| one.silent).sum::<u64>()
    }

    /// Is it seen again with nothing changed but counts?
    fn is_still(&self, samples: &Samples, steps: &BTreeMap<usize, Vec<&Step>>) -> bool {
        let own = self.frames.keys().filter_map(|frame| steps.get(frame));
        let own: Vec<&Step> = own.flatten().copied().collect();
        if own.len() < MIN_PAIRS {
            return false;
        }
        let counters = Counters::from_samples(samples, &self.frames, &own);
        // In a loop, alternating values are its state.
        let is_of_callers = |step: &Step| self.frames.get(&step.from) == Some(&None);
        let is_still =
            |step: &&&Step| counters.is_still(step) || (step.recurs && is_of_callers(step));
        let still = own.iter().filter(is_still).count();
        still as f64 >= STILL_SHARE * own.len() as f64
    }
}

impl Idle {
    pub(super) fn from_samples(samples: &Samples, sites: &mut Sites) -> Self {
        let mut threads: BTreeMap<usize, IdleSamples> = BTreeMap::new();
        let mut writes: BTreeMap<usize, bool> = BTreeMap::new();
        for stack in &samples.stacks {
            let seen = threads.entry(stack.thread).or_default();
            let frame = stack.frames[0];
            seen.all += stack.count;
            if samples.frames[frame].is_kernel {
                continue;
            }
            let writes = *writes
                .entry(frame)
                .or_insert_with(|| writes_at(samples, frame));
            seen.note(
                samples,
                stack,
                sites.find_loop_around(samples, frame),
                writes,
            );
        }
        let steps = steps(samples);
        let mut idle = Self::default();
        for (thread, seen) in threads.iter().filter(|(_, seen)| seen.all >= MIN_SAMPLES) {
            let part = |of: u64| of as f64 / seen.all as f64;
            if part(seen.reading) >= CLOCK_SHARE {
                idle.clocks.insert(*thread);
            }
            if part(seen.working()) <= MAX_WRITING_SHARE && seen.is_still(samples, &steps) {
                idle.still.insert(*thread);
            }
        }
        idle
    }

    /// The frame in whose function a stack waits; `None` if its thread makes progress, or is in the
    /// kernel.
    pub(super) fn place(&self, samples: &Samples, stack: &Stack) -> Option<usize> {
        let frame = stack.frames[0];
        if samples.frames[frame].is_kernel {
            return None;
        }
        let waits_for_time = self.clocks.contains(&stack.thread) && reads_clock(samples, frame);
        (waits_for_time || self.still.contains(&stack.thread)).then_some(frame)
    }
}

fn reads_clock(samples: &Samples, frame: usize) -> bool {
    let is_in_vdso = is_in_vdso(samples, frame);
    let frame = &samples.frames[frame];
    let name = frame.symbol.as_ref().map_or("", |symbol| &symbol.name);
    let is_any = |names: &[&str]| names.iter().any(|one| name.contains(one));
    is_any(&CLOCKS) || (is_in_vdso && !is_any(&NO_CLOCKS)) || stands_at_clock(samples, frame)
}

/// Is it the instruction that reads the clock, or the one behind it, which waits for it?
fn stands_at_clock(samples: &Samples, frame: &Frame) -> bool {
    const LENGTHS: [u64; 4] = [0, 2, 3, 4];
    let Some(code) = samples.code_at(frame.pid, frame.address) else {
        return false;
    };
    LENGTHS.iter().any(|&length| {
        let start = frame.address.checked_sub(length);
        let operation = start.and_then(|start| operation_at(code, start));
        operation.is_some_and(|one| one.reads_clock && (length == 0 || one.end() == frame.address))
    })
}

/// Does the instruction write memory that others may read, or a vector? The stack is the thread's
/// own, even when a caller's variables are written through a pointer, as results of functions are.
fn writes_at(samples: &Samples, frame: usize) -> bool {
    let of = &samples.frames[frame];
    let code = samples.code_at(of.pid, of.address);
    let operation = code.and_then(|code| operation_at(code, of.address));
    let pointing = samples.stack_pointers.get(&frame).copied().unwrap_or(0);
    operation.is_none_or(|one| {
        let writes = one.access.is_some_and(|access| {
            let is_own = access.owner == Owner::Stack || is_by(pointing, access.address);
            access.writes && !is_own
        });
        writes || one.written.numbers().any(|register| register >= VECTORS)
    })
}

/// Is one of an address's registers among these, bits in the order of
/// [`REGISTERS`](pinwise_profile::REGISTERS)?
fn is_by(pointing: u16, address: Registers) -> bool {
    let mut numbers = (0..).zip(NUMBERS);
    numbers.any(|(bit, number)| pointing & 1 << bit != 0 && address.holds(number))
}

/// By instruction: pairs of neighbouring samples there.
fn steps(samples: &Samples) -> BTreeMap<usize, Vec<&Step>> {
    let mut found: BTreeMap<usize, Vec<&Step>> = BTreeMap::new();
    for step in samples.steps.iter().filter(|step| step.from == step.to) {
        found.entry(step.from).or_default().push(step);
    }
    found
}
