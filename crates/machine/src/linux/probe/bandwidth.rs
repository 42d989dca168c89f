//! Bandwidth of memory for several CPUs at once.
//!
//! All threads process a slice of their arrays, wait for each other, and continue with the next
//! slice: a slice takes about a millisecond, so most batches end before a scheduler interferes. The
//! first thread measures from the common start to the last end, as STREAM does for a pass.

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
/// Trial slices per variant.
const TRIALS: usize = 3;
/// Bytes of an array, for a trial.
const TRIAL_BYTES: usize = 4 << 20;
/// Gap between arrays, beyond their size, so that they do not fall on the same sets and banks.
const APART: usize = 4096 + 512;

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
    /// The order for the next batch, written by the first thread alone.
    order: [AtomicUsize; 3],
    over: AtomicBool,
}

/// One thread's memory and results.
struct Member {
    memory: Mapping,
    from: AtomicU64,
    to: AtomicU64,
}

/// The work of all threads in a batch.
#[derive(Debug, Clone, Copy)]
struct Order {
    variant: usize,
    /// Bytes of each array.
    slice: usize,
    /// Passes over the slice.
    passes: usize,
}

impl Bandwidth {
    /// Arrays of this many bytes for a thread on each CPU.
    ///
    /// # Errors
    /// The reason if there are none, as a full sentence.
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
            .checked_add(APART)
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
            order: [const { AtomicUsize::new(0) }; 3],
            over: AtomicBool::new(false),
        }))
    }

    /// The first thread: gives orders and measures.
    pub(super) fn lead(&self) -> Batches {
        let mut tally = Tally::new(&self.run);
        let mut thread = Thread::new(self, 0);
        if thread.touch()
            && self.gate.pass(&self.run)
            && let Some(order) = self.choose(&mut thread)
        {
            while !tally.is_full() && !self.run.is_over() {
                let Some(ns) = self.run_batch(&mut thread, order) else {
                    break;
                };
                self.note(&mut tally, order, ns);
            }
        }
        self.over.store(true, Ordering::Release);
        self.gate.open_for_ever();
        tally.batches
    }

    /// Any other thread.
    pub(super) fn follow(&self, number: usize) {
        let mut thread = Thread::new(self, number);
        if !thread.touch() || !self.gate.pass(&self.run) {
            return;
        }
        while self.gate.pass(&self.run) && !self.over.load(Ordering::Acquire) {
            let [variant, slice, passes] =
                [0, 1, 2].map(|at: usize| self.order[at].load(Ordering::Relaxed));
            thread.work(Order {
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
    fn run_batch(&self, thread: &mut Thread<'_>, order: Order) -> Option<f64> {
        let clock = &self.run.clock;
        let words = [order.variant, order.slice, order.passes];
        for (word, value) in self.order.iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        if !self.gate.pass(&self.run) {
            return None;
        }
        let start = clock.ticks();
        thread.work(order);
        let has_ended = self.gate.pass(&self.run);
        let ns = clock.ns(clock.ticks().wrapping_sub(start));
        has_ended.then_some(ns)
    }

    fn note(&self, tally: &mut Tally, order: Order, ns: f64) {
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
        let moved = order.slice * order.passes * self.stream.arrays() * self.cpus.len();
        // A batch is too long for laps. If it took three times the median so far without a
        // preemption, it was stopped.
        let value = moved as f64 / ns;
        let typical = median(&tally.batches.values);
        let is_whole = typical.is_none_or(|typical| value > typical / 3.0);
        tally.note(is_whole.then_some(value), &spans);
    }

    /// Tries all variants twice, takes the fastest, and then as much of the arrays as takes about
    /// [`BATCH_NS`].
    fn choose(&self, thread: &mut Thread<'_>) -> Option<Order> {
        let slice = self.bytes.min(TRIAL_BYTES);
        let mut best: Vec<f64> = vec![f64::INFINITY; self.variants.len()];
        for _ in 0..TRIALS {
            for (variant, best) in best.iter_mut().enumerate() {
                let passes = (64 * BLOCK).div_ceil(slice);
                let order = Order {
                    variant,
                    slice,
                    passes,
                };
                let ns = self.run_batch(thread, order)?;
                *best = best.min(ns / (slice * passes) as f64);
            }
        }
        let (variant, ns_per_byte) = best
            .into_iter()
            .enumerate()
            .min_by(|one, other| one.1.total_cmp(&other.1))?;
        let wanted = whole_usize((BATCH_NS / ns_per_byte).floor());
        let slice = (wanted / BLOCK * BLOCK).clamp(BLOCK, self.bytes);
        Some(Order {
            variant,
            slice,
            passes: (wanted / slice).max(1),
        })
    }
}

/// A thread in its arrays.
struct Thread<'a> {
    shared: &'a Bandwidth,
    member: &'a Member,
    /// Where the next slice starts.
    at: usize,
}

impl<'a> Thread<'a> {
    fn new(shared: &'a Bandwidth, number: usize) -> Self {
        Self {
            shared,
            member: &shared.members[number],
            at: 0,
        }
    }

    #[expect(unsafe_code, reason = "arrays in memory of its own")]
    fn arrays(&self, at: usize, bytes: usize) -> Arrays {
        let apart = self.shared.bytes + APART;
        let start = self.member.memory.start();
        // SAFETY: the mapping holds three arrays and the gaps between them.
        let [a, b, c] = [0, 1, 2].map(|n| unsafe { start.byte_add(n * apart + at) }.cast::<f64>());
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

    /// Writes to every array, so that its memory is local to this CPU; false if the time is over.
    #[expect(unsafe_code, reason = "arrays in memory of its own")]
    fn touch(&self) -> bool {
        let on = self.arrays(0, self.shared.bytes);
        let used: &[*mut f64] = match self.shared.stream {
            Stream::Read | Stream::Write => &[on.a],
            Stream::Copy => &[on.a, on.b.cast_mut()],
            Stream::Triad => &[on.a, on.b.cast_mut(), on.c.cast_mut()],
        };
        for at in (0..self.shared.bytes).step_by(BLOCK) {
            for array in used {
                // SAFETY: within the array, which only this thread uses.
                unsafe { array.byte_add(at).write(1.0) };
            }
            if at % (256 * BLOCK) == 0 && self.shared.run.is_over() {
                return false;
            }
        }
        true
    }

    #[expect(unsafe_code, reason = "arrays in memory of its own")]
    fn work(&mut self, order: Order) {
        let from = Moment::now().pack();
        if self.at + order.slice > self.shared.bytes {
            self.at = 0;
        }
        let arrays = self.arrays(self.at, order.slice);
        let variant = &self.shared.variants[order.variant];
        for _ in 0..order.passes {
            // SAFETY: the arrays are this thread's alone; they start at
            // multiples of 64 bytes and do not overlap.
            unsafe { variant.run(arrays) };
        }
        self.at += order.slice;
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
    /// Grows with every passing.
    number: AtomicUsize,
    is_open: AtomicBool,
}

impl Gate {
    /// Longer than starting together takes; afterwards the CPU is yielded.
    const SPIN_NS: u64 = 200_000;
    const NAP_NS: u64 = 100_000;

    const fn new(count: usize) -> Self {
        Self {
            count,
            arrived: AtomicUsize::new(0),
            number: AtomicUsize::new(0),
            is_open: AtomicBool::new(false),
        }
    }

    /// Waits for all; false if the time was over before.
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

    /// Releases all present and future waiters.
    fn open_for_ever(&self) {
        self.is_open.store(true, Ordering::Release);
    }
}
