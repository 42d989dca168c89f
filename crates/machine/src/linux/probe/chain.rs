//! Measures the latency of memory by a chain of dependent loads, alone or while other CPUs load the
//! memory.

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

/// Laps of a batch.
const LAPS: usize = 8;
/// Target length of a lap: so long that reading the clock does not matter, so short that a batch
/// fits between two timer interrupts.
const LAP_NS: f64 = 8_000.0;
/// Seed of the chain's order, so that it is the same in every run (physical pages are not).
const SEED: u64 = 0x7069_6e77_6973_6531;

/// A chain of dependent loads.
pub(super) struct Chase {
    run: ProbeRun,
    bytes: usize,
    stride: usize,
    memory: Mapping,
    /// The threads that load the memory meanwhile.
    load: Option<Arc<Load>>,
}

impl Chase {
    /// Allocates memory for a chain through this many bytes.
    ///
    /// # Errors
    /// A full sentence says why that is not possible.
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

    /// Links the chain, follows it once to warm up if that is quick, and measures.
    pub(super) fn measure(&self, cpu: usize) -> Batches {
        let batches = self.link().map(|chain| self.time_loads(chain, cpu));
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
        let may_continue = || !self.run.is_over();
        // SAFETY: both mappings have the length passed, are zero, which is a valid
        // number, and nothing else uses them.
        unsafe {
            let order = std::slice::from_raw_parts_mut(order.start().cast().as_ptr(), lines);
            let seed = SEED ^ self.bytes as u64;
            Chain::link(self.memory.start(), self.stride, order, seed, may_continue)
        }
    }

