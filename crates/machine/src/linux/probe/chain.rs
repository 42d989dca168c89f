//! Latency of memory: a chain of dependent loads, alone or while other CPUs
//! load the memory.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::calls::sleep_until;
use super::memory::{Mapping, check_size};
use super::probe_run::{Moment, ProbeRun, Span, Tally};
use crate::Batches;
use pinwise_format::whole_usize;
use pinwise_kernels::loops::chase::{Chain, UNROLLED, line_bytes};
use pinwise_kernels::loops::clock::system_ns;
use pinwise_kernels::loops::laps::Laps;
use pinwise_kernels::loops::stream::{Arrays, BLOCK, Stream, Variant, variants};

/// Laps of a batch, and the length of one: so long that reading the clock does not matter, so short
/// that a batch fits between two timer interrupts.
const LAPS: usize = 8;
const LAP_NS: f64 = 8_000.0;
/// The chain's order, the same in every run, although physical pages are not.
const SEED: u64 = 0x7069_6e77_6973_6531;

/// A chain to measure.
pub(super) struct Chase {
    run: ProbeRun,
    bytes: usize,
    stride: usize,
    memory: Mapping,
    /// Threads that load the memory meanwhile.
    load: Option<Arc<Load>>,
}

impl Chase {
    /// A chain through this many bytes.
    ///
    /// # Errors
    /// The reason if there is none, as a full sentence.
    pub(super) fn new(
        run: &ProbeRun,
        bytes: usize,
        node: Option<usize>,
        load: Option<Arc<Load>>,
    ) -> Result<Self, String> {
        let stride = line_bytes();
        if bytes < stride {
            return Err(format!("{bytes} bytes hold no line of {stride}."));
        }
        if u32::try_from(bytes / stride).is_err() {
            return Err(format!("{bytes} bytes are more lines than can be linked."));
        }
        check_size(bytes as u64 + bytes as u64 / 16)?;
        Ok(Self {
            run: run.clone(),
            bytes,
            stride,
            memory: Mapping::new(bytes, node)?,
            load,
        })
    }

    /// Links the chain, goes round it once if that is quick, and measures.
    pub(super) fn measure(&self, cpu: usize) -> Batches {
        let batches = self.link().map(|chain| self.follow(chain, cpu));
        if let Some(load) = &self.load {
            load.over.store(true, Ordering::Relaxed);
        }
        batches.unwrap_or_else(|| Batches {
            was_in_place: true,
            ..Batches::default()
        })
    }

    #[expect(unsafe_code, reason = "a chain in memory of its own")]
    fn link(&self) -> Option<Chain> {
        let lines = self.bytes / self.stride;
        let order = Mapping::new(4 * lines, None).ok()?;
        let goes_on = || !self.run.is_over();
        // SAFETY: both mappings have the length passed, are zero, which is a valid
        // number, and nothing else uses them.
        unsafe {
            let order = std::slice::from_raw_parts_mut(order.start().cast().as_ptr(), lines);
            let seed = SEED ^ self.bytes as u64;
            Chain::link(self.memory.start(), self.stride, order, seed, goes_on)
        }
    }

    fn follow(&self, mut chain: Chain, cpu: usize) -> Batches {
        let clock = &self.run.clock;
        if let Some(load) = &self.load {
            load.await_all();
        }
        self.warm_up(&mut chain);
        let loads = self.loads_per_lap(&mut chain);
        let mut tally = Tally::new(&self.run);
        while !tally.is_full() && !self.run.is_over() {
            let before = self.load.as_ref().map(|load| load.read());
            let (from, start) = (Moment::now(), clock.ticks());
            let laps = Laps::<LAPS>::time(clock, || step(&mut chain, loads));
            let ns = clock.ns(clock.ticks().wrapping_sub(start));
            let to = Moment::now();
            let value = laps.median_ns(clock) / loads as f64;
            let value = (!laps.was_stopped(clock)).then_some(value);
            let read = match (&self.load, before) {
                (Some(load), Some(before)) => load.read_since(&before),
                _ => Some(0),
            };
            let Some(read) = read else {
                tally.batches.switched += 1;
                continue;
            };
            let is_good = tally.note(value, &[Span { cpu, from, to }]);
            if let (true, Some(load)) = (is_good, &self.load) {
                tally.batches.background.push(read as f64 / ns);
                tally.batches.was_in_place &= load.is_in_place.load(Ordering::Relaxed);
            }
        }
        tally.batches
    }

    /// Goes round once to fill the caches. Linking has already written every line, so a chain that
    /// fits a cache comes from the next level at most; for one that fits none this would only take
    /// time.
    fn warm_up(&self, chain: &mut Chain) {
        const PART: usize = 4096;
        const LONGEST_NS: f64 = 2e7;
        let clock = &self.run.clock;
        let left_ns = self.run.time_left().as_secs_f64() * 1e9;
        let budget = clock.ticks_in(LONGEST_NS.min(0.1 * left_ns));
        let start = clock.ticks();
        let lines = self.bytes / self.stride;
        for _ in 0..lines.div_ceil(PART) {
            step(chain, PART.min(lines));
            if clock.ticks().wrapping_sub(start) > budget {
                return;
            }
        }
    }

