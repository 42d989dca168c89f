//! Threads that wait although none of their loops shows it: those that only read the clock, and
//! those that cycle through functions while nothing changes.
//!
//! The code of a poll for work may call anything; the samples show whether those calls have any
//! effect. A thread makes no progress if it writes no memory but its stack, computes no vectors, and
//! is seen at the same instructions again and again with general registers that are unchanged, only
//! counting, or as in one of a few earlier samples. (A function without a loop has different
//! arguments from each of its callers.) Work that repeats itself down to every register would be
//! mistaken for waiting. A thread that waits for a time is recognised by its reading of the clock.

use std::collections::{BTreeMap, BTreeSet};

use super::counters::{Counters, X86_NUMBERS};
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
/// Functions of the vDSO that read no clock.
const NO_CLOCKS: [&str; 2] = ["getcpu", "getrandom"];
/// A thread waits for a time if at least this share of its samples reads the clock: a thread that
/// only takes the time of its work is mostly seen working.
const MIN_CLOCK_SHARE: f64 = 0.7;
/// Threads with fewer samples are not judged.
const MIN_SAMPLES: u64 = 30;
/// Threads with fewer pairs of samples at one instruction are not judged by their registers.
const MIN_PAIRS: usize = 20;
/// A thread makes no progress if at least this share of its pairs shows no change but counting.
const MIN_STILL_SHARE: f64 = 0.9;
/// A thread works if a larger share of its samples is at instructions that write memory or compute
/// vectors, or in loops that continue such results of earlier iterations.
const MAX_WRITING_SHARE: f64 = 0.05;
/// If a smaller share of a loop's samples is in code that continues earlier iterations, the loop
/// exits before it gets there.
const MIN_CONTINUED_SHARE: f64 = 0.01;
/// Number of the first vector register.
const FIRST_VECTOR: u8 = 32;

/// Threads that make no progress.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// Threads that read the clock most of the time.
    clock_readers: BTreeSet<usize>,
    /// Threads whose state does not change.
    still: BTreeSet<usize>,
}

/// Numbers of samples of a thread.
#[derive(Debug, Default)]
struct ThreadSamples {
    all: u64,
    reading_clock: u64,
    /// At instructions that write memory or vectors.
    writing: u64,
    /// Samples in loops that may make progress without a change in registers, by process, start and
    /// end.
    hidden_progress: BTreeMap<(i32, u64, u64), HiddenProgress>,
    /// Frames outside the kernel, each with start and end of the loop around it.
    frames: BTreeMap<usize, Option<(u64, u64)>>,
}

/// Numbers of samples in a loop that may make progress without a change in registers.
#[derive(Debug, Default)]
struct HiddenProgress {
    all: u64,
    /// At instructions that write neither memory nor vectors.
    not_writing: u64,
    /// In code that continues earlier iterations.
    continuing: u64,
}

impl ThreadSamples {
    fn add(&mut self, samples: &Samples, stack: &Stack, found: Option<&SpinLoop>, writes: bool) {
        let (frame, count) = (stack.frames[0], stack.count);
        let span = found.map(|found| (found.start, found.end));
        self.frames.insert(frame, span);
        if reads_clock(samples, frame) {
            self.reading_clock += count;
        }
        if writes {
            self.writing += count;
        }
        let Frame { pid, address, .. } = samples.frames[frame];
        let Some(found) = found.filter(|found| !found.hidden_progress.is_empty()) else {
            return;
        };
        let of_loop = self.hidden_progress.entry((pid, found.start, found.end));
        let of_loop = of_loop.or_default();
        of_loop.all += count;
        of_loop.not_writing += if writes { 0 } else { count };
        let mut continuing = found.hidden_progress.iter();
        if continuing.any(|&(from, to)| (from..to).contains(&address)) {
            of_loop.continuing += count;
        }
    }

    /// Number of samples in work: at instructions that write, and in loops that make progress.
    fn count_working(&self) -> u64 {
        let is_reached =
            |one: &&HiddenProgress| one.continuing as f64 > MIN_CONTINUED_SHARE * one.all as f64;
        let progressing = self.hidden_progress.values().filter(is_reached);
        self.writing + progressing.map(|one| one.not_writing).sum::<u64>()
    }

