//! Loops that stream through memory: sum, fill, copy, triad, each in several ways. The fastest
//! depends on CPU and size; callers try them all in place.
//!
//! Arrays are of `f64`, as STREAM's (`McCalpin` 1995), in whole blocks of [`BLOCK`] bytes.

#![expect(
    unsafe_code,
    reason = "vector instructions on memory that the caller vouches for"
)]

#[cfg(target_arch = "x86_64")]
mod x86;

/// A way of streaming through memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// `sum += b[i]`
    Read,
    /// `a[i] = s`
    Write,
    /// `a[i] = b[i]`
    Copy,
    /// `a[i] = b[i] + s * c[i]`
    Triad,
}

impl Stream {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Copy, Self::Triad];

    /// The word used in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Copy => "copy",
            Self::Triad => "triad",
        }
    }

    /// Arrays that it goes through, whose bytes are counted: as in STREAM, those named by the
    /// program, without the reads that a store may cause.
    #[must_use]
    pub const fn arrays(self) -> usize {
        match self {
            Self::Read | Self::Write => 1,
            Self::Copy => 2,
            Self::Triad => 3,
        }
    }
}

/// Lengths are multiples of this many bytes.
pub const BLOCK: usize = 4096;

/// The memory of a loop: `bytes` of each array.
#[derive(Debug, Clone, Copy)]
pub struct Arrays {
    /// Written.
    pub a: *mut f64,
    /// Read.
    pub b: *const f64,
    /// Read.
    pub c: *const f64,
    /// Bytes of each array, a multiple of [`BLOCK`].
    pub bytes: usize,
}

type Loop = unsafe fn(Arrays) -> f64;

/// Instructions that a loop needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// The architecture's baseline.
    Baseline,
    /// Vectors of 256 bits.
    Avx,
    /// Vectors of 512 bits.
    Avx512,
}

/// One way to write a loop.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// For people.
    pub name: &'static str,
    /// The instructions it needs.
    pub instructions: Instructions,
    run: Loop,
}

impl Variant {
    /// Goes through the arrays once and returns the sum of the numbers that [`Stream::Read`] reads
    /// (0 for the others). Variants add in different orders: their sums are equal if the values are
    /// whole numbers and the sum is below 2^53. Afterwards all writes are visible to other CPUs.
    ///
    /// # Safety
    /// The arrays that the stream reads must be readable, the one that it writes writable, not
    /// used otherwise meanwhile, all aligned to 64 bytes.
    #[inline]
    pub unsafe fn run(&self, arrays: Arrays) -> f64 {
        // SAFETY: as the caller promises; variants are returned only if the CPU has their
        // instructions.
        unsafe { (self.run)(arrays) }
    }
}

/// All variants that this CPU supports, plain ones first.
#[must_use]
pub fn variants(stream: Stream) -> Vec<Variant> {
    let plain = Variant {
        name: "plain",
        instructions: Instructions::Baseline,
        run: match stream {
            Stream::Read => sum_plain,
            Stream::Write => fill_plain,
            Stream::Copy => copy_plain,
            Stream::Triad => triad_plain,
        },
    };
    #[cfg(target_arch = "x86_64")]
    let others = x86::variants(stream);
    #[cfg(not(target_arch = "x86_64"))]
    let others = [];
    std::iter::once(plain).chain(others).collect()
}

/// The factor of the triad, and the initial value.
pub const SCALAR: f64 = 3.0;

unsafe fn sum_plain(on: Arrays) -> f64 {
    // SAFETY: as the caller promises; f64 has no invalid bit patterns.
    let b = unsafe { std::slice::from_raw_parts(on.b, on.bytes / 8) };
    let mut sums = [0.0f64; 16];
    for chunk in b.chunks_exact(16) {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += value;
        }
    }
    sums.iter().sum()
}

unsafe fn fill_plain(on: Arrays) -> f64 {
    // SAFETY: as the caller promises.
    let a = unsafe { std::slice::from_raw_parts_mut(on.a, on.bytes / 8) };
    a.fill(std::hint::black_box(SCALAR));
    0.0
}

unsafe fn copy_plain(on: Arrays) -> f64 {
    // SAFETY: as the caller promises: the arrays do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(on.b, on.a, on.bytes / 8) };
    0.0
}

unsafe fn triad_plain(on: Arrays) -> f64 {
    let scalar = std::hint::black_box(SCALAR);
    // SAFETY: as the caller promises: the arrays do not overlap.
    let (a, b, c) = unsafe {
        (
            std::slice::from_raw_parts_mut(on.a, on.bytes / 8),
            std::slice::from_raw_parts(on.b, on.bytes / 8),
            std::slice::from_raw_parts(on.c, on.bytes / 8),
        )
    };
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b + scalar * c;
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that starts at a line.
    #[repr(align(64))]
    #[derive(Clone)]
    struct Aligned([f64; 3 * BLOCK / 8]);

    fn fill_array(from: f64) -> Box<Aligned> {
        let mut memory = Box::new(Aligned([0.0; 3 * BLOCK / 8]));
        for (at, value) in memory.0.iter_mut().enumerate() {
            *value = from + at as f64;
        }
        memory
    }

    /// Runs every variant on three arrays, checks the first one, and that nothing beyond the length
    /// was touched.
    #[track_caller]
    fn check(stream: Stream, expected: impl Fn(f64, f64, f64) -> f64) {
        for variant in variants(stream) {
            let (mut a, b, c) = (fill_array(-1e6), fill_array(1.0), fill_array(7.0));
            let before = a.clone();
            let arrays = Arrays {
                a: a.0.as_mut_ptr(),
                b: b.0.as_ptr(),
                c: c.0.as_ptr(),
                bytes: 2 * BLOCK,
            };
            // SAFETY: all three are aligned and longer than the length passed.
            let sum = unsafe { variant.run(arrays) };
            let of_b: f64 = b.0[..2 * BLOCK / 8].iter().sum();
            let of_b = if stream == Stream::Read { of_b } else { 0.0 };
            assert!((sum - of_b).abs() < 1e-9, "{} sums {sum}", variant.name);
            for at in 0..3 * BLOCK / 8 {
                let inside = at < 2 * BLOCK / 8;
                let old = before.0[at];
                let expected = if inside {
                    expected(old, b.0[at], c.0[at])
                } else {
                    old
                };
                assert!(
                    (a.0[at] - expected).abs() < 1e-9,
                    "{} at {at}",
                    variant.name
                );
            }
        }
    }

    #[test]
    fn every_variant_computes_its_pattern() {
        check(Stream::Read, |a, _, _| a);
        check(Stream::Write, |_, _, _| SCALAR);
        check(Stream::Copy, |_, b, _| b);
        check(Stream::Triad, |_, b, c| b + SCALAR * c);
    }

    #[test]
    fn bytes_are_counted_as_stream_does() {
        assert_eq!(Stream::ALL.map(Stream::arrays), [1, 1, 2, 3]);
    }
}