    /// As many loads as take about [`LAP_NS`].
    fn loads_per_lap(&self, chain: &mut Chain) -> usize {
        const TRIAL: usize = 16 * UNROLLED;
        let clock = &self.run.clock;
        let laps = Laps::<9>::time(clock, || step(chain, TRIAL));
        let wanted = TRIAL as f64 * LAP_NS / laps.median_ns(clock).max(1.0);
        whole_usize(wanted.clamp(UNROLLED as f64, 1e6).floor()).next_multiple_of(UNROLLED)
    }
}

#[expect(unsafe_code, reason = "a chain in memory that outlives it")]
fn step(chain: &mut Chain, loads: usize) {
    // SAFETY: the chain's memory belongs to the `Chase` that linked it, which
    // nothing else writes to.
    unsafe { chain.follow(loads) };
}

/// CPUs that read memory as fast as they can.
pub(super) struct Load {
    run: ProbeRun,
    bytes: usize,
    over: AtomicBool,
    is_in_place: AtomicBool,
    /// Bytes read so far, one counter per loader.
    read: Vec<Counter>,
    memories: Vec<Mapping>,
}

#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// An array of a loader: larger than any core's share of a cache.
const LOAD_BYTES: usize = 64 << 20;
/// Bytes read between two updates of the counter: even with many loaders, several per batch.
const PIECE: usize = 32 << 10;

impl Load {
    /// Starts this many loaders.
    ///
    /// # Errors
    /// The reason if there is no memory for them, as a full sentence.
    pub(super) fn new(run: &ProbeRun, loaders: usize) -> Result<Arc<Self>, String> {
        check_size((LOAD_BYTES * loaders) as u64)?;
        let memories = (0..loaders).map(|_| Mapping::new(LOAD_BYTES, None));
        Ok(Arc::new(Self {
            run: run.clone(),
            bytes: LOAD_BYTES,
            over: AtomicBool::new(false),
            is_in_place: AtomicBool::new(true),
            read: (0..loaders).map(|_| Counter::default()).collect(),
            memories: memories.collect::<Result<_, _>>()?,
        }))
    }

    /// Waits until all loaders have begun, or the time is over.
    fn await_all(&self) {
        let has_begun = |count: &Counter| count.0.load(Ordering::Relaxed) > 0;
        while !self.read.iter().all(has_begun) && !self.is_over() {
            sleep_until(system_ns() + 1_000_000);
        }
    }

    /// Bytes read so far by each loader.
    fn read(&self) -> Vec<u64> {
        let read = self.read.iter();
        read.map(|count| count.0.load(Ordering::Relaxed)).collect()
    }

    /// What all have read since then; `None` if one has read nothing: it was preempted, and the
    /// memory not fully loaded.
    fn read_since(&self, before: &[u64]) -> Option<u64> {
        let added = self.read().into_iter().zip(before);
        let added = added.map(|(now, before)| Some(now - before).filter(|&added| added > 0));
        added.sum()
    }

    /// One loader's work, until the chain has been measured.
    #[expect(unsafe_code, reason = "loops over memory of its own")]
    pub(super) fn load(&self, number: usize, cpu: usize) {
        let array: NonNull<f64> = self.memories[number].start().cast();
        // Touched here first, so that it is local to this CPU.
        for at in (0..self.bytes).step_by(BLOCK) {
            // SAFETY: within the mapping, which only this thread writes to.
            unsafe { array.byte_add(at).write(1.0) };
            if at % PIECE == 0 && self.is_over() {
                return;
            }
        }
        let all = variants(Stream::Read);
        let Some(variant) = self.fastest(&all, array) else {
            return;
        };
        let mut at = 0;
        while !self.is_over() {
            self.pass(variant, array, at);
            at = (at + PIECE) % self.bytes;
            self.read[number]
                .0
                .fetch_add(PIECE as u64, Ordering::Relaxed);
            if at == 0 && !Moment::now().is_on(cpu) {
                self.is_in_place.store(false, Ordering::Relaxed);
            }
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.run.is_over()
    }

    #[expect(unsafe_code, reason = "loops over memory of its own")]
    fn pass(&self, variant: &Variant, array: NonNull<f64>, at: usize) {
        let arrays = Arrays {
            a: std::ptr::null_mut(),
            // SAFETY: within the mapping.
            b: unsafe { array.byte_add(at) }.as_ptr(),
            c: std::ptr::null(),
            bytes: PIECE,
        };
        // SAFETY: a sum reads `b` only, which is aligned to pages.
        unsafe { variant.run(arrays) };
    }

    /// The variant that reads a few pieces fastest.
    fn fastest<'a>(&self, all: &'a [Variant], array: NonNull<f64>) -> Option<&'a Variant> {
        let clock = &self.run.clock;
        let mut at = 0;
        all.iter().min_by_key(|variant| {
            let pieces = (0..8).map(|_| {
                at = (at + PIECE) % self.bytes;
                let from = clock.ticks();
                self.pass(variant, array, at);
                clock.ticks().wrapping_sub(from)
            });
            pieces.min()
        })
    }
}
