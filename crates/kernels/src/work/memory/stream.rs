//! Streams through arrays: read, write, copy, triad, a mix, and the same read
//! in arrays that fit a cache.
//!
//! Each worker tries all loops that its instruction set allows in its own
//! arrays, while the others do the same, and keeps the fastest. Nothing is
//! decided by CPU model.

#![expect(unsafe_code, reason = "loops over memory that was mapped for them")]

use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::Instant;

use super::area::{Area, BEYOND_BYTES};
use crate::loops::stream::{Arrays, BLOCK, Instructions, SCALAR, Stream, Variant, variants};
use crate::work::{Group, Isa, Job, Kernel, KernelError, Random, Setup, Size, Worker, Wrong};

const STREAM: &str = "McCalpin 1995, STREAM: arrays at least four times the last-level cache, bytes without write-allocate traffic";
const LIKWID: &str =
    "Treibig, Hager and Wellein 2010, likwid-bench's load kernels and their default sizes";

/// Default bytes of all arrays of a memory kernel.
const LARGE: u64 = 256 << 20;

/// A kernel on large arrays.
const fn memory_kernel(
    name: &'static str,
    about: &'static str,
    prepare: fn(&Setup) -> Result<Box<dyn Job>, KernelError>,
) -> Kernel {
    Kernel {
        name,
        group: Group::Memory,
        about,
        source: STREAM,
        operation: "numbers",
        size: Some(Size {
            of: "bytes of all arrays of all threads together; take four times the last-level caches",
            default: LARGE,
            least: 1 << 20,
            most: 1 << 50,
        }),
        has_versions: true,
        footprint_bytes: |size, threads| {
            size.saturating_add((threads as u64).saturating_mul(2 * BEYOND_BYTES))
        },
        prepare,
    }
}

/// A kernel on an array per thread that fits a cache.
const fn cache_kernel(
    name: &'static str,
    about: &'static str,
    default: u64,
    prepare: fn(&Setup) -> Result<Box<dyn Job>, KernelError>,
) -> Kernel {
    Kernel {
        name,
        group: Group::Cache,
        about,
        source: LIKWID,
        operation: "numbers",
        size: Some(Size {
            of: "bytes of each thread's array",
            default,
            least: BLOCK as u64,
            most: 1 << 50,
        }),
        has_versions: true,
        footprint_bytes: |size, threads| {
            (threads as u64).saturating_mul(size.saturating_add(2 * BEYOND_BYTES))
        },
        prepare,
    }
}

pub(in crate::work) const READ: Kernel =
    memory_kernel("read", "reads an array of f64 and sums it", |setup| {
        prepare(setup, READING)
    });
pub(in crate::work) const WRITE: Kernel = memory_kernel(
    "write",
    "fills an array of f64, with non-temporal stores where they are faster",
    |setup| prepare(setup, WRITING),
);
pub(in crate::work) const COPY: Kernel = memory_kernel(
    "copy",
    "copies an array of f64, with non-temporal stores where they are faster",
    |setup| prepare(setup, COPYING),
);
pub(in crate::work) const TRIAD: Kernel = memory_kernel(
    "triad",
    "a = b + 3c over arrays of f64, with non-temporal stores where they are faster",
    |setup| prepare(setup, TRIADS),
);
pub(in crate::work) const READ_WRITE: Kernel = memory_kernel(
    "read-write",
    "reads 64 KiB of one array, writes 64 KiB of another, in turn",
    |setup| prepare(setup, MIXED),
);
pub(in crate::work) const CACHE_L1: Kernel = cache_kernel(
    "cache-l1",
    "reads an array that fits a first-level cache again and again",
    24 << 10,
    |setup| prepare(setup, IN_L1),
);
pub(in crate::work) const CACHE_L2: Kernel = cache_kernel(
    "cache-l2",
    "reads an array that fits a second-level cache again and again",
    256 << 10,
    |setup| prepare(setup, IN_L2),
);
pub(in crate::work) const CACHE_L3: Kernel = cache_kernel(
    "cache-l3",
    "reads an array that fits a third-level cache again and again",
    6 << 20,
    |setup| prepare(setup, IN_L3),
);

/// The operations and arrays of a kernel.
#[derive(Debug, Clone, Copy)]
struct Form {
    /// Done in turn on pieces of `piece` bytes.
    streams: &'static [Stream],
    /// The number of arrays.
    arrays: usize,
    /// The largest part of one array for one call, bytes.
    piece: usize,
    /// Bytes of one array that a unit processes: about 10 ms on one core.
    unit: usize,
    /// Whether `--size` is for each thread, instead of all together.
    is_per_thread: bool,
}

