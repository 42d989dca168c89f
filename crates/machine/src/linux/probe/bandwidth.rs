//! Measures the memory bandwidth of several CPUs at once.
//!
//! All threads process a slice of their arrays, wait for each other, and continue with the next
//! slice. A slice takes about a millisecond, so most batches end before the scheduler interferes.
//! The first thread measures from the common start to the last end, as STREAM does for a pass.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::calls;
use super::memory::{Mapping, check_size};
use super::probe_run::{Moment, ProbeRun, Span, Tally};
use crate::Batches;
use pinwise_format::whole_usize;
use pinwise_kernels::loops::clock::system_ns;
use pinwise_kernels::loops::stream::{Arrays, BLOCK, Stream, Variant, variants};
use pinwise_stats::describe::median;

/// Target length of a batch, ns.
const BATCH_NS: f64 = 1_000_000.0;
/// Trial batches of each variant.
const TRIALS: usize = 3;
/// Bytes of an array in a trial.
const TRIAL_BYTES: usize = 4 << 20;
/// Bytes between arrays, so that they do not fall on the same cache sets and memory banks.
const GAP_BYTES: usize = 4096 + 512;

/// State shared by the threads.
pub(super) struct Bandwidth {
    run: ProbeRun,
    cpus: Vec<usize>,
    stream: Stream,
    /// Bytes of each array, a multiple of [`BLOCK`].
    bytes: usize,
    variants: Vec<Variant>,
    members: Vec<Member>,
    gate: Gate,
    /// The [`BatchWork`] of the next batch, written by the first thread alone.
    work: [AtomicUsize; 3],
    over: AtomicBool,
}

/// One thread's memory and results.
struct Member {
    memory: Mapping,
    from: AtomicU64,
    to: AtomicU64,
}

/// What every thread does in a batch.
#[derive(Debug, Clone, Copy)]
struct BatchWork {
    variant: usize,
    /// Bytes of each array.
    slice: usize,
    /// Passes over the slice.
    passes: usize,
}

impl Bandwidth {
    /// Allocates arrays of this many bytes for a thread on each CPU.
    ///
    /// # Errors
    /// A full sentence says why that is not possible.
    pub(super) fn new(
        run: &ProbeRun,
        cpus: Vec<usize>,
        stream: Stream,
        bytes: usize,
        node: Option<usize>,
    ) -> Result<Arc<Self>, String> {
        let bytes = bytes / BLOCK * BLOCK;
        if bytes == 0 || cpus.is_empty() {
            return Err(format!("Arrays need at least {BLOCK} bytes and one CPU."));
        }
        let mapped = bytes
            .checked_add(GAP_BYTES)
            .and_then(|one| one.checked_mul(3))
            .ok_or_else(|| format!("{bytes} bytes are more than can be addressed."))?;
        let arrays = stream.arrays() * cpus.len();
        let all = (bytes as u64).saturating_mul(arrays as u64);
        check_size(all)?;
        let members = cpus.iter().map(|_| {
            Ok(Member {
                memory: Mapping::new(mapped, node)?,
                from: AtomicU64::new(0),
                to: AtomicU64::new(0),
            })
        });
        Ok(Arc::new(Self {
            run: run.clone(),
            members: members.collect::<Result<_, String>>()?,
            gate: Gate::new(cpus.len()),
            cpus,
            stream,
            bytes,
            variants: variants(stream),
            work: [const { AtomicUsize::new(0) }; 3],
            over: AtomicBool::new(false),
        }))
    }

    /// Runs the first thread, which chooses the work and measures.
    pub(super) fn lead(&self) -> Batches {
        let mut tally = Tally::new(&self.run);
        let mut thread = Thread::new(self, 0);
        if thread.touch()
            && self.gate.pass(&self.run)
            && let Some(work) = self.choose_work(&mut thread)
        {
            while !tally.is_full() && !self.run.is_over() {
                let Some(ns) = self.run_batch(&mut thread, work) else {
                    break;
                };
                self.note(&mut tally, work, ns);
            }
        }
        self.over.store(true, Ordering::Release);
        self.gate.open_for_ever();
        tally.batches
    }