    /// Did hardly anything but counters change between neighbouring samples?
    fn is_still(&self, samples: &Samples, steps: &BTreeMap<usize, Vec<&Step>>) -> bool {
        let own = self.frames.keys().filter_map(|frame| steps.get(frame));
        let own: Vec<&Step> = own.flatten().copied().collect();
        if own.len() < MIN_PAIRS {
            return false;
        }
        let counters = Counters::from_samples(samples, &self.frames, &own);
        // Registers that recur in a loop are its state; outside of one they are arguments.
        let is_outside_loops = |step: &Step| self.frames.get(&step.from) == Some(&None);
        let is_still =
            |step: &&&Step| counters.is_still(step) || (step.recurs && is_outside_loops(step));
        let still = own.iter().filter(is_still).count();
        still as f64 >= MIN_STILL_SHARE * own.len() as f64
    }
}

impl Idle {
    pub(super) fn from_samples(samples: &Samples, sites: &mut Sites) -> Self {
        let mut threads: BTreeMap<usize, ThreadSamples> = BTreeMap::new();
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
            let found = sites.find_loop_around(samples, frame);
            seen.add(samples, stack, found, writes);
        }
        let steps = group_steps(samples);
        let mut idle = Self::default();
        for (thread, seen) in threads.iter().filter(|(_, seen)| seen.all >= MIN_SAMPLES) {
            let share = |count: u64| count as f64 / seen.all as f64;
            if share(seen.reading_clock) >= MIN_CLOCK_SHARE {
                idle.clock_readers.insert(*thread);
            }
            if share(seen.count_working()) <= MAX_WRITING_SHARE && seen.is_still(samples, &steps) {
                idle.still.insert(*thread);
            }
        }
        idle
    }

    /// The frame whose function waits; `None` if the thread makes progress, or is in the kernel.
    pub(super) fn find_waiting_frame(&self, samples: &Samples, stack: &Stack) -> Option<usize> {
        let frame = stack.frames[0];
        if samples.frames[frame].is_kernel {
            return None;
        }
        let is_clock_reader = self.clock_readers.contains(&stack.thread);
        let waits_for_time = is_clock_reader && reads_clock(samples, frame);
        (waits_for_time || self.still.contains(&stack.thread)).then_some(frame)
    }
}

fn reads_clock(samples: &Samples, frame: usize) -> bool {
    let is_in_vdso = is_in_vdso(samples, frame);
    let frame = &samples.frames[frame];
    let name = frame.symbol.as_ref().map_or("", |symbol| &symbol.name);
    let is_any = |names: &[&str]| names.iter().any(|one| name.contains(one));
    is_any(&CLOCKS) || (is_in_vdso && !is_any(&NO_CLOCKS)) || is_at_clock_read(samples, frame)
}

/// Is it an instruction that reads the clock, or the next one, which waits for the result?
fn is_at_clock_read(samples: &Samples, frame: &Frame) -> bool {
    /// Lengths of those instructions, bytes; 0 for the instruction at the frame itself.
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

/// Does the instruction write a vector, or memory that others may read? The stack belongs to the
/// thread, also where a function writes its result into a caller's variable through a pointer.
fn writes_at(samples: &Samples, frame: usize) -> bool {
    let Frame { pid, address, .. } = samples.frames[frame];
    let code = samples.code_at(pid, address);
    let operation = code.and_then(|code| operation_at(code, address));
    let stack_pointers = samples.stack_pointers.get(&frame).copied().unwrap_or(0);
    operation.is_none_or(|one| {
        let writes = one.access.is_some_and(|access| {
            let is_own = access.owner == Owner::Stack || uses_any(access.address, stack_pointers);
            access.writes && !is_own
        });
        writes
            || one
                .written
                .numbers()
                .any(|register| register >= FIRST_VECTOR)
    })
}

/// Does an address use one of these registers, which are bits in the order of
/// [`REGISTERS`](pinwise_profile::REGISTERS)?
fn uses_any(address: Registers, registers: u16) -> bool {
    let mut numbers = (0..).zip(X86_NUMBERS);
    numbers.any(|(bit, number)| registers & 1 << bit != 0 && address.holds(number))
}

/// Pairs of neighbouring samples at the same instruction, by its frame.
fn group_steps(samples: &Samples) -> BTreeMap<usize, Vec<&Step>> {
    let mut found: BTreeMap<usize, Vec<&Step>> = BTreeMap::new();
    for step in samples.steps.iter().filter(|step| step.from == step.to) {
        found.entry(step.from).or_default().push(step);
    }
    found
}