const READING: Form = Form {
    streams: &[Stream::Read],
    arrays: 1,
    piece: 1 << 20,
    unit: 256 << 20,
    is_per_thread: false,
};
const WRITING: Form = Form {
    streams: &[Stream::Write],
    ..READING
};
const COPYING: Form = Form {
    streams: &[Stream::Copy],
    arrays: 2,
    unit: 192 << 20,
    ..READING
};
const TRIADS: Form = Form {
    streams: &[Stream::Triad],
    arrays: 3,
    unit: 128 << 20,
    ..READING
};
const MIXED: Form = Form {
    streams: &[Stream::Read, Stream::Write],
    arrays: 2,
    piece: 64 << 10,
    unit: 144 << 20,
    is_per_thread: false,
};
const IN_L3: Form = Form {
    unit: 768 << 20,
    is_per_thread: true,
    ..READING
};
const IN_L2: Form = Form {
    unit: 1024 << 20,
    ..IN_L3
};
const IN_L1: Form = Form {
    unit: 2048 << 20,
    ..IN_L3
};

impl Form {
    /// The number of arrays in its streams, with repetitions.
    fn count_named_arrays(&self) -> usize {
        self.streams.iter().map(|stream| stream.arrays()).sum()
    }
}

fn prepare(setup: &Setup, form: Form) -> Result<Box<dyn Job>, KernelError> {
    let parts = if form.is_per_thread { 1 } else { setup.threads };
    let share = setup.size / (parts * form.arrays) as u64;
    let share = usize::try_from(share).unwrap_or(usize::MAX);
    let array_bytes = share / BLOCK * BLOCK;
    if array_bytes == 0 {
        return Err(KernelError::Size(format!(
            "--size {}: {} threads with {} arrays of {BLOCK} bytes need {} or more",
            setup.size,
            setup.threads,
            form.arrays,
            parts * form.arrays * BLOCK
        )));
    }
    Ok(Box::new(Streams {
        form,
        array_bytes,
        isa: setup.isa,
        chosen: Mutex::new(BTreeSet::new()),
    }))
}

struct Streams {
    form: Form,
    /// Bytes of each array of each thread, a multiple of [`BLOCK`].
    array_bytes: usize,
    isa: Isa,
    /// Names of the loops that workers chose.
    chosen: Mutex<BTreeSet<&'static str>>,
}

impl Job for Streams {
    fn operations_per_unit(&self) -> u64 {
        (self.form.unit * self.form.count_named_arrays() / 8) as u64
    }

    fn bytes_per_unit(&self) -> Option<u64> {
        Some((self.form.unit * self.form.count_named_arrays()) as u64)
    }

    fn working_set_bytes(&self) -> u64 {
        (self.array_bytes * self.form.arrays) as u64
    }

    fn describe_choice(&self) -> Option<String> {
        let chosen = self.chosen.lock().ok()?;
        let names: Vec<&str> = chosen.iter().copied().collect();
        Some(names.join("; "))
    }

    fn worker(&self, _thread: usize) -> Result<Box<dyn Worker + '_>, KernelError> {
        let mut walk = Walk {
            memory: Memory::new(self.form, self.array_bytes)?,
            form: self.form,
            loops: Vec::with_capacity(self.form.streams.len()),
            at: 0,
        };
        for &stream in self.form.streams {
            let fastest = walk.find_fastest(stream, self.isa)?;
            walk.loops.push(fastest);
            if let Ok(mut chosen) = self.chosen.lock() {
                chosen.insert(fastest.1.name);
            }
        }
        Ok(Box::new(walk))
    }
}

/// Numbers of a block.
const NUMBERS: usize = BLOCK / 8;
/// The sum of a block of `b`: 1 + 2 + … + 512. All sums of a unit stay far below 2^53, up to which
/// an `f64` holds every whole number.
const BLOCK_SUM: f64 = (NUMBERS * (NUMBERS + 1) / 2) as f64;
/// Never a result.
const POISON: f64 = -1.0;

/// Number `at` of every block of `b`: 1 to 512, each once, not in order.
fn number_of_b(at: usize) -> f64 {
    (at * 37 % NUMBERS + 1) as f64
}

/// The same of `c`, in another order.
fn number_of_c(at: usize) -> f64 {
    (at * 101 % NUMBERS + 1) as f64
}

/// The arrays of one thread.
struct Memory {
    area: Area,
    /// Distance between the starts of two arrays.
    apart: usize,
    arrays: usize,
    array_bytes: usize,
}

impl Memory {
    /// Maps and fills the arrays; the pages are local to this thread.
    fn new(form: Form, array_bytes: usize) -> Result<Self, KernelError> {
        // Not a multiple of large powers of two, so that arrays do not fall on
        // the same sets and banks.
        let apart = array_bytes + BLOCK + 512;
        let memory = Self {
            area: Area::new(apart.saturating_mul(form.arrays))?,
            apart,
            arrays: form.arrays,
            array_bytes,
        };
        let on = memory.at(0, array_bytes);
        for at in 0..array_bytes / 8 {
            // SAFETY: within arrays that only this thread uses; with fewer than three, one is
            // written twice.
            unsafe {
                on.a.add(at).write(POISON);
                on.c.cast_mut().add(at).write(number_of_c(at % NUMBERS));
                on.b.cast_mut().add(at).write(number_of_b(at % NUMBERS));
            }
        }
        Ok(memory)
    }