    /// Runs any other thread.
    pub(super) fn follow(&self, number: usize) {
        let mut thread = Thread::new(self, number);
        if !thread.touch() || !self.gate.pass(&self.run) {
            return;
        }
        while self.gate.pass(&self.run) && !self.over.load(Ordering::Acquire) {
            let [variant, slice, passes] =
                [0, 1, 2].map(|index: usize| self.work[index].load(Ordering::Relaxed));
            thread.work(BatchWork {
                variant,
                slice,
                passes,
            });
            if !self.gate.pass(&self.run) {
                return;
            }
        }
    }

    /// Runs one batch on all threads; returns its time in ns, `None` if the time is over.
    fn run_batch(&self, thread: &mut Thread<'_>, work: BatchWork) -> Option<f64> {
        let clock = &self.run.clock;
        let words = [work.variant, work.slice, work.passes];
        for (word, value) in self.work.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        if !self.gate.pass(&self.run) {
            return None;
        }
        let start = clock.ticks();
        thread.work(work);
        let has_ended = self.gate.pass(&self.run);
        let ns = clock.ns(clock.ticks().wrapping_sub(start));
        has_ended.then_some(ns)
    }

    /// Records a batch.
    fn note(&self, tally: &mut Tally, work: BatchWork, ns: f64) {
        let spans: Vec<Span> = self
            .members
            .iter()
            .zip(&self.cpus)
            .map(|(member, &cpu)| Span {
                cpu,
                from: Moment::unpack(member.from.load(Ordering::Relaxed)),
                to: Moment::unpack(member.to.load(Ordering::Relaxed)),
            })
            .collect();
        let moved_bytes = work.slice * work.passes * self.stream.arrays() * self.cpus.len();
        // A batch is not divided into laps, which would show stops. One that took three times as
        // long as the median so far was stopped.
        let value = moved_bytes as f64 / ns;
        let typical = median(&tally.batches.values);
        let is_undisturbed = typical.is_none_or(|typical| value > typical / 3.0);
        tally.note(is_undisturbed.then_some(value), &spans);
    }

    /// Tries all variants [`TRIALS`] times, and chooses the fastest with a slice that takes about
    /// [`BATCH_NS`]. `None` if the time is over.
    fn choose_work(&self, thread: &mut Thread<'_>) -> Option<BatchWork> {
        let slice = self.bytes.min(TRIAL_BYTES);
        let mut best: Vec<f64> = vec![f64::INFINITY; self.variants.len()];
        for _ in 0..TRIALS {
            for (variant, best) in best.iter_mut().enumerate() {
                let passes = (64 * BLOCK).div_ceil(slice);
                let work = BatchWork {
                    variant,
                    slice,
                    passes,
                };
                let ns = self.run_batch(thread, work)?;
                *best = best.min(ns / (slice * passes) as f64);
            }
        }
        let (variant, ns_per_byte) = best
            .into_iter()
            .enumerate()
            .min_by(|one, other| one.1.total_cmp(&other.1))?;
        let wanted = whole_usize((BATCH_NS / ns_per_byte).floor());
        let slice = (wanted / BLOCK * BLOCK).clamp(BLOCK, self.bytes);
        Some(BatchWork {
            variant,
            slice,
            passes: (wanted / slice).max(1),
        })
    }
}

/// A thread and its position in its arrays.
struct Thread<'a> {
    shared: &'a Bandwidth,
    member: &'a Member,
    /// Offset of the next slice, bytes.
    offset: usize,
}

impl<'a> Thread<'a> {
    fn new(shared: &'a Bandwidth, number: usize) -> Self {
        Self {
            shared,
            member: &shared.members[number],
            offset: 0,
        }
    }