    fn time_loads(&self, mut chain: Chain, cpu: usize) -> Batches {
        let clock = &self.run.clock;
        if let Some(load) = &self.load {
            load.wait_for_all();
        }
        self.warm_up(&mut chain);
        let loads = self.choose_loads_per_lap(&mut chain);
        let mut tally = Tally::new(&self.run);
        while !tally.is_full() && !self.run.is_over() {
            let before = self.load.as_ref().map(|load| load.bytes_read());
            let (from, start) = (Moment::now(), clock.ticks());
            let laps = Laps::<LAPS>::time(clock, || follow(&mut chain, loads));
            let ns = clock.ns(clock.ticks().wrapping_sub(start));
            let to = Moment::now();
            let value = laps.median_ns(clock) / loads as f64;
            let value = (!laps.was_stopped(clock)).then_some(value);
            let read = match (&self.load, before) {
                (Some(load), Some(before)) => load.bytes_read_since(&before),
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

    /// Follows the chain once to fill the caches, unless that takes long. Linking has already
    /// written every line, so a chain that fits a cache is at most one level further away; for a
    /// chain that fits no cache this would only take time.
    fn warm_up(&self, chain: &mut Chain) {
        const PART: usize = 4096;
        const MAX_NS: f64 = 2e7;
        let clock = &self.run.clock;
        let remaining_ns = self.run.time_left().as_secs_f64() * 1e9;
        let budget = clock.ticks_in(MAX_NS.min(0.1 * remaining_ns));
        let start = clock.ticks();
        let lines = self.bytes / self.stride;
        for _ in 0..lines.div_ceil(PART) {
            follow(chain, PART.min(lines));
            if clock.ticks().wrapping_sub(start) > budget {
                return;
            }
        }
    }

    /// Chooses how many loads take about [`LAP_NS`].
    fn choose_loads_per_lap(&self, chain: &mut Chain) -> usize {
        const TRIAL: usize = 16 * UNROLLED;
        let clock = &self.run.clock;
        let laps = Laps::<9>::time(clock, || follow(chain, TRIAL));
        let wanted = TRIAL as f64 * LAP_NS / laps.median_ns(clock).max(1.0);
        whole_usize(wanted.clamp(UNROLLED as f64, 1e6).floor()).next_multiple_of(UNROLLED)
    }
}

#[expect(unsafe_code, reason = "a chain in memory that outlives it")]
fn follow(chain: &mut Chain, loads: usize) {
    // SAFETY: the chain's memory belongs to the `Chase` that linked it, which
    // nothing else writes to.
    unsafe { chain.follow(loads) };
}

/// Threads that read memory as fast as they can.
pub(super) struct Load {
    run: ProbeRun,
    bytes: usize,
    /// Has the chain been measured?
    over: AtomicBool,
    is_in_place: AtomicBool,
    /// Bytes read so far by each loader.
    counters: Vec<Counter>,
    memories: Vec<Mapping>,
}

#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// Bytes of a loader's array: more than any core's share of a cache.
const LOAD_BYTES: usize = 64 << 20;
/// Bytes read between two updates of the counter: so few that every loader updates it several times
/// per batch.
const PIECE: usize = 32 << 10;

impl Load {
    /// Allocates memory for this many loaders.
    ///
    /// # Errors
    /// A full sentence says why there is no memory for them.
    pub(super) fn new(run: &ProbeRun, loaders: usize) -> Result<Arc<Self>, String> {
        check_size((LOAD_BYTES * loaders) as u64)?;
        let memories = (0..loaders).map(|_| Mapping::new(LOAD_BYTES, None));
        Ok(Arc::new(Self {
            run: run.clone(),
            bytes: LOAD_BYTES,
            over: AtomicBool::new(false),
            is_in_place: AtomicBool::new(true),
            counters: (0..loaders).map(|_| Counter::default()).collect(),
            memories: memories.collect::<Result<_, _>>()?,
        }))
    }

    /// Waits until all loaders have begun, or the time is over.
    fn wait_for_all(&self) {
        let has_begun = |count: &Counter| count.0.load(Ordering::Relaxed) > 0;
        while !self.counters.iter().all(has_begun) && !self.is_over() {
            sleep_until(system_ns() + 1_000_000);
        }
    }

    /// Bytes read so far by each loader.
    fn bytes_read(&self) -> Vec<u64> {
        let counters = self.counters.iter();
        counters
            .map(|count| count.0.load(Ordering::Relaxed))
            .collect()
    }

    /// Bytes that all loaders together have read since `before`; `None` if one has read nothing: it
    /// was preempted, so the memory was not fully loaded.
    fn bytes_read_since(&self, before: &[u64]) -> Option<u64> {
        let added = self.bytes_read().into_iter().zip(before);
        let added = added.map(|(now, before)| Some(now - before).filter(|&added| added > 0));
        added.sum()
    }

    /// Reads memory until the chain has been measured: the work of one loader.
    #[expect(unsafe_code, reason = "loops over memory of its own")]
    pub(super) fn load(&self, number: usize, cpu: usize) {
        let array: NonNull<f64> = self.memories[number].start().cast();
        // Written here first, so that its pages are local to this CPU.
        for at in (0..self.bytes).step_by(BLOCK) {
            // SAFETY: within the mapping, which only this thread writes to.
            unsafe { array.byte_add(at).write(1.0) };
            if at % PIECE == 0 && self.is_over() {
                return;
            }
        }
        let all = variants(Stream::Read);
        let Some(variant) = self.find_fastest(&all, array) else {
            return;
        };
        let mut at = 0;
        while !self.is_over() {
            self.read_piece(variant, array, at);
            at = (at + PIECE) % self.bytes;
            self.counters[number]
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
    fn read_piece(&self, variant: &Variant, array: NonNull<f64>, at: usize) {
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

    /// Finds the variant that reads a piece fastest, of a few tries.
    fn find_fastest<'a>(&self, all: &'a [Variant], array: NonNull<f64>) -> Option<&'a Variant> {
        let clock = &self.run.clock;
        let mut at = 0;
        all.iter().min_by_key(|variant| {
            let pieces = (0..8).map(|_| {
                at = (at + PIECE) % self.bytes;
                let from = clock.ticks();
                self.read_piece(variant, array, at);
                clock.ticks().wrapping_sub(from)
            });
            pieces.min()
        })
    }
}