    /// `bytes` of each array, from `offset` on. Read-only and write-only streams use the first
    /// array.
    fn at(&self, offset: usize, bytes: usize) -> Arrays {
        debug_assert!(offset + bytes <= self.array_bytes, "within the arrays");
        let array = |number: usize| -> NonNull<f64> {
            let number = number.min(self.arrays - 1);
            // SAFETY: the area holds all arrays and the gaps between them.
            unsafe { self.area.start().add(number * self.apart + offset) }.cast()
        };
        Arrays {
            a: array(0).as_ptr(),
            b: array(1).as_ptr(),
            c: array(2).as_ptr(),
            bytes,
        }
    }
}

/// A worker: its arrays, its loops, and its position.
struct Walk {
    memory: Memory,
    form: Form,
    loops: Vec<(Stream, Variant)>,
    at: usize,
}

/// Trials of each loop, and bytes of an array each time.
const TRIALS: usize = 4;
const TRIAL_BYTES: usize = 4 << 20;

impl Walk {
    /// The fastest of the allowed loops, by a trial.
    fn find_fastest(&mut self, stream: Stream, isa: Isa) -> Result<(Stream, Variant), KernelError> {
        let allowed = match isa {
            Isa::V1 | Isa::V2 => Instructions::Baseline,
            Isa::V3 => Instructions::Avx,
            Isa::V4 | Isa::Native => Instructions::Avx512,
        };
        let mut found = variants(stream);
        found.retain(|variant| variant.instructions <= allowed);
        let mut best = vec![f64::INFINITY; found.len()];
        for _ in 0..TRIALS {
            for (variant, best) in found.iter().zip(&mut best) {
                self.loops.push((stream, *variant));
                let start = now();
                let trial = self.run_pass(TRIAL_BYTES, 0);
                let took = start.elapsed().as_secs_f64();
                self.loops.pop();
                trial.map_err(|what| KernelError::Wrong {
                    kernel: "a loop that was tried",
                    what,
                })?;
                *best = best.min(took);
            }
        }
        let fastest = found
            .into_iter()
            .zip(best)
            .min_by(|a, b| a.1.total_cmp(&b.1));
        fastest
            .map(|(variant, _)| (stream, variant))
            .ok_or_else(|| KernelError::Isa(format!("--isa {isa}: there is no loop for it")))
    }

    /// Processes this many bytes of the arrays, from the present position, wrapping round. Checks
    /// number `spot` of a block in every piece. Returns the sum of what was read.
    fn run_pass(&mut self, bytes: usize, spot: usize) -> Result<f64, Wrong> {
        let (mut left, mut sum) = (bytes, 0.0);
        while left > 0 {
            let piece = self.form.piece.min(left);
            let piece = piece.min(self.memory.array_bytes - self.at);
            let on = self.memory.at(self.at, piece);
            for (stream, variant) in &self.loops {
                sum += run_checked(*stream, variant, on, spot)?;
            }
            left -= piece;
            self.at += piece;
            if self.at == self.memory.array_bytes {
                self.at = 0;
            }
        }
        Ok(sum)
    }
}

/// Runs a loop on a piece. One written number is corrupted before and checked afterwards, in
/// another block of the piece each time.
#[inline]
fn run_checked(stream: Stream, variant: &Variant, on: Arrays, spot: usize) -> Result<f64, Wrong> {
    let expected = match stream {
        // SAFETY: the arrays are mapped, of this length, and this thread's.
        Stream::Read => return Ok(unsafe { variant.run(on) }),
        Stream::Write => SCALAR,
        Stream::Copy => number_of_b(spot),
        Stream::Triad => number_of_b(spot) + SCALAR * number_of_c(spot),
    };
    let block = spot % (on.bytes / BLOCK);
    // SAFETY: this number is within the piece; the arrays are as above.
    let found = unsafe {
        let number = on.a.add(block * NUMBERS + spot);
        number.write_volatile(POISON);
        variant.run(on);
        number.read_volatile()
    };
    if found.to_bits() == expected.to_bits() {
        return Ok(0.0);
    }
    Err("what was written is not what stands there")
}

impl Worker for Walk {
    fn run_unit(&mut self, unit: u64) -> Result<u64, Wrong> {
        let spot = usize::try_from(Random::for_unit(unit).next() % NUMBERS as u64);
        let spot = spot.unwrap_or(0);
        let sum = self.run_pass(self.form.unit, spot)?;
        let is_read = self.form.streams.contains(&Stream::Read);
        let blocks = (self.form.unit / BLOCK) as f64;
        let expected = if is_read { blocks * BLOCK_SUM } else { 0.0 };
        if sum.to_bits() != expected.to_bits() {
            return Err("the sum is not that of the numbers in the array");
        }
        // The sum, and which numbers were checked.
        Ok(sum.to_bits() ^ spot as u64)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "loops are tried against each other"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