    #[expect(unsafe_code, reason = "arrays in memory of its own")]
    fn arrays(&self, offset: usize, bytes: usize) -> Arrays {
        let distance = self.shared.bytes + GAP_BYTES;
        let start = self.member.memory.start();
        // SAFETY: the mapping holds three arrays and the gaps between them.
        let [a, b, c] =
            [0, 1, 2].map(|n| unsafe { start.byte_add(n * distance + offset) }.cast::<f64>());
        // Read-only and write-only streams use the first array.
        let b = if self.shared.stream == Stream::Read {
            a
        } else {
            b
        };
        Arrays {
            a: a.as_ptr(),
            b: b.as_ptr(),
            c: c.as_ptr(),
            bytes,
        }
    }

    /// Writes to every array, so that its pages are local to this CPU; false if the time is over.
    #[expect(unsafe_code, reason = "arrays in memory of its own")]
    fn touch(&self) -> bool {
        let arrays = self.arrays(0, self.shared.bytes);
        let used: &[*mut f64] = match self.shared.stream {
            Stream::Read | Stream::Write => &[arrays.a],
            Stream::Copy => &[arrays.a, arrays.b.cast_mut()],
            Stream::Triad => &[arrays.a, arrays.b.cast_mut(), arrays.c.cast_mut()],
        };
        for offset in (0..self.shared.bytes).step_by(BLOCK) {
            for array in used {
                // SAFETY: within the array, which only this thread uses.
                unsafe { array.byte_add(offset).write(1.0) };
            }
            if offset % (256 * BLOCK) == 0 && self.shared.run.is_over() {
                return false;
            }
        }
        true
    }

    #[expect(unsafe_code, reason = "arrays in memory of its own")]
    fn work(&mut self, work: BatchWork) {
        let from = Moment::now().pack();
        if self.offset + work.slice > self.shared.bytes {
            self.offset = 0;
        }
        let arrays = self.arrays(self.offset, work.slice);
        let variant = &self.shared.variants[work.variant];
        for _ in 0..work.passes {
            // SAFETY: the arrays are this thread's alone; they start at
            // multiples of 64 bytes and do not overlap.
            unsafe { variant.run(arrays) };
        }
        self.offset += work.slice;
        self.member.from.store(from, Ordering::Relaxed);
        self.member
            .to
            .store(Moment::now().pack(), Ordering::Relaxed);
    }
}

/// A barrier for all threads.
struct Gate {
    count: usize,
    arrived: AtomicUsize,
    /// Number of times that all have passed.
    number: AtomicUsize,
    /// Do threads no longer wait?
    is_open: AtomicBool,
}

impl Gate {
    /// How long a thread spins before it sleeps: longer than starting together takes.
    const SPIN_NS: u64 = 200_000;
    /// How long it then sleeps between checks.
    const NAP_NS: u64 = 100_000;

    const fn new(count: usize) -> Self {
        Self {
            count,
            arrived: AtomicUsize::new(0),
            number: AtomicUsize::new(0),
            is_open: AtomicBool::new(false),
        }
    }

    /// Waits for all threads; false if the time is over before.
    fn pass(&self, run: &ProbeRun) -> bool {
        let number = self.number.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.count {
            self.arrived.store(0, Ordering::Relaxed);
            self.number.store(number.wrapping_add(1), Ordering::Release);
            return true;
        }
        let start = system_ns();
        let mut tries = 0u32;
        while self.number.load(Ordering::Acquire) == number {
            std::hint::spin_loop();
            tries += 1;
            if !tries.is_multiple_of(64) {
                continue;
            }
            if self.is_open.load(Ordering::Acquire) || run.is_over() {
                return false;
            }
            let now = system_ns();
            if now - start > Self::SPIN_NS {
                calls::sleep_until(now + Self::NAP_NS);
            }
        }
        true
    }

    /// Lets all present and future waiters through.
    fn open_for_ever(&self) {
        self.is_open.store(true, Ordering::Release);
    }
}
